// SPDX-License-Identifier: GPL-2.0
/*
 * Trace events: each change of state is seen, in its order, through tracefs.
 * FLEXMEM_PAGES is the directory with the page that shows such a trace.
 */
#include <poll.h>
#include <sys/mount.h>

#include "tenants.h"
#include "../../kmod/sim/run.h"

#define TRACING "/sys/kernel/tracing/"
#define SIZE (256 * KiB)
#define PARAMS "max_regions=2 fallback_sizes=4G order=fill_first "	\
	"strategy=first_fit acquire=lazy program_slots=0"

FIXTURE(trace) {
	int fd;
};

/* Returns 0, or a negative errno. */
static int put(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_TRUNC | O_CLOEXEC);
	int rc = 0;

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}

FIXTURE_SETUP(trace)
{
	self->fd = -1;
	mount("nodev", TRACING, "tracefs", 0, NULL);
	RELOAD(PARAMS, NULL);
	self->fd = fm_open(FM_VF);
	ASSERT_LE(0, self->fd);
	/*
	 * To record the names of tasks, the kernel changes the code of its
	 * scheduler. If QEMU runs that code at the same time, the kernel dies
	 * of "Oops: int3" (tests/vm/run.sh).
	 */
	ASSERT_EQ(0, put(TRACING "options/record-cmd", "0"));
	ASSERT_EQ(0, put(TRACING "trace", "\n"));
	ASSERT_EQ(0, put(TRACING "events/flexmem/enable", "1"));
}

FIXTURE_TEARDOWN(trace)
{
	put(TRACING "events/flexmem/enable", "0");
	if (self->fd >= 0)
		close(self->fd);
	EXPECT_EQ(0, fm_unload());
}

/* Reads the trace, and prints it without its header. */
static void read_trace(char *text, size_t size)
{
	FILE *file;
	size_t n = 0;

	put(TRACING "events/flexmem/enable", "0");
	file = fopen(TRACING "trace", "r");
	if (file) {
		while (n + 512 < size && fgets(text + n, 512, file)) {
			if (text[n] == '#')
				continue;
			printf("# %s", text + n);
			n += strlen(text + n);
		}
		fclose(file);
	}
	text[n] = 0;
}

/* Finds the line with the event and this text, after @from. NULL: there is none. */
static const char *find(const char *from, const char *event, const char *text)
{
	const char *line = from, *end;

	while (line && *line) {
		const char *name, *at;

		end = strchr(line, '\n');
		end = end ? end + 1 : line + strlen(line);
		name = strstr(line, event);
		at = strstr(line, text);
		if (name && name < end && at && at < end)
			return end;
		line = end;
	}
	return NULL;
}

/* Expects the event behind the events that were found before. */
#define NEXT(at, event, ...) do {					\
	char text_[128];						\
	const char *found_;						\
	snprintf(text_, sizeof(text_), __VA_ARGS__);			\
	found_ = find(at, event ": ", text_);				\
	EXPECT_NE(NULL, found_) TH_LOG("no %s: %s", event, text_);	\
	if (found_)							\
		at = found_;						\
} while (0)

static char text[256 * KiB];
static char page[64 * KiB];

TEST_F(trace, regions_slots_and_commands)
{
	const char *at = text;
	struct flexmem_alloc a;

	ASSERT_EQ(0, fm_alloc(self->fd, SIZE, &a));
	ASSERT_EQ(0, fm_free(self->fd, a.out_handle));
	ASSERT_EQ(0, fm_trim(self->fd));
	RESET(FM_VF);
	read_trace(text, sizeof(text));
	NEXT(at, "flexmem_command", "operation=acquire rc=0");
	NEXT(at, "flexmem_command", "operation=slot_set rc=0");
	NEXT(at, "flexmem_region_add", "slot=0 region=");
	NEXT(at, "flexmem_command", "operation=slot_clear rc=0");
	NEXT(at, "flexmem_region_remove", "slot=0 region=");
	NEXT(at, "flexmem_command", "operation=release rc=0");
	NEXT(at, "flexmem_state", "state=wedged");
	NEXT(at, "flexmem_command", "operation=reset rc=0");
	NEXT(at, "flexmem_state", "state=up");
}

TEST_F(trace, a_reset_with_an_allocation)
{
	const char *at = text;
	struct flexmem_alloc a;

	ASSERT_EQ(0, fm_alloc(self->fd, SIZE, &a));
	RESET(FM_VF);
	read_trace(text, sizeof(text));
	NEXT(at, "flexmem_charge", "minor=64 client=");
	NEXT(at, "flexmem_alloc", "size=%llu chunks=1\n",
	     (unsigned long long)SIZE);
	NEXT(at, "flexmem_region_remove", "minor=64 slot=0 region=");
	NEXT(at, "flexmem_state", "minor=64 state=up");
}

/* A scrub fails, so the memory goes into quarantine instead of to its owner. */
TEST_F(trace, a_failed_scrub)
{
	const char *at = text;
	struct flexmem_alloc a, b;
	int other = fm_open(FM_VF);

	ASSERT_LE(0, other);
	ASSERT_EQ(0, fm_alloc(self->fd, SIZE, &a));
	ASSERT_EQ(0, fm_fill(self->fd, a.out_handle, 0, SIZE, 'a'));
	ASSERT_EQ(0, fm_free(self->fd, a.out_handle));
	KNOB("fault_command", "scrub");
	KNOB("fail_commands", "1");
	EXPECT_EQ(EIO, fm_alloc(other, SIZE, &b));
	fm_mend();
	read_trace(text, sizeof(text));
	NEXT(at, "flexmem_scrub", "rc=-5");
	close(other);
}

/* Starts a job that uses the memory for 100 ms. Returns the job's fence. */
static int run_fill(__u32 handle, int fd)
{
	int queue = open(FM_KNOBS "vf0/queue", O_RDWR | O_CLOEXEC);
	struct sim_run job = {
		.program = SIM_PROGRAM_FILL,
		.fd = fd,
		.to = handle,
		.size = SIZE,
		.latency_ms = 100,
	};
	int rc = ioctl(queue, SIM_IOCTL_RUN, &job) ? -errno : job.out_fence;

	close(queue);
	return rc;
}

/*
 * Finds the next event in @text, and copies it without its task and time. The
 * context of a fence is a number of the whole kernel, so it is left out.
 * Returns the rest of the text, or NULL.
 */
static const char *next_event(const char *text, char *event, size_t size)
{
	const char *end;
	char *context;

	text = strstr(text, ": flexmem_");
	if (!text)
		return NULL;
	end = strchrnul(text, '\n');
	snprintf(event, size, "%.*s", (int)(end - text), text);
	context = strstr(event, "context=");
	if (context)
		memmove(context, strchrnul(context, ' '),
			strlen(strchrnul(context, ' ')) + 1);
	return end;
}

/* Reads the page with the trace, or returns false. */
static bool read_page(char *page, size_t size)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/tracing.rst", fm_env("FLEXMEM_PAGES"));
	file = fopen(path, "r");
	if (!file)
		return false;
	page[fread(page, 1, size - 1, file)] = 0;
	fclose(file);
	return true;
}

TEST_F(trace, one_allocation_and_one_job)
{
	const char *at = text, *seen = text;
	char want[256], have[256];
	struct flexmem_alloc first, a;
	struct pollfd wait = { .events = POLLIN };

	if (sizeof(long) == 4)
		SKIP(return, "debugfs passes no ioctl of 32 bits on");
	ASSERT_EQ(0, fm_alloc(self->fd, SIZE, &first));
	ASSERT_EQ(0, put(TRACING "trace", "\n"));
	ASSERT_EQ(0, fm_alloc(self->fd, SIZE, &a));
	wait.fd = run_fill(a.out_handle, self->fd);
	ASSERT_LE(0, wait.fd);
	ASSERT_EQ(0, fm_free(self->fd, a.out_handle));
	EXPECT_EQ(1, poll(&wait, 1, -1));
	close(wait.fd);
	/*
	 * This ALLOC returns the bytes of the freed allocation, unless the
	 * worker has done so already.
	 */
	ASSERT_EQ(0, fm_alloc(self->fd, 2 * SIZE, &first));
	read_trace(text, sizeof(text));
	NEXT(at, "flexmem_charge", "size=%llu handles=1 reason=0",
	     (unsigned long long)SIZE);
	NEXT(at, "flexmem_alloc", "handle=%u ", a.out_handle);
	NEXT(at, "flexmem_fence_add", "offset=%#llx ",
	     (unsigned long long)a.out_address.offset);
	NEXT(at, "flexmem_free", "handle=%u ", a.out_handle);
	NEXT(at, "flexmem_leaving", "handle=%u ", a.out_handle);
	NEXT(at, "flexmem_end", "handle=%u ", a.out_handle);

	/* The page shows this trace, without the last ALLOC. */
	ASSERT_TRUE(read_page(page, sizeof(page)));
	for (at = page; (at = next_event(at, want, sizeof(want)));) {
		do {
			seen = next_event(seen, have, sizeof(have));
			ASSERT_NE(NULL, seen) TH_LOG("not seen: %s", want);
		} while (strstr(have, "size=524288 "));
		EXPECT_STREQ(want, have);
	}
}

TEST_HARNESS_MAIN
