// SPDX-License-Identifier: GPL-2.0
/*
 * The commands of the core, and the way to the handler of each command. A
 * handler checks its arguments, looks objects up, calls other files, and writes
 * the reply. The whole struct is copied in once, and @size is taken from that
 * copy. The reply is never longer than the caller's struct.
 *
 * A handler that allocates or frees works in three steps. It prepares the
 * change, which no other caller can see yet. Then it copies the reply out. Only
 * then it makes the change visible. If the reply cannot be written, the command
 * is undone. SET_LIMIT cannot be undone, so it writes the reply first. READ,
 * WRITE and COPY report how many bytes they have copied, and do not undo that.
 * TRIM and RESERVE check first that a reply can be written, and ignore a failure
 * of the last reply.
 */

#include <linux/capability.h>
#include <linux/err.h>
#include <linux/fault-inject-usercopy.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/flexmem.h>

#include "alloc/policy.h"
#include "compat.h"
#include "ioctl.h"
#include "tenant/owner.h"

/*
 * Reads the first @part bytes of @nr structs word by word. If the compiler knows
 * @part, it unrolls the loop, which takes fewer instructions than
 * copy_from_user(). @size, that of each struct, and @part are multiples of a word.
 */
static __always_inline int read_words(void *to, const void __user *from,
				      size_t part, size_t size, u32 nr)
{
	size_t words = size / sizeof(unsigned long), i;
	const unsigned long __user *user = from;
	unsigned long *word = to;
	int rc = -EFAULT;

	if (should_fail_usercopy() || !user_read_access_begin(from, nr * size))
		return rc;
	for (; nr; nr--, word += words, user += words) {
#pragma GCC unroll 32
		for (i = 0; i < part / sizeof(unsigned long); i++)
			unsafe_get_user(word[i], &user[i], fault);
	}
	rc = 0;
fault:
	user_read_access_end();
	return rc;
}

/* The reply to an ALLOC (@allocation may be an error), without the reason. */
static void alloc_reply(struct flexmem_alloc *cmd, u64 size,
			const struct flexmem_allocation *allocation)
{
	bool failed = IS_ERR(allocation);

	cmd->out_handle = failed ? 0 : allocation->handle;
	cmd->out_error = -PTR_ERR_OR_ZERO(allocation);
	cmd->out_address = failed ? (struct flexmem_address) {} :
				    flexmem_allocation_address(allocation);
	cmd->out_size = size;
	cmd->out_reason = FLEXMEM_REASON_NONE;
	cmd->out_region_reason = FLEXMEM_REASON_NONE;
	cmd->out_total_free = 0;
	cmd->out_largest_free = 0;
	cmd->out_max_region = 0;
	cmd->out_client_used = 0;
	cmd->out_regions = 0;
	cmd->out_chunks = failed ? 0 : allocation->nr_chunks;
	cmd->out_leaving = 0;
	cmd->out_event = 0;
	cmd->out_refusal = (struct flexmem_refusal) {};
}

static void alloc_explain(const struct flexmem_client *client,
			  struct flexmem_alloc *cmd,
			  const struct flexmem_request *request)
{
	/* The kernel had no memory. */
	if (request->reason == FLEXMEM_REASON_NONE)
		return;
	cmd->out_reason = request->reason;
	cmd->out_region_reason = request->region_reason;
	cmd->out_total_free = request->sum.free;
	cmd->out_largest_free = request->sum.largest;
	cmd->out_max_region = request->max_region;
	cmd->out_regions = request->regions;
	cmd->out_leaving = request->leaving;
	cmd->out_event = request->event;
	if (request->reason == FLEXMEM_REASON_CGROUP_LIMIT ||
	    request->reason == FLEXMEM_REASON_REGION_LIMIT)
		flexmem_owner_tell_refusal(client->account, &request->refused,
					   &cmd->out_refusal);
	if (request->alone)
		cmd->out_refusal.flags |= FLEXMEM_REFUSAL_ALONE;
}

static u32 alloc_flags(const struct flexmem_function *function)
{
	return FLEXMEM_ALLOC_PROGRAM | FLEXMEM_ALLOC_GROWABLE |
	       FLEXMEM_ALLOC_ZEROED |
	       (function->capabilities & FLEXMEM_CAP_MAP ?
			FLEXMEM_ALLOC_MAPPABLE : 0);
}

static int alloc_check(const struct flexmem_client *client,
		       const struct flexmem_alloc *cmd,
		       struct flexmem_request *request)
{
	const struct flexmem_table *table = client->table;
	int rc;

	if (cmd->flags & ~alloc_flags(&table->function))
		return -EOPNOTSUPP;
	rc = flexmem_policy_apply(table, cmd->policy, cmd->domains, request);
	if (!rc && (!cmd->length || cmd->alignment > FLEXMEM_MAX_ALIGNMENT ||
		    (cmd->alignment && !is_power_of_2(cmd->alignment))))
		rc = -EINVAL;
	return rc;
}

/* Carries out one ALLOC, but does not publish the allocation. */
static struct flexmem_allocation *alloc_begin(struct flexmem_call *call,
					      void *entry, int error)
{
	struct flexmem_alloc *cmd = entry;
	struct flexmem_allocation *allocation;
	struct flexmem_request request;
	int rc;

	flexmem_request_init(&request);
	request.size = flexmem_round_length(cmd->flags, cmd->alignment,
					    cmd->length);
	request.alignment = max(cmd->alignment, flexmem_granule_of(cmd->flags));
	request.flags = cmd->flags;
	rc = error ?: alloc_check(call->client, cmd, &request);
	allocation = rc ? ERR_PTR(rc) :
			  flexmem_client_prepare(call->client, &request);
	alloc_reply(cmd, request.size, allocation);
	if (allocation == ERR_PTR(-ENOMEM)) {
		alloc_explain(call->client, cmd, &request);
		cmd->out_client_used = flexmem_client_used(call->client);
		atomic64_inc(&call->fdev->failures);
		flexmem_account_failed(call->client->account, request.reason);
	}
	return allocation;
}

static int free_check(const struct flexmem_free *cmd)
{
	bool no_address = !cmd->address.region_id && !cmd->address.offset;

	if (cmd->flags & ~FLEXMEM_FREE_BY_ADDRESS)
		return -EOPNOTSUPP;
	if (cmd->flags & FLEXMEM_FREE_BY_ADDRESS ? cmd->handle : !no_address)
		return -EINVAL;
	return 0;
}

static struct flexmem_allocation *free_begin(struct flexmem_call *call,
					     void *entry, int error)
{
	struct flexmem_free *cmd = entry;
	struct flexmem_allocation *allocation;
	int rc = error ?: free_check(cmd);

	if (rc)
		allocation = ERR_PTR(rc);
	else if (cmd->flags & FLEXMEM_FREE_BY_ADDRESS)
		allocation = flexmem_client_detach_address(call->client,
							   &cmd->address);
	else
		allocation = flexmem_client_detach(call->client, cmd->handle);
	cmd->out_error = -PTR_ERR_OR_ZERO(allocation);
	return allocation;
}

/**
 * struct entry_ops - ALLOC or FREE, as a command or as an entry of a batch
 * @entry_size: size of the driver's struct
 * @min_size: size of the struct in its first version. All members behind it belong
 *	to the reply: a batch does not read them, and @begin sets them
 * @begin: carry an entry out so that it can be undone; sets out_error, to the
 *	error of a malformed entry if there is one
 * @commit: make the change visible to other callers
 * @undo: undo what @begin did
 */
struct entry_ops {
	u32 entry_size;
	u32 min_size;
	struct flexmem_allocation *(*begin)(struct flexmem_call *call,
					    void *entry, int error);
	void (*commit)(struct flexmem_client *client,
		       struct flexmem_allocation *allocation);
	void (*undo)(struct flexmem_client *client,
		     struct flexmem_allocation *allocation);
};

static const struct entry_ops alloc_ops = {
	.entry_size = sizeof(struct flexmem_alloc),
	.min_size = offsetofend(struct flexmem_alloc, out_chunks),
	.begin = alloc_begin,
	.commit = flexmem_client_publish,
	.undo = flexmem_client_release,
};

static_assert(offsetofend(struct flexmem_alloc, out_chunks) % sizeof(u64) == 0);
static_assert(offsetofend(struct flexmem_free, address) % sizeof(u64) == 0);

static const struct entry_ops free_ops = {
	.entry_size = sizeof(struct flexmem_free),
	.min_size = offsetofend(struct flexmem_free, address),
	.begin = free_begin,
	.commit = flexmem_client_release,
	.undo = flexmem_client_publish,
};

/* Inline, so that the compiler turns the calls through @ops into direct calls. */
static __always_inline int do_entry(struct flexmem_call *call,
				    const struct entry_ops *ops)
{
	struct flexmem_allocation *allocation = ops->begin(call, call->cmd, 0);
	int rc = flexmem_reply(call, ops->entry_size);

	if (IS_ERR(allocation))
		return rc ?: PTR_ERR(allocation);
	if (rc)
		ops->undo(call->client, allocation);
	else
		ops->commit(call->client, allocation);
	return rc;
}

static int cmd_alloc(struct flexmem_call *call)
{
	return do_entry(call, &alloc_ops);
}

static int cmd_free(struct flexmem_call *call)
{
	return do_entry(call, &free_ops);
}

/* Reads an entry whose size is not the driver's. */
static int read_other_entry(const struct entry_ops *ops,
			    const struct flexmem_batch *cmd, void *entry,
			    const void __user *from)
{
	int rc = copy_struct_from_user(entry, ops->entry_size, from,
				       cmd->entry_size);

	/* The entry is written back, so reads the part that the driver knows. */
	if (rc == -E2BIG && copy_from_user(entry, from, ops->entry_size))
		return -EFAULT;
	return rc;
}

/* EFAULT fails the whole batch; another error becomes the item of its entry. */
static __always_inline int batch_read(const struct entry_ops *ops,
				      const struct flexmem_batch *cmd,
				      void *entries,
				      struct flexmem_allocation **items)
{
	const void __user *from = u64_to_user_ptr(cmd->entries);
	bool same = cmd->entry_size == ops->entry_size;
	u32 i;

	if (same && read_words(entries, from, ops->min_size, ops->entry_size,
			       cmd->count))
		return -EFAULT;
	for (i = 0; i < cmd->count; i++) {
		void *entry = entries + i * ops->entry_size;
		int rc = same ? 0 :
			read_other_entry(ops, cmd, entry,
					 from + i * cmd->entry_size);

		if (rc == -EFAULT)
			return -EFAULT;
		/* Each struct begins with its size. */
		if (!rc && *(u32 *)entry != cmd->entry_size)
			rc = -EINVAL;
		items[i] = ERR_PTR(rc);
	}
	return 0;
}

static __always_inline int batch_write(const struct entry_ops *ops,
				       const struct flexmem_batch *cmd,
				       void *entries)
{
	u32 size = min(cmd->entry_size, ops->entry_size);
	void __user *to = u64_to_user_ptr(cmd->entries);
	u32 i;

	if (cmd->entry_size == ops->entry_size)
		return flexmem_write_words(to, entries, ops->entry_size,
					   cmd->out_done);
	for (i = 0; i < cmd->out_done; i++) {
		if (copy_to_user(to, entries + i * ops->entry_size, size))
			return -EFAULT;
		to += cmd->entry_size;
	}
	return 0;
}

/*
 * Carries entries out until all are done, or the caller has been killed. The
 * item of an entry becomes its allocation.
 */
static __always_inline void batch_begin(struct flexmem_call *call,
					const struct entry_ops *ops,
					void *entries,
					struct flexmem_allocation **items)
{
	struct flexmem_batch *cmd = call->cmd;
	u32 *done = &cmd->out_done;

	for (*done = 0; *done < cmd->count; ++*done) {
		void *entry = entries + *done * ops->entry_size;
		struct flexmem_allocation **item = &items[*done];

		if (fatal_signal_pending(current))
			return;
		if (flexmem_function_is_gone(&call->fdev->table.function))
			*item = ERR_PTR(-ENODEV);
		*item = ops->begin(call, entry, PTR_ERR(*item));
		cond_resched();
	}
}

/* Entries between two calls of cond_resched(), which costs more than one. */
#define BATCH_PAUSE 16

/* Inline for the same reason as do_entry(). */
static __always_inline int do_batch(struct flexmem_call *call,
				    const struct entry_ops *ops)
{
	struct flexmem_batch *cmd = call->cmd;
	struct flexmem_allocation **items;
	void *entries;
	int rc;
	u32 i;

	if (cmd->__reserved)
		return -EOPNOTSUPP;
	if (!cmd->count || cmd->count > FLEXMEM_MAX_BATCH ||
	    cmd->entry_size < ops->min_size ||
	    cmd->entry_size > FLEXMEM_MAX_STRUCT)
		return -EINVAL;

	/* Not zeroed, because both arrays are written before they are read. */
	items = kvmalloc_array(cmd->count, sizeof(*items) + ops->entry_size,
			       GFP_KERNEL_ACCOUNT);
	if (!items)
		return -ENOMEM;
	entries = items + cmd->count;
	rc = batch_read(ops, cmd, entries, items);
	if (rc)
		goto free;

	batch_begin(call, ops, entries, items);
	rc = batch_write(ops, cmd, entries);
	if (!rc)
		rc = flexmem_reply(call, sizeof(*cmd));
	for (i = 0; i < cmd->out_done; i++) {
		if (!IS_ERR(items[i]))
			(rc ? ops->undo : ops->commit)(call->client, items[i]);
		if (i % BATCH_PAUSE == BATCH_PAUSE - 1)
			cond_resched();
	}
	if (!rc && cmd->out_done < cmd->count)
		rc = -EINTR;

free:
	kvfree(items);
	return rc;
}

static int cmd_alloc_batch(struct flexmem_call *call)
{
	return do_batch(call, &alloc_ops);
}

static int cmd_free_batch(struct flexmem_call *call)
{
	return do_batch(call, &free_ops);
}

static int cmd_info(struct flexmem_call *call)
{
	struct flexmem_table *table = &call->fdev->table;
	const struct flexmem_settings *settings = &table->settings;
	const struct flexmem_domain *domain = &table->domain[0];
	struct flexmem_info *cmd = call->cmd;

	*cmd = (struct flexmem_info) {
		.size = cmd->size,
		.out_mode = table->function.mode,
		.out_slots = table->hw_slots,
		.out_max_regions = table->slots.nr,
		.out_program_slots = settings->program_slots,
		.out_acquire = settings->acquire,
		.out_order = settings->order,
		.out_fit = settings->fit,
		.out_max_handles = FLEXMEM_MAX_HANDLES,
		.out_max_batch = FLEXMEM_MAX_BATCH,
		.out_state = READ_ONCE(table->function.state),
		.out_alignment = FLEXMEM_ALIGN,
		.out_nr_fallback_sizes = domain->nr_sizes,
		.out_max_alignment = FLEXMEM_MAX_ALIGNMENT,
		.out_granule = domain->desc->granule,
		.out_capacity = flexmem_table_capacity(table),
		.out_max_region =
			flexmem_table_max_region(table, table->default_domains),
		.out_capabilities = table->function.capabilities,
	};
	if (cmd->out_capabilities & FLEXMEM_CAP_PAGE_TABLES) {
		cmd->out_va_page = table->function.vm_page;
		cmd->out_va_start = table->function.vm_start;
		cmd->out_va_length =
			table->function.vm_end - table->function.vm_start;
	}
	memcpy(cmd->out_fallback_sizes, domain->sizes,
	       sizeof(cmd->out_fallback_sizes));
	strscpy(cmd->out_name, call->fdev->name, sizeof(cmd->out_name));
	return flexmem_reply(call, sizeof(*cmd));
}

/*
 * Copies a list to the caller. The caller's entries may have another size than
 * the driver's. The part of an entry that the driver does not know is zeroed.
 */
int flexmem_put_list(u64 to, u32 capacity, u32 user_entry_size,
		     const void *entries, u32 count, u32 entry_size)
{
	void __user *uentry = u64_to_user_ptr(to);
	u32 size = min(user_entry_size, entry_size), i;

	if (capacity < count)
		return -EMSGSIZE;
	for (i = 0; i < count; i++) {
		if (copy_to_user(uentry, entries + i * entry_size, size) ||
		    clear_user(uentry + size, user_entry_size - size))
			return -EFAULT;
		uentry += user_entry_size;
	}
	return 0;
}

/* Copies out the list of an allocation's chunks. */
static int put_chunks(struct flexmem_call *call, struct flexmem_lookup *cmd)
{
	struct flexmem_allocation *allocation;
	struct flexmem_chunk_entry *entries;
	unsigned int i;
	int rc = -ENOMEM;

	allocation = flexmem_client_allocation(call->client, cmd->handle);
	if (IS_ERR(allocation))
		return PTR_ERR(allocation);
	entries = kcalloc(allocation->nr_chunks, sizeof(*entries),
			  GFP_KERNEL_ACCOUNT);
	if (entries) {
		for (i = 0; i < allocation->nr_chunks; i++)
			flexmem_allocation_describe(allocation, i, &entries[i]);
		rc = flexmem_put_list(cmd->entries, cmd->count, cmd->entry_size,
				      entries, allocation->nr_chunks,
				      sizeof(*entries));
	}
	kfree(entries);
	flexmem_allocation_put(allocation);
	return rc;
}

static int cmd_lookup(struct flexmem_call *call)
{
	struct flexmem_lookup *cmd = call->cmd;
	int rc, reply_rc;

	if (cmd->__reserved)
		return -EOPNOTSUPP;
	if (cmd->count &&
	    (cmd->entry_size < offsetofend(struct flexmem_chunk_entry, __reserved) ||
	     cmd->entry_size > FLEXMEM_MAX_STRUCT))
		return -EINVAL;
	rc = flexmem_client_lookup(call->client, cmd->handle, cmd);
	if (!rc && cmd->count)
		rc = put_chunks(call, cmd);
	if (rc && rc != -EMSGSIZE)
		return rc;
	reply_rc = flexmem_reply(call, sizeof(*cmd));
	return reply_rc ?: rc;
}

static int cmd_segments(struct flexmem_call *call)
{
	struct flexmem_segments *cmd = call->cmd;
	struct flexmem_segment_entry *entries;
	int rc, reply_rc;

	if (cmd->__reserved)
		return -EOPNOTSUPP;
	if (cmd->entry_size < offsetofend(struct flexmem_segment_entry, length) ||
	    cmd->entry_size > FLEXMEM_MAX_STRUCT)
		return -EINVAL;

	entries = kcalloc(FLEXMEM_MAX_SLOTS, sizeof(*entries),
			  GFP_KERNEL_ACCOUNT);
	if (!entries)
		return -ENOMEM;
	cmd->out_count = flexmem_slots_read(&call->fdev->table.slots, entries,
					    &cmd->out_generation);
	rc = flexmem_put_list(cmd->entries, cmd->count, cmd->entry_size, entries,
			      cmd->out_count, sizeof(*entries));
	kfree(entries);
	reply_rc = flexmem_reply(call, sizeof(*cmd));
	return rc == -EFAULT ? rc : reply_rc ?: rc;
}

/*
 * Sets the limit for each function. The reply was written. If no limit can be
 * set, takes the reply back.
 */
static int set_all(struct flexmem_call *call)
{
	struct flexmem_resource_limit *cmd = call->cmd;
	int rc = flexmem_limit_set_all(cmd);

	if (rc) {
		cmd->out_limit = 0;
		cmd->out_used = 0;
		rc = flexmem_reply(call, sizeof(*cmd)) ?: rc;
	}
	return rc;
}

static int cmd_set_limit(struct flexmem_call *call)
{
	struct flexmem_resource_limit *cmd = call->cmd;
	struct flexmem_accounts *accounts = &call->fdev->table.accounts;
	struct flexmem_account *account;
	int rc;

	if (cmd->flags & ~FLEXMEM_LIMIT_ALL_FUNCTIONS)
		return -EOPNOTSUPP;
	if ((cmd->scope != FLEXMEM_SCOPE_CGROUP &&
	     cmd->scope != FLEXMEM_SCOPE_DEFAULT) ||
	    cmd->resource >= FLEXMEM_NR_RESOURCES ||
	    (cmd->scope == FLEXMEM_SCOPE_DEFAULT && cmd->cgroup))
		return -EINVAL;
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	cmd->resource = array_index_nospec(cmd->resource, FLEXMEM_NR_RESOURCES);

	flexmem_owner_forget(accounts);
	account = flexmem_limit_find(accounts, cmd);
	if (IS_ERR(account))
		return PTR_ERR(account);
	/* The new limit cannot be undone, so the reply is written first. */
	rc = flexmem_reply(call, sizeof(*cmd));
	if (!rc && cmd->flags & FLEXMEM_LIMIT_ALL_FUNCTIONS)
		rc = set_all(call);
	else if (!rc)
		flexmem_limit_set(accounts, account, cmd);
	flexmem_owner_put(account);
	return rc;
}

static int cmd_trim(struct flexmem_call *call)
{
	struct flexmem_trim *cmd = call->cmd;
	int rc;

	if (cmd->__reserved)
		return -EOPNOTSUPP;
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	/* A release cannot be undone: can the reply be written? */
	cmd->out_regions = 0;
	cmd->out_bytes = 0;
	rc = flexmem_reply(call, sizeof(*cmd));
	if (rc)
		return rc;
	rc = flexmem_table_trim(&call->fdev->table, &cmd->out_regions,
				&cmd->out_bytes);
	/* Ignores EFAULT: the first reply could be written. */
	(void)flexmem_reply(call, sizeof(*cmd));
	return rc;
}

const struct flexmem_part_ops flexmem_part_core = {
	.commands = (const struct flexmem_command[]) {
		COMMAND(FLEXMEM_CMD_ALLOC, flexmem_alloc, out_chunks,
			CHANGES | HAS_FLAGS, 0, cmd_alloc),
		COMMAND(FLEXMEM_CMD_FREE, flexmem_free, address,
			CHANGES | HAS_FLAGS, 0, cmd_free),
		COMMAND(FLEXMEM_CMD_ALLOC_BATCH, flexmem_batch, __reserved,
			CHANGES, 0, cmd_alloc_batch),
		COMMAND(FLEXMEM_CMD_FREE_BATCH, flexmem_batch, __reserved,
			CHANGES, 0, cmd_free_batch),
		COMMAND(FLEXMEM_CMD_INFO, flexmem_info, out_name, LOOKS, 0,
			cmd_info),
		COMMAND(FLEXMEM_CMD_LOOKUP, flexmem_lookup, out_size, LOOKS, 0,
			cmd_lookup),
		COMMAND(FLEXMEM_CMD_SEGMENTS, flexmem_segments, out_generation,
			LOOKS, 0, cmd_segments),
		COMMAND(FLEXMEM_CMD_TRIM, flexmem_trim, out_bytes, CHANGES, 0,
			cmd_trim),
		COMMAND(FLEXMEM_CMD_SET_LIMIT, flexmem_resource_limit, out_used,
			CHANGES | HAS_FLAGS, 0, cmd_set_limit),
		{}
	},
};

/* Here the compiler knows the sizes of the most frequent structs. */
static int read_struct(const struct flexmem_call *call, void *to, size_t size)
{
	const void __user *from = call->ubuffer;
	int rc;

	if (call->user_size != size)
		rc = copy_struct_from_user(to, size, from, call->user_size);
	else if (size == sizeof(struct flexmem_alloc))
		rc = read_words(to, from, sizeof(struct flexmem_alloc),
				sizeof(struct flexmem_alloc), 1);
	else if (size == sizeof(struct flexmem_free))
		rc = read_words(to, from, sizeof(struct flexmem_free),
				sizeof(struct flexmem_free), 1);
	else
		rc = read_words(to, from, size, size, 1);
	return rc;
}

static int call_command(struct flexmem_call *call,
			const struct flexmem_command *command)
{
	/* Not zeroed: the copies below fill as much as the command uses. */
	u64 buffer[LONGEST_STRUCT / sizeof(u64)] __uninitialized;
	int rc;

	if (get_user(call->user_size, (u32 __user *)call->ubuffer))
		return -EFAULT;
	if (call->user_size < command->min_size)
		return -EINVAL;
	if (call->user_size > FLEXMEM_MAX_STRUCT)
		return -E2BIG;
	rc = read_struct(call, buffer, command->size);
	if (rc)
		return rc;
	/* Each struct begins with its size and its flags. */
	if ((!command->has_flags && ((u32 *)buffer)[1]) ||
	    command->needs & ~call->fdev->table.function.capabilities)
		return -EOPNOTSUPP;
	/* The caller may have changed the size in its memory meanwhile. */
	*(u32 *)buffer = call->user_size;
	call->cmd = buffer;
	return command->carry_out(call);
}

/*
 * The ioctl of a node. Return: 0 or a negative errno that the ABI header lists.
 */
long flexmem_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	struct flexmem_file *file = filp->private_data;
	struct flexmem_call call = {
		.fdev = file->fdev,
		.client = &file->client,
		.ubuffer = (void __user *)arg,
	};
	const struct flexmem_command *command;
	unsigned int nr = _IOC_NR(cmd);

	if (nr >= FLEXMEM_MAX_COMMANDS || cmd != _IO(FLEXMEM_TYPE, nr))
		return -ENOTTY;
	command = flexmem_commands[array_index_nospec(nr, FLEXMEM_MAX_COMMANDS)];
	/* The number of a command that was removed is not used again. */
	if (!command)
		return -ENOTTY;
	/* Only saves work: code that calls the driver checks under its lock. */
	if (flexmem_function_is_gone(&call.fdev->table.function))
		return -ENODEV;
	if (command->mode & ~filp->f_mode)
		return -EBADF;
	return call_command(&call, command);
}
