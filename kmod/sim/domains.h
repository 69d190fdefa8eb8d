/* SPDX-License-Identifier: GPL-2.0 */
/* The memories and spaces of a card, as its parameters describe them. */
#ifndef _FLEXMEM_SIM_DOMAINS_H
#define _FLEXMEM_SIM_DOMAINS_H

#include <linux/bits.h>
#include <linux/sizes.h>
#include <linux/types.h>
#include <flexmem/device_ops.h>

#define SIM_MAX_MEMORY (64ULL * SZ_1T)

/* Granules of main memory and of on-chip memory. */
#define SIM_GRANULE SZ_2M
#define SIM_ON_CHIP_GRANULE SZ_64K

/**
 * struct sim_domains - the memories of a card
 * @nr: number of memories
 * @desc: how the driver describes each memory to flexmem
 * @size: bytes of each memory, without those that the card keeps for itself
 */
struct sim_domains {
	unsigned int nr;
	struct flexmem_domain_desc desc[FLEXMEM_MAX_DOMAINS];
	u64 size[FLEXMEM_MAX_DOMAINS];
};

/* Space of a card without a description. Address 0 is never mapped. */
#define SIM_VM_PAGE SZ_64K
#define SIM_VM_START ((u64)SIM_VM_PAGE)
#define SIM_VM_END BIT_ULL(48)
#define SIM_DEFAULT_SPACE { SIM_VM_PAGE, SIM_VM_START, SIM_VM_END }

/**
 * struct sim_space - the device-virtual spaces of a card
 * @page: page size
 * @start: first address
 * @end: the address behind the last one
 */
struct sim_space {
	u64 page;
	u64 start;
	u64 end;
};

void sim_domains_one(struct sim_domains *domains, u64 size);
const char *sim_domains_parse(struct sim_domains *domains, const char *text,
			      size_t *at);
const char *sim_space_parse(struct sim_space *space, const char *text,
			    size_t *at);

#endif /* _FLEXMEM_SIM_DOMAINS_H */
