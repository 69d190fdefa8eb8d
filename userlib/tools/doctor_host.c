// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* What can be wrong with a host before a function is opened. */
#include "doctor.h"
#include "cdi.h"
#include "host.h"
#include "version.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* Whether a kernel is locked down, and loads only signed modules. */
static bool is_locked_down(void)
{
	char line[HOST_LINE_MAX];

	return (host_read("/sys/kernel/security/lockdown", line) &&
		!strstr(line, "[none]")) ||
	       (host_read("/sys/module/module/parameters/sig_enforce", line) &&
		!strcmp(line, "Y"));
}

/* The module is not there for the kernel that runs. */
static void find_no_module(struct doctor *doctor, const char *release)
{
	char headers[PATH_MAX], remedy[TOOL_TEXT_MAX];

	snprintf(headers, sizeof(headers), "/lib/modules/%s/build", release);
	if (host_exists(headers))
		snprintf(remedy, sizeof(remedy),
			 "sudo apt install flexmem-dkms; if it is installed: sudo dkms autoinstall, and see its log");
	else
		snprintf(remedy, sizeof(remedy),
			 "sudo apt install linux-headers-%s flexmem-dkms",
			 release);
	doctor_find(doctor, DOCTOR_ERROR, "module-not-built", NULL, remedy,
		    "flexmem.ko is not installed for the kernel that runs, %s%s",
		    release,
		    host_exists(headers) ? "" :
					   ", nor are the headers of that kernel");
}

static void look_at_module(struct doctor *doctor, const char *release)
{
	char path[PATH_MAX], text[FMLIB_VERSION_TEXT];

	if (host_exists("/sys/module/flexmem")) {
		if (fmlib_version_differs(text))
			doctor_find(doctor, DOCTOR_ERROR, "module-version",
				    NULL,
				    "reboot; or end all programs that use flexmem, unload the modules and load them again",
				    "%s", text);
		return;
	}
	if (!host_module(release, path))
		find_no_module(doctor, release);
	else if (is_locked_down() && !host_is_signed(path))
		doctor_find(doctor, DOCTOR_ERROR, "module-not-signed", NULL,
			    "sudo mokutil --import /var/lib/dkms/mok.pub, then reboot and enrol the key; then sudo dkms autoinstall --force",
			    "this kernel loads signed modules only (Secure Boot), and %s is not signed",
			    path);
	else
		doctor_find(doctor, DOCTOR_ERROR, "module-not-loaded", NULL,
			    "sudo modprobe DRIVER, with the driver of your device; 'sudo modprobe flexmem_sim' brings a simulated one",
			    "flexmem.ko is not loaded, although it is there");
}

/* A kernel that is installed, too, may be the next one that boots. */
static void look_at_kernel(const char *release, void *user)
{
	struct utsname host;
	char path[PATH_MAX], remedy[TOOL_TEXT_MAX];

	snprintf(path, sizeof(path), "/lib/modules/%s/kernel", release);
	if (uname(&host) || !strcmp(host.release, release) ||
	    !host_exists(path) || host_module(release, path))
		return;
	snprintf(remedy, sizeof(remedy),
		 "sudo apt install linux-headers-%s; if they are there: sudo dkms autoinstall -k %s",
		 release, release);
	doctor_find(user, DOCTOR_WARNING, "kernel-without-module", NULL, remedy,
		    "the kernel %s is installed, too, and has no flexmem.ko",
		    release);
}

static void look_at_group(struct doctor *doctor)
{
	if (!getgrnam("flexmem"))
		doctor_find(doctor, DOCTOR_ERROR, "no-group", NULL,
			    "sudo systemd-sysusers && sudo udevadm trigger --subsystem-match=flexmem",
			    "there is no group 'flexmem', so only root can open nodes");
}

static void look_at_cgroups(struct doctor *doctor)
{
	char root[PATH_MAX];

	if (!fmlib_cgroup_root(root))
		doctor_find(doctor, DOCTOR_ERROR, "cgroup-v1", NULL,
			    "boot with systemd.unified_cgroup_hierarchy=1",
			    "no cgroups of version 2 are mounted, so no limits can be set");
}

/* The hook starts no container with a file that names another node. */
static void look_at_shares(struct doctor *doctor)
{
	struct cdi_share *shares;
	size_t count, i;
	char *node;

	if (cdi_read_all(&shares, &count))
		count = 0;
	for (i = 0; i < count; i++) {
		node = copy_text(shares[i].node);
		if (cdi_find_node(&shares[i]) == -ENODEV)
			doctor_find(doctor, DOCTOR_WARNING, "share-without-function",
				    shares[i].name,
				    "bind the function to its driver, or: sudo flexmem cdi --remove NAME",
				    "there is no function %s, so no container starts with this share",
				    shares[i].function);
		else if (strcmp(node, shares[i].node))
			doctor_find(doctor, DOCTOR_ERROR, "share-out-of-date",
				    shares[i].name, "sudo flexmem cdi --refresh",
				    "its CDI file has the node %s, but %s is %s, so no container starts with it",
				    node, shares[i].function, shares[i].node);
		free(node);
	}
	cdi_clear(shares, count);
	free(shares);
}

void doctor_host(struct doctor *doctor)
{
	struct utsname host;

	if (!uname(&host))
		look_at_module(doctor, host.release);
	host_list("/lib/modules", look_at_kernel, doctor);
	look_at_group(doctor);
	look_at_cgroups(doctor);
	look_at_shares(doctor);
}
