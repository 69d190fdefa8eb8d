/* SPDX-License-Identifier: GPL-2.0 */
/* What there is of a device's memory, and what for. */
#ifndef _FLEXMEM_DOMAIN_H
#define _FLEXMEM_DOMAIN_H

/**
 * enum flexmem_kind - what memory is for
 * @FLEXMEM_KIND_TENSOR: data
 * @FLEXMEM_KIND_PROGRAM: device programs, which may have slots set aside
 * @FLEXMEM_NR_KINDS: how many there are
 */
enum flexmem_kind {
	FLEXMEM_KIND_TENSOR,
	FLEXMEM_KIND_PROGRAM,
	FLEXMEM_NR_KINDS,
};

#endif /* _FLEXMEM_DOMAIN_H */
