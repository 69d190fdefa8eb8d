// SPDX-License-Identifier: GPL-2.0
/*
 * Example: the ABI without the library.
 * cc -I uapi raw.c, then ./a.out [NODE]
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <linux/flexmem.h>

/* [alloc] */
static int allocate(int fd)
{
	struct flexmem_alloc alloc = {
		.size = sizeof(alloc),
		.length = 1000,
		.alignment = 4096,
	};

	if (!ioctl(fd, FLEXMEM_IOCTL_ALLOC, &alloc)) {
		printf("handle %u: region %llu, offset %llu, %llu bytes\n",
		       alloc.out_handle, alloc.out_address.region_id,
		       alloc.out_address.offset, alloc.out_size);
		return 0;
	}
	if (errno == ENOMEM && alloc.out_reason != FLEXMEM_REASON_NONE)
		printf("no device memory: reason %u, %llu free, largest %llu\n",
		       alloc.out_reason, alloc.out_total_free,
		       alloc.out_largest_free);
	else
		perror("ALLOC");
	return 1;
}

/* [regions] */
static int show_regions(int fd)
{
	struct flexmem_region_entry entries[64];
	struct flexmem_snapshot snapshot = {
		.size = sizeof(snapshot),
		.region_entry_size = sizeof(entries[0]),
		.region_count = sizeof(entries) / sizeof(entries[0]),
		.regions = (uintptr_t)entries,
		.owner_entry_size = sizeof(struct flexmem_owner_entry),
	};
	unsigned int i;

	/*
	 * If the array is too small, the call fails with EMSGSIZE, and
	 * out_region_count is the number of regions.
	 */
	if (ioctl(fd, FLEXMEM_IOCTL_SNAPSHOT, &snapshot)) {
		perror("SNAPSHOT");
		return 1;
	}
	for (i = 0; i < snapshot.out_region_count; i++)
		printf("slot %u: %llu of %llu bytes free\n", entries[i].slot,
		       entries[i].free, entries[i].total);
	return 0;
}

/* [main] */
int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "/dev/flexmem64";
	int fd = open(path, O_RDWR | O_CLOEXEC);
	int status;

	if (fd < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	status = allocate(fd);
	if (!status)
		status = show_regions(fd);
	close(fd);	/* frees the memory */
	return status;
}
