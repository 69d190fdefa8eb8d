// SPDX-License-Identifier: GPL-2.0
/*
 * Allocations and their bytes, which are accessed through mappings and by
 * copies.
 */
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "torture.h"

#define PAGE 4096ULL
#define NR_WINDOWS 2
#define WINDOW KiB
#define REVOKED_MS 60000

/*
 * The bytes that are checked: all bytes of a small allocation, two windows of a
 * large one.
 */
struct window {
	uint64_t offset;
	uint64_t size;
};

static unsigned int windows(const struct object *o, uint32_t salt,
			    struct window w[NR_WINDOWS])
{
	if (o->size <= BUFFER_SIZE) {
		w[0] = (struct window){ 0, o->size };
		return 1;
	}
	/* One window is at an end of the allocation, the other one anywhere. */
	w[0] = (struct window){ o->nonce % 2 ? 0 : o->size - WINDOW, WINDOW };
	w[1] = (struct window){ rng_mix(o->nonce, salt) %
				(o->size / WINDOW) * WINDOW, WINDOW };
	return NR_WINDOWS;
}

/* ---- copies that a SIGBUS ends ---- */

static __thread sigjmp_buf bus_return;
static __thread volatile sig_atomic_t bus_expected;

static void on_bus(int number)
{
	if (bus_expected)
		siglongjmp(bus_return, 1);
	fail("SIGBUS outside of any map");
	signal(number, SIG_DFL);
}

void object_setup(void)
{
	struct sigaction action = {
		.sa_handler = on_bus,
		.sa_flags = SA_NODEFER,
	};

	sigaction(SIGBUS, &action, NULL);
}

/* Copies words. Returns false if that causes SIGBUS. */
static bool copy_words(volatile uint64_t *to, const volatile uint64_t *from,
		       size_t size)
{
	size_t i;

	if (sigsetjmp(bus_return, 0)) {
		bus_expected = 0;
		count(COUNT_SIGBUS, 1);
		return false;
	}
	bus_expected = 1;
	for (i = 0; i < size / 8; i++)
		to[i] = from[i];
	bus_expected = 0;
	return true;
}

static bool is_mapped(const struct object *o, uint64_t offset, uint64_t size)
{
	return o->map && offset >= o->map_offset &&
	       offset + size <= o->map_offset + o->map_size;
}

/*
 * A mapping or a copy has failed. Checks that the driver reports the memory as
 * lost.
 */
static void object_revoked(struct object *o)
{
	uint64_t until = now_ms() + REVOKED_MS;

	if (atomic_load(&shared->begun) == o->upheavals) {
		fail("SIGBUS, and no device was reset or removed");
		return;
	}
	/*
	 * If the object has no handle or the descriptor is closed, the driver
	 * cannot be asked.
	 */
	while (!o->freed && !object_lost(o) && !atomic_load(&o->file->gone)) {
		if (now_ms() > until) {
			fail("SIGBUS, and the allocation is not lost");
			return;
		}
		sleep_ms(10);
	}
	o->lost = true;
}

/*
 * Lost bytes must not be visible: after a short time every access must cause
 * SIGBUS.
 */
static void expect_revoked(struct object *o)
{
	uint64_t until = now_ms() + REVOKED_MS;
	uint64_t word;

	while (copy_words(&word, (uint64_t *)o->map, sizeof(word))) {
		if (now_ms() > until) {
			fail("a map works although its device was reset or removed");
			return;
		}
		sleep_ms(10);
	}
}

bool object_lost(struct object *o)
{
	struct flexmem_lookup lookup = CMD(lookup, .handle = o->handle);
	int error = call(o->file, "LOOKUP", FLEXMEM_IOCTL_LOOKUP, &lookup, 0);

	if (error)
		return true;
	if ((lookup.out_flags & ~FLEXMEM_LOOKUP_LOST) != o->flags ||
	    lookup.out_size != o->size)
		fail("LOOKUP: handle %u has other flags or another size",
		     o->handle);
	if (!(lookup.out_flags & FLEXMEM_LOOKUP_LOST)) {
		if (lookup.out_address.region_id != o->address.region_id ||
		    lookup.out_address.offset != o->address.offset)
			fail("LOOKUP: handle %u has another address", o->handle);
		if (o->lost)
			fail("LOOKUP: handle %u was lost and is found", o->handle);
		return false;
	}
	if (!o->lost) {
		o->lost = true;
		count(COUNT_LOST, 1);
		if (atomic_load(&shared->begun) == o->upheavals)
			fail("handle %u is lost, and no device was reset",
			     o->handle);
	}
	return true;
}

/*
 * Copies from the device to @t->buffer, or back. Returns false if the copy
 * failed.
 */
static bool object_copy(struct thread *t, struct object *o, bool out,
			const struct window *w)
{
	struct flexmem_rw copy = CMD(rw, .handle = o->handle,
				       .offset = w->offset, .length = w->size,
				       .data = (uintptr_t)t->buffer);
	const char *what = out ? "READ" : "WRITE";
	int error;

	if (is_mapped(o, w->offset, w->size)) {
		uint64_t *map = (uint64_t *)(o->map + w->offset -
					     o->map_offset);

		if (copy_words(out ? t->buffer : map, out ? map : t->buffer,
			       w->size)) {
			if (o->lost)
				fail("a map of lost memory works");
			return true;
		}
		object_revoked(o);
		return false;
	}
	if (o->freed)
		return false;
	error = call(o->file, what, out ? FLEXMEM_IOCTL_READ :
		     FLEXMEM_IOCTL_WRITE, &copy, MAY_FIRMWARE);
	if (error) {
		if (error == EIO)
			object_lost(o);
		return false;
	}
	if (o->lost)
		fail("%s: works on lost memory", what);
	if (copy.out_done != w->size)
		fail("%s: %llu of %llu bytes, and success", what,
		     (unsigned long long)copy.out_done,
		     (unsigned long long)w->size);
	return true;
}

bool object_verify(struct thread *t, struct object *o)
{
	struct window w[NR_WINDOWS];
	unsigned int i, n = windows(o, 0, w);
	bool done = false;

	if (!o->written)
		return false;
	for (i = 0; i < n && !o->lost; i++) {
		/* If the handle was freed, only mapped bytes can be read. */
		if (o->freed && !is_mapped(o, w[i].offset, w[i].size))
			continue;
		if (!object_copy(t, o, true, &w[i]))
			return false;
		if (!pattern_is(t->buffer, o->file->identity, o->nonce,
				w[i].offset, w[i].size,
				o->freed ? "freed but mapped" : "own memory"))
			return false;
		done = true;
	}
	return done;
}

static void object_check_new(struct thread *t, struct object *o)
{
	struct window w[NR_WINDOWS];
	unsigned int i, n = windows(o, rng_next(&t->rng), w);

	for (i = 0; i < n; i++)
		if (!object_copy(t, o, true, &w[i]) ||
		    !pattern_is_new(t->buffer, o->file->identity,
				    o->flags & FLEXMEM_ALLOC_ZEROED, w[i].size,
				    "ALLOC"))
			return;
}

static bool object_write(struct thread *t, struct object *o)
{
	struct window w[NR_WINDOWS];
	unsigned int i, n = windows(o, 0, w);

	for (i = 0; i < n; i++) {
		pattern_fill(t->buffer, o->file->identity, o->nonce,
			     w[i].offset, w[i].size);
		if (!object_copy(t, o, false, &w[i]))
			return false;
	}
	o->written = true;
	return true;
}

/* ---- a thread's list of allocations ---- */

struct object *object_new(struct thread *t, struct file *file,
			  const struct flexmem_alloc *reply)
{
	struct object *o = &t->object[t->nr_objects++];

	*o = (struct object){
		.file = file_get(file),
		.address = reply->out_address,
		.size = reply->out_size,
		.handle = reply->out_handle,
		.flags = reply->flags,
		.chunks = reply->out_chunks,
		.nonce = atomic_fetch_add(&shared->nonce, 1),
	};
	return o;
}

/*
 * Moves the last object to the place of @o, so pointers to the last object are
 * invalid afterwards.
 */
void object_forget(struct thread *t, struct object *o)
{
	if (o->map)
		munmap(o->map, o->map_size);
	file_put(o->file);
	*o = t->object[--t->nr_objects];
}

void object_release_all(struct thread *t)
{
	while (t->nr_objects)
		object_forget(t, &t->object[t->nr_objects - 1]);
}

/* Picks an object whose device is still there. */
struct object *object_pick(struct thread *t)
{
	struct object *o;

	if (!t->nr_objects)
		return NULL;
	o = &t->object[rng_below(&t->rng, t->nr_objects)];
	if (!atomic_load(&o->file->gone))
		return o;
	if (o->map)
		expect_revoked(o);
	object_forget(t, o);
	return NULL;
}

/* ---- maps ---- */

/* Tries mappings that the driver must refuse. */
static void map_wrongly(struct thread *t, struct object *o, uint64_t offset)
{
	static const struct {
		int prot, flags, error;
	} table[] = {
		{ PROT_READ, MAP_PRIVATE, EINVAL },
		{ PROT_READ | PROT_WRITE, MAP_PRIVATE, EINVAL },
		{ PROT_READ | PROT_EXEC, MAP_SHARED, EPERM },
	};
	unsigned int i = rng_below(&t->rng, ARRAY_SIZE(table));
	void *map = mmap(NULL, o->size, table[i].prot, table[i].flags,
			 o->file->fd, offset);

	if (map == MAP_FAILED && errno == table[i].error) {
		count(COUNT_WRONG_REFUSED, 1);
	} else if (map != MAP_FAILED) {
		munmap(map, o->size);
		fail("mmap: protection %d, flags %d work", table[i].prot,
		     table[i].flags);
	} else if (errno != ENODEV && !object_lost(o)) {
		fail("mmap: protection %d, flags %d: %s", table[i].prot,
		     table[i].flags, strerror(errno));
	}
	map = mmap(NULL, o->size + PAGE, PROT_READ, MAP_SHARED, o->file->fd,
		   offset);
	if (map != MAP_FAILED) {
		munmap(map, o->size + PAGE);
		fail("mmap: a page beyond the end");
	}
}

/* Maps the whole allocation, or some of its pages. */
static bool object_map(struct thread *t, struct object *o, bool whole)
{
	struct flexmem_lookup cmd = CMD(lookup, .handle = o->handle);
	uint64_t first = 0, pages = o->size / PAGE;
	void *map;
	int error;

	if (call(o->file, "LOOKUP", FLEXMEM_IOCTL_LOOKUP, &cmd, 0))
		return false;
	if (cmd.out_flags & FLEXMEM_LOOKUP_LOST) {
		if (!object_lost(o))
			fail("LOOKUP: lost, and it is not");
		return false;
	}
	if (cmd.out_size != o->size)
		fail("LOOKUP: %llu of %llu bytes",
		     (unsigned long long)cmd.out_size,
		     (unsigned long long)o->size);
	if (rng_one_in(&t->rng, 16))
		map_wrongly(t, o, cmd.out_map_offset);

	if (!whole) {
		first = rng_below(&t->rng, pages);
		pages = 1 + rng_below(&t->rng, pages - first);
	}
	map = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
		   o->file->fd, cmd.out_map_offset + first * PAGE);
	error = map == MAP_FAILED ? errno : 0;
	atomic_fetch_add(&shared->ops, 1);
	if (error) {
		if (error != ENODEV && !object_lost(o))
			fail("mmap: %s", strerror(error));
		return false;
	}
	o->map = map;
	o->map_offset = first * PAGE;
	o->map_size = pages * PAGE;
	return true;
}

bool op_map(struct thread *t)
{
	struct object *o = object_pick(t);

	if (!o || o->freed || o->map || !(o->flags & FLEXMEM_ALLOC_MAPPABLE) ||
	    !object_map(t, o, rng_one_in(&t->rng, 2)))
		return false;
	object_verify(t, o);
	return true;
}

/* Unmaps everything or some pages at one end, or moves the mapping. */
bool op_unmap(struct thread *t)
{
	struct object *o = object_pick(t);
	uint64_t part, keep;
	void *map;

	if (!o || !o->map)
		return false;
	if (rng_one_in(&t->rng, 4)) {
		map = mmap(NULL, o->map_size, PROT_NONE, MAP_PRIVATE |
			   MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (mremap(o->map, o->map_size, o->map_size, MREMAP_MAYMOVE |
			   MREMAP_FIXED, map) == MAP_FAILED) {
			fail("mremap: %s", strerror(errno));
			return false;
		}
		o->map = map;
	} else {
		part = (1 + rng_below(&t->rng, o->map_size / PAGE)) * PAGE;
		keep = o->map_size - part;
		if (rng_one_in(&t->rng, 2)) {
			munmap(o->map, part);
			o->map += part;
			o->map_offset += part;
		} else {
			munmap(o->map + keep, part);
		}
		o->map_size = keep;
		if (!keep)
			o->map = NULL;
	}
	object_verify(t, o);
	if (o->freed && !o->map)
		object_forget(t, o);
	return true;
}

/* ---- operations of threads ---- */

static struct flexmem_alloc random_alloc(struct thread *t)
{
	static const uint32_t limit[] = {
		4 * KiB, 4 * KiB, 4 * KiB, 4 * KiB, 4 * KiB, 64 * KiB,
		64 * KiB, 64 * KiB, 512 * KiB, 4 * MiB,
	};
	struct rng *rng = &t->rng;
	/* Some requests fill a region, so that memory runs out. */
	uint32_t most = rng_one_in(rng, 20) ? 32 * MiB :
			limit[rng_below(rng, ARRAY_SIZE(limit))];
	struct flexmem_alloc alloc = CMD(alloc,
					 .length = 1 + rng_below(rng, most));

	if (rng_one_in(rng, 3))
		alloc.alignment = 1ULL << rng_below(rng, rng_one_in(rng, 16) ?
						    24 : 14);
	if (rng_one_in(rng, 2))
		alloc.flags |= FLEXMEM_ALLOC_MAPPABLE;
	if (rng_one_in(rng, 5))
		alloc.flags |= FLEXMEM_ALLOC_ZEROED;
	if (rng_one_in(rng, 16))
		alloc.flags |= FLEXMEM_ALLOC_PROGRAM;
	if (rng_one_in(rng, 8))
		alloc.flags |= FLEXMEM_ALLOC_GROWABLE;
	return alloc;
}

/* Checks the reply to an ALLOC. Returns its object, or NULL. */
static struct object *alloc_done(struct thread *t, struct file *file,
				 const struct flexmem_alloc *a, int error,
				 unsigned int upheavals)
{
	uint64_t least = a->flags & FLEXMEM_ALLOC_MAPPABLE ? PAGE : 128;
	uint64_t alignment = a->alignment > least ? a->alignment : least;
	uint64_t unit = a->alignment > PAGE ? a->alignment : least;
	struct object *o;

	if (error) {
		if (a->out_handle)
			fail("ALLOC: a handle and %s", strerror(error));
		if (error == ENOMEM && a->out_reason == FLEXMEM_REASON_NONE)
			fail("ALLOC: ENOMEM without a reason");
		if (error == ENOMEM)
			count(COUNT_REFUSED, 1);
		return NULL;
	}
	if (a->out_chunks != 1)
		fail("ALLOC: %u chunks in the place of one", a->out_chunks);
	if (!a->out_handle || a->out_size < a->length || a->out_size % unit ||
	    a->out_size >= a->length + unit ||
	    a->out_address.offset % alignment)
		fail("ALLOC: %llu bytes, aligned to %llu: handle %u, %llu bytes at %#llx",
		     (unsigned long long)a->length,
		     (unsigned long long)a->alignment, a->out_handle,
		     (unsigned long long)a->out_size,
		     (unsigned long long)a->out_address.offset);
	o = object_new(t, file, a);
	o->upheavals = upheavals;
	return o;
}

/* Checks that new memory holds no other owner's bytes, and fills it. */
static void object_begin(struct thread *t, struct object *o)
{
	if (o->flags & FLEXMEM_ALLOC_MAPPABLE && rng_one_in(&t->rng, 3))
		object_map(t, o, true);
	if (!o->lost)
		object_check_new(t, o);
	if (!o->lost && !rng_one_in(&t->rng, 3))
		object_write(t, o);
}

bool op_alloc(struct thread *t)
{
	unsigned int upheavals = atomic_load(&shared->ended);
	struct flexmem_alloc alloc = random_alloc(t);
	struct object *o;
	struct file *file;
	int error;

	if (t->nr_objects == MAX_OBJECTS)
		return false;
	file = file_pick(t);
	if (!file)
		return false;
	error = call(file, "ALLOC", FLEXMEM_IOCTL_ALLOC, &alloc,
		     MAY_FIRMWARE | MAY_NOMEM);
	o = error == ENODEV ? NULL :
			      alloc_done(t, file, &alloc, error, upheavals);
	file_put(file);
	if (!o)
		return false;
	object_begin(t, o);
	return true;
}

/*
 * Whether the object's file belongs to this thread alone, so that no other
 * thread can make an allocation at the object's address after a reset.
 */
static bool has_own_file(const struct thread *t, const struct object *o)
{
	return o->file == t->own[0] || o->file == t->own[1];
}

static void object_freed(struct thread *t, struct object *o)
{
	/* A mapped allocation keeps its bytes after the FREE. */
	if (o->map && !o->lost && rng_one_in(&t->rng, 2))
		o->freed = true;
	else
		object_forget(t, o);
}

bool op_free(struct thread *t)
{
	struct object *o = object_pick(t);
	struct flexmem_free free = CMD(free);
	int error;

	if (!o || o->freed)
		return false;
	if (rng_one_in(&t->rng, 2))
		object_verify(t, o);
	/*
	 * After a reset a new allocation may have the address of a lost one. A
	 * FREE by address would hit it. That cannot happen in a file that only
	 * this thread uses: the thread has allocated nothing since
	 * object_lost() returned false.
	 */
	if (rng_one_in(&t->rng, 2) && has_own_file(t, o) && !object_lost(o)) {
		free.flags = FLEXMEM_FREE_BY_ADDRESS;
		free.address = o->address;
		error = fm_ioctl(o->file->fd, FLEXMEM_IOCTL_FREE, &free);
		if (error == ENOENT && object_lost(o))
			return false;
		judge(o->file, "FREE by address", error, 0);
	} else {
		free.handle = o->handle;
		error = call(o->file, "FREE", FLEXMEM_IOCTL_FREE, &free, 0);
	}
	if (error)
		return false;
	object_freed(t, o);
	return true;
}

bool op_verify(struct thread *t)
{
	struct object *o = object_pick(t);

	if (!o)
		return false;
	if (o->lost && o->map)
		expect_revoked(o);
	return object_verify(t, o);
}

bool op_write(struct thread *t)
{
	struct object *o = object_pick(t);

	return o && !o->freed && !o->lost && object_write(t, o);
}

bool op_alloc_batch(struct thread *t)
{
	unsigned int upheavals = atomic_load(&shared->ended);
	unsigned int i, n = 1 + rng_below(&t->rng, 8);
	struct flexmem_alloc entry[8];
	struct flexmem_batch batch = CMD(batch,
					 .entry_size = sizeof(entry[0]),
					 .entries = (uintptr_t)entry);
	unsigned int bad = rng_below(&t->rng, 16);
	struct file *file;
	bool made = false;

	if (t->nr_objects + n > MAX_OBJECTS)
		return false;
	file = file_pick(t);
	if (!file)
		return false;
	for (i = 0; i < n; i++)
		entry[i] = random_alloc(t);
	/* A malformed entry fails alone. */
	if (bad < n)
		entry[bad].length = 0;
	batch.count = n;
	if (call(file, "ALLOC_BATCH", FLEXMEM_IOCTL_ALLOC_BATCH, &batch, 0)) {
		file_put(file);
		return false;
	}
	if (batch.out_done != n)
		fail("ALLOC_BATCH: %u of %u entries", batch.out_done, n);
	for (i = 0; i < n; i++) {
		unsigned int may = MAY_FIRMWARE | MAY_NOMEM;
		struct object *o;

		if (i == bad && entry[i].out_error != EINVAL &&
		    entry[i].out_error != ENODEV)
			fail("ALLOC_BATCH: an entry of no bytes");
		judge(file, "ALLOC in a batch", entry[i].out_error,
		      i == bad ? MAY_EINVAL : may);
		o = alloc_done(t, file, &entry[i], entry[i].out_error,
			       upheavals);
		if (!o)
			continue;
		made = true;
		object_begin(t, o);
	}
	count(COUNT_ENTRIES, n);
	file_put(file);
	return made;
}

bool op_free_batch(struct thread *t)
{
	struct object *o = object_pick(t);
	struct file *file;
	struct flexmem_free entry[8];
	struct flexmem_batch batch = CMD(batch,
					 .entry_size = sizeof(entry[0]),
					 .entries = (uintptr_t)entry);
	unsigned int i, j, n = 0;

	if (!o || o->freed)
		return false;
	file = file_get(o->file);
	for (i = 0; i < t->nr_objects && n < ARRAY_SIZE(entry); i++)
		if (t->object[i].file == file && !t->object[i].freed)
			entry[n++] = CMD(free, .handle = t->object[i].handle);
	batch.count = n;
	if (call(file, "FREE_BATCH", FLEXMEM_IOCTL_FREE_BATCH, &batch, 0)) {
		file_put(file);
		return false;
	}
	for (i = 0; i < n; i++) {
		if (!judge(file, "FREE in a batch", entry[i].out_error, 0) ||
		    entry[i].out_error)
			continue;
		for (j = 0; j < t->nr_objects; j++)
			if (t->object[j].file == file && !t->object[j].freed &&
			    t->object[j].handle == entry[i].handle)
				break;
		object_freed(t, &t->object[j]);
	}
	count(COUNT_ENTRIES, n);
	file_put(file);
	return true;
}

bool op_lookup(struct thread *t)
{
	struct object *o = object_pick(t);

	return o && !o->freed && !object_lost(o);
}

/* After a RESIZE: checks the bytes that both sizes have. */
static void object_check_kept(struct thread *t, struct object *o,
			      uint64_t old_size)
{
	struct object before = *o;
	struct window w[NR_WINDOWS];
	unsigned int i, n;

	before.size = old_size;
	n = windows(&before, 0, w);
	for (i = 0; i < n && o->written && !o->lost; i++) {
		if (w[i].offset >= o->size)
			continue;
		if (w[i].size > o->size - w[i].offset)
			w[i].size = o->size - w[i].offset;
		if (!object_copy(t, o, true, &w[i]) ||
		    !pattern_is(t->buffer, o->file->identity, o->nonce,
				w[i].offset, w[i].size, "RESIZE, what stays"))
			return;
	}
}

/* After a RESIZE: checks the start and the end of the added bytes. */
static void object_check_added(struct thread *t, struct object *o,
			       uint64_t old_size)
{
	struct window w[2];
	unsigned int i;

	if (o->size <= old_size)
		return;
	w[0] = (struct window){ old_size, o->size - old_size };
	if (w[0].size > WINDOW)
		w[0].size = WINDOW;
	w[1] = (struct window){ o->size - w[0].size, w[0].size };
	for (i = 0; i < ARRAY_SIZE(w) && !o->lost; i++)
		if (!object_copy(t, o, true, &w[i]) ||
		    !pattern_is_new(t->buffer, o->file->identity,
				    o->flags & FLEXMEM_ALLOC_ZEROED, w[i].size,
				    "RESIZE"))
			return;
}

static void resize_failed(struct object *o, const struct flexmem_resize *r,
			  int error)
{
	if (r->out_size != o->size && error != ENODEV)
		fail("RESIZE: %s, and %llu of %llu bytes", strerror(error),
		     (unsigned long long)r->out_size,
		     (unsigned long long)o->size);
	if (error == EAGAIN &&
	    (r->out_max < o->size || r->out_max >= r->length))
		fail("RESIZE: %llu bytes, EAGAIN, but at most %llu",
		     (unsigned long long)r->length,
		     (unsigned long long)r->out_max);
	if (error == ENOMEM && r->out_reason == FLEXMEM_REASON_NONE)
		fail("RESIZE: ENOMEM without a reason");
	if (error == EIO)
		object_lost(o);
}

bool op_resize(struct thread *t)
{
	struct object *o = object_pick(t);
	struct flexmem_resize resize = CMD(resize);
	uint64_t old_size, unit;
	int error;

	if (!o || o->freed || o->lost || o->chunks > 1)
		return false;
	old_size = o->size;
	resize.handle = o->handle;
	resize.length = 1 + rng_below(&t->rng, 2 * old_size);
	/* EBUSY is allowed, because a child may have mapped the allocation. */
	error = call(o->file, "RESIZE", FLEXMEM_IOCTL_RESIZE, &resize,
		     MAY_FIRMWARE | MAY_NOMEM | MAY_EAGAIN | MAY_EBUSY);
	if (error) {
		resize_failed(o, &resize, error);
		return false;
	}
	if (o->map)
		fail("RESIZE: works although it is mapped");
	unit = o->flags & FLEXMEM_ALLOC_MAPPABLE ? PAGE : 128;
	o->size = (resize.length + unit - 1) / unit * unit;
	if (resize.out_size != o->size)
		fail("RESIZE: %llu bytes: %llu",
		     (unsigned long long)resize.length,
		     (unsigned long long)resize.out_size);
	object_check_kept(t, o, old_size);
	object_check_added(t, o, old_size);
	/*
	 * Which words are written depends on the size, so the contents no
	 * longer count as written.
	 */
	o->written = false;
	if (!o->lost)
		object_write(t, o);
	return true;
}
