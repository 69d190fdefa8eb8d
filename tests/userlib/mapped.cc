// SPDX-License-Identifier: GPL-2.0
// A cache in C++ whose memory the CPU can access: its provider wraps the flat
// provider and adds memory. Compiled and run by test_install.sh.
#include <flexmem.h>
#include <flexmem_cache.h>

#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

std::vector<char> memory(64 << 20);

int map(void * /*user*/, uint64_t handle, uint64_t bytes, void **pointer)
{
	if (handle + bytes > memory.size())
		return -1;
	*pointer = memory.data() + handle;
	return 0;
}

int unmap(void * /*user*/, uint64_t /*handle*/, void * /*pointer*/,
	  uint64_t /*bytes*/)
{
	return 0;
}

void expect(bool holds)
{
	if (!holds)
		std::abort();
}

} // namespace

int main()
{
	flexmem_cache_flat *flat = nullptr;
	flexmem_cache_provider provider{};
	expect(!flexmem_cache_flat_create(&flat, memory.size(), &provider,
					  sizeof(provider)));
	provider.map = map;
	provider.unmap = unmap;

	flexmem_cache_options options{};
	options.provider = &provider;
	options.provider_size = sizeof(provider);
	options.flags = FLEXMEM_CACHE_MAPPED | FLEXMEM_CACHE_STRICT;
	flexmem_cache *cache = nullptr;
	expect(!flexmem_cache_create(&cache, &options, sizeof(options)));

	flexmem_cache_request request{};
	flexmem_cache_allocation allocation{};
	request.bytes = 1000;
	expect(!flexmem_cache_alloc_pointer(cache, &request, sizeof(request),
					    &allocation, sizeof(allocation)));
	std::memset(allocation.pointer, 1, 1000);

	struct flexmem_cache_statistics statistics{};
	struct flexmem_cache_profile profile{};
	struct flexmem_cache_setting setting{};
	expect(!flexmem_cache_statistics(cache, &statistics,
					 sizeof(statistics)));
	expect(!flexmem_cache_profile(cache, &profile, sizeof(profile)));
	expect(!flexmem_cache_setting(cache, 0, &setting, sizeof(setting)));
	expect(statistics.allocation[FLEXMEM_CACHE_ALL].current == 1);
	expect(profile.granule == 128);

	expect(!flexmem_cache_free_pointer(cache, allocation.pointer));
	flexmem_cache_destroy(cache);
	flexmem_cache_flat_destroy(flat);
}
