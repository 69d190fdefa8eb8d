// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* The device object: open, close, properties, statistics, trim. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifndef FLEXMEM_VERSION
#error "FLEXMEM_VERSION comes from the Makefile"
#endif

int fmlib_ioctl(const struct flexmem_device *device, unsigned long command,
		void *argument)
{
	return ioctl(device->fd, command, argument) < 0 ? -errno : 0;
}

int fmlib_copy_out(void *to, size_t to_size, size_t min, const void *from,
		   size_t from_size)
{
	if (!to || to_size < min)
		return -EINVAL;
	if (to_size > from_size) {
		memset((char *)to + from_size, 0, to_size - from_size);
		to_size = from_size;
	}
	memcpy(to, from, to_size);
	return 0;
}

int fmlib_copy_in(void *to, size_t to_size, const void *from, size_t from_size,
		  size_t min)
{
	const char *bytes = from;
	size_t i;

	if (!from || from_size < min)
		return -EINVAL;
	for (i = to_size; i < from_size; i++) {
		if (bytes[i])
			return -E2BIG;
	}
	memset(to, 0, to_size);
	memcpy(to, from, from_size < to_size ? from_size : to_size);
	return 0;
}

const char *flexmem_library_version(void)
{
	return FLEXMEM_VERSION;
}

/* Hands out a device object, unless its descriptor is missing. */
static int finish(struct flexmem_device *new, int err,
		  struct flexmem_device **device)
{
	if (err) {
		free(new);
		return err;
	}
	pthread_mutex_init(&new->debug_lock, NULL);
	pthread_mutex_init(&new->log_lock, NULL);
	fmlib_log_from_environment(new);
	*device = new;
	return 0;
}

int flexmem_device_open(struct flexmem_device **device, const char *path)
{
	struct flexmem_device *new;

	if (!device)
		return -EINVAL;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	new->fd = -1;
	return finish(new, fmlib_open(new, path), device);
}

int flexmem_device_adopt(struct flexmem_device **device, int fd)
{
	struct flexmem_device *new;

	if (!device)
		return -EINVAL;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	return finish(new, fmlib_adopt(new, fd), device);
}

static void log_close(struct flexmem_device *device)
{
	struct fmlib_own own;

	if (!fmlib_log_wants(device, FLEXMEM_LOG_DEBUG))
		return;
	/* The program that passed the descriptor keeps the allocations. */
	if (device->adopted || fmlib_own(device, &own))
		return;
	fmlib_log(device, FLEXMEM_LOG_DEBUG,
		  "close %s: %llu allocations of %llu bytes go back",
		  device->path, (unsigned long long)own.file.handles,
		  (unsigned long long)own.file.bytes);
}

void flexmem_device_close(struct flexmem_device *device)
{
	if (!device)
		return;
	log_close(device);
	close(device->fd);
	pthread_mutex_destroy(&device->log_lock);
	pthread_mutex_destroy(&device->debug_lock);
	free(device->path);
	free(device);
}

const char *flexmem_device_path(const struct flexmem_device *device)
{
	return device ? device->path : NULL;
}

int flexmem_device_fd(const struct flexmem_device *device)
{
	return device ? device->fd : -EINVAL;
}

static void properties_from_uapi(const struct flexmem_info *info,
				 struct flexmem_properties *properties)
{
	unsigned int i;

	*properties = (struct flexmem_properties){
		.function = info->out_mode,
		.strategy = info->out_fit,
		.order = info->out_order,
		.acquisition = info->out_acquire,
		.slots = info->out_slots,
		.max_regions = info->out_max_regions,
		.program_slots = info->out_program_slots,
		.max_handles = info->out_max_handles,
		.max_batch = info->out_max_batch,
		.condition = info->out_state,
		.alignment = info->out_alignment,
		.max_alignment = info->out_max_alignment,
		.granule = info->out_granule,
		.capacity = info->out_capacity,
		.max_region = info->out_max_region,
		.capabilities = info->out_capabilities,
		.space_page = info->out_va_page,
		.space_start = info->out_va_start,
		.space_length = info->out_va_length,
	};
	for (i = 0; i < info->out_nr_fallback_sizes &&
	     i < FLEXMEM_FALLBACK_SIZES; i++)
		properties->fallback_sizes[i] = info->out_fallback_sizes[i];
	properties->fallback_count = i;
	/* A driver from before VA_RESERVE sets the bit, and has no page size. */
	if (!info->out_va_page)
		properties->capabilities &= ~FLEXMEM_CAN_PAGE_TABLES;
	memcpy(properties->name, info->out_name, sizeof(properties->name) - 1);
}

int flexmem_device_properties(const struct flexmem_device *device,
			      struct flexmem_properties *properties,
			      size_t size)
{
	struct flexmem_info info = { .size = sizeof(info) };
	struct flexmem_properties now;
	int err;

	if (!device || !properties || size < FMLIB_PROPERTIES_MIN)
		return -EINVAL;
	err = fmlib_ioctl(device, FLEXMEM_IOCTL_INFO, &info);
	if (err)
		return err;
	properties_from_uapi(&info, &now);
	return fmlib_copy_out(properties, size, FMLIB_PROPERTIES_MIN, &now,
			      sizeof(now));
}

static uint32_t flags_from_uapi(uint64_t from)
{
	uint32_t flags = 0;

	if (from & FLEXMEM_REPORT_EXHAUSTED)
		flags |= FLEXMEM_EXHAUSTED;
	if (from & FLEXMEM_REPORT_PROGRAM_EXHAUSTED)
		flags |= FLEXMEM_PROGRAM_EXHAUSTED;
	if (from & FLEXMEM_REPORT_HIDDEN)
		flags |= FLEXMEM_HIDDEN;
	if (from & FLEXMEM_REPORT_LIMITED)
		flags |= FLEXMEM_LIMITED;
	return flags;
}

static void statistics_from_uapi(const struct fmlib_own *own,
				 struct flexmem_statistics *statistics)
{
	const struct flexmem_snapshot *sums = &own->sums;

	*statistics = (struct flexmem_statistics){
		.flags = flags_from_uapi(sums->out_flags),
		.regions = sums->out_region_count,
		.total = sums->out_total,
		.free = sums->out_free,
		.used = sums->out_total - sums->out_free,
		.used_program = sums->out_used_program,
		.allocated = sums->out_allocated,
		.allocs = sums->out_allocs,
		.frees = sums->out_frees,
		.failures = sums->out_failures,
		.generation = sums->out_generation,
		.own_used = own->file.bytes,
		.own_peak = own->file.peak,
		.own_handles = own->file.handles,
	};
}

int flexmem_device_statistics(const struct flexmem_device *device,
			      struct flexmem_statistics *statistics,
			      size_t size)
{
	struct flexmem_statistics now;
	struct fmlib_own own;
	int err;

	if (!device || !statistics || size < FMLIB_STATISTICS_MIN)
		return -EINVAL;
	err = fmlib_own(device, &own);
	if (err)
		return err;
	statistics_from_uapi(&own, &now);
	return fmlib_copy_out(statistics, size, FMLIB_STATISTICS_MIN, &now,
			      sizeof(now));
}

static void domain_from_uapi(const struct flexmem_domain_info *info,
			     struct flexmem_domain_state *domain)
{
	unsigned int i;

	*domain = (struct flexmem_domain_state){
		.id = info->domain,
		.count = info->out_nr_domains,
		.memory = info->out_type,
		.flags = flags_from_uapi(info->out_flags),
		.regions = info->out_regions,
		.granule = info->out_granule,
		.capacity = info->out_capacity,
		.set_aside = info->out_set_aside,
		.max_region = info->out_max_region,
		.total = info->out_total,
		.free = info->out_free,
		.largest_free = info->out_largest_free,
		.program_total = info->out_program_total,
		.program_free = info->out_program_free,
		.program_largest = info->out_program_largest,
		.tensor_largest = info->out_tensor_largest,
		.reserved = info->out_reserved,
		.reserved_total = info->out_reserved_total,
		.limit = info->out_limit,
		.limit_left = info->out_limit_left,
		.freed = info->out_freed,
		.memory_total = info->out_memory,
		.next_region = info->out_next,
	};
	for (i = 0; i < info->out_nr_sizes && i < FLEXMEM_FALLBACK_SIZES; i++)
		domain->sizes[i] = info->out_sizes[i];
	domain->size_count = i;
}

int flexmem_device_domain(const struct flexmem_device *device, uint32_t id,
			  struct flexmem_domain_state *domain, size_t size)
{
	struct flexmem_domain_info info = {
		.size = sizeof(info),
		.domain = id,
	};
	struct flexmem_domain_state now;
	int err;

	if (!device || !domain || size < FMLIB_DOMAIN_MIN)
		return -EINVAL;
	err = fmlib_ioctl(device, FLEXMEM_IOCTL_DOMAIN, &info);
	if (err)
		return err;
	domain_from_uapi(&info, &now);
	return fmlib_copy_out(domain, size, FMLIB_DOMAIN_MIN, &now,
			      sizeof(now));
}

void fmlib_tensor_memory(const struct flexmem_domain_state *all, uint64_t *free,
			 uint64_t *total)
{
	uint64_t used = all->total - all->free -
			(all->program_total - all->program_free);

	/*
	 * Not the capacity, because the slots that are left may be too few for
	 * it. But an older driver does not tell the rest. After the capacity
	 * has shrunk, the regions may be larger than the capacity.
	 */
	*total = all->memory_total ? all->memory_total : all->capacity;
	*total = *total > all->total ? *total : all->total;
	*total -= all->program_total;
	*free = *total - used;
}

void fmlib_own_memory(const struct flexmem_domain_state *all, uint64_t *free,
		      uint64_t *total)
{
	fmlib_tensor_memory(all, free, total);
	*total -= all->reserved_total;
	if (all->flags & FLEXMEM_LIMITED) {
		*total = all->limit < *total ? all->limit : *total;
		*free = all->limit_left < *free ? all->limit_left : *free;
	}
	/* A limit may have been set below what is in use. */
	if (*free > *total)
		*free = *total;
}

/*
 * How many bytes one allocation can have in a domain, or in all of them. @left:
 * what the slots that are left could take.
 */
static uint64_t largest_in(const struct flexmem_domain_state *domain,
			   uint64_t left)
{
	uint64_t fresh = domain->capacity > domain->total ?
			 domain->capacity - domain->total : 0;
	uint64_t block = domain->tensor_largest;

	/* An older driver tells the largest of all regions only. */
	if (!block && !domain->program_total)
		block = domain->largest_free;
	if (fresh > domain->max_region)
		fresh = domain->max_region;
	/* The driver knows which sizes the device has refused. */
	if (domain->freed && fresh > domain->next_region)
		fresh = domain->next_region;
	if (fresh > left)
		fresh = left;
	if (domain->flags & FLEXMEM_EXHAUSTED)
		fresh = 0;
	return fresh > block ? fresh : block;
}

/* Counts a domain among those that allocations come from by default. */
static void add_domain(struct flexmem_domain_state *sum,
		       const struct flexmem_domain_state *one)
{
	sum->capacity += one->capacity;
	sum->total += one->total;
	sum->free += one->free;
	sum->program_total += one->program_total;
	sum->program_free += one->program_free;
	sum->reserved_total += one->reserved_total;
}

/*
 * Replaces the figures of the whole device by those of the domains that
 * allocations come from by default. A further region is in one domain, and so is
 * an allocation.
 */
static int default_domains(const struct flexmem_device *device,
			   struct flexmem_domain_state *all, uint64_t left,
			   uint64_t *largest)
{
	struct flexmem_domain_state sum = {
		.flags = all->flags,
		.limit = all->limit,
		.limit_left = all->limit_left,
	};
	uint64_t memory = all->memory_total;
	struct flexmem_domain_state one;
	uint64_t bytes;
	uint32_t i;
	int err;

	*largest = 0;
	for (i = 0; i < all->count; i++) {
		err = flexmem_device_domain(device, i, &one, sizeof(one));
		if (err)
			return err;
		if (one.memory != FLEXMEM_MEMORY_DEVICE) {
			/* Less, if the slots that are left are too few. */
			bytes = one.capacity > one.total ? one.capacity :
							   one.total;
			memory -= bytes < memory ? bytes : memory;
			continue;
		}
		add_domain(&sum, &one);
		bytes = largest_in(&one, left);
		*largest = bytes > *largest ? bytes : *largest;
	}
	/* What the slots could take. An older driver does not tell it. */
	if (all->memory_total && memory < sum.capacity)
		sum.capacity = memory;
	*all = sum;
	return 0;
}

static int what_can_be_had(const struct flexmem_device *device,
			   struct flexmem_available *now)
{
	struct flexmem_domain_state all;
	uint64_t left = UINT64_MAX;
	int err;

	/*
	 * The figures of the regions and limits in one reply are from the same
	 * moment. The driver reads the capacity a little later.
	 */
	err = flexmem_device_domain(device, FLEXMEM_WHOLE_DEVICE, &all,
				    sizeof(all));
	if (err)
		return err;
	if (all.memory_total)
		left = all.memory_total > all.total ?
		       all.memory_total - all.total : 0;
	if (all.count > 1)
		err = default_domains(device, &all, left, &now->largest);
	else
		now->largest = largest_in(&all, left);
	fmlib_own_memory(&all, &now->free, &now->total);
	if (now->largest > now->free)
		now->largest = now->free;
	return err;
}

int flexmem_device_available(const struct flexmem_device *device,
			     struct flexmem_available *available, size_t size)
{
	struct flexmem_available now;
	int err;

	if (!available || size < FMLIB_AVAILABLE_MIN)
		return -EINVAL;
	err = what_can_be_had(device, &now);
	return err ? err : fmlib_copy_out(available, size, FMLIB_AVAILABLE_MIN,
					  &now, sizeof(now));
}

int flexmem_device_memory_info(const struct flexmem_device *device,
			       uint64_t *free, uint64_t *total)
{
	struct flexmem_available now;
	int err;

	if (!free || !total)
		return -EINVAL;
	err = what_can_be_had(device, &now);
	if (err)
		return err;
	*free = now.free;
	*total = now.total;
	return 0;
}

int flexmem_device_trim(struct flexmem_device *device, uint32_t flags,
			uint32_t *regions, uint64_t *bytes)
{
	struct flexmem_trim cmd = { .size = sizeof(cmd) };
	int err;

	if (!device)
		return -EINVAL;
	if (flags)
		return -EOPNOTSUPP;
	err = fmlib_ioctl(device, FLEXMEM_IOCTL_TRIM, &cmd);
	if (regions)
		*regions = cmd.out_regions;
	if (bytes)
		*bytes = cmd.out_bytes;
	fmlib_log(device, FLEXMEM_LOG_DEBUG,
		  "trim: %u regions of %llu bytes given back%s",
		  cmd.out_regions, (unsigned long long)cmd.out_bytes,
		  err ? ", then it failed" : "");
	return err;
}
