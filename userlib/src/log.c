// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The log callback of the caller, and the one that environment variables
 * install.
 */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void log_of_device(enum flexmem_log_level level, const char *text,
			  void *user)
{
	(void)level;
	(void)user;
	fprintf(stderr, "flexmem: %s\n", text);
}

static void log_of_cache(enum flexmem_log_level level, const char *text,
			 void *user)
{
	(void)level;
	(void)user;
	fprintf(stderr, "flexmem cache: %s\n", text);
}

static bool is_one(const char *variable)
{
	const char *value = getenv(variable);

	return value && !strcmp(value, "1");
}

flexmem_log_fn fmlib_log_of_settings(void)
{
	return log_of_cache;
}

flexmem_log_fn fmlib_log_of_environment(bool cache)
{
	if (!is_one("FLEXMEM_DEBUG") && !is_one("TORCH_SPYRE_ALLOC_DEBUG"))
		return NULL;
	return cache ? log_of_cache : log_of_device;
}

void fmlib_log_from_environment(struct flexmem_device *device)
{
	flexmem_log_fn log = fmlib_log_of_environment(false);

	if (log)
		flexmem_device_set_log(device, FLEXMEM_LOG_DEBUG, log, NULL);
}

int flexmem_device_set_log(struct flexmem_device *device,
			   enum flexmem_log_level level, flexmem_log_fn log,
			   void *user)
{
	if (!device || (int)level < FLEXMEM_LOG_NONE ||
	    (int)level > FLEXMEM_LOG_DEBUG)
		return -EINVAL;
	pthread_mutex_lock(&device->log_lock);
	device->log = log;
	device->log_user = user;
	atomic_store(&device->log_level, log ? (int)level : FLEXMEM_LOG_NONE);
	pthread_mutex_unlock(&device->log_lock);
	/* The caller may have let flexmem_device_open() choose. */
	fmlib_log(device, FLEXMEM_LOG_DEBUG, "uses %s: %s of %.*s, %u slots",
		  device->path,
		  device->info.out_mode == FLEXMEM_MODE_PF ? "PF" : "VF",
		  (int)sizeof(device->info.out_name), device->info.out_name,
		  device->info.out_slots);
	return 0;
}

bool fmlib_log_wants(const struct flexmem_device *device,
		     enum flexmem_log_level level)
{
	return atomic_load_explicit(&device->log_level,
				    memory_order_relaxed) >= (int)level;
}

void fmlib_log(struct flexmem_device *device, enum flexmem_log_level level,
	       const char *format, ...)
{
	char text[512];
	va_list arguments;

	if (!fmlib_log_wants(device, level))
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);

	pthread_mutex_lock(&device->log_lock);
	/* Checks again: the callback may have been removed. */
	if (device->log && fmlib_log_wants(device, level))
		device->log(level, text, device->log_user);
	pthread_mutex_unlock(&device->log_lock);
}
