// SPDX-License-Identifier: GPL-2.0
/*
 * Makes calls according to the table of commands, and uses files in other ways.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

#define PAGE 4096ULL
/*
 * Offsets in a thread's arena: of the struct of a command, and of the array or
 * buffer that the struct points to. A second array of the same struct begins
 * 128 KiB later.
 */
#define STRUCT_AT 1024
#define ENTRIES_AT (16 * KiB)

/* ---- values ---- */

static uint64_t interesting(struct rng *rng)
{
	static const uint64_t pool[] = {
		0, 1, 2, 127, 128, 129, 4095, 4096, 4097, 65535, 65536,
		0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
		1ULL << 44, 1ULL << 52, 1ULL << 63, ~0ULL, ~0ULL - 127,
		~0ULL - 4095,
	};

	if (rng_one_in(rng, 4))
		return rng_next(rng);
	return pool[rng_below(rng, ARRAY_SIZE(pool))];
}

static struct known known(struct thread *t, struct file *file)
{
	struct known k = { .handle = 1 + rng_below(&t->rng, 8), .size = PAGE };

	pthread_mutex_lock(&file->lock);
	if (file->nr_known)
		k = file->known[rng_below(&t->rng, file->nr_known)];
	pthread_mutex_unlock(&file->lock);
	return k;
}

static void remember(struct thread *t, struct file *file,
		     const struct flexmem_alloc *a)
{
	struct known k = { a->out_handle, a->out_address, a->out_size };
	unsigned int at;

	pthread_mutex_lock(&file->lock);
	at = file->nr_known < MAX_KNOWN ? file->nr_known++ :
					  rng_below(&t->rng, MAX_KNOWN);
	file->known[at] = k;
	pthread_mutex_unlock(&file->lock);
}

/*
 * Returns an address to which the kernel will write. Usually @size bytes are
 * mapped there.
 */
static uint64_t pointer(struct thread *t, uint64_t offset)
{
	uint64_t arena = (uintptr_t)t->arena;

	if (!rng_one_in(&t->rng, 12))
		return arena + offset;
	switch (rng_below(&t->rng, 5)) {
	case 0:
		return 0;
	case 1:
		return arena + ARENA - rng_below(&t->rng, 512);
	case 2:
		return arena + ARENA;
	case 3:
		return 0xffff888000000000ULL | rng_next(&t->rng) >> 20;
	default:
		return arena + offset + 1 + rng_below(&t->rng, 7);
	}
}

static uint64_t length(struct rng *rng)
{
	switch (rng_below(rng, 8)) {
	case 0:
		return 1 + rng_below(rng, 8 * MiB);
	case 1:
		return 1 + rng_below(rng, 64 * KiB);
	case 2:
	case 3:
	case 4:
		return VA_PAGE * (1 + rng_below(rng, 4));
	default:
		return 1 + rng_below(rng, 8 * KiB);
	}
}

static uint64_t limit(struct rng *rng)
{
	switch (rng_below(rng, 4)) {
	case 0:
		return FLEXMEM_NO_LIMIT;
	case 1:
		return rng_below(rng, 32 * MiB);
	case 2:
		return rng_below(rng, 8);
	default:
		return 0;
	}
}

/* Draws a random value that the command may accept. */
static uint64_t value(struct thread *t, const struct command *c,
		      const struct field *f, const struct known *k)
{
	struct rng *rng = &t->rng;

	switch (f->kind) {
	case SIZE:
		return c->size;
	case FLAGS:
		return rng_next(rng) & f->most;
	case HANDLE:
		return k->handle;
	case LENGTH:
		if (c->nr == FLEXMEM_CMD_ALLOC || !k->size)
			return length(rng);
		if (c->nr == FLEXMEM_CMD_RESIZE)
			return 1 + rng_next(rng) % (2 * k->size);
		return 1 + rng_next(rng) % k->size;
	case ALIGNMENT:
		/* Memory that begins at a page of a space can be bound. */
		if (rng_one_in(rng, 2))
			return VA_PAGE;
		return rng_one_in(rng, 3) ? 1ULL << rng_below(rng, 31) : 0;
	case OFFSET:
		return rng_one_in(rng, 2) || !k->size ? 0 :
			rng_next(rng) % k->size;
	case UNITS:
		return 128 * (rng_one_in(rng, 2) ? f->most :
			      f->most + rng_next(rng) % (1 + k->size / 128));
	case ENTRIES:
		return pointer(t, ENTRIES_AT + (f->offset > 32) * 128 * KiB);
	case DATA:
		return pointer(t, ENTRIES_AT);
	case ENTRY_SIZE:
		return c->entries ? entry_command(c->entries)->size : f->most;
	case COUNT:
		return rng_below(rng, c->entries ? 12 : 80);
	case VA:
		return VA_PAGE * (1 + rng_below(rng, 4));
	case VA_PAGES:
		return VA_PAGE * (rng_one_in(rng, 2) ? f->most :
				  f->most + rng_below(rng, 3));
	case CHOICE:
		return rng_below(rng, f->most + 1);
	case DOMAIN:
		return rng_below(rng, nr_memories + 1);
	case DOMAINS:
		return rng_below(rng, 1U << nr_memories);
	case ID:
		/*
		 * 1 is the id of the root cgroup, and the number of the first
		 * open file.
		 */
		return rng_below(rng, 3);
	case CGROUP:
		return rng_one_in(rng, 4) ? rng_below(rng, 3) : holder;
	case REGION_SIZE:
		return rng_one_in(rng, 2) ? 0 : REGION;
	case LIMIT:
		return limit(rng);
	default:
		return 0;
	}
}

static bool is_pointer(enum kind kind)
{
	return kind == ENTRIES || kind == DATA;
}

/*
 * Lets the other members of an ALLOC suit its policy. A few ALLOCs keep what was
 * drawn, which may be invalid.
 */
static void suit_policy(struct thread *t, struct flexmem_alloc *a)
{
	if (rng_one_in(&t->rng, 8))
		return;
	if (a->policy == FLEXMEM_POLICY_DEFAULT)
		a->domains = 0;
}

/* Gives most members valid values, because a nearly valid call gets further. */
static void fill(struct thread *t, const struct command *c, struct file *file,
		 char *to)
{
	struct known k = known(t, file);
	const struct field *f;
	uint64_t v;

	memset(to, 0, c->size);
	for (f = c->field; f->kind; f++) {
		if (f->kind == ADDRESS) {
			if (rng_one_in(&t->rng, 2))
				memcpy(to + f->offset, &k.address,
				       sizeof(k.address));
			continue;
		}
		v = value(t, c, f, &k);
		if (f->kind == HANDLE && f->most)
			v = known(t, file).handle;
		if (!is_pointer(f->kind) && rng_one_in(&t->rng, 40))
			v = interesting(&t->rng);
		memcpy(to + f->offset, &v, f->bytes);
	}
	if (c->nr == FLEXMEM_CMD_ALLOC)
		suit_policy(t, (struct flexmem_alloc *)to);
	/*
	 * Most FREEs name the memory either by address or by handle, and name
	 * no fence. A few FREEs keep all members, which is invalid.
	 */
	if (c->nr == FLEXMEM_CMD_FREE && !rng_one_in(&t->rng, 8)) {
		struct flexmem_free *a = (struct flexmem_free *)to;

		if (a->flags & FLEXMEM_FREE_BY_ADDRESS) {
			a->handle = 0;
			a->address = k.address;
		} else {
			memset(&a->address, 0, sizeof(a->address));
		}
	}
}

static void fill_entries(struct thread *t, const struct command *c,
			 struct file *file, char *arg)
{
	struct flexmem_batch *batch = (struct flexmem_batch *)arg;
	uint64_t room = ARENA - ENTRIES_AT - MAX_STRUCT;
	uint64_t at = batch->entries - (uintptr_t)t->arena;
	unsigned int i;

	if (at >= ARENA)
		return;
	for (i = 0; i < batch->count && i < 1024; i++) {
		at = batch->entries - (uintptr_t)t->arena +
		     (uint64_t)i * batch->entry_size;
		if (at > room)
			return;
		fill(t, entry_command(c->entries), file, t->arena + at);
	}
}

/* ---- the commands ---- */

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

static void learn(struct thread *t, const struct command *c, struct file *file,
		  const char *arg)
{
	const struct flexmem_batch *batch = (const void *)arg;
	const struct flexmem_alloc *a = (const void *)arg;
	unsigned int i;

	if (c->nr == FLEXMEM_CMD_ALLOC) {
		if (!a->out_handle)
			snprintf(t->wrong, sizeof(t->wrong),
				 "ALLOC succeeds without a handle");
		remember(t, file, a);
	}
	if (c->entries != ALLOC_ENTRIES ||
	    batch->entries != (uintptr_t)t->arena + ENTRIES_AT)
		return;
	for (i = 0; i < batch->out_done && i < 16; i++) {
		a = (const void *)(t->arena + ENTRIES_AT +
				   i * batch->entry_size);
		if (!a->out_error && a->out_handle)
			remember(t, file, a);
	}
}

static void call_command(struct thread *t, const struct command *c,
			 struct file *file)
{
	char *arg = t->arena + STRUCT_AT;
	unsigned long cmd = _IO(FLEXMEM_TYPE, c->nr);
	int error;

	/* Sometimes the end of the command's struct is not mapped. */
	if (rng_one_in(&t->rng, 32)) {
		char whole[MAX_STRUCT];
		unsigned int there = rng_below(&t->rng, c->size + 1);

		fill(t, c, file, whole);
		arg = t->arena + ARENA - there;
		memcpy(arg, whole, there);
	} else {
		memset(arg, 0, MAX_STRUCT);
		fill(t, c, file, arg);
		if (c->entries)
			fill_entries(t, c, file, arg);
	}
	error = fm_ioctl(file->fd, cmd, arg);
	if (!is_documented(error))
		snprintf(t->wrong, sizeof(t->wrong), "%s: %s", c->name,
			 strerror(error));
	if (error)
		return;
	atomic_fetch_add(&t->done[c->nr], 1);
	if (arg == t->arena + STRUCT_AT)
		learn(t, c, file, arg);
}

/* ---- maps ---- */

static __thread sigjmp_buf bus_return;

static void on_bus(int number)
{
	(void)number;
	siglongjmp(bus_return, 1);
}

void expect_sigbus(void)
{
	struct sigaction action = {
		.sa_handler = on_bus,
		.sa_flags = SA_NODEFER,
	};

	sigaction(SIGBUS, &action, NULL);
}

static void touch(struct thread *t, const struct mapping *m)
{
	volatile char *at = m->at + rng_below(&t->rng, m->size);

	if (sigsetjmp(bus_return, 0))
		return;
	if (rng_one_in(&t->rng, 2))
		*at = 1;
	else
		(void)*at;
}

static void unmap(struct mapping *m)
{
	if (m->at)
		munmap(m->at, m->size);
	m->at = NULL;
}

void thread_unmap_all(struct thread *t)
{
	unsigned int i;

	for (i = 0; i < MAX_MAPS; i++)
		unmap(&t->mapping[i]);
}

static void call_mmap(struct thread *t, struct file *file)
{
	struct mapping *m = &t->mapping[rng_below(&t->rng, MAX_MAPS)];
	struct flexmem_map map = CMD(map);
	struct known k = known(t, file);
	uint64_t offset;
	void *at;

	map.handle = k.handle;
	if (fm_ioctl(file->fd, FLEXMEM_IOCTL_MAP, &map))
		map.out_offset = interesting(&t->rng) & ~(PAGE - 1);
	offset = map.out_offset;
	if (rng_one_in(&t->rng, 8))
		offset += (rng_below(&t->rng, 64) - 32ULL) * PAGE;
	unmap(m);
	m->size = PAGE * (1 + rng_below(&t->rng, 8));
	if (!rng_one_in(&t->rng, 8) && map.out_size && m->size > map.out_size)
		m->size = map.out_size;
	at = mmap(NULL, m->size, PROT_READ | PROT_WRITE |
		  (rng_one_in(&t->rng, 16) ? PROT_EXEC : 0),
		  rng_one_in(&t->rng, 16) ? MAP_PRIVATE : MAP_SHARED,
		  file->fd, offset);
	if (at == MAP_FAILED)
		return;
	m->at = at;
	touch(t, m);
}

/* Reads an event without waiting, because there may never be one. */
static void call_read(struct thread *t, struct file *file)
{
	size_t size = rng_below(&t->rng, 64);
	ssize_t n;

	if (fcntl(file->fd, F_SETFL, O_NONBLOCK))
		return;
	n = read(file->fd, (void *)(uintptr_t)pointer(t, STRUCT_AT), size);
	if (n >= 0 ? n != FLEXMEM_EVENT_MIN || size < FLEXMEM_EVENT_MIN :
	    !is_documented(errno))
		snprintf(t->wrong, sizeof(t->wrong), "read of %zu: %zd, %s",
			 size, n, n < 0 ? strerror(errno) : "");
}

/* Makes a call other than the commands of the table. */
static void call_other(struct thread *t, struct file *file)
{
	struct mapping *m = &t->mapping[rng_below(&t->rng, MAX_MAPS)];
	char path[64], text[1024];

	switch (rng_below(&t->rng, 13)) {
	case 0:
		if (m->at)
			touch(t, m);
		break;
	case 1:
		if (m->at && m->size > PAGE) {
			munmap(m->at + PAGE, m->size - PAGE);
			m->size = PAGE;
		}
		break;
	case 2:
		unmap(m);
		break;
	case 3:
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", file->fd);
		get_text(path, text, sizeof(text));
		break;
	case 4:
		put_knob(rng_one_in(&t->rng, 2) ? "fail_commands" :
			 "drop_replies", rng_below(&t->rng, 2));
		break;
	case 5:
		if (rng_one_in(&t->rng, 20))
			put_knob(file->vf ? "vf1/reset" : "vf0/reset", 1);
		break;
	case 6:
		fm_ioctl(file->fd, rng_next(&t->rng), t->arena + STRUCT_AT);
		break;
	case 7:
		call_read(t, file);
		break;
	default:
		call_mmap(t, file);
	}
}

/* ---- a thread ---- */

void thread_setup(struct thread *t)
{
	t->arena = mmap(NULL, ARENA + GUARD, PROT_NONE, MAP_PRIVATE |
			MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t->arena == MAP_FAILED ||
	    mprotect(t->arena, ARENA, PROT_READ | PROT_WRITE))
		snprintf(t->wrong, sizeof(t->wrong), "no arena");
}

void thread_call(struct thread *t)
{
	struct file *file = &t->files[rng_below(&t->rng, NR_FILES)];
	unsigned int sum = 20, at, i;

	for (i = 0; i < nr_commands; i++)
		sum += commands[i].weight;
	at = rng_below(&t->rng, sum);
	for (i = 0; i < nr_commands && at >= commands[i].weight; i++)
		at -= commands[i].weight;
	if (i < nr_commands)
		call_command(t, &commands[i], file);
	else
		call_other(t, file);
	t->calls++;
}
