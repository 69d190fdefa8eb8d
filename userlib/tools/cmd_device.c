// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem info, stats and trim. */
#include "tool.h"
#include "policy.h"
#include "render.h"
#include "version.h"

#include <inttypes.h>

static void print_size(const char *label, uint64_t bytes)
{
	char text[FMLIB_HUMAN_MAX];

	printf("%-16s %s\n", label, fmlib_human(bytes, text));
}

static void print_count(const char *label, uint64_t count)
{
	printf("%-16s %" PRIu64 "\n", label, count);
}

static void print_text(const char *label, const char *text)
{
	printf("%-16s %s\n", label, text);
}

/* Prints the device-virtual addresses. */
static void print_space(const struct flexmem_properties *properties)
{
	char length[FMLIB_HUMAN_MAX], page[FMLIB_HUMAN_MAX];

	if (!properties->space_page)
		return;
	printf("%-16s %s from %#" PRIx64 " on, pages of %s\n", "address space",
	       fmlib_human(properties->space_length, length),
	       properties->space_start,
	       fmlib_human(properties->space_page, page));
}

/* Prints how much memory the process can have. */
static void print_available(const struct flexmem_available *available)
{
	char text[FMLIB_HUMAN_MAX], left[FMLIB_HUMAN_MAX];

	printf("%-16s %s, of which %s are free\n", "available",
	       fmlib_human(available->total, text),
	       fmlib_human(available->free, left));
	print_size("in one piece", available->largest);
}

static void print_info(const struct tool *tool,
		       const struct flexmem_properties *properties,
		       const struct flexmem_available *available)
{
	const char *names[CAPABILITIES];
	char module[FMLIB_MODULE_VERSION];
	char text[FMLIB_HUMAN_MAX];
	size_t count;
	uint32_t i;

	print_text("device", flexmem_device_path(tool->device));
	print_text("name", properties->name);
	print_text("driver version",
		   fmlib_version_of_module(module) ? module : "unknown");
	print_text("function",
		   properties->function == FLEXMEM_PF ? "PF" : "VF");
	print_text("state", condition_name(properties->condition));
	print_text("strategy", strategy_name(properties->strategy));
	print_text("order", order_name(properties->order));
	print_text("acquire", acquisition_name(properties->acquisition));
	print_size("capacity", properties->capacity);
	print_available(available);
	print_size("largest region", properties->max_region);
	printf("%-16s", "fallback sizes");
	for (i = 0; i < properties->fallback_count; i++)
		printf("%s %s", i ? "," : "",
		       fmlib_human(properties->fallback_sizes[i], text));
	putchar('\n');
	print_size("granule", properties->granule);
	print_count("slots", properties->slots);
	print_count("max regions", properties->max_regions);
	print_count("program slots", properties->program_slots);
	print_count("max handles", properties->max_handles);
	print_count("max batch", properties->max_batch);
	print_size("alignment", properties->alignment);
	print_size("max alignment", properties->max_alignment);
	count = capability_names(properties->capabilities, names);
	printf("%-16s", "capabilities");
	for (i = 0; i < count; i++)
		printf("%s %s", i ? "," : "", names[i]);
	puts(count ? "" : " none");
	print_space(properties);
}

static void print_domain(const struct flexmem_domain_state *domain)
{
	char label[20], text[FMLIB_HUMAN_MAX];
	uint32_t i;

	snprintf(label, sizeof(label), "domain %u", domain->id);
	printf("%-16s %s, %s", label, memory_name(domain->memory),
	       fmlib_human(domain->capacity, text));
	if (domain->set_aside)
		printf(" and %s set aside",
		       fmlib_human(domain->set_aside, text));
	printf(", regions of");
	for (i = 0; i < domain->size_count; i++)
		printf("%s %s", i ? "," : "",
		       fmlib_human(domain->sizes[i], text));
	putchar('\n');
}

/*
 * Prints a line for each domain. A single domain needs no line, because the
 * lines before describe that domain.
 */
static void print_domains(const struct flexmem_domain_state *domains)
{
	uint32_t i;

	for (i = 0; domains->count > 1 && i < domains->count &&
	     i < FLEXMEM_DOMAINS; i++)
		print_domain(&domains[i]);
}

static enum tool_status show_info(struct tool *tool)
{
	struct flexmem_domain_state domains[FLEXMEM_DOMAINS];
	struct flexmem_properties properties;
	struct flexmem_available available;
	char module[FMLIB_MODULE_VERSION];
	json_t *object;
	int err;

	err = flexmem_device_properties(tool->device, &properties,
					sizeof(properties));
	if (!err)
		err = flexmem_device_available(tool->device, &available,
					       sizeof(available));
	if (!err)
		err = read_domains(tool->device, domains);
	if (err)
		return tool_error(tool, err, NULL, "info");
	if (tool->json) {
		object = json_device(&properties);
		json_add(object, "device",
			 json_text(flexmem_device_path(tool->device)));
		json_add(object, "driver_version",
			 fmlib_version_of_module(module) ? json_text(module) :
							   json_null());
		json_add(object, "available_total",
			 json_number(available.total));
		json_add(object, "available_free", json_number(available.free));
		json_add(object, "available_largest",
			 json_number(available.largest));
		json_add(object, "domains", json_domains(domains));
		json_print(tool, object);
	} else {
		print_info(tool, &properties, &available);
		print_domains(domains);
	}
	return TOOL_OK;
}

enum tool_status cmd_info(struct tool *tool, int argc, char **argv)
{
	enum tool_status status;

	if (!report_options(tool, argc, argv, &status))
		return status;
	return tool_report(tool, show_info);
}

static void print_figure(const char *label, bool hidden, uint64_t count)
{
	if (hidden)
		print_text(label, "-");
	else
		print_count(label, count);
}

static void print_stats(const struct flexmem_statistics *statistics)
{
	const bool hidden = statistics->flags & FLEXMEM_HIDDEN;
	const char *exhausted = "no";

	if (statistics->flags & FLEXMEM_EXHAUSTED)
		exhausted = statistics->flags & FLEXMEM_PROGRAM_EXHAUSTED ?
			 "yes" : "for tensors";
	else if (statistics->flags & FLEXMEM_PROGRAM_EXHAUSTED)
		exhausted = "for programs";
	print_count("regions", statistics->regions);
	print_text("exhausted", exhausted);
	print_size("total", statistics->total);
	print_size("used", statistics->used);
	print_size("  for programs", statistics->used_program);
	print_size("free", statistics->free);
	print_figure("allocations", hidden, statistics->allocated);
	print_figure("allocs so far", hidden, statistics->allocs);
	print_figure("frees so far", hidden, statistics->frees);
	print_figure("failures so far", hidden, statistics->failures);
	print_count("generation", statistics->generation);
	print_size("own used", statistics->own_used);
	print_size("own peak", statistics->own_peak);
	print_count("own allocations", statistics->own_handles);
}

static void print_usage(const struct flexmem_usage *usage)
{
	print_size("orphaned", usage->orphaned);
	print_size("reserved", usage->reserved);
	print_size("quarantined", usage->quarantined);
	print_size("scrubbed so far", usage->scrubbed);
	print_count("open files", usage->clients);
	print_count("resets so far", usage->resets);
	print_count("timeouts so far", usage->timeouts);
}

static enum tool_status show_stats(struct tool *tool)
{
	struct flexmem_statistics statistics;
	struct flexmem_usage usage;
	json_t *object;
	int err;

	err = flexmem_device_statistics(tool->device, &statistics,
					sizeof(statistics));
	if (!err)
		err = flexmem_device_usage(tool->device, &usage, sizeof(usage),
					   NULL, 0, NULL, 0);
	if (err)
		return tool_error(tool, err, NULL, "stats");
	if (tool->json) {
		object = json_statistics(&statistics);
		json_add_usage(object, &usage);
		json_print(tool, object);
	} else {
		print_stats(&statistics);
		print_usage(&usage);
	}
	return TOOL_OK;
}

enum tool_status cmd_stats(struct tool *tool, int argc, char **argv)
{
	enum tool_status status;

	if (!report_options(tool, argc, argv, &status))
		return status;
	return tool_report(tool, show_stats);
}

enum tool_status cmd_trim(struct tool *tool, int argc, char **argv)
{
	char text[FMLIB_HUMAN_MAX];
	enum tool_status status;
	uint32_t regions = 0;
	uint64_t bytes = 0;
	json_t *object;
	int err;

	if (!only_common_options(tool, argc, argv, &status))
		return status;
	status = tool_open(tool);
	if (status)
		return status;
	err = flexmem_device_trim(tool->device, 0, &regions, &bytes);
	/*
	 * The report is printed even on failure, because some regions may have
	 * been released before the failure.
	 */
	if (tool->json) {
		object = json_checked(json_object());
		json_add(object, "regions", json_number(regions));
		json_add(object, "bytes", json_number(bytes));
		if (err)
			json_add(object, "error",
				 json_error(err, NULL, NULL));
		json_print(tool, object);
	} else if (!err || regions) {
		printf("%u %s given back, %s\n", regions,
		       regions == 1 ? "region" : "regions",
		       fmlib_human(bytes, text));
	}
	return err ? tool_error(tool, err, NULL, "trim") : TOOL_OK;
}
