// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The log of a cache, and messages about wrong options. */
#include "cache.h"

#include <stdarg.h>
#include <stdio.h>

#define LOG_LINE 512

void fmlib_cache_log(const struct flexmem_cache *cache,
		     enum flexmem_log_level level, const char *format, ...)
{
	char text[LOG_LINE];
	va_list arguments;

	if (!fmlib_cache_logs(cache, level))
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	cache->log(level, text, cache->log_user);
}

void fmlib_cache_complain(struct flexmem_cache *cache, const char *format, ...)
{
	char text[LOG_LINE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fmlib_cache_log(cache, FLEXMEM_LOG_WARNING, "%s", text);
	/*
	 * Keeps only the first problem, because later ones may be its
	 * consequences.
	 */
	if (cache->problem)
		snprintf(cache->problem, cache->problem_length, "%s", text);
	cache->problem = NULL;
}
