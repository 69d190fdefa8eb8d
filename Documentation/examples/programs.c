// SPDX-License-Identifier: GPL-2.0
/*
 * Example: a runtime loads a program into device memory, corrects it, and starts
 * it on the simulated device. Only root can use the simulator's interface.
 * cc -I uapi -I kmod/sim Documentation/examples/programs.c \
 *	$(pkg-config --cflags --libs libflexmem)
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <linux/sync_file.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <flexmem.h>
#include <run.h>

#define TILE 4096

/* [load] */
struct patch {
	uint64_t at;		/* offset in the binary */
	uint32_t tensor;	/* handle of an allocation */
};

static int load(struct flexmem_device *device, const void *binary, size_t length,
		const struct patch *patches, size_t count,
		struct flexmem_allocated *program)
{
	struct flexmem_allocated tensor;
	size_t i;
	int err;

	program->handle = 0;
	err = flexmem_device_alloc(device, length, 0, FLEXMEM_PROGRAM, program,
				   sizeof(*program));
	if (!err)
		err = flexmem_device_write(device, program->handle, 0, binary,
					   length, NULL);
	for (i = 0; !err && i < count; i++) {
		err = flexmem_device_lookup(device, patches[i].tensor, &tensor,
					    sizeof(tensor));
		if (!err && tensor.chunks > 1)
			err = -EOPNOTSUPP;
		if (!err)
			err = flexmem_device_write(device, program->handle,
						   patches[i].at, &tensor.address,
						   sizeof(tensor.address), NULL);
	}
	if (err && program->handle)
		flexmem_device_free(device, program->handle);
	return err;
}

/* [tile] */
/* Moves the addresses in the binary by @bytes, to another tile. */
static int move(struct flexmem_device *device, uint32_t program,
		const struct patch *patches, size_t count, int64_t bytes)
{
	struct flexmem_virtual_address address;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < count; i++) {
		err = flexmem_device_read(device, program, patches[i].at,
					  &address, sizeof(address), NULL);
		if (err)
			break;
		address.offset += bytes;
		err = flexmem_device_write(device, program, patches[i].at,
					   &address, sizeof(address), NULL);
	}
	return err;
}

/* [interface] */
/*
 * The simulator's interface. Names all tensors whose addresses are in the binary,
 * so that the driver keeps them even if this process is killed. Returns a fence,
 * or a negative errno.
 */
static int start(int queue, struct flexmem_device *device, uint32_t program,
		 size_t length, const struct patch *patches, size_t count)
{
	uint32_t tensors[SIM_MAX_HANDLES];
	struct sim_run run = {
		.program = SIM_PROGRAM_LOADED,
		.fd = flexmem_device_fd(device),
		.from = program,
		.size = length,
		.handles = (uintptr_t)tensors,
		.nr_handles = count,
	};
	size_t i;

	for (i = 0; i < count && i < SIM_MAX_HANDLES; i++)
		tensors[i] = patches[i].tensor;
	return ioctl(queue, SIM_IOCTL_RUN, &run) ? -errno : run.out_fence;
}

/* Returns 0, or the program's error as a negative errno. */
static int wait_for_the_end(int fence)
{
	struct pollfd wait = { .fd = fence, .events = POLLIN };
	struct sync_file_info info = { 0 };

	while (poll(&wait, 1, -1) < 0 && errno == EINTR)
		;
	if (ioctl(fence, SYNC_IOC_FILE_INFO, &info))
		info.status = -errno;
	close(fence);
	return info.status < 0 ? info.status : 0;
}

/* [start] */
static int run(int queue, struct flexmem_device *device, uint32_t program,
	       size_t length, const struct patch *patches, size_t count)
{
	int fence = start(queue, device, program, length, patches, count);

	return fence < 0 ? fence : wait_for_the_end(fence);
}

/* [show] */
static int show(struct flexmem_device *device, uint32_t tensor)
{
	char text[5] = "";
	int i, err = 0;

	for (i = 0; !err && i < 4; i++)
		err = flexmem_device_read(device, tensor, i * TILE, text + i, 1,
					  NULL);
	if (!err)
		printf("%s\n", text);
	return err;
}

/* The program copies one tile of a tensor to another tensor. */
static int run_tiles(int queue, struct flexmem_device *device, uint32_t from,
		     uint32_t to)
{
	const struct sim_record binary = {
		.program = SIM_PROGRAM_COPY,
		.size = TILE,
	};
	const struct patch patches[] = {
		{ offsetof(struct sim_record, from), from },
		{ offsetof(struct sim_record, to), to },
	};
	struct flexmem_allocated program;
	int err;

	err = load(device, &binary, sizeof(binary), patches, 2, &program);
	if (err)
		return err;
	err = run(queue, device, program.handle, sizeof(binary), patches, 2);
	if (!err)
		err = move(device, program.handle, patches, 2, 2 * TILE);
	if (!err)
		err = run(queue, device, program.handle, sizeof(binary), patches, 2);
	flexmem_device_free(device, program.handle);
	return err;
}

int main(void)
{
	int queue = open("/sys/kernel/debug/flexmem_sim/vf0/queue", O_RDWR);
	struct flexmem_allocated from = { 0 }, to = { 0 };
	struct flexmem_device *device = NULL;
	char bytes[4 * TILE], dots[4 * TILE];
	int err = queue < 0 ? -errno : flexmem_device_open(&device, NULL);

	memset(bytes, 'x', sizeof(bytes));
	memset(dots, '.', sizeof(dots));
	if (!err)
		err = flexmem_device_alloc(device, sizeof(bytes), 0, 0, &from,
					   sizeof(from));
	if (!err)
		err = flexmem_device_alloc(device, sizeof(dots), 0, 0, &to,
					   sizeof(to));
	if (!err)
		err = flexmem_device_write(device, from.handle, 0, bytes,
					   sizeof(bytes), NULL);
	if (!err)
		err = flexmem_device_write(device, to.handle, 0, dots,
					   sizeof(dots), NULL);
	if (!err)
		err = run_tiles(queue, device, from.handle, to.handle);
	if (!err)
		err = show(device, to.handle);
	if (err)
		fprintf(stderr, "%s\n", strerror(-err));
	flexmem_device_close(device);
	return err != 0;
}
