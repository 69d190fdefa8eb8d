// SPDX-License-Identifier: GPL-2.0
#include "fake.h"
#include "fake_state.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PF_BASE UINT64_C(0x2000000000)

struct fake fake;

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct region regions[FAKE_REGIONS];
uint32_t nr_regions;
uint64_t generation;

uint64_t allocs, frees, failures;
bool exhausted;

void require(bool condition, const char *text, const char *file, int line)
{
	if (condition)
		return;
	fprintf(stderr, "%s:%d: against the ABI: %s\n", file, line, text);
	abort();
}

static void free_region(struct region *region)
{
	struct block *block;

	while ((block = region->blocks)) {
		region->blocks = block->next;
		free(block);
	}
	memset(region, 0, sizeof(*region));
}

void fake_node(unsigned int index, unsigned int number, uint32_t mode)
{
	fake.nodes[index] = (struct fake_node){
		.exists = true,
		.number = number,
		.mode = mode,
	};
}

void fake_reset(void)
{
	uint32_t i;

	for (i = 0; i < nr_regions; i++)
		free_region(&regions[i]);
	nr_regions = 0;
	generation = 1;
	allocs = frees = failures = 0;
	exhausted = false;
	reset_files();
	reset_owners();
	reset_spaces();
	fake = (struct fake){
		.slots = 8,
		.max_regions = 8,
		.max_handles = 1000000,
		.max_batch = 64,
		.order = FLEXMEM_ORDER_FILL_FIRST,
		.nr_fallback = 3,
		.fallback = { 12 * GIB, 8 * GIB, 4 * GIB },
		.capacity = 64 * GIB,
		.nr_domains = 1,
		.must_ask = UINT64_MAX,
		.next_region = UINT64_MAX,
		.nr_domain_sizes = 1,
		.capabilities = FLEXMEM_CAP_SCRUB | FLEXMEM_CAP_MAP |
				FLEXMEM_CAP_RW | FLEXMEM_CAP_COPY |
				FLEXMEM_CAP_PAGE_TABLES,
		.va_page = 2 << 20,
		.va_start = 4 * GIB,
		.va_length = 64 * GIB,
		.uid = 1000,
		/* A process number that no process of Linux can have. */
		.opener = 5000000,
		.sequence = 1,
		.admin = true,
		.resets = 3,
		.timeouts = 7,
		.limit = FLEXMEM_NO_LIMIT,
		.devices = "Character devices:\n  1 mem\n511 flexmem\n\n"
			   "Block devices:\n259 blkext\n",
	};
	fake_node(0, 0, FLEXMEM_MODE_VF);
}

bool fake_all_closed(void)
{
	return fake.opens == fake.closes && fake.maps == fake.unmaps;
}

void fake_tells_of_a_free(void)
{
	fake.freed = ++fake.sequence;
}

void fake_press(uint32_t level)
{
	fake.level = level;
	fake.events++;
}

static uint64_t from_environment(const char *name, uint64_t value)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : value;
}

/* Gives the first two nodes addresses on PCI: 0000:03:00.0 and 0000:03:00.1. */
static void add_addresses(void)
{
	struct fake_link *link = fake.links;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		/* FAKE_PCI=2: as after both were bound in the other order. */
		unsigned int number = from_environment("FAKE_PCI", 1) == 2 ?
					      1 - i : i;

		snprintf(link->path, sizeof(link->path),
			 "/sys/dev/char/511:%u/device", i);
		snprintf(link->target, sizeof(link->target),
			 "../../0000:03:00.%u", number);
		link++;
		snprintf(link->path, sizeof(link->path),
			 "/sys/dev/char/511:%u/device/subsystem", i);
		strcpy(link->target, "../../bus/pci");
		link++;
	}
}

void fake_from_environment(void)
{
	fake_reset();
	fake.slots = (uint32_t)from_environment("FAKE_SLOTS", 8);
	fake.max_regions = (uint32_t)from_environment("FAKE_MAX_REGIONS",
						      fake.slots);
	fake.capacity = from_environment("FAKE_CAPACITY", fake.capacity);
	fake.order = (uint32_t)from_environment("FAKE_ORDER", fake.order);
	fake.max_handles = (uint32_t)from_environment("FAKE_HANDLES", 1000000);
	fake.fallback[0] = from_environment("FAKE_REGION", 12 * GIB);
	fake.capabilities = from_environment("FAKE_CAPABILITIES",
					     fake.capabilities);
	fake.admin = from_environment("FAKE_ADMIN", true);
	fake.opener = (uint32_t)from_environment("FAKE_OPENER", fake.opener);
	fake.limit = from_environment("FAKE_LIMIT", fake.limit);
	fake.limit_for_all =
		(unsigned int)from_environment("FAKE_LIMIT_FOR_ALL", 0);
	fake.keeps_limits = from_environment("FAKE_KEEPS_LIMITS", false);
	fake.log = getenv("FAKE_LOG");
	fake.held = from_environment("FAKE_HELD", 0);
	fake.held_for = (unsigned int)from_environment("FAKE_HELD_FOR", 0);
	fake.guest = (unsigned int)from_environment("FAKE_GUEST", 0);
	fake.guests = from_environment("FAKE_GUESTS", false);
	fake.fails = from_environment("FAKE_FAILS", false);
	fake.torn = (unsigned int)from_environment("FAKE_TORN", 0);
	fake.moved = (unsigned int)from_environment("FAKE_MOVED", 0);
	fake.removed = from_environment("FAKE_REMOVED", 0);
	fake.parent = from_environment("FAKE_PARENT", 0);
	fake.uid = (uint32_t)from_environment("FAKE_UID", fake.uid);
	fake.region_flags = (uint32_t)from_environment("FAKE_REGION_FLAGS", 0);
	fake.region_reserved = from_environment("FAKE_REGION_RESERVED", false);
	fake.nr_domains = (uint32_t)from_environment("FAKE_DOMAINS", 1);
	fake.must_ask = from_environment("FAKE_MUST_ASK", UINT64_MAX);
	fake.chunks = (uint32_t)from_environment("FAKE_CHUNKS", 1);
	fake.map_is_gone = from_environment("FAKE_MAP_IS_GONE", false);
	fake.orphaned = from_environment("FAKE_ORPHANED", 0);
	fake.leaving = from_environment("FAKE_LEAVING", 0);
	fake.waits_ms = from_environment("FAKE_WAITS_MS", 0);
	fake.quarantined = from_environment("FAKE_QUARANTINED", 0);
	fake.scrubbed = from_environment("FAKE_SCRUBBED", 0);
	fake.grows = from_environment("FAKE_GROWS", 0);
	fake.nodes[0].mode = (uint32_t)from_environment("FAKE_MODE",
							FLEXMEM_MODE_VF);
	fake.nodes[0].exists = from_environment("FAKE_NODE", true);
	fake.nodes[0].open_error =
		(int)from_environment("FAKE_OPEN_ERROR", 0);
	fake.nodes[0].leaves = from_environment("FAKE_LEAVES", false);
	if (getenv("FAKE_SECOND")) {
		fake_node(1, 1, (uint32_t)from_environment("FAKE_SECOND", 0));
		fake.nodes[1].open_error = fake.nodes[0].open_error;
	}
	/* A node that is not there yet. */
	if (getenv("FAKE_LATE")) {
		fake_node(1, 1, FLEXMEM_MODE_VF);
		fake.nodes[1].exists = false;
	}
	if (getenv("FAKE_PCI"))
		add_addresses();
	if (getenv("FAKE_LEVEL"))
		fake_press((uint32_t)from_environment("FAKE_LEVEL", 0));
	fake.opened_bytes = from_environment("FAKE_OPENED_BYTES", 0);
	fake.broken = (uint32_t)from_environment("FAKE_BROKEN", 0);
	exhausted = from_environment("FAKE_EXHAUSTED", false);
	fake.state = (uint32_t)from_environment("FAKE_STATE", FLEXMEM_STATE_UP);
	fake.version = getenv("FAKE_VERSION");
	fake.no_module = from_environment("FAKE_NO_MODULE", false);
	fake.node_access = (unsigned int)from_environment("FAKE_ACCESS", 0600);
	fake.node_group = (unsigned int)from_environment("FAKE_GROUP", 0);
	fake.inject[FLEXMEM_CMD_ALLOC].at =
		(unsigned int)from_environment("FAKE_ALLOC_AT", 0);
	fake.inject[FLEXMEM_CMD_ALLOC].error =
		(int)from_environment("FAKE_ALLOC_ERROR", 0);
	fake.inject[FLEXMEM_CMD_FREE].at =
		(unsigned int)from_environment("FAKE_FREE_AT", 0);
	fake.inject[FLEXMEM_CMD_FREE].error =
		(int)from_environment("FAKE_FREE_ERROR", 0);
	fake.inject[FLEXMEM_CMD_SNAPSHOT].at =
		(unsigned int)from_environment("FAKE_SNAPSHOT_AT", 0);
	fake.inject[FLEXMEM_CMD_SNAPSHOT].error =
		(int)from_environment("FAKE_SNAPSHOT_ERROR", 0);
	fake.inject[FLEXMEM_CMD_READ].at =
		(unsigned int)from_environment("FAKE_READ_AT", 0);
	fake.inject[FLEXMEM_CMD_READ].error =
		(int)from_environment("FAKE_READ_ERROR", 0);
	fake.inject[FLEXMEM_CMD_TRIM].at =
		(unsigned int)from_environment("FAKE_TRIM_AT", 0);
	fake.inject[FLEXMEM_CMD_TRIM].error =
		(int)from_environment("FAKE_TRIM_ERROR", 0);
}

/* ---- the driver ---- */

static bool is_pf(void)
{
	return fake.nodes[0].mode == FLEXMEM_MODE_PF;
}

uint64_t region_id(uint32_t index)
{
	return is_pf() ? PF_BASE + index * 16 * GIB : index;
}

void add_region(uint64_t total)
{
	struct region *region = &regions[nr_regions++];
	struct block *block = calloc(1, sizeof(*block));

	REQUIRE(nr_regions <= FAKE_REGIONS);
	block->end = total;
	*region = (struct region){
		.total = total,
		.flags = fake.region_flags,
		.domain = fake.region_domain,
		.reserved = fake.region_reserved,
		.blocks = block,
	};
	generation++;
}

static uint64_t acquired(void)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < nr_regions; i++)
		sum += regions[i].total;
	return sum;
}

static uint32_t acquire(uint64_t needed)
{
	bool too_small = true;
	uint32_t i;

	for (i = 0; i < fake.nr_fallback; i++) {
		if (fake.fallback[i] >= needed)
			too_small = false;
	}
	if (too_small)
		return FLEXMEM_REASON_REGION_SIZE;
	if (nr_regions == fake.slots)
		return FLEXMEM_REASON_SLOTS;
	if (nr_regions == fake.max_regions)
		return FLEXMEM_REASON_MAX_REGIONS;
	for (i = 0; i < fake.nr_fallback; i++) {
		if (fake.fallback[i] < needed ||
		    fake.fallback[i] > fake.capacity - acquired())
			continue;
		add_region(fake.fallback[i]);
		return FLEXMEM_REASON_NONE;
	}
	exhausted = true;
	return FLEXMEM_REASON_CAPACITY;
}

void measure(const struct region *region,
	     struct flexmem_region_entry *entry)
{
	const struct block *block;
	uint64_t size;

	memset(entry, 0, sizeof(*entry));
	entry->total = region->total;
	entry->sequence = region->sequence;
	entry->flags = region->flags;
	entry->domain = region->domain;
	for (block = region->blocks; block; block = block->next) {
		size = block->end - block->start;
		if (block->handle) {
			entry->nr_allocated++;
			continue;
		}
		entry->nr_free++;
		entry->free += size;
		if (size > entry->largest_free)
			entry->largest_free = size;
	}
}

void hide(struct flexmem_region_entry *entry)
{
	if (fake.admin)
		return;
	*entry = (struct flexmem_region_entry){
		.region_id = entry->region_id,
		.slot = entry->slot,
		.flags = entry->flags | FLEXMEM_REGION_HIDDEN,
		.total = entry->total,
		.domain = entry->domain,
	};
}

struct block *split(struct block *block, uint64_t at)
{
	struct block *rest = malloc(sizeof(*rest));

	*rest = *block;
	rest->start = at;
	block->end = at;
	block->next = rest;
	return rest;
}

static struct block *place(struct region *region, uint64_t size, uint64_t align)
{
	struct block *block;
	uint64_t start;

	for (block = region->blocks; block; block = block->next) {
		start = (block->start + align - 1) & ~(align - 1);
		if (block->handle || start + size > block->end ||
		    start + size < start)
			continue;
		if (start > block->start)
			block = split(block, start);
		if (start + size < block->end)
			split(block, start + size);
		region->sequence++;
		return block;
	}
	return NULL;
}

static void explain(const struct file *file, struct flexmem_alloc *cmd,
		    uint32_t reason)
{
	struct flexmem_region_entry entry;
	uint32_t i;

	for (i = 0; i < nr_regions; i++) {
		measure(&regions[i], &entry);
		cmd->out_total_free += entry.free;
		if (entry.largest_free > cmd->out_largest_free)
			cmd->out_largest_free = entry.largest_free;
	}
	if (reason != FLEXMEM_REASON_REGION_SIZE &&
	    reason < FLEXMEM_REASON_HANDLES &&
	    cmd->out_total_free >= cmd->out_size) {
		cmd->out_region_reason = reason;
		reason = FLEXMEM_REASON_FRAGMENTATION;
	}
	cmd->out_reason = reason;
	cmd->out_max_region = fake.fallback[0];
	cmd->out_client_used = file->used;
	cmd->out_regions = nr_regions;
	cmd->out_leaving = fake.orphaned;
	cmd->out_event = reason == FLEXMEM_REASON_REGION_SIZE ? 0 :
								fake.sequence;
	if (fake.alone)
		cmd->out_refusal.flags |= FLEXMEM_REFUSAL_ALONE;
	failures++;
	note_failure(file, reason);
}

static void check_entry(const struct flexmem_alloc *cmd)
{
	REQUIRE(cmd->size == sizeof(*cmd));
	REQUIRE(!cmd->out_handle && !cmd->out_error && !cmd->out_size);
	REQUIRE(!cmd->out_reason && !cmd->out_max_region);
	REQUIRE(!cmd->out_region_reason && !cmd->out_regions);
	REQUIRE(!cmd->out_client_used && !cmd->out_event);
	REQUIRE(!cmd->out_refusal.limit && !cmd->out_refusal.flags);
}

static bool flags_are_good(uint32_t flags)
{
	if (flags & ~(uint32_t)(FLEXMEM_ALLOC_PROGRAM | FLEXMEM_ALLOC_MAPPABLE |
				FLEXMEM_ALLOC_ZEROED | FLEXMEM_ALLOC_GROWABLE))
		return false;
	if (flags & FLEXMEM_ALLOC_MAPPABLE &&
	    !(fake.capabilities & FLEXMEM_CAP_MAP))
		return false;
	return !(flags & FLEXMEM_ALLOC_ZEROED) ||
	       fake.capabilities & FLEXMEM_CAP_SCRUB;
}

static bool domains_are_good(const struct flexmem_alloc *cmd)
{
	if (cmd->policy == FLEXMEM_POLICY_DEFAULT)
		return !cmd->domains;
	if (cmd->policy == FLEXMEM_POLICY_INTERLEAVE && !cmd->domains)
		return fake.nr_domains > 1;
	return cmd->domains && !(cmd->domains >> fake.nr_domains);
}

static int alloc_one(struct file *file, struct flexmem_alloc *cmd)
{
	uint64_t unit = cmd->flags & FLEXMEM_ALLOC_MAPPABLE ? 4096 : 128;
	uint64_t align = cmd->alignment < unit ? unit : cmd->alignment;
	struct block *block = NULL;
	uint32_t reason;
	uint32_t i = 0;

	check_entry(cmd);
	if (!flags_are_good(cmd->flags))
		return EOPNOTSUPP;
	if (cmd->policy > FLEXMEM_POLICY_INTERLEAVE)
		return EOPNOTSUPP;
	if (!domains_are_good(cmd) || !cmd->length ||
	    (cmd->alignment & (cmd->alignment - 1)) || cmd->alignment > GIB)
		return EINVAL;
	REQUIRE(fake.must_ask == UINT64_MAX ||
		fake.must_ask == ((uint64_t)cmd->policy << 32 | cmd->domains));
	fake.policy = cmd->policy;
	fake.bound_to = cmd->domains;
	if (align > 4096)
		unit = align;
	cmd->out_size = (cmd->length + unit - 1) & ~(unit - 1);
	if (cmd->out_size < cmd->length)
		cmd->out_size = ~(unit - 1);
	if (file->handles >= fake.max_handles) {
		explain(file, cmd, FLEXMEM_REASON_HANDLES);
		return ENOMEM;
	}
	reason = limit_reached(file, cmd->out_size, &cmd->out_refusal);
	if (reason != FLEXMEM_REASON_NONE) {
		explain(file, cmd, reason);
		return ENOMEM;
	}
	while (!block) {
		for (; i < nr_regions && !block; i++)
			block = cmd->flags & FLEXMEM_ALLOC_GROWABLE ?
				place_growable(&regions[i], cmd->out_size,
					       align) :
				place(&regions[i], cmd->out_size, align);
		if (block)
			break;
		reason = acquire(cmd->out_size);
		if (reason != FLEXMEM_REASON_NONE) {
			explain(file, cmd, reason);
			return ENOMEM;
		}
	}
	block->handle = ++file->next_handle;
	block->flags = cmd->flags;
	block->file = (int)(file - files);
	cmd->out_handle = block->handle;
	cmd->out_chunks = fake.chunks ? fake.chunks : 1;
	cmd->out_address.region_id = region_id(i - 1);
	cmd->out_address.offset = block->start;
	file->used += cmd->out_size;
	file->handles++;
	if (file->used > file->peak)
		file->peak = file->used;
	note_peak(file);
	if (cmd->flags & FLEXMEM_ALLOC_ZEROED)
		zero(i - 1, block->start, block->end);
	allocs++;
	return 0;
}

void merge(struct region *region)
{
	struct block *block = region->blocks;
	struct block *next;

	while (block && block->next) {
		next = block->next;
		if (block->handle || next->handle) {
			block = next;
			continue;
		}
		block->end = next->end;
		block->next = next->next;
		free(next);
	}
}

/* Finds a file's live block, by handle, or by address if the handle is 0. */
struct block *find_block(const struct file *file, uint32_t handle,
			 const struct flexmem_address *address, uint32_t *where)
{
	struct block *block;
	uint32_t i;

	for (i = 0; i < nr_regions; i++) {
		if (!handle && region_id(i) != address->region_id)
			continue;
		for (block = regions[i].blocks; block; block = block->next) {
			if (!block->handle || block->file != file - files)
				continue;
			if (handle ? block->handle != handle :
				     block->start != address->offset)
				continue;
			*where = i;
			return block;
		}
	}
	return NULL;
}

static void release(struct file *file, struct block *block, uint32_t where)
{
	file->used -= block->end - block->start;
	file->handles--;
	forget_bound(block->file, block->handle);
	block->handle = 0;
	block->lost = false;
	regions[where].sequence++;
	merge(&regions[where]);
	frees++;
}

static int free_one(struct file *file, struct flexmem_free *cmd)
{
	struct block *block;
	uint32_t where;

	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->out_error);
	REQUIRE(!(cmd->flags & ~(uint32_t)FLEXMEM_FREE_BY_ADDRESS));
	if (cmd->flags & FLEXMEM_FREE_BY_ADDRESS)
		REQUIRE(!cmd->handle);
	else
		REQUIRE(!cmd->address.region_id && !cmd->address.offset);
	if (!cmd->flags && !cmd->handle)
		return ENOENT;
	block = find_block(file, cmd->handle, &cmd->address, &where);
	/* A lost allocation has no address. */
	if (!block || (block->lost && !cmd->handle))
		return ENOENT;
	release(file, block, where);
	return 0;
}

void free_all(int file)
{
	struct block *block;
	uint32_t i;

	for (i = 0; i < nr_regions; i++) {
		/*
		 * Neighbours are merged only after the loop, because the loop
		 * walks the list.
		 */
		for (block = regions[i].blocks; block; block = block->next) {
			if (!block->handle || block->file != file)
				continue;
			block->handle = 0;
			block->lost = false;
			regions[i].sequence++;
			frees++;
		}
		merge(&regions[i]);
	}
}

static int batch(struct file *file, struct flexmem_batch *cmd, bool is_free,
		 int injected)
{
	char *entry = (char *)(uintptr_t)cmd->entries;
	uint32_t i;
	int err;

	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->flags && !cmd->__reserved);
	REQUIRE(cmd->count && cmd->count <= fake.max_batch && !cmd->out_done);
	REQUIRE(cmd->entry_size == (is_free ? sizeof(struct flexmem_free) :
					      sizeof(struct flexmem_alloc)));
	if (injected && injected != EINTR)
		return injected;
	for (i = 0; i < cmd->count; i++, entry += cmd->entry_size) {
		if (injected && i == fake.done_before_eintr)
			return EINTR;
		if (is_free) {
			err = free_one(file, (void *)entry);
			((struct flexmem_free *)entry)->out_error = err;
		} else {
			err = alloc_one(file, (void *)entry);
			((struct flexmem_alloc *)entry)->out_error = err;
		}
		cmd->out_done++;
	}
	return 0;
}

static int info(struct file *file, struct flexmem_info *cmd)
{
	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->flags);
	if (file->node->info_error)
		return file->node->info_error;
	cmd->out_mode = file->node->mode;
	cmd->out_slots = fake.slots;
	cmd->out_max_regions = fake.max_regions;
	cmd->out_program_slots = fake.program_slots;
	cmd->out_order = fake.order;
	cmd->out_fit = fake.fit;
	cmd->out_max_handles = fake.max_handles;
	cmd->out_max_batch = fake.max_batch;
	cmd->out_alignment = 128;
	cmd->out_max_alignment = GIB;
	cmd->out_granule = 1 << 20;
	cmd->out_state = fake.state;
	cmd->out_capacity = fake.capacity;
	cmd->out_max_region = fake.fallback[0];
	cmd->out_capabilities = fake.capabilities;
	cmd->out_nr_fallback_sizes = fake.nr_fallback;
	memcpy(cmd->out_fallback_sizes, fake.fallback, sizeof(fake.fallback));
	strcpy(cmd->out_name, "fake");
	if (fake.capabilities & FLEXMEM_CAP_PAGE_TABLES) {
		cmd->out_va_page = fake.va_page;
		cmd->out_va_start = fake.va_start;
		cmd->out_va_length = fake.va_length;
	}
	return 0;
}

static void describe(struct flexmem_domain_info *cmd)
{
	uint32_t i;

	cmd->out_type = cmd->domain && !fake.all_by_default ?
			FLEXMEM_DOMAIN_ON_CHIP : FLEXMEM_DOMAIN_DEVICE;
	cmd->out_granule = cmd->domain ? 1 << 16 : 1 << 20;
	cmd->out_capacity = cmd->domain ? 15 << 20 : fake.capacity;
	cmd->out_set_aside = cmd->domain ? 1 << 20 : 0;
	cmd->out_max_region = cmd->domain ? 15 << 20 : fake.fallback[0];
	cmd->out_nr_sizes = fake.nr_domain_sizes;
	for (i = 0; i < FLEXMEM_MAX_FALLBACK_SIZES; i++)
		cmd->out_sizes[i] = cmd->out_max_region >> i;
}

/* Domain 0 has all regions, unless fake.region_domain says otherwise. */
static int domain(const struct file *file, struct flexmem_domain_info *cmd)
{
	struct flexmem_region_entry entry;
	__u64 *largest;
	uint32_t i;

	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->flags && !cmd->out_regions);
	REQUIRE(!cmd->out_total && !cmd->out_largest_free);
	REQUIRE(!cmd->out_program_total && !cmd->out_tensor_largest);
	REQUIRE(!cmd->out_reserved && !cmd->out_limit && !cmd->out_freed);
	REQUIRE(!cmd->out_memory && !cmd->out_next);
	if (cmd->domain >= fake.nr_domains && cmd->domain != FLEXMEM_DOMAIN_ALL)
		return EINVAL;
	cmd->out_flags = exhausted ? FLEXMEM_REPORT_EXHAUSTED : 0;
	cmd->out_nr_domains = fake.nr_domains;
	if (cmd->domain != FLEXMEM_DOMAIN_ALL)
		describe(cmd);
	else
		cmd->out_capacity = fake.capacity +
			(uint64_t)(fake.nr_domains - 1) * (15 << 20);
	if (cmd->domain == FLEXMEM_DOMAIN_ALL)
		cmd->out_max_region = fake.fallback[0];
	for (i = 0; i < nr_regions; i++) {
		if (cmd->domain != FLEXMEM_DOMAIN_ALL &&
		    regions[i].domain != cmd->domain)
			continue;
		measure(&regions[i], &entry);
		cmd->out_regions++;
		cmd->out_total += entry.total;
		if (regions[i].reserved) {
			cmd->out_reserved += entry.free;
			cmd->out_reserved_total += entry.total;
			continue;
		}
		cmd->out_free += entry.free;
		if (entry.largest_free > cmd->out_largest_free)
			cmd->out_largest_free = entry.largest_free;
		largest = entry.flags & FLEXMEM_REGION_PROGRAM ?
			  &cmd->out_program_largest : &cmd->out_tensor_largest;
		if (entry.largest_free > *largest)
			*largest = entry.largest_free;
		if (largest == &cmd->out_tensor_largest)
			continue;
		cmd->out_program_total += entry.total;
		cmd->out_program_free += entry.free;
	}
	describe_limit(file, cmd);
	cmd->out_freed = fake.freed;
	cmd->out_next = fake.next_region;
	if (cmd->domain == FLEXMEM_DOMAIN_ALL)
		cmd->out_memory = fake.memory;
	return 0;
}

/* An allocation that can be mapped has fake.chunks chunks of whole pages. */
uint64_t chunk_size(const struct block *block)
{
	uint64_t size = block->end - block->start;

	if (fake.chunks < 2 || !(block->flags & FLEXMEM_ALLOC_MAPPABLE))
		return size;
	return (size / fake.chunks + 4095) & ~UINT64_C(4095);
}

static void list_chunks(const struct block *block, uint32_t where,
			struct flexmem_chunk_entry *entry)
{
	uint64_t size = chunk_size(block);
	uint64_t at;

	for (at = block->start; at < block->end; at += size, entry++)
		*entry = (struct flexmem_chunk_entry){
			.address.region_id = region_id(where),
			.address.offset = at,
			.length = block->end - at < size ? block->end - at : size,
			.map_offset = block->flags & FLEXMEM_ALLOC_MAPPABLE ?
				map_offset(where, at) : 0,
			.domain = 0,
		};
}

static int lookup(struct file *file, struct flexmem_lookup *cmd)
{
	struct block *block;
	uint32_t where;

	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->flags && !cmd->out_size);
	block = cmd->handle ? find_block(file, cmd->handle, NULL, &where) :
			      NULL;
	if (!block)
		return ENOENT;
	cmd->out_flags = block->flags | (block->lost ? FLEXMEM_LOOKUP_LOST : 0);
	cmd->out_address.region_id = region_id(where);
	cmd->out_address.offset = block->start;
	cmd->out_size = block->end - block->start;
	cmd->out_count = (uint32_t)((cmd->out_size - 1) / chunk_size(block) + 1);
	if (!cmd->entry_size)
		return 0;
	if (cmd->count < cmd->out_count)
		return EMSGSIZE;
	REQUIRE(cmd->entry_size == sizeof(struct flexmem_chunk_entry));
	list_chunks(block, where, (void *)(uintptr_t)cmd->entries);
	return 0;
}

/*
 * Sets @out_count to the number of regions. Returns true if the caller's array
 * has room for all of them.
 */
static bool room(uint32_t count, uint32_t *out_count, int *err)
{
	*out_count = nr_regions;
	*err = count < nr_regions ? EMSGSIZE : 0;
	if (*err && fake.grow) {
		fake.grow--;
		add_region(fake.fallback[2]);
	}
	return !*err;
}

static int list_segments(struct flexmem_segments *cmd)
{
	struct flexmem_segment_entry *entry = (void *)(uintptr_t)cmd->entries;
	uint32_t i;
	int err;

	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->flags && !cmd->__reserved);
	REQUIRE(cmd->entry_size == sizeof(*entry) && !cmd->out_count);
	REQUIRE(!cmd->count == !cmd->entries && !cmd->out_generation);
	cmd->out_generation = generation;
	if (!room(cmd->count, &cmd->out_count, &err))
		return err;
	cmd->out_generation = generation;
	for (i = 0; i < nr_regions; i++) {
		entry[i] = (struct flexmem_segment_entry){
			.slot = i,
			.flags = regions[i].flags,
			.region_id = region_id(i),
			.length = regions[i].total,
		};
	}
	return 0;
}

/*
 * Releases only empty regions at the end of the list, which is enough for the
 * tests.
 */
static int trim(struct flexmem_trim *cmd, int injected)
{
	REQUIRE(cmd->size == sizeof(*cmd) && !cmd->__reserved);
	REQUIRE(!cmd->flags && !cmd->out_regions && !cmd->out_bytes);
	while (nr_regions && !regions[nr_regions - 1].blocks->next &&
	       !regions[nr_regions - 1].blocks->handle) {
		if (injected && cmd->out_regions == fake.trim_fails_after)
			return injected;
		cmd->out_regions++;
		cmd->out_bytes += regions[nr_regions - 1].total;
		free_region(&regions[--nr_regions]);
		generation++;
	}
	exhausted = false;
	return injected;
}

int dispatch(struct file *file, unsigned int number, void *arg, int injected)
{
	if (number == FLEXMEM_CMD_ALLOC_BATCH)
		return batch(file, arg, false, injected);
	if (number == FLEXMEM_CMD_FREE_BATCH)
		return batch(file, arg, true, injected);
	if (number == FLEXMEM_CMD_TRIM)
		return trim(arg, injected);
	if (number == FLEXMEM_CMD_READ || number == FLEXMEM_CMD_WRITE)
		return copy(file, arg, number == FLEXMEM_CMD_WRITE, injected);
	if (number == FLEXMEM_CMD_COPY)
		return copy_range(file, arg, injected);
	if (injected)
		return injected;
	switch (number) {
	case FLEXMEM_CMD_INFO:
		return info(file, arg);
	case FLEXMEM_CMD_ALLOC:
		return alloc_one(file, arg);
	case FLEXMEM_CMD_FREE:
		return free_one(file, arg);
	case FLEXMEM_CMD_LOOKUP:
		return lookup(file, arg);
	case FLEXMEM_CMD_SEGMENTS:
		return list_segments(arg);
	case FLEXMEM_CMD_RESIZE:
		return resize(file, arg);
	case FLEXMEM_CMD_DOMAIN:
		return domain(file, arg);
	case FLEXMEM_CMD_VA_RESERVE:
	case FLEXMEM_CMD_VA_FREE:
	case FLEXMEM_CMD_VA_BIND:
	case FLEXMEM_CMD_VA_UNBIND:
	case FLEXMEM_CMD_VA_LOOKUP:
		return space_command(file, number, arg);
	}
	return owner_command(file, number, arg);
}
