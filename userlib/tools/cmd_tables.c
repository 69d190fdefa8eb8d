// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem regions, segments. */
#include "tool.h"
#include "policy.h"
#include "render.h"

#include <inttypes.h>

static int ask_is_pf(const struct tool *tool, bool *is_pf)
{
	struct flexmem_properties properties;
	int err;

	err = flexmem_device_properties(tool->device, &properties,
					sizeof(properties));
	if (!err)
		*is_pf = properties.function == FLEXMEM_PF;
	return err;
}

/* Columns of regions --by-domain without the last, "reserved". */
#define COLUMNS 8

/* @reserved: free bytes that others have reserved; not in @free_bytes. */
static void add_bytes(struct table *table, uint64_t total, uint64_t reserved,
		      uint64_t free_bytes, uint64_t largest)
{
	uint64_t used = total - free_bytes - reserved;
	char text[FMLIB_HUMAN_MAX];

	table_add(table, "%s", fmlib_human(total, text));
	table_add(table, "%s", fmlib_human(used, text));
	table_add(table, "%s", fmlib_human(free_bytes, text));
	table_add(table, "%s", fmlib_human(largest, text));
	if (table->columns > COLUMNS)
		table_add(table, "%s", fmlib_human(reserved, text));
}

/*
 * Adds a row for the part of a domain that only programs can use. None of it is
 * ever reserved.
 */
static void add_programs(struct table *table,
			 const struct flexmem_domain_state *domain)
{
	table_add(table, "%s", "");
	table_add(table, "programs");
	table_add(table, "%s", "");
	table_add(table, "%s", "");
	add_bytes(table, domain->program_total, 0, domain->program_free,
		  domain->program_largest);
}

static bool any_reserved(const struct flexmem_domain_state *domains)
{
	uint32_t i;

	for (i = 0; i < domains->count && i < FLEXMEM_DOMAINS; i++)
		if (domains[i].reserved)
			return true;
	return false;
}

/*
 * Most devices have no reservations. Their table has no column for these, so
 * that it fits into 80 columns.
 */
static void print_by_domain(const struct flexmem_domain_state *domains)
{
	static const char *const headings[] = {
		"domain", "<memory", "capacity", "regions", "size", "used",
		"free", "largest free", "reserved",
	};
	struct table table = {
		.headings = headings,
		.columns = any_reserved(domains) ? COLUMNS + 1 : COLUMNS,
	};
	const struct flexmem_domain_state *domain;
	char text[FMLIB_HUMAN_MAX];
	uint32_t i;

	for (i = 0; i < domains->count && i < FLEXMEM_DOMAINS; i++) {
		domain = &domains[i];
		table_add(&table, "%u", domain->id);
		table_add(&table, "%s", memory_name(domain->memory));
		table_add(&table, "%s", fmlib_human(domain->capacity, text));
		table_add(&table, "%u", domain->regions);
		add_bytes(&table, domain->total, domain->reserved,
			  domain->free, domain->largest_free);
		if (domain->program_total)
			add_programs(&table, domain);
	}
	table_print(&table, stdout, render_width(stdout));
	table_clear(&table);
}

static enum tool_status regions_by_domain(struct tool *tool)
{
	struct flexmem_domain_state domains[FLEXMEM_DOMAINS];
	json_t *object;
	int err;

	err = read_domains(tool->device, domains);
	if (err)
		return tool_error(tool, err, NULL, "domains");
	if (!tool->json) {
		print_by_domain(domains);
		return TOOL_OK;
	}
	object = json_checked(json_object());
	json_add(object, "domains", json_domains(domains));
	json_print(tool, object);
	return TOOL_OK;
}

static enum tool_status all_regions(struct tool *tool)
{
	struct flexmem_region_state *regions = NULL;
	unsigned int width = render_width(stdout);
	json_t *object;
	size_t count;
	bool is_pf;
	int err;

	err = ask_is_pf(tool, &is_pf);
	if (!err)
		err = flexmem_device_regions(tool->device, &regions,
					     sizeof(*regions), &count);
	if (err)
		return tool_error(tool, err, NULL, "regions");
	if (tool->json) {
		object = json_checked(json_object());
		json_add(object, "regions", json_regions(regions, count));
		json_print(tool, object);
	} else if (!count) {
		puts("no regions");
	} else {
		render_region_table(stdout, width, is_pf, regions, count);
		putchar('\n');
		render_regions(stdout, width, regions, count);
	}
	flexmem_regions_free(regions);
	return TOOL_OK;
}

enum tool_status cmd_regions(struct tool *tool, int argc, char **argv)
{
	static const struct option options[] = {
		{ "by-domain", no_argument, NULL, 'b' },
		REPORT_OPTIONS
	};
	bool by_domain = false;
	int option;

	while ((option = next_option(tool, argc, argv, options)) !=
	       OPTION_END) {
		if (option != 'b')
			return option_status(option);
		by_domain = true;
	}
	if (optind < argc)
		return usage_error(tool, "unexpected argument '%s'",
				   argv[optind]);
	return tool_report(tool, by_domain ? regions_by_domain : all_regions);
}

static void print_segments(bool is_pf, const struct flexmem_segment *segments,
			   size_t count, uint64_t generation)
{
	static const char *const headings[] = {
		"slot", "region", "length", "<kind",
	};
	struct table table = { .headings = headings, .columns = 4 };
	char text[FMLIB_HUMAN_MAX];
	char id[RENDER_REGION_MAX];
	size_t i;

	printf("generation %" PRIu64 "\n", generation);
	for (i = 0; i < count; i++) {
		table_add(&table, "%u", segments[i].slot);
		table_add(&table, "%s",
			  render_region_id(is_pf, segments[i].region_id, id));
		table_add(&table, "%s", fmlib_human(segments[i].length, text));
		table_add(&table, "%s", render_kind(segments[i].flags));
	}
	if (count)
		table_print(&table, stdout, render_width(stdout));
	table_clear(&table);
}

static enum tool_status show_segments(struct tool *tool)
{
	struct flexmem_segment *segments = NULL;
	uint64_t generation;
	json_t *object;
	size_t count;
	bool is_pf;
	int err;

	err = ask_is_pf(tool, &is_pf);
	if (!err)
		err = flexmem_device_segments(tool->device, &segments,
					      sizeof(*segments), &count,
					      &generation);
	if (err)
		return tool_error(tool, err, NULL, "segments");
	if (tool->json) {
		object = json_checked(json_object());
		json_add(object, "generation", json_number(generation));
		json_add(object, "segments", json_segments(segments, count));
		json_print(tool, object);
	} else {
		print_segments(is_pf, segments, count, generation);
	}
	flexmem_segments_free(segments);
	return TOOL_OK;
}

enum tool_status cmd_segments(struct tool *tool, int argc, char **argv)
{
	enum tool_status status;

	if (!report_options(tool, argc, argv, &status))
		return status;
	return tool_report(tool, show_segments);
}
