// SPDX-License-Identifier: GPL-2.0
/*
 * The module, the card, and its PF and VFs. The card is the simulator's. This
 * file replaces the platform devices and debugfs files of kmod/sim/main.c.
 */

#include "shim/internal.h"

#include "checks.h"
#include "chardev.h"
#include "parts/space.h"
#include "watch.h"
#include "world.h"

struct world world;

static void set_params(const char *params)
{
	static const char * const defaults[][2] = {
		{ "strategy", "first_fit" }, { "order", "load_balance" },
		{ "acquire", "lazy" }, { "fallback_sizes", "12G,8G,4G" },
		{ "max_regions", "12" }, { "program_slots", "0" },
		{ "default_depth", "2" },
		{ "release_after_s", "0" }, { "pf_open", "admin" },
	};
	char text[256], *rest = text, *word, *value;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(defaults); i++)
		WARN_ON(native_param_set(defaults[i][0], defaults[i][1]));
	strscpy(text, params, sizeof(text));
	while ((word = strsep(&rest, " "))) {
		value = strchr(word, '=');
		if (!value)
			continue;
		*value++ = '\0';
		WARN(native_param_set(word, value), "parameter %s", word);
	}
}

static void add_function(unsigned int index)
{
	struct device *parent = &world.parent[index];

	memset(parent, 0, sizeof(*parent));
	device_initialize(parent);
	WARN_ON(dev_set_name(parent, "card.%u", index));
	world_function(index)->ops = watch_ops(index);
}

static struct sim_domains domains;

static void begin(const char *params, u64 pf_capacity, u64 vf_capacity)
{
	const struct sim_geometry geometry = {
		.domains = &domains,
		.pf_capacity = pf_capacity,
		.vf_capacity = vf_capacity,
		.slots = 8,
		.space = SIM_DEFAULT_SPACE,
	};
	unsigned int i;

	world.live = native_live();
	set_params(params);
	WARN_ON(native_module_init());
	memset(&world.card, 0, sizeof(world.card));
	WARN_ON(sim_card_init(&world.card, &geometry, 1000, WORLD_JOB_MS));
	for (i = 0; i < WORLD_FUNCTIONS; i++) {
		add_function(i);
		WARN_ON(world_bind(i));
	}
}

/**
 * world_begin - load the module, switch the card on, bind all drivers
 * @params: parameters of flexmem.ko
 * @memory: bytes of the card; each VF may acquire half of them
 */
void world_begin(const char *params, u64 memory)
{
	sim_domains_one(&domains, memory);
	begin(params, memory / 4, memory / 2);
}

/**
 * world_begin_domains - world_begin() with a card that has several memories
 * @params: parameters of flexmem.ko
 * @text: description of the memories, as in the simulator's parameter
 */
void world_begin_domains(const char *params, const char *text)
{
	size_t at;

	WARN_ON(sim_domains_parse(&domains, text, &at));
	begin(params, domains.size[0], domains.size[0]);
}

/**
 * world_end - unload everything, and check that nothing is left
 */
void world_end(void)
{
	unsigned int i;

	world_heal();
	for (i = 0; i < WORLD_FUNCTIONS; i++)
		world_unbind(i);
	sim_card_destroy(&world.card);
	native_module_exit();
	WARN(native_live() != world.live, "%ld objects are left",
	     native_live() - world.live);
}

/* Checks that the number of a node is in the range of PFs or VFs. */
static void check_minor(unsigned int index)
{
	int minor = world_minor(index);

	/* Another task may have unbound the PF or VF. */
	WARN(minor >= 0 && !index != (minor < FLEXMEM_MAX_PFS),
	     "function %u has node %d", index, minor);
}

/*
 * Held during a bind or unbind, so that watch.c gets the events in the order in
 * which they happen.
 */
static DEFINE_MUTEX(bind_lock);

int world_bind(unsigned int index)
{
	int rc;

	mutex_lock(&bind_lock);
	rc = sim_function_bind(world_function(index), &world.parent[index],
			       "card");
	if (!rc)
		check_minor(index);
	else if (rc != -EBUSY)
		watch_gone(index);
	mutex_unlock(&bind_lock);
	return rc;
}

int world_unbind(unsigned int index)
{
	int rc;

	mutex_lock(&bind_lock);
	rc = sim_function_unbind(world_function(index));
	watch_gone(index);
	mutex_unlock(&bind_lock);
	return rc;
}

int world_reset(unsigned int index)
{
	return sim_function_reset(world_function(index));
}

void world_fail(unsigned int index)
{
	struct sim_function *fn = world_function(index);

	mutex_lock(&fn->lock);
	if (fn->fdev)
		flexmem_device_failed(fn->fdev);
	mutex_unlock(&fn->lock);
}

int world_suspend(unsigned int index)
{
	int rc = sim_function_suspend(world_function(index));

	if (!rc)
		watch_asleep(index, true);
	return rc;
}

int world_resume(unsigned int index)
{
	watch_asleep(index, false);
	return sim_function_resume(world_function(index));
}

int world_set_capacity(unsigned int index, u64 bytes)
{
	int rc = sim_firmware_set_capacity(world.card.fw, index, bytes);

	if (!rc)
		sim_function_capacity_changed(world_function(index));
	return rc;
}

/* The number of the node, or -ENODEV. */
int world_minor(unsigned int index)
{
	struct sim_function *fn = world_function(index);
	int minor = -ENODEV;

	mutex_lock(&fn->lock);
	if (fn->fdev)
		minor = MINOR(fn->fdev->dev.devt);
	mutex_unlock(&fn->lock);
	return minor;
}

/**
 * world_run - run a job on the PF or VF of a file
 * @file: file; the caller keeps it open
 * @run: the job; @run->fd is a number that no other task uses
 * @fence: receives the fence of the job
 *
 * Return: what sim_queue_run() returned.
 */
int world_run(struct file *file, struct sim_run *run, struct dma_fence **fence)
{
	struct flexmem_file *private = file->private_data;
	struct sim_function *fn = private->fdev->table.function.priv;
	int rc;

	native_file_get(file);
	WARN_ON(!native_install(run->fd, file));
	rc = sim_queue_run(&fn->queue, run, fence);
	native_close(native_uninstall(run->fd));
	return rc;
}

void world_faults(enum sim_fault fault, unsigned int times)
{
	atomic_set(&world.card.mbox.faults[fault], times);
}

/* Resets a PF or VF that has failed. */
static void repair(unsigned int index)
{
	struct sim_function *fn = world_function(index);
	bool failed;

	mutex_lock(&fn->lock);
	failed = fn->fdev &&
		 flexmem_function_fatal(&fn->fdev->table.function);
	mutex_unlock(&fn->lock);
	if (failed)
		world_reset(index);
}

/*
 * Ends all injected failures and delays, and resumes the PF and all VFs. Resets
 * those that have failed.
 */
void world_heal(void)
{
	unsigned int i;

	for (i = 0; i < SIM_NR_FAULTS; i++)
		world_faults(i, 0);
	WRITE_ONCE(world.card.mbox.latency_us, 0);
	sim_mailbox_set_dead(&world.card.mbox, false);
	for (i = 0; i < WORLD_FUNCTIONS; i++) {
		world_resume(i);
		repair(i);
	}
}

static const char *sums_wrong(const struct flexmem_view *view)
{
	const struct flexmem_snapshot *sum = &view->sum;
	u64 clients = 0, root = 0, orphans = 0;
	unsigned int i;

	if (sum->out_owner_count > view->nr_owners)
		return "more owners than in the first batch";
	if (sum->out_free + sum->out_owned + sum->out_orphaned +
	    sum->out_reserved + sum->out_quarantined != sum->out_total)
		return "the sums do not add up";
	for (i = 0; i < sum->out_owner_count; i++) {
		const struct flexmem_owner_entry *owner = &view->owner[i];

		if (owner->kind == FLEXMEM_OWNER_CGROUP) {
			root = max(root, owner->bytes);
			continue;
		}
		clients += owner->bytes;
		orphans += owner->orphaned;
	}
	if (clients != sum->out_owned || root != sum->out_owned ||
	    orphans != sum->out_orphaned)
		return "the owners' bytes are not all bytes";
	return NULL;
}

static void take_picture(struct flexmem_table *table, struct picture *picture)
{
	memset(picture, 0, sizeof(*picture));
	picture->view.owner = picture->owner;
	flexmem_table_snapshot(table, NULL, &picture->view);
}

static const char *table_wrong(struct flexmem_table *table)
{
	struct picture *picture = malloc(sizeof(*picture));
	const char *wrong = checks_of_table(table);

	if (!picture)
		abort();
	take_picture(table, picture);
	if (!wrong)
		wrong = sums_wrong(&picture->view);
	free(picture);
	return wrong;
}

/* The slot whose region contains the piece, or the number of slots. */
static unsigned int find_piece(struct flexmem_table *table,
			       const struct sim_piece *piece)
{
	struct flexmem_region *region;
	unsigned int slot;

	for (slot = 0; slot < table->slots.nr; slot++) {
		region = flexmem_region_at(table, slot);
		if (region && region->mem.base == piece->base &&
		    region->mem.size == piece->size)
			break;
	}
	return slot;
}

/**
 * world_translate - translate the address of a program's access
 * @index: number of the PF or VF that runs the program
 * @space: the device-virtual space that the program runs in
 * @address: accessed address
 * @access: kind of access, of enum flexmem_vm_access
 * @physical: receives the physical address
 *
 * Return: false if the access faults.
 */
bool world_translate(unsigned int index, u64 space, u64 address, u32 access,
		     u64 *physical)
{
	struct sim_mapping map;
	unsigned int i;

	for (i = 0; i < SIM_MAX_MAPPINGS; i++) {
		if (!sim_firmware_mapping(world.card.fw, index, i, &map) ||
		    map.space != space || address < map.address ||
		    address - map.address >= map.size || access & ~map.access)
			continue;
		*physical = map.physical + (address - map.address);
		return true;
	}
	return false;
}

static const struct flexmem_binding *to_binding(const struct rb_node *node)
{
	return rb_entry(node, struct flexmem_binding, addresses.node);
}

static const char *mapping_wrong(const struct flexmem_space *space,
				 const struct sim_mapping *map)
{
	struct rb_node *node = rb_first(&space->by_address);
	const struct flexmem_binding *binding;
	const struct flexmem_block *chunk;
	u64 at, offset;

	while (node && map->address - to_binding(node)->addresses.start >=
		       to_binding(node)->addresses.size)
		node = rb_next(node);
	if (!node)
		return "the card maps what is not bound";
	binding = to_binding(node);
	at = map->address - binding->addresses.start;
	offset = binding->bytes.start + at;
	chunk = flexmem_allocation_chunk(binding->allocation, &offset);
	if (map->physical != chunk->region->mem.base + chunk->start +
			     offset ||
	    map->size > chunk->size - offset ||
	    map->size > binding->addresses.size - at)
		return "the card maps other bytes than those that are bound";
	return map->access != binding->access ?
		"the card allows another access" : NULL;
}

/* Each entry of the card's page table must match a binding. */
static const char *mappings_wrong(unsigned int index,
				  struct flexmem_table *table)
{
	const char *wrong = NULL;
	struct sim_mapping map;
	struct flexmem_vm *vm;
	unsigned int i;

	for (i = 0; i < SIM_MAX_MAPPINGS && !wrong; i++) {
		if (!sim_firmware_mapping(world.card.fw, index, i, &map))
			continue;
		wrong = "the card maps a space that has no bindings";
		list_for_each_entry(vm, &table->function.vms, link) {
			if (vm->space != map.space)
				continue;
			wrong = vm->closed ? NULL :
				mapping_wrong(container_of(vm, struct flexmem_space, vm),
					      &map);
		}
	}
	return wrong;
}

/* Each page that is bound must be mapped, unless its memory is lost. */
static const char *binding_wrong(unsigned int index,
				 const struct flexmem_binding *binding)
{
	const struct flexmem_span *span = &binding->addresses;
	u64 at, unused;

	if (binding->state != FLEXMEM_BINDING_BOUND ||
	    flexmem_allocation_error(binding->allocation))
		return NULL;
	for (at = 0; at < span->size; at += SIM_VM_PAGE)
		if (!world_translate(index, binding->space->vm.space,
				     span->start + at, binding->access,
				     &unused))
			return "the card does not map what is bound";
	return NULL;
}

static const char *space_wrong(const struct flexmem_space *space)
{
	const char *wrong = NULL;
	struct rb_node *node;
	unsigned int index;

	for (index = 0; index < WORLD_FUNCTIONS; index++) {
		struct flexmem_dev *fdev = world_function(index)->fdev;

		if (!fdev || space->table != &fdev->table)
			continue;
		for (node = rb_first(&space->by_address); node && !wrong;
		     node = rb_next(node))
			wrong = binding_wrong(index, to_binding(node));
	}
	return wrong;
}

/* The card's records of a PF or VF must match the driver's table. */
static const char *card_wrong(unsigned int index, struct flexmem_table *table)
{
	struct sim_piece piece = {};
	unsigned int nr = 0, slot;

	lockdep_assert_held(&table->acquire_lock);
	while (sim_firmware_next_piece(world.card.fw, index, &piece)) {
		slot = find_piece(table, &piece);
		if (slot == table->slots.nr)
			return "the card gave memory that no region is in";
		if (index && piece.slot != slot)
			return "the card's slot points elsewhere";
		nr++;
	}
	for (slot = 0; slot < table->slots.nr; slot++)
		nr -= !!flexmem_region_at(table, slot);
	return nr ? "a region has no memory of the card" :
		    mappings_wrong(index, table);
}

/*
 * Checks that no command is pending any more, except commands that need a
 * reset.
 */
static const char *settled_wrong(unsigned int index,
				 struct flexmem_table *table)
{
	const char *wrong = NULL;

	mutex_lock(&table->acquire_lock);
	if (!flexmem_function_error(&table->function) && !flexmem_table_retry(table, true))
		wrong = card_wrong(index, table);
	mutex_unlock(&table->acquire_lock);
	return wrong;
}

/**
 * world_wrong - check every invariant of a PF or VF
 * @index: number of the PF or VF
 *
 * Return: NULL, or a text that says what is wrong. No other task may be in a
 * command.
 */
const char *world_wrong(unsigned int index)
{
	struct sim_function *fn = world_function(index);
	const char *wrong = NULL;

	mutex_lock(&fn->lock);
	if (fn->fdev)
		wrong = table_wrong(&fn->fdev->table) ?:
			settled_wrong(index, &fn->fdev->table);
	mutex_unlock(&fn->lock);
	return wrong;
}

/* Checks an open file and its PF or VF, which may have been removed. */
const char *world_file_wrong(struct file *file)
{
	struct flexmem_file *private = file->private_data;
	const struct flexmem_space *space = private->client.space;
	const char *wrong = checks_of_client(&private->client);

	wrong = wrong ?: table_wrong(&private->fdev->table);
	return wrong ?: space ? space_wrong(space) : NULL;
}

/* Adds up the bytes of each chunk of a client that is not lost, by slot. */
static void add_chunks(struct flexmem_client *client, u64 *bytes)
{
	struct flexmem_allocation *allocation;
	const struct flexmem_block *chunk;
	u32 index = 0, i;

	spin_lock(&client->handles.lock);
	while ((allocation = flexmem_handles_next(&client->handles, &index)))
		for (i = 0; i < allocation->nr_chunks; i++) {
			chunk = allocation->chunks[i];
			if (!flexmem_region_is_lost(chunk->region))
				bytes[chunk->region->slot] += chunk->size;
		}
	spin_unlock(&client->handles.lock);
}

/**
 * world_charges_wrong - check for what a file is charged in each slot
 * @file: a file that is in no command; no command of a killed caller is left
 *
 * Return: NULL, or a text that says what is wrong.
 */
const char *world_charges_wrong(struct file *file)
{
	struct flexmem_file *private = file->private_data;
	struct flexmem_account *account = private->client.account;
	u64 bytes[FLEXMEM_MAX_SLOTS] = {};
	const char *wrong = NULL;
	unsigned int slot;

	add_chunks(&private->client, bytes);
	spin_lock(&account->accounts->lock);
	flexmem_account_settle(account);
	for (slot = 0; slot < FLEXMEM_MAX_SLOTS; slot++)
		if (account->in[slot].bytes !=
		    bytes[slot] + account->in[slot].orphaned)
			wrong = "a slot is charged for other bytes than those of the chunks in it";
	spin_unlock(&account->accounts->lock);
	return wrong;
}

void world_picture(struct file *file, struct picture *picture)
{
	struct flexmem_file *private = file->private_data;

	take_picture(&private->fdev->table, picture);
}
