/* SPDX-License-Identifier: GPL-2.0 */
/* Sizes in module parameters, for flexmem.ko and flexmem_sim.ko. */
#ifndef _FLEXMEM_SIZE_PARAM_H
#define _FLEXMEM_SIZE_PARAM_H

#include <linux/ctype.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/overflow.h>
#include <linux/string.h>
#include <linux/types.h>

/*
 * Reads a size such as 12G. Unlike memparse() it refuses a size of more than 64
 * bits.
 * @text: decimal digits and one of K, M, G, T, P or nothing; a newline may
 * follow. @size: receives the size, in bytes.
 * Return: 0 or -EINVAL.
 */
static inline int flexmem_parse_size(const char *text, u64 *size)
{
	static const char suffixes[] = "KMGTP";
	u64 value = 0;
	const char *s;

	if (!isdigit(*text))
		return -EINVAL;
	for (; isdigit(*text); text++)
		if (check_mul_overflow(value, 10ULL, &value) ||
		    check_add_overflow(value, (u64)(*text - '0'), &value))
			return -EINVAL;
	s = *text ? strchr(suffixes, toupper(*text)) : NULL;
	if (s && check_shl_overflow(value, 10 * (s - suffixes + 1), &value))
		return -EINVAL;
	if (s)
		text++;
	if (!sysfs_streq(text, ""))
		return -EINVAL;
	*size = value;
	return 0;
}

#endif /* _FLEXMEM_SIZE_PARAM_H */
