// SPDX-License-Identifier: GPL-2.0
/*
 * The simulator's files in /sys/kernel/debug/flexmem_sim. They inject faults
 * into the next commands, and show what an engineer would see with a probe on
 * the board. Documentation/simulator.rst describes each file. The files are no
 * ABI.
 */

#include <linux/debugfs.h>
#include <linux/dma-fence.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/sync_file.h>
#include <linux/uaccess.h>

#include "card.h"
#include "debugfs.h"

/* The directory of the card; there is only one card. */
static struct dentry *card_dir;
static struct dentry *function_dirs[SIM_MAX_FUNCTIONS];

static const char * const sim_fault_names[SIM_NR_FAULTS] = {
	[SIM_FAIL_COMMANDS] = "fail_commands",
	[SIM_DROP_REQUESTS] = "drop_requests",
	[SIM_DROP_REPLIES] = "drop_replies",
	[SIM_DUPLICATE_REPLIES] = "duplicate_replies",
	[SIM_STALE_REPLIES] = "stale_replies",
	[SIM_HANG_COMMANDS] = "hang_commands",
};

static const char * const sim_stat_names[SIM_NR_STATS] = {
	[SIM_REQUESTS] = "requests",
	[SIM_REPLIES] = "replies",
	[SIM_TIMEOUTS] = "timeouts",
	[SIM_KILLED] = "killed",
	[SIM_STALE] = "stale",
	[SIM_DUPLICATES] = "duplicates",
	[SIM_REPEATS] = "repeats",
	[SIM_RESETS] = "resets",
};

/* The commands that an injected fault can hit. A reset cannot fail. */
static const char * const sim_command_names[] = {
	[SIM_ANY] = "any",
	[SIM_ACQUIRE] = "acquire",
	[SIM_RELEASE] = "release",
	[SIM_SLOT_SET] = "slot_set",
	[SIM_SLOT_CLEAR] = "slot_clear",
	[SIM_QUIESCE] = "quiesce",
	[SIM_CAPACITY] = "capacity",
	[SIM_SCRUB] = "scrub",
	[SIM_READ] = "read",
	[SIM_WRITE] = "write",
	[SIM_COPY] = "copy",
	[SIM_VM_MAP] = "vm_map",
	[SIM_VM_UNMAP] = "vm_unmap",
};

static int stats_show(struct seq_file *m, void *unused)
{
	struct sim_card *card = m->private;
	unsigned int i;

	for (i = 0; i < SIM_NR_STATS; i++)
		seq_printf(m, "%s %lld\n", sim_stat_names[i],
			   atomic64_read(&card->mbox.stats[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static ssize_t fault_command_read(struct file *file, char __user *to,
				  size_t count, loff_t *pos)
{
	struct sim_card *card = file->private_data;
	char text[16];
	int len;

	len = scnprintf(text, sizeof(text), "%s\n",
			sim_command_names[READ_ONCE(card->mbox.fault_command)]);
	return simple_read_from_buffer(to, count, pos, text, len);
}

static ssize_t fault_command_write(struct file *file, const char __user *from,
				   size_t count, loff_t *pos)
{
	struct sim_card *card = file->private_data;
	char text[16] = {};
	int command;

	if (count >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, count))
		return -EFAULT;
	command = __sysfs_match_string(sim_command_names,
				       ARRAY_SIZE(sim_command_names), text);
	if (command < 0)
		return command;
	WRITE_ONCE(card->mbox.fault_command, command);
	return count;
}

static const struct file_operations fault_command_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = fault_command_read,
	.write = fault_command_write,
	.llseek = default_llseek,
};

static int latency_us_get(void *data, u64 *value)
{
	struct sim_card *card = data;

	*value = READ_ONCE(card->mbox.latency_us);
	return 0;
}

static int latency_us_set(void *data, u64 value)
{
	struct sim_card *card = data;

	if (value > SIM_MAX_LATENCY_US)
		return -EINVAL;
	WRITE_ONCE(card->mbox.latency_us, value);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(latency_us_fops, latency_us_get, latency_us_set,
			 "%llu\n");

static int timeout_ms_get(void *data, u64 *value)
{
	struct sim_card *card = data;

	*value = READ_ONCE(card->mbox.timeout_ms);
	return 0;
}

static int timeout_ms_set(void *data, u64 value)
{
	struct sim_card *card = data;

	if (!value || value > SIM_MAX_TIMEOUT_MS)
		return -EINVAL;
	WRITE_ONCE(card->mbox.timeout_ms, value);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(timeout_ms_fops, timeout_ms_get, timeout_ms_set,
			 "%llu\n");

static int dead_get(void *data, u64 *value)
{
	struct sim_card *card = data;

	*value = READ_ONCE(card->mbox.dead);
	return 0;
}

static int dead_set(void *data, u64 value)
{
	struct sim_card *card = data;

	if (value > 1)
		return -EINVAL;
	sim_mailbox_set_dead(&card->mbox, value);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(dead_fops, dead_get, dead_set, "%llu\n");

static int pages_get(void *data, u64 *value)
{
	struct sim_card *card = data;

	*value = sim_memory_pages(&card->memory);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(pages_fops, pages_get, NULL, "%llu\n");

static int capacity_get(void *data, u64 *value)
{
	struct sim_function *fn = data;

	*value = sim_firmware_capacity(fn->card->fw, fn->index);
	return 0;
}

static int capacity_set(void *data, u64 value)
{
	struct sim_function *fn = data;
	int ret;

	ret = sim_firmware_set_capacity(fn->card->fw, fn->index, value);
	if (ret)
		return ret;
	sim_function_capacity_changed(fn);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(capacity_fops, capacity_get, capacity_set, "%llu\n");

static int reset_set(void *data, u64 value)
{
	struct sim_function *fn = data;

	return value == 1 ? sim_function_reset(fn) : -EINVAL;
}
DEFINE_DEBUGFS_ATTRIBUTE(reset_fops, NULL, reset_set, "%llu\n");

static int suspended_get(void *data, u64 *value)
{
	*value = sim_function_suspended(data);
	return 0;
}

static int suspended_set(void *data, u64 value)
{
	struct sim_function *fn = data;

	if (value > 1)
		return -EINVAL;
	return value ? sim_function_suspend(fn) : sim_function_resume(fn);
}
DEFINE_DEBUGFS_ATTRIBUTE(suspended_fops, suspended_get, suspended_set,
			 "%llu\n");

static int usable_slots_get(void *data, u64 *value)
{
	struct sim_function *fn = data;

	*value = sim_firmware_usable_slots(fn->card->fw, fn->index);
	return 0;
}

static int usable_slots_set(void *data, u64 value)
{
	struct sim_function *fn = data;

	return sim_firmware_set_usable_slots(fn->card->fw, fn->index, value);
}
DEFINE_DEBUGFS_ATTRIBUTE(usable_slots_fops, usable_slots_get, usable_slots_set,
			 "%llu\n");

/*
 * Runs a job and makes a sync_file of its fence. If there is no memory for the
 * file, returns -ENOMEM, but the job runs.
 */
static int make_sync_file(struct sim_function *fn, struct sim_run *run,
			  struct file **file)
{
	struct sync_file *sync_file;
	struct dma_fence *fence;
	int ret;

	ret = sim_queue_run(&fn->queue, run, &fence);
	if (ret)
		return ret;
	sync_file = sync_file_create(fence);
	dma_fence_put(fence);
	if (!sync_file)
		return -ENOMEM;
	*file = sync_file->file;
	return 0;
}

static long queue_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	struct sim_function *fn = filp->private_data;
	void __user *user = (void __user *)arg;
	struct sim_run run;
	struct file *file;
	int ret;

	if (cmd != SIM_IOCTL_RUN)
		return -ENOTTY;
	if (copy_from_user(&run, user, sizeof(run)))
		return -EFAULT;
	run.out_fence = get_unused_fd_flags(O_CLOEXEC);
	if (run.out_fence < 0)
		return run.out_fence;
	ret = make_sync_file(fn, &run, &file);
	if (ret)
		goto put_fd;
	if (copy_to_user(user, &run, sizeof(run))) {
		ret = -EFAULT;
		goto put_file;
	}
	fd_install(run.out_fence, file);
	return 0;

put_file:
	fput(file);
put_fd:
	put_unused_fd(run.out_fence);
	return ret;
}

static const struct file_operations queue_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.unlocked_ioctl = queue_ioctl,
	.llseek = noop_llseek,
};

static int table_show(struct seq_file *m, void *unused)
{
	struct sim_function *fn = m->private;
	unsigned int slot;

	for (slot = 0; slot < fn->card->slots; slot++) {
		struct sim_piece piece = {};

		while (sim_firmware_next_piece(fn->card->fw, fn->index, &piece))
			if (piece.slot == slot)
				seq_printf(m, "%u %#llx %llu\n", slot,
					   piece.base, piece.size);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(table);

static int memory_show(struct seq_file *m, void *unused)
{
	struct sim_function *fn = m->private;
	struct sim_piece piece = {};

	while (sim_firmware_next_piece(fn->card->fw, fn->index, &piece)) {
		seq_printf(m, "%#llx %llu ", piece.base, piece.size);
		if (piece.slot == SIM_NO_SLOT)
			seq_puts(m, "-\n");
		else
			seq_printf(m, "%d\n", piece.slot);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(memory);

static void add_fault_attr(struct dentry *dir)
{
#if defined(CONFIG_FAULT_INJECTION) && defined(CONFIG_FAULT_INJECTION_DEBUG_FS)
	fault_create_debugfs_attr("fail_mailbox", dir, &sim_fault_attr);
#endif
}

/**
 * sim_debugfs_add_card - make the debugfs files of a card
 * @card: the card, with its firmware running
 */
void sim_debugfs_add_card(struct sim_card *card)
{
	struct dentry *dir = debugfs_create_dir(KBUILD_MODNAME, NULL);
	unsigned int i;

	card_dir = dir;
	for (i = 0; i < SIM_NR_FAULTS; i++)
		debugfs_create_atomic_t(sim_fault_names[i], 0600, dir,
					&card->mbox.faults[i]);
	debugfs_create_file("fault_command", 0600, dir, card,
			    &fault_command_fops);
	debugfs_create_file("latency_us", 0600, dir, card, &latency_us_fops);
	debugfs_create_file("timeout_ms", 0600, dir, card, &timeout_ms_fops);
	debugfs_create_bool("give_up", 0600, dir, &card->mbox.give_up);
	debugfs_create_file("dead", 0600, dir, card, &dead_fops);
	debugfs_create_file("stats", 0400, dir, card, &stats_fops);
	debugfs_create_file("pages", 0400, dir, card, &pages_fops);
	add_fault_attr(dir);
}

/**
 * sim_debugfs_remove_card - wait for users of the card's files, and remove them
 * @card: the card
 */
void sim_debugfs_remove_card(struct sim_card *card)
{
	debugfs_remove(card_dir);
}

/**
 * sim_debugfs_add_function - make the debugfs files of a function
 * @fn: the function
 */
void sim_debugfs_add_function(struct sim_function *fn)
{
	struct dentry *dir;
	char name[16] = "pf";

	if (fn->index)
		snprintf(name, sizeof(name), "vf%u", fn->index - 1);
	dir = debugfs_create_dir(name, card_dir);
	function_dirs[fn->index] = dir;
	debugfs_create_file("capacity", 0600, dir, fn, &capacity_fops);
	debugfs_create_file("memory", 0400, dir, fn, &memory_fops);
	debugfs_create_file("queue", 0600, dir, fn, &queue_fops);
	debugfs_create_file("reset", 0200, dir, fn, &reset_fops);
	debugfs_create_file("suspended", 0600, dir, fn, &suspended_fops);
	if (!fn->index)
		return;
	debugfs_create_file("usable_slots", 0600, dir, fn, &usable_slots_fops);
	debugfs_create_file("table", 0400, dir, fn, &table_fops);
}

/**
 * sim_debugfs_remove_function - wait for users of its files, and remove them
 * @fn: the function
 */
void sim_debugfs_remove_function(struct sim_function *fn)
{
	debugfs_remove(function_dirs[fn->index]);
}
