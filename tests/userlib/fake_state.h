/* SPDX-License-Identifier: GPL-2.0 */
/*
 * State that the files of the fake kernel share. One lock protects all of it.
 */
#ifndef FAKE_STATE_H
#define FAKE_STATE_H

#include <pthread.h>

#include "fake.h"

#define GIB (UINT64_C(1) << 30)
#define FIRST_FD 700
#define FDS 64

/* An interval of a region. A handle of 0 means that the interval is free. */
struct block {
	uint64_t start;
	uint64_t end;
	uint32_t handle;
	uint32_t flags;
	int file;
	bool lost;
	struct block *next;
};

struct region {
	uint64_t total;
	uint64_t sequence;
	uint32_t flags;
	uint32_t domain;
	bool reserved;
	struct block *blocks;
};

/* @gone: its function was removed. */
struct file {
	bool open;
	bool gone;
	const struct fake_node *node;
	uint64_t id;
	uint32_t uid;
	uint32_t next_handle;
	uint64_t used;
	uint64_t peak;
	uint64_t handles;
	unsigned int events;
};

extern pthread_mutex_t lock;
extern struct region regions[FAKE_REGIONS];
extern uint32_t nr_regions;
extern struct file files[FDS];
extern uint64_t generation;
extern uint64_t allocs, frees, failures;
extern bool exhausted;

#define REQUIRE(condition) require(condition, #condition, __FILE__, __LINE__)
void require(bool condition, const char *text, const char *file, int line);

/* Defined in fake.c. */
void add_region(uint64_t total);
uint64_t region_id(uint32_t index);
void measure(const struct region *region, struct flexmem_region_entry *entry);
/* Removes the figures that only an administrator may see. */
void hide(struct flexmem_region_entry *entry);
struct block *split(struct block *block, uint64_t at);
void merge(struct region *region);
/* Frees a file's allocations. @file is its index in files. */
void free_all(int file);
/* How many bytes each chunk of an allocation has; the last one may have fewer. */
uint64_t chunk_size(const struct block *block);
struct block *find_block(const struct file *file, uint32_t handle,
			 const struct flexmem_address *address,
			 uint32_t *where);
/* Carries out an ioctl. Returns 0 or an errno, which may be injected. */
int dispatch(struct file *file, unsigned int number, void *arg, int injected);

/* fake_file.c: forgets all open files. */
void reset_files(void);

/* The major number of the nodes. */
#define MAJOR 511
/*
 * fake_dev.c: returns a descriptor of a file in sysfs or of /proc/devices; 0 for
 * any other file; or -1 and an errno.
 */
int open_sysfs(const char *path);

/* fake_bytes.c: bytes of the memory. Each function returns 0 or an errno. */
int copy(const struct file *file, struct flexmem_rw *cmd, bool is_write,
	 int injected);
int copy_range(const struct file *file, struct flexmem_copy *cmd,
	       int injected);
uint64_t map_offset(uint32_t region, uint64_t offset);
void zero(uint32_t region, uint64_t start, uint64_t end);
bool is_mapped(const struct file *file, uint32_t handle);

/* fake_resize.c: RESIZE and events. */
struct block *place_growable(struct region *region, uint64_t size,
			     uint64_t align);
int resize(struct file *file, struct flexmem_resize *cmd);

/* fake_space.c: device-virtual addresses. */
void reset_spaces(void);
void close_space(int file);
/* Called when a bound allocation is freed. */
void forget_bound(int file, uint32_t handle);
int space_command(struct file *file, unsigned int number, void *arg);

/* fake_owners.c: accounts and limits. */
void reset_owners(void);
void limits_of_new_file(struct file *file);
/* Returns the limit that an allocation of @size bytes would exceed, or 0. */
uint32_t limit_reached(const struct file *file, uint64_t size,
		       struct flexmem_refusal *refusal);
void describe_limit(const struct file *file, struct flexmem_domain_info *cmd);
void note_peak(const struct file *file);
void note_failure(const struct file *file, uint32_t reason);
int owner_command(struct file *file, unsigned int number, void *arg);

#endif /* FAKE_STATE_H */
