// SPDX-License-Identifier: GPL-2.0
/*
 * Frees a block in the middle of flexmem_cache_address(). A parent process
 * stops its child after each instruction of the call in turn, and the child
 * then frees the block.
 */
#include "cache_mock.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_STEPS 10000
#define RESTING 1024

static struct flexmem_cache *cache;
static struct flexmem_cache_allocation a;
static volatile sig_atomic_t has_returned, was_late;

static struct flexmem_cache_allocation allocate(uint64_t bytes)
{
	struct flexmem_cache_request request = { .bytes = bytes, .stream = 1 };
	struct flexmem_cache_allocation allocation;

	if (flexmem_cache_alloc_request(cache, &request, sizeof(request),
					&allocation, sizeof(allocation)))
		_exit(2);
	return allocation;
}

/*
 * Frees the block, and allocates until the block's struct describes a new block
 * at another address. A struct rests while RESTING others are freed.
 */
static void replace_block(int signal)
{
	struct flexmem_cache_allocation other = { .token = a.token };
	unsigned int i;

	(void)signal;
	if (has_returned) {
		was_late = 1;
		return;
	}
	for (i = 0; i <= RESTING; i++) {
		if (flexmem_cache_free(cache, other.token))
			_exit(3);
		other = allocate(5000);
	}
	if (other.address.offset == a.address.offset)
		_exit(3);
}

/*
 * Calls flexmem_cache_address() again and again. The parent stops each call one
 * instruction later than the call before.
 */
static void ask_for_addresses(void)
{
	struct flexmem_virtual_address address;
	int err;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(4);
	while (!was_late) {
		cache = mock_cache("expandable_segments:True");
		a = allocate(1000);
		allocate(1000);
		has_returned = 0;
		raise(SIGSTOP);
		err = flexmem_cache_address(cache, a.token, &address);
		has_returned = 1;
		if (err ? err != -EINVAL :
		    address.region_id != a.address.region_id ||
		    address.offset != a.address.offset)
			_exit(5);
		raise(SIGSTOP);
		flexmem_cache_destroy(cache);
	}
	_exit(0);
}

static int wait_for(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void freed_after_each_instruction(void **state)
{
	const struct sigaction action = { .sa_handler = replace_block };
	unsigned int steps, i;
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		ask_for_addresses();
	status = wait_for(child);
	for (steps = 1; WIFSTOPPED(status) && steps < MOST_STEPS; steps++) {
		for (i = 0; i < steps; i++) {
			assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL,
						NULL), 0);
			wait_for(child);
		}
		assert_int_equal(ptrace(PTRACE_CONT, child, NULL,
					(void *)SIGUSR1), 0);
		status = wait_for(child);
		if (!WIFSTOPPED(status))
			break;
		assert_int_equal(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
		status = wait_for(child);
	}
	print_message("# %u instructions\n", steps);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(steps > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CACHE_TEST(freed_after_each_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
