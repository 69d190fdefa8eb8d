// SPDX-License-Identifier: GPL-2.0
/*
 * The tables of `make bench-cache`. The exit status says whether the reserved
 * bytes are within the project's limits, because reserved bytes do not depend
 * on the machine. Times are only printed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define RUNS 5
/* Runs of which the fastest counts. */
#define TIMED_RUNS 15
#define COPIES 40
#define SLACK 1.01
/* The seed of the first thinned trace. No policy was tuned with these seeds. */
#define FIRST_SEED 990001

/*
 * The most instructions that the cache may need, as a multiple of the engine's:
 * for any trace, and in the mean.
 */
#define RATIO_MAX 2.0
#define RATIO_MEAN_MAX 1.7

#define GROWING "expandable_segments:True"

/* Names of what callgrind counts, and the most instructions of each. */
#define ADDRESS "address"
#define NOTHING "nothing"
#define ADDRESS_MAX 40
#define PAIRS_OF "pairs-%u-%u-%d"
#define RETURNS "returns-%u-%d"
/*
 * What a request may cost on a device of 40,000 free segments, as a multiple of
 * its cost with 500.
 */
#define RETURNS_MAX 1.5

/* Policies by which list_reserved() chooses a hole. */
static const struct {
	const char *name;
	unsigned int choices;
	uint64_t best_from;
} policies[] = {
	{ "first fit", 1, UINT64_MAX },
	{ "lowest two", 2, UINT64_MAX },
	{ "lowest four", 4, UINT64_MAX },
	{ "four, best 64M", 4, UINT64_C(64) << 20 },
};

#define POLICIES (sizeof(policies) / sizeof(policies[0]))

/* The lowest known ratio of reserved to live bytes. */
static const struct {
	const char *name;
	double ratio;
} known[] = {
	{ "resnet50-train", 1.021 },
	{ "gpt2-train", 1.016 },
	{ "llama-decode", 1.008 },
	{ "azure-conv-kv", 1.116 },
	{ "azure-conv-kv-layers", 1.045 },
	{ "gpt-h100", 1.103 },
};

/* A trace of a program with four streams. */
#define SERVING "serve4-h100"

#define TRACES (sizeof(known) / sizeof(known[0]))

/*
 * Nanoseconds for each operation of one trace, and the sum of the logarithms of
 * these times over all traces.
 */
struct times {
	double trace;
	double logarithms;
};

static bool have_mimalloc;
static bool failed;

static int compare(const void *a, const void *b)
{
	const uint64_t *first = a;
	const uint64_t *second = b;

	return (*first > *second) - (*first < *second);
}

static double median(uint64_t *samples)
{
	qsort(samples, RUNS, sizeof(*samples), compare);
	return (double)samples[RUNS / 2];
}

/*
 * All runs do the same. Interrupts and neighbours only add time, so the fastest
 * run is the one with the least of them.
 */
static void add(struct times *times, uint64_t *samples,
		const struct work *work)
{
	qsort(samples, TIMED_RUNS, sizeof(*samples), compare);
	times->trace = (double)samples[0] / (double)work->count;
	times->logarithms += log(times->trace);
}

static double mean(const struct times *times)
{
	return exp(times->logarithms / TRACES);
}

static uint64_t first_fit(const struct work *work)
{
	return list_reserved(work, 1, UINT64_MAX);
}

static double over(uint64_t reserved, const struct work *work)
{
	return (double)reserved / (double)work->live_peak;
}

static const char *judge(double ratio, double best)
{
	if (ratio <= best * SLACK)
		return "";
	failed = true;
	return "  MISSED";
}

/* Measures the allocators in turn, so that noise affects all of them. */
static void measure_time(const struct work *work, size_t i,
			 struct times *engine, struct times *cache,
			 struct times *bins, struct times *mimalloc)
{
	uint64_t samples[4][TIMED_RUNS];
	uint64_t in_bins = 0;
	uint64_t reserved = 0;
	uint64_t alone = 0;
	double ratio;
	size_t run;

	for (run = 0; run < TIMED_RUNS; run++) {
		samples[0][run] = engine_replay(work, &alone);
		samples[1][run] = cache_replay(work, GROWING, &reserved);
		samples[2][run] = bins_replay(work, &in_bins);
		if (have_mimalloc)
			samples[3][run] = mimalloc_replay(work);
	}
	add(engine, samples[0], work);
	add(cache, samples[1], work);
	add(bins, samples[2], work);
	ratio = over(reserved, work);
	printf("%-22s %10zu %6.3f %6.3f %6.3f %6.3f %7.1f %7.1f %7.1f",
	       known[i].name, work->count, known[i].ratio, over(alone, work),
	       ratio, over(in_bins, work), engine->trace, cache->trace,
	       bins->trace);
	if (have_mimalloc) {
		add(mimalloc, samples[3], work);
		printf(" %8.1f %5.2f", mimalloc->trace,
		       cache->trace / mimalloc->trace);
	}
	printf("%s\n", judge(ratio, known[i].ratio));
	if (alone != first_fit(work)) {
		printf("the engine is not first fit\n");
		failed = true;
	}
}

static void table_of_times(const struct work *works)
{
	struct times mimalloc = { 0 };
	struct times engine = { 0 };
	struct times cache = { 0 };
	struct times bins = { 0 };
	size_t i;

	printf("Reserved / live: best known, of the engine alone, of the cache, of bins;\n");
	printf("ns per operation on one thread, the fastest of %d runs, and the cache's over\n",
	       TIMED_RUNS);
	printf("mimalloc's:\n");
	printf("%-22s %10s %6s %6s %6s %6s %7s %7s %7s%s\n", "trace",
	       "operations", "known", "engine", "cache", "bins", "engine",
	       "cache", "bins", have_mimalloc ? " mimalloc  over" : "");
	for (i = 0; i < TRACES; i++)
		measure_time(&works[i], i, &engine, &cache, &bins, &mimalloc);
	printf("%-22s %10s %6s %6s %6s %6s %7.1f %7.1f %7.1f", "geometric mean",
	       "", "", "", "", "", mean(&engine), mean(&cache), mean(&bins));
	if (have_mimalloc)
		printf(" %8.1f %5.2f", mean(&mimalloc),
		       mean(&cache) / mean(&mimalloc));
	printf("\n");
	if (!have_mimalloc)
		printf("There is no libmimalloc.so.2 to compare with.\n");
}

enum peer { ENGINE, CACHE, IN_BINS, MIMALLOC, PEERS };

static const char *const peer_names[] = { "engine", "cache", "bins",
					  "mimalloc" };

static void replay(enum peer peer, const struct work *work)
{
	uint64_t reserved;

	if (peer == ENGINE)
		engine_replay(work, &reserved);
	else if (peer == CACHE)
		cache_replay(work, GROWING, &reserved);
	else if (peer == IN_BINS)
		bins_replay(work, &reserved);
	else
		mimalloc_replay(work);
}

static void path_of(const char *directory, size_t i, char *path, size_t length)
{
	snprintf(path, length, "%s/%s.trace.gz", directory, known[i].name);
}

/* Carries out `bench --count WHAT TRACE` under callgrind. */
static int count(const char *what, const char *path)
{
	unsigned int segments;
	unsigned int streams;
	unsigned int pools;
	struct work work;
	int peer = 0;
	int used;

	if (sscanf(what, PAIRS_OF, &streams, &pools, &used) == 3) {
		cache_pairs(streams, pools, used);
		return 0;
	}
	if (sscanf(what, RETURNS, &segments, &used) == 2) {
		cache_returns(segments, used);
		return 0;
	}
	if (!strcmp(what, ADDRESS) || !strcmp(what, NOTHING)) {
		cache_addresses(!strcmp(what, NOTHING));
		return 0;
	}
	while (peer < PEERS && strcmp(peer_names[peer], what))
		peer++;
	if (peer == PEERS || (peer == MIMALLOC && !mimalloc_find()))
		return 2;
	work_read(&work, path);
	replay(peer, &work);
	work_free(&work);
	return 0;
}

/* Instructions per operation, or 0 if they cannot be counted. */
static double instructions(enum peer peer, const struct work *work,
			   const char *path)
{
	uint64_t number;

	if (count_by_processor()) {
		replay(peer, work);
		number = count_of_last();
	} else {
		number = count_by_callgrind(peer_names[peer], path);
	}
	return (double)number / (double)work->count;
}

static void table_of_instructions(const struct work *works,
				  const char *directory)
{
	double logarithms[2] = { 0 };
	double found[PEERS] = { 0 };
	char path[4096];
	double ratio;
	size_t i;
	int peer;

	printf("\nInstructions per operation, by %s, and the cache's over the engine's:\n",
	       count_by_processor() ? "the processor's counter" : "callgrind");
	printf("%-22s %7s %7s %6s %7s%s\n", "trace", "engine", "cache",
	       "ratio", "bins", have_mimalloc ? " mimalloc" : "");
	for (i = 0; i < TRACES; i++) {
		path_of(directory, i, path, sizeof(path));
		for (peer = 0; peer < PEERS - !have_mimalloc; peer++)
			found[peer] = instructions(peer, &works[i], path);
		if (found[ENGINE] <= 0 || found[CACHE] <= 0) {
			printf("There is neither a counter nor callgrind.\n");
			return;
		}
		ratio = found[CACHE] / found[ENGINE];
		printf("%-22s %7.0f %7.0f %6.2f %7.0f", known[i].name,
		       found[ENGINE], found[CACHE], ratio, found[IN_BINS]);
		if (have_mimalloc)
			printf(" %8.0f", found[MIMALLOC]);
		printf("%s\n", ratio <= RATIO_MAX ? "" : "  MISSED");
		failed |= ratio > RATIO_MAX;
		logarithms[0] += log(found[ENGINE]);
		logarithms[1] += log(found[CACHE]);
	}
	ratio = exp((logarithms[1] - logarithms[0]) / TRACES);
	printf("%-22s %7.0f %7.0f %6.3f%s\n", "geometric mean",
	       exp(logarithms[0] / TRACES), exp(logarithms[1] / TRACES), ratio,
	       ratio <= RATIO_MEAN_MAX ? "" : "  MISSED");
	failed |= ratio > RATIO_MEAN_MAX;
}

static double calls_of(const char *what)
{
	if (!count_by_processor())
		return (double)count_by_callgrind(what, "");
	cache_addresses(!strcmp(what, NOTHING));
	return (double)count_of_last();
}

static void line_of_address(void)
{
	double each = (calls_of(ADDRESS) - calls_of(NOTHING)) / ADDRESS_CALLS;

	printf("flexmem_cache_address(), over a function that does nothing: %.0f, %d at most%s\n",
	       each,
	       ADDRESS_MAX, each <= ADDRESS_MAX ? "" : "  MISSED");
	failed |= each > ADDRESS_MAX;
}

static double pair_of(unsigned int streams, unsigned int pools, bool used)
{
	char what[64];

	snprintf(what, sizeof(what), PAIRS_OF, streams, pools, used);
	if (!count_by_processor())
		return (double)count_by_callgrind(what, "") / PAIRS;
	cache_pairs(streams, pools, used);
	return (double)count_of_last() / PAIRS;
}

static void line_of_many(const char *name, double one, double many)
{
	bool missed = many > 2 * one;

	printf("A pair %-28s %5.0f, with one %5.0f%s\n", name, many, one,
	       missed ? "  MISSED" : "");
	failed |= missed;
}

static double return_of(unsigned int segments, bool streams)
{
	char what[64];

	snprintf(what, sizeof(what), RETURNS, segments, streams);
	if (!count_by_processor())
		return (double)count_by_callgrind(what, "") / REFUSED;
	cache_returns(segments, streams);
	return (double)count_of_last() / REFUSED;
}

static void line_of_returns(const char *name, bool streams)
{
	double few = return_of(500, streams);
	double many = return_of(40000, streams);
	bool missed = many > RETURNS_MAX * few;

	printf("A refused request%s, 40,000 free segments %6.0f, 500 %6.0f%s\n",
	       name, many, few, missed ? "  MISSED" : "");
	failed |= missed;
}

/*
 * The measured cases. The other cases are compared with the first case.
 */
static const struct {
	unsigned int threads;
	unsigned int caches;
	bool waiting;
} cases[] = {
	{ 1, 1, false }, { 2, 1, false }, { 2, 1, true }, { 2, 2, false },
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

struct gains {
	double wall[CASES];
	double cpu[CASES];
};

/* How much more work two threads do in the same time than one thread does. */
static void measure_gain(const struct work *work, const char *configuration,
			 struct gains *gains)
{
	uint64_t wall[CASES][RUNS];
	uint64_t cpu[CASES][RUNS];
	struct spent spent;
	size_t run;
	unsigned int i;

	for (run = 0; run < RUNS; run++) {
		for (i = 0; i < CASES; i++) {
			spent = cache_replay_threads(work, configuration,
						     cases[i].threads,
						     cases[i].caches,
						     cases[i].waiting);
			wall[i][run] = spent.wall;
			cpu[i][run] = spent.cpu;
		}
	}
	for (i = 0; i < CASES; i++) {
		gains->wall[i] = median(wall[i]);
		gains->cpu[i] = median(cpu[i]);
	}
	for (i = 1; i < CASES; i++) {
		gains->wall[i] = 2 * gains->wall[0] / gains->wall[i];
		gains->cpu[i] = 2 * gains->cpu[0] / gains->cpu[i];
	}
}

/*
 * CPU time shows the cost of shared cache lines and locks even on a busy
 * machine. Elapsed time shows that cost only on an idle machine. Two separate
 * caches share nothing, so their figures are the best possible ones.
 */
static void table_of_threads(const struct work *works)
{
	double logarithms[2][CASES] = { 0 };
	struct gains gains;
	size_t i;
	size_t j;

	printf("\nWhat two threads with streams of their own do, one does 1, by CPU time and\n");
	printf("by the clock; the same while a block waits for an event; on a cache each:\n");
	printf("%-22s %7s %7s %7s %7s %7s %7s\n", "trace", "CPU", "clock",
	       "waiting", "clock", "apart", "clock");
	for (i = 0; i < TRACES; i++) {
		measure_gain(&works[i], GROWING, &gains);
		printf("%-22s", known[i].name);
		for (j = 1; j < CASES; j++) {
			printf(" %7.2f %7.2f", gains.cpu[j], gains.wall[j]);
			logarithms[0][j] += log(gains.cpu[j]);
			logarithms[1][j] += log(gains.wall[j]);
		}
		printf("\n");
	}
	printf("%-22s", "geometric mean");
	for (j = 1; j < CASES; j++)
		printf(" %7.2f %7.2f", exp(logarithms[0][j] / TRACES),
		       exp(logarithms[1][j] / TRACES));
	printf("\n");
}

/*
 * What four threads with streams of their own do in the same time with shared
 * segments, compared with a segment for each stream.
 */
static void table_of_rates(const struct work *works)
{
	static const char *const configurations[] = {
		GROWING ",reuse:own", GROWING ",reuse:wait",
	};
	uint64_t wall[2][RUNS];
	uint64_t cpu[2][RUNS];
	double logarithms[2] = { 0 };
	struct spent spent;
	size_t run;
	size_t i;
	size_t j;

	printf("\nWhat four threads do with shared segments, with a segment for each stream 1:\n");
	printf("%-22s %7s %7s\n", "trace", "CPU", "clock");
	for (i = 0; i < TRACES; i++) {
		for (run = 0; run < 2 * RUNS; run++) {
			j = run % 2;
			spent = cache_replay_threads(&works[i],
						     configurations[j], 4, 1,
						     false);
			wall[j][run / 2] = spent.wall;
			cpu[j][run / 2] = spent.cpu;
		}
		spent.cpu = median(cpu[1]);
		spent.wall = median(wall[1]);
		printf("%-22s %7.2f %7.2f\n", known[i].name,
		       median(cpu[0]) / (double)spent.cpu,
		       median(wall[0]) / (double)spent.wall);
		logarithms[0] += log(median(cpu[0]) / (double)spent.cpu);
		logarithms[1] += log(median(wall[0]) / (double)spent.wall);
	}
	printf("%-22s %7.2f %7.2f\n", "geometric mean",
	       exp(logarithms[0] / TRACES), exp(logarithms[1] / TRACES));
}

/*
 * Adds the bytes that each policy, and the cache, reserve for a thinned copy of
 * a trace.
 */
static void add_copy(const struct work *work, uint64_t seed, double *sums)
{
	uint64_t reserved[POLICIES + 1];
	struct work copy;
	size_t i;

	work_thin(&copy, work, seed);
	for (i = 0; i < POLICIES; i++)
		reserved[i] = list_reserved(&copy, policies[i].choices,
					    policies[i].best_from);
	cache_replay(&copy, GROWING, &reserved[POLICIES]);
	for (i = 0; i <= POLICIES; i++)
		sums[i] += over(reserved[i], &copy) / COPIES;
	work_free(&copy);
}

static void table_of_copies(const struct work *works)
{
	double sums[POLICIES + 1];
	size_t copy;
	size_t i;
	size_t j;

	printf("\nReserved / live, mean of %d copies without 1 %% of the blocks:\n%-22s",
	       COPIES, "trace");
	for (j = 0; j < POLICIES; j++)
		printf(" %14s", policies[j].name);
	printf(" %14s\n", "cache");
	for (i = 0; i < TRACES; i++) {
		memset(sums, 0, sizeof(sums));
		for (copy = 0; copy < COPIES; copy++)
			add_copy(&works[i], FIRST_SEED + copy, sums);
		printf("%-22s", known[i].name);
		for (j = 0; j <= POLICIES; j++)
			printf(" %14.4f", sums[j]);
		/* Compares the cache with policy 0, which is the engine's. */
		printf("%s\n", judge(sums[POLICIES], sums[0]));
	}
}

/*
 * Streams take turns. Memory in the segments of one stream must be available to
 * the other streams.
 */
static void row_of_failures(const struct work *work, const char *name,
			    unsigned int streams)
{
	static const double shares[] = { 1.05, 1.10, 1.25, 1.50 };
	uint64_t growing;
	uint64_t fixed;
	uint64_t bytes;
	bool missed = false;
	size_t i;

	printf("%-22s %7u", name, streams);
	for (i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		bytes = (uint64_t)(shares[i] * (double)work->live_peak);
		bytes += BENCH_STEP - bytes % BENCH_STEP;
		growing = cache_failures(work, GROWING, bytes, streams);
		fixed = cache_failures(work, "", bytes, streams);
		missed |= growing > fixed;
		printf(" %7llu %7llu", (unsigned long long)growing,
		       (unsigned long long)fixed);
	}
	printf("%s\n", missed ? "  MISSED" : "");
	failed |= missed;
}

static void table_of_failures(const struct work *works)
{
	static const unsigned int streams[] = { 1, 2, 4 };
	size_t i;
	size_t j;

	printf("\nRequests that fail on a device of so many times the peak, of segments that\n");
	printf("grow and of fixed ones:\n%-22s %7s %15s %15s %15s %15s\n", "trace",
	       "streams", "1.05", "1.10", "1.25", "1.50");
	for (i = 0; i < TRACES; i++) {
		for (j = 0; j < sizeof(streams) / sizeof(streams[0]); j++)
			row_of_failures(&works[i], known[i].name, streams[j]);
	}
}

/*
 * @max: the most that four streams may reserve: the geometric mean over the
 * traces, round robin and in turns, and the trace of a program with four
 * streams.
 */
static const struct {
	const char *name;
	const char *configuration;
	double max[3];
} reuses[] = {
	{ "wait", GROWING ",reuse:wait", { 1.10, 1.09, 1.07 } },
	{ "done", GROWING ",reuse:done", { 1.15, 1.15, 1.15 } },
};

#define REUSES (sizeof(reuses) / sizeof(reuses[0]))

static double cell_of_streams(const struct work *work, size_t reuse,
			      enum bench_streams streams)
{
	double waits;
	double ratio = streams_ratio(work, reuses[reuse].configuration, streams,
				     &waits);

	printf(" %7.3f %6.2f", ratio, waits);
	return ratio;
}

static void print_means(const double *logarithms)
{
	double ratio;
	size_t i;

	printf("%-22s", "geometric mean");
	for (i = 0; i < 2 * REUSES; i++) {
		ratio = exp(logarithms[i] / TRACES);
		printf(" %7.3f %6s", ratio,
		       ratio <= reuses[i / 2].max[i % 2] ? "" : "MISSED");
		failed |= ratio > reuses[i / 2].max[i % 2];
	}
	printf("\n");
}

/* One cell for each setting of reuse, and for round robin and turns. */
static void table_of_streams(const struct work *works, const char *directory)
{
	double logarithms[2 * REUSES] = { 0 };
	struct work serving;
	char path[4096];
	double ratio;
	size_t i;
	size_t j;

	printf("\nReserved / live of four streams, and waits of a stream for 100 allocations,\n");
	printf("with the settings reuse:wait and reuse:done, round robin and in turns:\n");
	printf("%-22s %14s %14s %14s %14s\n", "trace", "wait", "in turns",
	       "done", "in turns");
	for (i = 0; i < TRACES; i++) {
		printf("%-22s", known[i].name);
		for (j = 0; j < 2 * REUSES; j++)
			logarithms[j] +=
				log(cell_of_streams(&works[i], j / 2, j % 2));
		printf("\n");
	}
	print_means(logarithms);
	snprintf(path, sizeof(path), "%s/%s.trace.gz", directory, SERVING);
	work_read(&serving, path);
	for (j = 0; j < REUSES; j++) {
		printf("%-22s", j ? " the same, done" : SERVING);
		ratio = cell_of_streams(&serving, j, BENCH_OWN_STREAMS);
		printf("%s\n", ratio <= reuses[j].max[2] ? "" : "  MISSED");
		failed |= ratio > reuses[j].max[2];
	}
	work_free(&serving);
}

typedef void (*table_fn)(const struct work *works);

/* Returns the only table that an option prints, or NULL. */
static table_fn find_table(const char *option)
{
	if (!strcmp(option, "--threads"))
		return table_of_threads;
	if (!strcmp(option, "--rates"))
		return table_of_rates;
	if (!strcmp(option, "--copies"))
		return table_of_copies;
	return strcmp(option, "--failures") ? NULL : table_of_failures;
}

int main(int argc, char **argv)
{
	struct work works[TRACES];
	char path[4096];
	bool streams;
	size_t i;

	if (argc == 4 && !strcmp(argv[1], "--count"))
		return count(argv[2], argv[3]);
	streams = argc == 3 && !strcmp(argv[1], "--streams");
	if (argc != 2 && !streams && !(argc == 3 && find_table(argv[1]))) {
		fprintf(stderr, "usage: bench [--copies | --failures | --rates | --streams | --threads] DIRECTORY-OF-TRACES\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < TRACES; i++) {
		path_of(argv[argc - 1], i, path, sizeof(path));
		work_read(&works[i], path);
	}
	if (streams) {
		table_of_streams(works, argv[2]);
		return failed;
	}
	if (argc == 3) {
		find_table(argv[1])(works);
		return failed;
	}
	have_mimalloc = mimalloc_find();
	table_of_times(works);
	table_of_instructions(works, argv[1]);
	line_of_address();
	line_of_many("on one of 16 streams:", pair_of(16, 0, false),
		     pair_of(1, 0, false));
	line_of_many("on one of 1,024 streams:", pair_of(1024, 0, false),
		     pair_of(1, 0, false));
	line_of_many("on one of 4,096 streams:", pair_of(4096, 0, false),
		     pair_of(1, 0, false));
	line_of_many("used by 2 of 4,096 streams:", pair_of(4096, 0, true),
		     pair_of(1, 0, true));
	line_of_many("in the oldest of 1,000 pools:", pair_of(1, 1000, false),
		     pair_of(1, 1, false));
	line_of_returns("", false);
	line_of_returns(" on a new stream", true);
	table_of_threads(works);
	table_of_rates(works);
	table_of_copies(works);
	table_of_failures(works);
	table_of_streams(works, argv[1]);
	for (i = 0; i < TRACES; i++)
		work_free(&works[i]);
	return failed;
}
