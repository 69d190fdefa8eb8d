// SPDX-License-Identifier: GPL-2.0
/* flexmem_device_wait(), with a clock that only the test moves. */
#include "test.h"

#include <time.h>

#define MS 1000000

/* The test's clock, and how much time passes between two signals. */
static int64_t now_ns;
static int64_t signal_ns;
static unsigned int interrupted;

/* What happens once the clock reaches @at_ns. */
static int64_t at_ns;
static void (*happens)(void);

static struct flexmem_device *device, *other;
static struct flexmem_allocated held, failed;

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_nanosleep(clockid_t clock, int flags,
			   const struct timespec *until, struct timespec *left);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	if (clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, time);
	time->tv_sec = now_ns / 1000 / MS;
	time->tv_nsec = now_ns % (1000 * (int64_t)MS);
	return 0;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags,
			   const struct timespec *until, struct timespec *left)
{
	int64_t end = until->tv_sec * 1000 * (int64_t)MS + until->tv_nsec;
	int result = 0;

	(void)left;
	assert_int_equal(clock, CLOCK_MONOTONIC);
	assert_int_equal(flags, TIMER_ABSTIME);
	assert_in_range(until->tv_nsec, 0, 999999999);
	if (signal_ns && now_ns + signal_ns < end) {
		end = now_ns + signal_ns;
		interrupted++;
		result = EINTR;
	}
	if (now_ns < end)
		now_ns = end;
	if (happens && now_ns >= at_ns) {
		happens();
		happens = NULL;
	}
	return result;
}

/*
 * Another device object has the whole memory, except 1 GiB. An allocation of
 * 2 GiB has failed, when the latest event was the seventh one.
 */
static int start(void **state)
{
	setup(state);
	now_ns = 999 * (int64_t)MS + 5;
	signal_ns = 0;
	interrupted = 0;
	happens = NULL;
	fake.capacity = 12 * GIB;
	fake.sequence = 7;
	fake.freed = 7;
	device = open_device();
	other = open_device();
	assert_int_equal(flexmem_device_alloc(other, 11 * GIB, 0, 0, &held,
					      sizeof(held)), 0);
	assert_int_equal(flexmem_device_alloc(device, 2 * GIB, 0, 0, &failed,
					      sizeof(failed)), -ENOMEM);
	assert_int_equal(failed.failure.event, 7);
	return 0;
}

static int end(void **state)
{
	flexmem_device_close(device);
	flexmem_device_close(other);
	return teardown(state);
}

/* Waits, and returns the result. @ms: how long it must take. */
static int wait_for(uint64_t bytes, uint32_t most, int64_t ms)
{
	int64_t began = now_ns;
	int err = flexmem_device_wait(device, failed.failure.event, bytes, most);

	assert_int_equal(now_ns - began, ms * MS);
	return err;
}

static void after(int64_t ms, void (*function)(void))
{
	at_ns = now_ns + ms * MS;
	happens = function;
}

static void frees(void)
{
	assert_int_equal(flexmem_device_free(other, held.handle), 0);
	fake_tells_of_a_free();
}

static void frees_in_silence(void)
{
	assert_int_equal(flexmem_device_free(other, held.handle), 0);
}

static void is_removed(void)
{
	fake_remove(0);
}

static void ends_when_memory_is_free(void **state)
{
	(void)state;
	after(35, frees);
	assert_int_equal(wait_for(2 * GIB, 1000, 40), 0);
	/* It is free already. */
	assert_int_equal(wait_for(2 * GIB, 1000, 0), 0);
	assert_int_equal(wait_for(2 * GIB, 0, 0), 0);
}

static void lasts_for_the_whole_time(void **state)
{
	(void)state;
	assert_int_equal(wait_for(2 * GIB, 1275, 1275), -ETIMEDOUT);
	assert_int_equal(wait_for(0, 3, 3), -ETIMEDOUT);
	assert_int_equal(wait_for(0, 0, 0), -ETIMEDOUT);
}

static void a_storm_of_signals(void **state)
{
	(void)state;
	signal_ns = 100000;
	assert_int_equal(wait_for(2 * GIB, 1275, 1275), -ETIMEDOUT);
	assert_true(interrupted > 12000);
}

/* Memory that was freed, but is less than what is lacked. */
static void too_little_is_free(void **state)
{
	(void)state;
	fake_tells_of_a_free();
	assert_int_equal(wait_for(GIB, 100, 0), 0);
	assert_int_equal(wait_for(0, 100, 0), 0);
	assert_int_equal(wait_for(GIB + 1, 100, 100), -ETIMEDOUT);
	/* There need not be a further event. */
	after(15, frees_in_silence);
	assert_int_equal(wait_for(2 * GIB, 100, 20), 0);
}

/* Enough bytes are free, but no event tells that they were freed since. */
static void pieces_are_not_waited_for(void **state)
{
	(void)state;
	assert_int_equal(wait_for(GIB, 50, 50), -ETIMEDOUT);
	after(5, fake_tells_of_a_free);
	assert_int_equal(wait_for(GIB, 50, 10), 0);
}

/* What a limit leaves counts. */
static void a_limit_is_in_the_way(void **state)
{
	(void)state;
	assert_int_equal(flexmem_device_set_limit(device, FLEXMEM_FOR_CGROUP,
						  fake.uid,
						  FLEXMEM_CHARGE_BYTES,
						  11 * GIB + 128, NULL, 0), 0);
	fake_tells_of_a_free();
	assert_int_equal(wait_for(129, 50, 50), -ETIMEDOUT);
	assert_int_equal(wait_for(128, 50, 0), 0);
}

/* A domain that an allocation must ask for does not count. */
static void on_chip_memory_is_free(void **state)
{
	(void)state;
	fake.nr_domains = 2;
	fake_tells_of_a_free();
	assert_int_equal(wait_for(GIB + 128, 50, 50), -ETIMEDOUT);
	assert_int_equal(wait_for(GIB, 50, 0), 0);
}

/* Another thread serves the events. */
static void reads_no_event(void **state)
{
	struct flexmem_pressure_event event;

	(void)state;
	fake.events = 3;
	after(35, frees);
	assert_int_equal(wait_for(2 * GIB, 1000, 40), 0);
	assert_int_equal(flexmem_device_pressure(device, &event,
						 sizeof(event)), 0);
	assert_int_equal(event.sequence, 3);
}

static void wait_errors(void **state)
{
	(void)state;
	assert_int_equal(flexmem_device_wait(NULL, 7, 0, 50), -EINVAL);
	/* Waiting cannot help. */
	assert_int_equal(flexmem_device_alloc(device, 13 * GIB, 0, 0, &failed,
					      sizeof(failed)), -ENOMEM);
	assert_int_equal(failed.failure.event, 0);
	assert_int_equal(wait_for(GIB, 50, 0), -EINVAL);
	failed.failure.event = 7;
	after(15, is_removed);
	assert_int_equal(wait_for(GIB, 50, 20), -ENODEV);
}

#define WAIT_TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WAIT_TEST(ends_when_memory_is_free),
		WAIT_TEST(lasts_for_the_whole_time),
		WAIT_TEST(a_storm_of_signals),
		WAIT_TEST(too_little_is_free),
		WAIT_TEST(pieces_are_not_waited_for),
		WAIT_TEST(a_limit_is_in_the_way),
		WAIT_TEST(on_chip_memory_is_free),
		WAIT_TEST(reads_no_event),
		WAIT_TEST(wait_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
