// SPDX-License-Identifier: GPL-2.0
/*
 * Wrong calls, on files that are used for nothing else: random handles, random
 * structs, invalid pointers, mappings of other files' memory. They may return
 * any error that the header lists, but must not harm other files.
 */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "torture.h"

#define ARENA (512 * KiB)
/*
 * unmapped bytes behind the arena; more than any allocation has, so that no
 * copy reaches the bytes after them
 */
#define GUARD (256 * MiB)

/*
 * The commands, and the offsets of pointers in their structs. Pointers are
 * never random.
 */
static const struct {
	unsigned int nr;
	unsigned int size;
	unsigned int pointer[2];
} commands[] = {
	{ FLEXMEM_CMD_INFO, sizeof(struct flexmem_info), {} },
	{ FLEXMEM_CMD_ALLOC, sizeof(struct flexmem_alloc), {} },
	{ FLEXMEM_CMD_FREE, sizeof(struct flexmem_free), {} },
	{ FLEXMEM_CMD_ALLOC_BATCH, sizeof(struct flexmem_batch),
	  { offsetof(struct flexmem_batch, entries) } },
	{ FLEXMEM_CMD_FREE_BATCH, sizeof(struct flexmem_batch),
	  { offsetof(struct flexmem_batch, entries) } },
	{ FLEXMEM_CMD_LOOKUP, sizeof(struct flexmem_lookup), {} },
	{ FLEXMEM_CMD_SEGMENTS, sizeof(struct flexmem_segments),
	  { offsetof(struct flexmem_segments, entries) } },
	{ FLEXMEM_CMD_TRIM, sizeof(struct flexmem_trim), {} },
	{ FLEXMEM_CMD_READ, sizeof(struct flexmem_rw),
	  { offsetof(struct flexmem_rw, data) } },
	{ FLEXMEM_CMD_WRITE, sizeof(struct flexmem_rw),
	  { offsetof(struct flexmem_rw, data) } },
	{ FLEXMEM_CMD_COPY, sizeof(struct flexmem_copy), {} },
	{ FLEXMEM_CMD_SNAPSHOT, sizeof(struct flexmem_snapshot),
	  { offsetof(struct flexmem_snapshot, regions),
	    offsetof(struct flexmem_snapshot, owners) } },
	{ FLEXMEM_CMD_SET_LIMIT, sizeof(struct flexmem_resource_limit), {} },
	{ FLEXMEM_CMD_RESERVE, sizeof(struct flexmem_reserve), {} },
	{ FLEXMEM_CMD_RESIZE, sizeof(struct flexmem_resize), {} },
	{ FLEXMEM_CMD_DOMAIN, sizeof(struct flexmem_domain_info), {} },
	{ FLEXMEM_CMD_VA_RESERVE, sizeof(struct flexmem_va_reserve), {} },
	{ FLEXMEM_CMD_VA_FREE, sizeof(struct flexmem_va_free), {} },
	{ FLEXMEM_CMD_VA_BIND, sizeof(struct flexmem_va_bind), {} },
	{ FLEXMEM_CMD_VA_UNBIND, sizeof(struct flexmem_va_unbind), {} },
	{ FLEXMEM_CMD_VA_LOOKUP, sizeof(struct flexmem_va_lookup), {} },
	{ 0x20, 64, {} },
};

void wrong_setup(struct thread *t)
{
	t->arena = mmap(NULL, ARENA + GUARD, PROT_NONE, MAP_PRIVATE |
			MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t->arena == MAP_FAILED ||
	    mprotect(t->arena, ARENA, PROT_READ | PROT_WRITE))
		fail("no arena: %s", strerror(errno));
}

static uint64_t pointer(struct thread *t)
{
	switch (rng_below(&t->rng, 8)) {
	case 0:
		return 0;
	case 1:
		return (uintptr_t)t->arena + ARENA - rng_below(&t->rng, 256);
	case 2:
		return (uintptr_t)t->arena + ARENA + 4096;
	case 3:
		return 0xffff888000000000ULL + rng_below(&t->rng, ~0U);
	default:
		return (uintptr_t)t->arena + rng_below(&t->rng, 4096);
	}
}

static uint64_t number(struct thread *t)
{
	static const uint64_t pool[] = {
		0, 0, 0, 1, 2, 3, 8, 88, 96, 127, 128, 4095, 4096, 65536,
		1 << 20, 1ULL << 31, 1ULL << 32, 1ULL << 44, 1ULL << 63, ~0ULL,
		~0ULL - 127, 0xffffffff,
	};

	switch (rng_below(&t->rng, 3)) {
	case 0:
		return rng_next(&t->rng);
	case 1:
		return 1 + rng_below(&t->rng, 40);
	default:
		return pool[rng_below(&t->rng, ARRAY_SIZE(pool))];
	}
}

static bool is_documented(int error)
{
	static const int errors[] = {
		0, ENOTTY, EFAULT, EINVAL, E2BIG, EOPNOTSUPP, ENOENT, ENOMEM,
		EMSGSIZE, EBUSY, EPERM, ENODEV, ETIMEDOUT, EIO, ENOSPC, EAGAIN,
		ENXIO, EEXIST, EMFILE,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i] == error)
			return true;
	return false;
}

/* Passes a random struct, which may reach into unmapped memory. */
static void wrong_struct(struct thread *t)
{
	unsigned int c = rng_below(&t->rng, ARRAY_SIZE(commands));
	unsigned int size = commands[c].size, i;
	bool short_of_room = rng_one_in(&t->rng, 8);
	uint32_t words[64];
	uint64_t where;
	char *at;
	int error;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = rng_one_in(&t->rng, 3) ? number(t) : 0;
	words[0] = rng_one_in(&t->rng, 8) ? number(t) : size;
	for (i = 0; i < 2 && commands[c].pointer[i]; i++) {
		where = pointer(t);
		memcpy((char *)words + commands[c].pointer[i], &where,
		       sizeof(where));
	}
	at = t->arena + ARENA - (short_of_room ? rng_below(&t->rng, size) :
				 sizeof(words));
	memcpy(at, words, short_of_room ? t->arena + ARENA - at :
	       (ptrdiff_t)sizeof(words));
	error = fm_ioctl(t->wild->fd, _IO(FLEXMEM_TYPE, commands[c].nr), at);
	if (error == ENODEV)
		atomic_store(&t->wild->gone, true);
	if (error)
		count(COUNT_WRONG_REFUSED, 1);
	if (!is_documented(error))
		fail("wrong struct, command %#x: %s", commands[c].nr,
		     strerror(error));
	if (!error && (commands[c].nr == FLEXMEM_CMD_TRIM ||
		       commands[c].nr == FLEXMEM_CMD_RESERVE ||
		       commands[c].nr == FLEXMEM_CMD_SET_LIMIT))
		fail("a tenant may do what is the administrator's");
}

/* Uses another file's handle, and the mmap() offset of its allocation. */
static void wrong_file(struct thread *t)
{
	struct object *o = object_pick(t);
	struct flexmem_lookup map = CMD(lookup);
	void *at;

	if (!o || o->freed || !(o->flags & FLEXMEM_ALLOC_MAPPABLE))
		return;
	map.handle = o->handle;
	if (call(o->file, "LOOKUP", FLEXMEM_IOCTL_LOOKUP, &map, 0))
		return;
	at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, t->wild->fd,
		  map.out_map_offset);
	if (at != MAP_FAILED) {
		munmap(at, 4096);
		/*
		 * Only a file of the same VF must refuse the offset, because
		 * another VF may have an allocation with the same offset.
		 */
		if (o->file->vf == t->wild->vf)
			fail("mmap: memory of another file");
		return;
	}
	count(COUNT_WRONG_REFUSED, 1);
	if (errno != ENOENT && errno != ENODEV && errno != EINVAL)
		fail("mmap of another file's memory: %s", strerror(errno));
}

static void wrong_map(struct thread *t)
{
	uint64_t offset = number(t) & ~4095ULL;
	int prot = rng_below(&t->rng, 8), flags = MAP_SHARED;
	size_t size = 4096 * (1 + rng_below(&t->rng, 16));
	void *at;

	if (rng_one_in(&t->rng, 3))
		flags = rng_one_in(&t->rng, 2) ? MAP_PRIVATE : MAP_SHARED_VALIDATE;
	if (rng_one_in(&t->rng, 4))
		flags |= MAP_POPULATE | MAP_LOCKED;
	at = mmap(NULL, size, prot, flags, t->wild->fd, offset);
	if (at == MAP_FAILED) {
		count(COUNT_WRONG_REFUSED, 1);
		return;
	}
	if (prot & PROT_EXEC || flags & MAP_PRIVATE)
		fail("mmap: protection %d, flags %#x work", prot, flags);
	munmap(at, size);
}

/* Makes system calls that a node does not support. */
static void wrong_call(struct thread *t)
{
	struct pollfd p = { .fd = t->wild->fd, .events = POLLIN | POLLOUT };
	int fd = t->wild->fd, copy;
	char byte = 0;

	switch (rng_below(&t->rng, 6)) {
	case 0:
		if (write(fd, &byte, 1) == 1)
			fail("write() works");
		break;
	case 1:
		if (lseek(fd, 0, SEEK_END) > 0 || !ftruncate(fd, 0))
			fail("lseek() or ftruncate() works");
		break;
	case 2:
		poll(&p, 1, 0);
		break;
	case 3:
		if (!ioctl(fd, _IOC(rng_below(&t->rng, 4), FLEXMEM_TYPE,
				    FLEXMEM_CMD_SNAPSHOT, 1 +
				    rng_below(&t->rng, 200)), t->arena))
			fail("a command with another number works");
		break;
	case 4:
		fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC);
		break;
	default:
		copy = dup(fd);
		if (copy >= 0)
			close(copy);
	}
}

bool op_wrong(struct thread *t)
{
	if (t->wild && (rng_one_in(&t->rng, 24) ||
			atomic_load(&t->wild->gone))) {
		file_put(t->wild);
		t->wild = NULL;
	}
	if (!t->wild)
		t->wild = file_open(rng_below(&t->rng, NR_VFS));
	if (!t->wild)
		return false;
	switch (rng_below(&t->rng, 16)) {
	case 0:
		wrong_map(t);
		break;
	case 1:
		wrong_file(t);
		break;
	case 2:
		wrong_call(t);
		break;
	default:
		wrong_struct(t);
	}
	atomic_fetch_add(&shared->ops, 1);
	return true;
}
