// SPDX-License-Identifier: GPL-2.0
/*
 * fork(), and files sent to other processes. The process that receives a file
 * also gets the allocations of the file. The bytes in them still belong to the
 * process that opened the file.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

/*
 * Runs in a child, which has copies of all objects. It may only write bytes
 * that are there already, because the parent checks them.
 */
static void child_run(struct thread *t)
{
	unsigned int i, n = 1 + rng_below(&t->rng, 12);
	unsigned int before;

	for (i = 0; i < n && !atomic_load(&shared->stop); i++) {
		switch (rng_below(&t->rng, 5)) {
		case 0:
			op_write(t);
			break;
		case 1:
			op_unmap(t);
			break;
		case 2:
			op_map(t);
			break;
		case 3:
			before = t->nr_objects;
			if (op_alloc(t) && t->nr_objects > before) {
				struct object *o = &t->object[before];
				struct flexmem_free free =
					CMD(free, .handle = o->handle);

				call(o->file, "FREE in a child",
				     FLEXMEM_IOCTL_FREE, &free, 0);
				object_forget(t, o);
			}
			break;
		default:
			op_verify(t);
		}
	}
}

bool op_fork(struct thread *t)
{
	struct worker *w = t->worker;
	bool kill_it = rng_one_in(&t->rng, 2);
	int status;
	pid_t pid;

	/* Without an object a child would inherit nothing worth a test. */
	if (!t->nr_objects)
		return false;
	/* Held during fork(), so that no other thread holds it in the child. */
	pthread_mutex_lock(&w->lock);
	pid = fork();
	pthread_mutex_unlock(&w->lock);
	if (pid < 0) {
		fail("fork: %s", strerror(errno));
		return false;
	}
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		child_run(t);
		_exit(0);
	}
	if (kill_it) {
		usleep(rng_below(&t->rng, 5000));
		kill(pid, SIGKILL);
	}
	if (waitpid(pid, &status, 0) != pid || (status && !kill_it) ||
	    (status && (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)))
		fail("a forked process ended with status %#x", status);
	return true;
}

/* ---- descriptors that are passed over a socket ---- */

struct parcel {
	uint64_t identity;
	unsigned int vf;
	unsigned int nr;
	struct {
		struct flexmem_address address;
		uint64_t size;
		uint32_t handle, flags, nonce;
		unsigned int upheavals;
		bool written, lost;
	} item[MAX_OBJECTS];
};

union fd_message {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static bool parcel_send(const struct parcel *parcel, int fd)
{
	union fd_message control = {};
	struct iovec iov = { (void *)parcel, sizeof(*parcel) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&msg);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(shared->sockets[0], &msg, MSG_DONTWAIT) ==
	       sizeof(*parcel);
}

/* Receives a descriptor. Returns -1 if none is waiting. */
static int parcel_receive(struct parcel *parcel)
{
	union fd_message control = {};
	struct iovec iov = { parcel, sizeof(*parcel) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;
	int fd;

	if (recvmsg(shared->sockets[1], &msg, MSG_DONTWAIT |
		    MSG_CMSG_CLOEXEC) != sizeof(*parcel))
		return -1;
	header = CMSG_FIRSTHDR(&msg);
	if (!header) {
		fail("a message without a file");
		return -1;
	}
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

bool op_send(struct thread *t)
{
	struct file **slot = &t->own[rng_below(&t->rng, MAX_OWN_FILES)];
	struct file *file = *slot;
	struct parcel parcel = {};
	unsigned int i;

	if (!file || atomic_load(&file->gone))
		return false;
	parcel.identity = file->identity;
	parcel.vf = file->vf;
	for (i = 0; i < t->nr_objects; i++) {
		const struct object *o = &t->object[i];

		if (o->file != file || o->freed)
			continue;
		parcel.item[parcel.nr++] = (typeof(parcel.item[0])){
			.address = o->address,
			.size = o->size,
			.handle = o->handle,
			.flags = o->flags,
			.nonce = o->nonce,
			.upheavals = o->upheavals,
			.written = o->written,
			.lost = o->lost,
		};
	}
	if (!parcel_send(&parcel, file->fd))
		return false;
	for (i = t->nr_objects; i-- > 0;)
		if (t->object[i].file == file)
			object_forget(t, &t->object[i]);
	*slot = NULL;
	file_put(file);
	return true;
}

bool op_receive(struct thread *t)
{
	struct file **slot = &t->own[rng_below(&t->rng, MAX_OWN_FILES)];
	struct parcel parcel;
	struct file *file;
	unsigned int i;
	int fd;

	if (*slot)
		return false;
	fd = parcel_receive(&parcel);
	if (fd < 0)
		return false;
	file = file_adopt(fd, parcel.vf, parcel.identity);
	if (!file)
		return false;
	*slot = file;
	for (i = 0; i < parcel.nr; i++) {
		struct flexmem_alloc as_made = CMD(alloc,
			.flags = parcel.item[i].flags,
			.out_handle = parcel.item[i].handle,
			.out_address = parcel.item[i].address,
			.out_size = parcel.item[i].size);
		struct object *o;

		if (t->nr_objects == MAX_OBJECTS) {
			struct flexmem_free free =
				CMD(free, .handle = parcel.item[i].handle);

			call(file, "FREE of what was received",
			     FLEXMEM_IOCTL_FREE, &free, 0);
			continue;
		}
		o = object_new(t, file, &as_made);
		o->nonce = parcel.item[i].nonce;
		o->upheavals = parcel.item[i].upheavals;
		o->written = parcel.item[i].written;
		o->lost = parcel.item[i].lost;
		if (!o->lost)
			object_verify(t, o);
	}
	return true;
}

/* Closes descriptors that no process has received. */
void pass_drain(void)
{
	struct parcel parcel;
	int fd;

	while ((fd = parcel_receive(&parcel)) >= 0)
		close(fd);
}
