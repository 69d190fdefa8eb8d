// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* Texts of errors. */
#define _GNU_SOURCE
#include "internal.h"
#include "cgroup_mount.h"
#include "escape.h"
#include "human.h"
#include "version.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Room for a number, or for a size. */
#define AMOUNT_TEXT 24

const char *flexmem_limit_name(uint32_t limit)
{
	static const char *const names[] = {
		[FLEXMEM_LIMIT_NONE] = "none",
		[FLEXMEM_LIMIT_CAPACITY] = "capacity",
		[FLEXMEM_LIMIT_SLOTS] = "slots",
		[FLEXMEM_LIMIT_MAX_REGIONS] = "max_regions",
		[FLEXMEM_LIMIT_FRAGMENTATION] = "fragmentation",
		[FLEXMEM_LIMIT_REGION_SIZE] = "region_size",
		[FLEXMEM_LIMIT_HANDLES] = "handles",
		[FLEXMEM_LIMIT_CGROUP_REGIONS] = "cgroup_regions",
		[FLEXMEM_LIMIT_CGROUP] = "cgroup_limit",
		[FLEXMEM_LIMIT_ALIGNMENT] = "alignment",
		[FLEXMEM_LIMIT_RESERVED] = "reserved",
	};

	switch (limit) {
	case FLEXMEM_LIMIT_NO_LENGTH:
		return "no_length";
	case FLEXMEM_LIMIT_ALIGNMENT_POWER:
		return "alignment_power";
	case FLEXMEM_LIMIT_ALIGNMENT_MAX:
		return "alignment_max";
	case FLEXMEM_LIMIT_DOMAINS:
		return "domains";
	default:
		return limit < sizeof(names) / sizeof(names[0]) ? names[limit] :
		       "unknown";
	}
}

static void slots_text(const struct flexmem_failure *failure,
		       char text[FMLIB_LIMIT_TEXT])
{
	if (!failure->program_slots)
		snprintf(text, FMLIB_LIMIT_TEXT, "no slot left (%u of %u used)",
			 failure->regions, failure->slots);
	else if (failure->flags & FLEXMEM_PROGRAM)
		snprintf(text, FMLIB_LIMIT_TEXT,
			 "no slot for programs left (%u of the %u slots are set aside)",
			 failure->program_slots, failure->slots);
	else
		snprintf(text, FMLIB_LIMIT_TEXT,
			 "no slot left (%u of %u used, %u kept for programs)",
			 failure->regions, failure->slots,
			 failure->program_slots);
}

/* The longest path of a cgroup that a text names, escaped. */
#define PATH_TEXT 192

/*
 * Writes " of " and the cgroup's path to @text, as the caller sees it; or nothing if
 * the path is not known or too long.
 */
static void path_text(uint64_t cgroup, char text[PATH_TEXT])
{
	char escaped[FMLIB_ESCAPED_MAX];
	size_t length = 0;
	size_t at = 0;
	char path[PATH_MAX];
	int room;

	*text = '\0';
	if (!cgroup || !fmlib_cgroup_above(cgroup, path))
		return;
	length = (size_t)snprintf(text, PATH_TEXT, " of ");
	while (path[at] && length < PATH_TEXT) {
		at += fmlib_escape(path + at, strlen(path + at), escaped);
		room = (int)(PATH_TEXT - length);
		length += (size_t)snprintf(text + length, (size_t)room, "%s",
					   escaped);
	}
	if (length >= PATH_TEXT)
		*text = '\0';
}

/* Prints an amount of the resource that the limit is of. */
static const char *amount_text(const struct flexmem_failure *failure,
			       uint64_t amount, char text[AMOUNT_TEXT])
{
	if (failure->charge == FLEXMEM_CHARGE_BYTES)
		return fmlib_human(amount, text);
	snprintf(text, AMOUNT_TEXT, "%llu", (unsigned long long)amount);
	return text;
}

static const char *unit_text(const struct flexmem_failure *failure)
{
	switch (failure->charge) {
	case FLEXMEM_CHARGE_BYTES:
		return "";
	case FLEXMEM_CHARGE_REGIONS:
		return " regions";
	default:
		return " allocations";
	}
}

static void quota_text(const struct flexmem_failure *failure,
		       char text[FMLIB_LIMIT_TEXT])
{
	const char *unit = unit_text(failure);
	char path[PATH_TEXT];
	char limit[AMOUNT_TEXT];
	char used[AMOUNT_TEXT];

	if (failure->quota != FLEXMEM_UNLIMITED) {
		path_text(failure->quota_cgroup, path);
		snprintf(text, FMLIB_LIMIT_TEXT,
			 "cgroup limit%s (%s of %s%s used: see sudo flexmem owners)",
			 path, amount_text(failure, failure->quota_used, used),
			 amount_text(failure, failure->quota, limit), unit);
	} else if (failure->quota_left != FLEXMEM_UNLIMITED) {
		snprintf(text, FMLIB_LIMIT_TEXT,
			 "a limit above this container (%s%s left: see sudo flexmem owners)",
			 amount_text(failure, failure->quota_left, limit), unit);
	} else {
		snprintf(text, FMLIB_LIMIT_TEXT, "cgroup limit%s",
			 failure->limit == FLEXMEM_LIMIT_CGROUP_REGIONS ?
				 " of regions" : "");
	}
}

/* Prints why the driver could not acquire a further region, if that matters. */
static const char *region_text(const struct flexmem_failure *failure)
{
	switch (failure->region_limit) {
	case FLEXMEM_LIMIT_CAPACITY:
		return "; no memory for a region that is large enough";
	case FLEXMEM_LIMIT_SLOTS:
		return "; no slot for another region";
	case FLEXMEM_LIMIT_MAX_REGIONS:
		return "; max_regions allows no more";
	default:
		return "";
	}
}

/*
 * Says what determines the largest size. @max_handles is 0 if the driver did
 * not report the failure.
 */
static const char *size_text(const struct flexmem_failure *failure)
{
	return failure->max_handles ? ": see fallback_sizes" : "";
}

void fmlib_limit_text(const struct flexmem_failure *failure,
		      char text[FMLIB_LIMIT_TEXT])
{
	char size[FMLIB_HUMAN_MAX];

	switch (failure->limit) {
	case FLEXMEM_LIMIT_CAPACITY:
		snprintf(text, FMLIB_LIMIT_TEXT,
			 "the device has none left for a region that is large enough");
		break;
	case FLEXMEM_LIMIT_SLOTS:
		slots_text(failure, text);
		break;
	case FLEXMEM_LIMIT_MAX_REGIONS:
		snprintf(text, FMLIB_LIMIT_TEXT,
			 "no further region allowed (max_regions is %u)",
			 failure->max_regions);
		break;
	case FLEXMEM_LIMIT_FRAGMENTATION:
		snprintf(text, FMLIB_LIMIT_TEXT,
			 "fragmentation (enough is free, but in pieces%s)",
			 region_text(failure));
		break;
	case FLEXMEM_LIMIT_ALIGNMENT:
		snprintf(text, FMLIB_LIMIT_TEXT,
			 "alignment (it suits no piece that was tried%s)",
			 region_text(failure));
		break;
	case FLEXMEM_LIMIT_REGION_SIZE:
		snprintf(text, FMLIB_LIMIT_TEXT,
			 "no region can be that large (at most %s%s)",
			 fmlib_human(failure->max_region, size),
			 size_text(failure));
		break;
	case FLEXMEM_LIMIT_HANDLES:
		snprintf(text, FMLIB_LIMIT_TEXT,
			 "too many live allocations (at most %u for one open file)",
			 failure->max_handles);
		break;
	case FLEXMEM_LIMIT_CGROUP:
	case FLEXMEM_LIMIT_CGROUP_REGIONS:
		quota_text(failure, text);
		break;
	case FLEXMEM_LIMIT_RESERVED:
		snprintf(text, FMLIB_LIMIT_TEXT,
			 "the region with room is reserved for another cgroup");
		break;
	default:
		snprintf(text, FMLIB_LIMIT_TEXT, "limit %u of the driver",
			 failure->limit);
		break;
	}
}

static int memory_text(const struct flexmem_failure *failure, char *text,
		       size_t length)
{
	char limit[FMLIB_LIMIT_TEXT];
	char asked[32];
	char total[32];
	char largest[32];
	char human[FMLIB_HUMAN_MAX];
	char leaving[48] = "";
	char own[48] = "";

	fmlib_limit_text(failure, limit);
	snprintf(asked, sizeof(asked), "%s",
		 fmlib_human(failure->asked, human));
	snprintf(total, sizeof(total), "%s",
		 fmlib_human(failure->total_free, human));
	snprintf(largest, sizeof(largest), "%s",
		 fmlib_human(failure->largest_free, human));
	/* If both sizes would look equal, prints them in bytes. */
	if (failure->asked != failure->largest_free &&
	    !strcmp(asked, largest)) {
		snprintf(asked, sizeof(asked), "%llu B",
			 (unsigned long long)failure->asked);
		snprintf(largest, sizeof(largest), "%llu B",
			 (unsigned long long)failure->largest_free);
	}
	if (failure->leaving)
		snprintf(leaving, sizeof(leaving), "; %s leaving",
			 fmlib_human(failure->leaving, human));
	if (failure->own_used)
		snprintf(own, sizeof(own), "; own %s can be freed",
			 fmlib_human(failure->own_used, human));
	return snprintf(text, length,
			"out of device memory: %s; asked %s, free %s in %u %s, largest piece %s%s%s",
			limit, asked, total, failure->regions,
			failure->regions == 1 ? "region" : "regions", largest,
			leaving, own);
}

/* Returns false if it is not known which value is wrong. */
static bool invalid_text(const struct flexmem_failure *failure, char *text,
			 size_t length, int *needed)
{
	char human[FMLIB_HUMAN_MAX];

	fmlib_human(failure->asked, human);
	switch (failure->limit) {
	case FLEXMEM_LIMIT_NO_LENGTH:
		*needed = snprintf(text, length,
				   "invalid request: the length is 0");
		return true;
	case FLEXMEM_LIMIT_ALIGNMENT_POWER:
		*needed = snprintf(text, length,
				   "invalid request: the alignment of %llu bytes is not a power of two",
				   (unsigned long long)failure->asked);
		return true;
	case FLEXMEM_LIMIT_ALIGNMENT_MAX:
		*needed = snprintf(text, length,
				   "invalid request: the alignment of %s is above the largest of this device",
				   human);
		return true;
	case FLEXMEM_LIMIT_DOMAINS:
		*needed = snprintf(text, length,
				   "invalid request: the device does not have domains %#llx, or they are too few",
				   (unsigned long long)failure->asked);
		return true;
	default:
		return false;
	}
}

/* Texts for some errnos. Other errnos have the C library's text. */
static const char *errno_text(int error)
{
	switch (error) {
	case 0:
		return "success";
	case -ENOENT:
		return "no such allocation, range or binding of this open file";
	case -ENOMEM:
		return "out of host memory";
	case -EBADF:
		return "the device is not open for writing";
	case -EBUSY:
		return "a live allocation forbids the change, or it is in use";
	case -EAGAIN:
		return "what follows the allocation is taken, or there is no event";
	case -EPERM:
		return "only the administrator may do this";
	case -EACCES:
		return "no permission to open the device, whose node may be for a group";
	case -ENODEV:
		return "no such device (is its driver loaded?), or it is gone";
	case -ENOTTY:
		return "not a flexmem device, or its driver is too old";
	case -EINVAL:
		return "an argument is out of its range";
	case -EOPNOTSUPP:
		return "the device cannot do this, or its driver does not know it";
	case -ETIMEDOUT:
		return "the device's firmware did not answer in time";
	case -EIO:
		return "the device's firmware failed, or a reset lost the allocation";
	case -ECANCELED:
		return "the batch ended before its turn";
	default:
		/*
		 * Numbers below -4095 are no errno of the kernel, and INT_MIN
		 * cannot be negated.
		 */
		return error < -4095 ? NULL : strerrordesc_np(-error);
	}
}

/*
 * Describes an errno. If the driver does not know a command or a struct, the cause
 * may be a module of another version.
 */
static int plain_text(int error, char *text, size_t length)
{
	const bool unknown = error == -ENOTTY || error == -E2BIG ||
			     error == -EOPNOTSUPP;
	const char *description = errno_text(error);
	char version[FMLIB_VERSION_TEXT];

	if (!description)
		return snprintf(text, length, "error %lld", -(long long)error);
	if (unknown && fmlib_version_differs(version))
		return snprintf(text, length, "%s (%s)", description, version);
	return snprintf(text, length, "%s", description);
}

int flexmem_error_text(int error, const struct flexmem_failure *failure,
		       size_t size, char *text, size_t length)
{
	struct flexmem_failure known;
	int needed;
	int err;

	if (error > 0 || (!text && length))
		return -EINVAL;
	if (failure) {
		err = fmlib_copy_in(&known, sizeof(known), failure, size,
				    FMLIB_FAILURE_MIN);
		if (err)
			return err;
		/* The struct of an older caller has no members for limits. */
		if (size < FMLIB_SIZE_TO(struct flexmem_failure, quota_used))
			known.quota = FLEXMEM_UNLIMITED;
		if (size < FMLIB_SIZE_TO(struct flexmem_failure, quota_left))
			known.quota_left = FLEXMEM_UNLIMITED;
	}
	if (error == -ENOMEM && failure && known.limit != FLEXMEM_LIMIT_NONE) {
		needed = memory_text(&known, text, length);
	} else if (error != -EINVAL || !failure ||
		   !invalid_text(&known, text, length, &needed)) {
		needed = plain_text(error, text, length);
	}
	return needed >= 0 && (size_t)needed < length ? 0 : -EMSGSIZE;
}
