// SPDX-License-Identifier: GPL-2.0
/*
 * The text that describes the memories of a card: groups of equal memories, such
 * as hbm*4:24G,tcm*4:16M:reserved=1M; and the text that describes its
 * device-virtual spaces, such as 64K:4G:64G.
 */

#include <linux/align.h>
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/string.h>

#include "domains.h"
#include "size_param.h"

/*
 * The most bytes of one memory, so that all memories together have at most
 * SIM_MAX_MEMORY.
 */
#define MAX_SIZE (SIM_MAX_MEMORY / FLEXMEM_MAX_DOMAINS)

/* Room for the longest word in the module parameter "domains", and a NUL. */
#define WORD_SIZE 24

static const struct group_type {
	const char *name;
	enum flexmem_domain_type type;
	u64 granule;
} types[] = {
	{ "hbm", FLEXMEM_DOMAIN_DEVICE, SIM_GRANULE },
	{ "dimm", FLEXMEM_DOMAIN_DEVICE, SIM_GRANULE },
	{ "tcm", FLEXMEM_DOMAIN_ON_CHIP, SIM_ON_CHIP_GRANULE },
	{ "host", FLEXMEM_DOMAIN_HOST_VISIBLE, SIM_GRANULE },
};

/**
 * struct group - equal memories
 * @type: kind of memory
 * @nr: number of memories
 * @size: bytes of each memory
 * @reserved: bytes of each memory that the card keeps for itself
 */
struct group {
	const struct group_type *type;
	unsigned int nr;
	u64 size;
	u64 reserved;
};

/* Copies the word at the cursor. Returns its length, or 0 if it is too long. */
static size_t read_word(const char *text, char *word)
{
	size_t length = strcspn(text, "*:,=\n");

	if (length >= WORD_SIZE)
		return 0;
	memcpy(word, text, length);
	word[length] = '\0';
	return length;
}

static bool skip(const char **text, const char *prefix)
{
	size_t length = strlen(prefix);

	if (strncmp(*text, prefix, length))
		return false;
	*text += length;
	return true;
}

/*
 * Each of the functions below reads one part of a group at the cursor @text and
 * moves the cursor behind it. On an error it leaves the cursor where it is, and
 * returns a text that says what was expected there.
 */

static const char *parse_type(const char **text, struct group *group)
{
	char word[WORD_SIZE];
	size_t length = read_word(*text, word);
	unsigned int i;

	for (i = 0; length && i < ARRAY_SIZE(types); i++) {
		if (!strcmp(word, types[i].name)) {
			group->type = &types[i];
			*text += length;
			return NULL;
		}
	}
	return "hbm, dimm, tcm or host is expected";
}

static const char *parse_number(const char **text, struct group *group)
{
	char word[WORD_SIZE];
	size_t length = read_word(*text, word);

	if (!length || kstrtouint(word, 10, &group->nr) || !group->nr ||
	    group->nr > FLEXMEM_MAX_DOMAINS)
		return "a number from 1 to 32 is expected";
	*text += length;
	return NULL;
}

static const char *parse_bytes(const char **text, const struct group *group,
			       u64 *bytes)
{
	char word[WORD_SIZE];
	size_t length = read_word(*text, word);

	if (!length || flexmem_parse_size(word, bytes) || !*bytes ||
	    *bytes > MAX_SIZE || !IS_ALIGNED(*bytes, group->type->granule))
		return group->type->granule == SIM_GRANULE ?
			"a size is expected: a multiple of 2M, at most 2T" :
			"a size is expected: a multiple of 64K, at most 2T";
	*text += length;
	return NULL;
}

static const char *parse_reserved(const char **text, struct group *group)
{
	const char *begin = *text, *wrong;

	wrong = parse_bytes(text, group, &group->reserved);
	if (!wrong && group->reserved >= group->size) {
		*text = begin;
		wrong = "less than the size of the memory is expected";
	}
	return wrong;
}

static const char *parse_group(const char **text, struct group *group)
{
	const char *wrong;

	*group = (struct group) { .nr = 1 };
	wrong = parse_type(text, group);
	if (!wrong && skip(text, "*"))
		wrong = parse_number(text, group);
	if (!wrong && !skip(text, ":"))
		wrong = "a colon and a size are expected";
	if (!wrong)
		wrong = parse_bytes(text, group, &group->size);
	if (!wrong && skip(text, ":reserved="))
		wrong = parse_reserved(text, group);
	return wrong;
}

static const char *add_group(struct sim_domains *domains,
			     const struct group *group)
{
	unsigned int i;

	if (!domains->nr && group->type->type != FLEXMEM_DOMAIN_DEVICE)
		return "hbm or dimm is expected as the first memory";
	if (group->nr > FLEXMEM_MAX_DOMAINS - domains->nr)
		return "at most 32 memories are expected";
	for (i = 0; i < group->nr; i++, domains->nr++) {
		domains->desc[domains->nr] = (struct flexmem_domain_desc) {
			.type = group->type->type,
			.granule = group->type->granule,
			.set_aside = group->reserved,
		};
		domains->size[domains->nr] = group->size - group->reserved;
	}
	return NULL;
}

/**
 * sim_domains_one - describe a card with one memory
 * @domains: receives the description
 * @size: bytes of the memory
 */
void sim_domains_one(struct sim_domains *domains, u64 size)
{
	*domains = (struct sim_domains) {
		.nr = 1,
		.desc[0].granule = SIM_GRANULE,
		.size[0] = size,
	};
}

/**
 * sim_domains_parse - read a description
 * @domains: receives the memories; not valid after an error
 * @text: groups of the form TYPE[*NUMBER]:SIZE[:reserved=SIZE] with
 *	commas between them; a newline may follow
 * @at: receives the place of an error: how many characters are before it
 *
 * Return: NULL, or a text that says what is wrong at @at.
 */
const char *sim_domains_parse(struct sim_domains *domains, const char *text,
			      size_t *at)
{
	const char *rest = text, *begin, *wrong;
	struct group group;

	domains->nr = 0;
	do {
		begin = rest;
		wrong = parse_group(&rest, &group);
		if (!wrong && *rest != ',' && !sysfs_streq(rest, ""))
			wrong = "a comma or the end is expected";
		if (!wrong) {
			wrong = add_group(domains, &group);
			*at = begin - text;
		} else {
			*at = rest - text;
		}
	} while (!wrong && skip(&rest, ","));
	return wrong;
}

/* Reads the size at the cursor. Does not move the cursor after an error. */
static bool read_size(const char **text, u64 *size)
{
	char word[WORD_SIZE];
	size_t length = read_word(*text, word);

	if (!length || flexmem_parse_size(word, size))
		return false;
	*text += length;
	return true;
}

static const char *parse_space(const char **text, struct sim_space *space)
{
	const char *begin = *text;
	u64 size;

	if (!read_size(text, &space->page) || !is_power_of_2(space->page) ||
	    space->page < SZ_4K || space->page > SIM_GRANULE) {
		*text = begin;
		return "a page size is expected: a power of two from 4K to 2M";
	}
	if (!skip(text, ":"))
		return "a colon and a start are expected";
	begin = *text;
	if (!read_size(text, &space->start) || !space->start ||
	    !IS_ALIGNED(space->start, space->page)) {
		*text = begin;
		return "a start is expected: a multiple of the page size";
	}
	if (!skip(text, ":"))
		return "a colon and a size are expected";
	begin = *text;
	if (!read_size(text, &size) || !size ||
	    !IS_ALIGNED(size, space->page) || size > U64_MAX - space->start) {
		*text = begin;
		return "a size is expected: a multiple of the page size";
	}
	space->end = space->start + size;
	return sysfs_streq(*text, "") ? NULL : "the end is expected";
}

/**
 * sim_space_parse - read a description of the device-virtual spaces
 * @space: receives the description; unchanged after an error
 * @text: PAGE:START:SIZE; a newline may follow
 * @at: receives the place of an error: how many characters are before it
 *
 * Return: NULL, or a text that says what is wrong at @at.
 */
const char *sim_space_parse(struct sim_space *space, const char *text,
			    size_t *at)
{
	const char *rest = text, *wrong;
	struct sim_space parsed;

	wrong = parse_space(&rest, &parsed);
	*at = rest - text;
	if (!wrong)
		*space = parsed;
	return wrong;
}
