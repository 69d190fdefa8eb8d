// SPDX-License-Identifier: GPL-2.0
/* Open files. A call fails the test if its answer is not allowed. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "torture.h"

struct file *file_adopt(int fd, unsigned int vf, uint64_t identity)
{
	struct file *file = calloc(1, sizeof(*file));

	if (!file) {
		fail("no memory for a file");
		close(fd);
		return NULL;
	}
	file->fd = fd;
	file->vf = vf;
	file->identity = identity;
	file->refs = 1;
	return file;
}

struct file *file_open(unsigned int vf)
{
	int fd = open_node(atomic_load(&shared->node[vf]));

	/*
	 * The device may have been removed, or its node may not be accessible
	 * yet.
	 */
	if (fd < 0) {
		if (errno != ENODEV && errno != ENXIO && errno != ENOENT &&
		    errno != EACCES)
			fail("open: %s", strerror(errno));
		return NULL;
	}
	/* A number is used again only long after its file was closed. */
	return file_adopt(fd, vf,
			  identity(atomic_fetch_add(&shared->files, 1)));
}

struct file *file_get(struct file *file)
{
	atomic_fetch_add(&file->refs, 1);
	return file;
}

void file_put(struct file *file)
{
	if (!file || atomic_fetch_sub(&file->refs, 1) != 1)
		return;
	if (file->fd >= 0)
		close(file->fd);
	free(file);
}

/*
 * Returns the file that all threads of the worker share. Opens a new one if
 * there is none, or if its device was removed.
 */
static struct file *file_common(struct thread *t)
{
	struct worker *w = t->worker;
	struct file *file;

	pthread_mutex_lock(&w->lock);
	if (w->common && atomic_load(&w->common->gone)) {
		file_put(w->common);
		w->common = NULL;
	}
	if (!w->common)
		w->common = file_open(w->slot % NR_VFS);
	file = w->common ? file_get(w->common) : NULL;
	pthread_mutex_unlock(&w->lock);
	return file;
}

struct file *file_pick(struct thread *t)
{
	unsigned int i = rng_below(&t->rng, MAX_OWN_FILES + 1);

	if (i == MAX_OWN_FILES)
		return file_common(t);
	if (t->own[i] && atomic_load(&t->own[i]->gone)) {
		file_put(t->own[i]);
		t->own[i] = NULL;
	}
	if (!t->own[i])
		t->own[i] = file_open(rng_below(&t->rng, NR_VFS));
	return t->own[i] ? file_get(t->own[i]) : NULL;
}

bool judge(struct file *file, const char *what, int error, unsigned int may)
{
	switch (error) {
	case 0:
		return true;
	case ENODEV:
		if (!atomic_exchange(&file->gone, true))
			count(COUNT_GONE, 1);
		return true;
	case EIO:
	case ETIMEDOUT:
		count(COUNT_FIRMWARE, 1);
		if (may & MAY_FIRMWARE || (error == EIO && may & MAY_EIO))
			return true;
		break;
	case ENOMEM:
		if (may & MAY_NOMEM)
			return true;
		break;
	case EINVAL:
		if (may & MAY_EINVAL)
			return true;
		break;
	case EAGAIN:
		if (may & MAY_EAGAIN)
			return true;
		break;
	case EBUSY:
		if (may & MAY_EBUSY)
			return true;
		break;
	}
	fail("%s: %s", what, strerror(error));
	return false;
}

/* Makes a call on a file. @may: errors that are allowed. Returns the errno. */
int call(struct file *file, const char *what, unsigned long cmd, void *arg,
	 unsigned int may)
{
	bool gone = atomic_load(&file->gone);
	int error = fm_ioctl(file->fd, cmd, arg);

	atomic_fetch_add(&shared->ops, 1);
	judge(file, what, error, may);
	if (gone && error != ENODEV)
		fail("%s: %s after the device had gone", what, strerror(error));
	return error;
}

bool op_open(struct thread *t)
{
	unsigned int i = rng_below(&t->rng, MAX_OWN_FILES);

	if (t->own[i])
		return false;
	t->own[i] = file_open(rng_below(&t->rng, NR_VFS));
	return t->own[i];
}

/*
 * Closes a file, which frees its allocations. A mapping keeps the file and the
 * mapped bytes until it is unmapped.
 */
bool op_close(struct thread *t)
{
	struct file **slot = &t->own[rng_below(&t->rng, MAX_OWN_FILES)];
	struct file *file = *slot;
	unsigned int i;

	if (!file)
		return false;
	*slot = NULL;
	for (i = t->nr_objects; i-- > 0;) {
		struct object *o = &t->object[i];

		if (o->file != file)
			continue;
		if (o->map)
			o->freed = true;
		else
			object_forget(t, o);
	}
	close(file->fd);
	file->fd = -1;
	file_put(file);
	return true;
}
