// SPDX-License-Identifier: GPL-2.0
/*
 * The two ends of the fuzzer: where inputs come from (libFuzzer, files or
 * random numbers), and how an input becomes a PF or VF with its settings. A
 * corpus has one input a line, in hexadecimal, and lines that begin with #.
 * usage: fuzz [-s SEED] [-n RANDOM-INPUTS] [-c CORPUS] [-v] [FILE...]
 */
#include "shim/internal.h"

#include <kunit/test.h>
#include <unistd.h>

#include "fuzz.h"

static bool verbose;

u8 fuzz_take(struct fuzz *f)
{
	return f->at < f->end ? *f->at++ : 0;
}

/*
 * Reports a finding and aborts. libFuzzer treats that as a crash and keeps the
 * input.
 */
void fuzz_wrong(struct fuzz *f, const char *format, ...)
{
	char text[300];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	native_bug(f->name, f->command, "%s", text);
}

/*
 * The part of KUnit that the model and the fake device use: one test, which
 * never ends. Each failure is fatal.
 */
static struct kunit test = { .name = "fuzz" };

static struct {
	void (*function)(void *data);
	void *data;
} actions[16];

static unsigned int nr_actions;

void native_kunit_add(struct kunit_suite *suite)
{
}

struct kunit *kunit_get_current_test(void)
{
	return &test;
}

void native_kunit_fail(struct kunit *test, bool abort, const char *file,
		       int line, const char *what)
{
	native_bug(file, line, "not so: %s", what);
}

void native_kunit_abort(struct kunit *test)
{
	shim_bug("a test is ended");
}

void native_kunit_say(const char *format, ...)
{
}

int kunit_add_action(struct kunit *test, void (*function)(void *data),
		     void *data)
{
	if (nr_actions == ARRAY_SIZE(actions))
		return -ENOMEM;
	actions[nr_actions].function = function;
	actions[nr_actions++].data = data;
	return 0;
}

/* Never freed: the model is made once and serves all inputs. */
void *kunit_kzalloc(struct kunit *test, size_t size, gfp_t gfp)
{
	return calloc(1, size);
}

void *kunit_kcalloc(struct kunit *test, size_t n, size_t size, gfp_t gfp)
{
	return calloc(n, size);
}

/* ---- settings ---- */

/*
 * Gives half of the devices a second domain, which is on-chip memory or device
 * memory.
 */
static void choose_domains(struct fuzz *f, u8 kinds)
{
	f->model->nr_domains = 1 + (kinds >> 7);
	f->model->default_domains = kinds & 64 ? model_all_domains(f->model) :
						 1;
	f->model->domain[1] = (struct model_domain) {
		.nr_sizes = 2,
		.sizes = { SZ_8M, SZ_2M },
		.capacity = 12 * SZ_1M,
		.device_capacity = 12 * SZ_1M,
	};
}

static void choose_sizes(struct fuzz *f)
{
	static const u8 lists[8][4] = {
		{ 16, 8, 4 }, { 8 }, { 4, 8, 32 }, { 64, 16, 2 }, { 2 },
		{ 32, 2, 8, 8 }, { 12, 6 }, { 2, 64 },
	};
	u8 kinds = fuzz_take(f);
	const u8 *list = lists[kinds % ARRAY_SIZE(lists)];
	unsigned int i;

	choose_domains(f, kinds);
	for (i = 0; i < ARRAY_SIZE(lists[0]) && list[i]; i++)
		f->settings.sizes[i] = list[i] * SZ_1M;
	f->settings.nr_sizes = i;
}

static void choose_settings(struct fuzz *f)
{
	struct flexmem_settings *s = &f->settings;
	u8 kinds = fuzz_take(f), slots = fuzz_take(f);

	f->model->mode = kinds & 1 ? FLEXMEM_MODE_VF : FLEXMEM_MODE_PF;
	s->fit = kinds & 2 ? FLEXMEM_FIT_BEST : FLEXMEM_FIT_FIRST;
	s->order = kinds & 4 ? FLEXMEM_ORDER_FILL_FIRST :
			       FLEXMEM_ORDER_LOAD_BALANCE;
	s->acquire = kinds & 8 ? FLEXMEM_ACQUIRE_PREALLOC :
				 FLEXMEM_ACQUIRE_LAZY;
	s->default_depth = 1 + (kinds >> 7);
	s->max_regions = 1 + (slots & 7);
	s->program_slots = (slots >> 3 & 3) % s->max_regions;
	choose_sizes(f);
	f->model->hw_slots = 1 + (slots >> 5);
	/*
	 * Settings that need more slots than the firmware's table has are
	 * refused.
	 */
	if (f->model->mode == FLEXMEM_MODE_VF)
		s->program_slots %= min(f->model->hw_slots, s->max_regions);
	f->model->domain[0].capacity = max_t(u64, fuzz_take(f), 1) * 2ULL *
				       SZ_1M;
	f->model->domain[0].device_capacity = f->model->domain[0].capacity;
	f->model->refused_slots = (kinds & 65) == 65 ? fuzz_take(f) : 0;
	f->bare = (kinds & 193) == 193;
	s->pf_open = (kinds & 65) == 64 ? FLEXMEM_PF_OPEN_MODE :
					  FLEXMEM_PF_OPEN_ADMIN;
}

static void set(const char *name, const char *format, ...)
{
	char text[128];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	WARN(native_param_set(name, text), "%s=%s", name, text);
}

/* Sets the module's parameters as text, as an administrator does. */
static void set_params(const struct flexmem_settings *s)
{
	char sizes[128] = "";
	unsigned int i;
	int at = 0;

	for (i = 0; i < s->nr_sizes; i++)
		at += scnprintf(sizes + at, sizeof(sizes) - at, "%s%lluM",
				i ? "," : "", s->sizes[i] / SZ_1M);
	set("strategy", s->fit == FLEXMEM_FIT_BEST ? "best_fit" : "first_fit");
	set("order", s->order == FLEXMEM_ORDER_FILL_FIRST ? "fill_first" :
							    "load_balance");
	set("acquire", s->acquire ? "prealloc" : "lazy");
	set("fallback_sizes", "%s", sizes);
	set("max_regions", "%u", s->max_regions);
	set("program_slots", "%u", s->program_slots);
	set("default_depth", "%u", s->default_depth);
	set("pf_open", s->pf_open ? "mode" : "admin");
}

/*
 * If no region size fits the device, flexmem makes all of it one region. The
 * model gets this size.
 */
static void choose_small_size(struct fuzz *f)
{
	struct flexmem_settings *s = &f->settings;
	unsigned int i;

	for (i = 0; i < s->nr_sizes; i++)
		if (s->sizes[i] <= f->model->domain[0].capacity)
			return;
	memset(s->sizes, 0, sizeof(s->sizes));
	s->sizes[0] = f->model->domain[0].capacity;
	s->nr_sizes = 1;
}

static void start_model(struct fuzz *f)
{
	struct model *model = f->model;

	model->fit = f->settings.fit;
	model->order = f->settings.order;
	model->acquire = f->settings.acquire;
	model->max_regions = f->settings.max_regions;
	model->program_slots = f->settings.program_slots;
	model->domain[0].nr_sizes = f->settings.nr_sizes;
	memcpy(model->domain[0].sizes, f->settings.sizes,
	       sizeof(model->domain[0].sizes));
	model->tries = FLEXMEM_FIT_TRIES;
	model->rules = &fuzz_rules;
	model->priv = f;
	model_start(model);
	if (model->acquire == FLEXMEM_ACQUIRE_PREALLOC)
		WARN_ON(model_prealloc(model));
}

static void add_domain(struct fuzz *f)
{
	const struct model_domain *second = &f->model->domain[1];
	struct flexmem_domain_desc *desc = &f->fake->domains[1];

	fake_device_add_domain(f->fake, f->model->default_domains & 2 ?
					FLEXMEM_DOMAIN_DEVICE :
					FLEXMEM_DOMAIN_ON_CHIP,
			       second->capacity);
	desc->nr_sizes = second->nr_sizes;
	memcpy(desc->sizes, second->sizes, sizeof(desc->sizes));
}

static void add_pages(struct fuzz *f, struct flexmem_device_desc *desc)
{
	f->ops = *desc->ops;
	f->ops.vm_map = fake_vm_map;
	f->ops.vm_unmap = fake_vm_unmap;
	f->fake->max_pages = f->settings.max_regions & 1 ? 2 : FAKE_MAX_PAGES;
	desc->ops = &f->ops;
	desc->vm_page = f->vm_page;
	desc->vm_start = FUZZ_VM_START;
	desc->vm_end = FUZZ_VM_START + FUZZ_PAGES * f->vm_page;
}

static void begin(struct fuzz *f)
{
	struct flexmem_device_desc desc;

	choose_settings(f);
	set_params(&f->settings);
	choose_small_size(f);
	start_model(f);
	f->fake = fake_device_create(&test, f->model->mode,
				     f->model->hw_slots,
				     f->model->domain[0].capacity);
	if (f->model->nr_domains > 1)
		add_domain(f);
	f->fake->bare = f->bare;
	f->vm_page = f->settings.max_regions == 8 ? SZ_64K : SZ_4K;
	f->fake->refused_slots = f->model->refused_slots;
	device_initialize(&f->parent);
	WARN_ON(dev_set_name(&f->parent, "fake"));
	desc = fake_device_desc(f->fake);
	if (!f->bare)
		add_pages(f, &desc);
	f->fdev = flexmem_device_register(&f->parent, &desc);
	SAME(f, PTR_ERR_OR_ZERO(f->fdev), 0);
	/* Background work runs only when an input calls fuzz_time(). */
	f->fdev->table.function.work_ms = INT_MAX;
	f->minor = MINOR(f->fdev->dev.devt);
	fuzz_check(f);
}

/*
 * Closes all files and checks that no allocation, no account and no pending
 * command is left.
 */
static void end(struct fuzz *f)
{
	unsigned int i;

	f->name = "end";
	fuzz_recover(f);
	for (i = 0; i < FUZZ_FILES; i++)
		fuzz_close(f, i);
	SAME(f, f->nr, 0);
	fuzz_check(f);
	if (!f->gone)
		fuzz_unregister(f);
	/* Runs the fake device's own checks, which report wrong calls. */
	while (nr_actions--)
		actions[nr_actions].function(actions[nr_actions].data);
	nr_actions = 0;
	free(f->fake);
}

/**
 * fuzz_run - run an input
 * @data: any bytes
 * @size: number of bytes
 */
void fuzz_run(const u8 *data, size_t size)
{
	static struct model *model;
	static bool numbered[2];
	static struct fuzz f;
	long live;

	if (!model)
		model = model_create(&test);
	f = (struct fuzz) {
		.at = data,
		.end = data + size,
		.name = "begin",
		.model = model,
	};
	memset64(f.default_limit, FLEXMEM_NO_LIMIT, FLEXMEM_NR_RESOURCES);
	f.default_limit[FLEXMEM_RESOURCE_HANDLES] = FLEXMEM_DEFAULT_HANDLES;
	f.default_limit[FLEXMEM_RESOURCE_FILES] = FLEXMEM_DEFAULT_FILES;
	live = native_live();
	begin(&f);
	while (f.at < f.end && f.command < FUZZ_COMMANDS) {
		f.command++;
		fuzz_command(&f);
		if (verbose)
			printf("# %u %s\n", f.command, f.name);
		fuzz_check(&f);
	}
	end(&f);
	/*
	 * The driver remembers the name of a numbered device, so the first
	 * registration leaves an object that is no leak.
	 */
	if (native_live() != live && numbered[model->mode])
		fuzz_wrong(&f, "%ld objects are left", native_live() - live);
	numbered[model->mode] = true;
}

static void load(void)
{
	native_shim_init();
	fuzz_check_weights();
	WARN_ON(native_module_init());
	fuzz_cgroup[0] = native_cgroup_root;
	fuzz_cgroup[1] = native_cgroup_make(fuzz_cgroup[0]);
	fuzz_cgroup[2] = native_cgroup_make(fuzz_cgroup[1]);
}

#ifdef NATIVE_FUZZER
/* checkpatch: CAMELCASE - libFuzzer calls it so */
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	if (!current)
		load();
	fuzz_run(data, size);
	return 0;
}
#else
static unsigned int count;

/*
 * Runs a copy of exactly @size bytes, so that ASan detects a read beyond the
 * end.
 */
static void run(const u8 *data, size_t size)
{
	u8 *input = malloc(size ?: 1);

	if (!input)
		abort();
	memcpy(input, data, size);
	count++;
	fuzz_run(input, size);
	free(input);
}

static FILE *open_file(const char *name)
{
	FILE *file = fopen(name, "r");

	if (!file) {
		fprintf(stderr, "%s cannot be read\n", name);
		exit(2);
	}
	return file;
}

static void run_file(const char *name)
{
	static u8 data[1 << 20];
	FILE *file = open_file(name);
	size_t size = fread(data, 1, sizeof(data), file);

	fclose(file);
	fprintf(stderr, "%s\n", name);
	run(data, size);
}

static void run_corpus(const char *name)
{
	FILE *file = open_file(name);
	unsigned int nr = 0, byte;
	char *line = NULL;
	size_t room = 0, size;

	while (getline(&line, &room, file) > 0) {
		nr++;
		if (*line == '#')
			continue;
		/* Decodes in place: two digits become one byte. */
		for (size = 0; sscanf(line + 2 * size, "%2x", &byte) == 1; size++)
			line[size] = byte;
		fprintf(stderr, "%s:%u\n", name, nr);
		run((u8 *)line, size);
	}
	free(line);
	fclose(file);
}

static void run_random(u64 seed)
{
	struct rnd_state rnd;
	u8 data[1000];
	size_t size;

	prandom_seed_state(&rnd, seed);
	size = 8 + prandom_u32_state(&rnd) % (sizeof(data) - 8);
	prandom_bytes_state(&rnd, data, size);
	fprintf(stderr, "random input -s %llu -n 1\n", seed);
	run(data, size);
}

int main(int argc, char **argv)
{
	const char *corpus = NULL;
	unsigned long random = 0, i;
	u64 seed = 1;
	int option;

	while ((option = getopt(argc, argv, "s:n:c:v")) != -1) {
		if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (option == 'n')
			random = strtoul(optarg, NULL, 0);
		else if (option == 'c')
			corpus = optarg;
		else if (option == 'v')
			verbose = true;
		else
			return 2;
	}
	os_one_processor();
	load();
	if (corpus)
		run_corpus(corpus);
	for (; optind < argc; optind++)
		run_file(argv[optind]);
	for (i = 0; i < random; i++)
		run_random(seed + i);
	native_module_exit();
	printf("ok 1 - fuzz: %u inputs, seed %llu\n1..1\n", count, seed);
	return 0;
}
#endif
