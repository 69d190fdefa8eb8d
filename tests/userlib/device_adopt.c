// SPDX-License-Identifier: GPL-2.0
/*
 * Tests flexmem_device_adopt(). Natively the program runs on the fake kernel.
 * Built with ON_DEVICE it runs on the driver in a virtual machine, where the
 * descriptor goes through a socket.
 */
#include "test.h"
#include "flexmem_cache.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* Files of other kinds, and what is no file, stay as they are. */
static void what_is_no_node_is_refused(void **state)
{
	struct flexmem_device *device = NULL;
	int fds[4];
	int ends[2];
	size_t i;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	fds[0] = ends[0];
	fds[1] = ends[1];
	fds[2] = open("/dev/null", O_RDWR);
	fds[3] = open("/proc/self/exe", O_RDONLY);
	for (i = 0; i < 4; i++) {
		assert_true(is_open(fds[i]));
		assert_int_equal(flexmem_device_adopt(&device, fds[i]),
				 -EINVAL);
		assert_true(is_open(fds[i]));
		assert_int_equal(flexmem_device_adopt(NULL, fds[i]), -EINVAL);
		close(fds[i]);
		assert_int_equal(flexmem_device_adopt(&device, fds[i]),
				 -EINVAL);
	}
	assert_int_equal(flexmem_device_adopt(&device, -1), -EINVAL);
	assert_null(device);
}

static char said[256];

static void keep(enum flexmem_log_level level, const char *text, void *user)
{
	(void)level;
	(void)user;
	snprintf(said, sizeof(said), "%s", text);
}

/* A cache needs its allocations and its events for itself. */
static void refuses_a_cache(struct flexmem_device *device)
{
	struct flexmem_cache_options options = {
		.device = device,
		.configuration = "",
		.log = keep,
		.level = FLEXMEM_LOG_WARNING,
	};
	struct flexmem_cache_provider provider;
	struct flexmem_cache *cache = NULL;

	assert_int_equal(flexmem_cache_create(&cache, &options,
					      sizeof(options)), -EOPNOTSUPP);
	assert_null(cache);
	assert_non_null(strstr(said, "the device was adopted"));
	assert_int_equal(flexmem_cache_device_provider(device, &provider,
						       sizeof(provider)),
			 -EOPNOTSUPP);
}

#ifdef ON_DEVICE
union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr header;
};

static void send_fd(int socket, int fd)
{
	union control control = { .header = {
		.cmsg_len = CMSG_LEN(sizeof(int)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
	} };
	struct iovec byte = { .iov_base = "", .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &byte,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.bytes),
	};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	assert_int_equal(sendmsg(socket, &message, 0), 1);
}

static int receive_fd(int socket)
{
	union control control = { 0 };
	char byte;
	struct iovec into = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &into,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.bytes),
	};
	int fd;

	assert_int_equal(recvmsg(socket, &message, 0), 1);
	assert_int_equal(control.header.cmsg_type, SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	return fd;
}

/* Passes a descriptor as another program would. */
static int passed(int fd)
{
	int ends[2];
	int received;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	send_fd(ends[0], fd);
	received = receive_fd(ends[1]);
	close(ends[0]);
	close(ends[1]);
	assert_int_not_equal(received, fd);
	return received;
}

static uint64_t used_by(const struct flexmem_device *device)
{
	struct flexmem_statistics statistics;

	assert_int_equal(flexmem_device_statistics(device, &statistics,
						   sizeof(statistics)), 0);
	return statistics.own_used;
}

/* Both objects are one open file: handles, bytes, and the end of them. */
static void both_have_one_file(void **state)
{
	struct flexmem_device *giver;
	struct flexmem_device *taker;
	struct flexmem_allocated a;
	struct flexmem_allocated b;

	(void)state;
	assert_int_equal(flexmem_device_open(&giver, NULL), 0);
	assert_int_equal(flexmem_device_alloc(giver, MIB, 0, 0, &a, sizeof(a)),
			 0);
	assert_int_equal(flexmem_device_adopt(&taker,
					      passed(flexmem_device_fd(giver))),
			 0);
	assert_string_equal(flexmem_device_path(taker),
			    flexmem_device_path(giver));
	assert_int_equal(fcntl(flexmem_device_fd(taker), F_GETFD), FD_CLOEXEC);
	assert_int_equal(used_by(taker), MIB);
	assert_int_equal(flexmem_device_free(taker, a.handle), 0);
	assert_int_equal(flexmem_device_free(giver, a.handle), -ENOENT);
	assert_int_equal(flexmem_device_alloc(taker, 2 * MIB, 0, 0, &b,
					      sizeof(b)), 0);
	refuses_a_cache(taker);
	flexmem_device_close(taker);
	assert_int_equal(used_by(giver), 2 * MIB);
	assert_int_equal(flexmem_device_free(giver, b.handle), 0);
	flexmem_device_close(giver);
}

/* What the receiver maps and writes, the giver reads. */
static void both_map(void **state)
{
	static const char word[] = "shared";
	struct flexmem_device *giver;
	struct flexmem_device *taker;
	struct flexmem_allocated a;
	char found[sizeof(word)];
	void *at;

	(void)state;
	assert_int_equal(flexmem_device_open(&giver, NULL), 0);
	assert_int_equal(flexmem_device_alloc(giver, MIB, 0, FLEXMEM_MAPPABLE,
					      &a, sizeof(a)), 0);
	assert_int_equal(flexmem_device_adopt(&taker,
					      passed(flexmem_device_fd(giver))),
			 0);
	assert_int_equal(flexmem_device_map(taker, a.handle, 0, MIB, 0, &at,
					    NULL), 0);
	memcpy(at, word, sizeof(word));
	assert_int_equal(flexmem_device_unmap(taker, at, MIB), 0);
	assert_int_equal(flexmem_device_read(giver, a.handle, 0, found,
					     sizeof(found), NULL), 0);
	assert_string_equal(found, word);
	flexmem_device_close(taker);
	flexmem_device_close(giver);
}

static void wait_for_an_event(const struct flexmem_device *device)
{
	struct pollfd ready = {
		.fd = flexmem_device_fd(device),
		.events = POLLIN,
	};

	assert_int_equal(poll(&ready, 1, 60000), 1);
}

/* The device has two regions of 1 GiB. */
static void both_read_one_stream_of_events(void **state)
{
	struct flexmem_device *giver;
	struct flexmem_device *taker;
	struct flexmem_pressure_event event;
	struct flexmem_allocated a[3];
	size_t i;

	(void)state;
	assert_int_equal(flexmem_device_open(&giver, NULL), 0);
	assert_int_equal(flexmem_device_adopt(&taker,
					      passed(flexmem_device_fd(giver))),
			 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(flexmem_device_alloc(giver, 600 * MIB, 0, 0,
						      &a[i], sizeof(a[i])),
				 i < 2 ? 0 : -ENOMEM);
	assert_int_equal(flexmem_device_free(giver, a[0].handle), 0);
	wait_for_an_event(giver);
	wait_for_an_event(taker);
	assert_int_equal(flexmem_device_pressure(taker, &event, sizeof(event)),
			 0);
	assert_int_equal(flexmem_device_pressure(giver, &event, sizeof(event)),
			 -EAGAIN);
	flexmem_device_close(taker);
	flexmem_device_close(giver);
}

#define ADOPT_TEST(name) cmocka_unit_test(name)

#else
static int raw_node(void)
{
	int fd = open("/dev/flexmem0", O_RDWR);

	assert_true(fd >= 0);
	return fd;
}

static void an_adopted_node_works(void **state)
{
	struct flexmem_device *device;
	struct flexmem_properties properties;
	struct flexmem_allocated a;
	int fd = raw_node();

	(void)state;
	assert_int_equal(flexmem_device_adopt(&device, fd), 0);
	assert_int_equal(flexmem_device_fd(device), fd);
	assert_string_equal(flexmem_device_path(device), "");
	assert_int_equal(flexmem_device_properties(device, &properties,
						   sizeof(properties)), 0);
	assert_int_equal(flexmem_device_alloc(device, MIB, 0, 0, &a, sizeof(a)),
			 0);
	refuses_a_cache(device);
	/* Another descriptor may keep the allocation, so none "goes back". */
	said[0] = '\0';
	flexmem_device_set_log(device, FLEXMEM_LOG_DEBUG, keep, NULL);
	flexmem_device_close(device);
	assert_null(strstr(said, "go back"));
}

/* Another driver could give the numbers of flexmem's commands another meaning. */
static void only_flexmem_gets_a_command(void **state)
{
	static const char *const others[] = {
		"Character devices:\n  1 mem\n\nBlock devices:\n259 blkext\n",
		"Character devices:\n511 flexmemory\n",
		"Character devices:\n511 flex\n",
		"Character devices:\n51 flexmem\n",
		"Character devices:\n5110 flexmem\n",
	};
	struct flexmem_device *device = NULL;
	int fd = raw_node();
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		fake.devices = others[i];
		assert_int_equal(flexmem_device_adopt(&device, fd), -EINVAL);
	}
	fake.devices = "";
	assert_int_equal(flexmem_device_adopt(&device, fd), -ENOENT);
	assert_int_equal(fake.calls[FLEXMEM_CMD_INFO], 0);
	close(fd);
}

static void a_node_that_does_not_answer(void **state)
{
	struct flexmem_device *device = NULL;
	int fd = raw_node();

	(void)state;
	fake.nodes[0].info_error = ENODEV;
	assert_int_equal(flexmem_device_adopt(&device, fd), -ENODEV);
	fake.nodes[0].info_error = ENOTTY;
	assert_int_equal(flexmem_device_adopt(&device, fd), -EINVAL);
	assert_null(device);
	/* The descriptor is still the caller's. */
	assert_int_equal(fake.closes, 0);
	fake.nodes[0].info_error = 0;
	assert_int_equal(flexmem_device_adopt(&device, fd), 0);
	flexmem_device_close(device);
}

#define ADOPT_TEST(name) TEST(name)
#endif

int main(void)
{
	static const struct CMUnitTest tests[] = {
		ADOPT_TEST(what_is_no_node_is_refused),
#ifdef ON_DEVICE
		ADOPT_TEST(both_have_one_file),
		ADOPT_TEST(both_map),
		ADOPT_TEST(both_read_one_stream_of_events),
#else
		ADOPT_TEST(an_adopted_node_works),
		ADOPT_TEST(only_flexmem_gets_a_command),
		ADOPT_TEST(a_node_that_does_not_answer),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
