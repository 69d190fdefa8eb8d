// SPDX-License-Identifier: GPL-2.0
/*
 * What is looked up in the region table, without asking the device: which region
 * an address is in, how large a region could be, and whether all is well.
 */

#include <linux/minmax.h>
#include <linux/nospec.h>

#include "compat.h"
#include "table.h"

/**
 * flexmem_table_serial - which region an address is in
 * @table: region table
 * @region_id: as in an address
 *
 * A region that was lost is in no address any more, though another may have
 * got its id.
 *
 * Return: the serial number of the region, or 0.
 */
u64 flexmem_table_serial(struct flexmem_table *table, u64 region_id)
{
	struct flexmem_region *region;
	unsigned int slot;
	u64 serial = 0;

	rcu_read_lock();
	for (slot = 0; !serial && slot < table->slots.nr; slot++) {
		region = rcu_dereference(table->region[slot]);
		if (region && region->id == region_id)
			serial = region->serial;
	}
	rcu_read_unlock();
	return serial;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_serial);

/**
 * flexmem_table_serial_at - which region is in a slot
 * @table: region table
 * @slot: any number
 *
 * Return: the serial number of the region, or 0.
 */
u64 flexmem_table_serial_at(struct flexmem_table *table, unsigned int slot)
{
	struct flexmem_region *region;
	u64 serial = 0;

	if (slot >= table->slots.nr)
		return 0;
	slot = array_index_nospec(slot, FLEXMEM_MAX_SLOTS);
	rcu_read_lock();
	region = rcu_dereference(table->region[slot]);
	if (region)
		serial = region->serial;
	rcu_read_unlock();
	return serial;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_serial_at);

/**
 * flexmem_table_max_region - the largest region there could be
 * @table: region table
 *
 * Return: bytes; more than that can never be allocated in one piece (D5).
 */
u64 flexmem_table_max_region(struct flexmem_table *table)
{
	u64 largest = flexmem_domain_largest(&table->domain);
	struct flexmem_region *region;
	unsigned int i;

	/* Capacity may have shrunk since a region was acquired. */
	rcu_read_lock();
	for (i = 0; i < table->slots.nr; i++) {
		region = rcu_dereference(table->region[i]);
		if (region)
			largest = max(largest, region->mem.size);
	}
	rcu_read_unlock();
	return largest;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_max_region);

/* What invariant 5 says of one slot: it and the table agree. */
static const char *check_slot(struct flexmem_table *table, unsigned int slot)
{
	const struct flexmem_segment_entry *entry = &table->slots.entry[slot];
	struct flexmem_region *region = flexmem_region_at(table, slot);

	if (test_bit(slot, table->slots.filled) != !!region)
		return "slot filled without a region, or the other way round";
	if (!region)
		return NULL;
	if (region->slot != slot || entry->slot != slot ||
	    entry->region_id != region->id ||
	    entry->length != region->mem.size)
		return "slot and region do not agree";
	return flexmem_region_check(region);
}

/**
 * flexmem_table_generation - the generation of the segment table
 * @table: region table
 *
 * Return: the generation.
 */
u64 flexmem_table_generation(struct flexmem_table *table)
{
	return flexmem_slots_generation(&table->slots);
}

/**
 * flexmem_table_segments - the segment table as a dispatch sees it
 * @table: region table
 * @entries: room for FLEXMEM_MAX_SLOTS entries
 * @generation: receives the generation they are of
 *
 * Return: how many entries are filled in, in the order of their slots.
 */
unsigned int flexmem_table_segments(struct flexmem_table *table,
				    struct flexmem_segment_entry *entries,
				    u64 *generation)
{
	return flexmem_slots_read(&table->slots, entries, generation);
}

/**
 * flexmem_table_check - check every invariant
 * @table: region table
 *
 * Context: may sleep. For tests.
 * Return: NULL, or what is wrong.
 */
const char *flexmem_table_check(struct flexmem_table *table)
{
	const char *wrong = NULL;
	unsigned int slot;

	mutex_lock(&table->acquire_lock);
	for (slot = 0; !wrong && slot < table->slots.nr; slot++)
		wrong = check_slot(table, slot);
	mutex_unlock(&table->acquire_lock);
	if (!wrong)
		wrong = flexmem_accounts_check(&table->accounts);
	return wrong;
}
EXPORT_SYMBOL_IF_KUNIT(flexmem_table_check);
