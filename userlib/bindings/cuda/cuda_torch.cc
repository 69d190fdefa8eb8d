// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * What PyTorch's CUDAPluggableAllocator calls with types of C++, and the
 * exception with which it learns that there is no memory.
 *
 * PyTorch's headers are not needed. Its exception is made with PyTorch's own
 * constructor, which is looked up in the process. If PyTorch does not have it in
 * this form, std::runtime_error takes its place.
 */
#include <cerrno>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>

#include <cxxabi.h>
#include <dlfcn.h>

#include "flexmem_cuda.h"

namespace {

/* c10::SourceLocation */
struct SourceLocation {
	const char *function;
	const char *file;
	uint32_t line;
};

using Constructor = void (*)(void *, SourceLocation, std::string);

/* sizeof(c10::OutOfMemoryError) is about 200, and depends on the version. */
constexpr size_t EXCEPTION_BYTES = 4096;

void *find(const char *library, const char *symbol)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
	void *found = handle ? dlsym(handle, symbol) : nullptr;

	if (handle)
		dlclose(handle);
	return found;
}

/* c10::Error::Error(c10::SourceLocation, std::string) */
constexpr char CONSTRUCTOR[] = "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__"
			       "cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
constexpr char TYPE[] = "_ZTIN3c1016OutOfMemoryErrorE";

void destroy(void *exception)
{
	/* std::exception is the first base of c10::Error. */
	static_cast<std::exception *>(exception)->~exception();
}

/* Throws c10::OutOfMemoryError, or returns if that cannot be made. */
void throw_out_of_memory(const std::string &text)
{
	void *constructor = find("libc10.so", CONSTRUCTOR);
	void *type = find("libtorch_python.so", TYPE);
	Constructor construct;
	void *made;

	if (!type)
		type = find("libc10_cuda.so", TYPE);
	if (!constructor || !type)
		return;
	std::memcpy(&construct, &constructor, sizeof(construct));
	made = abi::__cxa_allocate_exception(EXCEPTION_BYTES);
	std::memset(made, 0, EXCEPTION_BYTES);
	construct(made, SourceLocation{ "flexmem_cuda_malloc", __FILE__, 0 },
		  text);
	abi::__cxa_throw(made, static_cast<std::type_info *>(type), destroy);
}

std::string error_text()
{
	char text[1024];

	flexmem_cuda_error_text(text, sizeof(text));
	return text;
}

/* The filters of the pools that have begun. */
using Filter = std::function<bool(void *)>;
using Pool = std::pair<unsigned long long, unsigned long long>;

std::mutex lock;
std::map<std::tuple<int, Pool>, Filter> filters;

int accepts(void *user, uint64_t stream)
{
	return (*static_cast<Filter *>(user))(reinterpret_cast<void *>(stream));
}

} /* namespace */

void *flexmem_cuda_malloc(ptrdiff_t bytes, int device, void *stream)
{
	void *pointer = nullptr;
	int err = flexmem_cuda_alloc(static_cast<uint64_t>(bytes), device,
				     stream, &pointer);

	if (err && find("libc10.so", CONSTRUCTOR)) {
		if (err == -ENOMEM)
			throw_out_of_memory("CUDA out of memory. flexmem: " +
					    error_text());
		throw std::runtime_error("flexmem: " + error_text());
	}
	return pointer;
}

extern "C" {

/* PyTorch's set_begin_allocate_to_pool(). */
FLEXMEM_API void
flexmem_cuda_torch_pool_begin(int device, Pool pool, Filter filter)
{
	std::lock_guard<std::mutex> guard(lock);
	auto added = filters.emplace(std::make_tuple(device, pool),
				     std::move(filter));

	if (!added.second ||
	    flexmem_cuda_pool_begin(device, pool.first, pool.second, accepts,
				    &added.first->second)) {
		if (added.second)
			filters.erase(added.first);
		throw std::runtime_error("flexmem: the pool has begun, or " +
					 error_text());
	}
}

/* PyTorch's set_end_allocate_to_pool_fn(). */
FLEXMEM_API void flexmem_cuda_torch_pool_end(int device, Pool pool)
{
	std::lock_guard<std::mutex> guard(lock);

	if (flexmem_cuda_pool_end(device, pool.first, pool.second))
		throw std::runtime_error("flexmem: " + error_text());
	filters.erase(std::make_tuple(device, pool));
}

/* PyTorch's set_release_pool(). */
FLEXMEM_API void flexmem_cuda_torch_pool_release(int device, Pool pool)
{
	if (flexmem_cuda_pool_release(device, pool.first, pool.second))
		throw std::runtime_error("flexmem: " + error_text());
}

}
