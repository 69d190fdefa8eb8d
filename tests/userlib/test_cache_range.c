// SPDX-License-Identifier: GPL-2.0
/*
 * The data structure of growing segments (range.c): each placement is compared
 * with that of a plain first fit, and each allocation of host memory fails
 * once. Linked with malloc() and free() intercepted. To repeat a random run:
 * CACHE_SEED=N, with the printed N.
 */
#include <time.h>

#include "test.h"
/* Includes the source, because the tests use its static functions. */
#include "cache/range.c"
#include "trace.h"

#define STEP (2 * MIB)

/* The number of the host allocation that fails, from 1 on; 0: none. */
static unsigned int fail_at;
static unsigned int made;
/* If true, every allocation of host memory fails. */
static bool exhausted;
static long outstanding;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	made++;
	if (exhausted || made == fail_at)
		return NULL;
	outstanding++;
	return __real_malloc(size);
}

void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
	outstanding -= memory != NULL;
	__real_free(memory);
}

static uint64_t seed;

static uint64_t next(uint64_t *state)
{
	/* The generator is splitmix64. */
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* The model: an array of holes, searched from start to end. */

struct hole {
	uint64_t offset;
	uint64_t size;
};

struct model {
	struct hole *holes;
	size_t count;
	size_t room;
	uint64_t size;
};

static void model_insert(struct model *model, size_t at, struct hole hole)
{
	if (model->count == model->room) {
		model->room = model->room * 2 + 16;
		model->holes = realloc(model->holes,
				       model->room * sizeof(hole));
		assert_non_null(model->holes);
	}
	memmove(&model->holes[at + 1], &model->holes[at],
		(model->count - at) * sizeof(hole));
	model->holes[at] = hole;
	model->count++;
}

static void model_remove(struct model *model, size_t at)
{
	model->count--;
	memmove(&model->holes[at], &model->holes[at + 1],
		(model->count - at) * sizeof(model->holes[0]));
}

static bool model_reserve(struct model *model, uint64_t size, uint64_t *offset)
{
	size_t i = 0;

	while (i < model->count && model->holes[i].size < size)
		i++;
	if (i == model->count)
		return false;
	*offset = model->holes[i].offset;
	model->holes[i].offset += size;
	model->holes[i].size -= size;
	if (!model->holes[i].size)
		model_remove(model, i);
	return true;
}

static void model_claim(struct model *model, uint64_t offset, uint64_t size)
{
	struct hole *hole = model->holes;
	struct hole rest;
	size_t i;

	while (hole->offset + hole->size <= offset)
		hole++;
	i = (size_t)(hole - model->holes);
	rest.offset = offset + size;
	rest.size = hole->offset + hole->size - rest.offset;
	hole->size = offset - hole->offset;
	if (rest.size)
		model_insert(model, i + 1, rest);
	if (!model->holes[i].size)
		model_remove(model, i);
}

static void model_release(struct model *model, uint64_t offset, uint64_t size)
{
	size_t i = 0;

	while (i < model->count && model->holes[i].offset < offset)
		i++;
	model_insert(model, i, (struct hole){ offset, size });
	if (i + 1 < model->count &&
	    model->holes[i + 1].offset == offset + size) {
		model->holes[i].size += model->holes[i + 1].size;
		model_remove(model, i + 1);
	}
	if (i && model->holes[i - 1].offset + model->holes[i - 1].size ==
	    offset) {
		model->holes[i - 1].size += model->holes[i].size;
		model_remove(model, i);
	}
}

static void model_grow(struct model *model, uint64_t more)
{
	model_release(model, model->size, more);
	model->size += more;
}

static uint64_t model_tail(const struct model *model)
{
	const struct hole *last;

	if (!model->count)
		return 0;
	last = &model->holes[model->count - 1];
	return last->offset + last->size == model->size ? last->size : 0;
}

static void model_shrink(struct model *model, uint64_t less)
{
	struct hole *last = &model->holes[model->count - 1];

	model->size -= less;
	last->size -= less;
	if (!last->size)
		model->count--;
}

/*
 * Checks the invariants of a node. All holes below the node must begin at @from
 * or later, and before @to. Returns the number of holes.
 */
static uint32_t check_node(const struct fmlib_range_node *node,
			   unsigned int height, int32_t from, int32_t to,
			   int32_t most)
{
	uint32_t holes = 0;
	int32_t next_from;
	uint32_t i;

	assert_true(node->count <= FANOUT);
	for (i = node->count; i < FANOUT; i++) {
		assert_int_equal(node->offsets.of[i], NOWHERE);
		assert_int_equal(node->sizes.of[i], 0);
	}
	for (i = 0; i < node->count; i++) {
		assert_true(node->sizes.of[i] > 0 && node->sizes.of[i] <= most);
		next_from = i + 1 < node->count ? node->offsets.of[i + 1] : to;
		if (height == 1) {
			assert_true(node->offsets.of[i] >= from);
			assert_true(node->offsets.of[i] < next_from);
			holes++;
			continue;
		}
		assert_true(node->children[i]->count);
		/*
		 * The first child may also have holes before its entry in this
		 * node.
		 */
		if (i)
			from = node->offsets.of[i];
		assert_true(from < next_from);
		holes += check_node(node->children[i], height - 1, from,
				    next_from, node->sizes.of[i]);
	}
	return holes;
}

static void check_tree(const struct fmlib_range *range)
{
	const struct fmlib_range_node *node = range->spare;
	uint32_t spares = 0;

	assert_int_equal(check_node(range->root, range->height, 0, NOWHERE,
				    NOWHERE), range->holes);
	assert_true(range->height == 1 || range->root->count > 1);
	for (; node; node = node->children[0])
		spares++;
	assert_int_equal(spares, range->spare_count);
}

static void compare(const struct fmlib_range *range, const struct model *model)
{
	uint64_t largest = 0;
	uint64_t free = 0;
	uint64_t at = 0;
	uint64_t size;
	size_t i;

	for (i = 0; i < model->count; i++) {
		assert_true(fmlib_range_hole(range, &at, &size));
		assert_int_equal(at, model->holes[i].offset);
		assert_int_equal(size, model->holes[i].size);
		at += size;
		free += size;
		if (size > largest)
			largest = size;
	}
	assert_false(fmlib_range_hole(range, &at, &size));
	assert_int_equal(fmlib_range_largest(range), largest);
	assert_int_equal(fmlib_range_tail(range), model_tail(model));
	assert_int_equal(range->holes, model->count);
	assert_int_equal((uint64_t)range->size << range->shift, model->size);
	assert_int_equal((uint64_t)range->used << range->shift,
			 model->size - free);
	check_tree(range);
}

/* A range, its model, and the parts that are reserved in both. */
struct pair {
	struct fmlib_range range;
	struct model model;
	struct hole *parts;
	size_t count;
};

static void open_pair(struct pair *pair, uint64_t unit, size_t parts)
{
	memset(pair, 0, sizeof(*pair));
	pair->parts = calloc(parts, sizeof(*pair->parts));
	assert_non_null(pair->parts);
	assert_int_equal(fmlib_range_start(&pair->range, unit), 0);
	assert_int_equal(pair->range.parts, 0);
}

static void close_pair(struct pair *pair)
{
	fmlib_range_end(&pair->range);
	/*
	 * Calls the real free(), because the wrapped one counts, and memory of
	 * the test must not count.
	 */
	__real_free(pair->model.holes);
	__real_free(pair->parts);
}

static void grow_pair(struct pair *pair, uint64_t more)
{
	assert_int_equal(fmlib_range_grow(&pair->range, more), 0);
	model_grow(&pair->model, more);
}

/*
 * Reserves a part in the range and in its model. If no hole is large enough,
 * both grow first, as a segment does.
 */
static struct hole reserve_in(struct pair *pair, uint64_t size)
{
	struct hole part = { .size = size };
	uint64_t expected = 0;
	uint64_t more;
	int err;

	err = fmlib_range_reserve(&pair->range, size, &part.offset);
	if (!model_reserve(&pair->model, size, &expected)) {
		assert_int_equal(err, -ENOSPC);
		more = size - model_tail(&pair->model);
		grow_pair(pair, (more + STEP - 1) / STEP * STEP);
		assert_true(model_reserve(&pair->model, size, &expected));
		err = fmlib_range_reserve(&pair->range, size, &part.offset);
	}
	assert_int_equal(err, 0);
	assert_int_equal(part.offset, expected);
	return part;
}

static void reserve(struct pair *pair, uint64_t size)
{
	pair->parts[pair->count++] = reserve_in(pair, size);
}

static void release_in(struct pair *pair, const struct hole *part)
{
	assert_int_equal(fmlib_range_release(&pair->range, part->offset,
					     part->size), 0);
	model_release(&pair->model, part->offset, part->size);
}

static void release(struct pair *pair, size_t i)
{
	release_in(pair, &pair->parts[i]);
	pair->parts[i] = pair->parts[--pair->count];
}

/*
 * Tries to release bytes that are free, in part or as a whole. This must fail.
 */
static void release_free(struct pair *pair, uint64_t *random)
{
	const struct model *model = &pair->model;
	uint64_t unit = UINT64_C(1) << pair->range.shift;
	const struct hole *hole;
	uint64_t begin;
	uint64_t end;

	if (!model->count)
		return;
	hole = &model->holes[next(random) % model->count];
	begin = hole->offset + next(random) % (hole->size / unit) * unit;
	end = begin + unit + next(random) % 3 * unit;
	if (next(random) % 2 && begin)
		begin -= unit;
	assert_int_equal(fmlib_range_release(&pair->range, begin, end - begin),
			 -EINVAL);
}

static void shrink_pair(struct pair *pair, uint64_t *random)
{
	uint64_t unit = UINT64_C(1) << pair->range.shift;
	uint64_t tail = model_tail(&pair->model);
	uint64_t less = next(random) % (tail / unit + 1) * unit;

	assert_int_equal(fmlib_range_shrink(&pair->range, tail + unit),
			 -EINVAL);
	if (next(random) % 2)
		less = tail;
	assert_int_equal(fmlib_range_shrink(&pair->range, less), 0);
	if (less)
		model_shrink(&pair->model, less);
}

/* Claims several parts. The host memory for the claims was prepared before. */
static void claim(struct pair *pair, uint64_t *random, size_t count)
{
	const struct model *model = &pair->model;
	uint64_t unit = UINT64_C(1) << pair->range.shift;
	struct hole hole;
	struct hole part;

	assert_int_equal(fmlib_range_prepare_claims(&pair->range, count), 0);
	exhausted = true;
	for (; count && model->count; count--) {
		hole = model->holes[next(random) % model->count];
		part.offset = hole.offset +
			      next(random) % (hole.size / unit) * unit;
		part.size = (next(random) % 3 + 1) * unit;
		if (next(random) % 2)
			part.offset = hole.offset;
		if (part.offset + part.size > hole.offset + hole.size) {
			assert_int_equal(fmlib_range_claim(&pair->range,
							   part.offset,
							   part.size), -EBUSY);
			part.size = hole.offset + hole.size - part.offset;
		}
		if (hole.offset)
			assert_int_equal(fmlib_range_claim(&pair->range,
							   hole.offset - unit,
							   2 * unit), -EBUSY);
		assert_int_equal(fmlib_range_claim(&pair->range, part.offset,
						   part.size), 0);
		model_claim(&pair->model, part.offset, part.size);
		pair->parts[pair->count++] = part;
	}
	exhausted = false;
	check_tree(&pair->range);
}

/*
 * The parameters of a random run: the largest number of parts, the largest
 * number of units of a part, and how many of 64 steps are reservations while
 * the run grows. Long phases with only reservations or only releases alternate
 * with mixed phases.
 */
struct course {
	uint64_t unit;
	size_t parts;
	uint64_t units;
	unsigned long steps;
};

static void run_course(const struct course *course)
{
	uint64_t random = seed;
	uint64_t reserving = 32;
	struct pair pair;
	unsigned long i;

	open_pair(&pair, course->unit, course->parts);
	for (i = 0; i < course->steps; i++) {
		if (!(next(&random) % (course->parts / 2)))
			reserving = next(&random) % 65;
		if (pair.count < course->parts &&
		    next(&random) % 64 < reserving)
			reserve(&pair, (next(&random) % course->units + 1) *
				course->unit);
		else if (pair.count)
			release(&pair, next(&random) % pair.count);
		if (!(next(&random) % 16))
			release_free(&pair, &random);
		if (!(next(&random) % 64))
			shrink_pair(&pair, &random);
		if (!(next(&random) % 32) && pair.count + 8 <= course->parts)
			claim(&pair, &random, next(&random) % 8 + 1);
		if (!(i % (course->parts / 4)))
			compare(&pair.range, &pair.model);
		if (!(i % 16))
			check_tree(&pair.range);
	}
	while (pair.count)
		release(&pair, next(&random) % pair.count);
	compare(&pair.range, &pair.model);
	assert_true(pair.range.holes <= 1);
	assert_int_equal(pair.range.parts, 0);
	close_pair(&pair);
}

static void against_first_fit(void **state)
{
	static const struct course courses[] = {
		{ 128, 16, 4, 20000 },
		{ 512, 100, 1000, 40000 },
		{ 128, 1000, 3, 100000 },
		{ 4096, 1000, 100000, 60000 },
		{ 128, 8000, 2, 100000 },
		{ 128, 8000, 5000, 100000 },
	};
	size_t i;

	(void)state;
	print_message("CACHE_SEED=%llu\n", (unsigned long long)seed);
	for (i = 0; i < sizeof(courses) / sizeof(courses[0]); i++)
		run_course(&courses[i]);
}

static void replay(const char *name)
{
	char error[TRACE_ERROR_MAX];
	struct hole *of_allocation;
	struct trace trace;
	struct pair pair;
	char path[4096];
	size_t i;

	snprintf(path, sizeof(path), TRACES "/%s.trace.gz", name);
	assert_int_equal(trace_read(&trace, path, error), 0);
	of_allocation = calloc(trace.allocations, sizeof(*of_allocation));
	assert_non_null(of_allocation);
	open_pair(&pair, 128, 1);
	for (i = 0; i < trace.count; i++) {
		const struct trace_event *event = &trace.events[i];
		struct hole *part = &of_allocation[event->allocation];

		if (event->is_free && part->size)
			release_in(&pair, part);
		else if (event->bytes)
			*part = reserve_in(&pair, (event->bytes + 127) / 128 *
					   128);
		if (!(i % 4096))
			compare(&pair.range, &pair.model);
	}
	compare(&pair.range, &pair.model);
	close_pair(&pair);
	free(of_allocation);
	trace_free(&trace);
}

static void on_the_traces(void **state)
{
	static const char *const names[] = {
		"resnet50-train", "gpt2-train", "llama-decode",
		"azure-conv-kv", "azure-conv-kv-layers",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		replay(names[i]);
}

/*
 * The tree grows to six levels and shrinks, without an allocation of host
 * memory.
 */
static void many_holes(void **state)
{
	enum { PARTS = 300000, ODD = 7919 };
	struct fmlib_range range;
	uint64_t order;
	uint64_t offset;
	uint64_t i;
	int turn;

	(void)state;
	for (turn = 0; turn < 3; turn++) {
		assert_int_equal(fmlib_range_start(&range, 128), 0);
		assert_int_equal(fmlib_range_grow(&range, PARTS * 128), 0);
		for (i = 0; i < PARTS; i++) {
			assert_int_equal(fmlib_range_reserve(&range, 128,
							     &offset), 0);
			assert_int_equal(offset, i * 128);
		}
		assert_int_equal(fmlib_range_reserve(&range, 128, &offset),
				 -ENOSPC);
		exhausted = true;
		for (i = 0; i < PARTS; i++) {
			/*
			 * Releases every second part first, so that each
			 * becomes a hole of its own.
			 */
			order = i < PARTS / 2 ? 2 * i : 2 * (i - PARTS / 2) + 1;
			if (turn == 1)
				order = PARTS - 1 - order;
			if (turn == 2)
				order = order * ODD % PARTS;
			assert_int_equal(fmlib_range_release(&range,
							     order * 128, 128),
					 0);
			assert_int_equal(fmlib_range_release(&range,
							     order * 128, 128),
					 -EINVAL);
		}
		exhausted = false;
		assert_int_equal(range.holes, 1);
		assert_int_equal(range.height, 1);
		assert_int_equal(fmlib_range_largest(&range), PARTS * 128);
		fmlib_range_end(&range);
	}
}

/*
 * A hole begins left of the border between two subtrees and ends right of it.
 * Reservations at its start shorten it until it begins right of the border,
 * too. Then the border must move, because otherwise the next insertion there
 * would go to the wrong subtree.
 */
static void border_that_moves(void **state)
{
	enum { PARTS = 8192, UNIT = 128 };
	struct fmlib_range range;
	uint64_t border;
	uint64_t offset;
	uint32_t i;

	(void)state;
	assert_int_equal(fmlib_range_start(&range, UNIT), 0);
	assert_int_equal(fmlib_range_grow(&range, PARTS * UNIT), 0);
	for (i = 0; i < PARTS; i++)
		assert_int_equal(fmlib_range_reserve(&range, UNIT, &offset), 0);
	for (i = 0; i < PARTS; i += 2)
		assert_int_equal(fmlib_range_release(&range, i * UNIT, UNIT),
				 0);
	assert_true(range.height > 2);
	border = (uint64_t)range.root->offsets.of[1] * UNIT;
	assert_int_equal(fmlib_range_release(&range, border - UNIT, UNIT), 0);
	assert_int_equal(fmlib_range_release(&range, border + UNIT, UNIT), 0);
	check_tree(&range);
	assert_int_equal(fmlib_range_reserve(&range, 3 * UNIT, &offset), 0);
	assert_int_equal(offset, border - 2 * UNIT);
	check_tree(&range);
	assert_int_equal(fmlib_range_reserve(&range, 2 * UNIT, &offset), 0);
	assert_int_equal(offset, border + UNIT);
	check_tree(&range);
	assert_int_equal(fmlib_range_release(&range, offset, 2 * UNIT), 0);
	check_tree(&range);
	fmlib_range_end(&range);
}

/*
 * Releases parts in the order that needs the most nodes: all leaves become
 * full, and then each leaf gets one more hole. The parts are in rows of 6.
 * First the first part of each row is released, then the third part of each
 * row, and at last the fifth part of each 16th row.
 */
static void full_leaves(void **state)
{
	enum { ROWS = 16 * 16 * 16 * 4 };
	struct fmlib_range range;
	uint64_t offset;
	uint32_t i;

	(void)state;
	assert_int_equal(fmlib_range_start(&range, 128), 0);
	assert_int_equal(fmlib_range_grow(&range, ROWS * 6 * 128), 0);
	for (i = 0; i < ROWS; i++) {
		assert_int_equal(fmlib_range_reserve(&range, 128, &offset), 0);
		assert_int_equal(fmlib_range_reserve(&range, 128, &offset), 0);
		assert_int_equal(fmlib_range_reserve(&range, 128, &offset), 0);
		/*
		 * In most rows the last three parts are reserved as one part.
		 */
		if (i % 16 != 8) {
			assert_int_equal(fmlib_range_reserve(&range, 3 * 128,
							     &offset), 0);
			continue;
		}
		assert_int_equal(fmlib_range_reserve(&range, 128, &offset), 0);
		assert_int_equal(fmlib_range_reserve(&range, 128, &offset), 0);
		assert_int_equal(fmlib_range_reserve(&range, 128, &offset), 0);
	}
	exhausted = true;
	for (i = 0; i < ROWS; i++)
		assert_int_equal(fmlib_range_release(&range, i * 6 * 128, 128),
				 0);
	for (i = 0; i < ROWS; i++)
		assert_int_equal(fmlib_range_release(&range, (i * 6 + 2) * 128,
						     128), 0);
	for (i = 8; i < ROWS; i += 16)
		assert_int_equal(fmlib_range_release(&range, (i * 6 + 4) * 128,
						     128), 0);
	exhausted = false;
	assert_int_equal(range.holes, 2 * ROWS + ROWS / 16);
	check_tree(&range);
	fmlib_range_end(&range);
}

/*
 * While the range grows and shrinks in waves, releases succeed even if there is
 * no host memory.
 */
static void without_memory(void **state)
{
	enum { PARTS = 4000 };
	uint64_t random = seed;
	struct pair pair;
	unsigned int wave;

	(void)state;
	open_pair(&pair, 128, PARTS);
	for (wave = 0; wave < 20; wave++) {
		while (pair.count < PARTS)
			reserve(&pair, (next(&random) % 5 + 1) * 128);
		exhausted = true;
		while (pair.count > next(&random) % PARTS)
			release(&pair, next(&random) % pair.count);
		compare(&pair.range, &pair.model);
		exhausted = false;
	}
	close_pair(&pair);
}

/*
 * Some claims split full nodes on several levels. At the end all parts are
 * released.
 */
static void many_claims(void **state)
{
	enum { PARTS = 20000 };
	uint64_t random = seed;
	struct pair pair;

	(void)state;
	open_pair(&pair, 128, PARTS);
	grow_pair(&pair, 128 * 8 * PARTS);
	claim(&pair, &random, PARTS);
	assert_int_equal(pair.count, PARTS);
	assert_true(pair.range.height > 2);
	compare(&pair.range, &pair.model);
	exhausted = true;
	while (pair.count)
		release(&pair, next(&random) % pair.count);
	exhausted = false;
	compare(&pair.range, &pair.model);
	close_pair(&pair);
}

/*
 * Runs the operations while host allocation number @number fails. Returns true
 * if there were fewer host allocations.
 */
static bool with_failure(unsigned int number)
{
	enum { PARTS = 600 };
	uint64_t random = number;
	struct model untouched;
	uint64_t offset = 0;
	uint64_t size;
	struct pair pair;
	bool failed = false;
	int err;

	memset(&pair, 0, sizeof(pair));
	pair.parts = calloc(PARTS, sizeof(*pair.parts));
	made = 0;
	fail_at = number;
	err = fmlib_range_start(&pair.range, 128);
	if (err) {
		assert_int_equal(err, -ENOMEM);
		fail_at = 0;
		__real_free(pair.parts);
		return false;
	}
	while (pair.count < PARTS) {
		if (pair.count > 2 && next(&random) % 5 < 2) {
			release(&pair, next(&random) % pair.count);
			continue;
		}
		size = (next(&random) % 9 + 1) * 128;
		untouched = pair.model;
		err = fmlib_range_reserve(&pair.range, size, &offset);
		if (err == -ENOSPC)
			err = fmlib_range_grow(&pair.range, 100 * size);
		else if (!err)
			pair.parts[pair.count++] = (struct hole){ offset, size };
		if (err) {
			assert_int_equal(err, -ENOMEM);
			failed = true;
			compare(&pair.range, &untouched);
		} else if (pair.count && pair.parts[pair.count - 1].offset ==
			   offset && model_reserve(&pair.model, size,
						   &offset)) {
			assert_int_equal(pair.parts[pair.count - 1].offset,
					 offset);
		} else {
			model_grow(&pair.model, 100 * size);
		}
	}
	fail_at = 0;
	compare(&pair.range, &pair.model);
	close_pair(&pair);
	return !failed;
}

static void each_allocation_fails(void **state)
{
	unsigned int number = 1;
	long before = outstanding;

	(void)state;
	while (!with_failure(number))
		number++;
	/*
	 * Each turn of the loop made a different host allocation fail. No
	 * memory has leaked.
	 */
	assert_true(number > 20);
	assert_int_equal(outstanding, before);
}

static void limits(void **state)
{
	uint64_t limit = fmlib_range_limit(128);
	struct fmlib_range range;
	uint64_t offset;
	uint64_t size;

	(void)state;
	assert_int_equal(fmlib_range_start(&range, 128), 0);
	assert_int_equal(fmlib_range_largest(&range), 0);
	assert_int_equal(fmlib_range_tail(&range), 0);
	assert_int_equal(fmlib_range_reserve(&range, 128, &offset), -ENOSPC);
	assert_int_equal(fmlib_range_release(&range, 0, 128), -EINVAL);
	assert_int_equal(fmlib_range_shrink(&range, 128), -EINVAL);
	assert_int_equal(fmlib_range_grow(&range, limit + 128), -EFBIG);
	assert_int_equal(fmlib_range_grow(&range, limit), 0);
	assert_int_equal(fmlib_range_grow(&range, 128), -EFBIG);
	assert_int_equal(fmlib_range_grow(&range, UINT64_MAX), -EFBIG);
	assert_int_equal(fmlib_range_reserve(&range, limit + 128, &offset),
			 -ENOSPC);
	assert_int_equal(fmlib_range_reserve(&range, UINT64_MAX, &offset),
			 -ENOSPC);
	assert_int_equal(fmlib_range_reserve(&range, 0, &offset), -ENOSPC);
	assert_int_equal(fmlib_range_reserve(&range, limit - 128, &offset), 0);
	assert_int_equal(offset, 0);
	assert_int_equal(fmlib_range_reserve(&range, 128, &offset), 0);
	assert_int_equal(offset, limit - 128);
	assert_int_equal(fmlib_range_release(&range, limit, 128), -EINVAL);
	assert_int_equal(fmlib_range_release(&range, offset, 256), -EINVAL);
	assert_int_equal(fmlib_range_release(&range, UINT64_MAX - 127, 128),
			 -EINVAL);
	assert_int_equal(fmlib_range_release(&range, offset, 0), -EINVAL);
	assert_int_equal(fmlib_range_release(&range, offset, 128), 0);
	offset = 0;
	assert_true(fmlib_range_hole(&range, &offset, &size));
	assert_int_equal(offset, limit - 128);
	assert_int_equal(size, 128);
	offset = UINT64_MAX;
	assert_false(fmlib_range_hole(&range, &offset, &size));
	assert_int_equal(fmlib_range_release(&range, 0, limit - 128), 0);
	assert_int_equal(fmlib_range_largest(&range), limit);
	assert_int_equal(fmlib_range_shrink(&range, limit), 0);
	assert_int_equal(fmlib_range_largest(&range), 0);
	fmlib_range_end(&range);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(against_first_fit),
		cmocka_unit_test(on_the_traces),
		cmocka_unit_test(many_holes),
		cmocka_unit_test(border_that_moves),
		cmocka_unit_test(full_leaves),
		cmocka_unit_test(without_memory),
		cmocka_unit_test(many_claims),
		cmocka_unit_test(each_allocation_fails),
		cmocka_unit_test(limits),
	};
	const char *given = getenv("CACHE_SEED");

	seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
