// SPDX-License-Identifier: GPL-2.0
/*
 * A card's functions towards flexmem, whatever bus they are on.
 */

#include <linux/errno.h>
#include <linux/mutex.h>

#include "sim.h"

/**
 * sim_function_suspend - have flexmem leave a function alone
 * @fn: the function
 *
 * The card keeps its power and its memory.
 *
 * Return: 0, also if it is suspended already; -ENODEV if no driver is bound.
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
 * sim_function_resume - let flexmem use a function again
 * @fn: the function
 *
 * Return: 0, also if it is not suspended; -ENODEV if no driver is bound.
 */
int sim_function_resume(struct sim_function *fn)
{
	int ret = 0;

	mutex_lock(&fn->lock);
	if (!fn->fdev)
		ret = -ENODEV;
	else if (fn->suspended)
		flexmem_device_resume(fn->fdev);
	fn->suspended = false;
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
 * sim_function_capacity_changed - tell flexmem, if a driver is bound
 * @fn: the function
 */
void sim_function_capacity_changed(struct sim_function *fn)
{
	mutex_lock(&fn->lock);
	if (fn->fdev)
		flexmem_device_capacity_changed(fn->fdev);
	mutex_unlock(&fn->lock);
}

/**
 * sim_function_reset - have flexmem reset a function
 * @fn: the function
 *
 * Return: 0, -ENODEV if no driver is bound, -EBUSY while it is suspended, or
 * what flexmem_device_reset() returned.
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
