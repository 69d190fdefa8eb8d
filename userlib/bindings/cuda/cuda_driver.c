// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* CUDA's driver: its functions, and its errors. */
#include "cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fmcuda_driver fmcuda;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int loaded;
/* Why fmcuda_load() failed; each call of it fails with this text. */
static char problem[512];
/* The last error of this thread. */
static _Thread_local char reason[1024];

#define NAME(name, suffix, parameters) \
	{ offsetof(struct fmcuda_driver, name), FMCUDA_PREFIX #name suffix },
static const struct {
	size_t offset;
	const char *name;
} functions[] = { FMCUDA_FUNCTIONS(NAME) };

static int load(void)
{
	const char *file = getenv("FLEXMEM_CUDA_DRIVER");
	void *function;
	void *library;
	size_t i;

	if (!file || !*file)
		file = FMCUDA_LIBRARY;
	/* Stays loaded: the driver cannot be unloaded safely. */
	library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return fmcuda_fail(-ENODEV, "no driver for CUDA: %s",
				   dlerror());
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		function = dlsym(library, functions[i].name);
		if (!function)
			return fmcuda_fail(-ENODEV, "%s has no %s", file,
					   functions[i].name);
		memcpy((char *)&fmcuda + functions[i].offset, &function,
		       sizeof(function));
	}
	return FMCUDA(Init, 0);
}

static void load_once(void)
{
	loaded = load();
	if (loaded)
		snprintf(problem, sizeof(problem), "%.500s", reason);
}

int fmcuda_load(void)
{
	pthread_once(&once, load_once);
	return loaded ? fmcuda_fail(loaded, "%s", problem) : 0;
}

bool fmcuda_is_lost(int result)
{
	return result == FMCUDA_DEINITIALIZED ||
	       result == FMCUDA_INVALID_CONTEXT || result == FMCUDA_ECC ||
	       (result >= FMCUDA_ILLEGAL_ADDRESS &&
		result <= FMCUDA_LAUNCH_FAILED);
}

static int to_errno(int result)
{
	if (result >= FMCUDA_CAPTURE_FIRST && result <= FMCUDA_CAPTURE_LAST)
		return -EBUSY;
	switch (result) {
	case FMCUDA_INVALID_VALUE:
		return -EINVAL;
	case FMCUDA_OUT_OF_MEMORY:
		return -ENOMEM;
	case FMCUDA_NOT_INITIALIZED:
	case FMCUDA_NO_DEVICE:
	case FMCUDA_INVALID_DEVICE:
		return -ENODEV;
	case FMCUDA_NOT_READY:
		return -EAGAIN;
	case FMCUDA_NOT_SUPPORTED:
		return -EOPNOTSUPP;
	default:
		return -EIO;
	}
}

int fmcuda_errno(const char *call, int result)
{
	const char *text = NULL;
	const char *name = NULL;

	if (result == FMCUDA_SUCCESS)
		return 0;
	/* The answer of a query is no error. */
	if (result == FMCUDA_NOT_READY)
		return -EAGAIN;
	if (fmcuda.GetErrorName(result, &name) || !name)
		name = "unknown error";
	if (fmcuda.GetErrorString(result, &text) || !text)
		text = "no description";
	return fmcuda_fail(to_errno(result), "%s%s: %s (%d): %s",
			   FMCUDA_PREFIX, call, name, result, text);
}

int fmcuda_fail(int err, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	return err;
}

int flexmem_cuda_error_text(char *text, size_t length)
{
	int needed = snprintf(text, length, "%s", reason);

	return needed < 0 || (size_t)needed >= length ? -EMSGSIZE : 0;
}
