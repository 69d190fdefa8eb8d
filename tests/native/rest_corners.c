// SPDX-License-Identifier: GPL-2.0
/*
 * Cards whose memory is no multiple of the region sizes: a VF can allocate all of
 * it.
 */
#include "shim/internal.h"

#include "faults.h"

#define GIB ((u64)SZ_1G)
/* More than the pieces of the largest card. */
#define MOST_PIECES 128

/*
 * Memories of cards. The last three divide neither into sizes of regions nor into
 * GiB.
 */
static const char * const texts[] = {
	"hbm:10G", "hbm:31G", "hbm:33G", "hbm:13318M", "hbm:26634M", "hbm:3074M",
};

/* The eight slots of the card suffice for 33 GiB with each of them. */
static const char * const lists[] = {
	"fallback_sizes=12G,8G,4G",
	"fallback_sizes=8G,5G order=fill_first",
	"fallback_sizes=5G,12G order=fill_first strategy=best_fit",
	"fallback_sizes=64G,7G",
};

static unsigned int complain(const char *what, u64 is, u64 expected)
{
	printf("# %s: %llu, expected %llu\n", what, is, expected);
	return 1;
}

static struct flexmem_domain_info told(struct file *file)
{
	struct flexmem_domain_info cmd = CMD(domain_info,
					     .domain = FLEXMEM_DOMAIN_ALL);

	WARN_ON(native_ioctl(file, FLEXMEM_IOCTL_DOMAIN, &cmd));
	return cmd;
}

/* Writes a number to the first and to the last bytes of a piece. */
static bool mark(struct file *file, u32 handle, u64 size, u64 number)
{
	struct flexmem_rw cmd = CMD(rw, .handle = handle,
				    .length = sizeof(number),
				    .data = (uintptr_t)&number);

	if (native_ioctl(file, FLEXMEM_IOCTL_WRITE, &cmd))
		return false;
	cmd.offset = size - sizeof(number);
	return !native_ioctl(file, FLEXMEM_IOCTL_WRITE, &cmd);
}

static bool is_marked(struct file *file, u32 handle, u64 size, u64 number)
{
	u64 first = 0, last = 0;
	struct flexmem_rw cmd = CMD(rw, .handle = handle,
				    .length = sizeof(first),
				    .data = (uintptr_t)&first);

	if (native_ioctl(file, FLEXMEM_IOCTL_READ, &cmd))
		return false;
	cmd.offset = size - sizeof(last);
	cmd.data = (uintptr_t)&last;
	return !native_ioctl(file, FLEXMEM_IOCTL_READ, &cmd) &&
	       first == number && last == number;
}

/*
 * Takes pieces of at most 1 GiB until even a granule is refused. Then each piece
 * still has its own bytes, so no two share memory of the card.
 */
static unsigned int check_all(struct file *file, u64 memory)
{
	static struct { u32 handle; u64 size; } pieces[MOST_PIECES];
	struct flexmem_alloc cmd;
	unsigned int nr = 0, i, wrong = 0;
	u64 taken = 0, size = GIB;
	long rc = 0;

	while (size >= SZ_2M && nr < MOST_PIECES) {
		cmd = CMD(alloc, .length = size);
		rc = native_ioctl(file, FLEXMEM_IOCTL_ALLOC, &cmd);
		if (rc) {
			size /= 2;
			continue;
		}
		pieces[nr].handle = cmd.out_handle;
		pieces[nr].size = size;
		taken += size;
		if (!mark(file, cmd.out_handle, size, ++nr))
			wrong += complain("pieces that can be written", nr - 1,
					  nr);
	}
	if (taken != memory)
		wrong += complain("bytes that were had", taken, memory);
	if (rc != -ENOMEM || cmd.out_reason != FLEXMEM_REASON_CAPACITY ||
	    cmd.out_total_free)
		wrong += complain("reason of the last failure", cmd.out_reason,
				  FLEXMEM_REASON_CAPACITY);
	for (i = 0; i < nr; i++)
		if (!is_marked(file, pieces[i].handle, pieces[i].size, i + 1))
			wrong += complain("pieces with their own bytes", i, nr);
	return wrong;
}

/*
 * After a few bytes the VF has its first region. What it is told then is all of
 * the card, with what the other regions will have.
 */
static unsigned int check_card(const char *params, const char *text)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = SZ_2M);
	struct flexmem_free end = CMD(free);
	struct flexmem_domain_info is;
	unsigned int wrong = 0;
	struct file *file;
	u64 memory;

	world_begin_domains(params, text);
	memory = world.card.functions[1].card->domains->size[0];
	file = native_open(world_minor(1), O_RDWR | O_NONBLOCK);
	if (WARN_ON(IS_ERR(file)))
		return 1;
	is = told(file);
	if (is.out_capacity != memory)
		wrong += complain("capacity", is.out_capacity, memory);
	if (native_ioctl(file, FLEXMEM_IOCTL_ALLOC, &cmd))
		wrong += complain("first bytes", 0, SZ_2M);
	end.handle = cmd.out_handle;
	if (native_ioctl(file, FLEXMEM_IOCTL_FREE, &end))
		wrong += complain("first bytes, freed", 0, SZ_2M);
	wrong += check_all(file, memory);
	is = told(file);
	if (is.out_total != memory || is.out_free)
		wrong += complain("bytes of all regions", is.out_total, memory);
	native_close(file);
	world_end();
	if (wrong)
		printf("# of domains=%s with %s\n", text, params);
	return wrong;
}

/**
 * rest_wrong - allocate all memory of cards that no sizes of regions divide
 *
 * Return: number of wrong outcomes.
 */
unsigned int rest_wrong(void)
{
	unsigned int i, j, wrong = 0;

	for (i = 0; i < ARRAY_SIZE(texts); i++)
		for (j = 0; j < ARRAY_SIZE(lists); j++)
			wrong += check_card(lists[j], texts[i]);
	return wrong;
}
