// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * flexmem fill and check: a pattern in an allocation, written and read through
 * a mapping or by copies.
 */
#include "tool.h"
#include "pattern.h"
#include "render.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COPY_PART (UINT64_C(1) << 20)
/* The most bytes to map at a time, for 32-bit programs. */
#define MAP_PART (UINT64_C(1) << 26)

/*
 * Runs if an access to a mapping fails because the device was reset or removed.
 */
static void on_sigbus(int number)
{
	(void)number;
	tool_last_words("flexmem: the device was reset, or is gone\n",
			"{ \"error\": { \"errno\": -5, \"name\": \"EIO\", \"text\": \"the device was reset, or is gone\" } }\n");
	_exit(TOOL_FAILED);
}

static void apply(void *bytes, struct pattern_job *job, uint64_t offset,
		  size_t length, bool check)
{
	uint64_t first;
	uint64_t bad;

	progress_update(job->progress, offset);
	if (!check) {
		pattern_fill(bytes, job->seed, offset, length);
		return;
	}
	bad = pattern_check(bytes, job->seed, offset, length, &first);
	if (bad && !job->bad)
		job->first_bad = first;
	job->bad += bad;
}

/* Maps the bytes of a chunk, which are those from @offset to @end. */
static int by_map_of(struct tool *tool, uint32_t handle,
		     struct pattern_job *job, uint64_t offset, uint64_t end,
		     bool check)
{
	size_t length;
	void *bytes;
	int err = 0;

	for (; !err && offset < end; offset += length) {
		length = (size_t)(end - offset < MAP_PART ? end - offset :
							    MAP_PART);
		err = flexmem_device_map(tool->device, handle, offset, length,
					 check ? FLEXMEM_READ_ONLY : 0, &bytes,
					 NULL);
		if (err)
			break;
		apply(bytes, job, offset, length, check);
		err = flexmem_device_unmap(tool->device, bytes, length);
	}
	return err;
}

static int by_map(struct tool *tool, uint32_t handle, struct pattern_job *job,
		  bool check)
{
	struct sigaction action = { .sa_handler = on_sigbus };
	struct flexmem_chunk_info chunks[FLEXMEM_CHUNKS];
	struct sigaction before;
	uint64_t offset = 0;
	size_t count = 0;
	size_t i;
	int err;

	sigaction(SIGBUS, &action, &before);
	err = flexmem_device_chunks(tool->device, handle, chunks,
				    sizeof(*chunks), FLEXMEM_CHUNKS, &count);
	for (i = 0; !err && i < count; i++) {
		err = by_map_of(tool, handle, job, offset,
				offset + chunks[i].size, check);
		offset += chunks[i].size;
	}
	sigaction(SIGBUS, &before, NULL);
	return err;
}

static int by_copy(struct tool *tool, uint32_t handle, struct pattern_job *job,
		   bool check)
{
	void *bytes = grow(NULL, COPY_PART, 1);
	uint64_t offset;
	size_t length;
	int err = 0;

	for (offset = 0; !err && offset < job->size; offset += length) {
		length = (size_t)(job->size - offset < COPY_PART ?
				  job->size - offset : COPY_PART);
		if (check)
			err = flexmem_device_read(tool->device, handle, offset,
						  bytes, length, NULL);
		if (!err)
			apply(bytes, job, offset, length, check);
		if (!check)
			err = flexmem_device_write(tool->device, handle, offset,
						   bytes, length, NULL);
	}
	free(bytes);
	return err;
}

static int run_job(struct tool *tool, uint32_t handle, struct pattern_job *job,
		   bool check)
{
	struct flexmem_allocated allocation;
	struct progress progress;
	int err;

	err = flexmem_device_lookup(tool->device, handle, &allocation,
				    sizeof(allocation));
	if (err)
		return err;
	job->size = allocation.size;
	job->bad = 0;
	if (job->way == PATTERN_AUTO)
		job->way = allocation.flags & FLEXMEM_MAPPABLE ? PATTERN_MAP :
								 PATTERN_COPY;
	progress_begin(&progress, stderr, check ? "checking" : "filling",
		       job->size);
	job->progress = &progress;
	err = job->way == PATTERN_MAP ? by_map(tool, handle, job, check) :
					by_copy(tool, handle, job, check);
	job->progress = NULL;
	progress_end(&progress);
	return err;
}

int pattern_fill_allocation(struct tool *tool, uint32_t handle,
			    struct pattern_job *job)
{
	return run_job(tool, handle, job, false);
}

int pattern_check_allocation(struct tool *tool, uint32_t handle,
			     struct pattern_job *job)
{
	return run_job(tool, handle, job, true);
}

enum tool_status pattern_result(struct tool *tool, uint32_t handle,
				const struct pattern_job *job)
{
	if (!job->bad)
		return TOOL_OK;
	return tool_fail(tool, -EIO, "check handle %u: %" PRIu64 " of %" PRIu64
			 " bytes differ, the first at 0x%" PRIx64, handle,
			 job->bad, job->size, job->first_bad);
}

static bool pattern_arguments(struct tool *tool, int argc, char **argv,
			      struct pattern_job *job, uint32_t *handle,
			      enum tool_status *status)
{
	static const struct option known[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "by", required_argument, NULL, 'b' },
		COMMON_OPTIONS
	};
	uint64_t number;
	int option;

	*status = TOOL_USAGE;
	while ((option = next_option(tool, argc, argv, known)) != OPTION_END) {
		if (option == 's') {
			if (parse_number(optarg, UINT64_MAX, &job->seed))
				continue;
			usage_error(tool, "'%s' is not a seed", optarg);
			return false;
		}
		if (option != 'b') {
			*status = option_status(option);
			return false;
		}
		if (!strcmp(optarg, "map")) {
			job->way = PATTERN_MAP;
		} else if (!strcmp(optarg, "copy")) {
			job->way = PATTERN_COPY;
		} else {
			usage_error(tool, "'%s' is neither map nor copy",
				    optarg);
			return false;
		}
	}
	if (argc - optind != 1) {
		usage_error(tool, "exactly one HANDLE is needed");
		return false;
	}
	if (!parse_number(argv[optind], UINT32_MAX, &number) || !number) {
		usage_error(tool, "'%s' is not a handle", argv[optind]);
		return false;
	}
	*handle = (uint32_t)number;
	return true;
}

static void report(struct tool *tool, uint32_t handle,
		   const struct pattern_job *job, bool check)
{
	const char *way = job->way == PATTERN_MAP ? "map" : "copy";
	json_t *object;

	if (!tool->json) {
		if (!job->bad)
			printf("handle %u  %" PRIu64 " bytes %s by %s\n",
			       handle, job->size, check ? "good" : "filled",
			       way);
		return;
	}
	object = json_pattern(job, check);
	json_add(object, "handle", json_number(handle));
	json_add(object, "size", json_number(job->size));
	json_print(tool, object);
}

static enum tool_status run_command(struct tool *tool, int argc, char **argv,
				    bool check)
{
	struct pattern_job job = { .way = PATTERN_AUTO };
	enum tool_status status;
	uint32_t handle;
	int err;

	if (!pattern_arguments(tool, argc, argv, &job, &handle, &status))
		return status;
	status = tool_open(tool);
	if (status)
		return status;
	err = run_job(tool, handle, &job, check);
	if (err == -EINVAL && job.way == PATTERN_MAP)
		return tool_fail(tool, err,
				 "%s handle %u: it cannot be mapped: allocate it with --mappable, or use --by copy",
				 tool->command->name, handle);
	if (err)
		return tool_error(tool, err, NULL, "%s handle %u",
				  tool->command->name, handle);
	report(tool, handle, &job, check);
	return pattern_result(tool, handle, &job);
}

enum tool_status cmd_fill(struct tool *tool, int argc, char **argv)
{
	return run_command(tool, argc, argv, false);
}

enum tool_status cmd_check(struct tool *tool, int argc, char **argv)
{
	return run_command(tool, argc, argv, true);
}
