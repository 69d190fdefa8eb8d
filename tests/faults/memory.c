// SPDX-License-Identifier: GPL-2.0
/* Sequences of calls about bytes: copies, RESIZE, mappings. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sequences.h"

#define PAGE 4096

static char data[256 * KiB];
static char copy[256 * KiB];
/*
 * Bytes of a large copy: two of the driver's pieces, or four in a long run. Each
 * page can fail, so the time of a sweep grows with the square of this size.
 */
static size_t large = 128 * KiB;

/* ---- bytes ---- */

static bool copy_bytes(struct run *r, unsigned int f, bool out, size_t size,
		       void *buffer)
{
	struct flexmem_rw c = CMD(rw, .handle = last(r, f), .length = size,
				    .data = (uintptr_t)buffer);

	if (!(out ? CALL(r, f, READ, &c) : CALL(r, f, WRITE, &c)))
		return false;
	if (c.out_done != size)
		wrong(r, "a copy that is short and succeeds", 0);
	return true;
}

static void write_and_read(struct run *r, size_t size)
{
	if (copy_bytes(r, 0, false, size, data) &&
	    copy_bytes(r, 0, true, size, copy) && memcmp(copy, data, size))
		wrong(r, "READ of other bytes than WRITE", 0);
}

void run_write_read(struct run *r)
{
	write_and_read(r, 5000);
}

void prepare_large(struct run *r)
{
	prepare_open(r);
	if (!ALLOC(r, 0, .length = large))
		wrong(r, "ALLOC (not failed)", 0);
}

void run_write_read_large(struct run *r)
{
	write_and_read(r, large);
}

/* Copies the first half of an allocation to both halves of another. */
void run_copy_range(struct run *r)
{
	struct flexmem_copy c = CMD(copy, .from = last(r, 0),
					  .length = large / 2);

	if (!copy_bytes(r, 0, false, large, data) ||
	    !ALLOC(r, 0, .length = large))
		return;
	c.to = last(r, 0);
	if (!CALL(r, 0, COPY, &c))
		return;
	c.from = c.to;
	c.to_offset = large / 2;
	if (CALL(r, 0, COPY, &c) &&
	    copy_bytes(r, 0, true, large, copy) &&
	    memcmp(copy, data, large))
		wrong(r, "COPY of other bytes than WRITE", 0);
}

/* A file writes bytes that the next file must not see. */
void prepare_scrub(struct run *r)
{
	prepare_open(r);
	if (!open_file(r, 1) ||
	    !ALLOC(r, 1, .length = large) ||
	    !copy_bytes(r, 1, false, large, data) || !free_last(r, 1))
		wrong(r, "another file's bytes (not failed)", errno);
}

static void expect_zero(struct run *r)
{
	size_t i;

	if (!copy_bytes(r, 0, true, large, copy))
		return;
	for (i = 0; i < large; i++)
		if (copy[i])
			wrong(r, "bytes of another file", 0);
}

void run_scrub(struct run *r)
{
	if (ALLOC(r, 0, .length = large))
		expect_zero(r);
}

void run_scrub_twice(struct run *r)
{
	/* If the first scrub failed, its block is in quarantine. */
	ALLOC(r, 0, .length = large, .flags = FLEXMEM_ALLOC_MAPPABLE);
	if (ALLOC(r, 0, .length = large))
		expect_zero(r);
}

void prepare_dirty(struct run *r)
{
	prepare_large(r);
	if (!copy_bytes(r, 0, false, large, data) || !free_last(r, 0))
		wrong(r, "own bytes (not failed)", errno);
}

void run_zeroed(struct run *r)
{
	if (ALLOC(r, 0, .length = large, .flags = FLEXMEM_ALLOC_ZEROED))
		expect_zero(r);
}

/* A scrub fails. TRIM repeats the scrub. */
void run_quarantine_trim(struct run *r)
{
	struct flexmem_trim trim = CMD(trim);

	if (ALLOC(r, 0, .length = large) && !free_last(r, 0))
		return;
	CALL(r, 0, TRIM, &trim);
}

/* ---- RESIZE ---- */

/*
 * Changes the size of the newest allocation. Afterwards LOOKUP must return
 * either the new size or the old one.
 */
static bool resize(struct run *r, uint64_t length)
{
	struct flexmem_lookup before = CMD(lookup, .handle = last(r, 0));
	struct flexmem_lookup after = CMD(lookup, .handle = last(r, 0));
	struct flexmem_resize a = CMD(resize, .handle = last(r, 0),
				      .length = length);
	bool done;

	if (!CALL(r, 0, LOOKUP, &before))
		return false;
	done = CALL(r, 0, RESIZE, &a);
	if (!CALL(r, 0, LOOKUP, &after))
		return false;
	if (after.out_size != (done ? length : before.out_size))
		wrong(r, "RESIZE to another size than it says", 0);
	return done;
}

void run_resize(struct run *r)
{
	if (resize(r, 64 * KiB) && resize(r, 4 * KiB) && resize(r, 4 * KiB))
		resize(r, 12 * KiB);
}

void run_resize_scrub(struct run *r)
{
	static const char zero[sizeof(copy)];

	if (!ALLOC(r, 0, .length = 128) || !resize(r, large) ||
	    !copy_bytes(r, 0, true, large, copy))
		return;
	if (memcmp(copy, zero, large))
		wrong(r, "bytes of another owner", 0);
}

void run_resize_wrong(struct run *r)
{
	struct flexmem_resize a = CMD(resize, .handle = last(r, 0),
				      .length = 1ULL << 40);

	good(r, "RESIZE to too much",
	     fm_ioctl(r->fd[0], FLEXMEM_IOCTL_RESIZE, &a), EAGAIN);
}

void run_growable(struct run *r)
{
	if (ALLOC(r, 0, .length = 1000, .flags = FLEXMEM_ALLOC_GROWABLE) &&
	    ALLOC(r, 0, .length = 1024, .flags = FLEXMEM_ALLOC_GROWABLE))
		resize(r, 64 * KiB);
}

/* ---- maps ---- */

static sigjmp_buf bus_return;

static void on_bus(int number)
{
	(void)number;
	siglongjmp(bus_return, 1);
}

/*
 * If there is no memory for a page, the access causes SIGBUS. The next access
 * may succeed.
 */
bool touch(struct run *r, size_t offset)
{
	volatile char *at = r->map + offset;

	/*
	 * Does not save the signal mask, because that would be a system call,
	 * which can fail.
	 */
	if (sigsetjmp(bus_return, 0))
		return false;
	*at = 1;
	if (*at != 1)
		wrong(r, "a map does not keep what is written", 0);
	return true;
}

bool map(struct run *r, unsigned int f)
{
	struct flexmem_lookup m = CMD(lookup, .handle = last(r, f));
	void *at;

	if (!CALL(r, f, LOOKUP, &m))
		return false;
	at = mmap(NULL, m.out_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		  r->fd[f], m.out_map_offset);
	if (!good(r, "mmap", at == MAP_FAILED ? errno : 0, 0))
		return false;
	r->map = at;
	r->map_size = m.out_size;
	return true;
}

static bool unmap(struct run *r, size_t from)
{
	int error = munmap(r->map + from, r->map_size - from) ? errno : 0;

	if (!good(r, "munmap", error, 0))
		return false;
	r->map_size = from;
	return true;
}

void run_map(struct run *r)
{
	if (map(r, 0) && touch(r, 0) && touch(r, PAGE))
		unmap(r, 0);
}

void run_map_part(struct run *r)
{
	if (map(r, 0) && touch(r, PAGE) && unmap(r, PAGE) && touch(r, 0))
		unmap(r, 0);
}

void run_map_free(struct run *r)
{
	if (map(r, 0) && touch(r, 0) && free_last(r, 0) && touch(r, PAGE))
		unmap(r, 0);
}

void run_map_close(struct run *r)
{
	if (!map(r, 0) || !touch(r, 0))
		return;
	run_close(r);
	touch(r, PAGE);
}

void run_map_trim(struct run *r)
{
	struct flexmem_trim trim = CMD(trim);

	if (map(r, 0) && touch(r, 0) && free_last(r, 0))
		CALL(r, 0, TRIM, &trim);
}

void run_map_fork(struct run *r)
{
	int status = 0;
	pid_t pid;

	if (!map(r, 0) || !touch(r, 0))
		return;
	pid = fork();
	if (!pid)
		_exit(r->map[0] != 1);
	if (pid < 0)
		good(r, "fork", errno, 0);
	/* If the child was killed for lack of memory, that is not an error. */
	else if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
		 WEXITSTATUS(status))
		wrong(r, "a child sees other bytes", 0);
}

void run_map_wrong(struct run *r)
{
	struct flexmem_lookup m = CMD(lookup, .handle = last(r, 0));
	void *at;

	if (!CALL(r, 0, LOOKUP, &m))
		return;
	at = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, r->fd[0], m.out_map_offset);
	good(r, "private mmap", at == MAP_FAILED ? errno : 0, EINVAL);
}

void sequences_setup(void)
{
	struct sigaction action = {
		.sa_handler = on_bus,
		.sa_flags = SA_NODEFER,
	};

	sigaction(SIGBUS, &action, NULL);
	if (getenv("FLEXMEM_LONG"))
		large = sizeof(data);
	memset(data, 0xa5, sizeof(data));
	memset(copy, 0, sizeof(copy));
}
