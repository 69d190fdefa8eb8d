// SPDX-License-Identifier: GPL-2.0
/* A device in memory, and tables on it that clean up after themselves. */

#include <kunit/test-bug.h>
#include <kunit/test.h>
#include <linux/align.h>
#include <linux/bits.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "fake_device.h"

/* Bases go down as slots go up: neither may be taken for the other's order. */
#define TOP_BASE BIT_ULL(60)
#define BASE_STEP BIT_ULL(50)

static const char * const op_names[] = {
	[FAKE_ACQUIRE] = "acquire",
	[FAKE_RELEASE] = "release",
	[FAKE_SLOT_SET] = "set",
	[FAKE_SLOT_CLEAR] = "clear",
	[FAKE_CAPACITY] = "capacity",
};

static void breach(struct fake_device *fake, const char *what)
{
	if (!fake->breach)
		fake->breach = what;
}

static void breach_if(struct fake_device *fake, bool broken, const char *what)
{
	if (broken)
		breach(fake, what);
}

static const char *errno_name(int rc)
{
	switch (rc) {
	case -ENOSPC:
		return "ENOSPC";
	case -EIO:
		return "EIO";
	case -ETIMEDOUT:
		return "ETIMEDOUT";
	case -EINTR:
		return "EINTR";
	default:
		return "another error";
	}
}

static __printf(2, 3) void log_call(struct fake_device *fake,
				    const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fake->log_length += vscnprintf(fake->log + fake->log_length,
				       sizeof(fake->log) - fake->log_length,
				       format, args);
	va_end(args);
}

/* Each operation begins with this: what it is to return, if it is to fail. */
static int begin(struct fake_device *fake, enum fake_op op)
{
	struct fake_failure *failure = &fake->failure[op];

	breach_if(fake, atomic_inc_return(&fake->busy) != 1,
		  "two operations at a time");
	breach_if(fake, fake->gone, "called after the table was removed");
	fake->calls[op]++;
	if (!failure->times)
		return 0;
	if (failure->after) {
		failure->after--;
		return 0;
	}
	failure->times--;
	return failure->rc;
}

/* And ends with this. @arg is a size in bytes, or a slot. */
static int end(struct fake_device *fake, enum fake_op op, u64 arg, int rc)
{
	log_call(fake, "%s%s", fake->log_length ? ", " : "", op_names[op]);
	if (op == FAKE_SLOT_SET || op == FAKE_SLOT_CLEAR)
		log_call(fake, " %llu", arg);
	else if (op != FAKE_CAPACITY)
		log_call(fake, " %lluG", arg / GIB);
	if (rc)
		log_call(fake, " %s", errno_name(rc));
	atomic_dec(&fake->busy);
	return rc;
}

static struct flexmem_memory *find_piece(struct fake_device *fake,
					 const struct flexmem_memory *mem)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fake->piece); i++)
		if (fake->piece[i].size && fake->piece[i].base == mem->base &&
		    fake->piece[i].size == mem->size &&
		    fake->piece[i].cookie == mem->cookie)
			return &fake->piece[i];
	return NULL;
}

static bool in_a_slot(struct fake_device *fake, u64 base)
{
	unsigned int slot;

	for (slot = 0; slot < ARRAY_SIZE(fake->slot_base); slot++)
		if (fake->slot_base[slot] == base)
			return true;
	return false;
}

static bool refuses_size(struct fake_device *fake, u64 size)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fake->refused_size); i++)
		if (fake->refused_size[i] == size)
			return true;
	return fake->taken > fake->capacity ||
	       size > fake->capacity - fake->taken;
}

static int acquire_piece(struct fake_device *fake, u64 size,
			 struct flexmem_memory *mem)
{
	unsigned int i;

	if (refuses_size(fake, size))
		return -ENOSPC;
	for (i = 0; fake->piece[i].size; i++)
		if (i == FAKE_MAX_PIECES - 1)
			return -ENOSPC;
	fake->piece[i] = (struct flexmem_memory) {
		.base = TOP_BASE - i * BASE_STEP,
		.size = size,
		.cookie = ~(u64)i,
	};
	fake->taken += size;
	*mem = fake->piece[i];
	return 0;
}

static int fake_acquire(void *priv, u64 size, struct flexmem_memory *mem)
{
	struct fake_device *fake = priv;
	int rc = begin(fake, FAKE_ACQUIRE);

	breach_if(fake, !size || !IS_ALIGNED(size, fake->granule),
		  "acquired size is not a multiple of the granule");
	if (!rc)
		rc = acquire_piece(fake, size, mem);
	return end(fake, FAKE_ACQUIRE, size, rc);
}

static int fake_release(void *priv, const struct flexmem_memory *mem)
{
	struct fake_device *fake = priv;
	int rc = begin(fake, FAKE_RELEASE);
	struct flexmem_memory *piece = find_piece(fake, mem);
	u64 size = mem->size;

	breach_if(fake, !piece, "released memory that was not acquired");
	breach_if(fake, in_a_slot(fake, mem->base),
		  "released memory that is in a slot");
	if (!rc && piece) {
		fake->taken -= size;
		*piece = (struct flexmem_memory) {};
	}
	return end(fake, FAKE_RELEASE, size, rc);
}

static int fake_slot_set(void *priv, unsigned int slot,
			 const struct flexmem_memory *mem)
{
	struct fake_device *fake = priv;
	int rc = begin(fake, FAKE_SLOT_SET);
	bool outside = slot >= fake->slots;

	breach_if(fake, outside, "set a slot that there is not");
	breach_if(fake, !outside && fake->slot_base[slot],
		  "set a slot that is not empty");
	breach_if(fake, !find_piece(fake, mem),
		  "set a slot to memory that was not acquired");
	breach_if(fake, in_a_slot(fake, mem->base),
		  "set two slots to the same memory");
	if (!rc && !outside && fake->refused_slots & BIT_ULL(slot))
		rc = -ENOSPC;
	if (!rc && !outside)
		fake->slot_base[slot] = mem->base;
	return end(fake, FAKE_SLOT_SET, slot, rc);
}

static int fake_slot_clear(void *priv, unsigned int slot)
{
	struct fake_device *fake = priv;
	int rc = begin(fake, FAKE_SLOT_CLEAR);
	bool outside = slot >= fake->slots;

	breach_if(fake, outside, "cleared a slot that there is not");
	breach_if(fake, !outside && !fake->slot_base[slot],
		  "cleared a slot that is empty");
	if (!rc && !outside)
		fake->slot_base[slot] = 0;
	return end(fake, FAKE_SLOT_CLEAR, slot, rc);
}

static int fake_capacity(void *priv, u64 *bytes)
{
	struct fake_device *fake = priv;
	int rc = begin(fake, FAKE_CAPACITY);

	if (!rc)
		*bytes = fake->capacity;
	return end(fake, FAKE_CAPACITY, 0, rc);
}

static const struct flexmem_device_ops pf_ops = {
	.acquire = fake_acquire,
	.release = fake_release,
	.capacity = fake_capacity,
};

static const struct flexmem_device_ops vf_ops = {
	.acquire = fake_acquire,
	.release = fake_release,
	.slot_set = fake_slot_set,
	.slot_clear = fake_slot_clear,
	.capacity = fake_capacity,
};

static void expect_no_breach(void *data)
{
	struct fake_device *fake = data;
	struct kunit *test = kunit_get_current_test();

	KUNIT_EXPECT_NULL_MSG(test, fake->breach, "device contract: %s",
			      fake->breach);
}

/**
 * fake_device_create - a device that gives everything asked for
 * @test: at whose end it goes; a breach of the contract fails the test
 * @mode: PF or VF
 * @slots: entries of its table
 * @capacity: bytes
 *
 * Return: the device.
 */
struct fake_device *fake_device_create(struct kunit *test,
				       enum flexmem_mode mode,
				       unsigned int slots, u64 capacity)
{
	struct fake_device *fake;

	fake = kunit_kzalloc(test, sizeof(*fake), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->mode = mode;
	fake->slots = mode == FLEXMEM_MODE_VF ? slots : 0;
	fake->granule = SZ_2M;
	fake->capacity = capacity;
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action(test, expect_no_breach, fake));
	return fake;
}

const struct flexmem_device_ops *fake_device_ops(struct fake_device *fake)
{
	return fake->mode == FLEXMEM_MODE_VF ? &vf_ops : &pf_ops;
}

struct flexmem_device_desc fake_device_desc(struct fake_device *fake)
{
	return (struct flexmem_device_desc) {
		.name = "fake",
		.mode = fake->mode,
		.slots = fake->slots,
		.granule = fake->granule,
		.ops = fake_device_ops(fake),
		.priv = fake,
	};
}

/**
 * fake_device_fail - let an operation fail
 * @fake: device
 * @op: operation
 * @nth: the first call that fails; 1 is the next one
 * @times: how many fail
 * @rc: error
 */
void fake_device_fail(struct fake_device *fake, enum fake_op op,
		      unsigned int nth, unsigned int times, int rc)
{
	fake->failure[op] = (struct fake_failure) {
		.after = nth - 1,
		.times = times,
		.rc = rc,
	};
}

/**
 * fake_device_log - what the device was asked, and how it answered
 * @fake: device
 *
 * Return: text such as "acquire 12G ENOSPC, acquire 8G, set 0".
 */
const char *fake_device_log(struct fake_device *fake)
{
	return fake->log;
}

/**
 * fake_device_forget - empty the log, and set the counts of calls to 0
 * @fake: device
 */
void fake_device_forget(struct fake_device *fake)
{
	fake->log_length = 0;
	fake->log[0] = '\0';
	memset(fake->calls, 0, sizeof(fake->calls));
}

/**
 * fake_device_is_untouched - has the device got everything back
 * @fake: device
 *
 * Return: true if all memory is there and all slots are empty.
 */
bool fake_device_is_untouched(struct fake_device *fake)
{
	return !fake->taken &&
	       !memchr_inv(fake->slot_base, 0, sizeof(fake->slot_base)) &&
	       !memchr_inv(fake->piece, 0, sizeof(fake->piece));
}

/**
 * fake_device_reset - what a driver does with a function nobody manages
 * @fake: device; has everything back then
 */
void fake_device_reset(struct fake_device *fake)
{
	fake->taken = 0;
	memset(fake->piece, 0, sizeof(fake->piece));
	memset(fake->slot_base, 0, sizeof(fake->slot_base));
}

/**
 * fake_settings - the settings that are the default
 *
 * Return: settings.
 */
struct flexmem_settings fake_settings(void)
{
	return (struct flexmem_settings) {
		.fit = FLEXMEM_FIT_FIRST,
		.order = FLEXMEM_ORDER_LOAD_BALANCE,
		.acquire = FLEXMEM_ACQUIRE_LAZY,
		.max_regions = 12,
		.max_handles = 1 << 20,
		.lease_ms = 10 * 1000,
		.nr_sizes = 3,
		.sizes = { 12 * GIB, 8 * GIB, 4 * GIB },
	};
}

/* A table and what the teardown has to know of it. */
struct fake_table {
	struct flexmem_table table;
	struct fake_device *fake;
	struct list_head blocks;
	bool removed;
};

static struct fake_table *to_fake_table(struct flexmem_table *table)
{
	return container_of(table, struct fake_table, table);
}

static void table_teardown(void *data)
{
	struct fake_table *ft = data;
	struct kunit *test = kunit_get_current_test();
	struct fake_block *block, *next;
	const char *wrong;

	if (!ft->removed) {
		wrong = flexmem_table_check(&ft->table);
		KUNIT_EXPECT_NULL_MSG(test, wrong, "%s", wrong);
	}
	list_for_each_entry_safe(block, next, &ft->blocks, link)
		fake_free(block);
	if (!ft->removed) {
		memset(ft->fake->failure, 0, sizeof(ft->fake->failure));
		fake_table_remove(&ft->table);
	}
	KUNIT_EXPECT_TRUE_MSG(test, fake_device_is_untouched(ft->fake),
			      "the device has not got everything back");
}

/**
 * fake_table_create - a table on a device
 * @test: at whose end it goes; then everything is checked
 * @fake: device
 * @settings: settings
 *
 * Return: the table.
 */
struct flexmem_table *fake_table_create(struct kunit *test,
					struct fake_device *fake,
					const struct flexmem_settings *settings)
{
	struct flexmem_device_desc desc = fake_device_desc(fake);
	struct fake_table *ft;

	ft = kunit_kzalloc(test, sizeof(*ft), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ft);
	ft->fake = fake;
	INIT_LIST_HEAD(&ft->blocks);
	KUNIT_ASSERT_EQ(test, 0,
			flexmem_table_init(&ft->table, NULL, &desc, settings));
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, table_teardown, ft));
	fake_device_forget(fake);
	return &ft->table;
}

/**
 * fake_table_remove - what happens when the device goes
 * @table: table of fake_table_create(); its blocks can still be freed
 */
void fake_table_remove(struct flexmem_table *table)
{
	struct fake_table *ft = to_fake_table(table);

	flexmem_table_remove(table);
	ft->fake->gone = true;
	ft->removed = true;
}

struct flexmem_region *fake_table_region(struct flexmem_table *table,
					 unsigned int slot)
{
	return rcu_access_pointer(table->region[slot]);
}

/**
 * fake_table_acquire - acquire a region and put it in the table
 * @table: table
 * @program: in a slot for programs
 * @min_size: bytes it must have at least
 *
 * Return: the region or an ERR_PTR().
 */
struct flexmem_region *fake_table_acquire(struct flexmem_table *table,
					  bool program, u64 min_size)
{
	struct flexmem_region *region;

	mutex_lock(&table->acquire_lock);
	region = flexmem_region_acquire(table,
					flexmem_table_pool(table, program),
					min_size);
	if (!IS_ERR(region))
		flexmem_region_publish(table, region);
	mutex_unlock(&table->acquire_lock);
	return region;
}

/* Allocates from @region or, if that is NULL, wherever the table places it. */
static int take_block(struct flexmem_table *table,
		      struct flexmem_region *region,
		      const struct flexmem_request *request,
		      struct flexmem_place *place)
{
	struct flexmem_spare spare;
	int rc;

	rc = flexmem_spare_fill(&spare, flexmem_spares_for(request->alignment));
	if (rc)
		return rc;
	if (region) {
		place->region = region;
		place->block = flexmem_region_alloc(region, request->size,
						    request->alignment,
						    request->program,
						    request->owner, &spare);
		rc = place->block ? 0 : -ENOSPC;
	} else {
		rc = flexmem_place(table, request, &spare, place);
	}
	/* No test is to trip over it. */
	if (!rc && !place->block)
		rc = -EFAULT;
	flexmem_spare_drop(&spare);
	return rc;
}

static struct fake_block *new_block(struct flexmem_table *table,
				    struct flexmem_region *region, u64 size,
				    u64 alignment, bool program,
				    struct flexmem_place *place)
{
	struct flexmem_request request = {
		.size = size,
		.alignment = alignment,
		.program = program,
		.owner = table,
	};
	struct fake_block *block;
	int rc;

	block = kzalloc(sizeof(*block), GFP_KERNEL);
	if (!block)
		return ERR_PTR(-ENOMEM);
	rc = take_block(table, region, &request, place);
	if (rc) {
		kfree(block);
		return ERR_PTR(rc);
	}
	block->region = place->region;
	block->block = place->block;
	block->program = program;
	list_add_tail(&block->link, &to_fake_table(table)->blocks);
	return block;
}

/**
 * fake_alloc - place an allocation
 * @table: table of fake_table_create()
 * @size: bytes
 * @alignment: of the offset
 * @program: for a program
 * @place: receives where, or why not; may be NULL
 *
 * Return: the block, for fake_free() (the teardown frees those that are left),
 * or an ERR_PTR() of what flexmem_place() returned.
 */
struct fake_block *fake_alloc(struct flexmem_table *table, u64 size,
			      u64 alignment, bool program,
			      struct flexmem_place *place)
{
	struct flexmem_place unseen;

	return new_block(table, NULL, size, alignment, program,
			 place ?: &unseen);
}

/**
 * fake_alloc_in - allocate from one region
 * @table: table of fake_table_create()
 * @region: region of it
 * @size: bytes
 * @program: for a program
 *
 * Return: as fake_alloc(); -ENOSPC if it does not fit.
 */
struct fake_block *fake_alloc_in(struct flexmem_table *table,
				 struct flexmem_region *region, u64 size,
				 bool program)
{
	struct flexmem_place place = {};

	return new_block(table, region, size, FLEXMEM_ALIGN, program, &place);
}

void fake_free(struct fake_block *block)
{
	list_del(&block->link);
	flexmem_region_free(block->region, block->block, block->program);
	kfree(block);
}

const char *fake_fit_name(enum flexmem_fit fit)
{
	return fit == FLEXMEM_FIT_BEST ? "best_fit" : "first_fit";
}

const char *fake_order_name(enum flexmem_order order)
{
	return order == FLEXMEM_ORDER_FILL_FIRST ? "fill_first" :
						   "load_balance";
}

const char *fake_mode_name(enum flexmem_mode mode)
{
	return mode == FLEXMEM_MODE_VF ? "VF" : "PF";
}

/* The fake itself: a check that never fails shows nothing. */

static struct fake_device *vf_device(struct kunit *test,
				     struct flexmem_memory *mem)
{
	struct fake_device *fake;

	fake = fake_device_create(test, FLEXMEM_MODE_VF, 8, 64 * GIB);
	KUNIT_ASSERT_EQ(test, 0, vf_ops.acquire(fake, 4 * GIB, mem));
	return fake;
}

/* Takes the breach away, so that the teardown finds none. */
static void expect_breach(struct kunit *test, struct fake_device *fake,
			  const char *what)
{
	KUNIT_EXPECT_STREQ(test, fake->breach ?: "none", what);
	fake->breach = NULL;
}

static void notices_release_in_slot(struct kunit *test)
{
	struct flexmem_memory mem;
	struct fake_device *fake = vf_device(test, &mem);

	vf_ops.slot_set(fake, 3, &mem);
	vf_ops.release(fake, &mem);
	expect_breach(test, fake, "released memory that is in a slot");
}

static void notices_release_of_foreign_memory(struct kunit *test)
{
	struct flexmem_memory mem;
	struct fake_device *fake = vf_device(test, &mem);

	mem.size += fake->granule;
	vf_ops.release(fake, &mem);
	expect_breach(test, fake, "released memory that was not acquired");
}

static void notices_set_of_filled_slot(struct kunit *test)
{
	struct flexmem_memory mem, other;
	struct fake_device *fake = vf_device(test, &mem);

	vf_ops.acquire(fake, 4 * GIB, &other);
	vf_ops.slot_set(fake, 3, &mem);
	vf_ops.slot_set(fake, 3, &other);
	expect_breach(test, fake, "set a slot that is not empty");
}

static void notices_memory_in_two_slots(struct kunit *test)
{
	struct flexmem_memory mem;
	struct fake_device *fake = vf_device(test, &mem);

	vf_ops.slot_set(fake, 3, &mem);
	vf_ops.slot_set(fake, 4, &mem);
	expect_breach(test, fake, "set two slots to the same memory");
}

static void notices_clear_of_empty_slot(struct kunit *test)
{
	struct flexmem_memory mem;
	struct fake_device *fake = vf_device(test, &mem);

	vf_ops.slot_clear(fake, 0);
	expect_breach(test, fake, "cleared a slot that is empty");
}

static void notices_call_after_removal(struct kunit *test)
{
	struct flexmem_memory mem;
	struct fake_device *fake = vf_device(test, &mem);

	fake->gone = true;
	vf_ops.release(fake, &mem);
	expect_breach(test, fake, "called after the table was removed");
}

static void notices_what_is_not_returned(struct kunit *test)
{
	struct flexmem_memory mem;
	struct fake_device *fake = vf_device(test, &mem);

	KUNIT_EXPECT_FALSE(test, fake_device_is_untouched(fake));
	vf_ops.slot_set(fake, 0, &mem);
	vf_ops.slot_clear(fake, 0);
	KUNIT_EXPECT_FALSE(test, fake_device_is_untouched(fake));
	vf_ops.release(fake, &mem);
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(fake));
}

static void fails_the_nth_call(struct kunit *test)
{
	struct flexmem_memory mem;
	struct fake_device *fake = vf_device(test, &mem);
	u64 bytes;

	fake_device_fail(fake, FAKE_CAPACITY, 2, 1, -EIO);
	KUNIT_EXPECT_EQ(test, 0, vf_ops.capacity(fake, &bytes));
	KUNIT_EXPECT_EQ(test, -EIO, vf_ops.capacity(fake, &bytes));
	KUNIT_EXPECT_EQ(test, 0, vf_ops.capacity(fake, &bytes));
	KUNIT_EXPECT_STREQ(test, fake_device_log(fake),
			   "acquire 4G, capacity, capacity EIO, capacity");
}

static struct kunit_case fake_device_cases[] = {
	KUNIT_CASE(notices_release_in_slot),
	KUNIT_CASE(notices_release_of_foreign_memory),
	KUNIT_CASE(notices_set_of_filled_slot),
	KUNIT_CASE(notices_memory_in_two_slots),
	KUNIT_CASE(notices_clear_of_empty_slot),
	KUNIT_CASE(notices_call_after_removal),
	KUNIT_CASE(notices_what_is_not_returned),
	KUNIT_CASE(fails_the_nth_call),
	{}
};

static struct kunit_suite fake_device_suite = {
	.name = "flexmem_fake_device",
	.test_cases = fake_device_cases,
};

kunit_test_suite(fake_device_suite);

MODULE_DESCRIPTION("Unit tests of flexmem");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS(EXPORTED_FOR_KUNIT_TESTING);
