// SPDX-License-Identifier: GPL-2.0
/*
 * Computes the addresses of all allocations of a trace or of a random sequence,
 * on the PF and on a VF, with each combination of block strategy and region
 * order. Prints a line for each run, with a hash of all addresses and of the
 * calls that fail. addresses.txt has the expected lines.
 *
 * A trace also runs on a PF with a single region, which is a little larger than
 * the trace's peak.
 *
 * An address depends only on the calls before it. So a change of the core may
 * change the expected addresses only if it is meant to change the policy.
 *
 * usage: addresses [-v] random		a random sequence
 *	  addresses [-v] NAME <TRACE	a trace, not compressed
 * With -v the program also prints each result, to find the first difference
 * between two versions.
 */
#include "shim/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ioctl.h"
#include "world.h"

#define MAX_PIECES 64
#define RANDOM_CALLS 40000
#define RANDOM_LIVE 2000

static bool verbose;

/*
 * A device that grants every request up to its capacity. The base address falls
 * with each acquisition.
 */
static struct flexmem_memory pieces[MAX_PIECES];
static u64 capacity;

static int give(void *priv, u64 size, struct flexmem_memory *mem)
{
	u64 taken = 0;
	int i, empty = -1;

	for (i = MAX_PIECES - 1; i >= 0; i--) {
		taken += pieces[i].size;
		if (!pieces[i].size)
			empty = i;
	}
	if (empty < 0 || size > capacity - taken)
		return -ENOSPC;
	pieces[empty] = (struct flexmem_memory) {
		.id = mem->id,
		.base = (u64)(MAX_PIECES - empty) << 40,
		.size = size,
		.cookie = empty,
	};
	*mem = pieces[empty];
	return 0;
}

static int take_back(void *priv, const struct flexmem_memory *mem)
{
	pieces[mem->cookie].size = 0;
	return 0;
}

static int slot_set(void *priv, unsigned int slot,
		    const struct flexmem_memory *mem)
{
	return 0;
}

static int slot_clear(void *priv, unsigned int slot)
{
	return 0;
}

static int quiesce(void *priv)
{
	return 0;
}

static int say_capacity(void *priv, unsigned int domain, u64 *bytes)
{
	*bytes = capacity;
	return 0;
}

static int scrub(void *priv, const struct flexmem_memory *mem, u64 offset,
		 u64 size)
{
	return 0;
}

static const struct flexmem_device_ops pf_ops = {
	.acquire = give,
	.release = take_back,
	.quiesce = quiesce,
	.capacity = say_capacity,
	.scrub = scrub,
};

static const struct flexmem_device_ops vf_ops = {
	.acquire = give,
	.release = take_back,
	.quiesce = quiesce,
	.slot_set = slot_set,
	.slot_clear = slot_clear,
	.capacity = say_capacity,
	.scrub = scrub,
};

/* The result of one run. */
static struct {
	unsigned int calls;
	unsigned int failed;
	u64 hash;
} result;

/*
 * The mixer of splitmix64: a change of one bit of @value changes about half of
 * the result's bits.
 */
static void mix(u64 value)
{
	u64 z = result.hash ^ value;

	z = (z + 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 29)) * 0x94d049bb133111ebull;
	result.hash = z ^ (z >> 32);
}

static void note(const char *what, long rc, u64 region_id, u64 offset, u64 size)
{
	result.calls++;
	result.failed += !!rc;
	mix(rc);
	if (!rc) {
		mix(region_id);
		mix(offset);
		mix(size);
	}
	if (verbose)
		printf("# %u %s %ld %#llx:%#llx %llu\n", result.calls, what, rc,
		       region_id, offset, size);
}

static u32 allocate(struct file *file, u64 length, u64 alignment, u32 flags)
{
	struct flexmem_alloc cmd = CMD(alloc, .length = length,
		.alignment = alignment, .flags = flags);
	long rc = native_ioctl(file, FLEXMEM_IOCTL_ALLOC, &cmd);

	note("alloc", rc, cmd.out_address.region_id, cmd.out_address.offset,
	     cmd.out_size);
	return rc ? 0 : cmd.out_handle;
}

static void release(struct file *file, u32 handle)
{
	struct flexmem_free cmd = CMD(free, .handle = handle);
	long rc = native_ioctl(file, FLEXMEM_IOCTL_FREE, &cmd);

	WARN(rc, "FREE: %ld", rc);
}

/*
 * An event of a trace. @id: number of the allocation. @bytes: size of the
 * allocation; 0: the event frees it.
 */
struct event {
	u32 id;
	u64 bytes;
};

static struct event *events;
static size_t nr_events;
static u32 *handles, nr_ids;

static void *grown(void *array, size_t size)
{
	array = realloc(array, size);
	if (!array)
		abort();
	return array;
}

static void read_trace(FILE *from)
{
	char line[256], what;
	struct event event;
	size_t room = 0;
	int n;

	while (fgets(line, sizeof(line), from)) {
		if (*line == '#')
			continue;
		event.bytes = 0;
		n = sscanf(line, "%*u %c %u %llu", &what, &event.id,
			   &event.bytes);
		if (n != (what == 'a' ? 3 : 2))
			abort();
		if (what == 'a' && !event.bytes)
			continue;
		if (nr_events == room) {
			room = 2 * room + 1024;
			events = grown(events, room * sizeof(*events));
		}
		events[nr_events++] = event;
		nr_ids = max(nr_ids, event.id + 1);
	}
	handles = grown(NULL, nr_ids * sizeof(*handles));
}

/* Returns the largest number of live bytes. */
static u64 peak_of_trace(void)
{
	u64 *sizes = calloc(nr_ids, sizeof(*sizes));
	u64 live = 0, peak = 0;
	size_t i;

	if (!sizes)
		abort();
	for (i = 0; i < nr_events; i++) {
		u64 *size = &sizes[events[i].id];

		live -= *size;
		*size = round_up(events[i].bytes, FLEXMEM_ALIGN);
		live += *size;
		peak = max(peak, live);
	}
	free(sizes);
	return peak;
}

static void replay(struct file *file)
{
	size_t i;

	memset(handles, 0, nr_ids * sizeof(*handles));
	for (i = 0; i < nr_events; i++) {
		u32 *handle = &handles[events[i].id];

		if (events[i].bytes) {
			*handle = allocate(file, events[i].bytes, 0, 0);
		} else if (*handle) {
			release(file, *handle);
			*handle = 0;
		}
	}
}

static u64 seed;

static u64 draw(u64 below)
{
	u64 z = seed += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (z ^ (z >> 31)) % below;
}

/*
 * Draws a length. Each power of two is drawn equally often as the upper bound,
 * so small requests are as frequent as large ones.
 */
static u64 draw_length(void)
{
	return 1 + draw(BIT_ULL(7 + draw(15)));
}

static u32 draw_flags(void)
{
	return (draw(8) ? 0 : FLEXMEM_ALLOC_PROGRAM) |
	       (draw(8) ? 0 : FLEXMEM_ALLOC_GROWABLE);
}

static void resize(struct file *file, u32 handle)
{
	struct flexmem_resize cmd = CMD(resize, .handle = handle,
					.length = draw_length());
	long rc = native_ioctl(file, FLEXMEM_IOCTL_RESIZE, &cmd);

	note("resize", rc, cmd.out_size, rc ? cmd.out_max : 0, 0);
}

static void trim(struct file *file)
{
	struct flexmem_trim cmd = CMD(trim);
	long rc = native_ioctl(file, FLEXMEM_IOCTL_TRIM, &cmd);

	note("trim", rc, cmd.out_regions, cmd.out_bytes, 0);
}

/*
 * Half of all calls allocate, and the others free. Now and then nearly
 * everything is freed.
 */
static void run_random(struct file *file)
{
	static u32 live[RANDOM_LIVE];
	unsigned int i, at;

	memset(live, 0, sizeof(live));
	seed = 1;
	for (i = 0; i < RANDOM_CALLS; i++) {
		at = draw(RANDOM_LIVE);
		if (!live[at]) {
			live[at] = allocate(file, draw_length(),
					    draw(2) ? 0 : BIT_ULL(draw(22)),
					    draw_flags());
		} else if (!draw(4)) {
			resize(file, live[at]);
		} else {
			release(file, live[at]);
			live[at] = 0;
		}
		if (draw(4000))
			continue;
		for (at = 0; at < RANDOM_LIVE; at++) {
			if (!live[at] || !draw(40))
				continue;
			release(file, live[at]);
			live[at] = 0;
		}
		trim(file);
	}
}

static struct file *open_node(struct flexmem_dev *fdev)
{
	struct file *file = native_open(MINOR(fdev->dev.devt), O_RDWR);

	if (IS_ERR(file))
		abort();
	return file;
}

static void run_on(enum flexmem_mode mode, void (*run)(struct file *file))
{
	const struct flexmem_device_desc desc = {
		.name = "addresses",
		.mode = mode,
		.slots = mode == FLEXMEM_MODE_VF ? 8 : 0,
		.granule = SZ_2M,
		.ops = mode == FLEXMEM_MODE_VF ? &vf_ops : &pf_ops,
	};
	struct flexmem_dev *fdev;
	struct device parent = {};
	struct file *file;

	memset(pieces, 0, sizeof(pieces));
	memset(&result, 0, sizeof(result));
	device_initialize(&parent);
	WARN_ON(dev_set_name(&parent, "parent"));
	fdev = flexmem_device_register(&parent, &desc);
	if (IS_ERR(fdev))
		abort();
	file = open_node(fdev);
	run(file);
	native_close(file);
	flexmem_device_unregister(fdev);
}

static void run_all(const char *name, void (*run)(struct file *file))
{
	static const char * const orders[] = { "load_balance", "fill_first" };
	static const char * const fits[] = { "first_fit", "best_fit" };
	unsigned int i;

	for (i = 0; i < 8; i++) {
		const char *order = orders[i / 2 % 2], *fit = fits[i % 2];

		if (native_param_set("order", order) ||
		    native_param_set("strategy", fit) || native_module_init())
			abort();
		run_on(i / 4 ? FLEXMEM_MODE_VF : FLEXMEM_MODE_PF, run);
		native_module_exit();
		printf("%s %s %s %s: %u calls, %u failed, %016llx\n", name,
		       i / 4 ? "vf" : "pf", order, fit, result.calls,
		       result.failed, result.hash);
	}
}

/*
 * Replays the trace in one region that is 2 % larger than the trace's peak, so
 * that most holes must be used.
 */
static void run_tight(const char *name)
{
	static const char * const fits[] = { "first_fit", "best_fit" };
	u64 peak = peak_of_trace();
	unsigned int i;
	char size[24];

	capacity = round_up(peak + peak / 50, SZ_2M);
	snprintf(size, sizeof(size), "%lluM", capacity / SZ_1M);
	for (i = 0; i < ARRAY_SIZE(fits); i++) {
		if (native_param_set("fallback_sizes", size) ||
		    native_param_set("max_regions", "1") ||
		    native_param_set("order", "fill_first") ||
		    native_param_set("strategy", fits[i]) || native_module_init())
			abort();
		run_on(FLEXMEM_MODE_PF, replay);
		native_module_exit();
		printf("%s tight %s: %u calls, %u failed, %016llx\n", name,
		       fits[i], result.calls, result.failed, result.hash);
	}
}

int main(int argc, char **argv)
{
	const char *name = argv[argc - 1];

	verbose = argc > 1 && !strcmp(argv[1], "-v");
	if (argc != 2 + verbose)
		return 2;
	native_shim_init();
	if (strcmp(name, "random")) {
		capacity = 64ull * SZ_1G;
		read_trace(stdin);
		run_all(name, replay);
		run_tight(name);
	} else {
		capacity = 272ull * SZ_1M;
		if (native_param_set("fallback_sizes", "64M,32M,16M") ||
		    native_param_set("max_regions", "7") ||
		    native_param_set("program_slots", "2"))
			return 2;
		run_all(name, run_random);
	}
	return 0;
}
