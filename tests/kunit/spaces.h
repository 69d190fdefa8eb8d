/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A fake device with a page table, for the tests of device-virtual address
 * spaces.
 */
#ifndef _FLEXMEM_TEST_SPACES_H
#define _FLEXMEM_TEST_SPACES_H

#include <linux/workqueue.h>
#include <flexmem/dispatch.h>

#include "clients.h"
#include "parts/space.h"

#define START BIT_ULL(32)
#define NR_PAGES 64
#define RW (FLEXMEM_VA_READ | FLEXMEM_VA_WRITE)

/*
 * The page table. After @good calls, the next @bad calls of vm_map and vm_unmap
 * fail with @rc. A call that fails with -ETIMEDOUT is carried out all the same.
 * So is a vm_map that fails with -ENOTRECOVERABLE. The next call runs @during
 * first.
 */
struct page_table {
	unsigned int maps;
	unsigned int unmaps;
	unsigned int good;
	unsigned int bad;
	int rc;
	void (*during)(struct kunit *test);
	struct kunit *test;
};

static struct page_table pages;

static inline void fail(unsigned int good, unsigned int bad, int rc)
{
	pages.good = good;
	pages.bad = bad;
	pages.rc = rc;
}

static inline int planned(void)
{
	void (*during)(struct kunit *test) = pages.during;

	pages.during = NULL;
	if (during)
		during(pages.test);
	if (!pages.bad)
		return 0;
	if (pages.good) {
		pages.good--;
		return 0;
	}
	pages.bad--;
	return pages.rc;
}

static inline int map_pages(void *priv, const struct flexmem_vm_range *range,
			    const struct flexmem_memory *mem, u64 offset,
			    unsigned int access)
{
	int rc = planned();

	pages.maps++;
	if (!rc || rc == -ETIMEDOUT || rc == -ENOTRECOVERABLE)
		fake_pages_map(priv, range, mem, offset, access);
	return rc;
}

static inline int unmap_pages(void *priv, const struct flexmem_vm_range *range)
{
	int rc = planned();

	pages.unmaps++;
	if (!rc || rc == -ETIMEDOUT)
		fake_pages_unmap(priv, range);
	return rc;
}

static inline unsigned int nr_entries(void)
{
	struct ctx *ctx = pages.test->priv;

	return fake_pages_nr(ctx->fake);
}

static inline u64 page_of(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	return ctx->table->function.vm_page;
}

static inline int init_with(struct kunit *test, u64 page)
{
	struct flexmem_settings settings = fake_settings();
	struct flexmem_function *function;
	struct ctx *ctx;

	pages = (struct page_table) { .test = test };
	settings.order = FLEXMEM_ORDER_FILL_FIRST;
	ctx = make(test, FLEXMEM_MODE_VF, &settings);
	test->priv = ctx;
	function = &ctx->table->function;
	function->ops.vm_map = map_pages;
	function->ops.vm_unmap = unmap_pages;
	function->vm_page = page;
	function->vm_start = START;
	function->vm_end = START + NR_PAGES * page;
	/* The worker must not retry commands, because the tests do that. */
	function->work_ms = INT_MAX;
	return 0;
}

static inline int small_pages(struct kunit *test)
{
	return init_with(test, SZ_4K);
}

static inline int large_pages(struct kunit *test)
{
	return init_with(test, SZ_2M);
}

static inline void check_breach(struct kunit *test)
{
	struct ctx *ctx = test->priv;

	KUNIT_EXPECT_NULL_MSG(test, ctx->fake->breach, "%s",
			      ctx->fake->breach);
}

static inline struct flexmem_space *space_of(struct kunit *test,
					     struct flexmem_client *client)
{
	struct flexmem_space *space = flexmem_client_make_space(client);

	KUNIT_ASSERT_NOT_NULL(test, space);
	return space;
}

static inline u64 at(struct kunit *test, unsigned int page)
{
	return START + page * page_of(test);
}

/* Reserves pages. Returns the number of the first one, or an error. */
static inline int reserve(struct kunit *test, struct flexmem_client *client,
			  unsigned int nr)
{
	struct flexmem_va_reserve cmd = { .length = nr * page_of(test) - 1 };
	int rc = flexmem_space_reserve(space_of(test, client), &cmd);

	return rc ?: (cmd.out_address - START) / page_of(test);
}

static inline int free_at(struct kunit *test, struct flexmem_client *client,
			  u64 address)
{
	return flexmem_space_free(space_of(test, client), address);
}

static inline int unbind(struct kunit *test, struct flexmem_client *client,
			 unsigned int page)
{
	return flexmem_space_unbind(space_of(test, client), at(test, page));
}

static inline int bind_cmd(struct kunit *test, struct flexmem_client *client,
			   u32 handle, const struct flexmem_va_bind *cmd)
{
	struct flexmem_allocation *allocation =
		flexmem_client_allocation(client, handle);
	int rc;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	rc = flexmem_space_bind(space_of(test, client), allocation, cmd);
	flexmem_allocation_put(allocation);
	return rc;
}

/* Binds @nr pages of an allocation, from its page @first on, at page @page. */
static inline int bind_pages(struct kunit *test, struct flexmem_client *client,
			     u32 handle, unsigned int page, unsigned int first,
			     unsigned int nr)
{
	const struct flexmem_va_bind cmd = {
		.access = RW,
		.address = at(test, page),
		.offset = first * page_of(test),
		.length = nr * page_of(test),
	};

	return bind_cmd(test, client, handle, &cmd);
}

/* Allocates @nr pages in @chunks chunks. */
static noinline __maybe_unused u32
alloc_pages_in(struct kunit *test, struct flexmem_client *client,
	       unsigned int nr, unsigned int chunks)
{
	struct flexmem_allocation *allocation;
	struct ctx *ctx = test->priv;

	ctx->request = (struct flexmem_request) {
		.size = nr * page_of(test),
		.alignment = page_of(test),
		.domains = client->table->default_domains,
		.first = client->table->default_domains,
		.chunks = chunks,
	};
	allocation = flexmem_client_prepare(client, &ctx->request);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, allocation);
	flexmem_client_publish(client, allocation);
	return allocation->handle;
}

static inline bool is_bound(struct kunit *test, struct flexmem_client *client,
			    unsigned int page)
{
	struct flexmem_va_lookup cmd = { .address = at(test, page) };
	struct flexmem_allocation *found;

	found = flexmem_space_lookup(space_of(test, client), NULL, &cmd);
	if (found)
		flexmem_allocation_put(found);
	return found;
}

/*
 * Whether an entry maps its addresses to the bytes that are bound there, with
 * the right access. All these bytes must be in one chunk.
 */
static inline bool is_right(struct flexmem_space *space,
			    const struct fake_page *entry)
{
	struct flexmem_va_lookup cmd = { .address = entry->range.address };
	struct flexmem_allocation *found =
		flexmem_space_lookup(space, NULL, &cmd);
	const struct flexmem_block *chunk;
	bool right;

	if (!found)
		return false;
	chunk = flexmem_allocation_chunk(found, &cmd.out_offset);
	right = entry->id == chunk->region->mem.id &&
		entry->offset == chunk->start + cmd.out_offset &&
		entry->access == cmd.out_access &&
		entry->range.size <= chunk->size - cmd.out_offset &&
		entry->range.size <= cmd.out_length;
	flexmem_allocation_put(found);
	return right;
}

/*
 * Checks that the device maps exactly @nr pages of a client, each to the right
 * memory.
 */
static inline void check_pages(struct kunit *test,
			       struct flexmem_client *client, unsigned int nr)
{
	struct ctx *ctx = test->priv;
	const struct fake_page *entry = ctx->fake->page;
	u64 bytes = 0;

	for (; entry < ctx->fake->page + FAKE_MAX_PAGES; entry++) {
		if (!entry->range.size ||
		    entry->range.space != flexmem_client_space(client))
			continue;
		KUNIT_EXPECT_TRUE(test, is_right(client->space, entry));
		bytes += entry->range.size;
	}
	KUNIT_EXPECT_EQ(test, bytes, nr * page_of(test));
	check_breach(test);
}

#endif /* _FLEXMEM_TEST_SPACES_H */
