/* SPDX-License-Identifier: GPL-2.0 */
/* A provider and streams, for tests of the cache. */
#ifndef CACHE_MOCK_H
#define CACHE_MOCK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "test.h"
#include "flexmem_cache.h"

#define MOCK_EVENTS 4096
#define MOCK_LOG 65536
#define MOCK_SEGMENTS 64

/*
 * A provider of @capacity bytes: the flat provider, with counted calls and
 * planned faults. Event number @n has happened if @happened[n] is set.
 */
struct mock {
	uint64_t capacity;
	bool no_growth;
	/*
	 * The provider sends pressure events through a pipe. With these events
	 * the cache can wait for memory.
	 */
	bool has_pressure;
	bool no_info;
	/* A test may let calls fail at random. */
	bool fails;
	/* How many of the next calls fail. */
	unsigned int fail_allocs;
	unsigned int fail_grows;
	unsigned int fail_frees;
	unsigned int fail_records;
	unsigned int fail_waits;
	int error;
	/* Why allocations fail; by default for lack of a slot. */
	struct flexmem_failure reason;
	/* The total that memory_info reports; 0: the true one. */
	uint64_t total;

	unsigned int allocs;
	unsigned int grows;
	/* The length of the segment that grew last, before it grew. */
	uint64_t grown_from;
	unsigned int frees;
	unsigned int shrinks;
	atomic_uint infos;
	uint64_t last_alloc;
	uint64_t last_alignment;
	uint32_t last_flags;
	/* How many calls got a struct flexmem_failure that was not zeroed. */
	unsigned int stale_reasons;

	/* The mock tracks its first segments here. mock_lose() marks them. */
	struct mock_segment {
		uint64_t handle;
		bool there;
		bool lost;
		bool mapped;
	} segments[MOCK_SEGMENTS];
	bool cannot_tell;

	bool happened[MOCK_EVENTS];
	bool destroyed[MOCK_EVENTS];
	uint64_t streams[MOCK_EVENTS];
	unsigned int events;
	unsigned int destroys;
	unsigned int queries;
	unsigned int waits;
	unsigned int device_waits;
	unsigned int stream_waits;
	uint64_t waiting_stream;
	uint64_t waited_event;
	/* Called when the cache waits, and when it makes a segment. */
	void (*on_wait)(void);
	void (*on_alloc)(void);
	/* Called when the cache frees a segment. */
	void (*on_free)(void);

	char log[MOCK_LOG];
	unsigned int warnings;

	/* The error of the next read of an event, or 0. Used once. */
	atomic_int pressure_error;
	/* The number of the next event, and what it tells. */
	uint64_t sequence;
	uint32_t event_flags;
	int pipe[2];
	struct flexmem_cache_flat *flat;
	struct flexmem_cache_provider below;
};

extern struct mock mock;

/* A new mock of 1 GiB, and an environment without settings. */
int mock_setup(void **state);
/* Checks that all segments and events are freed. */
int mock_teardown(void **state);

/*
 * Make a cache over the mock. With mock_cache_events() streams are
 * asynchronous.
 */
struct flexmem_cache *mock_cache(const char *configuration);
struct flexmem_cache *mock_cache_events(const char *configuration);
/*
 * The options of mock_cache() and mock_cache_events(), for tests that change
 * some of them.
 */
struct flexmem_cache_options mock_options(const char *configuration);
extern const struct flexmem_cache_events mock_events;
/* A cache with events, whose streams can wait for events. */
struct flexmem_cache *mock_cache_waits(const char *configuration);

/* Sends an event to the caches over the mock. The device has @memory bytes. */
void press(uint32_t level, uint64_t in_use, uint64_t memory);
/* The same while another process lacks @wanted bytes. */
void press_wanted(uint32_t level, uint64_t in_use, uint64_t memory,
		  uint64_t wanted);

/* Marks all segments as lost, so that no segment can grow or shrink. */
void mock_lose(void);
/* Maps or unmaps a tracked segment. A mapped segment cannot shrink. */
void mock_map(uint64_t handle, bool mapped);

/* Allocates on a stream. A failure ends the test. */
void *take(struct flexmem_cache *cache, uint64_t bytes, uint64_t stream);
/* Frees. A failure ends the test. */
void give(struct flexmem_cache *cache, void *token);
/* Records that a stream uses an allocation. A failure ends the test. */
void use(struct flexmem_cache *cache, void *token, uint64_t stream);
struct flexmem_cache_statistics figures(struct flexmem_cache *cache);
struct flexmem_cache_allocation lookup(struct flexmem_cache *cache,
				       const void *token);
/* The offset of an allocation's address on the device. */
uint64_t place(struct flexmem_cache *cache, const void *token);

/* Allocates on stream 0. Checks that a failure returns no token. */
int try_alloc(struct flexmem_cache *cache, uint64_t bytes);
/* Expects num_first_failures, num_alloc_retries and num_ooms. */
void expect_counters(struct flexmem_cache *cache, uint64_t first_failures,
		     uint64_t retries, uint64_t ooms);
/* Leaves free segments of 20, 40 and 60 MiB on stream 9, oldest first. */
void three_free(struct flexmem_cache *cache);

#define CACHE_TEST(name) \
	cmocka_unit_test_setup_teardown(name, mock_setup, mock_teardown)

#endif /* CACHE_MOCK_H */
