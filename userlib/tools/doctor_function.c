// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* What can be wrong with a function, and who holds its memory. */
#include "doctor.h"
#include "functions.h"
#include "host.h"
#include "render.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Memory that waits for a device program for longer is worth a word. */
#define LONG_MS 60000

#define EXHAUSTED (FLEXMEM_EXHAUSTED | FLEXMEM_PROGRAM_EXHAUSTED)

/* Looks at the mode and the group of a VF's node. */
static void look_at_node(struct doctor *doctor,
			 const struct flexmem_identity *identity)
{
	const struct group *group = getgrnam("flexmem");
	const char *name = strrchr(identity->path, '/') + 1;
	char remedy[TOOL_TEXT_MAX];
	struct stat node;

	if (identity->function == FLEXMEM_PF || !group ||
	    stat(identity->path, &node) || node.st_gid == group->gr_gid)
		return;
	snprintf(remedy, sizeof(remedy),
		 host_exists("/etc/flexmem/limits.conf") ?
			 "flexmem limit --check /etc/flexmem/limits.conf; systemctl status flexmem-limits@%s.service" :
			 "sudo udevadm trigger --action=change --name-match=%s",
		 name);
	doctor_find(doctor, DOCTOR_WARNING, "node-for-root", identity->id,
		    remedy,
		    "its node %s does not belong to the group 'flexmem', so only root can open it",
		    identity->path);
}

static void find_closed(struct doctor *doctor,
			const struct flexmem_identity *identity, int err)
{
	char text[TOOL_TEXT_MAX];

	flexmem_error_text(err, NULL, 0, text, sizeof(text));
	if (err == -EACCES)
		doctor_find(doctor, DOCTOR_ERROR, "no-permission", identity->id,
			    "sudo usermod -aG flexmem USER, then log in anew; or run this as root",
			    "this user may not open %s", identity->path);
	else if (err == -EPERM)
		/* That is how it should be for all but root. */
		return;
	else if (err == -ENOTTY || err == -E2BIG || err == -EINVAL)
		doctor_find(doctor, DOCTOR_ERROR, "old-abi", identity->id,
			    "reboot; or unload the modules and load them again",
			    "%s has another ABI than this command: %s",
			    identity->path, text);
	else
		doctor_find(doctor, DOCTOR_ERROR, "not-usable", identity->id,
			    "see the kernel's log: sudo dmesg | grep flexmem",
			    "%s cannot be opened: %s", identity->path, text);
}

static void look_at_state(struct doctor *doctor,
			  const struct flexmem_identity *identity,
			  uint32_t condition)
{
	char remedy[TOOL_TEXT_MAX];

	if (condition == FLEXMEM_WEDGED) {
		snprintf(remedy, sizeof(remedy),
			 "end its programs; then echo %s | sudo tee /sys/bus/%s/drivers/%s/unbind, and the same with bind",
			 identity->address, identity->bus, identity->driver);
		doctor_find(doctor, DOCTOR_ERROR, "wedged", identity->id,
			    remedy,
			    "it is wedged: its device has failed, and nothing but a reset works");
	} else if (condition == FLEXMEM_UNRESPONSIVE) {
		doctor_find(doctor, DOCTOR_ERROR, "unresponsive", identity->id,
			    "see the kernel's log; flexmem asks again by itself",
			    "the firmware does not answer");
	}
}

/* No slot or no capacity is left, and the regions are full. */
static void look_at_room(struct doctor *doctor,
			 const struct flexmem_identity *identity,
			 const struct flexmem_properties *properties,
			 const struct flexmem_statistics *statistics,
			 const struct flexmem_usage *usage)
{
	char left[FMLIB_HUMAN_MAX], all[FMLIB_HUMAN_MAX];
	const bool slots = statistics->regions >= properties->max_regions;

	if (!(statistics->flags & EXHAUSTED) && !slots)
		return;
	doctor_find(doctor, DOCTOR_WARNING,
		    slots ? "no-slots-left" : "no-capacity-left", identity->id,
		    "sudo flexmem owners shows who has it; sudo flexmem trim releases empty regions",
		    "the driver acquires no further region: %u of %u are there, with %s of %s free",
		    statistics->regions, properties->max_regions,
		    fmlib_human(usage->free, left),
		    fmlib_human(usage->total, all));
}

static void look_at_quarantine(struct doctor *doctor,
			       const struct flexmem_identity *identity,
			       const struct flexmem_usage *usage)
{
	char text[FMLIB_HUMAN_MAX];

	if (usage->quarantined)
		doctor_find(doctor, DOCTOR_WARNING, "quarantine", identity->id,
			    "sudo flexmem trim tries again; if it fails, reset the device",
			    "the device did not scrub %s, which no program gets",
			    fmlib_human(usage->quarantined, text));
}

static bool is_alive(uint32_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", pid);
	return host_exists(path);
}

static void look_at_account(struct doctor *doctor,
			    const struct flexmem_identity *identity,
			    const struct flexmem_account_state *account)
{
	char text[FMLIB_HUMAN_MAX];

	if (account->kind == FLEXMEM_ACCOUNT_CGROUP) {
		if (account->reserved < account->reservation)
			doctor_find(doctor, DOCTOR_ERROR, "reservation",
				    identity->id,
				    "free memory of others, then set the reservation again with flexmem reserve",
				    "the cgroup %" PRIu64 " has %u of its %u reserved regions",
				    account->id, account->reserved,
				    account->reservation);
		return;
	}
	if (account->leaving && account->waits_ms >= LONG_MS)
		doctor_find(doctor, DOCTOR_WARNING, "held-by-programs",
			    identity->id,
			    "the watchdog of the device's driver ends the program; a reset of the device does, too",
			    "device programs have used %s that process %u has freed for %" PRIu64 " s",
			    fmlib_human(account->leaving, text), account->pid,
			    account->waits_ms / 1000);
	else if (account->pid && account->bytes && !is_alive(account->pid))
		doctor_find(doctor, DOCTOR_WARNING, "held-by-the-dead",
			    identity->id,
			    "sudo fuser -v NODE names the processes that have inherited the file",
			    "process %u has ended, but its open file still has %s",
			    account->pid, fmlib_human(account->bytes, text));
}

static int look_into(struct doctor *doctor,
		     const struct flexmem_identity *identity,
		     struct flexmem_device *device)
{
	struct flexmem_account_state *accounts = NULL;
	struct flexmem_properties properties;
	struct flexmem_statistics statistics;
	struct flexmem_usage usage;
	uint32_t i;
	int err;

	err = flexmem_device_properties(device, &properties,
					sizeof(properties));
	if (!err)
		err = flexmem_device_statistics(device, &statistics,
						sizeof(statistics));
	if (!err)
		err = flexmem_device_usage(device, &usage, sizeof(usage), NULL,
					   0, &accounts, sizeof(*accounts));
	if (err)
		return err;
	look_at_state(doctor, identity, properties.condition);
	look_at_room(doctor, identity, &properties, &statistics, &usage);
	look_at_quarantine(doctor, identity, &usage);
	for (i = 0; i < usage.accounts; i++)
		look_at_account(doctor, identity, &accounts[i]);
	flexmem_accounts_free(accounts);
	return 0;
}

static void look_at_function(struct doctor *doctor,
			     const struct flexmem_identity *identity)
{
	struct flexmem_device *device;
	int err;

	look_at_node(doctor, identity);
	err = flexmem_device_open(&device, identity->path);
	if (!err) {
		err = look_into(doctor, identity, device);
		flexmem_device_close(device);
	}
	if (err)
		find_closed(doctor, identity, err);
}

void doctor_functions(struct doctor *doctor)
{
	struct fmlib_functions functions;
	size_t i;
	int err = fmlib_functions_list(&functions, false);

	if (err) {
		doctor_find(doctor, DOCTOR_ERROR, "no-list", NULL,
			    "look at the rights of /dev",
			    "the functions cannot be listed: %s",
			    strerror(-err));
		return;
	}
	for (i = 0; i < functions.count; i++)
		look_at_function(doctor, &functions.list[i]);
	doctor->functions = functions.count;
	if (!functions.count && host_exists("/sys/module/flexmem"))
		doctor_find(doctor, DOCTOR_ERROR, "no-function", NULL,
			    "load the driver of your device, and see the kernel's log; for VFs see the page 'SR-IOV'",
			    "flexmem.ko is loaded, but no device has a function");
	free(functions.list);
}
