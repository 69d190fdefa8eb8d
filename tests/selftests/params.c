// SPDX-License-Identifier: GPL-2.0
/*
 * Module parameters. With a bad value the load fails with EINVAL, and a message
 * names the parameter. A good value can be read back, and INFO shows it.
 */
#include "flexmem_test.h"

FIXTURE(params) {
	int kmsg;
};

FIXTURE_SETUP(params)
{
	ASSERT_EQ(0, fm_unload());
	self->kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->kmsg);
	lseek(self->kmsg, 0, SEEK_END);
}

FIXTURE_TEARDOWN(params)
{
	close(self->kmsg);
	EXPECT_EQ(0, fm_unload());
}

/*
 * Whether the log has a new message of the module that contains this word. The
 * kernel's own message "`x' invalid for parameter `y'" does not count.
 */
static bool said(int kmsg, const char *module, const char *word)
{
	char record[8192], prefix[64], *text;
	bool found = false;
	ssize_t n;

	snprintf(prefix, sizeof(prefix), "%s: ", module);
	while ((n = read(kmsg, record, sizeof(record) - 1)) > 0 ||
	       (n < 0 && errno == EPIPE)) {
		record[n < 0 ? 0 : n] = '\0';
		text = strchr(record, ';');
		if (text && !strncmp(text + 1, prefix, strlen(prefix)) &&
		    strstr(text, word) && !strstr(text, "invalid for parameter"))
			found = true;
	}
	return found;
}

static const char *value(const char *module, const char *name)
{
	static char text[128];
	char path[128];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return "not there";
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static const struct {
	const char *name;
	const char *values[12];
} bad[] = {
	{ "strategy", { "", "worst_fit", "first", "first_fit,best_fit", "0",
			"FIRST_FIT" } },
	{ "order", { "", "round_robin", "1", "load_balance " } },
	{ "acquire", { "", "eager", "lazy,prealloc" } },
	{ "fallback_sizes", { "", "0", "12G,,4G", "12G,", ",12G", "12X", "x",
			      "-4G", "100", "4G,0", "12G;8G",
			      "1G,1G,1G,1G,1G,1G,1G,1G,1G" } },
	{ "max_regions", { "", "0", "65", "-1", "12x", "4294967296", "1000000" } },
	{ "program_slots", { "", "-1", "12", "64", "x", "4294967296" } },
	{ "default_depth", { "", "0", "-1", "x", "33" } },
	{ "pf_open", { "", "1", "y", "any", "admin,mode" } },
}, bad_sim[] = {
	{ "memory", { "", "0", "1", "-1G", "128X", "65T", "G" } },
	{ "num_vfs", { "", "-1", "9", "x", "4294967297" } },
	{ "vf_capacity", { "", "0", "1", "129G", "x" } },
	{ "slots", { "", "0", "7", "17", "-8", "x" } },
	{ "job_timeout_ms", { "", "0", "-1", "x", "86400001" } },
	{ "timeout_ms", { "", "0", "-1", "x", "4294967296" } },
	{ "domains", { "", "tcm:1M", "hbm", "hbm*0:2M", "hbm*33:2M", "hbm:1M",
		       "hbm:2M,", "hbm:2M:reserved=2M", "hbm:2M;tcm:1M" } },
	{ "space", { "", "64K", "12K:4G:64G", "64K:0:64G", "64K:4G:4K" } },
};

TEST_F(params, bad_values_of_flexmem_are_einval_with_a_message)
{
	unsigned int i, v;
	char arg[128];

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		for (v = 0; v < 12 && bad[i].values[v]; v++) {
			snprintf(arg, sizeof(arg), "%s=\"%s\"", bad[i].name,
				 bad[i].values[v]);
			EXPECT_EQ(EINVAL, fm_insmod("flexmem", arg))
				TH_LOG("%s", arg);
			EXPECT_TRUE(said(self->kmsg, "flexmem", bad[i].name))
				TH_LOG("no message for %s", arg);
			ASSERT_EQ(0, fm_rmmod("flexmem"));
		}
}

TEST_F(params, bad_values_of_the_simulator_are_einval_with_a_message)
{
	unsigned int i, v;
	char arg[128];

	ASSERT_EQ(0, fm_insmod("flexmem", ""));
	for (i = 0; i < ARRAY_SIZE(bad_sim); i++)
		for (v = 0; v < 12 && bad_sim[i].values[v]; v++) {
			snprintf(arg, sizeof(arg), "%s=\"%s\"", bad_sim[i].name,
				 bad_sim[i].values[v]);
			EXPECT_EQ(EINVAL, fm_insmod("flexmem_sim", arg))
				TH_LOG("%s", arg);
			EXPECT_TRUE(said(self->kmsg, "flexmem_sim",
					 bad_sim[i].name))
				TH_LOG("no message for %s", arg);
			ASSERT_EQ(0, fm_rmmod("flexmem_sim"));
		}
}

/*
 * The message about the parameter domains says where in its text the error is.
 */
TEST_F(params, domains_name_the_place_of_an_error)
{
	ASSERT_EQ(0, fm_insmod("flexmem", ""));
	EXPECT_EQ(EINVAL, fm_insmod("flexmem_sim", "domains=hbm:2M,tcm:100K"));
	EXPECT_TRUE(said(self->kmsg, "flexmem_sim",
			 "domains=hbm:2M,tcm:100K: at character 12: a size is expected: a multiple of 64K"));
}

/* The message about the parameter space does the same. */
TEST_F(params, space_names_the_place_of_an_error)
{
	ASSERT_EQ(0, fm_insmod("flexmem", ""));
	EXPECT_EQ(EINVAL, fm_insmod("flexmem_sim", "space=64K:4K:64G"));
	EXPECT_TRUE(said(self->kmsg, "flexmem_sim",
			 "space=64K:4K:64G: at character 5: a start is expected: a multiple of the page size"));
}

TEST_F(params, space_has_no_page_above_the_granule)
{
	ASSERT_EQ(0, fm_insmod("flexmem", ""));
	EXPECT_EQ(EINVAL, fm_insmod("flexmem_sim",
				    "domains=hbm:2M,tcm:64K space=128K:4G:64G"));
	EXPECT_TRUE(said(self->kmsg, "flexmem_sim", "space=: a page must not"));
}

TEST_F(params, domains_exclude_other_sizes)
{
	ASSERT_EQ(0, fm_insmod("flexmem", ""));
	EXPECT_EQ(EINVAL, fm_insmod("flexmem_sim", "domains=hbm:2M memory=4M"));
	EXPECT_TRUE(said(self->kmsg, "flexmem_sim", "memory="));
	EXPECT_EQ(EINVAL, fm_insmod("flexmem_sim",
				    "vf_capacity=2M domains=hbm:2M"));
	EXPECT_TRUE(said(self->kmsg, "flexmem_sim", "vf_capacity="));
	EXPECT_EQ(0, fm_insmod("flexmem_sim", "domains=hbm*2:32M"));
	EXPECT_STREQ("hbm*2:32M", value("flexmem_sim", "domains"));
	EXPECT_STREQ("0M", value("flexmem_sim", "memory"));
}

/*
 * The kernel log describes a new PF or VF (capacity, slots and regions), and
 * reports its removal.
 */
TEST_F(params, the_log_names_each_function)
{
	ASSERT_EQ(0, fm_insmod("flexmem", "max_regions=5 fallback_sizes=2G,1536M"));
	ASSERT_EQ(0, fm_insmod("flexmem_sim", "num_vfs=1 slots=8 vf_capacity=24G"));
	EXPECT_TRUE(said(self->kmsg, "flexmem flexmem64", "registered: "));
	ASSERT_EQ(0, fm_rmmod("flexmem_sim"));
	EXPECT_TRUE(said(self->kmsg, "flexmem flexmem64", "removed"));
}

TEST_F(params, program_slots_must_leave_one_for_tensors)
{
	EXPECT_EQ(EINVAL, fm_insmod("flexmem", "max_regions=4 program_slots=4"));
	EXPECT_TRUE(said(self->kmsg, "flexmem", "program_slots"));
	EXPECT_EQ(EINVAL, fm_insmod("flexmem", "program_slots=2 max_regions=1"));
	EXPECT_EQ(0, fm_insmod("flexmem", "program_slots=3 max_regions=4"));
}

static const struct {
	const char *module, *name, *by_default, *set, *read;
} good[] = {
	{ "flexmem", "strategy", "first_fit", "best_fit", "best_fit" },
	{ "flexmem", "order", "auto", "fill_first", "fill_first" },
	{ "flexmem", "acquire", "lazy", "prealloc", "prealloc" },
	{ "flexmem", "fallback_sizes", "auto", "6G,512M,2097152K",
	  "6G,512M,2G" },
	{ "flexmem", "max_regions", "12", "7", "7" },
	{ "flexmem", "program_slots", "0", "2", "2" },
	{ "flexmem", "default_depth", "2", "3", "3" },
	{ "flexmem", "pf_open", "admin", "mode", "mode" },
	{ "flexmem_sim", "memory", "128G", "96G", "96G" },
	{ "flexmem_sim", "job_timeout_ms", "120000", "12345", "12345" },
	{ "flexmem_sim", "num_vfs", "1", "2", "2" },
	{ "flexmem_sim", "vf_capacity", NULL, "32G", "32G" },
	{ "flexmem_sim", "slots", "16", "8", "8" },
	{ "flexmem_sim", "timeout_ms", NULL, "777", "777" },
};

TEST_F(params, defaults_are_the_documented_ones)
{
	struct flexmem_info info;
	unsigned int i;
	int fd;

	ASSERT_EQ(0, fm_insmod("flexmem", ""));
	ASSERT_EQ(0, fm_insmod("flexmem_sim", ""));
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		if (good[i].by_default)
			EXPECT_STREQ(good[i].by_default,
				     value(good[i].module, good[i].name));
	}
	fd = fm_open(FM_VF);
	ASSERT_LE(0, fd) TH_LOG("no VF by default");
	info = fm_info(fd);
	EXPECT_EQ(12, info.out_max_regions);
	EXPECT_EQ(16, info.out_slots);
	EXPECT_EQ(64 * GiB, info.out_capacity);
	EXPECT_EQ(12 * GiB, info.out_max_region);
	EXPECT_EQ(FLEXMEM_FIT_FIRST, info.out_fit);
	EXPECT_EQ(FLEXMEM_ORDER_FILL_FIRST, info.out_order);
	EXPECT_EQ(FLEXMEM_ACQUIRE_LAZY, info.out_acquire);
	EXPECT_NE(0, fm_take(fd, GiB));
	close(fd);
}

TEST_F(params, good_values_are_readable_and_told_by_info)
{
	char args[2][512] = { "", "" };
	struct flexmem_info info;
	unsigned int i;
	size_t used;
	char *arg;
	int fd;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		arg = args[!!strcmp(good[i].module, "flexmem")];
		used = strlen(arg);
		snprintf(arg + used, sizeof(args[0]) - used, "%s=%s ",
			 good[i].name, good[i].set);
	}
	ASSERT_EQ(0, fm_insmod("flexmem", args[0])) TH_LOG("%s", args[0]);
	ASSERT_EQ(0, fm_insmod("flexmem_sim", args[1])) TH_LOG("%s", args[1]);
	for (i = 0; i < ARRAY_SIZE(good); i++)
		EXPECT_STREQ(good[i].read, value(good[i].module, good[i].name));

	fd = fm_open_nth(FM_VF, 1, NULL);
	ASSERT_LE(0, fd) TH_LOG("no second VF");
	info = fm_info(fd);
	EXPECT_EQ(FLEXMEM_FIT_BEST, info.out_fit);
	EXPECT_EQ(FLEXMEM_ORDER_FILL_FIRST, info.out_order);
	EXPECT_EQ(FLEXMEM_ACQUIRE_PREALLOC, info.out_acquire);
	EXPECT_EQ(3, info.out_nr_fallback_sizes);
	EXPECT_EQ(6 * GiB, info.out_fallback_sizes[0]);
	EXPECT_EQ(512 * MiB, info.out_fallback_sizes[1]);
	EXPECT_EQ(2 * GiB, info.out_fallback_sizes[2]);
	EXPECT_EQ(7, info.out_max_regions);
	EXPECT_EQ(2, info.out_program_slots);
	EXPECT_EQ(8, info.out_slots);
	EXPECT_EQ(32 * GiB, info.out_capacity);
	close(fd);
}

/*
 * No parameter can be written after loading, except the number of VFs, which is
 * not a setting of a device.
 */
TEST_F(params, nothing_is_writable_later)
{
	char path[128];
	struct stat st;
	unsigned int i;

	ASSERT_EQ(0, fm_insmod("flexmem", ""));
	ASSERT_EQ(0, fm_insmod("flexmem_sim", ""));
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s",
			 good[i].module, good[i].name);
		ASSERT_EQ(0, stat(path, &st));
		EXPECT_EQ(strcmp(good[i].name, "num_vfs") ? 0444 : 0644,
			  st.st_mode & 07777)
			TH_LOG("%s", good[i].name);
	}
}

/* max_regions is cut to the slots of a VF that has fewer. */
TEST_F(params, slots_cap_max_regions)
{
	struct flexmem_info info;
	int fd;

	ASSERT_EQ(0, fm_insmod("flexmem", "max_regions=64"));
	ASSERT_EQ(0, fm_insmod("flexmem_sim", "slots=8"));
	fd = fm_open(FM_VF);
	info = fm_info(fd);
	EXPECT_EQ(8, info.out_slots);
	EXPECT_EQ(8, info.out_max_regions);
	close(fd);
	fd = fm_open(FM_PF);
	info = fm_info(fd);
	EXPECT_EQ(64, info.out_slots);
	EXPECT_EQ(64, info.out_max_regions);
	close(fd);
}

TEST_HARNESS_MAIN
