// SPDX-License-Identifier: GPL-2.0
/* The commands of the ABI, member by member. */
#include "fuzz.h"

#define FIELD(type, member, ...)					\
	{ offsetof(struct flexmem_##type, member),			\
	  sizeof(((struct flexmem_##type *)0)->member), __VA_ARGS__ }
#define COMMAND(cmd, type, w) \
	.name = #cmd, .nr = FLEXMEM_CMD_##cmd, \
	.size = sizeof(struct flexmem_##type), .weight = w
#define HEAD(type, known) \
	FIELD(type, size, SIZE, 0), FIELD(type, flags, FLAGS, known)

#define BATCH_FIELDS							\
	HEAD(batch, 0), FIELD(batch, entry_size, ENTRY_SIZE, 0),	\
	FIELD(batch, count, COUNT, 0),					\
	FIELD(batch, entries, ENTRIES, 0),				\
	FIELD(batch, __reserved, RESERVED, 0)

#define COPY_FIELDS							\
	HEAD(rw, 0), FIELD(rw, handle, HANDLE, 0),			\
	FIELD(rw, __reserved, RESERVED, 0),				\
	FIELD(rw, offset, OFFSET, 0), FIELD(rw, length, LENGTH, 0),	\
	FIELD(rw, data, DATA, 0)

const struct command commands[] = {
	{ COMMAND(INFO, info, 1), .field = { HEAD(info, 0) } },
	{ COMMAND(ALLOC, alloc, 16), .field = {
		HEAD(alloc, 0x1f), FIELD(alloc, length, LENGTH, 0),
		FIELD(alloc, alignment, ALIGNMENT, 0),
		FIELD(alloc, policy, CHOICE, FLEXMEM_POLICY_INTERLEAVE),
		FIELD(alloc, domains, DOMAINS, 0) } },
	{ COMMAND(FREE, free, 10), .field = {
		HEAD(free, 1), FIELD(free, handle, HANDLE, 0),
		FIELD(free, address, ADDRESS, 0) } },
	{ COMMAND(ALLOC_BATCH, batch, 4), .entries = ALLOC_ENTRIES,
	  .field = { BATCH_FIELDS } },
	{ COMMAND(FREE_BATCH, batch, 4), .entries = FREE_ENTRIES,
	  .field = { BATCH_FIELDS } },
	{ COMMAND(LOOKUP, lookup, 3), .field = {
		HEAD(lookup, 0), FIELD(lookup, handle, HANDLE, 0),
		FIELD(lookup, entry_size, ENTRY_SIZE,
		      sizeof(struct flexmem_chunk_entry)),
		FIELD(lookup, count, COUNT, 0),
		FIELD(lookup, entries, ENTRIES, 0),
		FIELD(lookup, __reserved, RESERVED, 0) } },
	{ COMMAND(SEGMENTS, segments, 2), .field = {
		HEAD(segments, 0), FIELD(segments, entry_size, ENTRY_SIZE,
					 sizeof(struct flexmem_segment_entry)),
		FIELD(segments, count, COUNT, 0),
		FIELD(segments, entries, ENTRIES, 0),
		FIELD(segments, __reserved, RESERVED, 0) } },
	{ COMMAND(TRIM, trim, 3), .field = {
		HEAD(trim, 0), FIELD(trim, __reserved, RESERVED, 0) } },
	{ COMMAND(MAP, map, 6), .field = {
		HEAD(map, 0), FIELD(map, handle, HANDLE, 0),
		FIELD(map, __reserved, RESERVED, 0) } },
	{ COMMAND(READ, rw, 6), .field = { COPY_FIELDS } },
	{ COMMAND(WRITE, rw, 6), .field = { COPY_FIELDS } },
	{ COMMAND(COPY, copy, 6), .field = {
		HEAD(copy, 0), FIELD(copy, to, HANDLE, 0),
		FIELD(copy, from, HANDLE, 1),
		FIELD(copy, to_offset, UNITS, 0),
		FIELD(copy, from_offset, UNITS, 0),
		FIELD(copy, length, UNITS, 1) } },
	{ COMMAND(SNAPSHOT, snapshot, 6), .field = {
		HEAD(snapshot, 1),
		FIELD(snapshot, region_entry_size, ENTRY_SIZE,
		      sizeof(struct flexmem_region_entry)),
		FIELD(snapshot, region_count, COUNT, 0),
		FIELD(snapshot, regions, ENTRIES, 0),
		FIELD(snapshot, owner_entry_size, ENTRY_SIZE,
		      sizeof(struct flexmem_owner_entry)),
		FIELD(snapshot, owner_count, COUNT, 0),
		FIELD(snapshot, owners, ENTRIES, 0) } },
	{ COMMAND(SET_LIMIT, resource_limit, 3), .field = {
		HEAD(resource_limit, 1), FIELD(resource_limit, scope, CHOICE, 0),
		FIELD(resource_limit, resource, CHOICE,
		      FLEXMEM_NR_RESOURCES - 1),
		FIELD(resource_limit, cgroup, ID, 0),
		FIELD(resource_limit, limit, LIMIT, 0) } },
	{ COMMAND(RESIZE, resize, 8), .field = {
		HEAD(resize, 0), FIELD(resize, handle, HANDLE, 0),
		FIELD(resize, length, LENGTH, 0) } },
	{ COMMAND(DOMAIN, domain_info, 1), .field = {
		HEAD(domain_info, 0), FIELD(domain_info, domain, DOMAIN, 0) } },
	{ COMMAND(RESERVE, reserve, 2), .field = {
		HEAD(reserve, 0), FIELD(reserve, cgroup, CGROUP, 0),
		FIELD(reserve, length, REGION_SIZE, 0),
		FIELD(reserve, count, CHOICE, 2) } },
	{ COMMAND(VA_RESERVE, va_reserve, 4), .field = {
		HEAD(va_reserve, 0), FIELD(va_reserve, length, LENGTH, 0) } },
	{ COMMAND(VA_FREE, va_free, 2), .field = {
		HEAD(va_free, 0), FIELD(va_free, address, VA, 0) } },
	{ COMMAND(VA_BIND, va_bind, 10), .field = {
		HEAD(va_bind, 0), FIELD(va_bind, handle, HANDLE, 0),
		FIELD(va_bind, access, CHOICE, 7),
		FIELD(va_bind, address, VA, 0),
		FIELD(va_bind, offset, VA_PAGES, 0),
		FIELD(va_bind, length, VA_PAGES, 1) } },
	{ COMMAND(VA_UNBIND, va_unbind, 6), .field = {
		HEAD(va_unbind, 0), FIELD(va_unbind, address, VA, 0) } },
	{ COMMAND(VA_LOOKUP, va_lookup, 6), .field = {
		HEAD(va_lookup, 0), FIELD(va_lookup, address, VA, 0) } },
};

const unsigned int nr_commands = ARRAY_SIZE(commands);

const struct command *entry_command(enum entry entries)
{
	switch (entries) {
	case ALLOC_ENTRIES:
		return &commands[FLEXMEM_CMD_ALLOC];
	case FREE_ENTRIES:
		return &commands[FLEXMEM_CMD_FREE];
	default:
		return NULL;
	}
}
