// SPDX-License-Identifier: GPL-2.0
/* Texts of errors, limits and sizes, and the log. */
#include "test.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "human.h"

static const char *human(uint64_t bytes)
{
	static char text[FMLIB_HUMAN_MAX];

	return fmlib_human(bytes, text);
}

static void sizes(void **state)
{
	(void)state;
	assert_string_equal(human(0), "0 B");
	assert_string_equal(human(128), "128 B");
	assert_string_equal(human(1023), "1023 B");
	assert_string_equal(human(1024), "1.0 KiB");
	assert_string_equal(human(1536), "1.5 KiB");
	assert_string_equal(human(MIB - 1), "1.0 MiB");
	assert_string_equal(human(MIB), "1.0 MiB");
	assert_string_equal(human(12 * GIB), "12.0 GiB");
	assert_string_equal(human(12 * GIB - 128), "12.0 GiB");
	assert_string_equal(human(1023 * GIB), "1023.0 GiB");
	assert_string_equal(human(1024 * GIB), "1.0 TiB");
	assert_string_equal(human(UINT64_MAX), "16.0 EiB");
}

static const char *text_of(int error, const struct flexmem_failure *failure)
{
	static char text[512];

	memset(text, 0xaa, sizeof(text));
	assert_int_equal(flexmem_error_text(error, failure, sizeof(*failure),
					    text, sizeof(text)), 0);
	return text;
}

static struct flexmem_failure example(uint32_t limit)
{
	return (struct flexmem_failure){
		.limit = limit,
		.regions = 8,
		.slots = 8,
		.max_regions = 12,
		.max_handles = 1000,
		.asked = 12 * GIB,
		.total_free = 31 * GIB / 10,
		.largest_free = 2 * GIB,
		.max_region = 12 * GIB,
		.quota = 4 * GIB,
		.quota_used = 3 * GIB,
		.quota_left = FLEXMEM_UNLIMITED,
	};
}

#define TAIL "; asked 12.0 GiB, free 3.1 GiB in 8 regions, largest piece 2.0 GiB"

static void limits(void **state)
{
	static const struct {
		uint32_t limit;
		const char *name;
		const char *text;
	} cases[] = {
		{ FLEXMEM_LIMIT_CAPACITY, "capacity",
		  "the device has none left for a region that is large enough" },
		{ FLEXMEM_LIMIT_SLOTS, "slots", "no slot left (8 of 8 used)" },
		{ FLEXMEM_LIMIT_MAX_REGIONS, "max_regions",
		  "no further region allowed (max_regions is 12)" },
		{ FLEXMEM_LIMIT_FRAGMENTATION, "fragmentation",
		  "fragmentation (enough is free, but in pieces)" },
		{ FLEXMEM_LIMIT_REGION_SIZE, "region_size",
		  "no region can be that large (at most 12.0 GiB: see fallback_sizes)" },
		{ FLEXMEM_LIMIT_HANDLES, "handles",
		  "too many live allocations (at most 1000 for one open file)" },
		{ FLEXMEM_LIMIT_CGROUP_REGIONS, "cgroup_regions",
		  "cgroup limit (3.0 GiB of 4.0 GiB used: see sudo flexmem owners)" },
		{ FLEXMEM_LIMIT_CGROUP, "cgroup_limit",
		  "cgroup limit (3.0 GiB of 4.0 GiB used: see sudo flexmem owners)" },
		{ FLEXMEM_LIMIT_ALIGNMENT, "alignment",
		  "alignment (it suits no piece that was tried)" },
		{ FLEXMEM_LIMIT_RESERVED, "reserved",
		  "the region with room is reserved for another cgroup" },
		{ 4711, "unknown", "limit 4711 of the driver" },
	};
	struct flexmem_failure failure;
	char expected[256];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		failure = example(cases[i].limit);
		snprintf(expected, sizeof(expected),
			 "out of device memory: %s" TAIL, cases[i].text);
		assert_string_equal(text_of(-ENOMEM, &failure), expected);
		assert_string_equal(flexmem_limit_name(cases[i].limit),
				    cases[i].name);
	}
	assert_string_equal(flexmem_limit_name(FLEXMEM_LIMIT_NONE), "none");
}

/* The memory is fragmented, and no further region can be acquired. */
static void region_limits(void **state)
{
	static const struct {
		uint32_t limit;
		const char *text;
	} cases[] = {
		{ FLEXMEM_LIMIT_CAPACITY,
		  "no memory for a region that is large enough" },
		{ FLEXMEM_LIMIT_SLOTS, "no slot for another region" },
		{ FLEXMEM_LIMIT_MAX_REGIONS,
		  "max_regions allows no more" },
	};
	struct flexmem_failure failure;
	char expected[256];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		failure = example(FLEXMEM_LIMIT_FRAGMENTATION);
		failure.region_limit = cases[i].limit;
		snprintf(expected, sizeof(expected),
			 "out of device memory: fragmentation (enough is free, but in pieces; %s)"
			 TAIL, cases[i].text);
		assert_string_equal(text_of(-ENOMEM, &failure), expected);
		failure.limit = FLEXMEM_LIMIT_ALIGNMENT;
		snprintf(expected, sizeof(expected),
			 "out of device memory: alignment (it suits no piece that was tried; %s)"
			 TAIL, cases[i].text);
		assert_string_equal(text_of(-ENOMEM, &failure), expected);
	}
}

static void slots_for_programs(void **state)
{
	struct flexmem_failure failure = example(FLEXMEM_LIMIT_SLOTS);

	(void)state;
	failure.program_slots = 2;
	failure.regions = 7;
	assert_non_null(strstr(text_of(-ENOMEM, &failure),
			       "(7 of 8 used, 2 kept for programs)"));
	failure.flags = FLEXMEM_PROGRAM;
	assert_non_null(strstr(text_of(-ENOMEM, &failure),
			       "no slot for programs left (2 of the 8 slots are set aside)"));
}

/* The text says how much memory of its own the process could free. */
static void own_memory(void **state)
{
	struct flexmem_failure failure = example(FLEXMEM_LIMIT_CAPACITY);

	(void)state;
	failure.own_used = 5 * GIB;
	assert_string_equal(text_of(-ENOMEM, &failure),
			    "out of device memory: the device has none left for a region that is large enough"
			    TAIL "; own 5.0 GiB can be freed");
	failure.leaving = 3 * GIB;
	assert_string_equal(text_of(-ENOMEM, &failure),
			    "out of device memory: the device has none left for a region that is large enough"
			    TAIL "; 3.0 GiB leaving; own 5.0 GiB can be freed");
}

static void quotas(void **state)
{
	struct flexmem_failure failure = example(FLEXMEM_LIMIT_CGROUP_REGIONS);

	(void)state;
	failure.quota = 4;
	failure.quota_used = 3;
	failure.charge = FLEXMEM_CHARGE_REGIONS;
	assert_non_null(strstr(text_of(-ENOMEM, &failure),
			       ": cgroup limit (3 of 4 regions used: see sudo flexmem owners);"));
	failure.quota = FLEXMEM_UNLIMITED;
	assert_non_null(strstr(text_of(-ENOMEM, &failure),
			       ": cgroup limit of regions;"));
	failure = example(FLEXMEM_LIMIT_CGROUP);
	failure.quota = 4;
	failure.quota_used = 3;
	failure.charge = FLEXMEM_CHARGE_HANDLES;
	assert_non_null(strstr(text_of(-ENOMEM, &failure),
			       "(3 of 4 allocations used: see sudo flexmem owners);"));
	failure.quota = FLEXMEM_UNLIMITED;
	assert_non_null(strstr(text_of(-ENOMEM, &failure),
			       ": cgroup limit;"));
}

/*
 * An older, shorter struct has no figures of the limit, so the text leaves them
 * out.
 */
static void older_failure(void **state)
{
	struct flexmem_failure failure = example(FLEXMEM_LIMIT_CGROUP);
	char text[256];

	(void)state;
	failure.own_used = 5 * GIB;
	assert_int_equal(flexmem_error_text(-ENOMEM, &failure,
					    offsetof(struct flexmem_failure,
						     own_used),
					    text, sizeof(text)), 0);
	assert_string_equal(text, "out of device memory: cgroup limit"
			    TAIL);
}

/* Two sizes that differ slightly are not printed as equal. */
static void close_figures(void **state)
{
	struct flexmem_failure failure = example(FLEXMEM_LIMIT_SLOTS);

	(void)state;
	failure.regions = 1;
	failure.largest_free = 12 * GIB - 128;
	failure.total_free = failure.largest_free;
	assert_string_equal(text_of(-ENOMEM, &failure),
			    "out of device memory: no slot left (1 of 8 used); asked 12884901888 B, free 12.0 GiB in 1 region, largest piece 12884901760 B");
}

static void other_errors(void **state)
{
	struct flexmem_failure none = { 0 };

	(void)state;
	assert_string_equal(text_of(0, NULL), "success");
	assert_string_equal(text_of(-ENOMEM, NULL), "out of host memory");
	assert_string_equal(text_of(-ENOMEM, &none), "out of host memory");
	assert_string_equal(text_of(-ENOENT, NULL),
			    "no such allocation, range or binding of this open file");
	assert_string_equal(text_of(-EINVAL, NULL),
			    "an argument is out of its range");
	assert_string_equal(text_of(-EINVAL, &none),
			    "an argument is out of its range");
	assert_string_equal(text_of(-4000, NULL), "error 4000");
	assert_string_equal(text_of(INT_MIN, NULL), "error 2147483648");
}

/* The text of EINVAL names the wrong value if the library knows it. */
static void invalid_requests(void **state)
{
	struct flexmem_failure failure = {
		.limit = FLEXMEM_LIMIT_NO_LENGTH,
		.asked = 3 * GIB,
	};

	(void)state;
	assert_string_equal(text_of(-EINVAL, &failure),
			    "invalid request: the length is 0");
	failure.limit = FLEXMEM_LIMIT_ALIGNMENT_POWER;
	assert_string_equal(text_of(-EINVAL, &failure),
			    "invalid request: the alignment of 3221225472 bytes is not a power of two");
	failure.limit = FLEXMEM_LIMIT_ALIGNMENT_MAX;
	assert_string_equal(text_of(-EINVAL, &failure),
			    "invalid request: the alignment of 3.0 GiB is above the largest of this device");
	assert_string_equal(flexmem_limit_name(100), "no_length");
	assert_string_equal(flexmem_limit_name(101), "alignment_power");
	assert_string_equal(flexmem_limit_name(102), "alignment_max");
	failure.limit = FLEXMEM_LIMIT_DOMAINS;
	failure.asked = 0x30;
	assert_string_equal(text_of(-EINVAL, &failure),
			    "invalid request: the device does not have domains 0x30, or they are too few");
	assert_string_equal(flexmem_limit_name(103), "domains");
	assert_string_equal(flexmem_limit_name(104), "unknown");
}

/* Each errno of the header has a text of its own. */
static void documented_errors(void **state)
{
	static const int errors[] = {
		ENOTTY, EFAULT, EINVAL, E2BIG, EOPNOTSUPP, ENOENT, ENOMEM,
		EMSGSIZE, EBUSY, EPERM, EACCES, ENODEV, ETIMEDOUT, EIO, EINTR,
		EAGAIN, ECANCELED,
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		assert_null(strstr(text_of(-errors[i], NULL), "error "));
}

/* A module of another version is named where it may be the cause. */
static void versions(void **state)
{
	static const char *const same[] = { NULL, FLEXMEM_VERSION, FLEXMEM_VERSION "\n", FLEXMEM_VERSION "9" };
	static const char *const others[] = { "9" FLEXMEM_VERSION "\n", "0." FLEXMEM_VERSION, "x", "0.", "" };
	static const int errors[] = { ENOTTY, E2BIG, EOPNOTSUPP };
	char *other, wanted[128];
	size_t i, j;

	(void)state;
	for (j = 0; j < sizeof(errors) / sizeof(errors[0]); j++) {
		fake_reset();
		for (i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
			fake.version = same[i];
			assert_null(strstr(text_of(-errors[j], NULL), "module"));
		}
		for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
			fake.version = others[i];
			other = strdup(*others[i] ? others[i] : "without a version");
			other[strcspn(other, "\n")] = '\0';
			snprintf(wanted, sizeof(wanted),
				 " (module %s, library " FLEXMEM_VERSION ": reboot or reload flexmem.ko)",
				 other);
			assert_non_null(strstr(text_of(-errors[j], NULL), wanted));
			assert_null(strstr(text_of(-EIO, NULL), "module"));
			free(other);
		}
		fake.no_module = true;
		assert_null(strstr(text_of(-errors[j], NULL), "module"));
	}
	fake_reset();
}

static void short_buffers(void **state)
{
	struct flexmem_failure failure = example(FLEXMEM_LIMIT_SLOTS);
	char text[8] = "xxxxxxx";

	(void)state;
	assert_int_equal(flexmem_error_text(-ENOMEM, &failure, sizeof(failure),
					    text, sizeof(text)), -EMSGSIZE);
	assert_string_equal(text, "out of ");
	assert_int_equal(flexmem_error_text(0, NULL, 0, text, 8), 0);
	assert_int_equal(flexmem_error_text(0, NULL, 0, text, 7), -EMSGSIZE);
	assert_string_equal(text, "succ" "es");
	assert_int_equal(flexmem_error_text(0, NULL, 0, NULL, 0), -EMSGSIZE);
	assert_int_equal(flexmem_error_text(0, NULL, 0, NULL, 1), -EINVAL);
	assert_int_equal(flexmem_error_text(1, NULL, 0, text, 8), -EINVAL);
	assert_int_equal(flexmem_error_text(-ENOMEM, &failure, 8, text, 8),
			 -EINVAL);
}

/* ---- paths of cgroups ---- */

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_setmntent(const char *path, const char *mode);

/* What /proc/self has; NULL: nothing. */
static const char *own_cgroup;
static char mounts[64];

static FILE *open_text(const char *text)
{
	return text ? fmemopen((void *)(uintptr_t)text, strlen(text), "r") :
		      NULL;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (!strcmp(path, "/proc/self/cgroup"))
		return open_text(own_cgroup);
	return __real_fopen(path, mode);
}

FILE *__wrap_setmntent(const char *path, const char *mode)
{
	(void)path;
	(void)mode;
	return open_text(*mounts ? mounts : NULL);
}

static char cgroups[] = "/tmp/flexmem-text-XXXXXX";

/* Makes a cgroup, or the root. Returns its number. */
static uint64_t make_cgroup(const char *path)
{
	char whole[512];
	struct stat state;

	snprintf(whole, sizeof(whole), "%s%s", cgroups, path);
	if (*path)
		assert_int_equal(mkdir(whole, 0700), 0);
	assert_int_equal(stat(whole, &state), 0);
	return state.st_ino;
}

static void remove_cgroup(const char *path)
{
	char whole[512];

	snprintf(whole, sizeof(whole), "%s%s", cgroups, path);
	assert_int_equal(rmdir(whole), 0);
}

static void make_root(void)
{
	strcpy(cgroups + sizeof(cgroups) - 7, "XXXXXX");
	assert_non_null(mkdtemp(cgroups));
	snprintf(mounts, sizeof(mounts), "none %s cgroup2 rw 0 0\n", cgroups);
}

static void expect_path(const char *own, uint64_t id, const char *path)
{
	struct flexmem_failure failure = example(FLEXMEM_LIMIT_CGROUP);
	char expected[512];

	own_cgroup = own;
	failure.quota_cgroup = id;
	snprintf(expected, sizeof(expected),
		 ": cgroup limit%s%s (3.0 GiB of 4.0 GiB used: see sudo flexmem owners);",
		 *path ? " of " : "", path);
	if (!strstr(text_of(-ENOMEM, &failure), expected))
		fail_msg("no '%s' in '%s'", expected,
			 text_of(-ENOMEM, &failure));
	own_cgroup = NULL;
}

/* The cgroup with the limit has the path that the caller sees. */
static void cgroup_paths(void **state)
{
	uint64_t root, a, b, odd;

	(void)state;
	make_root();
	root = make_cgroup("");
	a = make_cgroup("/a");
	b = make_cgroup("/a/b");
	odd = make_cgroup("/a/o\033d");
	expect_path("0::/a/b\n", b, "/a/b");
	expect_path("0::/a/b\n", a, "/a");
	expect_path("4:memory:/x\n0::/a/b\n", root, "/");
	expect_path("0::/\n", root, "/");
	expect_path("0::/a/o\033d\n", odd, "/a/o\\x1bd");
	/* It is none of those above the caller, or none that it can see. */
	expect_path("0::/a\n", b, "");
	expect_path("0::/a/b\n", 0, "");
	expect_path("0::/../a\n", root, "");
	expect_path("0::/..\n", root, "");
	expect_path("4:memory:/a\n", a, "");
	expect_path("0::/a", a, "");
	expect_path(NULL, a, "");
	*mounts = '\0';
	expect_path("0::/a\n", a, "");
	remove_cgroup("/a/o\033d");
	remove_cgroup("/a/b");
	remove_cgroup("/a");
	remove_cgroup("");
}

/* A path that is too long is left out. */
static void long_path(void **state)
{
	enum { MOST = 187 };
	char name[MOST + 2] = "/";
	char own[MOST + 8];
	uint64_t id;
	int length;

	(void)state;
	make_root();
	for (length = MOST; length < MOST + 2; length++) {
		memset(name + 1, 'x', (size_t)length - 1);
		id = make_cgroup(name);
		snprintf(own, sizeof(own), "0::%s\n", name);
		expect_path(own, id, length == MOST ? name : "");
		remove_cgroup(name);
	}
	remove_cgroup("");
	*mounts = '\0';
}

static void longest_text_fits(void **state)
{
	struct flexmem_failure failure;
	char name[188] = "/";
	char own[200];
	uint64_t id;
	uint32_t limit;

	(void)state;
	make_root();
	memset(name + 1, 'x', sizeof(name) - 2);
	id = make_cgroup(name);
	snprintf(own, sizeof(own), "0::%s\n", name);
	own_cgroup = own;
	for (limit = 1; limit < 12; limit++) {
		memset(&failure, 0xff, sizeof(failure));
		failure.quota_cgroup = id;
		failure.limit = limit;
		failure.largest_free = UINT64_MAX - 1;
		failure.total_free = 1023 * GIB;
		failure.own_used = 1023 * GIB;
		failure.leaving = 1023 * GIB;
		failure.quota = UINT64_MAX - 1;
		failure.charge = FLEXMEM_CHARGE_HANDLES;
		/*
		 * The longest text about the reason why no further region can
		 * be acquired.
		 */
		failure.region_limit = FLEXMEM_LIMIT_CAPACITY;
		failure.flags = 0;
		text_of(-ENOMEM, &failure);
		failure.flags = FLEXMEM_PROGRAM;
		text_of(-ENOMEM, &failure);
	}
	/* The text is complete. */
	failure.limit = FLEXMEM_LIMIT_CGROUP;
	assert_non_null(strstr(text_of(-ENOMEM, &failure),
			       " allocations used: see sudo flexmem owners); asked "));
	assert_non_null(strstr(text_of(-ENOMEM, &failure),
			       "; 1023.0 GiB leaving; own 1023.0 GiB can be freed"));
	assert_non_null(strstr(text_of(-ENOMEM, &failure), name));
	own_cgroup = NULL;
	*mounts = '\0';
	remove_cgroup(name);
	remove_cgroup("");
}

/* ---- the log ---- */

static char log_text[16384];

static void collect(enum flexmem_log_level level, const char *text, void *user)
{
	assert_int_equal(level, FLEXMEM_LOG_DEBUG);
	assert_ptr_equal(user, log_text);
	assert_null(strchr(text, '\n'));
	strncat(log_text, text, sizeof(log_text) - strlen(log_text) - 2);
	strcat(log_text, "\n");
}

static void expect_log(const char *text)
{
	assert_string_equal(log_text, text);
	log_text[0] = '\0';
}

static struct flexmem_device *open_logged(void)
{
	struct flexmem_device *device = open_device();

	log_text[0] = '\0';
	assert_int_equal(flexmem_device_set_log(device, FLEXMEM_LOG_DEBUG,
						collect, log_text), 0);
	expect_log(fake.nodes[0].mode == FLEXMEM_MODE_PF ?
			   "uses /dev/flexmem0: PF of fake, 8 slots\n" :
			   "uses /dev/flexmem0: VF of fake, 8 slots\n");
	return device;
}

static void log_alloc_and_free(void **state)
{
	struct flexmem_device *device = open_logged();
	struct flexmem_allocated a[3];
	size_t i;

	(void)state;
	flexmem_device_alloc(device, 1000, 256,
			     FLEXMEM_PROGRAM | FLEXMEM_ZEROED, &a[0],
			     sizeof(a[0]));
	expect_log("acquired region 0 in slot 0: size 12884901888 (12.0 GiB), fallback level 0\n"
		   "alloc handle 1: region 0 offset 0 size 1024 (asked 1000, alignment 256, program, zeroed)\n"
		   "region 0: 12.0 GiB of 12.0 GiB free in 1 blocks, largest 12.0 GiB; 1 blocks used\n");
	for (i = 1; i < 3; i++)
		flexmem_device_alloc(device, 128, 0, 0, &a[i], sizeof(a[i]));
	log_text[0] = '\0';

	flexmem_device_free(device, a[0].handle);
	expect_log("free handle 1: region 0 offset 0 size 1024, no free neighbour\n"
		   "region 0: 12.0 GiB of 12.0 GiB free in 2 blocks, largest 12.0 GiB; 2 blocks used\n");
	flexmem_device_free_address(device, a[2].address);
	expect_log("free by address: region 0 offset 0x480 size 128, merged with one free neighbour\n"
		   "region 0: 12.0 GiB of 12.0 GiB free in 2 blocks, largest 12.0 GiB; 1 blocks used\n");
	flexmem_device_free(device, a[1].handle);
	expect_log("free handle 2: region 0 offset 0x400 size 128, merged with two free neighbours\n"
		   "region 0: 12.0 GiB of 12.0 GiB free in 1 blocks, largest 12.0 GiB; 0 blocks used\n");
	flexmem_device_close(device);
	expect_log("close /dev/flexmem0: 0 allocations of 0 bytes go back\n");
}

static void log_fallback_level(void **state)
{
	struct flexmem_device *device;
	struct flexmem_allocated a;

	(void)state;
	fake.nodes[0].mode = FLEXMEM_MODE_PF;
	fake.capacity = 5 * GIB;
	device = open_logged();
	flexmem_device_alloc(device, 1, 0, 0, &a, sizeof(a));
	assert_non_null(strstr(log_text,
			       "acquired region 0x2000000000 in slot 0: size 4294967296 (4.0 GiB), fallback level 2\n"));
	flexmem_device_close(device);
}

static void log_failures(void **state)
{
	struct flexmem_device *device = open_logged();
	struct flexmem_allocated a;

	(void)state;
	flexmem_device_alloc(device, 13 * GIB, 0, 0, &a, sizeof(a));
	expect_log("alloc of 13958643712 failed: out of device memory: no region can be that large (at most 12.0 GiB: see fallback_sizes); asked 13.0 GiB, free 0 B in 0 regions, largest piece 0 B\n");
	flexmem_device_free(device, 5);
	expect_log("free handle 5 failed: no such allocation, range or binding of this open file\n");
	flexmem_device_close(device);
}

static void log_batches_and_trim(void **state)
{
	struct flexmem_alloc_request requests[2] = { { .length = 1 },
					       { .length = 0 } };
	struct flexmem_device *device = open_logged();
	struct flexmem_allocated results[2];
	uint32_t handle;
	int error;

	(void)state;
	flexmem_device_alloc_batch(device, requests, sizeof(requests[0]),
				   results, sizeof(results[0]), 2);
	expect_log("acquired region 0 in slot 0: size 12884901888 (12.0 GiB), fallback level 0\n"
		   "alloc handle 1: region 0 offset 0 size 128 (asked 1, alignment 0)\n"
		   "alloc of 0 failed: invalid request: the length is 0\n"
		   "region 0: 12.0 GiB of 12.0 GiB free in 1 blocks, largest 12.0 GiB; 1 blocks used\n");
	handle = results[0].handle;
	flexmem_device_free_batch(device, &handle, &error, 1);
	assert_non_null(strstr(log_text, "free handle 1: region 0 offset 0"));
	log_text[0] = '\0';
	flexmem_device_trim(device, 0, NULL, NULL);
	expect_log("trim: 1 regions of 12884901888 bytes given back\n");
	flexmem_device_close(device);
}

/*
 * The log of a failure reads the device's tables. If the log cannot read them,
 * the call itself still succeeds.
 */
static void log_without_tables(void **state)
{
	struct flexmem_device *device = open_logged();
	struct flexmem_allocated a;

	(void)state;
	inject(FLEXMEM_CMD_SNAPSHOT, 1, EIO);
	assert_int_equal(flexmem_device_alloc(device, 1, 0, 0, &a, sizeof(a)),
			 0);
	inject(FLEXMEM_CMD_LOOKUP, 1, EIO);
	assert_int_equal(flexmem_device_free(device, a.handle), 0);
	assert_non_null(strstr(log_text, "free handle 1:"));
	flexmem_device_close(device);
}

static void log_levels(void **state)
{
	struct flexmem_device *device = open_logged();
	struct flexmem_allocated a;

	(void)state;
	assert_int_equal(flexmem_device_set_log(device, 3, collect, NULL),
			 -EINVAL);
	assert_int_equal(flexmem_device_set_log(device, FLEXMEM_LOG_WARNING,
						collect, log_text), 0);
	flexmem_device_alloc(device, 1, 0, 0, &a, sizeof(a));
	expect_log("");
	assert_int_equal(flexmem_device_set_log(device, FLEXMEM_LOG_DEBUG,
						NULL, NULL), 0);
	flexmem_device_alloc(device, 1, 0, 0, &a, sizeof(a));
	assert_int_equal(fake.calls[FLEXMEM_CMD_SNAPSHOT], 0);
	flexmem_device_close(device);
}

/*
 * Captures what the library prints to stderr during an open, an alloc and a
 * close.
 */
static void capture(char *text, size_t size)
{
	struct flexmem_device *device;
	struct flexmem_allocated a;
	int ends[2];
	ssize_t got;
	int saved;

	assert_int_equal(pipe(ends), 0);
	saved = dup(STDERR_FILENO);
	dup2(ends[1], STDERR_FILENO);
	device = open_device();
	flexmem_device_alloc(device, 13 * GIB, 0, 0, &a, sizeof(a));
	flexmem_device_alloc(device, 1, 0, 0, &a, sizeof(a));
	flexmem_device_close(device);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(ends[1]);
	got = read(ends[0], text, size - 1);
	text[got > 0 ? got : 0] = '\0';
	close(ends[0]);
}

static void environment(void **state)
{
	char text[4096];
	char both[4096];

	(void)state;
	capture(text, sizeof(text));
	assert_string_equal(text, "");
	setenv("FLEXMEM_DEBUG", "0", 1);
	capture(text, sizeof(text));
	assert_string_equal(text, "");
	setenv("FLEXMEM_DEBUG", "1", 1);
	capture(text, sizeof(text));
	assert_non_null(strstr(text, "flexmem: uses /dev/flexmem0: VF of fake, 8 slots\n"));
	assert_non_null(strstr(text, "flexmem: alloc handle 1: region 0 offset 0"));
	unsetenv("FLEXMEM_DEBUG");
	setenv("TORCH_SPYRE_ALLOC_DEBUG", "1", 1);
	capture(text, sizeof(text));
	assert_non_null(strstr(text, "flexmem: alloc handle 1: region 0 offset 0"));
	assert_non_null(strstr(text, "1 allocations of 128 bytes go back\n"));
	/*
	 * TORCH_SPYRE_DEBUG is a variable of the framework. It changes no
	 * output of the library.
	 */
	setenv("TORCH_SPYRE_DEBUG", "1", 1);
	capture(both, sizeof(both));
	assert_string_equal(both, text);
	unsetenv("TORCH_SPYRE_ALLOC_DEBUG");
	capture(both, sizeof(both));
	assert_string_equal(both, "");
	unsetenv("TORCH_SPYRE_DEBUG");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(sizes),
		TEST(limits),
		TEST(region_limits),
		TEST(slots_for_programs),
		TEST(own_memory),
		TEST(quotas),
		TEST(older_failure),
		TEST(close_figures),
		TEST(other_errors),
		TEST(invalid_requests),
		TEST(documented_errors),
		TEST(versions),
		TEST(short_buffers),
		TEST(cgroup_paths),
		TEST(long_path),
		TEST(longest_text_fits),
		TEST(log_alloc_and_free),
		TEST(log_fallback_level),
		TEST(log_failures),
		TEST(log_batches_and_trim),
		TEST(log_without_tables),
		TEST(log_levels),
		TEST(environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
