// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Reads and parses settings. */
#include "cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTING_MIN FMLIB_SIZE_TO(struct flexmem_cache_setting, value)
#define VALUE_MAX sizeof(((struct flexmem_cache_setting *)0)->value)

/* The largest size that is accepted, in MiB. */
#define MIB_MAX (UINT64_C(1) << 23)
#define DIVISIONS_MAX 64
#define MIB_SHIFT 20
/* How many digits of a fraction are used: more than a double has. */
#define FRACTION_DIGITS 17
#define SCALE_MAX 1e17
#define WHOLE_MAX 10
#define EXPONENT_MAX 99
#define PAGE UINT64_C(4096)
#define BLANKS " \t\n\v\f\r"

typedef bool (*parse_fn)(struct fmlib_config *config, enum fmlib_key key,
			 const char *value);

/* Parses decimal digits, without a sign, up to @max. */
static bool parse_number(const char **text, uint64_t max, uint64_t *number)
{
	const char *at = *text;

	*number = 0;
	for (; *at >= '0' && *at <= '9'; at++) {
		*number = *number * 10 + (uint64_t)(*at - '0');
		if (*number > max)
			return false;
	}
	if (at == *text)
		return false;
	*text = at;
	return true;
}

static bool parse_mib(struct fmlib_config *config, enum fmlib_key key,
		      const char *value)
{
	uint64_t *bytes = key == FMLIB_KEY_SLACK ? &config->slack :
			  key == FMLIB_KEY_LARGE ? &config->large :
						   &config->max_split;
	uint64_t mib;

	if (key == FMLIB_KEY_MAX_SPLIT && !strcmp(value, "off")) {
		config->max_split = FMLIB_NO_LIMIT;
		return true;
	}
	if (!parse_number(&value, MIB_MAX, &mib) || *value || !mib)
		return false;
	*bytes = mib << MIB_SHIFT;
	return true;
}

/* Parses the digits of a number after the point. */
static bool parse_decimals(const char **value, uint64_t *digits, double *scale)
{
	const char *at = *value;

	for (; *at >= '0' && *at <= '9'; at++) {
		if (*scale >= SCALE_MAX)
			continue;
		*digits = *digits * 10 + (uint64_t)(*at - '0');
		*scale *= 10;
	}
	if (at == *value)
		return false;
	*value = at;
	return true;
}

/* Parses an exponent, and applies it to @scale. */
static bool parse_exponent(const char **value, double *scale)
{
	bool negative = **value == '-';
	uint64_t count;

	if (negative || **value == '+')
		++*value;
	if (!parse_number(value, EXPONENT_MAX, &count))
		return false;
	for (; count; count--)
		*scale = negative ? *scale * 10 : *scale / 10;
	return true;
}

/*
 * Parses a fraction from 0 to 1, such as 0.8, .8 or 8e-1, whatever the locale
 * is.
 */
static bool parse_fraction(const char *value, double *fraction)
{
	bool whole;
	uint64_t digits;
	double scale = 1;

	whole = parse_number(&value, WHOLE_MAX, &digits);
	if (*value == '.') {
		value++;
		if (!parse_decimals(&value, &digits, &scale) && !whole)
			return false;
	} else if (!whole) {
		return false;
	}
	if (*value == 'e' || *value == 'E') {
		value++;
		if (!parse_exponent(&value, &scale))
			return false;
	}
	*fraction = (double)digits / scale;
	return !*value && *fraction <= 1.0;
}

static bool parse_threshold(struct fmlib_config *config, enum fmlib_key key,
			    const char *value)
{
	double fraction = 0.0;

	(void)key;
	if (strcmp(value, "off") && !parse_fraction(value, &fraction))
		return false;
	config->threshold = fraction;
	return true;
}

static bool parse_share(struct fmlib_config *config, enum fmlib_key key,
			const char *value)
{
	double fraction;

	(void)key;
	if (!parse_fraction(value, &fraction) || fraction <= 0.0)
		return false;
	config->fraction = fraction;
	return true;
}

static bool parse_history(struct fmlib_config *config, enum fmlib_key key,
			  const char *value)
{
	uint64_t entries;

	(void)key;
	if (!parse_number(&value, UINT32_MAX, &entries) || *value)
		return false;
	config->history = entries;
	return true;
}

static bool parse_switch(struct fmlib_config *config, enum fmlib_key key,
			 const char *value)
{
	bool on = !strcmp(value, "True");

	if (!on && strcmp(value, "False"))
		return false;
	if (key == FMLIB_KEY_EXPANDABLE)
		config->expandable = on;
	else
		config->release_lock = on;
	return true;
}

static bool parse_reuse(struct fmlib_config *config, enum fmlib_key key,
			const char *value)
{
	(void)key;
	if (!strcmp(value, "own"))
		config->reuse = FMLIB_REUSE_OWN;
	else if (!strcmp(value, "done"))
		config->reuse = FMLIB_REUSE_DONE;
	else if (!strcmp(value, "wait"))
		config->reuse = FMLIB_REUSE_WAIT;
	else
		return false;
	return true;
}

static bool parse_backend(struct fmlib_config *config, enum fmlib_key key,
			  const char *value)
{
	bool direct = !strcmp(value, "direct");

	(void)key;
	if (!direct && strcmp(value, "native"))
		return false;
	config->direct = direct;
	return true;
}

static bool is_power_of_two(uint64_t number)
{
	return number && !(number & (number - 1));
}

static void skip_blanks(const char **text)
{
	*text += strspn(*text, BLANKS);
}

static bool parse_steps(const char **text, uint32_t *steps)
{
	uint64_t number;

	if (!parse_number(text, DIVISIONS_MAX, &number) ||
	    (number && !is_power_of_two(number)))
		return false;
	*steps = (uint32_t)number;
	return true;
}

static void fill_divisions(uint32_t *divisions, unsigned int from,
			   uint32_t steps)
{
	for (; from < FMLIB_DIVISIONS; from++)
		divisions[from] = steps;
}

/*
 * Parses an entry SIZE:STEPS. @from is the lowest index that SIZE may have, and
 * receives the lowest index for the next entry.
 */
static bool parse_entry(const char **text, uint32_t *divisions,
			unsigned int *from)
{
	unsigned int index = *from;
	uint64_t mib;
	uint32_t steps;

	skip_blanks(text);
	if (**text == '>') {
		(*text)++;
	} else {
		if (!parse_number(text, UINT64_C(1) << (FMLIB_DIVISIONS - 1),
				  &mib) || !is_power_of_two(mib))
			return false;
		index = (unsigned int)__builtin_ctzll(mib);
		if (index < *from)
			return false;
	}
	skip_blanks(text);
	if ((**text != ':' && **text != '=') || *from >= FMLIB_DIVISIONS)
		return false;
	(*text)++;
	skip_blanks(text);
	if (!parse_steps(text, &steps))
		return false;
	skip_blanks(text);
	/* The first entry also applies to all smaller sizes. */
	fill_divisions(divisions, *from ? index : 0, steps);
	*from = index + 1;
	return true;
}

static bool parse_divisions(struct fmlib_config *config, enum fmlib_key key,
			    const char *value)
{
	uint32_t divisions[FMLIB_DIVISIONS] = { 0 };
	unsigned int from = 0;
	uint32_t steps;

	(void)key;
	if (*value != '[') {
		if (!parse_steps(&value, &steps) || *value || !steps)
			return false;
		fill_divisions(config->divisions, 0, steps);
		config->divides = true;
		return true;
	}
	do {
		value++;
		if (!parse_entry(&value, divisions, &from))
			return false;
	} while (*value == ',');
	if (strcmp(value, "]"))
		return false;
	memcpy(config->divisions, divisions, sizeof(divisions));
	config->divides = true;
	return true;
}

static const struct {
	const char *name;
	const char *initial;
	parse_fn parse;
} keys[FMLIB_KEYS] = {
	[FMLIB_KEY_BACKEND] = { "backend", "native", parse_backend },
	[FMLIB_KEY_EXPANDABLE] = { "expandable_segments", "False",
				   parse_switch },
	[FMLIB_KEY_THRESHOLD] = { "garbage_collection_threshold", "off",
				  parse_threshold },
	[FMLIB_KEY_HISTORY] = { "history_entries", "0", parse_history },
	[FMLIB_KEY_LARGE] = { "large_segment_size_mb", "off", parse_mib },
	[FMLIB_KEY_SLACK] = { "max_non_split_rounding_mb", "off", parse_mib },
	[FMLIB_KEY_MAX_SPLIT] = { "max_split_size_mb", "off", parse_mib },
	[FMLIB_KEY_FRACTION] = { "per_process_memory_fraction", "1.0",
				 parse_share },
	[FMLIB_KEY_RELEASE_LOCK] = { "release_lock_on_device_malloc", "False",
				     parse_switch },
	[FMLIB_KEY_REUSE] = { "reuse", "own", parse_reuse },
	[FMLIB_KEY_DIVISIONS] = { "roundup_power2_divisions", "off",
				  parse_divisions },
};

static const struct {
	const char *variable;
	enum flexmem_cache_source source;
} variables[] = {
	{ "FLEXMEM_ALLOC_CONF", FLEXMEM_CACHE_SOURCE_FLEXMEM_ALLOC_CONF },
	{ "MINDTORCH_NPU_ALLOC_CONF",
	  FLEXMEM_CACHE_SOURCE_MINDTORCH_NPU_ALLOC_CONF },
	{ "PYTORCH_ALLOC_CONF", FLEXMEM_CACHE_SOURCE_PYTORCH_ALLOC_CONF },
	{ "PYTORCH_CUDA_ALLOC_CONF",
	  FLEXMEM_CACHE_SOURCE_PYTORCH_CUDA_ALLOC_CONF },
};

static char *trim(char *text)
{
	size_t length;

	text += strspn(text, BLANKS);
	length = strlen(text);
	while (length && strchr(BLANKS, text[length - 1]))
		text[--length] = '\0';
	return text;
}

/*
 * Reports a bad value. With FLEXMEM_CACHE_STRICT no cache is made, so the text
 * does not name a value that is kept.
 */
static void refuse_value(struct flexmem_cache *cache, const char *origin,
			 enum fmlib_key key, const char *value)
{
	const struct fmlib_config *config = &cache->config;

	if (cache->flags & FLEXMEM_CACHE_STRICT)
		fmlib_cache_complain(cache, "%s: '%s' cannot be '%s'", origin,
				     keys[key].name, value);
	else
		fmlib_cache_complain(cache,
				     "%s: '%s' cannot be '%s'; %s '%s' is kept",
				     origin, keys[key].name, value,
				     config->shown[key].source ==
				     FLEXMEM_CACHE_SOURCE_DEFAULT ?
				     "the default" : "the earlier value",
				     config->shown[key].value);
}

static enum fmlib_key find_key(const char *name)
{
	enum fmlib_key key = 0;

	/* PyTorch has another name for this key. */
	if (!strcmp(name, "release_lock_on_cudamalloc"))
		return FMLIB_KEY_RELEASE_LOCK;
	while (key < FMLIB_KEYS && strcmp(keys[key].name, name))
		key++;
	return key;
}

/* If the value is invalid, returns false and changes nothing. */
static bool take_value(struct fmlib_config *config, enum fmlib_key key,
		       enum flexmem_cache_source source, const char *value)
{
	if (strlen(value) >= VALUE_MAX || !keys[key].parse(config, key, value))
		return false;
	config->shown[key].source = source;
	strcpy(config->shown[key].value, value);
	return true;
}

/* Returns -EINVAL if the setting is ignored. */
static int set(struct flexmem_cache *cache, enum flexmem_cache_source source,
	       const char *name, const char *value)
{
	const bool strict = cache->flags & FLEXMEM_CACHE_STRICT;
	const char *origin = flexmem_cache_source_name(source);
	struct fmlib_config *config = &cache->config;
	enum fmlib_key key = find_key(name);

	if (key == FMLIB_KEYS) {
		fmlib_cache_complain(cache,
				     "%s: unknown key '%s' with value '%s'%s",
				     origin, name, value,
				     strict ? "" : " is ignored");
		return -EINVAL;
	}
	if (!take_value(config, key, source, value)) {
		refuse_value(cache, origin, key, value);
		return -EINVAL;
	}
	return 0;
}

/* Finds the end of a setting: the next comma outside of brackets. */
static char *setting_end(char *text)
{
	int depth = 0;

	for (; *text && (*text != ',' || depth > 0); text++) {
		if (*text == '[')
			depth++;
		else if (*text == ']')
			depth--;
	}
	return text;
}

/* Sets all valid settings. Returns -EINVAL if it has ignored an invalid one. */
static int parse(struct flexmem_cache *cache, enum flexmem_cache_source source,
		 char *text)
{
	char *separator;
	int result = 0;
	char *value;
	char *end;
	bool more;

	do {
		end = setting_end(text);
		more = *end;
		*end = '\0';
		text = trim(text);
		separator = text + strcspn(text, ":=");
		value = separator;
		if (*separator) {
			*separator = '\0';
			value = trim(separator + 1);
		}
		if ((*text || value != separator) &&
		    set(cache, source, trim(text), value))
			result = -EINVAL;
		text = end + 1;
	} while (more);
	return result;
}

/* Returns the first variable that is set. It may be empty. */
static const char *from_environment(enum flexmem_cache_source *source)
{
	const char *text;
	size_t i;

	for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		text = getenv(variables[i].variable);
		if (text) {
			*source = variables[i].source;
			return text;
		}
	}
	return NULL;
}

int fmlib_config_read(struct flexmem_cache *cache, const char *text)
{
	enum flexmem_cache_source source = FLEXMEM_CACHE_SOURCE_CALLER;
	struct fmlib_config *config = &cache->config;
	enum fmlib_key key;
	char *copy;
	int err;

	config->fraction = 1.0;
	config->max_split = FMLIB_NO_LIMIT;
	config->slack = cache->profile.oversize_slack;
	config->large = cache->profile.large_segment;
	config->reuse = FMLIB_REUSE_OWN;
	for (key = 0; key < FMLIB_KEYS; key++)
		strcpy(config->shown[key].value, keys[key].initial);
	snprintf(config->shown[FMLIB_KEY_SLACK].value, VALUE_MAX, "%llu",
		 (unsigned long long)config->slack >> MIB_SHIFT);
	snprintf(config->shown[FMLIB_KEY_LARGE].value, VALUE_MAX, "%llu",
		 (unsigned long long)config->large >> MIB_SHIFT);
	if (!text)
		text = from_environment(&source);
	if (!text)
		return 0;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	err = parse(cache, source, copy);
	free(copy);
	return cache->flags & FLEXMEM_CACHE_STRICT ? err : 0;
}

int flexmem_cache_setting(const struct flexmem_cache *cache, size_t index,
			  struct flexmem_cache_setting *setting, size_t size)
{
	struct flexmem_cache_setting result = { 0 };
	int err = fmlib_cache_check(cache);

	if (err)
		return err;
	if (!setting || size < SETTING_MIN)
		return -EINVAL;
	if (index >= FMLIB_KEYS)
		return -ENOENT;
	strcpy(result.key, keys[index].name);
	/*
	 * The cache is const for the caller, but its lock changes.
	 */
	pthread_mutex_lock((pthread_mutex_t *)&cache->lock);
	result.source = cache->config.shown[index].source;
	strcpy(result.value, cache->config.shown[index].value);
	pthread_mutex_unlock((pthread_mutex_t *)&cache->lock);
	return fmlib_copy_out(setting, size, SETTING_MIN, &result,
			      sizeof(result));
}

void fmlib_config_apply(struct flexmem_cache *cache)
{
	struct flexmem_cache_profile *profile = &cache->profile;
	struct fmlib_config *config = &cache->config;

	cache->expandable = config->expandable && !config->direct;
	if (cache->expandable && !cache->provider.grow) {
		fmlib_cache_log(cache, FLEXMEM_LOG_WARNING,
				"expandable_segments has no effect: segments cannot grow here");
		cache->expandable = false;
	}
	/* Each request gets its own segment, which must be whole pages. */
	if (config->direct && cache->flags & FLEXMEM_CACHE_MAPPABLE &&
	    profile->granule < PAGE)
		profile->granule = PAGE;
	/*
	 * A block exceeds its request by @large_remainder at most. So the block
	 * of a request below @simple_limit has a narrow token.
	 */
	cache->simple_limit = profile->large_remainder < FMLIB_NARROW ?
			      FMLIB_NARROW - profile->large_remainder : 0;
	if (cache->simple_limit > config->max_split)
		cache->simple_limit = config->max_split;
	/*
	 * Rounding at most doubles a size and adds a granule. So a request up
	 * to @hit_limit stays below @simple_limit. The short path counts large
	 * requests only.
	 */
	cache->hit_limit = cache->one_kind &&
			   cache->simple_limit > 2 * profile->granule ?
			   cache->simple_limit / 2 - profile->granule : 0;
}

/* Whether the key can change while the cache is in use. */
static bool can_change(enum fmlib_key key)
{
	return key != FMLIB_KEY_BACKEND && key != FMLIB_KEY_RELEASE_LOCK &&
	       key != FMLIB_KEY_DIVISIONS;
}

int flexmem_cache_set_setting(struct flexmem_cache *cache, const char *key,
			      const char *value)
{
	int err = fmlib_cache_check(cache);
	struct fmlib_event *events = NULL;
	struct fmlib_config parsed;
	enum fmlib_key found;

	if (err)
		return err;
	if (!key || !value)
		return -EINVAL;
	found = find_key(key);
	if (found == FMLIB_KEYS)
		return -ENOENT;
	if (!can_change(found))
		return -EPERM;
	if (!take_value(&parsed, found, FLEXMEM_CACHE_SOURCE_CALLER, value))
		return -EINVAL;
	if (found == FMLIB_KEY_HISTORY && parsed.history) {
		events = fmlib_history_new(parsed.history);
		if (!events)
			return -ENOMEM;
	}
	fmlib_lock(cache);
	take_value(&cache->config, found, FLEXMEM_CACHE_SOURCE_CALLER, value);
	if (found == FMLIB_KEY_HISTORY)
		events = fmlib_history_begin(cache, events);
	if (found == FMLIB_KEY_EXPANDABLE || found == FMLIB_KEY_MAX_SPLIT)
		fmlib_config_apply(cache);
	if (found == FMLIB_KEY_MAX_SPLIT)
		fmlib_figures_oversize(cache);
	fmlib_unlock(cache);
	free(events);
	return 0;
}

int flexmem_cache_set_memory_fraction(struct flexmem_cache *cache,
				      double fraction)
{
	const char *const name = keys[FMLIB_KEY_FRACTION].name;
	char text[FRACTION_DIGITS + sizeof("0.")];
	unsigned long long digits;
	double scale = 1;
	double shown = 0;
	int count;

	/* NaN fails both comparisons. */
	if (!(fraction > 0.0 && fraction < 1.0))
		return flexmem_cache_set_setting(cache, name,
						 fraction == 1.0 ? "1.0" : "");
	/* Finds the shortest text that reads back as the same number. */
	for (count = 1; count <= FRACTION_DIGITS && shown != fraction; count++) {
		scale *= 10;
		digits = (unsigned long long)(fraction * scale + 0.5);
		snprintf(text, sizeof(text), "0.%0*llu", count, digits);
		parse_fraction(text, &shown);
	}
	return flexmem_cache_set_setting(cache, name, text);
}

const char *flexmem_cache_source_name(uint32_t source)
{
	size_t i;

	if (source == FLEXMEM_CACHE_SOURCE_DEFAULT)
		return "default";
	if (source == FLEXMEM_CACHE_SOURCE_CALLER)
		return "caller";
	for (i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		if (variables[i].source == source)
			return variables[i].variable;
	}
	return "unknown";
}
