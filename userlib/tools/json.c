// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Reports as JSON. flexmem(1) describes the keys, which never change. */
#define _GNU_SOURCE
#include "tool.h"

#include <stdlib.h>
#include <string.h>

/*
 * Significant digits of a printed ratio or time. Further digits are rounding
 * noise.
 */
#define DIGITS 6

json_t *json_checked(json_t *value)
{
	if (value)
		return value;
	grow(NULL, SIZE_MAX, 2);
	return NULL;
}

void json_add(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, json_checked(value)))
		json_checked(NULL);
}

json_t *json_number(uint64_t number)
{
	/* jansson has only signed numbers: larger values become INT64_MAX. */
	if (number > INT64_MAX)
		number = INT64_MAX;
	return json_checked(json_integer((json_int_t)number));
}

json_t *json_text(const char *text)
{
	char *escaped = escaped_text(text);
	json_t *value = json_checked(json_string(escaped));

	free(escaped);
	return value;
}

void json_print(struct tool *tool, json_t *value)
{
	if (tool->reports) {
		if (json_array_append_new(tool->reports, value))
			json_checked(NULL);
		return;
	}
	json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS));
	putchar('\n');
	tool->reported = true;
	json_decref(value);
}

size_t capability_names(uint64_t capabilities, const char *names[CAPABILITIES])
{
	static const struct {
		uint64_t bit;
		const char *name;
	} known[CAPABILITIES] = {
		{ FLEXMEM_CAN_SCRUB, "scrub" },
		{ FLEXMEM_CAN_MAP, "map" },
		{ FLEXMEM_CAN_RW, "rw" },
		{ FLEXMEM_CAN_COPY, "copy" },
		{ FLEXMEM_CAN_PAGE_TABLES, "page-tables" },
	};
	size_t count = 0;
	size_t i;

	for (i = 0; i < CAPABILITIES; i++) {
		if (capabilities & known[i].bit)
			names[count++] = known[i].name;
	}
	return count;
}

const char *account_kind_name(uint32_t kind)
{
	switch (kind) {
	case FLEXMEM_ACCOUNT_CLIENT:
		return "client";
	case FLEXMEM_ACCOUNT_CGROUP:
		return "cgroup";
	default:
		return "unknown";
	}
}

bool process_name(uint32_t pid, char name[PROCESS_NAME_MAX])
{
	char path[32];
	size_t length;
	FILE *file;

	if (!pid)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	length = fread(name, 1, PROCESS_NAME_MAX - 1, file);
	fclose(file);
	/* The kernel adds a line feed. The name itself may contain others. */
	if (!length)
		return false;
	name[length - 1] = '\0';
	return true;
}

const char *charge_name(uint32_t charge)
{
	static const char *const names[FLEXMEM_CHARGES] = {
		[FLEXMEM_CHARGE_BYTES] = "bytes",
		[FLEXMEM_CHARGE_REGIONS] = "regions",
		[FLEXMEM_CHARGE_HANDLES] = "handles",
		[FLEXMEM_CHARGE_FILES] = "files",
	};

	return names[charge];
}

static const char *const conditions[] = {
	[FLEXMEM_USABLE] = "usable",
	[FLEXMEM_UNRESPONSIVE] = "unresponsive",
	[FLEXMEM_SUSPENDED] = "suspended",
	[FLEXMEM_WEDGED] = "wedged",
	[FLEXMEM_REMOVED] = "removed",
};

/* Names of the driver's strategies. A new strategy needs a row here. */
static const char *const strategies[] = {
	[FLEXMEM_FIRST_FIT] = "first_fit",
	[FLEXMEM_BEST_FIT] = "best_fit",
};

static const char *const orders[] = {
	[FLEXMEM_LOAD_BALANCE] = "load_balance",
	[FLEXMEM_FILL_FIRST] = "fill_first",
};

static const char *const acquisitions[] = {
	[FLEXMEM_LAZY] = "lazy",
	[FLEXMEM_PREALLOC] = "prealloc",
};

/* The first name of a memory is shown. Users can type the others too. */
static const struct {
	const char *name;
	uint32_t memory;
} memories[] = {
	{ "device", FLEXMEM_MEMORY_DEVICE },
	{ "on-chip", FLEXMEM_MEMORY_ON_CHIP },
	{ "host-visible", FLEXMEM_MEMORY_HOST_VISIBLE },
	{ "hbm", FLEXMEM_MEMORY_DEVICE },
	{ "dimm", FLEXMEM_MEMORY_DEVICE },
	{ "tcm", FLEXMEM_MEMORY_ON_CHIP },
	{ "host", FLEXMEM_MEMORY_HOST_VISIBLE },
};

#define COUNT(names) (sizeof(names) / sizeof((names)[0]))

const char *condition_name(uint32_t condition)
{
	return condition < COUNT(conditions) ? conditions[condition] : "unknown";
}

const char *strategy_name(uint32_t strategy)
{
	return strategy < COUNT(strategies) ? strategies[strategy] : "unknown";
}

const char *order_name(uint32_t order)
{
	return order < COUNT(orders) && orders[order] ? orders[order] :
							"unknown";
}

const char *acquisition_name(uint32_t acquisition)
{
	return acquisition < COUNT(acquisitions) ? acquisitions[acquisition] :
						   "unknown";
}

const char *memory_name(uint32_t memory)
{
	size_t i;

	for (i = 0; i < COUNT(memories); i++)
		if (memories[i].memory == memory)
			return memories[i].name;
	return "unknown";
}

bool find_memory(const char *name, uint64_t *memory)
{
	size_t i;

	for (i = 0; i < COUNT(memories); i++) {
		if (!strcmp(memories[i].name, name)) {
			*memory = memories[i].memory;
			return true;
		}
	}
	return false;
}

static bool is_among(const char *name, const char *const *names, size_t count)
{
	while (count--)
		if (names[count] && !strcmp(name, names[count]))
			return true;
	return false;
}

bool is_strategy(const char *name)
{
	return is_among(name, strategies, COUNT(strategies));
}

bool is_order(const char *name)
{
	return is_among(name, orders, COUNT(orders));
}

json_t *json_device(const struct flexmem_properties *properties)
{
	json_t *object = json_checked(json_object());
	json_t *sizes = json_checked(json_array());
	json_t *able = json_checked(json_array());
	const char *names[CAPABILITIES];
	json_t *size;
	size_t count;
	uint32_t i;

	json_add(object, "name", json_text(properties->name));
	json_add(object, "function",
		 json_string(properties->function == FLEXMEM_PF ? "PF" : "VF"));
	json_add(object, "state",
		 json_string(condition_name(properties->condition)));
	json_add(object, "strategy",
		 json_string(strategy_name(properties->strategy)));
	json_add(object, "order", json_string(order_name(properties->order)));
	json_add(object, "acquire",
		 json_string(acquisition_name(properties->acquisition)));
	json_add(object, "slots", json_number(properties->slots));
	json_add(object, "max_regions", json_number(properties->max_regions));
	json_add(object, "program_slots",
		 json_number(properties->program_slots));
	json_add(object, "max_handles", json_number(properties->max_handles));
	json_add(object, "max_batch", json_number(properties->max_batch));
	json_add(object, "alignment", json_number(properties->alignment));
	json_add(object, "max_alignment",
		 json_number(properties->max_alignment));
	json_add(object, "granule", json_number(properties->granule));
	json_add(object, "capacity", json_number(properties->capacity));
	json_add(object, "max_region", json_number(properties->max_region));
	json_add(object, "capabilities", json_number(properties->capabilities));
	count = capability_names(properties->capabilities, names);
	for (i = 0; i < count; i++)
		json_array_append_new(able, json_checked(json_string(names[i])));
	json_add(object, "capability_names", able);
	for (i = 0; i < properties->fallback_count; i++) {
		size = json_number(properties->fallback_sizes[i]);
		json_array_append_new(sizes, size);
	}
	json_add(object, "fallback_sizes", sizes);
	json_add(object, "space_page", json_number(properties->space_page));
	json_add(object, "space_start", json_number(properties->space_start));
	json_add(object, "space_length",
		 json_number(properties->space_length));
	return object;
}

static json_t *json_domain(const struct flexmem_domain_state *domain)
{
	json_t *object = json_checked(json_object());
	json_t *sizes = json_checked(json_array());
	uint32_t i;

	json_add(object, "id", json_number(domain->id));
	json_add(object, "memory", json_string(memory_name(domain->memory)));
	json_add(object, "granule", json_number(domain->granule));
	json_add(object, "capacity", json_number(domain->capacity));
	json_add(object, "set_aside", json_number(domain->set_aside));
	json_add(object, "max_region", json_number(domain->max_region));
	for (i = 0; i < domain->size_count; i++)
		json_array_append_new(sizes, json_number(domain->sizes[i]));
	json_add(object, "sizes", sizes);
	json_add(object, "regions", json_number(domain->regions));
	json_add(object, "total", json_number(domain->total));
	json_add(object, "free", json_number(domain->free));
	json_add(object, "largest_free", json_number(domain->largest_free));
	json_add(object, "program_total", json_number(domain->program_total));
	json_add(object, "program_free", json_number(domain->program_free));
	json_add(object, "program_largest",
		 json_number(domain->program_largest));
	json_add(object, "tensor_largest", json_number(domain->tensor_largest));
	json_add(object, "reserved", json_number(domain->reserved));
	json_add(object, "reserved_total", json_number(domain->reserved_total));
	json_add(object, "exhausted",
		 json_boolean(domain->flags & FLEXMEM_EXHAUSTED));
	json_add(object, "program_exhausted",
		 json_boolean(domain->flags & FLEXMEM_PROGRAM_EXHAUSTED));
	return object;
}

json_t *json_domains(const struct flexmem_domain_state *domains)
{
	json_t *array = json_checked(json_array());
	uint32_t i;

	for (i = 0; i < domains->count && i < FLEXMEM_DOMAINS; i++)
		json_array_append_new(array, json_domain(&domains[i]));
	return array;
}

static json_t *figure(bool hidden, uint64_t number)
{
	return hidden ? json_checked(json_null()) : json_number(number);
}

json_t *json_statistics(const struct flexmem_statistics *statistics)
{
	const bool hidden = statistics->flags & FLEXMEM_HIDDEN;
	json_t *object = json_checked(json_object());

	json_add(object, "exhausted",
		 json_boolean(statistics->flags & FLEXMEM_EXHAUSTED));
	json_add(object, "program_exhausted",
		 json_boolean(statistics->flags & FLEXMEM_PROGRAM_EXHAUSTED));
	json_add(object, "regions", json_number(statistics->regions));
	json_add(object, "total", json_number(statistics->total));
	json_add(object, "free", json_number(statistics->free));
	json_add(object, "used", json_number(statistics->used));
	json_add(object, "used_program", json_number(statistics->used_program));
	json_add(object, "allocated", figure(hidden, statistics->allocated));
	json_add(object, "allocs", figure(hidden, statistics->allocs));
	json_add(object, "frees", figure(hidden, statistics->frees));
	json_add(object, "failures", figure(hidden, statistics->failures));
	json_add(object, "generation", json_number(statistics->generation));
	json_add(object, "own_used", json_number(statistics->own_used));
	json_add(object, "own_peak", json_number(statistics->own_peak));
	json_add(object, "own_handles", json_number(statistics->own_handles));
	return object;
}

void json_add_usage(json_t *object, const struct flexmem_usage *usage)
{
	json_add(object, "owned", json_number(usage->owned));
	json_add(object, "orphaned", json_number(usage->orphaned));
	json_add(object, "reserved", json_number(usage->reserved));
	json_add(object, "quarantined", json_number(usage->quarantined));
	json_add(object, "scrubbed", json_number(usage->scrubbed));
	json_add(object, "clients", json_number(usage->clients));
	json_add(object, "resets", json_number(usage->resets));
	json_add(object, "timeouts", json_number(usage->timeouts));
}

json_t *json_limit(uint64_t limit)
{
	return limit == FLEXMEM_UNLIMITED ? json_checked(json_null()) :
					    json_number(limit);
}

json_t *json_path(const char *path)
{
	return path ? json_text(path) : json_null();
}

/* Only what has happened. */
static json_t *json_failures(const struct flexmem_account_state *account)
{
	json_t *object = json_checked(json_object());
	uint32_t limit;

	for (limit = 0; limit <= FLEXMEM_LIMIT_RESERVED; limit++) {
		if (account->failures[limit])
			json_add(object, flexmem_limit_name(limit),
				 json_number(account->failures[limit]));
	}
	return object;
}

json_t *json_accounts(const struct flexmem_account_state *accounts,
		      size_t count, const struct cgroup_names *names)
{
	json_t *array = json_checked(json_array());
	const struct flexmem_account_state *one;
	char process[PROCESS_NAME_MAX];
	json_t *object;
	json_t *limit;
	uint32_t j;
	size_t i;

	for (i = 0; i < count; i++) {
		one = &accounts[i];
		object = json_checked(json_object());
		json_add(object, "kind",
			 json_string(account_kind_name(one->kind)));
		json_add(object, "id", json_number(one->id));
		json_add(object, "path",
			 json_path(one->kind == FLEXMEM_ACCOUNT_CGROUP ?
				   cgroup_names_get(names, one->id) : NULL));
		json_add(object, "parent",
			 one->parent ? json_number(one->parent) : json_null());
		json_add(object, "uid", json_number(one->uid));
		json_add(object, "pid", json_number(one->pid));
		json_add(object, "process",
			 process_name(one->pid, process) ?
			 json_text(process) : json_null());
		json_add(object, "bytes", json_number(one->bytes));
		json_add(object, "orphaned", json_number(one->orphaned));
		json_add(object, "leaving", json_number(one->leaving));
		json_add(object, "waits_ms", json_number(one->waits_ms));
		json_add(object, "peak", json_number(one->peak));
		json_add(object, "slots", json_number(one->slots));
		json_add(object, "handles", json_number(one->handles));
		json_add(object, "reservation", json_number(one->reservation));
		json_add(object, "reserved", json_number(one->reserved));
		json_add(object, "files", json_number(one->files));
		json_add(object, "removed", json_boolean(one->removed));
		limit = json_checked(json_object());
		for (j = 0; j < FLEXMEM_CHARGES; j++)
			json_add(limit, charge_name(j),
				 json_limit(one->limit[j]));
		json_add(object, "limit", limit);
		json_add(object, "failures", json_failures(one));
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *json_region(const struct flexmem_region_state *region)
{
	const bool hidden = region->flags & FLEXMEM_HIDDEN;
	json_t *object = json_checked(json_object());

	json_add(object, "slot", json_number(region->slot));
	json_add(object, "region_id", json_number(region->region_id));
	json_add(object, "program",
		 json_boolean(region->flags & FLEXMEM_PROGRAM));
	json_add(object, "size", json_number(region->total));
	json_add(object, "used", figure(hidden, region->total - region->free));
	json_add(object, "free", figure(hidden, region->free));
	json_add(object, "largest_free", figure(hidden, region->largest_free));
	json_add(object, "allocated_blocks",
		 figure(hidden, region->allocated_blocks));
	json_add(object, "free_blocks", figure(hidden, region->free_blocks));
	json_add(object, "sequence", figure(hidden, region->sequence));
	json_add(object, "domain", json_number(region->domain));
	return object;
}

json_t *json_regions(const struct flexmem_region_state *regions, size_t count)
{
	json_t *array = json_checked(json_array());
	size_t i;

	for (i = 0; i < count; i++)
		json_array_append_new(array, json_region(&regions[i]));
	return array;
}

json_t *json_segments(const struct flexmem_segment *segments, size_t count)
{
	json_t *array = json_checked(json_array());
	json_t *object;
	size_t i;

	for (i = 0; i < count; i++) {
		object = json_checked(json_object());
		json_add(object, "slot", json_number(segments[i].slot));
		json_add(object, "region_id",
			 json_number(segments[i].region_id));
		json_add(object, "program",
			 json_boolean(segments[i].flags & FLEXMEM_PROGRAM));
		json_add(object, "length", json_number(segments[i].length));
		json_array_append_new(array, object);
	}
	return array;
}

static void add_failure(json_t *object, const struct flexmem_failure *failure)
{
	json_add(object, "limit",
		 json_string(flexmem_limit_name(failure->limit)));
	json_add(object, "asked", json_number(failure->asked));
	json_add(object, "total_free", json_number(failure->total_free));
	json_add(object, "largest_free", json_number(failure->largest_free));
	json_add(object, "max_region", json_number(failure->max_region));
	json_add(object, "own_used", json_number(failure->own_used));
	json_add(object, "leaving", json_number(failure->leaving));
	if (failure->region_limit)
		json_add(object, "region_limit",
			 json_string(flexmem_limit_name(failure->region_limit)));
	if (failure->limit != FLEXMEM_LIMIT_CGROUP &&
	    failure->limit != FLEXMEM_LIMIT_CGROUP_REGIONS)
		return;
	json_add(object, "charge",
		 failure->quota_left == FLEXMEM_UNLIMITED ||
		 failure->charge >= FLEXMEM_CHARGES ? json_null() :
		 json_string(charge_name(failure->charge)));
	json_add(object, "quota", json_limit(failure->quota));
	json_add(object, "quota_used", json_number(failure->quota_used));
	json_add(object, "quota_own", json_number(failure->quota_own));
	json_add(object, "quota_left", json_limit(failure->quota_left));
	json_add(object, "quota_shared",
		 failure->quota_left == FLEXMEM_UNLIMITED ? json_null() :
		 json_boolean(failure->quota_flags & FLEXMEM_QUOTA_SHARED));
	json_add(object, "quota_cgroup", failure->quota_cgroup ?
		 json_number(failure->quota_cgroup) : json_null());
}

json_t *json_error(int error, const char *text,
		   const struct flexmem_failure *failure)
{
	json_t *object = json_checked(json_object());
	const char *name = NULL;
	char own[TOOL_TEXT_MAX];

	if (!text) {
		flexmem_error_text(error, failure,
				   failure ? sizeof(*failure) : 0, own,
				   sizeof(own));
		text = own;
	}
	/* Numbers below -4095 are no errno, and INT_MIN cannot be negated. */
	if (error >= -4095)
		name = strerrorname_np(-error);
	json_add(object, "errno", json_integer(error));
	json_add(object, "name", json_string(name ? name : "unknown"));
	json_add(object, "text", json_text(text));
	if (failure && failure->limit != FLEXMEM_LIMIT_NONE)
		add_failure(object, failure);
	return object;
}

void json_add_allocation(json_t *object,
			 const struct flexmem_allocated *allocation)
{
	json_add(object, "handle", json_number(allocation->handle));
	json_add(object, "region_id",
		 json_number(allocation->address.region_id));
	json_add(object, "offset", json_number(allocation->address.offset));
	json_add(object, "size", json_number(allocation->size));
	json_add(object, "program",
		 json_boolean(allocation->flags & FLEXMEM_PROGRAM));
	json_add(object, "mappable",
		 json_boolean(allocation->flags & FLEXMEM_MAPPABLE));
	json_add(object, "zeroed",
		 json_boolean(allocation->flags & FLEXMEM_ZEROED));
}

json_t *json_pattern(const struct pattern_job *job, bool checked)
{
	json_t *object = json_checked(json_object());

	json_add(object, "seed", json_number(job->seed));
	json_add(object, "by",
		 json_string(job->way == PATTERN_MAP ? "map" : "copy"));
	if (checked) {
		json_add(object, "bad", json_number(job->bad));
		json_add(object, "first_bad",
			 job->bad ? json_number(job->first_bad) : json_null());
	}
	return object;
}
