// SPDX-License-Identifier: GPL-2.0
/* Settings of the cache. */
#include "cache_mock.h"
#include "cache/cache.h"

#include <math.h>

static struct flexmem_cache_setting setting(const struct flexmem_cache *cache,
					    const char *key)
{
	struct flexmem_cache_setting found;
	size_t i;

	for (i = 0; !flexmem_cache_setting(cache, i, &found, sizeof(found));
	     i++) {
		if (!strcmp(found.key, key))
			return found;
	}
	fail_msg("there is no setting %s", key);
	return found;
}

static void expect(const struct flexmem_cache *cache, const char *key,
		   const char *value, enum flexmem_cache_source source)
{
	struct flexmem_cache_setting found = setting(cache, key);

	assert_string_equal(found.value, value);
	assert_int_equal(found.source, source);
}

static void defaults(void **state)
{
	static const char *const keys[][2] = {
		{ "backend", "native" },
		{ "expandable_segments", "False" },
		{ "garbage_collection_threshold", "off" },
		{ "history_entries", "0" },
		{ "large_segment_size_mb", "20" },
		{ "max_non_split_rounding_mb", "1" },
		{ "max_split_size_mb", "off" },
		{ "per_process_memory_fraction", "1.0" },
		{ "release_lock_on_device_malloc", "False" },
		{ "reuse", "own" },
		{ "roundup_power2_divisions", "off" },
	};
	struct flexmem_cache *cache = mock_cache(NULL);
	struct flexmem_cache_setting found;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		assert_int_equal(flexmem_cache_setting(cache, i, &found,
						       sizeof(found)), 0);
		assert_string_equal(found.key, keys[i][0]);
		assert_string_equal(found.value, keys[i][1]);
		assert_int_equal(found.source, FLEXMEM_CACHE_SOURCE_DEFAULT);
	}
	assert_int_equal(flexmem_cache_setting(cache, i, &found,
					       sizeof(found)), -ENOENT);
	assert_int_equal(flexmem_cache_setting(cache, 0, NULL, sizeof(found)),
			 -EINVAL);
	assert_int_equal(flexmem_cache_setting(cache, 0, &found, 8), -EINVAL);
	assert_int_equal(mock.warnings, 0);
	assert_int_equal(figures(cache).max_split_size, UINT64_MAX);
	flexmem_cache_destroy(cache);
}

/*
 * Exactly one text is used: the caller's, or that of the first environment
 * variable that is set.
 */
static void precedence(void **state)
{
	struct flexmem_cache *cache;

	(void)state;
	setenv("PYTORCH_CUDA_ALLOC_CONF",
	       "max_split_size_mb:30,backend:direct", 1);
	cache = mock_cache(NULL);
	expect(cache, "max_split_size_mb", "30",
	       FLEXMEM_CACHE_SOURCE_PYTORCH_CUDA_ALLOC_CONF);
	flexmem_cache_destroy(cache);

	/* An empty PYTORCH_ALLOC_CONF still comes first. */
	setenv("PYTORCH_ALLOC_CONF", "", 1);
	cache = mock_cache(NULL);
	expect(cache, "max_split_size_mb", "off", FLEXMEM_CACHE_SOURCE_DEFAULT);
	expect(cache, "backend", "native", FLEXMEM_CACHE_SOURCE_DEFAULT);
	flexmem_cache_destroy(cache);
	setenv("PYTORCH_ALLOC_CONF", "max_split_size_mb:35", 1);
	cache = mock_cache(NULL);
	expect(cache, "max_split_size_mb", "35",
	       FLEXMEM_CACHE_SOURCE_PYTORCH_ALLOC_CONF);
	expect(cache, "backend", "native", FLEXMEM_CACHE_SOURCE_DEFAULT);
	flexmem_cache_destroy(cache);

	setenv("MINDTORCH_NPU_ALLOC_CONF", "max_split_size_mb:40", 1);
	cache = mock_cache(NULL);
	expect(cache, "max_split_size_mb", "40",
	       FLEXMEM_CACHE_SOURCE_MINDTORCH_NPU_ALLOC_CONF);
	expect(cache, "backend", "native", FLEXMEM_CACHE_SOURCE_DEFAULT);
	flexmem_cache_destroy(cache);

	setenv("FLEXMEM_ALLOC_CONF", "max_split_size_mb:50", 1);
	cache = mock_cache(NULL);
	expect(cache, "max_split_size_mb", "50",
	       FLEXMEM_CACHE_SOURCE_FLEXMEM_ALLOC_CONF);
	flexmem_cache_destroy(cache);

	cache = mock_cache("max_split_size_mb:60");
	expect(cache, "max_split_size_mb", "60", FLEXMEM_CACHE_SOURCE_CALLER);
	assert_int_equal(figures(cache).max_split_size, 60 * MIB);
	flexmem_cache_destroy(cache);

	/* A variable with an empty value counts as set. */
	setenv("FLEXMEM_ALLOC_CONF", "", 1);
	cache = mock_cache(NULL);
	expect(cache, "max_split_size_mb", "off", FLEXMEM_CACHE_SOURCE_DEFAULT);
	flexmem_cache_destroy(cache);
	assert_int_equal(mock.warnings, 0);
}

static void separators(void **state)
{
	struct flexmem_cache *cache =
		mock_cache(" max_split_size_mb = 64 ,,"
			   "garbage_collection_threshold:0.80,\t"
			   "expandable_segments=True,"
			   "roundup_power2_divisions:[256:1,512=2,>:4],"
			   "per_process_memory_fraction:0.5,"
			   "release_lock_on_device_malloc:True,"
			   "backend:native,");

	(void)state;
	expect(cache, "max_split_size_mb", "64", FLEXMEM_CACHE_SOURCE_CALLER);
	expect(cache, "garbage_collection_threshold", "0.80",
	       FLEXMEM_CACHE_SOURCE_CALLER);
	expect(cache, "expandable_segments", "True",
	       FLEXMEM_CACHE_SOURCE_CALLER);
	expect(cache, "roundup_power2_divisions", "[256:1,512=2,>:4]",
	       FLEXMEM_CACHE_SOURCE_CALLER);
	expect(cache, "per_process_memory_fraction", "0.5",
	       FLEXMEM_CACHE_SOURCE_CALLER);
	expect(cache, "release_lock_on_device_malloc", "True",
	       FLEXMEM_CACHE_SOURCE_CALLER);
	expect(cache, "backend", "native", FLEXMEM_CACHE_SOURCE_CALLER);
	assert_int_equal(mock.warnings, 0);
	flexmem_cache_destroy(cache);
}

static const struct {
	const char *key;
	const char *value;
	const char *kept;
} refused[] = {
	{ "max_split_size_mb", "", "off" },
	{ "max_split_size_mb", "0", "off" },
	{ "max_split_size_mb", "-1", "off" },
	{ "max_split_size_mb", "+1", "off" },
	{ "max_split_size_mb", "64MB", "off" },
	{ "max_split_size_mb", "6 4", "off" },
	{ "max_split_size_mb", "1.5", "off" },
	{ "max_split_size_mb", "18446744073709551616", "off" },
	{ "max_non_split_rounding_mb", "x", "1" },
	{ "large_segment_size_mb", "0", "20" },
	{ "large_segment_size_mb", "off", "20" },
	{ "garbage_collection_threshold", "", "off" },
	{ "garbage_collection_threshold", "1.01", "off" },
	{ "garbage_collection_threshold", "-0.5", "off" },
	{ "garbage_collection_threshold", "nan", "off" },
	{ "garbage_collection_threshold", "0.5f", "off" },
	{ "garbage_collection_threshold", "80%", "off" },
	{ "garbage_collection_threshold", ".", "off" },
	{ "garbage_collection_threshold", "e-1", "off" },
	{ "garbage_collection_threshold", ".e-1", "off" },
	{ "garbage_collection_threshold", "1e", "off" },
	{ "garbage_collection_threshold", "1e-", "off" },
	{ "garbage_collection_threshold", "1e1", "off" },
	{ "garbage_collection_threshold", "1e-1x", "off" },
	{ "per_process_memory_fraction", "0", "1.0" },
	{ "per_process_memory_fraction", "2", "1.0" },
	{ "expandable_segments", "yes", "False" },
	{ "expandable_segments", "true", "False" },
	{ "backend", "cudaMallocAsync", "native" },
	{ "roundup_power2_divisions", "3", "off" },
	{ "roundup_power2_divisions", "128", "off" },
	{ "roundup_power2_divisions", "0", "off" },
	{ "roundup_power2_divisions", "[]", "off" },
	{ "roundup_power2_divisions", "[256]", "off" },
	{ "roundup_power2_divisions", "[256:3]", "off" },
	{ "roundup_power2_divisions", "[100:2]", "off" },
	{ "roundup_power2_divisions", "[256:1", "off" },
	{ "roundup_power2_divisions", "[256:1]x", "off" },
	{ "roundup_power2_divisions", "[512:1,256:1]", "off" },
	{ "roundup_power2_divisions", "[256:1 512:2]", "off" },
	{ "roundup_power2_divisions", "[2 56:1]", "off" },
	{ "roundup_power2_divisions", "[256:1,]", "off" },
	{ "roundup_power2_divisions", "[256:1,256:1]", "off" },
	{ "roundup_power2_divisions", "[>:1,>:1,65536:2,>:4]", "off" },
	{ "garbage_collection_threshold", "0.5.", "off" },
	{ "history_entries", "4294967296", "0" },
	{ "history_entries", "many", "0" },
	{ "history_entries", "", "0" },
	{ "per_process_memory_fraction", "0.5x", "1.0" },
	{ "per_process_memory_fraction", "0.5 0.5", "1.0" },
	{ "roundup_power2_divisions", "[256:1,512:3]", "off" },
	{ "expandable_segments", "1", "False" },
};

/*
 * The cache ignores each bad value, with a warning that names key, value and
 * default.
 */
static void bad_values(void **state)
{
	char expected[300];
	char text[200];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct flexmem_cache *cache;

		mock.log[0] = '\0';
		mock.warnings = 0;
		snprintf(text, sizeof(text), "%s:%s,backend:native",
			 refused[i].key, refused[i].value);
		snprintf(expected, sizeof(expected),
			 "caller: '%s' cannot be '%s'; the default '%s' is kept\n",
			 refused[i].key, refused[i].value, refused[i].kept);
		cache = mock_cache(text);
		/*
		 * After an open bracket the rest of the line is part of the
		 * value.
		 */
		if (strcmp(refused[i].value, "[256:1"))
			assert_string_equal(mock.log, expected);
		assert_int_equal(mock.warnings, 1);
		if (strcmp(refused[i].key, "backend"))
			expect(cache, refused[i].key, refused[i].kept,
			       FLEXMEM_CACHE_SOURCE_DEFAULT);
		flexmem_cache_destroy(cache);
	}
}

/* Returns the settings, without the texts that show them. */
static struct fmlib_config settings(const char *text)
{
	struct flexmem_cache *cache = mock_cache(text);
	struct fmlib_config config = cache->config;

	memset(config.shown, 0, sizeof(config.shown));
	flexmem_cache_destroy(cache);
	return config;
}

/* A refused value keeps the default, or the value set before. */
static void refused_values_change_nothing(void **state)
{
	static const char *const good[][2] = {
		{ "garbage_collection_threshold", "0.8" },
		{ "history_entries", "7" },
		{ "per_process_memory_fraction", "0.9" },
		{ "roundup_power2_divisions", "[256:1,512:2,>:8]" },
		{ "max_split_size_mb", "64" },
		{ "max_non_split_rounding_mb", "4" },
		{ "large_segment_size_mb", "12" },
		{ "expandable_segments", "True" },
		{ "backend", "direct" },
	};
	struct fmlib_config expected;
	struct fmlib_config found;
	char text[300];
	size_t good_one;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		expected = settings("");
		snprintf(text, sizeof(text), "%s:%s", refused[i].key,
			 refused[i].value);
		found = settings(text);
		assert_memory_equal(&found, &expected, sizeof(found));

		for (good_one = 0; strcmp(good[good_one][0], refused[i].key);
		     good_one++)
			assert_true(good_one + 1 < sizeof(good) / sizeof(good[0]));
		snprintf(text, sizeof(text), "%s:%s", refused[i].key,
			 good[good_one][1]);
		expected = settings(text);
		snprintf(text, sizeof(text), "%s:%s,%s:%s", refused[i].key,
			 good[good_one][1], refused[i].key, refused[i].value);
		found = settings(text);
		assert_memory_equal(&found, &expected, sizeof(found));
	}
}

static void good_values(void **state)
{
	static const char *const texts[] = {
		"garbage_collection_threshold:0", "backend:direct",
		"garbage_collection_threshold:0.0",
		"garbage_collection_threshold:1",
		"garbage_collection_threshold:1.000",
		"garbage_collection_threshold:0.123456789012345678901",
		"per_process_memory_fraction:0.001",
		"roundup_power2_divisions:1", "roundup_power2_divisions:64",
		"roundup_power2_divisions:[1:64,65536:2]",
		"roundup_power2_divisions:[>:4]", "max_split_size_mb:8388608",
		"roundup_power2_divisions:[ 256 : 1, 512:2 ,\t>: 4 ]",
		"roundup_power2_divisions:[256:0,>:4]",
		"expandable_segments:True\r\n",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		flexmem_cache_destroy(mock_cache(texts[i]));
	assert_string_equal(mock.log, "");
}

static void unknown_keys(void **state)
{
	struct flexmem_cache *cache;

	(void)state;
	setenv("PYTORCH_CUDA_ALLOC_CONF",
	       "pinned_use_cuda_host_register:True,max_split_size_mb:64,"
	       "lonely,:5,Backend:direct", 1);
	cache = mock_cache(NULL);
	assert_string_equal(mock.log,
		"PYTORCH_CUDA_ALLOC_CONF: unknown key 'pinned_use_cuda_host_register' with value 'True' is ignored\n"
		"PYTORCH_CUDA_ALLOC_CONF: unknown key 'lonely' with value '' is ignored\n"
		"PYTORCH_CUDA_ALLOC_CONF: unknown key '' with value '5' is ignored\n"
		"PYTORCH_CUDA_ALLOC_CONF: unknown key 'Backend' with value 'direct' is ignored\n");
	expect(cache, "max_split_size_mb", "64",
	       FLEXMEM_CACHE_SOURCE_PYTORCH_CUDA_ALLOC_CONF);
	flexmem_cache_destroy(cache);
}

/* Some keys have another name in PyTorch. flexmem accepts that name too. */
static void other_names(void **state)
{
	struct flexmem_cache *cache =
		mock_cache("release_lock_on_cudamalloc:True");

	(void)state;
	expect(cache, "release_lock_on_device_malloc", "True",
	       FLEXMEM_CACHE_SOURCE_CALLER);
	assert_true(cache->config.release_lock);
	assert_string_equal(mock.log, "");
	flexmem_cache_destroy(cache);
}

static void repeated_keys(void **state)
{
	struct flexmem_cache *cache =
		mock_cache("max_split_size_mb:64,max_split_size_mb:32,"
			   "max_split_size_mb:x");

	(void)state;
	expect(cache, "max_split_size_mb", "32", FLEXMEM_CACHE_SOURCE_CALLER);
	assert_string_equal(mock.log,
		"caller: 'max_split_size_mb' cannot be 'x'; the earlier value '32' is kept\n");
	flexmem_cache_destroy(cache);
}

/*
 * A value that is too long to be shown is refused. The log shortens the value.
 */
static void long_values(void **state)
{
	struct flexmem_cache *cache;
	char text[3000];
	size_t length;

	(void)state;
	length = (size_t)sprintf(text, "garbage_collection_threshold:0.");
	memset(text + length, '0', sizeof(text) - length - 1);
	text[sizeof(text) - 1] = '\0';
	cache = mock_cache(text);
	assert_int_equal(mock.warnings, 1);
	expect(cache, "garbage_collection_threshold", "off",
	       FLEXMEM_CACHE_SOURCE_DEFAULT);
	flexmem_cache_destroy(cache);
}

/* A new value is shown as it was given. A refused value changes nothing. */
static void settings_change(void **state)
{
	static const char *const good[][2] = {
		{ "garbage_collection_threshold", "0.25" },
		{ "garbage_collection_threshold", "0" },
		{ "garbage_collection_threshold", ".8" },
		{ "garbage_collection_threshold", "1e-3" },
		{ "garbage_collection_threshold", "off" },
		{ "max_split_size_mb", "32" },
		{ "max_split_size_mb", "off" },
		{ "max_non_split_rounding_mb", "3" },
		{ "large_segment_size_mb", "40" },
		{ "expandable_segments", "True" },
		{ "history_entries", "12" },
		{ "history_entries", "0" },
		{ "per_process_memory_fraction", "0.5" },
		{ "per_process_memory_fraction", "1" },
	};
	struct flexmem_cache *cache =
		mock_cache("max_split_size_mb:64,history_entries:3");
	struct fmlib_config before;
	size_t i;

	(void)state;
	expect(cache, "history_entries", "3", FLEXMEM_CACHE_SOURCE_CALLER);
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(flexmem_cache_set_setting(cache, good[i][0],
							   good[i][1]), 0);
		expect(cache, good[i][0], good[i][1],
		       FLEXMEM_CACHE_SOURCE_CALLER);
	}
	before = cache->config;
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_true(flexmem_cache_set_setting(cache, refused[i].key,
						      refused[i].value) < 0);
	assert_int_equal(flexmem_cache_set_setting(cache, "backend", "direct"),
			 -EPERM);
	assert_int_equal(flexmem_cache_set_setting(cache, "nonsense", "1"),
			 -ENOENT);
	assert_int_equal(flexmem_cache_set_setting(cache, "history_entries",
						   "-1"), -EINVAL);
	assert_int_equal(flexmem_cache_set_setting(cache, NULL, "1"), -EINVAL);
	assert_int_equal(flexmem_cache_set_setting(cache, "history_entries",
						   NULL), -EINVAL);
	assert_int_equal(flexmem_cache_set_setting(NULL, "history_entries",
						   "1"), -EINVAL);
	assert_int_equal(flexmem_cache_set_history(cache,
						   (size_t)UINT32_MAX + 1),
			 -EINVAL);
	assert_memory_equal(&before, &cache->config, sizeof(before));
	flexmem_cache_destroy(cache);
}

static void set(struct flexmem_cache *cache, const char *key, const char *value)
{
	assert_int_equal(flexmem_cache_set_setting(cache, key, value), 0);
}

/* All notations of a fraction have the value that they have in PyTorch. */
static void fractions_are_read(void **state)
{
	static const struct {
		const char *text;
		double value;
	} cases[] = {
		{ ".8", 0.8 }, { "1e-3", 0.001 }, { "5.e-1", 0.5 },
		{ ".25E+0", 0.25 }, { "0.00005e4", 0.5 }, { "10e-1", 1.0 },
		{ "1.", 1.0 }, { "0", 0.0 },
	};
	struct flexmem_cache *cache = mock_cache("");
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set(cache, "garbage_collection_threshold", cases[i].text);
		assert_true(fabs(cache->config.threshold - cases[i].value) <
			    1e-15);
	}
	flexmem_cache_destroy(cache);
}

/* The figures of all kinds must add up, and the cache must return all memory. */
static void frees_all(struct flexmem_cache *cache, void **tokens, size_t count)
{
	struct flexmem_cache_statistics f = figures(cache);
	size_t i;

	assert_int_equal(f.allocation[0].current, count);
	assert_int_equal(f.allocation[1].current + f.allocation[2].current,
			 count);
	assert_int_equal(f.allocated_bytes[1].current +
			 f.allocated_bytes[2].current,
			 f.allocated_bytes[0].current);
	assert_int_equal(f.inactive_split_bytes[1].current +
			 f.inactive_split_bytes[2].current,
			 f.inactive_split_bytes[0].current);
	for (i = 0; i < count; i++)
		give(cache, tokens[i]);
	f = figures(cache);
	assert_int_equal(f.allocated_bytes[0].current, 0);
	assert_int_equal(f.inactive_split_bytes[0].current, 0);
	assert_int_equal(f.inactive_split[0].current, 0);
	assert_int_equal(flexmem_cache_empty(cache, NULL), 0);
	assert_int_equal(figures(cache).reserved_bytes[0].current, 0);
	flexmem_cache_destroy(cache);
}

/* Segments stop to grow, and grow again. Each segment keeps its kind. */
static void growth_ends_and_begins(void **state)
{
	struct flexmem_cache *cache = mock_cache("expandable_segments:True");
	void *tokens[5];

	(void)state;
	tokens[0] = take(cache, 3 * MIB, 0);
	assert_true(mock.last_flags & FLEXMEM_CACHE_GROWABLE);
	set(cache, "expandable_segments", "False");
	tokens[1] = take(cache, 5 * MIB, 0);
	assert_int_equal(mock.grows, 0);
	assert_int_equal(mock.allocs, 2);
	assert_int_equal(mock.last_alloc, 20 * MIB);
	assert_false(mock.last_flags & FLEXMEM_CACHE_GROWABLE);
	/* The free end of the first segment serves this request. */
	tokens[2] = take(cache, 1000, 0);
	assert_int_equal(lookup(cache, tokens[2]).handle,
			 lookup(cache, tokens[0]).handle);
	/* Another stream gets a small segment. */
	tokens[3] = take(cache, 1000, 1);
	assert_int_equal(mock.last_alloc, 2 * MIB);
	set(cache, "expandable_segments", "True");
	tokens[4] = take(cache, 30 * MIB, 0);
	/* The first segment tries to grow, but has neighbours. */
	assert_int_equal(mock.grows, 1);
	assert_true(mock.last_flags & FLEXMEM_CACHE_GROWABLE);
	frees_all(cache, tokens, 5);
}

static void growth_begins_and_ends(void **state)
{
	struct flexmem_cache *cache = mock_cache("expandable_segments:False");
	void *tokens[7];

	(void)state;
	tokens[0] = take(cache, 1000, 0);
	tokens[1] = take(cache, 30 * MIB, 0);
	assert_int_equal(mock.allocs, 2);
	set(cache, "expandable_segments", "True");
	/* The small segment has room. */
	tokens[2] = take(cache, 1000, 0);
	assert_int_equal(mock.allocs, 2);
	tokens[3] = take(cache, 3 * MIB, 0);
	assert_int_equal(mock.allocs, 3);
	assert_true(mock.last_flags & FLEXMEM_CACHE_GROWABLE);
	tokens[4] = take(cache, 9 * MIB, 0);
	assert_int_equal(mock.grows, 1);
	give(cache, tokens[3]);
	tokens[3] = take(cache, 2 * MIB, 0);
	tokens[5] = take(cache, 1000, 1);
	set(cache, "expandable_segments", "False");
	tokens[6] = take(cache, 60 * MIB, 0);
	assert_int_equal(mock.grows, 1);
	assert_false(mock.last_flags & FLEXMEM_CACHE_GROWABLE);
	frees_all(cache, tokens, 7);
}

/* What is oversize follows the setting. */
static void splitting_changes(void **state)
{
	struct flexmem_cache *cache = mock_cache("");
	void *large = take(cache, 100 * MIB, 0);
	void *tokens[2];

	(void)state;
	assert_int_equal(figures(cache).oversize_allocations.current, 0);
	set(cache, "max_split_size_mb", "64");
	assert_int_equal(figures(cache).max_split_size, 64 * MIB);
	assert_int_equal(figures(cache).oversize_allocations.current, 1);
	assert_int_equal(figures(cache).oversize_segments.current, 1);
	give(cache, large);
	assert_int_equal(figures(cache).oversize_allocations.current, 0);
	tokens[0] = take(cache, 30 * MIB, 0);
	assert_int_equal(mock.allocs, 2);
	set(cache, "max_split_size_mb", "off");
	assert_int_equal(figures(cache).oversize_segments.current, 0);
	tokens[1] = take(cache, 40 * MIB, 0);
	assert_int_equal(mock.allocs, 2);
	frees_all(cache, tokens, 2);
}

/* A fraction is shown with the fewest digits that read back exactly. */
static void fractions_are_shown(void **state)
{
	static const struct {
		double fraction;
		const char *text;
	} cases[] = {
		{ 0.3, "0.3" }, { 0.25, "0.25" }, { 1.0, "1.0" },
		{ 0.000000001, "0.000000001" }, { 0.7999, "0.7999" },
		{ 0.0625, "0.0625" }, { 0.9999999, "0.9999999" },
	};
	struct flexmem_cache *cache = mock_cache("");
	uint64_t seed = 1;
	struct flexmem_cache_setting shown;
	double fraction;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(flexmem_cache_set_memory_fraction(
					 cache, cases[i].fraction), 0);
		expect(cache, "per_process_memory_fraction", cases[i].text,
		       FLEXMEM_CACHE_SOURCE_CALLER);
		assert_true(cache->config.fraction == cases[i].fraction);
	}
	for (i = 0; i < 1000; i++) {
		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		fraction = (double)(seed >> 11) / (double)(UINT64_C(1) << 53);
		assert_int_equal(flexmem_cache_set_memory_fraction(cache,
								   fraction),
				 0);
		shown = setting(cache, "per_process_memory_fraction");
		assert_true(fabs(strtod(shown.value, NULL) - fraction) < 2e-16);
		assert_true(fabs(cache->config.fraction - fraction) < 2e-16);
	}
	/* A value that rounds to 0 is refused. */
	assert_int_equal(flexmem_cache_set_memory_fraction(cache, 0.5), 0);
	assert_int_equal(flexmem_cache_set_memory_fraction(cache, 1e-18),
			 -EINVAL);
	expect(cache, "per_process_memory_fraction", "0.5",
	       FLEXMEM_CACHE_SOURCE_CALLER);
	flexmem_cache_destroy(cache);
}

static void source_names(void **state)
{
	(void)state;
	assert_string_equal(flexmem_cache_source_name(0), "default");
	assert_string_equal(flexmem_cache_source_name(1), "caller");
	assert_string_equal(flexmem_cache_source_name(2), "FLEXMEM_ALLOC_CONF");
	assert_string_equal(flexmem_cache_source_name(3),
			    "MINDTORCH_NPU_ALLOC_CONF");
	assert_string_equal(flexmem_cache_source_name(4),
			    "PYTORCH_CUDA_ALLOC_CONF");
	assert_string_equal(flexmem_cache_source_name(5), "PYTORCH_ALLOC_CONF");
	assert_string_equal(flexmem_cache_source_name(6), "unknown");
}

/*
 * A caller that gives a callback but no level gets warnings, and nothing less
 * important.
 */
static void warnings_come_by_default(void **state)
{
	struct flexmem_cache_options options = mock_options("nonsense:1");
	struct flexmem_cache *cache;

	(void)state;
	options.level = FLEXMEM_LOG_NONE;
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	give(cache, take(cache, 1000, 0));
	flexmem_cache_destroy(cache);
	assert_string_equal(mock.log,
		"caller: unknown key 'nonsense' with value '1' is ignored\n");
}

/* If the cache is created in spite of bad settings, @problem is not written. */
static void no_problem(void **state)
{
	struct flexmem_cache_options options =
		mock_options("nonsense:1,backend:x");
	struct flexmem_cache *cache;
	char problem[20] = "as it was";

	(void)state;
	options.problem = problem;
	options.problem_length = sizeof(problem);
	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), 0);
	flexmem_cache_destroy(cache);
	assert_int_equal(mock.warnings, 2);
	assert_string_equal(problem, "as it was");
}

static int create_strict(const char *configuration, char *problem,
			 size_t length)
{
	struct flexmem_cache_options options = mock_options(configuration);
	struct flexmem_cache *cache = NULL;
	int err;

	options.flags = FLEXMEM_CACHE_STRICT;
	options.problem = problem;
	options.problem_length = length;
	mock.log[0] = '\0';
	err = flexmem_cache_create(&cache, &options, sizeof(options));
	assert_true(err ? !cache : cache != NULL);
	flexmem_cache_destroy(cache);
	return err;
}

/*
 * With FLEXMEM_CACHE_STRICT a setting that would be ignored is an error. The
 * first such setting is reported.
 */
static void strict(void **state)
{
	char problem[200] = "as it was";
	char little[20];

	(void)state;
	assert_int_equal(create_strict("max_split_size_mb:64", problem,
				       sizeof(problem)), 0);
	assert_string_equal(problem, "as it was");
	assert_int_equal(create_strict("max_split_size_mb:6 4,nonsense:1",
				       problem, sizeof(problem)), -EINVAL);
	assert_string_equal(problem,
		"caller: 'max_split_size_mb' cannot be '6 4'");
	assert_string_equal(mock.log,
		"caller: 'max_split_size_mb' cannot be '6 4'\n"
		"caller: unknown key 'nonsense' with value '1'\n");
	/* The first bad value counts, even if a good value follows. */
	assert_int_equal(create_strict("backend:x,backend:native", problem,
				       sizeof(problem)), -EINVAL);
	assert_int_equal(create_strict("nonsense:1", NULL, 0), -EINVAL);
	assert_int_equal(create_strict("nonsense:1", little, sizeof(little)),
			 -EINVAL);
	assert_string_equal(little, "caller: unknown key");
	/* The environment's settings are checked in the same way. */
	setenv("PYTORCH_ALLOC_CONF", "nonsense:1", 1);
	assert_int_equal(create_strict(NULL, problem, sizeof(problem)),
			 -EINVAL);
	assert_string_equal(problem,
		"PYTORCH_ALLOC_CONF: unknown key 'nonsense' with value '1'");
	/* A valid setting that the provider cannot follow is not an error. */
	mock.no_growth = true;
	assert_int_equal(create_strict("expandable_segments:True", problem,
				       sizeof(problem)), 0);
	assert_int_equal(mock.warnings, 7);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(defaults),
		CACHE_TEST(precedence),
		CACHE_TEST(separators),
		CACHE_TEST(bad_values),
		CACHE_TEST(refused_values_change_nothing),
		CACHE_TEST(good_values),
		CACHE_TEST(unknown_keys),
		CACHE_TEST(other_names),
		CACHE_TEST(repeated_keys),
		CACHE_TEST(long_values),
		CACHE_TEST(settings_change),
		CACHE_TEST(fractions_are_read),
		CACHE_TEST(growth_ends_and_begins),
		CACHE_TEST(growth_begins_and_ends),
		CACHE_TEST(splitting_changes),
		CACHE_TEST(fractions_are_shown),
		CACHE_TEST(source_names),
		CACHE_TEST(warnings_come_by_default),
		CACHE_TEST(no_problem),
		CACHE_TEST(strict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
