// SPDX-License-Identifier: GPL-2.0
/* Device-virtual address spaces: ranges, and what is bound in them. */

#include "spaces.h"

static void lowest_addresses_first(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;

	KUNIT_EXPECT_EQ(test, reserve(test, client, 2), 0);
	KUNIT_EXPECT_EQ(test, reserve(test, client, 1), 2);
	KUNIT_EXPECT_EQ(test, reserve(test, client, 3), 3);
	KUNIT_EXPECT_EQ(test, reserve(test, client, 1), 6);
	/* Free neighbours merge, in any order. */
	KUNIT_EXPECT_EQ(test, free_at(test, client, at(test, 0)), 0);
	KUNIT_EXPECT_EQ(test, free_at(test, client, at(test, 3)), 0);
	KUNIT_EXPECT_EQ(test, reserve(test, client, 4), 7);
	KUNIT_EXPECT_EQ(test, free_at(test, client, at(test, 2)), 0);
	KUNIT_EXPECT_EQ(test, reserve(test, client, 6), 0);
	KUNIT_EXPECT_EQ(test, reserve(test, client, NR_PAGES - 11), 11);
	KUNIT_EXPECT_EQ(test, reserve(test, client, 1), -ENOSPC);
	KUNIT_EXPECT_EQ(test, free_at(test, client, at(test, 6)), 0);
	KUNIT_EXPECT_EQ(test, reserve(test, client, 1), 6);
	KUNIT_EXPECT_NULL(test, flexmem_blocks_check(&client->space->blocks));
	KUNIT_EXPECT_EQ(test, pages.maps + pages.unmaps, 0);
}

static void too_long_ranges(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_space *space = space_of(test, ctx->client);
	const u64 all = NR_PAGES * page_of(test);
	const u64 lengths[] = { all + 1, all + page_of(test), U64_MAX };
	struct flexmem_va_reserve cmd = {};
	unsigned int i;

	KUNIT_EXPECT_EQ(test, flexmem_space_reserve(space, &cmd), -EINVAL);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		cmd.length = lengths[i];
		cmd.out_largest_free = 0;
		KUNIT_EXPECT_EQ(test, flexmem_space_reserve(space, &cmd),
				-ENOSPC);
		KUNIT_EXPECT_EQ(test, cmd.out_largest_free, all);
	}
	cmd.length = page_of(test);
	KUNIT_EXPECT_EQ(test, flexmem_space_reserve(space, &cmd), 0);
	KUNIT_EXPECT_EQ(test, cmd.out_largest_free, all - page_of(test));
	KUNIT_EXPECT_EQ(test, reserve(test, ctx->client, NR_PAGES - 1), 1);
	KUNIT_EXPECT_EQ(test, reserve(test, ctx->client, 1), -ENOSPC);
}

static void frees_only_what_it_finds(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *other = fake_client_open(test, ctx->table, 2);

	KUNIT_EXPECT_EQ(test, free_at(test, ctx->client, START), -ENOENT);
	KUNIT_EXPECT_EQ(test, reserve(test, ctx->client, 2), 0);
	KUNIT_EXPECT_EQ(test, free_at(test, other, START), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_at(test, ctx->client, at(test, 1)), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_at(test, ctx->client, START - 1), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_at(test, ctx->client, 0), -ENOENT);
	KUNIT_EXPECT_EQ(test, free_at(test, ctx->client, START), 0);
	KUNIT_EXPECT_EQ(test, free_at(test, ctx->client, START), -ENOENT);
}

/*
 * A client may have a limited number of ranges and bindings, counted together.
 */
static void limits_a_client(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	u32 handle = alloc_pages_in(test, client, 2, 1);

	KUNIT_EXPECT_EQ(test, reserve(test, client, 2), 0);
	/* Leaves room for two further ones. */
	client->space->nr_bindings += FLEXMEM_MAX_HANDLES - 3;
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 0, 0, 1), 0);
	KUNIT_EXPECT_EQ(test, reserve(test, client, 1), 2);
	KUNIT_EXPECT_EQ(test, reserve(test, client, 1), -EMFILE);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 1, 1, 1),
			-EMFILE);
	KUNIT_EXPECT_EQ(test, free_at(test, client, at(test, 2)), 0);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 1, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, reserve(test, client, 1), -EMFILE);
	KUNIT_EXPECT_EQ(test, unbind(test, client, 0), 0);
	KUNIT_EXPECT_EQ(test, reserve(test, client, 1), 2);
	client->space->nr_bindings -= FLEXMEM_MAX_HANDLES - 3;
	check_pages(test, client, 1);
}

/* The driver can ask in which space the programs of a client run. */
static void the_driver_knows_the_space(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *other = fake_client_open(test, ctx->table, 2);
	u32 handle = alloc_pages_in(test, ctx->client, 1, 1);

	KUNIT_EXPECT_EQ(test, flexmem_client_space(ctx->client), 0);
	reserve(test, ctx->client, 1);
	reserve(test, other, 1);
	KUNIT_EXPECT_EQ(test, bind_pages(test, ctx->client, handle, 0, 0, 1),
			0);
	KUNIT_EXPECT_NE(test, flexmem_client_space(ctx->client), 0);
	KUNIT_EXPECT_NE(test, flexmem_client_space(ctx->client),
			flexmem_client_space(other));
	check_pages(test, ctx->client, 1);
	check_pages(test, other, 0);
}

static void check_page(struct kunit *test, u32 handle, unsigned int page,
		       unsigned int byte)
{
	struct ctx *ctx = test->priv;
	struct flexmem_allocation *allocation =
		flexmem_client_allocation(ctx->client, handle);
	struct flexmem_space *space = ctx->client->space;
	u64 offset = page * page_of(test) + byte, inner = offset;
	const struct flexmem_block *chunk;
	struct flexmem_va_lookup by_byte = { .offset = offset };
	struct flexmem_va_lookup by_address = {
		.address = at(test, 3) + offset,
	};

	chunk = flexmem_allocation_chunk(allocation, &inner);
	KUNIT_EXPECT_PTR_EQ(test, allocation,
			    flexmem_space_lookup(space, allocation, &by_byte));
	KUNIT_EXPECT_PTR_EQ(test, allocation,
			    flexmem_space_lookup(space, NULL, &by_address));
	KUNIT_EXPECT_EQ(test, by_byte.out_address, by_address.address);
	KUNIT_EXPECT_EQ(test, by_address.out_address, by_address.address);
	KUNIT_EXPECT_EQ(test, by_address.out_offset, offset);
	KUNIT_EXPECT_EQ(test, by_byte.out_offset, offset);
	KUNIT_EXPECT_EQ(test, by_byte.out_length, 7 * page_of(test) - offset);
	KUNIT_EXPECT_PTR_EQ(test, allocation->chunks[by_address.out_chunk], chunk);
	KUNIT_EXPECT_EQ(test, by_address.out_access, RW);
	flexmem_allocation_put(allocation);
	flexmem_allocation_put(allocation);
	flexmem_allocation_put(allocation);
}

static void maps_each_byte_of_each_chunk(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	u32 handle = alloc_pages_in(test, client, 7, 3);
	unsigned int page;

	KUNIT_EXPECT_EQ(test, reserve(test, client, 3), 0);
	KUNIT_EXPECT_EQ(test, reserve(test, client, 8), 3);
	KUNIT_ASSERT_EQ(test, bind_pages(test, client, handle, 3, 0, 7), 0);
	KUNIT_EXPECT_EQ(test, pages.maps, 3);
	check_pages(test, client, 7);
	for (page = 0; page < 7; page++) {
		check_page(test, handle, page, 0);
		check_page(test, handle, page, page_of(test) - 1);
	}
	KUNIT_EXPECT_FALSE(test, is_bound(test, client, 2));
	KUNIT_EXPECT_FALSE(test, is_bound(test, client, 10));
	KUNIT_EXPECT_EQ(test, free_at(test, client, at(test, 3)), -EBUSY);
	KUNIT_EXPECT_EQ(test, unbind(test, client, 4), -ENOENT);
	KUNIT_EXPECT_EQ(test, unbind(test, client, 3), 0);
	KUNIT_EXPECT_EQ(test, unbind(test, client, 3), -ENOENT);
	KUNIT_EXPECT_FALSE(test, is_bound(test, client, 3));
	KUNIT_EXPECT_EQ(test, nr_entries(), 0);
	KUNIT_EXPECT_EQ(test, free_at(test, client, at(test, 3)), 0);
	KUNIT_EXPECT_EQ(test, fake_client_free(client, handle), 0);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 0);
	check_breach(test);
}

/*
 * Binds a part of an allocation that reaches over the end of a chunk, for the
 * given access.
 */
static void maps_a_part(struct kunit *test)
{
	static const u32 accesses[] = { FLEXMEM_VA_READ, FLEXMEM_VA_WRITE,
					FLEXMEM_VA_EXECUTE, RW };
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	u32 handle = alloc_pages_in(test, client, 8, 2);
	struct flexmem_va_bind cmd = {
		.offset = page_of(test),
		.length = 4 * page_of(test),
	};
	struct flexmem_va_lookup there = {};
	struct flexmem_allocation *found;
	unsigned int i;

	reserve(test, client, 8);
	for (i = 0; i < ARRAY_SIZE(accesses); i++) {
		cmd.access = accesses[i];
		cmd.address = at(test, 1 + i);
		there.address = cmd.address + 3 * page_of(test) + 1;
		KUNIT_EXPECT_EQ(test, 0, bind_cmd(test, client, handle, &cmd));
		KUNIT_EXPECT_EQ(test, nr_entries(), 2);
		check_pages(test, client, 4);
		found = flexmem_space_lookup(client->space, NULL, &there);
		KUNIT_ASSERT_NOT_NULL(test, found);
		flexmem_allocation_put(found);
		KUNIT_EXPECT_EQ(test, there.out_offset, 4 * page_of(test) + 1);
		KUNIT_EXPECT_EQ(test, there.out_length, page_of(test) - 1);
		KUNIT_EXPECT_EQ(test, there.out_chunk, 1);
		KUNIT_EXPECT_EQ(test, there.out_access, accesses[i]);
		KUNIT_EXPECT_EQ(test, unbind(test, client, 1 + i), 0);
	}
	/* Binds two parts of the allocation at adjacent addresses. */
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 0, 5, 3), 0);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 3, 0, 5), 0);
	check_pages(test, client, 8);
}

/* Binds the same offsets of several allocations. */
static void tells_allocations_apart(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	struct flexmem_allocation *allocation, *found;
	u32 handle[6], not_bound = alloc_pages_in(test, client, 2, 1);
	struct flexmem_va_lookup cmd = { .offset = page_of(test) };
	unsigned int i;

	reserve(test, client, 2 * ARRAY_SIZE(handle));
	for (i = 0; i < ARRAY_SIZE(handle); i++) {
		handle[i] = alloc_pages_in(test, client, 2, 1);
		KUNIT_EXPECT_EQ(test, 0,
				bind_pages(test, client, handle[i], 2 * i, 0, 2));
	}
	for (i = 0; i < ARRAY_SIZE(handle); i++) {
		allocation = flexmem_client_allocation(client, handle[i]);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
		found = flexmem_space_lookup(client->space, allocation, &cmd);
		KUNIT_EXPECT_PTR_EQ(test, found, allocation);
		KUNIT_EXPECT_EQ(test, cmd.out_address, at(test, 2 * i + 1));
		flexmem_allocation_put(allocation);
		if (found)
			flexmem_allocation_put(found);
	}
	allocation = flexmem_client_allocation(client, not_bound);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	KUNIT_EXPECT_NULL(test, flexmem_space_lookup(client->space, allocation,
						     &cmd));
	flexmem_allocation_put(allocation);
}

static void refuses_wrong_bindings(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client, *other;
	const u64 page = page_of(test), a = at(test, 0);
	const struct {
		u32 access;
		u64 address, offset, length;
		int rc;
	} bad[] = {
		{ 0, a, 0, page, -EINVAL }, { 8, a, 0, page, -EINVAL },
		{ RW, a, 0, 0, -EINVAL }, { RW, a + 1, 0, page, -EINVAL },
		{ RW, a, 1, page, -EINVAL }, { RW, a, 0, page - 1, -EINVAL },
		{ RW, a, 0, 5 * page, -EINVAL },
		{ RW, a, 4 * page, page, -EINVAL },
		{ RW, a, 3 * page, 2 * page, -EINVAL },
		{ RW, a, -page, 2 * page, -EINVAL },
		{ RW, a - page, 0, page, -ENXIO },
		{ RW, 0, 0, page, -ENXIO },
		{ RW, a + 2 * page, 0, 3 * page, -ENXIO },
		{ RW, a + 6 * page, 0, page, -ENXIO },
		{ RW, a + page, 2 * page, page, -EEXIST },
		{ RW, a, 2 * page, 2 * page, -EEXIST },
		{ RW, a + 2 * page, 0, page, -EBUSY },
		{ RW, a + 2 * page, 0, 2 * page, -EBUSY },
	};
	u32 handle = alloc_pages_in(test, client, 4, 1), odd;
	struct flexmem_allocation *allocation;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, reserve(test, client, 4), 0);
	KUNIT_EXPECT_EQ(test, reserve(test, client, 2), 4);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 1, 0, 1), 0);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct flexmem_va_bind cmd = {
			.access = bad[i].access,
			.address = bad[i].address,
			.offset = bad[i].offset,
			.length = bad[i].length,
		};

		KUNIT_EXPECT_EQ_MSG(test, bad[i].rc,
				    bind_cmd(test, client, handle, &cmd), "%u",
				    i);
	}
	/* Binds the other bytes at the other addresses. */
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 0, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 2, 2, 2), 0);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 4, 3, 1), -EBUSY);
	/* This allocation shares pages with others. */
	alloc(test, client, 128);
	odd = alloc(test, client, 2 * page);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, odd, 4, 0, 1), -EINVAL);
	allocation = fake_client_prepare(client, 2 * page - 128, page, 0,
					 &ctx->request);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	flexmem_client_publish(client, allocation);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			bind_pages(test, client, allocation->handle, 4, 0, 1));
	/* These addresses belong to another client. */
	other = fake_client_open(test, ctx->table, 2);
	handle = alloc_pages_in(test, other, 1, 1);
	KUNIT_EXPECT_EQ(test, bind_pages(test, other, handle, 5, 0, 1), -ENXIO);
	KUNIT_EXPECT_EQ(test, unbind(test, other, 0), -ENOENT);
	KUNIT_EXPECT_FALSE(test, is_bound(test, other, 0));
	KUNIT_EXPECT_EQ(test, nr_entries(), 3);
	KUNIT_EXPECT_EQ(test, pages.unmaps, 0);
	check_breach(test);
}

static void freed_memory_stays_until_it_is_unbound(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;
	u32 handle = alloc_pages_in(test, client, 1, 1);
	struct flexmem_va_lookup cmd = { .address = START };
	struct flexmem_allocation *found;

	reserve(test, client, 1);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, handle, 0, 0, 1), 0);
	found = flexmem_space_lookup(client->space, NULL, &cmd);
	KUNIT_ASSERT_NOT_NULL(test, found);
	KUNIT_EXPECT_EQ(test, flexmem_client_handle(client, found), handle);
	KUNIT_EXPECT_EQ(test, fake_client_free(client, handle), 0);
	KUNIT_EXPECT_EQ(test, flexmem_client_handle(client, found), 0);
	flexmem_allocation_put(found);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), page_of(test));
	KUNIT_EXPECT_EQ(test, nr_entries(), 1);
	KUNIT_EXPECT_EQ(test, unbind(test, client, 0), 0);
	KUNIT_EXPECT_EQ(test, used_bytes(ctx), 0);
}

static u32 bound, other;

/*
 * Called while the worker maps or unmaps the bytes: other threads make calls.
 */
static void others_come(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;

	KUNIT_EXPECT_FALSE(test, is_bound(test, client, 0));
	KUNIT_EXPECT_EQ(test, unbind(test, client, 0), -EBUSY);
	KUNIT_EXPECT_EQ(test, free_at(test, client, START), -EBUSY);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, other, 1, 0, 1),
			-EEXIST);
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, bound, 2, 1, 1),
			-EBUSY);
}

static void a_command_keeps_others_away(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	struct flexmem_client *client = ctx->client;

	bound = alloc_pages_in(test, client, 2, 1);
	other = alloc_pages_in(test, client, 2, 1);
	reserve(test, client, 4);
	pages.during = others_come;
	KUNIT_EXPECT_EQ(test, bind_pages(test, client, bound, 0, 0, 2), 0);
	KUNIT_EXPECT_NULL(test, pages.during);
	KUNIT_EXPECT_TRUE(test, is_bound(test, client, 0));
	pages.during = others_come;
	KUNIT_EXPECT_EQ(test, unbind(test, client, 0), 0);
	KUNIT_EXPECT_NULL(test, pages.during);
	check_pages(test, client, 0);
}

/* ---- random calls, compared with arrays of pages ---- */

#define NR_ALLOCATIONS 4
#define EACH 6
#define MOST_BINDINGS 12
#define NOWHERE 255

/*
 * For each page of the space: the first page of its range and of its binding,
 * or NOWHERE; and the allocation that is bound there, with its page. For each
 * page of each allocation: where it is bound.
 */
static struct {
	u8 range[NR_PAGES];
	u8 binding[NR_PAGES];
	u8 allocation[NR_PAGES];
	u8 page[NR_PAGES];
	u8 where[NR_ALLOCATIONS][EACH];
	u32 handle[NR_ALLOCATIONS];
	unsigned int nr_bindings;
	u32 random;
} model;

static unsigned int random_below(unsigned int end)
{
	model.random = model.random * 1664525 + 1013904223;
	return (model.random >> 16) % end;
}

static int model_reserve(unsigned int nr)
{
	unsigned int first, i = 0;

	for (first = 0; i < nr && first + nr <= NR_PAGES; first += !(i == nr))
		for (i = 0; i < nr && model.range[first + i] == NOWHERE; i++)
			;
	if (i < nr)
		return -ENOSPC;
	memset(model.range + first, first, nr);
	return first;
}

static int model_free(unsigned int first)
{
	unsigned int end;

	if (model.range[first] != first)
		return -ENOENT;
	for (end = first; end < NR_PAGES && model.range[end] == first; end++)
		if (model.binding[end] != NOWHERE)
			return -EBUSY;
	memset(model.range + first, NOWHERE, end - first);
	return 0;
}

static int model_bind(unsigned int a, unsigned int at, unsigned int page,
		      unsigned int nr)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < nr; i++)
		if (at + i >= NR_PAGES || model.range[at + i] == NOWHERE ||
		    model.range[at + i] != model.range[at])
			return -ENXIO;
	for (i = 0; i < nr; i++) {
		if (model.binding[at + i] != NOWHERE)
			return -EEXIST;
		if (model.where[a][page + i] != NOWHERE)
			rc = -EBUSY;
	}
	for (i = 0; i < nr && !rc; i++) {
		model.binding[at + i] = at;
		model.allocation[at + i] = a;
		model.page[at + i] = page + i;
		model.where[a][page + i] = at + i;
	}
	model.nr_bindings += !rc;
	return rc;
}

static int model_unbind(unsigned int first)
{
	unsigned int i;

	if (model.binding[first] != first)
		return -ENOENT;
	for (i = first; i < NR_PAGES && model.binding[i] == first; i++) {
		model.binding[i] = NOWHERE;
		model.where[model.allocation[i]][model.page[i]] = NOWHERE;
	}
	model.nr_bindings--;
	return 0;
}

static void one_call(struct kunit *test, struct flexmem_client *client)
{
	unsigned int page = random_below(NR_PAGES), a, first, nr;

	switch (random_below(4)) {
	case 0:
		nr = 1 + random_below(8);
		KUNIT_EXPECT_EQ(test, model_reserve(nr),
				reserve(test, client, nr));
		break;
	case 1:
		KUNIT_EXPECT_EQ(test, model_free(page),
				free_at(test, client, at(test, page)));
		break;
	case 2:
		a = random_below(NR_ALLOCATIONS);
		first = random_below(EACH);
		nr = 1 + random_below(EACH - first);
		if (model.nr_bindings < MOST_BINDINGS)
			KUNIT_EXPECT_EQ(test, model_bind(a, page, first, nr),
					bind_pages(test, client,
						   model.handle[a], page, first,
						   nr));
		break;
	case 3:
		KUNIT_EXPECT_EQ(test, model_unbind(page),
				unbind(test, client, page));
		break;
	}
}

/* Looks for the byte that is bound at each page. */
static unsigned int check_all(struct kunit *test, struct flexmem_client *client)
{
	unsigned int page, nr = 0;

	for (page = 0; page < NR_PAGES; page++) {
		struct flexmem_va_lookup cmd = { .address = at(test, page) };
		struct flexmem_allocation *found =
			flexmem_space_lookup(space_of(test, client), NULL, &cmd);

		KUNIT_EXPECT_EQ(test, !found, model.binding[page] == NOWHERE);
		if (!found)
			continue;
		nr++;
		KUNIT_EXPECT_EQ(test, model.handle[model.allocation[page]],
				flexmem_client_handle(client, found));
		KUNIT_EXPECT_EQ(test, model.page[page] * page_of(test),
				cmd.out_offset);
		flexmem_allocation_put(found);
	}
	return nr;
}

static void random_calls(struct kunit *test)
{
	struct ctx *ctx = test->priv;
	unsigned int i;

	memset(&model, NOWHERE, sizeof(model));
	model.nr_bindings = 0;
	for (i = 0; i < NR_ALLOCATIONS; i++)
		model.handle[i] = alloc_pages_in(test, ctx->client, EACH, 2);
	for (i = 0; i < 2000; i++) {
		one_call(test, ctx->client);
		if (i % 20 == 0)
			check_pages(test, ctx->client,
				    check_all(test, ctx->client));
	}
	KUNIT_EXPECT_NULL(test, flexmem_blocks_check(&ctx->client->space->blocks));
}

static struct kunit_case space_cases[] = {
	KUNIT_CASE(lowest_addresses_first),
	KUNIT_CASE(too_long_ranges),
	KUNIT_CASE(frees_only_what_it_finds),
	KUNIT_CASE(limits_a_client),
	KUNIT_CASE(the_driver_knows_the_space),
	KUNIT_CASE(maps_each_byte_of_each_chunk),
	KUNIT_CASE(maps_a_part),
	KUNIT_CASE(tells_allocations_apart),
	KUNIT_CASE(refuses_wrong_bindings),
	KUNIT_CASE(freed_memory_stays_until_it_is_unbound),
	KUNIT_CASE(a_command_keeps_others_away),
	KUNIT_CASE(random_calls),
	{}
};

static struct kunit_suite space_suite = {
	.name = "flexmem_space",
	.init = large_pages,
	.test_cases = space_cases,
};

static struct kunit_suite small_space_suite = {
	.name = "flexmem_space_4k",
	.init = small_pages,
	.test_cases = space_cases,
};

kunit_test_suite(space_suite);
kunit_test_suite(small_space_suite);
