// SPDX-License-Identifier: GPL-2.0
/* A card on any bus. It registers its functions with flexmem. */

#include <linux/err.h>
#include <linux/errno.h>
#include <linux/mutex.h>

#include "card.h"

/**
 * sim_card_init - switch a card on
 * @card: to initialise; all zero
 * @geometry: how the card is built; the caller has checked it. Its domains must
 *	outlive the card
 * @timeout_ms: how long the host waits for the firmware
 * @job_timeout_ms: how long a job may run
 *
 * Return: 0 or -ENOMEM.
 */
int sim_card_init(struct sim_card *card, const struct sim_geometry *geometry,
		  u32 timeout_ms, u32 job_timeout_ms)
{
	struct sim_function *fn;
	unsigned int i;

	sim_mailbox_init(&card->mbox, timeout_ms);
	sim_memory_init(&card->memory);
	card->slots = geometry->slots;
	card->job_timeout_ms = job_timeout_ms;
	card->domains = geometry->domains;
	card->space = geometry->space;
	for (i = 0; i < SIM_MAX_FUNCTIONS; i++) {
		fn = &card->functions[i];
		fn->card = card;
		fn->index = i;
		fn->ops = i ? &sim_vf_ops : &sim_pf_ops;
		mutex_init(&fn->lock);
		mutex_init(&fn->turn);
		sim_queue_init(&fn->queue, fn);
	}
	card->fw = sim_firmware_start(&card->mbox, &card->memory, geometry);
	if (IS_ERR(card->fw)) {
		int ret = PTR_ERR(card->fw);

		card->fw = NULL;
		sim_card_destroy(card);
		return ret;
	}
	return 0;
}

/**
 * sim_card_destroy - switch the card off, and free its memory
 * @card: card without a bound function
 */
void sim_card_destroy(struct sim_card *card)
{
	unsigned int i;

	for (i = 0; i < SIM_MAX_FUNCTIONS; i++)
		sim_queue_destroy(&card->functions[i].queue);
	if (card->fw)
		sim_firmware_stop(card->fw);
	for (i = 0; i < SIM_MAX_FUNCTIONS; i++) {
		mutex_destroy(&card->functions[i].turn);
		mutex_destroy(&card->functions[i].lock);
	}
	sim_memory_destroy(&card->memory);
	sim_mailbox_destroy(&card->mbox);
}

/**
 * sim_function_bind - let flexmem manage a function
 * @fn: the function
 * @dev: its device
 * @name: name that user space sees
 *
 * Return: 0, -EBUSY if it is bound, or what flexmem_device_register() returned.
 */
int sim_function_bind(struct sim_function *fn, struct device *dev,
		      const char *name)
{
	const bool pf = !fn->index;
	const struct flexmem_device_desc desc = {
		.name = name,
		.mode = pf ? FLEXMEM_MODE_PF : FLEXMEM_MODE_VF,
		.slots = pf ? 0 : fn->card->slots,
		.granule = SIM_GRANULE,
		.vm_page = fn->card->space.page,
		.vm_start = fn->card->space.start,
		.vm_end = fn->card->space.end,
		/*
		 * The simulated memory is RAM of the host, so the CPU can cache
		 * it.
		 */
		.caching = FLEXMEM_CACHED,
		.device = fn->card,
		.nr_domains = fn->card->domains->nr,
		.domains = fn->card->domains->desc,
		.ops = fn->ops,
		.priv = fn,
	};
	struct flexmem_dev *fdev;
	int ret = -EBUSY;

	/*
	 * The lock is held during the registration, so that a change of
	 * capacity in the meantime is not lost.
	 */
	mutex_lock(&fn->lock);
	if (!fn->fdev) {
		fn->dev = dev;
		fdev = flexmem_device_register(dev, &desc);
		ret = PTR_ERR_OR_ZERO(fdev);
		if (ret)
			sim_ops_reset(fn);
		else
			fn->fdev = fdev;
	}
	mutex_unlock(&fn->lock);
	return ret;
}

/**
 * sim_function_unbind - end flexmem's management of a function, and reset it
 * @fn: the function
 *
 * Return: 0, or -ENODEV if the function is not bound.
 */
int sim_function_unbind(struct sim_function *fn)
{
	struct flexmem_dev *fdev;

	mutex_lock(&fn->lock);
	fdev = fn->fdev;
	if (fdev) {
		fn->fdev = NULL;
		fn->suspended = false;
		/*
		 * A job may use the device until its end, and flexmem does not
		 * quiesce a function that is suspended or wedged.
		 */
		sim_queue_stop(&fn->queue);
		flexmem_device_unregister(fdev);
		sim_ops_reset(fn);
	}
	mutex_unlock(&fn->lock);
	return fdev ? 0 : -ENODEV;
}

/**
 * sim_function_suspend - suspend a function
 * @fn: the function
 *
 * The card keeps its power and its memory.
 *
 * Return: 0, also if the function is suspended already; -ENODEV if it is not
 * bound.
 */
int sim_function_suspend(struct sim_function *fn)
{
	int ret = 0;

	mutex_lock(&fn->lock);
	if (!fn->fdev) {
		ret = -ENODEV;
	} else if (!fn->suspended) {
		flexmem_device_suspend(fn->fdev);
		fn->suspended = true;
	}
	mutex_unlock(&fn->lock);
	return ret;
}

/**
 * sim_function_resume - resume a function
 * @fn: the function
 *
 * Return: 0, also if the function is not suspended; -ENODEV if it is not bound.
 */
int sim_function_resume(struct sim_function *fn)
{
	int ret = 0;

	mutex_lock(&fn->lock);
	if (!fn->fdev) {
		ret = -ENODEV;
	} else if (fn->suspended) {
		flexmem_device_resume(fn->fdev);
		fn->suspended = false;
		sim_queue_wake(&fn->queue);
	}
	mutex_unlock(&fn->lock);
	return ret;
}

/**
 * sim_function_suspended - whether a function is suspended
 * @fn: the function
 *
 * Return: true if it is.
 */
bool sim_function_suspended(struct sim_function *fn)
{
	bool suspended;

	mutex_lock(&fn->lock);
	suspended = fn->suspended;
	mutex_unlock(&fn->lock);
	return suspended;
}

/**
 * sim_function_capacity_changed - tell flexmem that the capacity has changed
 * @fn: the function; nothing happens if it is not bound
 */
void sim_function_capacity_changed(struct sim_function *fn)
{
	mutex_lock(&fn->lock);
	if (fn->fdev)
		flexmem_device_capacity_changed(fn->fdev);
	mutex_unlock(&fn->lock);
}

/**
 * sim_function_reset - reset a function through flexmem
 * @fn: the function
 *
 * Return: 0, -ENODEV if it is not bound, -EBUSY while it is suspended, or what
 * flexmem_device_reset() returned.
 */
int sim_function_reset(struct sim_function *fn)
{
	int ret = -ENODEV;

	if (mutex_lock_killable(&fn->lock))
		return -EINTR;
	if (fn->suspended)
		ret = -EBUSY;
	else if (fn->fdev)
		ret = flexmem_device_reset(fn->fdev);
	mutex_unlock(&fn->lock);
	return ret;
}
