// SPDX-License-Identifier: GPL-2.0
/*
 * The commands. Each is called as the input says, and its answer is compared
 * with the prediction.
 */
#include "shim/internal.h"

#include "fuzz.h"
#include "ioctl.h"
#include "world.h"

/* Room for the longest struct, and for bytes behind the struct. */
#define ROOM (2 * FLEXMEM_MAX_STRUCT)

/*
 * Puts the mistake that f->spoil names into a struct. Returns the error that
 * must follow, or 0.
 */
static int spoil(struct fuzz *f, u32 *cmd, size_t size, u8 **at)
{
	u8 *window = *at;

	if (f->gone)
		return -ENODEV;
	switch (f->spoil) {
	case SHORT:
		/*
		 * A size below half of the present one. No version of a
		 * struct was that short.
		 */
		cmd[0] = fuzz_take(f) % (size / 2);
		return -EINVAL;
	case LONG:
		cmd[0] = size + fuzz_take(f);
		return 0;
	case LONG_WITH_MORE:
		cmd[0] = size + 1 + fuzz_take(f);
		window[cmd[0] - 1] = 1;
		return -E2BIG;
	case HUGE:
		cmd[0] = FLEXMEM_MAX_STRUCT + 1 + fuzz_take(f);
		return -E2BIG;
	case NOWHERE:
		*at = (u8 *)(8ul * fuzz_take(f));
		return -EFAULT;
	case CUT:
		*at += NATIVE_USER_SIZE - PAGE_SIZE;
		*at -= fuzz_take(f) % size / 8 * 8;
		return -EFAULT;
	case FLAG:
		cmd[1] |= 1u << 31;
		return -EOPNOTSUPP;
	case LATE:
		*at += NATIVE_USER_READ_ONLY;
		f->late = true;
		return 0;
	default:
		return 0;
	}
}

/* The members of each struct that the driver fills. */
#define OUT(number, type, first, last) {			\
	FLEXMEM_CMD_##number, offsetof(struct type, first),	\
	offsetofend(struct type, last) }

static const struct {
	unsigned int nr;
	size_t start;
	size_t end;
} outs[] = {
	OUT(INFO, flexmem_info, out_mode, out_max_batch),
	OUT(INFO, flexmem_info, out_alignment, out_va_length),
	OUT(ALLOC, flexmem_alloc, out_handle, out_regions),
	OUT(ALLOC, flexmem_alloc, out_leaving, out_refusal),
	OUT(FREE, flexmem_free, out_error, out_error),
	OUT(ALLOC_BATCH, flexmem_batch, out_done, out_done),
	OUT(FREE_BATCH, flexmem_batch, out_done, out_done),
	OUT(LOOKUP, flexmem_lookup, out_flags, out_size),
	OUT(LOOKUP, flexmem_lookup, out_count, out_count),
	OUT(LOOKUP, flexmem_lookup, out_map_offset, out_map_offset),
	OUT(SEGMENTS, flexmem_segments, out_count, out_count),
	OUT(SEGMENTS, flexmem_segments, out_generation, out_generation),
	OUT(TRIM, flexmem_trim, out_regions, out_regions),
	OUT(TRIM, flexmem_trim, out_bytes, out_bytes),
	OUT(READ, flexmem_rw, out_done, out_done),
	OUT(WRITE, flexmem_rw, out_done, out_done),
	OUT(COPY, flexmem_copy, out_done, out_done),
	OUT(SNAPSHOT, flexmem_snapshot, out_region_count, out_failures),
	OUT(SET_LIMIT, flexmem_resource_limit, out_limit, out_used),
	OUT(RESIZE, flexmem_resize, out_reason, out_reason),
	OUT(RESIZE, flexmem_resize, out_size, out_refusal),
	OUT(RESERVE, flexmem_reserve, out_reason, out_reason),
	OUT(DOMAIN, flexmem_domain_info, out_flags, out_next),
	OUT(VA_RESERVE, flexmem_va_reserve, out_address, out_largest_free),
	OUT(VA_LOOKUP, flexmem_va_lookup, out_handle, out_handle),
	OUT(VA_LOOKUP, flexmem_va_lookup, out_chunk, out_length),
};

/* A value that the driver never replies with. */
#define POISON 0xa5c35a3cu

static void poison(unsigned int nr, void *cmd)
{
	unsigned int i;
	size_t at;

	for (i = 0; i < ARRAY_SIZE(outs); i++)
		for (at = outs[i].start; outs[i].nr == nr && at < outs[i].end;
		     at += sizeof(u32))
			*(u32 *)(cmd + at) = POISON;
}

/*
 * After a success the driver must have written every output member. After an
 * error it need not have written all.
 */
static void check_poison(struct fuzz *f, unsigned int nr, void *cmd, long rc)
{
	unsigned int i;
	size_t at;

	for (i = 0; i < ARRAY_SIZE(outs); i++)
		for (at = outs[i].start; outs[i].nr == nr && at < outs[i].end;
		     at += sizeof(u32)) {
			u32 *word = cmd + at;

			if (*word != POISON)
				continue;
			if (!rc)
				SAME(f, at, 0);
			*word = 0;
		}
}

/**
 * fuzz_call - call a command of the current file
 * @f: input
 * @nr: number of the command
 * @arg: struct of the command; receives the reply
 * @size: size of the struct
 * @rc: receives the answer
 *
 * Return: true if the command was carried out; false if the driver refused its
 * struct, as it must.
 */
bool fuzz_call(struct fuzz *f, unsigned int nr, void *arg, size_t size,
	       long *rc)
{
	struct file *file = f->files[f->who].file;
	u8 *at = native_user();
	u8 copy[256] = {};
	int refused;

	memset(at, 0, ROOM);
	memcpy(copy, arg, size);
	poison(nr, copy);
	refused = spoil(f, (u32 *)copy, size, &at);
	if (f->spoil != NOWHERE)
		memcpy(at, copy, size);
	/* Any user may call: a file keeps the rights of its opener. */
	current->cred.uid = KUIDT_INIT(FUZZ_UID + f->spoil % 5);
	native_cgroup_move(fuzz_cgroup[f->spoil % FUZZ_CGROUPS]);
	current->cred.admin = fuzz_is_admin(f->who);
	*rc = native_ioctl(file, _IO(FLEXMEM_TYPE, nr), at);
	if (f->spoil != NOWHERE) {
		memcpy(arg, at, size);
		check_poison(f, nr, arg, *rc);
	}
	if (refused)
		SAME(f, *rc, refused);
	return !refused;
}

/* Compares the result of a command that also writes a reply when it fails. */
void fuzz_answer(struct fuzz *f, long rc, int want)
{
	SAME(f, rc, f->late ? -EFAULT : want);
}

/* ---- files ---- */

struct cgroup *fuzz_cgroup[FUZZ_CGROUPS];

/* Opens a file with the user and the cgroup of file @i. */
static struct file *open_as(struct fuzz *f, unsigned int i, bool admin)
{
	current->cred.uid = KUIDT_INIT(fuzz_uid_of(i));
	current->cred.admin = admin;
	native_cgroup_move(fuzz_cgroup[i % FUZZ_CGROUPS]);
	return native_open(f->minor, O_RDWR | O_NONBLOCK);
}

void fuzz_open(struct fuzz *f, unsigned int i)
{
	struct fuzz_file *file = &f->files[i];
	bool may;

	if (f->gone)
		return;
	may = fuzz_may_open(f, i);
	/* Only an administrator may open a PF. */
	file->file = open_as(f, i, true);
	SAME(f, PTR_ERR_OR_ZERO(file->file), may ? 0 : -EMFILE);
	if (!may) {
		file->file = NULL;
		return;
	}
	fuzz_need_cgroup(f, fuzz_leaf_of(i));
	fuzz_new_owner(f, i);
	file->next_handle = 1;
	file->freed = 0;
}

void fuzz_close(struct fuzz *f, unsigned int i)
{
	struct fuzz_allocation *a = f->allocation;

	if (!f->files[i].file || !fuzz_can_close_space(f, i))
		return;
	fuzz_unmap_all(f, i);
	fuzz_end_jobs(f);
	native_close(f->files[i].file);
	f->files[i].file = NULL;
	fuzz_close_space(f, i);
	while (a < f->allocation + f->nr) {
		if (a->file != i)
			a++;
		else
			fuzz_free(f, a);
	}
	f->owner[i].there = false;
	fuzz_forget_cgroups(f);
}

static void close_file(struct fuzz *f)
{
	fuzz_close(f, f->who);
}

/*
 * Opens another file for a moment: on a VF as the same user, on a PF as a user
 * without rights.
 */
static void open_another(struct fuzz *f)
{
	struct file *file;
	int want = 0;

	if (f->gone)
		want = -ENXIO;
	else if (f->model->mode == FLEXMEM_MODE_PF && !(f->spoil & 1) &&
		 f->settings.pf_open != FLEXMEM_PF_OPEN_MODE)
		want = -EPERM;
	else if (!fuzz_may_open(f, f->who))
		want = -EMFILE;
	file = open_as(f, f->who, f->spoil & 1);
	SAME(f, PTR_ERR_OR_ZERO(file), want);
	if (want)
		return;
	f->last_id++;
	native_close(file);
}

/*
 * The weights add up to 256, the number of values of a byte. The corpus depends
 * on the order of the rows.
 */
static const struct {
	const char *name;
	void (*run)(struct fuzz *f);
	unsigned int weight;
} commands[] = {
	{ "ALLOC", fuzz_alloc, 42 },
	{ "space", fuzz_space, 16 },
	{ "RESERVE", fuzz_reserve, 4 },
	{ "DOMAIN", fuzz_domain, 1 },
	{ "COPY", fuzz_copy_range, 3 },
	{ "unregister", fuzz_unregister, 1 },
	{ "fdinfo", fuzz_fdinfo, 1 },
	{ "open", open_another, 2 },
	{ "FREE", fuzz_do_free, 40 },
	{ "RESIZE", fuzz_resize, 25 },
	{ "LOOKUP", fuzz_lookup, 5 },
	{ "ALLOC_BATCH", fuzz_alloc_batch, 10 },
	{ "FREE_BATCH", fuzz_free_batch, 7 },
	{ "SET_LIMIT", fuzz_set_limit, 22 },
	{ "fault", fuzz_fault, 6 },
	{ "job", fuzz_job, 4 },
	{ "TRIM", fuzz_trim, 7 },
	{ "hold", fuzz_hold, 5 },
	{ "time", fuzz_time, 4 },
	{ "sleep", fuzz_sleep, 1 },
	{ "capacity", fuzz_capacity, 4 },
	{ "reset", fuzz_reset, 2 },
	{ "failed", fuzz_failed, 1 },
	{ "mmap", fuzz_mmap, 6 },
	{ "use of a map", fuzz_use_map, 8 },
	{ "READ", fuzz_read, 4 },
	{ "WRITE", fuzz_write, 4 },
	{ "read", fuzz_event, 4 },
	{ "SEGMENTS", fuzz_segments, 2 },
	{ "SNAPSHOT", fuzz_snapshot, 8 },
	{ "INFO", fuzz_info, 1 },
	{ "no command", fuzz_no_command, 4 },
	{ "close", close_file, 2 },
};

/**
 * fuzz_check_weights - stop unless each value of a byte chooses a command
 */
void fuzz_check_weights(void)
{
	unsigned int i, sum = 0;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		sum += commands[i].weight;
	if (sum != 256)
		shim_bug("the weights of the commands add up to %u, not 256",
			 sum);
}

/**
 * fuzz_command - carry out the next command of an input
 * @f: input
 *
 * Two bytes select the command and the file.
 */
void fuzz_command(struct fuzz *f)
{
	unsigned int i, n, who;
	unsigned long now = jiffies;
	bool faulty = f->faulty;

	n = fuzz_take(f);
	for (i = 0; n >= commands[i].weight; i++)
		n -= commands[i].weight;
	f->name = commands[i].name;
	who = fuzz_take(f);
	f->who = who % 8 % FUZZ_FILES;
	f->spoil = who / 8;
	f->late = false;
	if (f->files[f->who].file)
		commands[i].run(f);
	else
		fuzz_open(f, f->who);
	/* An injected fault ends with its command. */
	if (faulty)
		fuzz_heal(f);
	native_quiesce();
	if (jiffies != now)
		fuzz_follow_scrubs(f);
}
