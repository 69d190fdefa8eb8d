// SPDX-License-Identifier: GPL-2.0
/*
 * Stops a helper in a process that cannot open another descriptor. test_install.sh
 * links this program with the library as it is shipped, because the sanitizers
 * load libgcc_s before.
 */
#include <flexmem_cache.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

static int pressure(void *user, struct flexmem_pressure_event *event)
{
	(void)user;
	(void)event;
	return -11;
}

static int pressure_fd(void *user)
{
	return *(int *)user;
}

static int alloc(void *user, uint64_t bytes, uint64_t alignment, uint32_t flags,
		 struct flexmem_cache_memory *memory,
		 struct flexmem_failure *failure)
{
	(void)user;
	(void)bytes;
	(void)alignment;
	(void)flags;
	(void)memory;
	(void)failure;
	return -12;
}

static int give_back(void *user, uint64_t handle)
{
	(void)user;
	(void)handle;
	return 0;
}

int main(void)
{
	const struct rlimit none = { 3, 3 };
	int descriptor = eventfd(0, 0);
	const struct flexmem_cache_provider provider = {
		.alloc = alloc,
		.free = give_back,
		.user = &descriptor,
		.pressure = pressure,
		.pressure_fd = pressure_fd,
	};
	const struct flexmem_cache_options options = {
		.provider = &provider,
		.provider_size = sizeof(provider),
	};
	struct flexmem_cache *cache;
	int err;

	if (descriptor < 0 ||
	    flexmem_cache_create(&cache, &options, sizeof(options)) ||
	    flexmem_cache_start_helper(cache) ||
	    setrlimit(RLIMIT_NOFILE, &none))
		return 1;
	err = flexmem_cache_stop_helper(cache);
	printf("stop: %d, start: %d\n", err, flexmem_cache_start_helper(cache));
	flexmem_cache_destroy(cache);
	return 0;
}
