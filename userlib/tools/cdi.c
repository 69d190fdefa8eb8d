// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/*
 * Writes and reads CDI files. podman 4.3 refuses a file with a key that it does not
 * know, so the files have what version 0.5.0 has and no more. The number of a
 * device node is not among it: engines do not check it, and after a rebind another
 * function may have it. The arguments of the hook have all that the hook and a
 * later refresh need.
 */
#include "cdi.h"
#include "functions.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef CDI_DIR
#define CDI_DIR "/etc/cdi"
#define CDI_RUN_DIR "/var/run/cdi"
#endif
#define HOOK "flexmem-cdi-hook"
#define HOOK_NAME "createRuntime"

static const char *const folders[CDI_FOLDERS] = {
	[CDI_PERMANENT] = CDI_DIR,
	[CDI_TRANSIENT] = CDI_RUN_DIR,
};

static const char *kind_of(bool unlimited)
{
	return unlimited ? "vf" : "share";
}

bool cdi_is_name(const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	size_t length = strlen(name);

	return length && length <= CDI_NAME_MAX && strchr(letters, name[0]) &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-") ==
		       length;
}

void cdi_path(const struct cdi_share *share, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/flexmem.org-%s-%s.json",
		 folders[share->folder], kind_of(share->unlimited),
		 share->name);
}

static void append(json_t *array, json_t *value)
{
	if (json_array_append_new(array, json_checked(value)))
		json_checked(NULL);
}

static void append_number(json_t *array, const char *option, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	append(array, json_string(option));
	append(array, json_string(text));
}

/* The hook is in libexec, beside the directory of this command. */
static json_t *hook_path(void)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *end;
	int cut;

	path[length < 0 ? 0 : length] = '\0';
	for (cut = 0; cut < 2 && (end = strrchr(path, '/')); cut++)
		*end = '\0';
	return json_sprintf("%s/libexec/flexmem/" HOOK, path);
}

static json_t *hook_arguments(const struct cdi_share *share)
{
	json_t *array = json_checked(json_array());

	append(array, json_string(HOOK));
	append(array, json_string("--share"));
	append(array, json_string(share->name));
	append(array, json_string("--function"));
	append(array, json_string(share->function));
	append(array, json_string("--node"));
	append(array, json_string(share->node));
	if (share->pod)
		append(array, json_string("--pod"));
	if (share->unlimited)
		append(array, json_string("--unlimited"));
	else
		append_number(array, "--bytes", share->bytes);
	if (share->regions)
		append_number(array, "--regions", share->regions);
	if (share->handles)
		append_number(array, "--handles", share->handles);
	return array;
}

static json_t *one(json_t *value)
{
	json_t *array = json_checked(json_array());

	append(array, value);
	return array;
}

static json_t *json_hook(const struct cdi_share *share)
{
	json_t *object = json_checked(json_object());

	json_add(object, "hookName", json_string(HOOK_NAME));
	json_add(object, "path", hook_path());
	json_add(object, "args", hook_arguments(share));
	json_add(object, "env", one(json_string("PATH=/usr/sbin:/usr/bin:/sbin:/bin")));
	json_add(object, "timeout", json_number(10));
	return object;
}

static json_t *json_node(const struct cdi_share *share)
{
	json_t *object = json_checked(json_object());

	json_add(object, "path", json_string(share->node));
	json_add(object, "hostPath", json_string(share->node));
	json_add(object, "permissions", json_string("rw"));
	json_add(object, "fileMode", json_number(share->mode));
	json_add(object, "gid", json_number(share->gid));
	return object;
}

static json_t *json_file(const struct cdi_share *share)
{
	json_t *edits = json_checked(json_object());
	json_t *device = json_checked(json_object());
	json_t *object = json_checked(json_object());

	json_add(edits, "deviceNodes", one(json_node(share)));
	json_add(edits, "hooks", one(json_hook(share)));
	json_add(device, "name", json_string(share->name));
	json_add(device, "containerEdits", edits);
	json_add(object, "cdiVersion", json_string("0.5.0"));
	json_add(object, "kind",
		 json_sprintf("flexmem.org/%s", kind_of(share->unlimited)));
	json_add(object, "devices", one(device));
	return object;
}

/* The name under which the file of a share is written. */
static void temporary_path(const struct cdi_share *share, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/.flexmem.org-%s-%s.json",
		 folders[share->folder], kind_of(share->unlimited),
		 share->name);
}

/*
 * Writes the file under another name, and renames it. If the command is killed,
 * the other name stays until the next write or removal of this share.
 */
static int write_locked(const char *path, const char *temporary,
			json_t *object)
{
	FILE *file;
	int fd, err = 0;

	fd = open(temporary,
		  O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	file = fdopen(fd, "w");
	if (!file || fchmod(fd, 0644) ||
	    json_dumpf(object, file, JSON_INDENT(2)) ||
	    fputc('\n', file) == EOF || fflush(file) || fsync(fd))
		err = -(errno ? errno : EIO);
	if (file ? fclose(file) : close(fd))
		err = err ? err : -errno;
	if (!err && rename(temporary, path))
		err = -errno;
	if (err)
		unlink(temporary);
	return err;
}

static int write_file(const struct cdi_share *share, const char *path,
		      json_t *object)
{
	char temporary[PATH_MAX];
	int err, lock;

	temporary_path(share, temporary);
	lock = open(folders[share->folder],
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock < 0)
		return -errno;
	err = flock(lock, LOCK_EX) ? -errno :
				     write_locked(path, temporary, object);
	close(lock);
	return err;
}

int cdi_write(const struct cdi_share *share, bool replace)
{
	struct cdi_share other = *share;
	char path[PATH_MAX], there[PATH_MAX];
	json_t *object, *old;
	bool same;
	int err;

	other.folder = CDI_FOLDERS - 1 - share->folder;
	cdi_path(share, path);
	cdi_path(&other, there);
	/* If both folders have a share, one of them wins silently. */
	if (!access(there, F_OK))
		return -EEXIST;
	if (mkdir(folders[share->folder], 0755) && errno != EEXIST)
		return -errno;
	object = json_file(share);
	old = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
	same = old && json_equal(old, object);
	json_decref(old);
	if (same)
		err = 0;
	else if (!replace && !access(path, F_OK))
		err = -EEXIST;
	else
		err = write_file(share, path, object);
	json_decref(object);
	return err;
}

int cdi_remove(const char *name, bool unlimited)
{
	struct cdi_share share = { .unlimited = unlimited };
	char path[PATH_MAX];
	int folder;

	snprintf(share.name, sizeof(share.name), "%s", name);
	for (folder = 0; folder < CDI_FOLDERS; folder++) {
		share.folder = (enum cdi_folder)folder;
		cdi_path(&share, path);
		if (unlink(path) && errno != ENOENT)
			return -errno;
		temporary_path(&share, path);
		if (unlink(path) && errno != ENOENT)
			return -errno;
	}
	return 0;
}

/* Reads the amount of one option. */
static bool read_amount(struct cdi_share *share, const char *option,
			const char *value)
{
	uint64_t *amount = !strcmp(option, "--bytes") ? &share->bytes :
			   !strcmp(option, "--regions") ? &share->regions :
			   !strcmp(option, "--handles") ? &share->handles :
			   NULL;

	return amount && parse_number(value, UINT64_MAX, amount) && *amount;
}

/*
 * Reads one argument of the hook. Returns how many elements of the array it has; 0
 * if hook_arguments() would not write it.
 */
static size_t read_argument(struct cdi_share *share, const char *option,
			    const char *value)
{
	if (!strcmp(option, "--pod")) {
		share->pod = true;
		return 1;
	}
	if (!strcmp(option, "--unlimited")) {
		share->unlimited = true;
		return 1;
	}
	if (!value)
		return 0;
	if (!strcmp(option, "--function") && !share->function)
		share->function = copy_text(value);
	else if (!strcmp(option, "--node") && !share->node)
		share->node = copy_text(value);
	else if (!strcmp(option, "--share") && cdi_is_name(value))
		strcpy(share->name, value);
	else if (!read_amount(share, option, value))
		return 0;
	return 2;
}

static const char *text_at(json_t *array, size_t at)
{
	return json_string_value(json_array_get(array, at));
}

/* The only element of an array; or NULL. */
static json_t *only(json_t *array)
{
	return json_array_size(array) == 1 ? json_array_get(array, 0) : NULL;
}

static bool is_text(json_t *value, const char *text)
{
	return json_is_string(value) && !strcmp(json_string_value(value), text);
}

/* Whether the value is a text that ends like this. */
static bool ends_with(json_t *value, const char *end)
{
	const char *text = json_string_value(value);

	return text && strlen(text) >= strlen(end) &&
	       !strcmp(text + strlen(text) - strlen(end), end);
}

/*
 * Reads the share of a file. Returns false if it is no file of cdi_write(): any
 * part of such a file may be missing, or be of another kind.
 */
static bool read_file(const char *path, struct cdi_share *share)
{
	json_t *object = json_load_file(path, 0, NULL);
	json_t *device = only(json_object_get(object, "devices"));
	json_t *hook = only(json_object_get(
		json_object_get(device, "containerEdits"), "hooks"));
	json_t *arguments = json_object_get(hook, "args");
	size_t at = 1, step = 1;
	bool good;

	for (; step && text_at(arguments, at); at += step)
		step = read_argument(share, text_at(arguments, at),
				     text_at(arguments, at + 1));
	good = share->name[0] && share->function && share->node &&
	       share->unlimited == !share->bytes &&
	       step && at == json_array_size(arguments) &&
	       is_text(json_array_get(arguments, 0), HOOK) &&
	       is_text(json_object_get(hook, "hookName"), HOOK_NAME) &&
	       ends_with(json_object_get(hook, "path"), "/" HOOK) &&
	       is_text(json_object_get(device, "name"), share->name);
	json_decref(object);
	return good;
}

/* Whether cdi_write() would write this file, and no other, for the share. */
static bool is_own(const struct cdi_share *share, const char *path)
{
	char own[PATH_MAX];

	cdi_path(share, own);
	return !strcmp(path, own);
}

/* Adds the shares of one folder. A folder that does not exist has none. */
static int read_folder(enum cdi_folder folder, struct cdi_share **shares,
		       size_t *count)
{
	DIR *directory = opendir(folders[folder]);
	const struct dirent *file;
	struct cdi_share *share;
	char path[PATH_MAX];

	if (!directory)
		return errno == ENOENT ? 0 : -errno;
	while ((file = readdir(directory))) {
		if (strncmp(file->d_name, "flexmem.org-", 12) ||
		    snprintf(path, sizeof(path), "%s/%s", folders[folder],
			     file->d_name) >= (int)sizeof(path))
			continue;
		*shares = grow(*shares, *count + 1, sizeof(**shares));
		share = &(*shares)[*count];
		*share = (struct cdi_share){ .folder = folder };
		if (read_file(path, share) && is_own(share, path))
			(*count)++;
		else
			cdi_clear(share, 1);
	}
	closedir(directory);
	return 0;
}

int cdi_read_all(struct cdi_share **shares, size_t *count)
{
	int folder, err = 0;

	*shares = grow(NULL, 1, sizeof(**shares));
	*count = 0;
	for (folder = 0; folder < CDI_FOLDERS && !err; folder++)
		err = read_folder((enum cdi_folder)folder, shares, count);
	return err;
}

void cdi_clear(struct cdi_share *shares, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		free(shares[i].function);
		free(shares[i].node);
	}
}

int cdi_find_node(struct cdi_share *share)
{
	struct fmlib_functions functions;
	struct stat state;
	size_t i;
	int err = fmlib_functions_list(&functions, false);

	if (err)
		return err;
	err = -ENODEV;
	for (i = 0; i < functions.count && err; i++) {
		if (strcmp(functions.list[i].id, share->function) ||
		    stat(functions.list[i].path, &state))
			continue;
		free(share->node);
		share->node = copy_text(functions.list[i].path);
		share->gid = state.st_gid;
		/* The node may be closed until udev's units are done with it. */
		share->mode = state.st_gid ? 0660 : 0600;
		err = 0;
	}
	free(functions.list);
	return err;
}
