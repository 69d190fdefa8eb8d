// SPDX-License-Identifier: GPL-2.0
/*
 * A39: what threads do in stores of their own, without a lock, while another one
 * reads. Each moment in which that could be has its turn: between.h says how.
 */
#include "cache_mock.h"
#include "between.h"

#include <jansson.h>
#include <pthread.h>

/* Threads with stores; they do what they are told, and then it is done. */
enum order {
	ORDER_TAKE,
	ORDER_GIVE,
	ORDER_END,
};

struct worker {
	pthread_t thread;
	pthread_barrier_t barrier;
	enum order order;
};

static struct flexmem_cache *cache;
static struct worker workers[2];
static atomic_int failures;
/* What they take, and hand on; and who of them keeps it. */
static void *token;
static size_t from;

static void *work(void *argument)
{
	struct worker *worker = argument;
	bool end = false;

	while (!end) {
		pthread_barrier_wait(&worker->barrier);
		if (worker->order == ORDER_TAKE)
			failures += flexmem_cache_alloc(cache, 1000, 0,
							&token) != 0;
		else if (worker->order == ORDER_GIVE)
			failures += flexmem_cache_free(cache, token) != 0;
		end = worker->order == ORDER_END;
		pthread_barrier_wait(&worker->barrier);
	}
	return NULL;
}

static void tell(struct worker *worker, enum order order)
{
	worker->order = order;
	pthread_barrier_wait(&worker->barrier);
	pthread_barrier_wait(&worker->barrier);
}

/* The first of them keeps a block of 1000 bytes, and both have stores. */
static void start(const char *configuration)
{
	size_t i;

	failures = 0;
	from = 0;
	cache = mock_cache(configuration);
	for (i = 0; i < 2; i++) {
		pthread_barrier_init(&workers[i].barrier, NULL, 2);
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work,
						&workers[i]), 0);
	}
	tell(&workers[1], ORDER_TAKE);
	tell(&workers[1], ORDER_GIVE);
	tell(&workers[1], ORDER_TAKE);
	tell(&workers[0], ORDER_GIVE);
}

static void end(void)
{
	size_t i;

	for (i = 0; i < 2; i++) {
		tell(&workers[i], ORDER_END);
		pthread_join(workers[i].thread, NULL);
		pthread_barrier_destroy(&workers[i].barrier);
	}
	assert_int_equal(failures, 0);
	assert_int_equal(figures(cache).allocation[0].current, 0);
	flexmem_cache_destroy(cache);
}

/* What happens before the load after so many, on this thread. */
static _Thread_local void (*step)(void);
static unsigned int loads;

void between(void)
{
	void (*now)(void) = step;

	if (!now || loads--)
		return;
	step = NULL;
	now();
}

/*
 * Runs @read and @check with @happens at each of its moments in turn, until it
 * is over before its time; returns how many there were.
 */
static unsigned int at_each_moment(void (*happens)(void), void (*read)(void),
				   void (*check)(void))
{
	unsigned int moment = 0;
	bool happened = true;

	for (; happened; moment++) {
		loads = moment;
		step = happens;
		read();
		happened = !step;
		step = NULL;
		check();
	}
	return moment - 1;
}

/* One thread allocates what it keeps, and the other one frees it. */
static void hand_over(void)
{
	tell(&workers[from], ORDER_TAKE);
	from = !from;
	tell(&workers[from], ORDER_GIVE);
}

static struct flexmem_cache_statistics f;

static void read_figures(void)
{
	f = figures(cache);
}

static void expect_little(const struct flexmem_cache_figure *figure,
			  uint64_t one)
{
	int kind;

	for (kind = 0; kind < FLEXMEM_CACHE_LARGE; kind++) {
		assert_true(figure[kind].current == 0 ||
			    figure[kind].current == one);
		assert_int_equal(figure[kind].current, figure[kind].allocated -
				 figure[kind].freed);
		assert_true(figure[kind].freed < GIB);
		assert_true(figure[kind].current <= figure[kind].peak);
	}
}

/* It was live or not; it was not both, nor less than nothing. */
static void check_figures(void)
{
	expect_little(f.allocation, 1);
	expect_little(f.active, 1);
	expect_little(f.allocated_bytes, 1024);
	expect_little(f.active_bytes, 1024);
	expect_little(f.requested_bytes, 1000);
	/* Nobody does anything now: these are exact. */
	read_figures();
	assert_int_equal(f.allocation[0].current, 0);
	assert_int_equal(f.requested_bytes[0].current, 0);
}

static void figures_meanwhile(void **state)
{
	(void)state;
	start("thread_cache:True");
	assert_true(at_each_moment(hand_over, read_figures, check_figures) >=
		    18);
	/* And with an odd number of moments, the other way round. */
	hand_over();
	assert_true(at_each_moment(hand_over, read_figures, check_figures) >=
		    18);
	end();
}

static void begin_sums(void)
{
	assert_int_equal(flexmem_cache_reset_accumulated(cache), 0);
}

static void check_sums(void)
{
	int kind;

	read_figures();
	for (kind = 0; kind < FLEXMEM_CACHE_LARGE; kind++) {
		assert_true(f.allocation[kind].freed <= 1);
		assert_true(f.allocation[kind].allocated <= 1);
		assert_true(f.allocated_bytes[kind].freed <= 1024);
		assert_true(f.requested_bytes[kind].freed <= 1000);
	}
	assert_true(f.num_hits <= 1);
}

static void sums_meanwhile(void **state)
{
	(void)state;
	start("thread_cache:True");
	assert_true(at_each_moment(hand_over, begin_sums, check_sums) >= 18);
	hand_over();
	assert_true(at_each_moment(hand_over, begin_sums, check_sums) >= 18);
	end();
}

static struct flexmem_cache_tag untagged;

static void read_tags(void)
{
	struct flexmem_cache_tag *tags;
	size_t count;

	assert_int_equal(flexmem_cache_tags(cache, &tags, sizeof(*tags),
					    &count), 0);
	assert_int_equal(count, 1);
	untagged = tags[0];
	flexmem_cache_tags_free(tags);
}

static void check_tags(void)
{
	assert_true(untagged.allocations <= 1);
	assert_true(untagged.allocated_bytes <= 1024);
	assert_true(untagged.requested_bytes <= 1000);
}

static void tags_meanwhile(void **state)
{
	(void)state;
	start("thread_cache:True,expandable_segments:True");
	assert_true(at_each_moment(hand_over, read_tags, check_tags) >= 18);
	hand_over();
	assert_true(at_each_moment(hand_over, read_tags, check_tags) >= 18);
	end();
}

/* The first one keeps it, or has it: the other way round. */
static bool taken;

static void change_it(void)
{
	tell(&workers[0], taken ? ORDER_GIVE : ORDER_TAKE);
	taken = !taken;
}

static struct flexmem_cache_allocation found;
static void *sought;
static int error;

static void look_up(void)
{
	if (!taken)
		change_it();
	sought = token;
	error = flexmem_cache_lookup(cache, sought, &found, sizeof(found),
				     NULL);
}

/* It was there, or not; but what was there is what was looked for. */
static void check_found(void)
{
	assert_true(!error || error == -EINVAL);
	if (!error) {
		assert_ptr_equal(found.token, sought);
		assert_int_equal(found.requested, 1000);
	}
}

static void lookup_meanwhile(void **state)
{
	(void)state;
	start("thread_cache:True");
	taken = false;
	at_each_moment(change_it, look_up, check_found);
	if (taken)
		change_it();
	end();
}

static char *text;

static void read_snapshot(void)
{
	assert_int_equal(flexmem_cache_snapshot(cache, FLEXMEM_CACHE_EVERY_POOL,
						&text, NULL), 0);
}

static json_int_t number(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

/* Returns its bytes that are allocated; a token is that of an allocation. */
static json_int_t check_block(const json_t *block)
{
	const char *state =
		json_string_value(json_object_get(block, "state"));
	bool allocated = !strcmp(state, "active_allocated");

	assert_int_equal(number(block, "token"),
			 allocated ? (uintptr_t)token : 0);
	assert_int_equal(number(block, "requested_size"),
			 allocated ? 1000 : 0);
	return allocated ? number(block, "size") : 0;
}

static void check_snapshot(void)
{
	json_t *root = json_loads(text, 0, NULL);
	json_int_t sum = 0;
	json_t *segment;
	json_t *block;
	size_t i;

	flexmem_cache_text_free(text);
	segment = json_array_get(json_object_get(root, "segments"), 0);
	assert_non_null(segment);
	json_array_foreach(json_object_get(segment, "blocks"), i, block)
		sum += check_block(block);
	assert_int_equal(number(segment, "allocated_size"), sum);
	assert_int_equal(number(segment, "active_size"), sum);
	assert_int_equal(number(segment, "requested_size"), sum ? 1000 : 0);
	json_decref(root);
}

static void snapshot_meanwhile(void **state)
{
	(void)state;
	start("thread_cache:True");
	taken = false;
	assert_true(at_each_moment(change_it, read_snapshot, check_snapshot) >=
		    1);
	change_it();
	at_each_moment(change_it, read_snapshot, check_snapshot);
	if (taken)
		change_it();
	end();
}

/* A store that is full, and one block more. */
#define FULL 16

static void *blocks[FULL + 1];
static void *large;

/* As soon as that one is free, and before anything else. */
static void take_large(void)
{
	struct flexmem_cache_allocation a;

	if (flexmem_cache_lookup(cache, blocks[FULL], &a, sizeof(a), NULL)) {
		large = take(cache, 2 * MIB, 0);
		return;
	}
	loads = 0;
	step = take_large;
}

/* A peak is told of all that a thread keeps: then that is at its most. */
static void peak_of_a_full_store(void **state)
{
	int i;

	(void)state;
	large = NULL;
	cache = mock_cache("thread_cache:True");
	for (i = 0; i <= FULL; i++)
		blocks[i] = take(cache, 64 * KIB, 0);
	for (i = 0; i < FULL; i++)
		give(cache, blocks[i]);
	assert_int_equal(flexmem_cache_reset_peaks(cache), 0);
	loads = 0;
	step = take_large;
	give(cache, blocks[FULL]);
	assert_non_null(large);
	read_figures();
	assert_int_equal(f.allocated_bytes[0].current, 2 * MIB);
	assert_in_range(f.allocated_bytes[0].peak, 2 * MIB + MIB + 1,
			2 * MIB + f.thread_bound);
	flexmem_cache_destroy(cache);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CACHE_TEST(figures_meanwhile),
		CACHE_TEST(sums_meanwhile),
		CACHE_TEST(tags_meanwhile),
		CACHE_TEST(lookup_meanwhile),
		CACHE_TEST(snapshot_meanwhile),
		CACHE_TEST(peak_of_a_full_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
