// SPDX-License-Identifier: GPL-2.0
/*
 * The memories of the simulated card: the texts that describe them, and which
 * addresses the firmware grants.
 */
#include "shim/internal.h"

#include "faults.h"

/* The expected properties of a memory. */
struct expected {
	enum flexmem_domain_type type;
	u64 granule;
	u64 size;
	u64 set_aside;
};

#define HBM(size) { FLEXMEM_DOMAIN_DEVICE, SZ_2M, size, 0 }
#define TCM(size, set_aside) { FLEXMEM_DOMAIN_ON_CHIP, SZ_64K, size, set_aside }

static const struct {
	const char *text;
	unsigned int nr;
	struct expected domain[8];
} good[] = {
	{ "hbm:2M", 1, { HBM(SZ_2M) } },
	{ "dimm*1:4M\n", 1, { HBM(SZ_4M) } },
	{ "hbm:2T", 1, { HBM(2048ull * SZ_1G) } },
	{ "hbm*4:24G,tcm*4:16M:reserved=1M", 8, {
		HBM(24ull * SZ_1G), HBM(24ull * SZ_1G),
		HBM(24ull * SZ_1G), HBM(24ull * SZ_1G),
		TCM(15 * SZ_1M, SZ_1M), TCM(15 * SZ_1M, SZ_1M),
		TCM(15 * SZ_1M, SZ_1M), TCM(15 * SZ_1M, SZ_1M) } },
	{ "dimm:4M:reserved=2M,host:2M,tcm:128K:reserved=64K", 3, {
		{ FLEXMEM_DOMAIN_DEVICE, SZ_2M, SZ_2M, SZ_2M },
		{ FLEXMEM_DOMAIN_HOST_VISIBLE, SZ_2M, SZ_2M, 0 },
		TCM(SZ_64K, SZ_64K) } },
	{ "hbm:6M,tcm*2:192K:reserved=64K,dimm:2M", 4, {
		HBM(3 * SZ_2M), TCM(SZ_128K, SZ_64K), TCM(SZ_128K, SZ_64K),
		HBM(SZ_2M) } },
};

#define TYPE "hbm, dimm, tcm or host is expected"
#define NUMBER "a number from 1 to 32 is expected"
#define COLON "a colon and a size are expected"
#define SIZE "a size is expected: a multiple of 2M, at most 2T"
#define SMALL_SIZE "a size is expected: a multiple of 64K, at most 2T"
#define LESS "less than the size of the memory is expected"
#define COMMA "a comma or the end is expected"
#define FIRST "hbm or dimm is expected as the first memory"
#define MANY "at most 32 memories are expected"

/*
 * Wrong texts, each with the number of characters before the error, and the
 * message.
 */
static const struct {
	const char *text;
	size_t at;
	const char *wrong;
} bad[] = {
	{ "", 0, TYPE },
	{ "\n", 0, TYPE },
	{ "ddr:2M", 0, TYPE },
	{ "hbm2:2M", 0, TYPE },
	{ "hbmhbmhbmhbmhbmhbmhbmhbmhbm:2M", 0, TYPE },
	{ "hbm:2M,", 7, TYPE },
	{ "hbm:2M,,tcm:64K", 7, TYPE },
	{ "hbm*:2M", 4, NUMBER },
	{ "hbm*0:2M", 4, NUMBER },
	{ "hbm*33:2M", 4, NUMBER },
	{ "hbm*x:2M", 4, NUMBER },
	{ "hbm", 3, COLON },
	{ "hbm*4,tcm:64K", 5, COLON },
	{ "hbm=2M", 3, COLON },
	{ "hbm:", 4, SIZE },
	{ "hbm:0", 4, SIZE },
	{ "hbm:1M", 4, SIZE },
	{ "hbm:3M", 4, SIZE },
	{ "hbm:2X", 4, SIZE },
	{ "hbm:2050G", 4, SIZE },
	{ "hbm:2M,tcm:32K", 11, SMALL_SIZE },
	{ "hbm:4M:reserved=", 16, SIZE },
	{ "hbm:4M:reserved=1M", 16, SIZE },
	{ "hbm:4M:reserved=4M", 16, LESS },
	{ "hbm:2M,tcm:128K:reserved=192K", 25, LESS },
	{ "hbm:4M:rest=2M", 6, COMMA },
	{ "hbm:4M:reserved=2M:reserved=2M", 18, COMMA },
	{ "hbm:4M:short", 6, COMMA },
	{ "hbm:2M;tcm:64K", 4, SIZE },
	{ "hbm:2M\ntcm:64K", 6, COMMA },
	{ "tcm:64K,hbm:2M", 0, FIRST },
	{ "hbm*31:2M,tcm*2:64K", 10, MANY },
};

static struct sim_domains domains;

static unsigned int complain(const char *text, const char *what)
{
	printf("# domains=%s: %s\n", text, what);
	return 1;
}

static unsigned int check_good(unsigned int i)
{
	const struct expected *want = good[i].domain;
	const struct flexmem_domain_desc *is = domains.desc;
	const char *wrong;
	unsigned int d;
	size_t at;

	wrong = sim_domains_parse(&domains, good[i].text, &at);
	if (wrong || domains.nr != good[i].nr)
		return complain(good[i].text, wrong ?: "number of memories");
	for (d = 0; d < domains.nr; d++, want++, is++)
		if (is->type != want->type || is->granule != want->granule ||
		    domains.size[d] != want->size || is->nr_sizes ||
		    is->set_aside != want->set_aside)
			return complain(good[i].text, "a memory");
	return 0;
}

static unsigned int check_bad(unsigned int i)
{
	const char *wrong;
	size_t at = 1000;

	wrong = sim_domains_parse(&domains, bad[i].text, &at);
	if (!wrong || strcmp(wrong, bad[i].wrong) || at != bad[i].at) {
		printf("# at %zu: %s\n", at, wrong ?: "nothing wrong");
		return complain(bad[i].text, "the error");
	}
	return 0;
}

/*
 * Acquires all of a memory, one granule at a time. The addresses of the
 * granules must be in order and inside the memory, and not in the part that the
 * card keeps for itself.
 */
static unsigned int check_memory(struct sim_function *fn, unsigned int domain,
				 u64 base)
{
	u64 granule = domains.desc[domain].granule, bytes, used = 0;
	struct flexmem_memory mem = { .domain = domain };
	int rc;

	rc = sim_vf_ops.capacity(fn, domain, &bytes);
	if (rc || bytes != domains.size[domain])
		return complain("", "capacity of a memory");
	for (;;) {
		mem.id = (u64)domain << 32 | (used + 1);
		rc = sim_vf_ops.acquire(fn, granule, &mem);
		if (rc)
			break;
		if (mem.base != base + used)
			return complain("", "place in a memory");
		used += granule;
	}
	if (rc != -ENOSPC || used != bytes)
		return complain("", "bytes given out of a memory");
	/* Another VF has capacity left, but the memory is full. */
	if (sim_vf_ops.acquire(fn + 1, granule, &mem) != -ENOSPC)
		return complain("", "a memory that is full");
	return 0;
}

/*
 * Requests that must be refused: an id that is in use in another memory, a
 * memory that does not exist, and a size below the granule.
 */
static unsigned int check_refusals(struct sim_function *fn)
{
	struct flexmem_memory mem = { .domain = 1, .id = 1 };
	u64 bytes;

	if (sim_vf_ops.acquire(fn, SZ_2M, &mem) != -EIO)
		return complain("", "a name of memory 0 is one of memory 1");
	mem.id = 1000;
	mem.domain = FLEXMEM_MAX_DOMAINS;
	if (sim_vf_ops.acquire(fn, SZ_2M, &mem) != -EIO ||
	    sim_vf_ops.capacity(fn, domains.nr, &bytes) != -EIO)
		return complain("", "a memory that is not there");
	mem.domain = 0;
	if (sim_vf_ops.acquire(fn, SZ_64K, &mem) != -EIO)
		return complain("", "less than a unit");
	return 0;
}

/*
 * Acquires all memories. The test uses both orders, to show that no memory
 * extends into the next.
 */
static unsigned int check_card(bool reverse)
{
	static const char text[] =
		"hbm*2:8M:reserved=2M,tcm*2:1M:reserved=128K";
	static struct sim_card card;
	struct sim_geometry geometry = {
		.domains = &domains,
		.slots = 8,
		.space = SIM_DEFAULT_SPACE,
	};
	unsigned int i, domain, wrong = 0;
	struct sim_function *fn;
	size_t at;

	if (sim_domains_parse(&domains, text, &at))
		return complain(text, "refused");
	geometry.pf_capacity = domains.size[0];
	geometry.vf_capacity = domains.size[0];
	memset(&card, 0, sizeof(card));
	if (sim_card_init(&card, &geometry, 1000, 1000))
		return complain(text, "no card");
	fn = &card.functions[1];
	for (i = 0; i < domains.nr; i++) {
		domain = reverse ? domains.nr - 1 - i : i;
		wrong += check_memory(fn, domain, (u64)domain * SZ_1G);
	}
	wrong += check_refusals(fn);
	sim_card_destroy(&card);
	return wrong;
}

#define PAGE "a page size is expected: a power of two from 4K to 2M"
#define START "a start is expected: a multiple of the page size"
#define ALL "a size is expected: a multiple of the page size"

/* Texts of spaces; without a message they are right. */
static const struct {
	const char *text;
	struct sim_space space;
	size_t at;
	const char *wrong;
} spaces[] = {
	{ "64K:4G:64G", { SZ_64K, 4ull * SZ_1G, 68ull * SZ_1G } },
	{ "4K:4K:4K\n", { SZ_4K, SZ_4K, SZ_8K } },
	{ "2M:2M:2M", { SZ_2M, SZ_2M, SZ_4M } },
	{ "2M:2M:18446744073705357312", { SZ_2M, SZ_2M, -SZ_2M } },
	{ .text = "", .at = 0, .wrong = PAGE },
	{ .text = "2K:4G:64G", .at = 0, .wrong = PAGE },
	{ .text = "12K:4G:64G", .at = 0, .wrong = PAGE },
	{ .text = "4M:4G:64G", .at = 0, .wrong = PAGE },
	{ .text = "64K", .at = 3, .wrong = "a colon and a start are expected" },
	{ .text = "64K:", .at = 4, .wrong = START },
	{ .text = "64K:0:64G", .at = 4, .wrong = START },
	{ .text = "64K:4K:64G", .at = 4, .wrong = START },
	{ .text = "64K:4G", .at = 6, .wrong = COLON },
	{ .text = "64K:4G:", .at = 7, .wrong = ALL },
	{ .text = "64K:4G:0", .at = 7, .wrong = ALL },
	{ .text = "64K:4G:4K", .at = 7, .wrong = ALL },
	{ .text = "2M:2M:18446744073707454464", .at = 6, .wrong = ALL },
	{ .text = "64K:4G:64G:", .at = 10, .wrong = "the end is expected" },
};

static unsigned int check_space(unsigned int i)
{
	struct sim_space is = SIM_DEFAULT_SPACE, was = is;
	const char *wrong;
	size_t at;

	wrong = sim_space_parse(&is, spaces[i].text, &at);
	if (!spaces[i].wrong && !wrong &&
	    !memcmp(&is, &spaces[i].space, sizeof(is)))
		return 0;
	if (spaces[i].wrong && wrong && !strcmp(wrong, spaces[i].wrong) &&
	    at == spaces[i].at && !memcmp(&is, &was, sizeof(is)))
		return 0;
	printf("# space=%s: at %zu: %s\n", spaces[i].text, at,
	       wrong ?: "nothing wrong");
	return 1;
}

/**
 * sim_domains_wrong - try the texts of memories and spaces, and a card with several memories
 *
 * Return: number of wrong outcomes.
 */
unsigned int sim_domains_wrong(void)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < ARRAY_SIZE(good); i++)
		wrong += check_good(i);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		wrong += check_bad(i);
	for (i = 0; i < ARRAY_SIZE(spaces); i++)
		wrong += check_space(i);
	wrong += check_card(false);
	wrong += check_card(true);
	return wrong;
}
