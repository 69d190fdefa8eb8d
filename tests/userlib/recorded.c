// SPDX-License-Identifier: GPL-2.0
/*
 * Allocates and frees with one cache for each process, in turns, on one device of the
 * fake kernel, and writes what flexmem_cache_snapshot() says of each.
 *
 * usage: recorded PROCESSES OPERATIONS CONFIGURATION DIRECTORY [SEED]
 */
#include <flexmem_cache.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROCESSES_MAX 8
#define LIVE_MAX 64

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

/* Each call is a microsecond later, so that all events have an order. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	static uint64_t microseconds = 1700000000000000;

	(void)clock;
	microseconds++;
	now->tv_sec = (time_t)(microseconds / 1000000);
	now->tv_nsec = (long)(microseconds % 1000000) * 1000;
	return 0;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags,
			   const struct timespec *time, struct timespec *left);

/* Nobody else gives memory back, so there is nothing to wait for. */
int __wrap_clock_nanosleep(clockid_t clock, int flags,
			   const struct timespec *time, struct timespec *left)
{
	(void)clock;
	(void)flags;
	(void)time;
	(void)left;
	return 0;
}

struct process {
	struct flexmem_device *device;
	struct flexmem_cache *cache;
	void *live[LIVE_MAX];
};

static uint64_t state = 1;

static uint64_t draw(uint64_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (state >> 33) % below;
}

static void expect(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-err));
	exit(1);
}

static void begin(struct process *process, const char *configuration)
{
	struct flexmem_cache_options options = { .configuration = configuration };

	expect(flexmem_device_open(&process->device, NULL), "open");
	options.device = process->device;
	expect(flexmem_cache_create(&process->cache, &options, sizeof(options)),
	       "cache");
	expect(flexmem_cache_set_history(process->cache, 100000), "history");
}

/* Sizes from bytes to 4 GiB, and sometimes one that no device has. */
static void operate(struct process *process)
{
	void **slot = &process->live[draw(LIVE_MAX)];
	static const char *const tags[] = { NULL, "keys", "\xc3\xa4 \"\n" };
	struct flexmem_cache_request request = { 0 };
	struct flexmem_cache_allocation made;
	int err;

	if (*slot) {
		expect(flexmem_cache_free(process->cache, *slot), "free");
		*slot = NULL;
		return;
	}
	request.bytes = 1 + draw(UINT64_C(1) << (4 + draw(29)));
	if (!draw(100))
		request.bytes = UINT64_C(1) << 40;
	request.stream = draw(3);
	request.tag = tags[draw(3)];
	err = flexmem_cache_alloc_request(process->cache, &request,
					  sizeof(request), &made, sizeof(made));
	if (err != -12)
		expect(err, "alloc");
	if (!err)
		*slot = made.token;
}

static void end(struct process *process, const char *directory, int number)
{
	char path[4096];
	FILE *file;
	char *text;

	expect(flexmem_cache_snapshot(process->cache, FLEXMEM_CACHE_EVERY_POOL,
				      &text, NULL), "snapshot");
	snprintf(path, sizeof(path), "%s/%d.json", directory, number);
	file = fopen(path, "w");
	if (!file || fputs(text, file) < 0 || fclose(file))
		exit(1);
	flexmem_cache_text_free(text);
}

int main(int argc, char **argv)
{
	struct process processes[PROCESSES_MAX] = { 0 };
	int count, operations;
	int i;

	if (argc < 5 || argc > 6)
		return 2;
	if (argc == 6)
		state = (uint64_t)atoi(argv[5]);
	count = atoi(argv[1]);
	operations = atoi(argv[2]);
	if (count < 1 || count > PROCESSES_MAX)
		return 2;
	for (i = 0; i < count; i++)
		begin(&processes[i], argv[3]);
	for (i = 0; i < operations; i++)
		operate(&processes[draw((uint64_t)count)]);
	for (i = 0; i < count; i++)
		end(&processes[i], argv[4], i + 1);
	for (i = 0; i < count; i++) {
		flexmem_cache_destroy(processes[i].cache);
		flexmem_device_close(processes[i].device);
	}
	return 0;
}
