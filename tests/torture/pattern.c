// SPDX-License-Identifier: GPL-2.0
/*
 * Bytes that identify their writer. Each word of 64 bits has
 *
 *	63-58	a mark, by which the word is recognised
 *	57-40	number of the file
 *	39-20	number of the allocation
 *	19-0	index of the word in the allocation
 */
#include "torture.h"

#define MARK 0x2bULL

uint64_t identity(unsigned int file)
{
	return MARK << 58 | (uint64_t)(file & 0x3ffff) << 40;
}

uint64_t pattern_word(uint64_t identity, uint32_t nonce, uint64_t offset)
{
	return identity | (uint64_t)(nonce & 0xfffff) << 20 |
	       (offset / 8 & 0xfffff);
}

void pattern_fill(uint64_t *words, uint64_t identity, uint32_t nonce,
		  uint64_t offset, size_t size)
{
	size_t i;

	for (i = 0; i < size / 8; i++)
		words[i] = pattern_word(identity, nonce, offset + i * 8);
}

bool pattern_is(const uint64_t *words, uint64_t identity, uint32_t nonce,
		uint64_t offset, size_t size, const char *where)
{
	uint64_t wanted;
	size_t i;

	for (i = 0; i < size / 8; i++) {
		wanted = pattern_word(identity, nonce, offset + i * 8);
		if (words[i] == wanted)
			continue;
		fail("%s: at byte %llu there is %#llx, not %#llx", where,
		     (unsigned long long)(offset + i * 8),
		     (unsigned long long)words[i], (unsigned long long)wanted);
		return false;
	}
	count(COUNT_OWN_WORDS, size / 8);
	return true;
}

bool pattern_is_new(const uint64_t *words, uint64_t identity, bool zeroed,
		    size_t size, const char *where)
{
	size_t i;

	for (i = 0; i < size / 8; i++) {
		if (!words[i] || (!zeroed && words[i] >> 40 == identity >> 40))
			continue;
		fail("%s: new memory of %#llx%s has %#llx in word %zu", where,
		     (unsigned long long)identity, zeroed ? " (zeroed)" : "",
		     (unsigned long long)words[i], i);
		return false;
	}
	count(COUNT_NEW_WORDS, size / 8);
	return true;
}
