// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Opens the device, and says what helps if that fails. */
#include "tool.h"

#include <errno.h>
#include <grp.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define DRIVER_DIR "/sys/module/flexmem"
#define NODE_DIR "/dev/"
/* As many as the driver has. */
#define NODES 256

/* Whether it is the path of a node, rather than a kind, or nothing. */
static bool is_path(const char *path)
{
	return path && strcasecmp(path, "PF") && strcasecmp(path, "VF");
}

static bool group_may(const struct stat *status)
{
	return (status->st_mode & 0060) == 0060;
}

/* The node that somebody could be let to: @path, or the first with a group. */
static bool find_node(const char *path, char node[TOOL_TEXT_MAX / 4],
		      struct stat *status)
{
	unsigned int i;

	if (is_path(path)) {
		snprintf(node, TOOL_TEXT_MAX / 4, "%s", path);
		return !stat(path, status) && group_may(status);
	}
	for (i = 0; i < NODES; i++) {
		snprintf(node, TOOL_TEXT_MAX / 4, NODE_DIR "flexmem%u", i);
		if (!stat(node, status) && group_may(status))
			return true;
	}
	return false;
}

static void access_text(const char *path, char text[TOOL_TEXT_MAX])
{
	char node[TOOL_TEXT_MAX / 4];
	const struct group *group;
	struct stat status;

	if (!find_node(path, node, &status) || !status.st_gid) {
		snprintf(text, TOOL_TEXT_MAX,
			 "only root may open it; as root a VF's node can be given to a group, see flexmem(1)");
		return;
	}
	group = getgrgid(status.st_gid);
	if (group)
		snprintf(text, TOOL_TEXT_MAX,
			 "%s is for the group '%s': 'sudo usermod -aG %s USER', then log in anew",
			 node, group->gr_name, group->gr_name);
	else
		snprintf(text, TOOL_TEXT_MAX,
			 "%s is for the group %u, which has no name here", node,
			 (unsigned int)status.st_gid);
}

static void absence_text(const char *path, char text[TOOL_TEXT_MAX])
{
	if (access(DRIVER_DIR, F_OK))
		snprintf(text, TOOL_TEXT_MAX,
			 "flexmem.ko is not loaded; 'sudo modprobe flexmem_sim' loads it with a simulated device, and before 'make modules_install' insmod does, see README.md");
	else if (!path)
		snprintf(text, TOOL_TEXT_MAX,
			 "flexmem.ko is loaded, but no device is there; 'sudo modprobe flexmem_sim' brings a simulated one");
	else
		flexmem_error_text(-ENODEV, NULL, 0, text, TOOL_TEXT_MAX);
}

int tool_try_open(struct tool *tool, char text[TOOL_TEXT_MAX])
{
	const char *what = tool->path ? tool->path : "no device to open";
	char reason[TOOL_TEXT_MAX];
	int err;

	if (tool->device)
		return 0;
	err = flexmem_device_open(&tool->device, tool->path);
	if (!err)
		return 0;
	if (err == -ENODEV)
		absence_text(tool->path, reason);
	else if (err == -EACCES)
		access_text(tool->path, reason);
	else if (err == -EPERM)
		snprintf(reason, sizeof(reason),
			 "a PF is only for who has CAP_SYS_ADMIN, unless flexmem.ko was loaded with pf_open=mode");
	else if (err == -EINVAL && !tool->path)
		snprintf(reason, sizeof(reason),
			 "FLEX_DEVICE is neither PF nor VF nor a path");
	else
		flexmem_error_text(err, NULL, 0, reason, sizeof(reason));
	snprintf(text, TOOL_TEXT_MAX, "%.128s: %.380s", what, reason);
	return err;
}

enum tool_status tool_open(struct tool *tool)
{
	char text[TOOL_TEXT_MAX];
	int err = tool_try_open(tool, text);

	return err ? tool_fail(tool, err, "%s", text) : TOOL_OK;
}
