// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* flexmem regions, segments. */
#include "tool.h"
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

enum tool_status cmd_regions(struct tool *tool, int argc, char **argv)
{
	struct flexmem_region_state *regions = NULL;
	unsigned int width = render_width(stdout);
	enum tool_status status;
	json_t *object;
	size_t count;
	bool is_pf;
	int err;

	if (!only_common_options(tool, argc, argv, &status))
		return status;
	status = tool_open(tool);
	if (status)
		return status;
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

enum tool_status cmd_segments(struct tool *tool, int argc, char **argv)
{
	struct flexmem_segment *segments = NULL;
	enum tool_status status;
	uint64_t generation;
	json_t *object;
	size_t count;
	bool is_pf;
	int err;

	if (!only_common_options(tool, argc, argv, &status))
		return status;
	status = tool_open(tool);
	if (status)
		return status;
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
