// SPDX-License-Identifier: GPL-2.0
/*
 * A simulated device in memory. fake_data.c simulates the contents of that
 * memory.
 */

#include <kunit/test-bug.h>
#include <kunit/test.h>
#include <linux/align.h>
#include <linux/bits.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "fake_device.h"

/*
 * A higher slot has a lower base, so a test notices if the driver confuses the
 * order of slots with the order of bases.
 */
#define TOP_BASE BIT_ULL(60)
#define BASE_STEP BIT_ULL(50)

#define NO_SLOT U32_MAX

static const char * const op_names[] = {
	[FAKE_ACQUIRE] = "acquire",
	[FAKE_RELEASE] = "release",
	[FAKE_SLOT_SET] = "set",
	[FAKE_SLOT_CLEAR] = "clear",
	[FAKE_DRAIN] = "drain",
	[FAKE_QUIESCE] = "quiesce",
	[FAKE_CAPACITY] = "capacity",
	[FAKE_RESET] = "reset",
	[FAKE_VM_MAP] = "vm_map",
	[FAKE_VM_UNMAP] = "vm_unmap",
};

/*
 * Whether an operation moves data. The log leaves such operations out, because
 * one scrub of a region takes many operations.
 */
static bool moves_data(enum fake_op op)
{
	return op >= FAKE_SCRUB && op <= FAKE_COPY;
}

static bool gives_back(enum fake_op op)
{
	return op == FAKE_RELEASE || op == FAKE_SLOT_CLEAR;
}

/*
 * Whether an operation is allowed both before and after the programs were
 * stopped.
 */
static bool is_neutral(enum fake_op op)
{
	return op == FAKE_QUIESCE || op == FAKE_CAPACITY || op == FAKE_RESET ||
	       op == FAKE_VM_UNMAP;
}

static void breach(struct fake_device *fake, const char *what)
{
	if (!fake->breach)
		fake->breach = what;
}

void fake_breach_if(struct fake_device *fake, bool broken, const char *what)
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
	case -ENOTRECOVERABLE:
		return "ENOTRECOVERABLE";
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

/*
 * Logs the domain, except domain 0, which is the only domain of most devices.
 */
static void log_domain(struct fake_device *fake, unsigned int domain)
{
	if (domain)
		log_call(fake, " (%u)", domain);
}

static bool is_unknown(int rc)
{
	return rc == -ETIMEDOUT || rc == -EINTR;
}

/*
 * Whether a command that returns @rc takes effect: the command succeeds, or
 * only its reply is lost.
 */
bool fake_takes_effect(const struct fake_device *fake, int rc)
{
	return !rc || (is_unknown(rc) && fake->replies_are_lost);
}

/*
 * Each operation begins with this call. Returns the error that a test has
 * planned for the operation, or 0.
 */
int fake_device_begin(struct fake_device *fake, enum fake_op op)
{
	atomic_t *busy = moves_data(op) ? &fake->data_busy : &fake->busy;
	struct fake_failure *failure = &fake->failure[op];

	fake_breach_if(fake, atomic_inc_return(busy) != 1,
		       "two operations at a time");
	fake_breach_if(fake, fake->gone, "called after the table was removed");
	fake_breach_if(fake, fake->asleep, "called while it sleeps");
	if (gives_back(op))
		fake_breach_if(fake, fake->leaving && !fake->quiet,
			       "given back while programs may run");
	else if (!is_neutral(op))
		fake_breach_if(fake, fake->quiet, "used after it was quiet");
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

/* Each operation ends with this call. @arg is a size in bytes, or a slot. */
int fake_device_end(struct fake_device *fake, enum fake_op op, u64 arg, int rc)
{
	if (moves_data(op)) {
		atomic_dec(&fake->data_busy);
		return rc;
	}
	log_call(fake, "%s%s", fake->log_length ? ", " : "", op_names[op]);
	if (op == FAKE_SLOT_SET || op == FAKE_SLOT_CLEAR)
		log_call(fake, " %llu", arg);
	else if (!is_neutral(op))
		log_call(fake, " %lluG", arg / GIB);
	if (rc)
		log_call(fake, " %s", errno_name(rc));
	atomic_dec(&fake->busy);
	return rc;
}

struct flexmem_memory *fake_device_piece(struct fake_device *fake,
					 const struct flexmem_memory *mem)
{
	struct flexmem_memory *piece = NULL;
	unsigned int i;

	spin_lock(&fake->piece_lock);
	for (i = 0; i < ARRAY_SIZE(fake->piece) && !piece; i++)
		if (fake->piece[i].size && fake->piece[i].id == mem->id &&
		    fake->piece[i].base == mem->base &&
		    fake->piece[i].size == mem->size &&
		    fake->piece[i].cookie == mem->cookie)
			piece = &fake->piece[i];
	spin_unlock(&fake->piece_lock);
	return piece;
}

/* Whether the memory is in a slot other than @but. */
static bool in_a_slot(struct fake_device *fake, u64 base, unsigned int but)
{
	unsigned int slot;

	for (slot = 0; slot < ARRAY_SIZE(fake->slot_base); slot++)
		if (fake->slot_base[slot] == base && slot != but)
			return true;
	return false;
}

/* Finds memory by id: after a lost reply the driver knows only the id. */
static struct flexmem_memory *lost_piece(struct fake_device *fake, u64 id)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fake->piece); i++)
		if (fake->piece[i].size && fake->piece[i].id == id)
			return &fake->piece[i];
	return NULL;
}

/* The entry of an id whose reply was lost, or a free entry. */
static u64 *find_lost(struct fake_device *fake, u64 id)
{
	u64 *lost = fake->lost_id, *empty = NULL;

	for (; lost < fake->lost_id + ARRAY_SIZE(fake->lost_id); lost++) {
		if (*lost == id)
			return lost;
		if (!*lost && !empty)
			empty = lost;
	}
	return empty;
}

static u64 *capacity_of(struct fake_device *fake, unsigned int domain)
{
	return domain ? &fake->capacity_of[domain] : &fake->capacity;
}

static u64 granule_of(const struct fake_device *fake, unsigned int domain)
{
	return fake->domains[domain].granule ?: fake->granule;
}

static u64 taken_of(const struct fake_device *fake, unsigned int domain)
{
	unsigned int i;
	u64 bytes = 0;

	for (i = 0; i < ARRAY_SIZE(fake->piece); i++)
		if (fake->piece[i].domain == domain)
			bytes += fake->piece[i].size;
	return bytes;
}

static bool refuses_size(struct fake_device *fake, unsigned int domain,
			 u64 size)
{
	u64 capacity = *capacity_of(fake, domain);
	u64 taken = taken_of(fake, domain);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fake->refused_size); i++)
		if (fake->refused_size[i] == size)
			return true;
	if (fake->refuses_from && size >= fake->refuses_from)
		return true;
	return taken > capacity || size > capacity - taken;
}

static int acquire_piece(struct fake_device *fake, u64 size,
			 struct flexmem_memory *mem)
{
	unsigned int i;

	if (refuses_size(fake, mem->domain, size))
		return -ENOSPC;
	for (i = 0; fake->piece[i].size; i++)
		if (i == FAKE_MAX_PIECES - 1)
			return -ENOSPC;
	spin_lock(&fake->piece_lock);
	fake->piece[i] = (struct flexmem_memory) {
		.id = mem->id,
		.domain = mem->domain,
		.base = TOP_BASE - i * BASE_STEP,
		.size = size,
		.cookie = ~(u64)i,
	};
	spin_unlock(&fake->piece_lock);
	fake->taken += size;
	fake_data_give(fake, i);
	*mem = fake->piece[i];
	if (fake->wrong_domain)
		mem->domain = 0;
	return 0;
}

static int fake_acquire(void *priv, u64 size, struct flexmem_memory *mem)
{
	struct fake_device *fake = priv;
	int rc = fake_device_begin(fake, FAKE_ACQUIRE);
	struct flexmem_memory lost = *mem;
	unsigned int domain = mem->domain;

	if (domain >= max(fake->nr_domains, 1U)) {
		breach(fake, "acquired memory of a domain that there is not");
		return fake_device_end(fake, FAKE_ACQUIRE, size, -EIO);
	}
	fake_breach_if(fake, !size || !IS_ALIGNED(size, granule_of(fake, domain)),
		       "acquired size is not a multiple of the granule");
	fake_breach_if(fake, !mem->id || lost_piece(fake, mem->id),
		       "acquired under an id that is in use");
	if (!rc)
		rc = acquire_piece(fake, size, mem);
	else if (fake_takes_effect(fake, rc) && !acquire_piece(fake, size, &lost))
		fake->unheard += size;
	if (is_unknown(rc))
		*find_lost(fake, mem->id) = mem->id;
	if (fake->during_acquire)
		fake->during_acquire(fake->during_acquire_arg);
	rc = fake_device_end(fake, FAKE_ACQUIRE, size, rc);
	log_domain(fake, domain);
	return rc;
}

static int fake_release(void *priv, const struct flexmem_memory *mem)
{
	struct fake_device *fake = priv;
	int rc = fake_device_begin(fake, FAKE_RELEASE);
	u64 *lost = find_lost(fake, mem->id);
	bool was_lost = *lost == mem->id;
	struct flexmem_memory *piece = was_lost ? lost_piece(fake, mem->id) :
					fake_device_piece(fake, mem);
	u64 size = mem->size;

	fake_breach_if(fake, !piece && !was_lost,
		       "released memory that was not acquired");
	fake_breach_if(fake, piece && in_a_slot(fake, piece->base, NO_SLOT),
		       "released memory that is in a slot");
	fake_breach_if(fake, fake_pages_has(fake, mem->id),
		       "released memory that is mapped");
	fake_breach_if(fake, piece && !fake->quiet && !fake->clears &&
		       fake_data_is_dirty(fake, piece - fake->piece),
		       "released bytes of an owner");
	if (!rc && was_lost)
		*lost = 0;
	if (is_unknown(rc))
		*lost = mem->id;
	if (fake_takes_effect(fake, rc) && piece) {
		fake->taken -= size;
		if (!mem->cookie)
			fake->unheard -= size;
		fake_data_drop(fake, piece - fake->piece);
		spin_lock(&fake->piece_lock);
		*piece = (struct flexmem_memory) {};
		spin_unlock(&fake->piece_lock);
	}
	return fake_device_end(fake, FAKE_RELEASE, size, rc);
}

/* Notes whether the outcome tells the caller what is in a slot. */
static void note_slot(struct fake_device *fake, unsigned int slot, int rc)
{
	if (!rc)
		fake->lost_slots &= ~BIT_ULL(slot);
	if (is_unknown(rc))
		fake->lost_slots |= BIT_ULL(slot);
}

static int fake_slot_set(void *priv, unsigned int slot,
			 const struct flexmem_memory *mem)
{
	struct fake_device *fake = priv;
	int rc = fake_device_begin(fake, FAKE_SLOT_SET);
	bool outside = slot >= fake->slots;

	fake_breach_if(fake, outside, "set a slot that there is not");
	if (outside)
		return fake_device_end(fake, FAKE_SLOT_SET, slot, rc);
	fake_breach_if(fake, fake->slot_base[slot] ||
		       fake->lost_slots & BIT_ULL(slot),
		       "set a slot that is not empty");
	fake_breach_if(fake, !fake_device_piece(fake, mem),
		       "set a slot to memory that was not acquired");
	fake_breach_if(fake, in_a_slot(fake, mem->base, slot),
		       "set two slots to the same memory");
	if (!rc && fake->refused_slots & BIT_ULL(slot))
		rc = -ENOSPC;
	if (fake_takes_effect(fake, rc))
		fake->slot_base[slot] = mem->base;
	if (fake->during_set)
		fake->during_set(fake->during_set_arg);
	rc = rc ?: fake->sets_and_fails;
	if (rc && rc != -ENOSPC)
		fake->lost_slots |= BIT_ULL(slot);
	note_slot(fake, slot, rc);
	return fake_device_end(fake, FAKE_SLOT_SET, slot, rc);
}

static int fake_slot_clear(void *priv, unsigned int slot)
{
	struct fake_device *fake = priv;
	int rc = fake_device_begin(fake, FAKE_SLOT_CLEAR);
	bool outside = slot >= fake->slots;

	fake_breach_if(fake, outside, "cleared a slot that there is not");
	if (outside)
		return fake_device_end(fake, FAKE_SLOT_CLEAR, slot, rc);
	fake_breach_if(fake, !fake->slot_base[slot] &&
		       !(fake->lost_slots & BIT_ULL(slot)),
		       "cleared a slot that is empty");
	if (fake_takes_effect(fake, rc))
		fake->slot_base[slot] = 0;
	if (fake->during_clear)
		fake->during_clear(fake->during_clear_arg);
	note_slot(fake, slot, rc);
	return fake_device_end(fake, FAKE_SLOT_CLEAR, slot, rc);
}

static int fake_drain(void *priv)
{
	struct fake_device *fake = priv;
	int rc = fake_device_begin(fake, FAKE_DRAIN);

	if (fake->during_clear)
		fake->during_clear(fake->during_clear_arg);
	return fake_device_end(fake, FAKE_DRAIN, 0, rc);
}

static int fake_quiesce(void *priv)
{
	struct fake_device *fake = priv;
	int rc = fake_device_begin(fake, FAKE_QUIESCE);

	if (fake_takes_effect(fake, rc))
		fake->quiet = true;
	return fake_device_end(fake, FAKE_QUIESCE, 0, rc);
}

static int fake_capacity(void *priv, unsigned int domain, u64 *bytes)
{
	struct fake_device *fake = priv;
	int rc = fake_device_begin(fake, FAKE_CAPACITY);

	if (!rc)
		*bytes = *capacity_of(fake, domain);
	if (!rc && fake->after_capacity)
		fake->after_capacity(fake->after_capacity_arg);
	rc = fake_device_end(fake, FAKE_CAPACITY, 0, rc);
	log_domain(fake, domain);
	return rc;
}

static int fake_reset(void *priv)
{
	struct fake_device *fake = priv;
	int rc = fake_device_begin(fake, FAKE_RESET);

	if (fake_takes_effect(fake, rc))
		fake_device_reset(fake);
	if (!rc && fake->during_reset)
		fake->during_reset(fake->during_reset_arg);
	return fake_device_end(fake, FAKE_RESET, 0, rc);
}

static const struct flexmem_device_ops pf_ops = {
	.acquire = fake_acquire,
	.release = fake_release,
	.drain = fake_drain,
	.quiesce = fake_quiesce,
	.capacity = fake_capacity,
	.scrub = fake_scrub,
	.read = fake_read,
	.write = fake_write,
	.copy = fake_copy,
	.fault = fake_fault,
	.reset = fake_reset,
};

static const struct flexmem_device_ops vf_ops = {
	.acquire = fake_acquire,
	.release = fake_release,
	.slot_set = fake_slot_set,
	.slot_clear = fake_slot_clear,
	.quiesce = fake_quiesce,
	.capacity = fake_capacity,
	.scrub = fake_scrub,
	.read = fake_read,
	.write = fake_write,
	.copy = fake_copy,
	.fault = fake_fault,
	.reset = fake_reset,
};

static const struct flexmem_device_ops bare_vf_ops = {
	.acquire = fake_acquire,
	.release = fake_release,
	.slot_set = fake_slot_set,
	.slot_clear = fake_slot_clear,
	.quiesce = fake_quiesce,
	.capacity = fake_capacity,
	.scrub = fake_scrub,
};

static void device_teardown(void *data)
{
	struct fake_device *fake = data;
	struct kunit *test = kunit_get_current_test();

	KUNIT_EXPECT_NULL_MSG(test, fake->breach, "device contract: %s",
			      fake->breach);
	fake_data_drop_all(fake);
}

/**
 * fake_device_create - make a device that grants every request
 * @test: test; its end frees the device, and a breach of the driver contract
 *	fails the test
 * @mode: PF or VF
 * @slots: number of slots
 * @capacity: capacity in bytes
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
	fake->max_pages = FAKE_MAX_PAGES;
	fake_data_init(fake);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action(test, device_teardown, fake));
	return fake;
}

/**
 * fake_device_add_domain - give a device a further memory
 * @fake: device, for which no region table exists yet. The device's first
 *	memory is domain 0, of type FLEXMEM_DOMAIN_DEVICE
 * @type: type of the new memory
 * @capacity: its capacity in bytes
 *
 * The caller may change the description, fake->domains[fake->nr_domains - 1].
 */
void fake_device_add_domain(struct fake_device *fake,
			    enum flexmem_domain_type type, u64 capacity)
{
	unsigned int id = fake->nr_domains ?: 1;

	fake->domains[id].type = type;
	fake->capacity_of[id] = capacity;
	fake->nr_domains = id + 1;
}

const struct flexmem_device_ops *fake_device_ops(struct fake_device *fake)
{
	if (fake->bare)
		return &bare_vf_ops;
	return fake->mode == FLEXMEM_MODE_VF ? &vf_ops : &pf_ops;
}

struct flexmem_device_desc fake_device_desc(struct fake_device *fake)
{
	return (struct flexmem_device_desc) {
		.name = "fake",
		.mode = fake->mode,
		.slots = fake->slots,
		.granule = fake->granule,
		.clears = fake->clears,
		.nr_domains = fake->nr_domains,
		.domains = fake->domains,
		.ops = fake_device_ops(fake),
		.priv = fake,
	};
}

/**
 * fake_device_fail - make an operation fail
 * @fake: device
 * @op: operation
 * @nth: the first call that fails; 1 is the next one
 * @times: number of calls that fail
 * @rc: error that these calls return
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
 * fake_device_log - calls to the device, and its answers
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
 * fake_device_is_untouched - whether all memory of the device is released
 * @fake: device
 *
 * Return: true if no memory is acquired and all slots are empty.
 */
bool fake_device_is_untouched(struct fake_device *fake)
{
	return !fake->taken &&
	       !memchr_inv(fake->slot_base, 0, sizeof(fake->slot_base)) &&
	       !memchr_inv(fake->piece, 0, sizeof(fake->piece));
}

/**
 * fake_device_lost - memory that was acquired by commands with lost replies
 * @fake: device
 *
 * Return: the number of bytes.
 */
u64 fake_device_lost(struct fake_device *fake)
{
	return fake->unheard;
}

/**
 * fake_device_reset - reset a PF or VF that flexmem does not manage
 * @fake: device; all memory is released afterwards
 */
void fake_device_reset(struct fake_device *fake)
{
	fake->taken = 0;
	fake->quiet = false;
	fake->unheard = 0;
	memset(fake->lost_id, 0, sizeof(fake->lost_id));
	fake->lost_slots = 0;
	fake_data_drop_all(fake);
	memset(fake->piece, 0, sizeof(fake->piece));
	memset(fake->slot_base, 0, sizeof(fake->slot_base));
	memset(fake->page, 0, sizeof(fake->page));
}

/*
 * Tests of the fake device itself: it must report each breach of the contract.
 */

static struct fake_device *vf_device(struct kunit *test,
				     struct flexmem_memory *mem)
{
	struct fake_device *fake;

	fake = fake_device_create(test, FLEXMEM_MODE_VF, 8, 64 * GIB);
	*mem = (struct flexmem_memory) { .id = 1 };
	KUNIT_ASSERT_EQ(test, 0, vf_ops.acquire(fake, 4 * GIB, mem));
	return fake;
}

/* Expects a breach, and clears it so that the teardown accepts the device. */
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
	struct flexmem_memory mem, other = { .id = 2 };
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

static void notices_return_while_programs_may_run(struct kunit *test)
{
	struct flexmem_memory mem;
	struct fake_device *fake = vf_device(test, &mem);

	vf_ops.slot_set(fake, 0, &mem);
	fake->leaving = true;
	vf_ops.slot_clear(fake, 0);
	expect_breach(test, fake, "given back while programs may run");
	KUNIT_EXPECT_EQ(test, 0, vf_ops.quiesce(fake));
	vf_ops.release(fake, &mem);
	KUNIT_EXPECT_NULL(test, fake->breach);
	mem.id = 2;
	vf_ops.acquire(fake, 4 * GIB, &mem);
	expect_breach(test, fake, "used after it was quiet");
}

static void notices_memory_that_is_not_released(struct kunit *test)
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
	KUNIT_EXPECT_EQ(test, 0, vf_ops.capacity(fake, 0, &bytes));
	KUNIT_EXPECT_EQ(test, -EIO, vf_ops.capacity(fake, 0, &bytes));
	KUNIT_EXPECT_EQ(test, 0, vf_ops.capacity(fake, 0, &bytes));
	KUNIT_EXPECT_STREQ(test, fake_device_log(fake),
			   "acquire 4G, capacity, capacity EIO, capacity");
}

static void gives_memory_with_foreign_bytes(struct kunit *test)
{
	struct flexmem_memory mem;
	struct fake_device *fake = vf_device(test, &mem);

	KUNIT_EXPECT_TRUE(test, fake_data_is(fake, &mem, 0, 4 * GIB,
					     FAKE_FOREIGN));
	KUNIT_EXPECT_FALSE(test, fake_data_is(fake, &mem, 0, 128, 1));
}

static void remembers_the_owner_of_each_byte(struct kunit *test)
{
	struct flexmem_memory mem;
	struct fake_device *fake = vf_device(test, &mem);
	u8 *data;

	data = kunit_kzalloc(test, SZ_4K, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, data);
	KUNIT_EXPECT_EQ(test, 0, vf_ops.scrub(fake, &mem, 0, GIB));
	memset(data, 7, SZ_4K);
	KUNIT_EXPECT_EQ(test, 0, vf_ops.write(fake, &mem, 1024, 256, data));
	/* Scrubs the second half of the range that was written. */
	KUNIT_EXPECT_EQ(test, 0, vf_ops.scrub(fake, &mem, 1152, 128));
	KUNIT_EXPECT_EQ(test, 0, vf_ops.read(fake, &mem, 0, SZ_4K, data));
	KUNIT_EXPECT_EQ(test, data[1023], 0);
	KUNIT_EXPECT_EQ(test, data[1024], 7);
	KUNIT_EXPECT_EQ(test, data[1151], 7);
	KUNIT_EXPECT_EQ(test, data[1152], 0);
	KUNIT_EXPECT_TRUE(test, fake_data_is_own(fake, &mem, 0, GIB, 7));
	KUNIT_EXPECT_FALSE(test, fake_data_is_own(fake, &mem, 0, GIB, 8));
	KUNIT_EXPECT_FALSE(test,
			   fake_data_is_own(fake, &mem, 0, GIB + 128, 7));
	KUNIT_EXPECT_TRUE(test, fake_data_is(fake, &mem, 1024, 128, 7));
	KUNIT_EXPECT_FALSE(test, fake_data_is(fake, &mem, 1024, 256, 7));
	KUNIT_EXPECT_TRUE(test, fake_data_is(fake, &mem, 0, 1024, 0));
	KUNIT_EXPECT_FALSE(test, fake_data_is(fake, &mem, 0, 1152, 0));
}

static void failed_scrub_leaves_the_bytes(struct kunit *test)
{
	struct flexmem_memory mem;
	struct fake_device *fake = vf_device(test, &mem);

	fake_device_fail(fake, FAKE_SCRUB, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, vf_ops.scrub(fake, &mem, 0, 128));
	KUNIT_EXPECT_FALSE(test, fake_data_is(fake, &mem, 0, 128, 0));
	KUNIT_EXPECT_EQ(test, fake->scrubbed, 0);
	KUNIT_EXPECT_EQ(test, fake->calls[FAKE_SCRUB], 1);
}

static void notices_wrong_ranges(struct kunit *test)
{
	struct flexmem_memory mem;
	struct fake_device *fake = vf_device(test, &mem);

	vf_ops.scrub(fake, &mem, 4 * GIB - 128, 256);
	expect_breach(test, fake, "data beyond what was acquired");
	vf_ops.scrub(fake, &mem, 64, 128);
	expect_breach(test, fake, "scrubbed range is not aligned");
	vf_ops.scrub(fake, &mem, 0, FLEXMEM_SCRUB_MAX + 128);
	expect_breach(test, fake, "scrubbed too much at a time");
	vf_ops.release(fake, &mem);
	vf_ops.scrub(fake, &mem, 0, 128);
	expect_breach(test, fake, "data of memory that was not acquired");
}

static void copy_moves_bytes(struct kunit *test)
{
	struct flexmem_memory mem, other = { .id = 2 };
	struct fake_device *fake = vf_device(test, &mem);
	const u8 seven = 7;

	KUNIT_EXPECT_EQ(test, 0, vf_ops.acquire(fake, 4 * GIB, &other));
	vf_ops.scrub(fake, &mem, 0, GIB);
	vf_ops.write(fake, &mem, 256, 1, &seven);
	KUNIT_EXPECT_EQ(test, 0,
			vf_ops.copy(fake, &other, 1024, &mem, 128, 256));
	KUNIT_EXPECT_TRUE(test, fake_data_is(fake, &other, 1024, 128, 0));
	KUNIT_EXPECT_TRUE(test, fake_data_is(fake, &other, 1152, 1, 7));
	KUNIT_EXPECT_TRUE(test, fake_data_is(fake, &other, 1153, 127, 0));
	KUNIT_EXPECT_TRUE(test, fake_data_is(fake, &other, 1280, GIB,
					     FAKE_FOREIGN));
	vf_ops.copy(fake, &other, 64, &mem, 0, 128);
	expect_breach(test, fake, "copied range is not aligned");
	vf_ops.copy(fake, &mem, 128, &mem, 0, 256);
	expect_breach(test, fake, "copied onto itself");
	vf_ops.copy(fake, &other, 0, &mem, 0, FLEXMEM_COPY_MAX + 128);
	expect_breach(test, fake, "copied too much at a time");
	vf_ops.copy(fake, &other, 0, &mem, 4 * GIB - 128, 256);
	expect_breach(test, fake, "data beyond what was acquired");
}

static void notices_wrong_pages(struct kunit *test)
{
	struct flexmem_memory mem;
	struct fake_device *fake = vf_device(test, &mem);
	struct flexmem_frames all = { .size = 2 * SZ_4K };
	struct flexmem_frames next = { .offset = SZ_4K, .size = SZ_4K };
	struct flexmem_frames beyond = { .offset = 4 * GIB, .size = SZ_4K };

	KUNIT_EXPECT_EQ(test, 0, vf_ops.fault(fake, &mem, 0, &all));
	KUNIT_EXPECT_EQ(test, 0, vf_ops.fault(fake, &mem, SZ_4K, &next));
	KUNIT_EXPECT_EQ(test, next.pfn, all.pfn + 1);
	KUNIT_EXPECT_NULL(test, fake->breach);
	vf_ops.fault(fake, &mem, 4 * GIB, &beyond);
	expect_breach(test, fake, "data beyond what was acquired");
	vf_ops.fault(fake, &mem, 128, &all);
	expect_breach(test, fake, "page is not aligned");
}

static void notices_call_during_sleep(struct kunit *test)
{
	struct flexmem_memory mem;
	struct fake_device *fake = vf_device(test, &mem);

	fake->asleep = true;
	vf_ops.scrub(fake, &mem, 0, 128);
	expect_breach(test, fake, "called while it sleeps");
}

static void reset_takes_everything_back(struct kunit *test)
{
	struct flexmem_memory mem;
	struct fake_device *fake = vf_device(test, &mem);

	vf_ops.slot_set(fake, 0, &mem);
	KUNIT_EXPECT_EQ(test, 0, vf_ops.reset(fake));
	KUNIT_EXPECT_TRUE(test, fake_device_is_untouched(fake));
	KUNIT_EXPECT_STREQ(test, fake_device_log(fake),
			   "acquire 4G, set 0, reset");
}

/*
 * torch-spyre #780: a request with two faults gets the answer to the first one.
 * The fake checks the domain, the size, what a test has planned, and last the
 * room. A slot is filled by a command of its own.
 */
static void first_fault_counts(struct kunit *test)
{
	struct flexmem_memory mem, other = { .id = 1, .domain = 1 };
	struct fake_device *fake = vf_device(test, &mem);
	const u64 odd = 65 * GIB + 1;

	KUNIT_EXPECT_EQ(test, -EIO, vf_ops.acquire(fake, odd, &other));
	expect_breach(test, fake,
		      "acquired memory of a domain that there is not");
	other.domain = 0;
	KUNIT_EXPECT_EQ(test, -ENOSPC, vf_ops.acquire(fake, odd, &other));
	expect_breach(test, fake,
		      "acquired size is not a multiple of the granule");
	KUNIT_EXPECT_EQ(test, -ENOSPC, vf_ops.acquire(fake, 65 * GIB, &other));
	expect_breach(test, fake, "acquired under an id that is in use");
	other.id = 2;
	fake_device_fail(fake, FAKE_ACQUIRE, 1, 1, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, vf_ops.acquire(fake, 65 * GIB, &other));
	KUNIT_EXPECT_EQ(test, -ENOSPC, vf_ops.acquire(fake, 65 * GIB, &other));
	KUNIT_EXPECT_NULL(test, fake->breach);

	vf_ops.slot_set(fake, 8, &other);
	expect_breach(test, fake, "set a slot that there is not");
	vf_ops.slot_set(fake, 0, &mem);
	fake->refused_slots = BIT_ULL(0);
	KUNIT_EXPECT_EQ(test, -ENOSPC, vf_ops.slot_set(fake, 0, &other));
	expect_breach(test, fake, "set a slot that is not empty");
}

static void notices_wrong_mappings(struct kunit *test)
{
	struct flexmem_memory mem, other = { .id = 2 };
	struct fake_device *fake = vf_device(test, &mem);
	struct flexmem_vm_range range = { 1, SZ_4K, 2 * SZ_4K };

	KUNIT_EXPECT_EQ(test, 0, fake_vm_map(fake, &range, &mem, 0, 1));
	range.size = SZ_4K;
	fake_vm_map(fake, &range, &mem, 0, 1);
	expect_breach(test, fake, "mapped over a mapping");
	fake_vm_unmap(fake, &range);
	expect_breach(test, fake, "cut a mapping");
	KUNIT_EXPECT_EQ(test, fake_pages_nr(fake), 0);
	fake_vm_map(fake, &range, &other, 0, 1);
	expect_breach(test, fake, "mapped memory that was not acquired");
	fake_vm_unmap(fake, &range);
	fake_vm_map(fake, &range, &mem, 0, 1);
	vf_ops.release(fake, &mem);
	expect_breach(test, fake, "released memory that is mapped");
	KUNIT_EXPECT_EQ(test, 0, vf_ops.reset(fake));
	KUNIT_EXPECT_EQ(test, fake_pages_nr(fake), 0);
}

static struct kunit_case fake_device_cases[] = {
	KUNIT_CASE(notices_release_in_slot),
	KUNIT_CASE(notices_release_of_foreign_memory),
	KUNIT_CASE(notices_set_of_filled_slot),
	KUNIT_CASE(notices_memory_in_two_slots),
	KUNIT_CASE(notices_clear_of_empty_slot),
	KUNIT_CASE(notices_call_after_removal),
	KUNIT_CASE(notices_return_while_programs_may_run),
	KUNIT_CASE(notices_memory_that_is_not_released),
	KUNIT_CASE(fails_the_nth_call),
	KUNIT_CASE(gives_memory_with_foreign_bytes),
	KUNIT_CASE(remembers_the_owner_of_each_byte),
	KUNIT_CASE(failed_scrub_leaves_the_bytes),
	KUNIT_CASE(notices_wrong_ranges),
	KUNIT_CASE(copy_moves_bytes),
	KUNIT_CASE(notices_wrong_pages),
	KUNIT_CASE(notices_call_during_sleep),
	KUNIT_CASE(reset_takes_everything_back),
	KUNIT_CASE(first_fault_counts),
	KUNIT_CASE(notices_wrong_mappings),
	{}
};

static struct kunit_suite fake_device_suite = {
	.name = "flexmem_fake_device",
	.test_cases = fake_device_cases,
};

kunit_test_suite(fake_device_suite);

MODULE_DESCRIPTION("Unit tests of flexmem");
MODULE_LICENSE("GPL");
