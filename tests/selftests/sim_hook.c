// SPDX-License-Identifier: GPL-2.0
/*
 * The command FLEXMEM_HOOK of conformance.c, for the simulator. Descriptor 3 is
 * an open file of the function's node.
 */
#include "tenants.h"
#include "../../kmod/sim/run.h"

static int begin_fill(const char *function, char **argv, __u32 flags)
{
	struct sim_run run = {
		.program = SIM_PROGRAM_FILL,
		.fd = 3,
		.to = strtoul(argv[0], NULL, 0),
		.size = strtoull(argv[1], NULL, 0),
		.value = strtoul(argv[2], NULL, 0),
		.latency_ms = strtoul(argv[3], NULL, 0),
		.flags = flags,
	};
	char path[64];
	int queue;

	/* debugfs does not support ioctl() of 32-bit programs. */
	if (sizeof(long) == 4)
		return 77;
	snprintf(path, sizeof(path), FM_KNOBS "%s/queue", function);
	queue = open(path, O_RDWR | O_CLOEXEC);
	return queue < 0 || ioctl(queue, SIM_IOCTL_RUN, &run);
}

static int set(const char *function, const char *knob, const char *value)
{
	char name[64];

	snprintf(name, sizeof(name), "%s/%s", function, knob);
	return !!fm_knob(name, value);
}

int main(int argc, char **argv)
{
	const char *function = fm_info(3).out_mode == FM_PF ? "pf" : "vf0";

	if (argc == 6 && !strcmp(argv[1], "fill"))
		return begin_fill(function, argv + 2, 0);
	if (argc == 6 && !strcmp(argv[1], "stray"))
		return begin_fill(function, argv + 2, SIM_RUN_STRAY);
	if (argc == 6 && !strcmp(argv[1], "hang"))
		return begin_fill(function, argv + 2, SIM_RUN_HANGS);
	if (argc == 2 && !strcmp(argv[1], "suspend"))
		return set(function, "suspended", "1");
	if (argc == 2 && !strcmp(argv[1], "resume"))
		return set(function, "suspended", "0");
	if (argc == 2 && !strcmp(argv[1], "reset"))
		return set(function, "reset", "1");
	return 77;
}
