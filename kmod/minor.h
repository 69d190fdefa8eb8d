/* SPDX-License-Identifier: GPL-2.0 */
/* Minor numbers of the nodes. */
#ifndef _FLEXMEM_MINOR_H
#define _FLEXMEM_MINOR_H

#include <linux/mutex.h>
#include <linux/flexmem.h>

struct flexmem_dev;

#define FLEXMEM_MAX_PFS 64
#define FLEXMEM_MAX_DEVICES 256

/**
 * struct flexmem_minors - minor numbers: first those of PFs, then of VFs
 * @lock: protects the members below; a leaf
 * @function: by number: the function that has the number now, or NULL
 * @name: by number: the name of the device that has or had the number; NULL if
 *	the number was never used
 */
struct flexmem_minors {
	struct mutex lock; /* protects the members below */
	struct flexmem_dev *function[FLEXMEM_MAX_DEVICES];
	char *name[FLEXMEM_MAX_DEVICES];
};

void flexmem_minors_init(struct flexmem_minors *minors);
void flexmem_minors_fini(struct flexmem_minors *minors);
int flexmem_minor_get(struct flexmem_minors *minors, enum flexmem_mode mode,
		      const char *name, struct flexmem_dev *fdev);
struct flexmem_dev *flexmem_minor_find(struct flexmem_minors *minors,
				       unsigned int minor);
void flexmem_minor_put(struct flexmem_minors *minors, unsigned int minor);

#endif /* _FLEXMEM_MINOR_H */
