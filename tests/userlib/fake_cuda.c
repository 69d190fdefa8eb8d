// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "fake_cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define API FAKE_CUDA_API
#define GRANULARITY (UINT64_C(2) << 20)
#define CONTEXTS 16

enum { OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, NOT_READY = 600 };
enum { RELAXED = 2 };

/* Ends the program, because the call would be wrong on a GPU. */
#define WRONG(...) \
	(fprintf(stderr, "fake CUDA: %s: ", __func__), \
	 fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), abort())

/* Ranges of device memory: allocations, reservations and mapped pages. */
struct range {
	struct range *next;
	uint64_t start;
	uint64_t bytes;
	/* Of a page: its handle. It must be set before it can be used. */
	struct page *page;
	bool accessible;
	int device;
};

struct page {
	struct page *next;
	uint64_t bytes;
	int device;
	bool mapped;
	bool released;
};

/*
 * An entry of a stream's queue: memory to fill, an event, or a wait until
 * another stream has run its entries before the number @until.
 */
struct entry {
	struct entry *next;
	struct event *event;
	struct stream *awaited;
	uint64_t until;
	unsigned char *address;
	uint64_t bytes;
	unsigned char value;
};

/* @queued, @ran: number of entries so far. */
struct stream {
	struct stream *next;
	struct entry *first;
	uint64_t queued;
	uint64_t ran;
	int device;
};

/* @number: the entries of the stream before the event, and the event. */
struct event {
	struct event *next;
	struct stream *stream;
	uint64_t number;
	int device;
	bool happened;
	bool recorded;
};

struct device {
	uint64_t used;
	uint64_t peak;
	int crashed;
	bool retained;
	struct stream stream;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct device devices[FAKE_CUDA_DEVICES];
static struct range *allocations, *reservations, *maps;
static struct stream *streams;
/* Those that the program has not destroyed or released. */
static struct event *all_events;
static struct page *all_pages;
static uint64_t total = UINT64_C(1) << 30;
static unsigned int calls, fail_at, events, waits;
static int fail_with;
/* The name of the call that failed. */
static const char *failed;
static bool initialized, capturing;

static _Thread_local int stack[CONTEXTS];
static _Thread_local unsigned int depth;
static _Thread_local int mode;

/* Counts a call. Returns how it fails, or 0. The caller holds the lock. */
static int count(const char *name)
{
	calls++;
	if (calls != fail_at)
		return 0;
	failed = name;
	return fail_with;
}

#define BEGIN \
	int result; \
	pthread_mutex_lock(&lock); \
	result = count(__func__); \
	if (result) \
		goto end

#define END \
end: \
	pthread_mutex_unlock(&lock); \
	return result

/* The device of the context of this thread. */
static int device_here(void)
{
	if (!initialized)
		WRONG("cuInit was not called");
	if (!depth)
		WRONG("no context");
	return stack[depth - 1];
}

#define BEGIN_DEVICE \
	int here; \
	BEGIN; \
	here = device_here(); \
	result = devices[here].crashed; \
	if (result) \
		goto end

/* Calls that the driver refuses while a graph is captured. */
#define UNSAFE \
	do { \
		if (capturing && mode != RELAXED) \
			WRONG("breaks the capture"); \
	} while (0)

#define NEVER_IN_CAPTURE \
	do { \
		if (capturing) \
			WRONG("breaks the capture"); \
	} while (0)

/* The caller holds the lock for everything below. */

static struct range *add(struct range **list, uint64_t start, uint64_t bytes,
			 int device)
{
	struct range *range = calloc(1, sizeof(*range));

	if (!range)
		abort();
	range->start = start;
	range->bytes = bytes;
	range->device = device;
	range->next = *list;
	*list = range;
	return range;
}

/* The place of the range that begins at an address in its list. */
static struct range **find(struct range **list, uint64_t start)
{
	while (*list && (*list)->start != start)
		list = &(*list)->next;
	return list;
}

static void drop(struct range **at)
{
	struct range *range = *at;

	*at = range->next;
	free(range);
}

static bool inside(const struct range *range, uint64_t start, uint64_t bytes)
{
	return start >= range->start &&
	       start + bytes <= range->start + range->bytes;
}

static bool overlaps(const struct range *range, uint64_t start, uint64_t bytes)
{
	return start < range->start + range->bytes &&
	       range->start < start + bytes;
}

/* Whether each byte can be accessed. */
static bool is_accessible(uint64_t start, uint64_t bytes)
{
	uint64_t covered = 0;
	struct range *range;

	for (range = allocations; range; range = range->next)
		if (inside(range, start, bytes))
			return true;
	for (range = maps; range; range = range->next) {
		uint64_t from = start > range->start ? start : range->start;
		uint64_t to = start + bytes;

		if (to > range->start + range->bytes)
			to = range->start + range->bytes;
		if (range->accessible && to > from)
			covered += to - from;
	}
	return covered == bytes;
}

/* Runs the entries of a stream up to the one with the number @until. */
static void run(struct stream *stream, uint64_t until)
{
	struct entry *entry;

	while (stream->ran < until && (entry = stream->first)) {
		stream->first = entry->next;
		if (entry->event) {
			entry->event->happened = true;
		} else if (entry->awaited) {
			run(entry->awaited, entry->until);
		} else {
			if (!is_accessible((uintptr_t)entry->address,
					   entry->bytes))
				WRONG("work uses memory that is not there");
			memset(entry->address, entry->value, entry->bytes);
		}
		stream->ran++;
		free(entry);
	}
}

static void run_all(int device)
{
	struct stream *stream;

	for (stream = streams; stream; stream = stream->next)
		if (stream->device == device)
			run(stream, UINT64_MAX);
	run(&devices[device].stream, UINT64_MAX);
}

static void queue(struct stream *stream, struct entry entry)
{
	struct entry **last = &stream->first;
	struct entry *made = malloc(sizeof(*made));

	if (!made)
		abort();
	*made = entry;
	made->next = NULL;
	stream->queued++;
	while (*last)
		last = &(*last)->next;
	*last = made;
}

static bool stream_uses(const struct stream *stream, uint64_t start,
			uint64_t bytes)
{
	const struct entry *entry;

	for (entry = stream->first; entry; entry = entry->next)
		if (!entry->event && (uintptr_t)entry->address < start + bytes &&
		    start < (uintptr_t)entry->address + entry->bytes)
			return true;
	return false;
}

static bool is_used(uint64_t start, uint64_t bytes)
{
	const struct stream *stream;
	int i;

	for (stream = streams; stream; stream = stream->next)
		if (stream_uses(stream, start, bytes))
			return true;
	for (i = 0; i < FAKE_CUDA_DEVICES; i++)
		if (stream_uses(&devices[i].stream, start, bytes))
			return true;
	return false;
}

static bool charge(int device, uint64_t bytes)
{
	struct device *d = &devices[device];

	if (bytes > total || d->used > total - bytes)
		return false;
	d->used += bytes;
	if (d->used > d->peak)
		d->peak = d->used;
	return true;
}

static uint64_t host(uint64_t bytes, int protection)
{
	/* Ranges begin at a multiple of the driver's granularity. */
	char *start = mmap(NULL, bytes + GRANULARITY, protection,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t skip;

	if (start == MAP_FAILED)
		abort();
	skip = -(uintptr_t)start % GRANULARITY;
	if (skip)
		munmap(start, skip);
	if (GRANULARITY - skip)
		munmap(start + skip + bytes, GRANULARITY - skip);
	return (uintptr_t)start + skip;
}

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
}

/* Control. */

void fake_cuda_reset(uint64_t bytes)
{
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < FAKE_CUDA_DEVICES; i++) {
		run_all(i);
		devices[i].crashed = 0;
		devices[i].peak = devices[i].used;
	}
	total = bytes;
	calls = fail_at = waits = 0;
	capturing = false;
	pthread_mutex_unlock(&lock);
}

void *fake_cuda_stream(int device)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		abort();
	pthread_mutex_lock(&lock);
	stream->device = device;
	stream->next = streams;
	streams = stream;
	pthread_mutex_unlock(&lock);
	return stream;
}

static struct stream *stream_of(void *stream, int device)
{
	return stream ? stream : &devices[device].stream;
}

void fake_cuda_fill(void *stream, void *address, uint64_t bytes,
		    unsigned char value)
{
	pthread_mutex_lock(&lock);
	if (!is_accessible((uintptr_t)address, bytes))
		WRONG("work for memory that is not there");
	queue(stream_of(stream, 0), (struct entry){
		.address = address,
		.bytes = bytes,
		.value = value,
	});
	pthread_mutex_unlock(&lock);
}

void fake_cuda_run(void *stream)
{
	pthread_mutex_lock(&lock);
	run(stream_of(stream, 0), UINT64_MAX);
	pthread_mutex_unlock(&lock);
}

void fake_cuda_fail(unsigned int at, int result)
{
	pthread_mutex_lock(&lock);
	calls = 0;
	fail_at = at;
	fail_with = result;
	failed = NULL;
	pthread_mutex_unlock(&lock);
}

/* Reads a number under the lock. */
#define READ(type, value) \
	do { \
		type read_; \
		pthread_mutex_lock(&lock); \
		read_ = (value); \
		pthread_mutex_unlock(&lock); \
		return read_; \
	} while (0)

unsigned int fake_cuda_calls(void)
{
	READ(unsigned int, calls);
}

void fake_cuda_crash(int device, int result)
{
	pthread_mutex_lock(&lock);
	devices[device].crashed = result;
	pthread_mutex_unlock(&lock);
}

const char *fake_cuda_failed(void)
{
	READ(const char *, failed);
}

/* Gives the host's memory back, too. */
static void drop_all(struct range **list)
{
	while (*list) {
		/* Pages lie in reservations. */
		if (!(*list)->page)
			munmap((void *)(uintptr_t)(*list)->start,
			       (*list)->bytes);
		drop(list);
	}
}

void fake_cuda_revive(void)
{
	struct event *event;
	struct page *page;
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < FAKE_CUDA_DEVICES; i++)
		run_all(i);
	drop_all(&maps);
	drop_all(&allocations);
	drop_all(&reservations);
	while ((page = all_pages)) {
		all_pages = page->next;
		free(page);
	}
	while ((event = all_events)) {
		all_events = event->next;
		free(event);
	}
	for (i = 0; i < FAKE_CUDA_DEVICES; i++)
		devices[i].used = devices[i].crashed = 0;
	events = depth = 0;
	mode = 0;
	pthread_mutex_unlock(&lock);
}

void fake_cuda_capture(bool captures)
{
	pthread_mutex_lock(&lock);
	capturing = captures;
	pthread_mutex_unlock(&lock);
}

uint64_t fake_cuda_used(int device)
{
	READ(uint64_t, devices[device].used);
}

uint64_t fake_cuda_peak(int device)
{
	READ(uint64_t, devices[device].peak);
}

unsigned int fake_cuda_events(void)
{
	READ(unsigned int, events);
}

unsigned int fake_cuda_waits(void)
{
	READ(unsigned int, waits);
}

unsigned int fake_cuda_contexts(void)
{
	return depth;
}

bool fake_cuda_balanced(void)
{
	return !depth && !mode;
}

/* The driver. */

API int cuInit(unsigned int flags);
int cuInit(unsigned int flags)
{
	BEGIN;
	if (flags)
		WRONG("flags");
	initialized = true;
	END;
}

API int cuGetErrorName(int error, const char **text);
int cuGetErrorName(int error, const char **text)
{
	*text = error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" :
					 "CUDA_ERROR_OTHER";
	return 0;
}

API int cuGetErrorString(int error, const char **text);
int cuGetErrorString(int error, const char **text)
{
	*text = error == OUT_OF_MEMORY ? "out of memory" : "another error";
	return 0;
}

API int cuDeviceGet(int *device, int number);
int cuDeviceGet(int *device, int number)
{
	BEGIN;
	if (number < 0 || number >= FAKE_CUDA_DEVICES)
		result = INVALID_DEVICE;
	else
		*device = number;
	END;
}

API int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRetain(void **context, int device)
{
	BEGIN;
	devices[device].retained = true;
	*context = &devices[device];
	END;
}

API int cuCtxPushCurrent_v2(void *context);
int cuCtxPushCurrent_v2(void *context)
{
	struct device *device = context;

	BEGIN;
	if (device < devices || device >= devices + FAKE_CUDA_DEVICES ||
	    !device->retained || depth == CONTEXTS)
		WRONG("not a context, or too many");
	stack[depth++] = (int)(device - devices);
	END;
}

API int cuCtxPopCurrent_v2(void **context);
int cuCtxPopCurrent_v2(void **context)
{
	BEGIN;
	*context = &devices[device_here()];
	depth--;
	END;
}

API int cuThreadExchangeStreamCaptureMode(int *other);
int cuThreadExchangeStreamCaptureMode(int *other)
{
	int old = mode;

	BEGIN;
	mode = *other;
	*other = old;
	END;
}

API int cuCtxSynchronize(void);
int cuCtxSynchronize(void)
{
	BEGIN_DEVICE;
	NEVER_IN_CAPTURE;
	waits++;
	run_all(here);
	END;
}

API int cuMemGetInfo_v2(size_t *free_bytes, size_t *all);
int cuMemGetInfo_v2(size_t *free_bytes, size_t *all)
{
	BEGIN_DEVICE;
	*free_bytes = total - devices[here].used;
	*all = total;
	END;
}

API int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	BEGIN_DEVICE;
	UNSAFE;
	if (!bytes)
		WRONG("no bytes");
	if (!charge(here, round_up(bytes))) {
		result = OUT_OF_MEMORY;
		goto end;
	}
	*address = host(round_up(bytes), PROT_READ | PROT_WRITE);
	add(&allocations, *address, round_up(bytes), here);
	END;
}

API int cuMemFree_v2(uint64_t address);
int cuMemFree_v2(uint64_t address)
{
	struct range **at;

	BEGIN_DEVICE;
	UNSAFE;
	at = find(&allocations, address);
	if (!*at || (*at)->device != here)
		WRONG("%#llx is not allocated", (unsigned long long)address);
	/* The driver waits for the work. */
	run_all(here);
	devices[here].used -= (*at)->bytes;
	munmap((void *)(uintptr_t)address, (*at)->bytes);
	drop(at);
	END;
}

API int cuMemAddressReserve(uint64_t *address, size_t bytes, size_t alignment,
			    uint64_t hint, uint64_t flags);
int cuMemAddressReserve(uint64_t *address, size_t bytes, size_t alignment,
			uint64_t hint, uint64_t flags)
{
	BEGIN_DEVICE;
	if (!bytes || bytes % GRANULARITY || alignment % GRANULARITY || hint ||
	    flags)
		WRONG("%zu bytes", bytes);
	*address = host(bytes, PROT_NONE);
	add(&reservations, *address, bytes, here);
	END;
}

API int cuMemAddressFree(uint64_t address, size_t bytes);
int cuMemAddressFree(uint64_t address, size_t bytes)
{
	struct range **at;
	struct range *map;

	BEGIN_DEVICE;
	at = find(&reservations, address);
	if (!*at || (*at)->bytes != bytes)
		WRONG("%#llx is not reserved", (unsigned long long)address);
	for (map = maps; map; map = map->next)
		if (overlaps(map, address, bytes))
			WRONG("pages are mapped");
	munmap((void *)(uintptr_t)address, bytes);
	drop(at);
	END;
}

API int cuMemCreate(uint64_t *handle, size_t bytes, const void *property,
		    uint64_t flags);
int cuMemCreate(uint64_t *handle, size_t bytes, const void *property,
		uint64_t flags)
{
	/* type, handle types, type of the location, device */
	const int *words = property;
	struct page *page;

	BEGIN_DEVICE;
	UNSAFE;
	if (!bytes || bytes % GRANULARITY || flags || words[0] != 1 ||
	    words[1] || words[2] != 1 || words[3] != here)
		WRONG("%zu bytes", bytes);
	if (!charge(here, bytes)) {
		result = OUT_OF_MEMORY;
		goto end;
	}
	page = calloc(1, sizeof(*page));
	if (!page)
		abort();
	page->bytes = bytes;
	page->device = here;
	page->next = all_pages;
	all_pages = page;
	*handle = (uintptr_t)page;
	END;
}

/* The driver frees a page without a handle when it is not mapped. */
static void free_page(struct page *page)
{
	struct page **at = &all_pages;

	if (!page->released || page->mapped)
		return;
	while (*at != page)
		at = &(*at)->next;
	*at = page->next;
	devices[page->device].used -= page->bytes;
	free(page);
}

API int cuMemRelease(uint64_t handle);
int cuMemRelease(uint64_t handle)
{
	struct page *page = (void *)(uintptr_t)handle;

	BEGIN;
	if (page->released)
		WRONG("released twice");
	page->released = true;
	free_page(page);
	END;
}

API int cuMemMap(uint64_t address, size_t bytes, size_t offset, uint64_t handle,
		 uint64_t flags);
int cuMemMap(uint64_t address, size_t bytes, size_t offset, uint64_t handle,
	     uint64_t flags)
{
	struct page *page = (void *)(uintptr_t)handle;
	const struct range *range;
	bool reserved = false;

	BEGIN_DEVICE;
	if (page->released || page->mapped || page->bytes != bytes || offset ||
	    flags)
		WRONG("the page is mapped or released, or has another size");
	for (range = reservations; range; range = range->next)
		reserved |= inside(range, address, bytes);
	if (!reserved)
		WRONG("%#llx is not reserved", (unsigned long long)address);
	for (range = maps; range; range = range->next)
		if (overlaps(range, address, bytes))
			WRONG("%#llx is mapped", (unsigned long long)address);
	page->mapped = true;
	add(&maps, address, bytes, here)->page = page;
	END;
}

API int cuMemSetAccess(uint64_t address, size_t bytes, const void *access,
		       size_t number);
int cuMemSetAccess(uint64_t address, size_t bytes, const void *access,
		   size_t number)
{
	/* type and number of the device, flags */
	const int *words = access;
	uint64_t end = address + bytes;
	struct range *map;

	BEGIN_DEVICE;
	if (number != 1 || words[0] != 1 || words[1] != here || words[2] != 3)
		WRONG("not for this device");
	for (; address < end; address += map->bytes) {
		map = *find(&maps, address);
		if (!map || address + map->bytes > end)
			WRONG("%#llx is not mapped",
			      (unsigned long long)address);
		map->accessible = true;
		if (mprotect((void *)(uintptr_t)address, map->bytes,
			     PROT_READ | PROT_WRITE))
			abort();
	}
	END;
}

API int cuMemUnmap(uint64_t address, size_t bytes);
int cuMemUnmap(uint64_t address, size_t bytes)
{
	uint64_t end = address + bytes;
	struct range **at;
	struct page *page;
	uint64_t length;

	BEGIN_DEVICE;
	if (is_used(address, bytes))
		WRONG("queued work uses the memory");
	while (address < end) {
		at = find(&maps, address);
		if (!*at || address + (*at)->bytes > end)
			WRONG("%#llx is not mapped",
			      (unsigned long long)address);
		length = (*at)->bytes;
		page = (*at)->page;
		drop(at);
		page->mapped = false;
		free_page(page);
		if (mmap((void *)(uintptr_t)address, length, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
				 MAP_FIXED, -1, 0) == MAP_FAILED)
			abort();
		address += length;
	}
	END;
}

API int cuEventCreate(void **made, unsigned int flags);
int cuEventCreate(void **made, unsigned int flags)
{
	struct event *event;

	BEGIN_DEVICE;
	if (flags != 2)
		WRONG("an event with timing");
	event = calloc(1, sizeof(*event));
	if (!event)
		abort();
	event->device = here;
	event->next = all_events;
	all_events = event;
	*made = event;
	events++;
	END;
}

API int cuEventRecord(struct event *event, void *to);
int cuEventRecord(struct event *event, void *to)
{
	struct stream *stream;

	BEGIN_DEVICE;
	NEVER_IN_CAPTURE;
	stream = stream_of(to, here);
	if (event->device != here || stream->device != here)
		WRONG("event or stream of another context");
	event->recorded = true;
	event->stream = stream;
	queue(stream, (struct entry){ .event = event });
	event->number = stream->queued;
	END;
}

API int cuStreamWaitEvent(void *to, struct event *event, unsigned int flags);
int cuStreamWaitEvent(void *to, struct event *event, unsigned int flags)
{
	struct stream *stream;

	BEGIN_DEVICE;
	NEVER_IN_CAPTURE;
	stream = stream_of(to, here);
	if (event->device != here || stream->device != here ||
	    !event->recorded || flags)
		WRONG("wait of another context, or for no work");
	/* The wait stays if the event is destroyed. */
	queue(stream, (struct entry){ .awaited = event->stream,
				      .until = event->number });
	END;
}

API int cuEventQuery(struct event *event);
int cuEventQuery(struct event *event)
{
	BEGIN_DEVICE;
	NEVER_IN_CAPTURE;
	if (event->device != here || !event->recorded)
		WRONG("event of another context, or not recorded");
	if (!event->happened)
		result = NOT_READY;
	END;
}

API int cuEventSynchronize(struct event *event);
int cuEventSynchronize(struct event *event)
{
	BEGIN_DEVICE;
	NEVER_IN_CAPTURE;
	if (event->device != here || !event->recorded)
		WRONG("event of another context, or not recorded");
	if (!event->happened)
		run(event->stream, event->number);
	END;
}

API int cuEventDestroy_v2(struct event *event);
int cuEventDestroy_v2(struct event *event)
{
	struct event **at = &all_events;
	struct entry *entry;

	BEGIN_DEVICE;
	if (event->device != here)
		WRONG("event of another context");
	/* The entry stays, and does nothing. */
	if (event->recorded && !event->happened)
		for (entry = event->stream->first; entry; entry = entry->next)
			if (entry->event == event) {
				entry->event = NULL;
				entry->bytes = 0;
			}
	while (*at != event)
		at = &(*at)->next;
	*at = event->next;
	free(event);
	events--;
	END;
}

/* The default streams belong to their devices. */
__attribute__((constructor)) static void number_streams(void)
{
	int i;

	for (i = 0; i < FAKE_CUDA_DEVICES; i++)
		devices[i].stream.device = i;
}
