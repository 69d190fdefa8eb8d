// SPDX-License-Identifier: GPL-2.0
/*
 * Events of the device: faults, the passage of time, resets and
 * removal.
 */
#include "shim/internal.h"

#include "fuzz.h"
#include "world.h"

/* ---- faults ---- */

/*
 * The errors that a device operation may return, and EINVAL, which the driver
 * turns into EIO.
 */
static const int errors[] = {
	-EIO, -EINTR, -ENOMEM, -ENODEV, -EINVAL, -ETIMEDOUT,
};

/* Returns the model's variable that holds an operation's next error. */
static int *error_of(struct fuzz *f, enum fake_op op)
{
	switch (op) {
	case FAKE_ACQUIRE:
		return &f->model->acquire_error;
	case FAKE_RELEASE:
		return &f->model->release_error;
	case FAKE_SLOT_SET:
		return &f->model->slot_error;
	case FAKE_SLOT_CLEAR:
		return &f->model->clear_error;
	case FAKE_DRAIN:
		return &f->model->drain_error;
	case FAKE_CAPACITY:
		return &f->model->capacity_error;
	case FAKE_SCRUB:
		return &f->model->scrub_error;
	case FAKE_READ:
		return &f->read_error;
	case FAKE_WRITE:
		return &f->write_error;
	case FAKE_COPY:
		return &f->copy_error;
	case FAKE_VM_MAP:
		return &f->map_error;
	case FAKE_VM_UNMAP:
		return &f->unmap_error;
	case FAKE_QUIESCE:
		return &f->model->quiesce_error;
	default:
		return &f->model->reset_error;
	}
}

static void forget_faults(struct fuzz *f)
{
	enum fake_op op;

	f->model->dead = false;
	for (op = 0; op < FAKE_NR_OPS; op++) {
		*error_of(f, op) = 0;
		fake_device_fail(f->fake, op, 1, 0, 0);
	}
}

static void die_or_revive(struct fuzz *f)
{
	bool dead = !f->model->dead;
	enum fake_op op;

	forget_faults(f);
	f->model->dead = dead;
	f->fake->replies_are_lost = false;
	for (op = 0; op < FAKE_NR_OPS && dead; op++)
		fake_device_fail(f->fake, op, 1, UINT_MAX, -ETIMEDOUT);
}

/*
 * Makes an operation fail once, if the next command calls it. The operation may
 * take effect although its reply is lost. A release takes no effect then,
 * because the device could give the memory away before the model does.
 */
void fuzz_fault(struct fuzz *f)
{
	u8 kind = fuzz_take(f), error = kind / FAKE_COPY;
	enum fake_op op = kind % FAKE_COPY;
	int rc = errors[error % ARRAY_SIZE(errors)];

	/*
	 * Half of the faults for WRITE hit COPY instead: the corpus is older
	 * than COPY, and so has no number for it.
	 */
	if (op == FAKE_WRITE && error / ARRAY_SIZE(errors) & 2)
		op = FAKE_COPY;
	/* A fault of quiesce would hit nothing. */
	if (op == FAKE_QUIESCE)
		op = error / ARRAY_SIZE(errors) & 2 ? FAKE_VM_MAP :
						      FAKE_VM_UNMAP;
	/* A PF has no slots to clear. */
	if (op == FAKE_SLOT_CLEAR && f->model->mode == FLEXMEM_MODE_PF)
		op = FAKE_DRAIN;

	if (f->gone || f->faulty)
		return;
	if (kind >= 240)
		die_or_revive(f);
	/*
	 * While callers wait for the worker, the order of operations is not
	 * determined, so no fault is injected.
	 */
	if (kind >= 240 || f->model->dead || f->model->timeouts > 1)
		return;
	f->fake->replies_are_lost = op != FAKE_RELEASE &&
				    error / ARRAY_SIZE(errors) & 1;
	fake_device_fail(f->fake, op, 1, 1, rc);
	*error_of(f, op) = rc == -EINVAL ? -EIO : rc;
	f->faulty = true;
}

/**
 * fuzz_heal - end the planned fault
 * @f: input
 *
 * The fault must have happened either in both driver and model, or in neither.
 */
void fuzz_heal(struct fuzz *f)
{
	enum fake_op op;

	for (op = 0; op < FAKE_NR_OPS; op++) {
		SAME(f, f->fake->failure[op].times, !!*error_of(f, op));
		*error_of(f, op) = 0;
		fake_device_fail(f->fake, op, 1, 0, 0);
	}
	f->faulty = false;
}

static void follow_in(struct fuzz *f, unsigned int slot)
{
	const struct flexmem_region *region;
	const struct flexmem_block *block;

	rcu_read_lock();
	region = rcu_dereference(f->fdev->table.region[slot]);
	if (!region->nr_quarantined)
		model_end_quarantine(f->model, slot);
	list_for_each_entry(block, &region->blocks.all, link)
		if (flexmem_block_is_free(block) &&
		    block->residue.bytes_of == FLEXMEM_CLEAN &&
		    model_dirty(f->model, slot, block->start, 0, false))
			model_mark_dirty(f->model, slot, block->start, 0);
	rcu_read_unlock();
}

/**
 * fuzz_follow_scrubs - take over the results of background scrubs
 * @f: input, after time has passed
 *
 * The model does not predict the time of a scrub, but its possible results:
 * free blocks become clean, quarantined blocks become free, and a device that
 * scrubs is not dead.
 */
void fuzz_follow_scrubs(struct fuzz *f)
{
	unsigned int slot;

	if (f->gone || f->fake->scrubbed == f->model->scrubbed)
		return;
	f->model->timeouts = 0;
	f->model->scrubbed = f->fake->scrubbed;
	for (slot = 0; slot < f->model->slots; slot++)
		if (f->model->region[slot].there)
			follow_in(f, slot);
}

/* Lets the worker retry pending commands while no caller does. */
static void settle(struct fuzz *f)
{
	struct flexmem_table *table = &f->fdev->table;
	bool later = delayed_work_pending(&table->function.work);

	if (!f->model->broken && (!model_is_settled(f->model) ||
				  model_is_unresponsive(f->model)))
		SAME(f, later, true);
	if (!later)
		return;
	mod_delayed_work(table->function.worker, &table->function.work, 0);
	native_quiesce();
	model_settle_unasked(f->model);
}

void fuzz_time(struct fuzz *f)
{
	static const unsigned int ticks[] = {
		1, HZ / 10, HZ / 10, HZ / 4, HZ, 6 * HZ, 31 * HZ, 5 * HZ,
	};
	unsigned int calls = f->fake->calls[FAKE_SCRUB];
	u8 n = fuzz_take(f);

	/*
	 * While the worker runs, either all operations fail, because the device
	 * is dead, or all succeed.
	 */
	if (!f->model->dead)
		forget_faults(f);
	if (!f->gone && n & 4)
		settle(f);
	native_time_advance(ticks[n & 7] + (n >> 3));
	native_quiesce();
	if (f->model->dead)
		f->model->timeouts += f->fake->calls[FAKE_SCRUB] - calls;
}

static int predict_trim(struct fuzz *f, struct flexmem_trim *want)
{
	int rc;

	if (f->model->broken)
		return -EIO;
	rc = model_begin_trim(f->model);
	return rc ?: model_trim(f->model, fuzz_held(f), &want->out_regions,
				&want->out_bytes);
}

void fuzz_trim(struct fuzz *f)
{
	struct flexmem_trim cmd = CMD(trim);
	struct flexmem_trim want = {};
	int want_rc;
	long rc;

	if (!fuzz_call(f, FLEXMEM_CMD_TRIM, &cmd, sizeof(cmd), &rc))
		return;
	want_rc = fuzz_is_admin(f->who) ? 0 : -EPERM;
	if (!want_rc && f->late)
		want_rc = -EFAULT;
	if (!want_rc)
		want_rc = predict_trim(f, &want);
	SAME(f, rc, want_rc);
	if (f->late)
		return;
	SAME(f, cmd.out_regions, want.out_regions);
	SAME(f, cmd.out_bytes, want.out_bytes);
}

/*
 * Models a reset: all holds end, and every allocation is lost. An orphan that
 * was only waiting for programs ends.
 */
static void lose_all(struct fuzz *f)
{
	unsigned int i, nr;

	fuzz_lose_holds(f);
	for (i = 0; i < f->nr; i++)
		f->allocation[i].lost = true;
	for (i = 0; i < f->nr;) {
		nr = f->nr;
		fuzz_end_unused(f, &f->allocation[i]);
		i = f->nr < nr ? 0 : i + 1;
	}
}

void fuzz_reset(struct fuzz *f)
{
	unsigned int i;
	int rc;

	if (f->gone)
		return;
	rc = flexmem_device_reset(f->fdev);
	if (f->bare) {
		SAME(f, rc, -EOPNOTSUPP);
		return;
	}
	lose_all(f);
	SAME(f, rc, model_reset(f->model));
	if (rc)
		return;
	for (i = 0; i < FUZZ_FILES; i++)
		f->files[i].space.listed = false;
	f->resets++;
	model_restore(f->model);
	if (f->model->acquire == FLEXMEM_ACQUIRE_PREALLOC &&
	    !model_refresh(f->model))
		model_prealloc(f->model);
}

/* The sum of the capacities of all domains, as the driver has read them. */
u64 fuzz_capacity_of_all(const struct fuzz *f)
{
	u64 capacity = 0;
	unsigned int i;

	for (i = 0; i < f->model->nr_domains; i++)
		capacity += f->model->domain[i].capacity;
	return capacity;
}

void fuzz_capacity(struct fuzz *f)
{
	unsigned int i;

	if (f->gone)
		return;
	f->fake->capacity = fuzz_take(f) * 2ULL * SZ_1M;
	f->model->domain[0].device_capacity = f->fake->capacity;
	for (i = 0; i < f->model->nr_domains; i++)
		f->model->domain[i].unsure = true;
	flexmem_device_capacity_changed(f->fdev);
	if (!f->model->broken && !model_is_unresponsive(f->model))
		model_refresh(f->model);
}

/* Lets the device work again, so that files with bindings can be closed. */
void fuzz_recover(struct fuzz *f)
{
	unsigned int i;

	for (i = 0; i < FUZZ_FILES; i++)
		if (f->files[i].file && !fuzz_can_close_space(f, i))
			break;
	if (i == FUZZ_FILES)
		return;
	forget_faults(f);
	if (f->model->broken)
		fuzz_reset(f);
	settle(f);
}

/* Unregisters the function, possibly while files are open. */
void fuzz_unregister(struct fuzz *f)
{
	/* Removal is rare, because each later operation fails with ENODEV. */
	if (f->gone || (f->at < f->end && fuzz_take(f) & 7))
		return;
	forget_faults(f);
	if (f->model->broken)
		fuzz_reset(f);
	flexmem_device_unregister(f->fdev);
	if (!fake_device_is_untouched(f->fake))
		fuzz_wrong(f, "the device has not got everything back");
	f->fake->gone = true;
	f->gone = true;
	lose_all(f);
}

/* Ioctl numbers that belong to no command. */
void fuzz_no_command(struct fuzz *f)
{
	unsigned int n = fuzz_take(f);
	unsigned int cmd = n & 1 ? _IO(FLEXMEM_TYPE, 0x20 + n % 200) :
				   _IOR(FLEXMEM_TYPE, n / 2, u32);
	long rc;

	rc = native_ioctl(f->files[f->who].file, cmd, native_user());
	SAME(f, rc, -ENOTTY);
}
