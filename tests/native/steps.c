// SPDX-License-Identifier: GPL-2.0
/*
 * Counts the steps of the slowest of many operations on the blocks of a region.
 * The steps must grow only with the logarithm of the number of blocks. Prints
 * TAP.
 *
 * usage: steps [MOST [TRIES]]
 *	MOST	the larger region has 2^MOST blocks; default: 16
 *	TRIES	number of operations of each kind; default: 3000
 */
#include "shim/internal.h"

#include "block/block.h"
#include "count.h"

#define LEAST 8			/* the smaller region has 2^8 blocks */
/*
 * The larger region has at most twice the logarithm of blocks of the smaller
 * one, or 2.5 times for 2^20 blocks. So the steps may grow at most by this
 * factor. Linear work would grow 256-fold.
 */
#define TIMES 3

static unsigned int most = 16, tries = 3000;
static struct flexmem_block *block, **used;
static unsigned int nr_blocks, nr_used, results, failures;

/* A kind of request, with the layout of the free memory. */
static const struct kind {
	const char *name;
	u64 alignment;
	bool growable;
	/* all holes have the wanted size, and none the wanted alignment */
	bool alike;
} kinds[] = {
	{ "of any size", FLEXMEM_ALIGN },
	{ "aligned", SZ_64K },
	{ "aligned, where nothing is", SZ_1M, .alike = true },
	{ "that will grow", FLEXMEM_ALIGN, .growable = true },
};

struct run {
	const struct kind *kind;
	struct flexmem_blocks blocks;
	struct flexmem_spare spare;
	u64 random;
	unsigned long worst_alloc;
	unsigned long worst_free;
};

static u64 below(struct run *run, u64 limit)
{
	run->random = run->random * 6364136223846793005ULL +
		      1442695040888963407ULL;
	return (run->random >> 33) % limit;
}

static void fill(struct flexmem_spare *spare)
{
	unsigned int i;

	for (i = 0; i < 2; i++)
		if (!spare->block[i])
			spare->block[i] = &block[nr_blocks++];
}

static u64 size(struct run *run)
{
	if (run->kind->alike)
		return SZ_1M;
	return SZ_4K + FLEXMEM_ALIGN * below(run, 2048);
}

static struct flexmem_block *alloc(struct run *run, u64 alignment,
				   bool growable)
{
	struct flexmem_block *new = NULL;
	struct flexmem_found found = {};
	u64 bytes = size(run);

	fill(&run->spare);
	COUNT(run->worst_alloc,
	      if (flexmem_blocks_find(&run->blocks, bytes, alignment, growable,
				      &found))
		      new = flexmem_blocks_take(&run->blocks, &found, bytes,
						&run->spare));
	if (new)
		used[nr_used++] = new;
	return new;
}

static void give_back(struct run *run, unsigned int i)
{
	struct flexmem_spare unused;

	COUNT(run->worst_free,
	      flexmem_blocks_free(&run->blocks, used[i], &unused));
	used[i] = used[--nr_used];
	/* Takes unused nodes back, so that the array of nodes lasts longer. */
	for (i = 0; i < 2; i++)
		if (unused.block[i] && !run->spare.block[i])
			run->spare.block[i] = unused.block[i];
}

/* Occupies bytes that are never freed. */
static void take(struct run *run, u64 bytes)
{
	struct flexmem_found found = {};

	fill(&run->spare);
	if (flexmem_blocks_find(&run->blocks, bytes, FLEXMEM_ALIGN, false,
				&found))
		flexmem_blocks_take(&run->blocks, &found, bytes, &run->spare);
}

/* Makes @nr blocks. Every second one is free. */
static void prepare(struct run *run, enum flexmem_fit fit, unsigned int nr)
{
	unsigned int i, kept;

	nr_blocks = 0;
	nr_used = 0;
	count_nothing = true;
	flexmem_blocks_init(&run->blocks, 1ULL << 42, fit, &block[nr_blocks++]);
	/*
	 * Shifts the blocks. Without the shift each block would begin at an
	 * aligned offset.
	 */
	if (run->kind->alike)
		take(run, FLEXMEM_ALIGN);
	for (i = 0; i < nr; i++)
		alloc(run, FLEXMEM_ALIGN, false);
	/* Occupies the rest of the region, so that only the holes are free. */
	take(run, flexmem_blocks_largest(&run->blocks));
	for (i = kept = 0; i < nr; i++) {
		struct flexmem_spare unused;

		if (i % 2)
			flexmem_blocks_free(&run->blocks, used[i], &unused);
		else
			used[kept++] = used[i];
	}
	nr_used = kept;
	count_nothing = false;
}

static void measure(struct run *run, enum flexmem_fit fit, unsigned int log)
{
	unsigned int i, found = 0;

	prepare(run, fit, 1U << log);
	for (i = 0; i < tries; i++) {
		if (nr_blocks + 2 > 2U << most)
			break;
		if (alloc(run, run->kind->alignment, run->kind->growable))
			found++;
		/*
		 * If all holes are misaligned, the request has failed, so there
		 * is nothing to free.
		 */
		if (!run->kind->alike)
			give_back(run, below(run, nr_used));
	}
	if (i < tries || !found != run->kind->alike) {
		printf("# 2^%u blocks: %u of %u found\n", log, found, i);
		failures++;
	}
	if (flexmem_blocks_check(&run->blocks)) {
		printf("# %s\n", flexmem_blocks_check(&run->blocks));
		failures++;
	}
}

static void test(const struct kind *kind, enum flexmem_fit fit)
{
	struct run few = { .kind = kind, .random = 1 };
	struct run many = { .kind = kind, .random = 1 };
	unsigned int before = failures;

	measure(&few, fit, LEAST);
	measure(&many, fit, most);
	if (many.worst_alloc > TIMES * few.worst_alloc ||
	    many.worst_free > TIMES * few.worst_free)
		failures++;
	printf("%s %u - %s_fit, blocks %s: " STEP_NAME " of alloc %lu, free %lu among 2^%u; %lu, %lu among 2^%u\n",
	       failures > before ? "not ok" : "ok", ++results,
	       fit == FLEXMEM_FIT_BEST ? "best" : "first", kind->name, few.worst_alloc,
	       few.worst_free, LEAST, many.worst_alloc, many.worst_free, most);
}

int main(int argc, char **argv)
{
	unsigned int i, fit;

	if (argc > 1)
		most = strtoul(argv[1], NULL, 0);
	if (argc > 2)
		tries = strtoul(argv[2], NULL, 0);
	block = calloc(2U << most, sizeof(*block));
	used = calloc(1U << most, sizeof(*used));
	if (!block || !used)
		return 2;
	for (fit = FLEXMEM_FIT_FIRST; fit <= FLEXMEM_FIT_BEST; fit++)
		for (i = 0; i < ARRAY_SIZE(kinds); i++)
			test(&kinds[i], fit);
	printf("1..%u\n", results);
	return failures ? 1 : 0;
}
