/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the torture and the fault sweep: the commands, random numbers, the
 * simulator's knobs and the modules, and the sums of a snapshot.
 */
#ifndef FLEXMEM_TESTS_COMMON_H
#define FLEXMEM_TESTS_COMMON_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include <linux/flexmem.h>

#define KiB (1ULL << 10)
#define MiB (1ULL << 20)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* A command's struct with its size filled in: CMD(alloc, .length = 128) */
#define CMD(type, ...)							\
	((struct flexmem_##type){					\
		.size = sizeof(struct flexmem_##type), ##__VA_ARGS__	\
	})

/* Makes an ioctl. Returns 0 or an errno. */
static inline int fm_ioctl(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) ? errno : 0;
}

/* ---- random numbers: the same for the same seed, on every machine ---- */

struct rng {
	uint64_t state;
};

uint64_t rng_next(struct rng *rng);
uint32_t rng_below(struct rng *rng, uint32_t limit);
/* Derives the seed of a part of the run from the run's seed and a number. */
uint64_t rng_mix(uint64_t a, uint64_t b);

static inline bool rng_one_in(struct rng *rng, uint32_t n)
{
	return !rng_below(rng, n);
}

/* ---- files, time and signals ---- */

/*
 * Timeout for replies of the firmware, longer than any machine needs.
 */
#define CALM_MS 30000

uint64_t now_ms(void);
void sleep_ms(unsigned int ms);
uint64_t env_number(const char *name, uint64_t otherwise);

/* Writes or reads a short text. Returns 0 or an errno. */
int put_text(const char *path, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int get_text(const char *path, char *text, size_t size);

#define SIM_KNOBS "/sys/kernel/debug/flexmem_sim/"
#define SIM_DRIVER "/sys/bus/platform/drivers/flexmem_sim/"
#define SIM_PARAMS "/sys/module/flexmem_sim/parameters/"

/* Writes a file in SIM_KNOBS. The files of a VF are in "vf0/" and so on. */
int put_knob(const char *knob, uint64_t value);

/*
 * cgroup_enter() moves the process into a cgroup, and makes the cgroup if it
 * does not exist. It returns 0 or an errno. cgroup_number() returns the id of a
 * cgroup, or 0 if there is none. "" is the root.
 */
int cgroup_enter(const char *name);
uint64_t cgroup_number(const char *name);

bool module_loaded(const char *module);
int module_load(const char *module, const char *params);
/* Unloads a module. Waits for files that the kernel is still closing. */
int module_unload(const char *module);

/* The minor of a VF's node, or -1 if no driver is bound. */
int vf_node(unsigned int vf);
int open_node(int node);
/*
 * Opens the node of a VF and makes it accessible to all; -1 if there is none.
 */
int open_vf(unsigned int vf);

/* ---- accounts ---- */

#define MAX_REGIONS 64
#define MAX_OWNERS 512

struct accounts {
	struct flexmem_snapshot head;
	struct flexmem_region_entry region[MAX_REGIONS];
	struct flexmem_owner_entry owner[MAX_OWNERS];
};

int accounts_read(int fd, struct accounts *a);
/* As accounts_read(), but owner[0] is the opener's cgroup, and owner[1] the file. */
int accounts_read_own(int fd, struct accounts *a);
/*
 * Returns the sum that does not add up, or NULL if all sums do. @admin: the
 * caller must see all owners.
 */
const char *accounts_wrong(const struct accounts *a, bool admin);
/*
 * Returns a text if memory is left that does not belong to the file that has
 * read @a; or NULL.
 */
const char *accounts_not_empty(const struct accounts *a);

#endif /* FLEXMEM_TESTS_COMMON_H */
