// SPDX-License-Identifier: GPL-2.0
/*
 * A module that makes errors on purpose, one for each letter of its parameter,
 * so that selfcheck.sh can check that run.sh notices each of them.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static char *faults = "";
module_param(faults, charp, 0444);
MODULE_PARM_DESC(faults, "d: deadlock order, s: sleep in atomic, w: warning, u: use after free, l: leak");

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);
static DEFINE_SPINLOCK(spin);

static void lock_in_both_orders(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);
	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

static void sleep_under_spinlock(void)
{
	spin_lock(&spin);
	msleep(20);
	spin_unlock(&spin);
}

static noinline int use_after_free(void)
{
	int *freed = kzalloc(sizeof(*freed), GFP_KERNEL);

	kfree(freed);
	return freed ? READ_ONCE(*freed) : 0;
}

static noinline void leak(void)
{
	void *lost;
	int i;

	/*
	 * Loses several objects, because a stale pointer on a stack would hide
	 * a single one.
	 */
	for (i = 0; i < 16; i++) {
		lost = kzalloc(192, GFP_KERNEL);
		OPTIMIZER_HIDE_VAR(lost);
	}
}

static int __init broken_init(void)
{
	const char *f;

	for (f = faults; *f; f++) {
		if (*f == 'd')
			lock_in_both_orders();
		else if (*f == 's')
			sleep_under_spinlock();
		else if (*f == 'w')
			WARN(1, "broken: as asked\n");
		else if (*f == 'u')
			use_after_free();
		else if (*f == 'l')
			leak();
	}
	return 0;
}

static void __exit broken_exit(void)
{
}

module_init(broken_init);
module_exit(broken_exit);
MODULE_DESCRIPTION("Does wrong on purpose, to test the tests");
MODULE_LICENSE("GPL");
