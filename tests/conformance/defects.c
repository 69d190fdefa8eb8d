// SPDX-License-Identifier: GPL-2.0
/*
 * The card of Documentation/examples/ram.c with a program that fills memory, and
 * with one defect of the driver or the card, which the parameter "defect" names.
 * tests/conformance/run.sh shows that flexmem-conformance finds each defect.
 *
 * The other parameters are commands: tests/conformance/hook writes to them.
 */

#include <linux/delay.h>
#include <linux/dma-fence.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <flexmem/dispatch.h>

static struct flexmem_dev *register_with_defect(struct device *parent,
						const struct flexmem_device_desc *desc);

#define flexmem_device_register register_with_defect
#include "ram.c"
#undef flexmem_device_register

enum defect {
	NONE,
	EARLY_DRAIN,
	LATE_WRITE,
	MISALIGNED,
	OVERLAP,
	WRONG_SIZE,
	REUSED_ID,
	NOT_CLEARED,
	LOST_REPLY,
	SLEEPING_FAULT,
	AWAKE,
	NO_WATCHDOG,
	RESET_EARLY,
	RESET_KEEPS,
	NR_DEFECTS,
};

static const char * const names[NR_DEFECTS] = {
	[NONE] = "none",
	[EARLY_DRAIN] = "early_drain",
	[LATE_WRITE] = "late_write",
	[MISALIGNED] = "misaligned",
	[OVERLAP] = "overlap",
	[WRONG_SIZE] = "wrong_size",
	[REUSED_ID] = "reused_id",
	[NOT_CLEARED] = "not_cleared",
	[LOST_REPLY] = "lost_reply",
	[SLEEPING_FAULT] = "sleeping_fault",
	[AWAKE] = "awake",
	[NO_WATCHDOG] = "no_watchdog",
	[RESET_EARLY] = "reset_early",
	[RESET_KEEPS] = "reset_keeps",
};

static char *defect = "none";
module_param(defect, charp, 0444);
MODULE_PARM_DESC(defect, "What is wrong with the device (default none)");

static int has;		/* the defect, of enum defect */

/* ---- the program ---- */

/* The program that the card runs. There is one at a time. */
static struct {
	u8 *to;
	u64 size;
	int value;
	struct dma_fence *fence;
} program;

static const char *fence_name(struct dma_fence *fence)
{
	return "defects";
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = fence_name,
	.get_timeline_name = fence_name,
};

static DEFINE_SPINLOCK(fence_lock);

static void signal_fence(void)
{
	if (program.fence) {
		dma_fence_signal(program.fence);
		dma_fence_put(program.fence);
	}
	program.fence = NULL;
}

static void run_program(struct work_struct *work)
{
	memset(program.to, program.value, program.size);
	signal_fence();
}

static DECLARE_DELAYED_WORK(run, run_program);

#define WATCHDOG_MS 1000

/* The card can end a single program. */
static void end_program(struct work_struct *work)
{
	if (program.fence)
		dma_fence_set_error(program.fence, -ETIMEDOUT);
	signal_fence();
}

static DECLARE_DELAYED_WORK(watchdog, end_program);

static void begin_program(unsigned int ms)
{
	schedule_delayed_work(&run, msecs_to_jiffies(ms));
	if (has == LATE_WRITE)
		signal_fence();
}

static int add_fence(struct flexmem_allocation *allocation)
{
	static u64 seqno, context;
	int rc;

	if (!context)
		context = dma_fence_context_alloc(1);
	program.fence = kzalloc(sizeof(*program.fence), GFP_KERNEL);
	if (!program.fence)
		return -ENOMEM;
	dma_fence_init(program.fence, &fence_ops, &fence_lock, context,
		       ++seqno);
	rc = flexmem_allocation_add_fence(allocation, program.fence);
	if (rc)
		signal_fence();
	return rc;
}

/*
 * @text: "HANDLE SIZE VALUE MS". The card fills the allocation HANDLE after MS
 * milliseconds. Descriptor 3 of the calling process is the allocation's file.
 */
static int fill(const char *text, bool stray, bool hangs)
{
	struct flexmem_allocation *allocation;
	struct flexmem_client *client;
	struct flexmem_part part;
	unsigned int handle, ms;
	int rc = 0;

	flush_delayed_work(&run);
	flush_delayed_work(&watchdog);
	if (sscanf(text, "%u %llu %i %u", &handle, &program.size,
		   &program.value, &ms) != 4)
		return -EINVAL;
	client = flexmem_client_from_fd(ram_device, 3);
	if (IS_ERR(client))
		return PTR_ERR(client);
	allocation = flexmem_client_allocation(client, handle);
	flexmem_client_put(client);
	if (IS_ERR(allocation))
		return PTR_ERR(allocation);
	flexmem_allocation_part(allocation, 0, &part);
	program.to = ram_bytes(&part.mem, part.offset);
	if (program.size > part.size)
		rc = -EINVAL;
	else if (!stray)
		rc = add_fence(allocation);
	if (!rc && !hangs)
		begin_program(ms);
	else if (!rc && has != NO_WATCHDOG)
		schedule_delayed_work(&watchdog, msecs_to_jiffies(WATCHDOG_MS));
	flexmem_allocation_put(allocation);
	return rc;
}

static int fill_set(const char *text, const struct kernel_param *kp)
{
	return fill(text, false, false);
}

/* Fills without telling flexmem of the program. */
static int stray_set(const char *text, const struct kernel_param *kp)
{
	return fill(text, true, false);
}

/* The program never ends by itself. */
static int hang_set(const char *text, const struct kernel_param *kp)
{
	return fill(text, false, true);
}

static int suspended_set(const char *text, const struct kernel_param *kp)
{
	bool suspend;
	int rc = kstrtobool(text, &suspend);

	if (rc || has == AWAKE)
		return rc;
	if (suspend)
		flexmem_device_suspend(ram_device);
	else
		flexmem_device_resume(ram_device);
	return 0;
}

static int reset_set(const char *text, const struct kernel_param *kp)
{
	return flexmem_device_reset(ram_device);
}

static const struct kernel_param_ops fill_ops = { .set = fill_set };
static const struct kernel_param_ops hang_ops = { .set = hang_set };
static const struct kernel_param_ops stray_ops = { .set = stray_set };
static const struct kernel_param_ops reset_ops = { .set = reset_set };
static const struct kernel_param_ops suspended_ops = { .set = suspended_set };

module_param_cb(fill, &fill_ops, NULL, 0200);
MODULE_PARM_DESC(fill, "Begins a program");
module_param_cb(hang, &hang_ops, NULL, 0200);
MODULE_PARM_DESC(hang, "Begins a program that never ends");
module_param_cb(stray, &stray_ops, NULL, 0200);
MODULE_PARM_DESC(stray, "Begins a program that flexmem does not know");
module_param_cb(reset, &reset_ops, NULL, 0200);
MODULE_PARM_DESC(reset, "Resets the device");
module_param_cb(suspended, &suspended_ops, NULL, 0200);
MODULE_PARM_DESC(suspended, "1: suspends the device, 0: resumes it");

/* ---- the operations with a defect ---- */

/* Grants the free piece that follows the piece of the last grant. */
static int acquire_next(u64 size, struct flexmem_memory *mem)
{
	static unsigned int last;
	unsigned int i, piece;

	for (i = 1; size == RAM_PIECE && i <= RAM_PIECES; i++) {
		piece = (last + i) % RAM_PIECES;
		if (ram_id[piece])
			continue;
		ram_id[piece] = mem->id;
		mem->base = (u64)piece * RAM_PIECE;
		last = piece;
		return 0;
	}
	return -ENOSPC;
}

static int acquire(void *priv, u64 size, struct flexmem_memory *mem)
{
	static u64 first;
	int rc;

	/* A released piece is not the next one that this card grants. */
	if (has == EARLY_DRAIN)
		return acquire_next(size, mem);
	rc = ram_acquire(priv, size, mem);
	if (rc)
		return rc;
	if (!first)
		first = mem->id;
	switch (has) {
	case MISALIGNED:
		mem->base += SZ_4K;
		break;
	case OVERLAP:
		mem->base = 0;
		break;
	case WRONG_SIZE:
		mem->size *= 2;
		break;
	case REUSED_ID:
		mem->id = first;
		break;
	}
	return 0;
}

static int slot_clear(void *priv, unsigned int slot)
{
	if (has != EARLY_DRAIN)
		flush_delayed_work(&run);
	return 0;
}

static int quiesce(void *priv)
{
	flush_delayed_work(&run);
	flush_delayed_work(&watchdog);
	signal_fence();
	return 0;
}

static int reset(void *priv)
{
	if (has != RESET_EARLY)
		flush_delayed_work(&run);
	return has == RESET_KEEPS ? 0 : ram_reset(priv);
}

static int scrub(void *priv, const struct flexmem_memory *mem, u64 offset,
		 u64 size)
{
	return has == NOT_CLEARED ? 0 : ram_scrub(priv, mem, offset, size);
}

/* With LOST_REPLY each eighth write is not done, but reported as done. */
static int write(void *priv, const struct flexmem_memory *mem, u64 offset,
		 u64 size, const void *from)
{
	static unsigned int requests;

	if (has == LOST_REPLY && ++requests % 8 == 0)
		return 0;
	return ram_write(priv, mem, offset, size, from);
}

static int fault(void *priv, const struct flexmem_memory *mem, u64 offset,
		 struct flexmem_frames *frames)
{
	if (has == SLEEPING_FAULT)
		msleep(20);
	return ram_fault(priv, mem, offset, frames);
}

static struct flexmem_dev *register_with_defect(struct device *parent,
						const struct flexmem_device_desc *desc)
{
	static struct flexmem_device_ops ops;
	struct flexmem_device_desc mine = *desc;

	has = match_string(names, NR_DEFECTS, defect);
	if (has < 0)
		return ERR_PTR(-EINVAL);
	ops = *desc->ops;
	ops.acquire = acquire;
	ops.slot_clear = slot_clear;
	ops.quiesce = quiesce;
	ops.reset = reset;
	ops.scrub = scrub;
	ops.write = write;
	ops.fault = fault;
	mine.ops = &ops;
	return flexmem_device_register(parent, &mine);
}
