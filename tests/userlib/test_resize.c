// SPDX-License-Identifier: GPL-2.0
/* RESIZE, waiting for memory, and events. */
#include "test.h"

static struct flexmem_device *device;
static char lines[4096];

static struct flexmem_allocated make(uint64_t length, uint32_t flags)
{
	struct flexmem_allocated a;

	assert_int_equal(flexmem_device_alloc(device, length, 0, flags, &a,
					      sizeof(a)), 0);
	return a;
}

static int resize(uint32_t handle, uint64_t length, struct flexmem_resized *to)
{
	memset(to, 0xaa, sizeof(*to));
	return flexmem_device_resize(device, handle, length, to, sizeof(*to));
}

static void grows_and_shrinks(void **state)
{
	struct flexmem_allocated now;
	struct flexmem_resized r;
	struct flexmem_allocated a;

	(void)state;
	device = open_device();
	a = make(MIB, FLEXMEM_GROWABLE);
	assert_int_equal(a.flags, FLEXMEM_GROWABLE);
	assert_int_equal(resize(a.handle, 3 * MIB + 1, &r), 0);
	assert_int_equal(r.bytes, 3 * MIB + 128);
	assert_int_equal(r.most, 0);
	assert_int_equal(r.failure.limit, FLEXMEM_LIMIT_NONE);
	assert_int_equal(flexmem_device_lookup(device, a.handle, &now,
					       sizeof(now)), 0);
	assert_int_equal(now.size, 3 * MIB + 128);
	assert_int_equal(now.flags, FLEXMEM_GROWABLE);
	assert_int_equal(now.address.offset, a.address.offset);
	assert_int_equal(resize(a.handle, 1, &r), 0);
	assert_int_equal(r.bytes, 128);
	/* The caller may pass no struct for the result. */
	assert_int_equal(flexmem_device_resize(device, a.handle, MIB, NULL, 0),
			 0);
	assert_int_equal(flexmem_device_free(device, a.handle), 0);
	flexmem_device_close(device);
}

static void neighbour_is_in_the_way(void **state)
{
	struct flexmem_allocated a;
	struct flexmem_allocated b;
	struct flexmem_resized r;

	(void)state;
	device = open_device();
	a = make(MIB, 0);
	b = make(MIB, 0);
	make(MIB, 0);
	assert_int_equal(resize(a.handle, MIB + 1, &r), -EAGAIN);
	assert_int_equal(r.bytes, MIB);
	assert_int_equal(r.most, MIB);
	assert_int_equal(flexmem_device_free(device, b.handle), 0);
	assert_int_equal(resize(a.handle, 3 * MIB, &r), -EAGAIN);
	assert_int_equal(r.most, 2 * MIB);
	assert_int_equal(resize(a.handle, r.most, &r), 0);
	assert_int_equal(r.bytes, 2 * MIB);
	flexmem_device_close(device);
}

static void limit_is_in_the_way(void **state)
{
	struct flexmem_allocated a;
	struct flexmem_resized r;
	char text[256];

	(void)state;
	fake.limit = 4 * MIB;
	/* A caller without rights gets the sums in the failure too. */
	fake.admin = false;
	device = open_device();
	a = make(3 * MIB, 0);
	assert_int_equal(resize(a.handle, 5 * MIB - 1, &r), -ENOMEM);
	assert_int_equal(r.bytes, 3 * MIB);
	assert_int_equal(r.failure.limit, FLEXMEM_LIMIT_CGROUP);
	assert_int_equal(r.failure.asked, 2 * MIB);
	assert_int_equal(r.failure.total_free, 12 * GIB - 3 * MIB);
	assert_int_equal(r.failure.largest_free, 12 * GIB - 3 * MIB);
	assert_int_equal(r.failure.regions, 1);
	assert_int_equal(r.failure.quota, 4 * MIB);
	assert_int_equal(r.failure.quota_used, 3 * MIB);
	assert_int_equal(r.failure.quota_left, MIB);
	assert_int_equal(r.failure.quota_own, 3 * MIB);
	assert_int_equal(flexmem_error_text(-ENOMEM, &r.failure,
					    sizeof(r.failure), text,
					    sizeof(text)), 0);
	assert_non_null(strstr(text, "cgroup limit (3.0 MiB of 4.0 MiB used: see sudo flexmem owners); asked 2.0 MiB"));
	flexmem_device_close(device);
}

static void resize_errors(void **state)
{
	struct {
		struct flexmem_resized known;
		char more[8];
	} larger;
	struct flexmem_allocated a;
	struct flexmem_resized r;

	(void)state;
	device = open_device();
	a = make(MIB, 0);
	assert_int_equal(resize(a.handle, 0, &r), -EINVAL);
	assert_int_equal(resize(0, MIB, &r), -ENOENT);
	assert_int_equal(resize(a.handle + 1, MIB, &r), -ENOENT);
	assert_int_equal(r.bytes, 0);
	assert_int_equal(flexmem_device_resize(NULL, a.handle, MIB, &r,
					       sizeof(r)), -EINVAL);
	assert_int_equal(flexmem_device_resize(device, a.handle, MIB, &r,
					       offsetof(struct flexmem_resized,
						       failure.quota_used)),
			 -EINVAL);
	memset(&larger, 0xaa, sizeof(larger));
	assert_int_equal(flexmem_device_resize(device, a.handle, MIB,
					       &larger.known, sizeof(larger)),
			 0);
	assert_int_equal(larger.more[0], 0);
	inject(FLEXMEM_CMD_RESIZE, 1, EBUSY);
	assert_int_equal(resize(a.handle, 2 * MIB, &r), -EBUSY);
	inject(FLEXMEM_CMD_RESIZE, 1, ENOTTY);
	assert_int_equal(resize(a.handle, 2 * MIB, &r), -ENOTTY);
	/* ENOMEM of the kernel itself: no limit of the device was reached. */
	inject(FLEXMEM_CMD_RESIZE, 1, ENOMEM);
	assert_int_equal(resize(a.handle, 2 * MIB, &r), -ENOMEM);
	assert_int_equal(r.failure.limit, FLEXMEM_LIMIT_NONE);
	fake_lose();
	assert_int_equal(resize(a.handle, 2 * MIB, &r), -EIO);
	flexmem_device_close(device);
}

static void keep(enum flexmem_log_level level, const char *text, void *user)
{
	size_t length = strlen(lines);

	(void)level;
	(void)user;
	snprintf(lines + length, sizeof(lines) - length, "%s\n", text);
}

static void resize_is_logged(void **state)
{
	struct flexmem_allocated a;
	struct flexmem_resized r;

	(void)state;
	fake.limit = 4 * MIB;
	device = open_device();
	a = make(MIB, 0);
	make(MIB, 0);
	lines[0] = '\0';
	flexmem_device_set_log(device, FLEXMEM_LOG_DEBUG, keep, NULL);
	resize(a.handle, 1000, &r);
	resize(a.handle, 2 * MIB, &r);
	resize(a.handle, 20 * MIB, &r);
	assert_non_null(strstr(lines, "resize handle 1: size 1024 (asked 1000)\n"));
	assert_non_null(strstr(lines, "region 0: 12.0 GiB"));
	assert_non_null(strstr(lines, "resize handle 1 to 2097152: only 1048576 are possible there\n"));
	assert_non_null(strstr(lines, "resize handle 1 to 20971520 failed: out of device memory: cgroup limit"));
	flexmem_device_close(device);
}

static void events_are_read_once(void **state)
{
	struct flexmem_pressure_event event;
	struct flexmem_device *other;

	(void)state;
	device = open_device();
	other = open_device();
	make(2 * GIB, 0);
	assert_int_equal(flexmem_device_pressure(device, &event,
						 sizeof(event)), -EAGAIN);
	fake.level = FLEXMEM_PRESSURE_CRITICAL;
	fake.events = 3;
	fake.event_flags = FLEXMEM_EVENT_WANTED;
	fake.wanted = 5 * GIB;
	memset(&event, 0xaa, sizeof(event));
	assert_int_equal(flexmem_device_pressure(device, &event,
						 sizeof(event)), 0);
	assert_int_equal(event.level, FLEXMEM_LEVEL_CRITICAL);
	assert_int_equal(event.flags, FLEXMEM_TELLS_WANTED);
	assert_int_equal(event.wanted, 5 * GIB);
	assert_int_equal(event.in_use, 2 * GIB);
	assert_int_equal(event.memory, 64 * GIB);
	assert_int_equal(event.sequence, 3);
	assert_int_equal(flexmem_device_pressure(device, &event,
						 sizeof(event)), -EAGAIN);
	/* Each open file reads its own events. An older driver tells less. */
	fake.event_bytes = FLEXMEM_EVENT_MIN;
	assert_int_equal(flexmem_device_pressure(other, &event, sizeof(event)),
			 0);
	assert_int_equal(event.flags, 0);
	assert_int_equal(event.wanted, 0);
	assert_int_equal(event.sequence, 3);
	flexmem_device_close(other);
	flexmem_device_close(device);
}

static void event_errors(void **state)
{
	struct flexmem_pressure_event event;

	(void)state;
	device = open_device();
	fake.events = 1;
	assert_int_equal(flexmem_device_pressure(NULL, &event, sizeof(event)),
			 -EINVAL);
	assert_int_equal(flexmem_device_pressure(device, NULL, sizeof(event)),
			 -EINVAL);
	assert_int_equal(flexmem_device_pressure(device, &event,
						 offsetof(struct flexmem_pressure_event,
							  sequence)), -EINVAL);
	/*
	 * The event was not lost, and is read again. An event that is shorter
	 * than FLEXMEM_EVENT_MIN is an error.
	 */
	fake.event_bytes = FLEXMEM_EVENT_MIN - 8;
	assert_int_equal(flexmem_device_pressure(device, &event,
						 sizeof(event)), -EIO);
	flexmem_device_close(device);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(grows_and_shrinks),
		TEST(neighbour_is_in_the_way),
		TEST(limit_is_in_the_way),
		TEST(resize_errors),
		TEST(resize_is_logged),
		TEST(events_are_read_once),
		TEST(event_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
