// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * The functions whose nodes are in /dev, in an order that stays.
 *
 * The number in a node's name changes when a driver is unbound and bound. The
 * address of the function's device stays, so it gives the order and the id.
 * Sysfs has the address. A container may have other names for nodes than its
 * host, so sysfs is asked by device number and not by name.
 */
#define _GNU_SOURCE
#include "functions.h"
#include "internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DEVICE_DIR "/dev"
#define DEVICE_STEM "flexmem"
/* Twice as many VFs as a PF with SR-IOV can have. */
#define MAX_VFS 0x20000
#define NO_VF UINT_MAX

/*
 * Returns the number in the name of a node, or -1 if it is not the name of a
 * flexmem node.
 */
static long node_number(const char *name)
{
	size_t stem = strlen(DEVICE_STEM);
	const char *digit;

	if (strncmp(name, DEVICE_STEM, stem))
		return -1;
	/* The kernel writes no leading zeros. A minor number has 20 bits. */
	if (!name[stem] || (name[stem] == '0' && name[stem + 1]) ||
	    strlen(name + stem) > 7)
		return -1;
	for (digit = name + stem; *digit; digit++) {
		if (!isdigit((unsigned char)*digit))
			return -1;
	}
	return strtol(name + stem, NULL, 10);
}

/* Copies the last part of a path; an empty string if it is too long. */
static void last_part(char *to, size_t size, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	to[0] = '\0';
	if (strlen(name) < size)
		strcpy(to, name);
}

/* Follows a link in sysfs, and copies the last part of what it leads to. */
static bool follow(const char *directory, const char *link, char *to,
		   size_t size)
{
	char path[PATH_MAX], end[PATH_MAX];
	ssize_t length;

	to[0] = '\0';
	if (snprintf(path, sizeof(path), "%s/%s", directory, link) >=
	    (int)sizeof(path))
		return false;
	length = readlink(path, end, sizeof(end) - 1);
	if (length <= 0)
		return false;
	end[length] = '\0';
	last_part(to, size, end);
	return to[0];
}

/*
 * Whether the VF in @device, with this address, has this number. Clears @exists
 * if its PF has no such VF.
 */
static bool has_number(const char *device, const char *address,
		       unsigned int number, bool *exists)
{
	char link[32 + sizeof("physfn/virtfn")];
	char other[sizeof(((struct flexmem_identity *)0)->address)];

	snprintf(link, sizeof(link), "physfn/virtfn%u", number);
	*exists = follow(device, link, other, sizeof(other));
	return *exists && !strcmp(other, address);
}

/*
 * Finds the number that the PF gives the VF in @device with this address. Looks
 * from @near on in both directions, because the nodes of VFs mostly follow each
 * other, and a PF may have many.
 */
static unsigned int vf_number(const char *device, const char *address,
			      unsigned int near)
{
	bool above = true, below;
	unsigned int step;

	for (step = 0; step < MAX_VFS; step++) {
		if (above && has_number(device, address, near + step, &above))
			return near + step;
		if (step <= near &&
		    has_number(device, address, near - step, &below))
			return near - step;
		if (!above && step > near)
			break;
	}
	return NO_VF;
}

/* Reads whether the function is a PF. Without sysfs this stays a VF. */
static enum flexmem_function read_function(const char *directory)
{
	char path[128];
	char mode[2];
	bool pf;
	int fd;

	snprintf(path, sizeof(path), "%s/mode", directory);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return FLEXMEM_VF;
	pf = read(fd, mode, sizeof(mode)) == sizeof(mode) &&
	     !memcmp(mode, "pf", sizeof(mode));
	close(fd);
	return pf ? FLEXMEM_PF : FLEXMEM_VF;
}

/*
 * Fills in what sysfs says of a function. The id is the bus and the address of
 * the function's device. The id of a VF on PCI is the address of its PF and its
 * own number there, because VFs have no bus addresses while SR-IOV is off.
 * @number: the VF's number, or NO_VF; on entry that of a VF nearby.
 */
static void identify(struct flexmem_identity *function, unsigned int major,
		     unsigned int minor, unsigned int *number)
{
	char directory[64], device[sizeof(directory) + sizeof("/device")];
	unsigned int near = *number == NO_VF ? 0 : *number;

	snprintf(directory, sizeof(directory), "/sys/dev/char/%u:%u", major,
		 minor);
	snprintf(device, sizeof(device), "%s/device", directory);
	function->function = read_function(directory);
	*number = NO_VF;
	if (!follow(directory, "device", function->address,
		    sizeof(function->address)) ||
	    !follow(device, "subsystem", function->bus, sizeof(function->bus)))
		return;
	follow(device, "driver", function->driver, sizeof(function->driver));
	if (follow(device, "physfn", function->parent,
		   sizeof(function->parent)))
		*number = vf_number(device, function->address, near);
	if (*number != NO_VF)
		snprintf(function->id, sizeof(function->id), "%s-%s-vf%u",
			 function->bus, function->parent, *number);
	else
		snprintf(function->id, sizeof(function->id), "%s-%s",
			 function->bus, function->address);
}

/* A function with the keys of its place in the list. */
struct entry {
	struct flexmem_identity identity;
	unsigned int vf;
	long node;
};

/* An address on PCI has as many digits as any other, but no other address. */
static int compare_addresses(const struct flexmem_identity *a,
			     const struct flexmem_identity *b)
{
	const char *left = *a->parent ? a->parent : a->address;
	const char *right = *b->parent ? b->parent : b->address;
	int bus = strcmp(a->bus, b->bus);

	if (bus)
		return bus;
	return strcmp(a->bus, "pci") ? strverscmp(left, right) :
				       strcmp(left, right);
}

static int compare(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	int order;

	/* VFs come first, because programs use VFs. */
	if (a->identity.function != b->identity.function)
		return a->identity.function == FLEXMEM_VF ? -1 : 1;
	order = compare_addresses(&a->identity, &b->identity);
	if (order)
		return order;
	if (a->vf != b->vf)
		return a->vf < b->vf ? -1 : 1;
	return (a->node > b->node) - (a->node < b->node);
}

/* Adds the function of one node. A node that is gone by now is left out. */
static int add(struct entry **entries, size_t *count, size_t *room, long node)
{
	struct entry *entry, *more;
	struct stat status;

	if (*count == *room) {
		more = realloc(*entries, (*room + 16) * sizeof(**entries));
		if (!more)
			return -ENOMEM;
		*entries = more;
		*room += 16;
	}
	entry = &(*entries)[*count];
	memset(entry, 0, sizeof(*entry));
	snprintf(entry->identity.path, sizeof(entry->identity.path),
		 DEVICE_DIR "/" DEVICE_STEM "%ld", node);
	if (stat(entry->identity.path, &status) || !S_ISCHR(status.st_mode))
		return 0;
	entry->node = node;
	entry->vf = *count ? entry[-1].vf : NO_VF;
	identify(&entry->identity, major(status.st_rdev),
		 minor(status.st_rdev), &entry->vf);
	/* Without sysfs the name of the node is all that is known. */
	if (!*entry->identity.id)
		snprintf(entry->identity.id, sizeof(entry->identity.id),
			 DEVICE_STEM "%ld", node);
	(*count)++;
	return 0;
}

static int read_nodes(struct entry **entries, size_t *count)
{
	struct dirent *file;
	size_t room = 0;
	long node;
	DIR *dir;
	int err = 0;

	*entries = NULL;
	*count = 0;
	dir = opendir(DEVICE_DIR);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (!err && (file = readdir(dir))) {
		node = node_number(file->d_name);
		if (node >= 0)
			err = add(entries, count, &room, node);
	}
	closedir(dir);
	if (err) {
		free(*entries);
		*entries = NULL;
		return err;
	}
	if (*count)
		qsort(*entries, *count, sizeof(**entries), compare);
	return 0;
}

/* Finds the function that one word of FLEXMEM_VISIBLE_DEVICES names. */
static bool find(const struct fmlib_functions *all, const char *word,
		 size_t length, size_t *at)
{
	char name[sizeof(((struct flexmem_identity *)0)->id)];
	char *end;

	if (!length || length >= sizeof(name))
		return false;
	memcpy(name, word, length);
	name[length] = '\0';
	if (isdigit((unsigned char)name[0])) {
		errno = 0;
		*at = strtoul(name, &end, 10);
		return !*end && !errno && *at < all->count;
	}
	for (*at = 0; *at < all->count; (*at)++) {
		if (!strcmp(all->list[*at].id, name))
			return true;
	}
	return false;
}

/*
 * Keeps the functions that @names has, in its order. The list ends at a word
 * that names no function, or one that was named before, as the lists of other
 * accelerators do.
 */
static int choose(struct fmlib_functions *all, const char *names)
{
	struct flexmem_identity *chosen;
	bool *taken;
	size_t count = 0, length, at;

	chosen = calloc(all->count + 1, sizeof(*chosen));
	taken = calloc(all->count + 1, sizeof(*taken));
	if (!chosen || !taken) {
		free(chosen);
		free(taken);
		return -ENOMEM;
	}
	for (;; names += length + 1) {
		names += strspn(names, " \t");
		length = strcspn(names, ", \t");
		if (!find(all, names, length, &at) || taken[at])
			break;
		taken[at] = true;
		chosen[count++] = all->list[at];
		length += strspn(names + length, " \t");
		if (names[length] != ',')
			break;
	}
	free(taken);
	free(all->list);
	all->list = chosen;
	all->count = count;
	return 0;
}

int fmlib_functions_list(struct fmlib_functions *functions, bool visible)
{
	/* The user of a setuid program must not choose the functions. */
	const char *names = secure_getenv("FLEXMEM_VISIBLE_DEVICES");
	struct entry *entries;
	size_t i;
	int err;

	*functions = (struct fmlib_functions){ 0 };
	err = read_nodes(&entries, &functions->count);
	if (err)
		return err;
	functions->list = calloc(functions->count + 1,
				 sizeof(*functions->list));
	if (functions->list) {
		for (i = 0; i < functions->count; i++)
			functions->list[i] = entries[i].identity;
		err = visible && names ? choose(functions, names) : 0;
	}
	free(entries);
	if (!functions->list || err) {
		free(functions->list);
		*functions = (struct fmlib_functions){ 0 };
		return -ENOMEM;
	}
	return 0;
}

int flexmem_device_count(unsigned int *count)
{
	struct fmlib_functions functions;
	int err;

	if (!count)
		return -EINVAL;
	err = fmlib_functions_list(&functions, true);
	if (err)
		return err;
	*count = (unsigned int)functions.count;
	free(functions.list);
	return 0;
}

int flexmem_device_identity(unsigned int index,
			    struct flexmem_identity *identity, size_t size)
{
	struct fmlib_functions functions;
	int err;

	err = fmlib_functions_list(&functions, true);
	if (err)
		return err;
	if (index < functions.count)
		err = fmlib_copy_out(identity, size, FMLIB_IDENTITY_MIN,
				     &functions.list[index],
				     sizeof(functions.list[index]));
	else
		err = -ENODEV;
	free(functions.list);
	return err;
}

int flexmem_device_open_index(struct flexmem_device **device,
			      unsigned int index)
{
	struct flexmem_identity identity;
	int err;

	if (!device)
		return -EINVAL;
	err = flexmem_device_identity(index, &identity, sizeof(identity));
	return err ? err : flexmem_device_open(device, identity.path);
}
