// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Opens the device, and prints a remedy if that fails. */
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DRIVER_DIR "/sys/module/flexmem"
#define NODE_DIR "/dev/"
/* The driver has this number of minors. */
#define NODES 1024
#define NODE_MAX (TOOL_TEXT_MAX / 4)

/* Whether @path is a path, not a kind of node. */
static bool is_path(const char *path)
{
	return path && strcasecmp(path, "PF") && strcasecmp(path, "VF");
}

static bool group_may(const struct stat *status)
{
	return (status->st_mode & 0060) == 0060;
}

/*
 * Whether a node is a PF's. Reads that from sysfs, because a user may not be
 * permitted to open the node.
 */
static bool is_pf(const struct stat *status)
{
	char path[64];
	char mode[2];
	bool pf;
	int fd;

	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/mode",
		 major(status->st_rdev), minor(status->st_rdev));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	pf = read(fd, mode, sizeof(mode)) == sizeof(mode) &&
	     !memcmp(mode, "pf", sizeof(mode));
	close(fd);
	return pf;
}

/*
 * Finds the node of a VF: @path if it is a path. Otherwise finds the first node
 * that a group may open. If a group may open none, finds the first node.
 */
static bool find_vf(const char *path, char node[NODE_MAX], struct stat *status)
{
	char name[sizeof(NODE_DIR) + 32];
	struct stat found;
	bool any = false;
	unsigned int i;

	if (is_path(path)) {
		snprintf(node, NODE_MAX, "%s", path);
		return !stat(path, status) && !is_pf(status);
	}
	if (path && !strcasecmp(path, "PF"))
		return false;
	for (i = 0; i < NODES; i++) {
		snprintf(name, sizeof(name), NODE_DIR "flexmem%u", i);
		if (stat(name, &found) || is_pf(&found) ||
		    (any && !group_may(&found)))
			continue;
		any = true;
		*status = found;
		snprintf(node, NODE_MAX, "%s", name);
		if (group_may(&found))
			break;
	}
	return any;
}

static void pf_text(char text[TOOL_TEXT_MAX])
{
	snprintf(text, TOOL_TEXT_MAX,
		 "only root (CAP_SYS_ADMIN) may open a PF: try sudo; with pf_open=mode of flexmem.ko the mode of the node decides");
}

static void access_text(const char *path, char text[TOOL_TEXT_MAX])
{
	char node[NODE_MAX];
	const struct group *group;
	struct stat status;

	if (!find_vf(path, node, &status)) {
		pf_text(text);
		return;
	}
	if (!group_may(&status) || !status.st_gid) {
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
			 "flexmem.ko is not loaded; 'sudo modprobe flexmem_sim' loads it with a simulated device; if modprobe does not find it, see DRIVER in flexmem(1)");
	else if (!path)
		snprintf(text, TOOL_TEXT_MAX,
			 "flexmem.ko is loaded, but no device is there; 'sudo modprobe flexmem_sim' brings a simulated one; if modprobe does not find it, see DRIVER in flexmem(1)");
	else if (!is_path(path))
		snprintf(text, TOOL_TEXT_MAX,
			 "flexmem.ko is loaded, but no device has such a function");
	else if (!strchr(path, '/'))
		snprintf(text, TOOL_TEXT_MAX,
			 "neither PF nor VF, nor a file of that name here");
	else
		flexmem_error_text(-ENODEV, NULL, 0, text, TOOL_TEXT_MAX);
}

/* Explains the error @err of an open(), and what the user can do about it. */
static void reason_text(int err, const char *path, char text[TOOL_TEXT_MAX])
{
	struct stat status;

	if (err == -ENODEV)
		absence_text(path, text);
	else if (err == -EACCES && !(is_path(path) && stat(path, &status)))
		access_text(path, text);
	else if (err == -EPERM)
		pf_text(text);
	else if (err == -EINVAL)
		snprintf(text, TOOL_TEXT_MAX,
			 "neither PF nor VF, nor a path that begins with a slash");
	else
		flexmem_error_text(err, NULL, 0, text, TOOL_TEXT_MAX);
}

int tool_try_open(struct tool *tool, char text[TOOL_TEXT_MAX])
{
	const char *path = tool->path;
	const char *from = "";
	char reason[TOOL_TEXT_MAX];
	int err;

	if (tool->device)
		return 0;
	err = flexmem_device_open(&tool->device, tool->path);
	if (!err)
		return 0;
	if (!path) {
		path = getenv("FLEX_DEVICE");
		from = "FLEX_DEVICE=";
		if (!path || !*path)
			path = NULL;
	}
	reason_text(err, path, reason);
	if (path)
		snprintf(text, TOOL_TEXT_MAX, "%s%.128s: %.380s", from, path,
			 reason);
	else
		snprintf(text, TOOL_TEXT_MAX, "no device to open: %.380s",
			 reason);
	return err;
}

enum tool_status tool_open(struct tool *tool)
{
	char text[TOOL_TEXT_MAX];
	int err;

	if (tool->command->in_shell == SHELL_ONLY && !tool->shell)
		return usage_error(tool,
				   "only inside 'flexmem shell' is there an allocation to %s",
				   tool->command->name);
	err = tool_try_open(tool, text);
	return err ? tool_fail(tool, err, "%s", text) : TOOL_OK;
}
