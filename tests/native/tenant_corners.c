// SPDX-License-Identifier: GPL-2.0
/*
 * Corner cases of tenants: who owns bytes, and for whom regions are reserved.
 */
#include "corners.h"

static u8 bytes[200000];

/* ---- the owner of bytes ---- */

struct visit {
	struct cgroup *cgroup;
	unsigned int uid;
	struct file *file;
	struct run *run;
	u8 before;
	u8 after;
	struct completion done;
};

/*
 * In its cgroup, a task allocates memory, checks that it contains only zeroes
 * and bytes of value @before, writes @after and frees it.
 */
static int do_visit(void *data)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = sizeof(bytes));
	struct visit *visit = data;
	struct flexmem_rw copy;
	size_t i;

	native_cgroup_move(visit->cgroup);
	current->cred.uid = KUIDT_INIT(visit->uid);
	if (!visit->file)
		visit->file = native_open(world_minor(1), O_RDWR);
	else
		native_file_get(visit->file);
	native_ioctl(visit->file, FLEXMEM_IOCTL_ALLOC, &cmd);
	copy = CMD(rw, .handle = cmd.out_handle, .length = sizeof(bytes),
		   .data = (uintptr_t)bytes);
	native_ioctl(visit->file, FLEXMEM_IOCTL_READ, &copy);
	must(visit->run, copy.out_done == sizeof(bytes), "read");
	for (i = 0; i < sizeof(bytes) && !visit->run->wrong; i++)
		must(visit->run, !bytes[i] || bytes[i] == visit->before,
		     "bytes of the owner");
	memset(bytes, visit->after, sizeof(bytes));
	native_ioctl(visit->file, FLEXMEM_IOCTL_WRITE, &copy);
	native_ioctl(visit->file, FLEXMEM_IOCTL_FREE,
		     &CMD(free, .handle = cmd.out_handle));
	native_close(visit->file);
	complete(&visit->done);
	return 0;
}

/*
 * Lets another task allocate, through @file. If @file is NULL, the task opens a
 * file.
 */
static void send_visitor(struct run *r, struct cgroup *cgroup,
			 unsigned int uid, struct file *file, u8 before,
			 u8 after)
{
	struct visit visit = {
		.run = r, .cgroup = cgroup, .uid = uid, .file = file,
		.before = before, .after = after,
	};

	init_completion(&visit.done);
	native_kthread_run(do_visit, &visit, "visitor");
	wait_for_completion(&visit.done);
}

/* The owner of bytes is a user in a cgroup, fixed when the file is opened. */
static void run_identity(struct run *r)
{
	struct cgroup *a = native_cgroup_make(native_cgroup_root);
	struct cgroup *b = native_cgroup_make(a);
	struct file *file;

	native_cgroup_move(a);
	current->cred.uid = KUIDT_INIT(1);
	file = native_open(world_minor(1), O_RDWR);
	native_cgroup_move(b);
	/* A child inherits the file. A stranger gets the file over a socket. */
	send_visitor(r, a, 1, file, 0, 1);
	send_visitor(r, b, 2, file, 1, 2);
	send_visitor(r, a, 1, NULL, 2, 3);
	send_visitor(r, b, 1, file, 3, 4);
	/*
	 * A file that is opened in another cgroup or by another user has
	 * another owner.
	 */
	send_visitor(r, b, 1, NULL, 0, 5);
	send_visitor(r, b, 1, NULL, 5, 6);
	send_visitor(r, b, 2, NULL, 0, 7);
	send_visitor(r, a, 2, NULL, 0, 8);
	send_visitor(r, b, 1, file, 0, 9);
	/*
	 * A new cgroup is not the same owner as a removed cgroup of the same
	 * name.
	 */
	native_cgroup_move(native_cgroup_root);
	native_close(file);
	native_cgroup_remove(b);
	b = native_cgroup_make(a);
	send_visitor(r, b, 1, NULL, 0, 10);
	native_cgroup_remove(b);
	native_cgroup_remove(a);
	current->cred.uid = KUIDT_INIT(0);
	/*
	 * Unbinding forgets the owners, which would otherwise look like leaks.
	 */
	WARN_ON(world_unbind(1));
}

/* The region size that the driver tries first. */
static u64 region_size(struct run *r)
{
	struct flexmem_info info = CMD(info);

	CALL(r, INFO, &info);
	return info.out_fallback_sizes[0];
}

static u32 reserve(struct run *r, struct cgroup *cgroup, u64 length, u32 count,
		   int error)
{
	struct flexmem_reserve cmd = CMD(reserve, .cgroup = cgroup_id(cgroup),
					 .length = length, .count = count,
					 .out_reason = 99);

	FAILS(r, RESERVE, &cmd, error);
	return cmd.out_reason;
}

/* A command that is refused for its arguments writes no reply. */
static void run_reserve_arguments(struct run *r)
{
	struct cgroup *cgroup = native_cgroup_make(native_cgroup_root);
	u64 size = region_size(r);

	must(r, reserve(r, cgroup, size - 1, 1, EINVAL) == 99, "odd size");
	must(r, reserve(r, cgroup, size, 0, EINVAL) == 99, "size of nothing");
	must(r, reserve(r, native_cgroup_root, size, 1, EINVAL) == 99, "root");
	current->cred.admin = false;
	must(r, reserve(r, cgroup, size, 1, EPERM) == 99, "user");
	current->cred.admin = true;
	FAILS(r, RESERVE, &CMD(reserve, .cgroup = 1ull << 32), ENOENT);
	must(r, reserve(r, cgroup, size, 1000, ENOMEM), "reason");
	must(r, reserve(r, cgroup, size, 1, 0) == FLEXMEM_REASON_NONE,
	     "no reason");
	native_cgroup_remove(cgroup);
}

struct guest {
	struct cgroup *cgroup;
	struct run *run;
	struct flexmem_alloc cmd;
	struct world_own own;
	struct flexmem_domain_info all;
	struct completion done;
};

static int be_guest(void *data)
{
	struct guest *guest = data;
	struct file *file;

	native_cgroup_move(guest->cgroup);
	file = native_open(world_minor(1), O_RDWR);
	native_ioctl(file, FLEXMEM_IOCTL_SNAPSHOT, &guest->own.cmd);
	native_ioctl(file, FLEXMEM_IOCTL_DOMAIN, &guest->all);
	native_ioctl(file, FLEXMEM_IOCTL_ALLOC, &guest->cmd);
	native_close(file);
	complete(&guest->done);
	return 0;
}

/* Lets a task in a cgroup read how much is free, and try an ALLOC. */
static struct guest send_guest(struct run *r, struct cgroup *cgroup)
{
	struct guest guest = {
		.cgroup = cgroup, .run = r,
		.all = CMD(domain_info, .domain = FLEXMEM_DOMAIN_ALL),
		.cmd = CMD(alloc, .length = 128),
	};

	world_own(&guest.own);
	init_completion(&guest.done);
	native_kthread_run(be_guest, &guest, "guest");
	wait_for_completion(&guest.done);
	return guest;
}

/*
 * All regions are reserved for one cgroup, so only this cgroup and those below
 * it get memory.
 */
static void run_reserved(struct run *r)
{
	struct cgroup *a = native_cgroup_make(native_cgroup_root);
	struct cgroup *below = native_cgroup_make(a);
	struct cgroup *b = native_cgroup_make(native_cgroup_root);
	u64 size = region_size(r);
	struct guest guest;
	u32 nr = 0;

	while (!r->wrong && nr < 64 &&
	       !native_ioctl(r->file[0], FLEXMEM_IOCTL_RESERVE,
			     &CMD(reserve, .cgroup = cgroup_id(a),
				  .length = size, .count = nr + 1)))
		nr++;
	must(r, nr, "no region can be reserved");
	guest = send_guest(r, below);
	must(r, !guest.cmd.out_error, "below");
	must(r, guest.own.cmd.out_free == nr * size &&
	     guest.own.cmd.out_total == nr * size, "free for those below");
	must(r, guest.all.out_free == nr * size &&
	     guest.all.out_tensor_largest == size && !guest.all.out_reserved &&
	     !guest.all.out_reserved_total, "domains of those below");
	guest = send_guest(r, b);
	must(r, guest.cmd.out_error == ENOMEM &&
	     guest.cmd.out_reason == FLEXMEM_REASON_RESERVED, "others");
	must(r, !guest.own.cmd.out_free, "free for others");
	must(r, guest.all.out_total == nr * size && !guest.all.out_free &&
	     !guest.all.out_largest_free && !guest.all.out_tensor_largest,
	     "domains of others");
	must(r, guest.all.out_reserved == nr * size &&
	     guest.all.out_reserved_total == nr * size, "reserved for others");
	native_cgroup_remove(below);
	native_cgroup_remove(a);
	guest = send_guest(r, b);
	must(r, !guest.cmd.out_error, "after the end of the cgroup");
	native_cgroup_remove(b);
	/*
	 * Unbinding forgets the owners, which would otherwise look like leaks.
	 */
	WARN_ON(world_unbind(1));
}

/* An entry of the administrator's list of owners. */
static struct flexmem_owner_entry owner_of(struct run *r, u32 kind, u64 id)
{
	struct flexmem_region_entry region[FLEXMEM_MAX_SLOTS];
	struct flexmem_owner_entry owner[8] = {};
	struct flexmem_snapshot cmd = CMD(snapshot,
		.region_entry_size = sizeof(*region),
		.region_count = ARRAY_SIZE(region),
		.regions = (uintptr_t)region,
		.owner_entry_size = sizeof(*owner),
		.owner_count = ARRAY_SIZE(owner),
		.owners = (uintptr_t)owner);
	unsigned int i;

	CALL(r, SNAPSHOT, &cmd);
	for (i = 0; i < ARRAY_SIZE(owner); i++)
		if (owner[i].kind == kind && owner[i].id == id)
			return owner[i];
	must(r, false, "the owner is listed");
	return (struct flexmem_owner_entry) {};
}

static u32 flags_of(struct run *r, u64 cgroup)
{
	return owner_of(r, FLEXMEM_OWNER_CGROUP, cgroup).flags;
}

struct opener {
	struct run *run;
	struct completion done;
};

static int open_and_wait(void *data)
{
	struct opener *opener = data;

	open_file(opener->run, 1);
	complete(&opener->done);
	while (!kthread_should_stop())
		schedule();
	return 0;
}

/* The number of a process that has ended may be that of another one. */
static void run_ended_opener(struct run *r)
{
	struct opener opener = { .run = r };
	const struct flexmem_file *file = NULL;
	struct task_struct *task;
	int pid;

	init_completion(&opener.done);
	task = native_kthread_run(open_and_wait, &opener, "opener");
	pid = pid_vnr(task->pid);
	wait_for_completion(&opener.done);
	if (r->file[1])
		file = r->file[1]->private_data;
	if (file)
		must(r, owner_of(r, FLEXMEM_OWNER_CLIENT,
				 file->client.account->id).pid == pid,
		     "the opener of a file");
	kthread_stop(task);
	if (file)
		must(r, !owner_of(r, FLEXMEM_OWNER_CLIENT,
				  file->client.account->id).pid,
		     "the opener of a file has ended");
}

static void run_removed(struct run *r)
{
	struct cgroup *cgroup = native_cgroup_make(native_cgroup_root);
	struct flexmem_alloc cmd = CMD(alloc, .length = 129);
	u64 id = cgroup_id(cgroup);
	bool limited;

	native_cgroup_move(cgroup);
	open_file(r, 1);
	native_cgroup_move(native_cgroup_root);
	limited = CALL(r, SET_LIMIT, &CMD(resource_limit, .cgroup = id,
					  .resource = FLEXMEM_RESOURCE_BYTES,
					  .limit = 128));
	must(r, !flags_of(r, id), "flags before the removal");
	native_cgroup_remove(cgroup);
	must(r, flags_of(r, id) == FLEXMEM_OWNER_REMOVED,
	     "flags after the removal");
	/* The limit holds, also when a later open() lets the account go. */
	native_close(native_open(world_minor(1), O_RDWR));
	if (limited && BY(r, 1, ALLOC, &cmd, ENOMEM))
		must(r, cmd.out_reason == FLEXMEM_REASON_CGROUP_LIMIT,
		     "reason of an ALLOC beyond the limit");
	WARN_ON(world_unbind(1));
}

/* Sets a limit for each function, through the file on function 1. */
static void limit_all(struct run *r, u32 scope, struct cgroup *cgroup,
		      u32 resource, u64 limit)
{
	CALL(r, SET_LIMIT, &CMD(resource_limit, .scope = scope,
				.flags = FLEXMEM_LIMIT_ALL_FUNCTIONS,
				.cgroup = cgroup ? cgroup_id(cgroup) : 0,
				.resource = resource, .limit = limit));
}

/* The limit that a file has which is opened in a cgroup. */
static u64 limit_in(unsigned int function, struct cgroup *cgroup, u32 resource)
{
	struct world_own own;
	struct file *file;

	native_cgroup_move(cgroup);
	file = native_open(world_minor(function), O_RDWR);
	native_cgroup_move(native_cgroup_root);
	if (IS_ERR(file))
		return PTR_ERR(file);
	world_own(&own);
	native_ioctl(file, FLEXMEM_IOCTL_SNAPSHOT, &own.cmd);
	native_close(file);
	return own.owner[0].limit[resource];
}

#define HANDLES FLEXMEM_RESOURCE_HANDLES
#define FILES FLEXMEM_RESOURCE_FILES
#define BYTES FLEXMEM_RESOURCE_BYTES

static void bind_again(unsigned int function)
{
	world_unbind(function);
	WARN_ON(world_bind(function));
}

/*
 * A limit that is set for all functions also holds on a function that is bound
 * later, from its first open() on.
 */
static void run_all_functions(struct run *r)
{
	struct cgroup *a = native_cgroup_make(native_cgroup_root);
	struct cgroup *b = native_cgroup_make(a);
	unsigned int i;

	limit_all(r, FLEXMEM_SCOPE_CGROUP, a, HANDLES, 5);
	limit_all(r, FLEXMEM_SCOPE_DEFAULT, NULL, BYTES, SZ_4M);
	CALL(r, SET_LIMIT, &CMD(resource_limit, .cgroup = cgroup_id(a),
				.resource = HANDLES, .limit = 7));
	must(r, limit_in(1, a, HANDLES) == 7, "limit of one function");
	for (i = 0; i < 2; i++) {
		must(r, limit_in(2, a, HANDLES) == 5, "limit of a cgroup");
		must(r, limit_in(2, a, BYTES) == FLEXMEM_NO_LIMIT, "no limit");
		must(r, limit_in(2, b, HANDLES) == FLEXMEM_DEFAULT_HANDLES,
		     "first default limit");
		must(r, limit_in(2, b, BYTES) == SZ_4M, "default limit");
		bind_again(2);
	}
	world_unbind(2);
	limit_all(r, FLEXMEM_SCOPE_CGROUP, a, HANDLES, 4);
	must(r, limit_in(1, a, HANDLES) == 4, "limit that is set last");
	WARN_ON(world_bind(2));
	must(r, limit_in(2, a, HANDLES) == 4, "limit of a later function");
	limit_all(r, FLEXMEM_SCOPE_CGROUP, a, HANDLES, FLEXMEM_NO_LIMIT);
	limit_all(r, FLEXMEM_SCOPE_DEFAULT, NULL, BYTES, FLEXMEM_NO_LIMIT);
	bind_again(2);
	for (i = 1; i < 3; i++)
		must(r, limit_in(i, a, HANDLES) == FLEXMEM_NO_LIMIT &&
		     limit_in(i, b, FILES) == FLEXMEM_DEFAULT_FILES &&
		     limit_in(i, b, BYTES) == FLEXMEM_NO_LIMIT,
		     "limits that were removed");
	native_cgroup_remove(b);
	native_cgroup_remove(a);
	/* Unbinding forgets the owners. */
	bind_again(2);
	WARN_ON(world_unbind(1));
}

/* The next command, or the next function, drops limits of removed cgroups. */
static void run_all_removed(struct run *r)
{
	struct cgroup *a = native_cgroup_make(native_cgroup_root);
	long live = native_live();

	limit_all(r, FLEXMEM_SCOPE_CGROUP, a, HANDLES, 5);
	native_cgroup_remove(a);
	must(r, native_live() > live, "a limit keeps its cgroup");
	limit_all(r, FLEXMEM_SCOPE_DEFAULT, NULL, BYTES, FLEXMEM_NO_LIMIT);
	must(r, native_live() <= live, "objects after the next command");

	live = native_live();
	a = native_cgroup_make(native_cgroup_root);
	limit_all(r, FLEXMEM_SCOPE_CGROUP, a, HANDLES, 5);
	native_cgroup_remove(a);
	/* Function 1 forgets at the next open(). */
	native_close(native_open(world_minor(1), O_RDWR));
	bind_again(0);
	bind_again(2);
	must(r, native_live() == live, "objects after the next function");
}

/* No function has the limit if the caller may not set it. */
static void run_all_refused(struct run *r)
{
	struct flexmem_resource_limit cmd = CMD(resource_limit,
		.flags = FLEXMEM_LIMIT_ALL_FUNCTIONS, .limit = 5,
		.resource = HANDLES, .cgroup = cgroup_id(native_cgroup_root));

	current->cred.admin = false;
	FAILS(r, SET_LIMIT, &cmd, EPERM);
	current->cred.admin = true;
	cmd.cgroup = 1ULL << 32;
	FAILS(r, SET_LIMIT, &cmd, ENOENT);
	cmd.cgroup = cgroup_id(native_cgroup_root);
	cmd.resource = FILES;
	FAILS(r, SET_LIMIT, &cmd, EINVAL);
	must(r, limit_in(2, native_cgroup_root, HANDLES) == FLEXMEM_NO_LIMIT,
	     "limit that was refused");
	bind_again(2);
}

/*
 * A limit of all functions fails for lack of kernel memory. Then the reply does
 * not say that the limit is set.
 */
static void run_all_short(struct run *r)
{
	struct flexmem_resource_limit cmd;
	struct cgroup *cgroup;
	unsigned int n = 0;
	bool failed;
	long rc;

	do {
		cgroup = native_cgroup_make(native_cgroup_root);
		cmd = CMD(resource_limit, .resource = HANDLES, .limit = 5,
			  .flags = FLEXMEM_LIMIT_ALL_FUNCTIONS,
			  .cgroup = cgroup_id(cgroup));
		current->fail_at = ++n;
		rc = native_ioctl(r->file[0], FLEXMEM_IOCTL_SET_LIMIT, &cmd);
		failed = !current->fail_at;
		current->fail_at = 0;
		/* A fault may be a reply that cannot be written. */
		must(r, failed ? rc == -ENOMEM || rc == -EFAULT : !rc, "result");
		must(r, cmd.out_limit == (rc ? 0 : 5), "reply");
		must(r, limit_in(2, cgroup, HANDLES) ==
		     (rc ? FLEXMEM_NO_LIMIT : 5), "limit");
		native_cgroup_remove(cgroup);
	} while (failed);
	/* One account for this function, and one for the others. */
	must(r, n > 2, "allocations that failed");
	WARN_ON(world_unbind(1));
}

/* Levels below the root at which a cgroup has an account. */
#define DEEPEST FLEXMEM_MAX_DEPTH

/*
 * A cgroup that is too deep to have an account gets no limit and no region. Its
 * files have the limits of the deepest ancestor with an account.
 */
static void run_deep(struct run *r)
{
	struct cgroup *at[DEEPEST + 2] = { native_cgroup_root };
	struct flexmem_resource_limit cmd = CMD(resource_limit,
		.resource = HANDLES, .limit = 5);
	u64 size = region_size(r);
	unsigned int i;

	for (i = 1; i < ARRAY_SIZE(at); i++)
		at[i] = native_cgroup_make(at[i - 1]);
	cmd.cgroup = cgroup_id(at[DEEPEST + 1]);
	FAILS(r, SET_LIMIT, &cmd, EINVAL);
	must(r, reserve(r, at[DEEPEST + 1], size, 1, EINVAL) == 99, "too deep");
	cmd.cgroup = cgroup_id(at[DEEPEST]);
	CALL(r, SET_LIMIT, &cmd);
	reserve(r, at[DEEPEST], size, 1, 0);
	must(r, limit_in(1, at[DEEPEST + 1], HANDLES) == 5,
	     "limit of the ancestor");
	for (i = DEEPEST + 1; i; i--)
		native_cgroup_remove(at[i]);
	/* Unbinding forgets the owners. */
	WARN_ON(world_unbind(1));
}

static void prepare_file(struct run *r)
{
	open_file(r, 0);
}

/*
 * DOMAIN tells regions for programs from those for tensors. If no slots are set
 * aside, programs and tensors share regions.
 */
static void run_programs(struct run *r)
{
	struct flexmem_region_entry region[8];
	struct flexmem_snapshot regions = CMD(snapshot, .region_count = 8,
		.region_entry_size = sizeof(region[0]),
		.regions = (uintptr_t)region,
		.owner_entry_size = sizeof(struct flexmem_owner_entry));
	struct flexmem_domain_info is = CMD(domain_info);
	struct flexmem_info info = CMD(info);
	u64 largest[2] = {};
	unsigned int i, of;

	alloc(r, 0, SZ_2M, FLEXMEM_ALLOC_PROGRAM);
	CALL(r, INFO, &info);
	CALL(r, SNAPSHOT, &regions);
	CALL(r, DOMAIN, &is);
	for (i = 0; i < regions.out_region_count; i++) {
		of = !!(region[i].flags & FLEXMEM_REGION_PROGRAM);
		largest[of] = max(largest[of], region[i].largest_free);
	}
	if (info.out_program_slots)
		must(r, is.out_program_total == SZ_8M &&
		     is.out_program_free == SZ_8M - SZ_2M &&
		     is.out_program_largest == SZ_8M - SZ_2M,
		     "figures of programs");
	else
		must(r, !is.out_program_total && !is.out_program_free &&
		     !is.out_program_largest, "programs without a region");
	must(r, is.out_tensor_largest == largest[0],
	     "the largest free block for tensors");
}

/* ---- requests for more than there is ---- */

/* The run in which another tenant allocates directly after the next charge. */
static struct run *neighbour;

typeof(flexmem_charge) __real_flexmem_charge, __wrap_flexmem_charge;

/* The linker redirects calls of flexmem_charge() to this function (--wrap). */
enum flexmem_reason __wrap_flexmem_charge(struct flexmem_account *client,
					  u64 size, unsigned int handles,
					  struct flexmem_refused *refused)
{
	struct run *r = neighbour;
	enum flexmem_reason reason;

	reason = __real_flexmem_charge(client, size, handles, refused);
	neighbour = NULL;
	if (r)
		alloc(r, 1, SZ_2M, 0);
	return reason;
}

/*
 * A tenant that asks for nearly all bytes there can be does not make an ALLOC of
 * another tenant fail, not even for a moment.
 */
static void run_greedy(struct run *r)
{
	const u64 most = U64_MAX - SZ_1M;
	struct flexmem_resize resize = CMD(resize, .length = most,
					   .handle = r->handle[0][0]);
	struct flexmem_alloc cmd = CMD(alloc, .length = most);
	struct flexmem_file *file = r->file[0]->private_data;

	open_file(r, 1);
	neighbour = r;
	FAILS(r, RESIZE, &resize, EAGAIN);
	/* The capacity may have changed, but not the sizes of regions. */
	flexmem_table_outdate(&file->fdev->table);
	neighbour = r;
	FAILS(r, ALLOC, &cmd, ENOMEM);
	must(r, cmd.out_reason == FLEXMEM_REASON_REGION_SIZE, "reason");
	neighbour = NULL;
}

/* What happens directly after the next free, before the free returns. */
static struct run *waiting;
static void (*after_free)(struct run *r);

void run_after_free(struct run *r, void (*call)(struct run *r))
{
	after_free = call;
	WRITE_ONCE(waiting, r);
}

/* Whether the planned call was made. Forgets it if it was not. */
bool ran_after_free(void)
{
	bool ran = !READ_ONCE(waiting);

	WRITE_ONCE(waiting, NULL);
	return ran;
}

typeof(flexmem_pressure_tell_free) __real_flexmem_pressure_tell_free,
			       __wrap_flexmem_pressure_tell_free;

/* The linker redirects calls of flexmem_pressure_tell_free() to this function. */
void __wrap_flexmem_pressure_tell_free(struct flexmem_accounts *accounts)
{
	struct run *r = READ_ONCE(waiting);

	__real_flexmem_pressure_tell_free(accounts);
	if (!r)
		return;
	WRITE_ONCE(waiting, NULL);
	after_free(r);
}

static void limit_handles(struct run *r, u64 limit)
{
	CALL(r, SET_LIMIT, &CMD(resource_limit, .resource = HANDLES,
				.cgroup = cgroup_id(native_cgroup_root),
				.limit = limit));
}

static void alloc_as_other(struct run *r)
{
	alloc(r, 1, 128, 0);
}

/*
 * A tenant that may have no more handles can allocate as soon as the FREE of
 * another tenant counts, even before that FREE returns.
 */
static void run_early(struct run *r)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = 128);

	open_file(r, 1);
	limit_handles(r, 1);
	BY(r, 1, ALLOC, &cmd, ENOMEM);
	must(r, cmd.out_reason == FLEXMEM_REASON_CGROUP_LIMIT, "reason");
	run_after_free(r, alloc_as_other);
	CALL(r, FREE, &CMD(free, .handle = r->handle[0][--r->nr[0]]));
	must(r, ran_after_free() && r->nr[1] == 1, "allocation after a free");
	limit_handles(r, FLEXMEM_NO_LIMIT);
}

const struct sequence tenant_corners[] = {
	{ "identity", NULL, run_identity },
	{ "arguments of RESERVE", prepare_file, run_reserve_arguments },
	{ "reserved regions", prepare_file, run_reserved },
	{ "removed cgroup in the list", prepare_file, run_removed },
	{ "opener of a file that has ended", prepare_file, run_ended_opener },
	{ "limits of all functions", prepare_file, run_all_functions },
	{ "limits of all functions, removed cgroup", prepare_file,
	  run_all_removed },
	{ "limits of all functions, no memory", prepare_file, run_all_short },
	{ "limits of all functions, refused", prepare_file, run_all_refused },
	{ "cgroup without an account", prepare_file, run_deep },
	{ "figures of programs", prepare, run_programs },
	{ "request for all bytes", prepare, run_greedy },
	{ "handle of a free", prepare, run_early },
	{}
};
