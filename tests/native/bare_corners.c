// SPDX-License-Identifier: GPL-2.0
/*
 * Unusual devices: without optional operations, with incomplete answers,
 * removed and registered again, and as many as there can be.
 */
#include "shim/internal.h"

#include "corners.h"
#include "chardev.h"

static u8 bytes[200000];

/*
 * A device without optional operations: a call that needs a missing operation
 * fails.
 */
static int bare_acquire(void *priv, u64 size, struct flexmem_memory *mem)
{
	return -ENOSPC;
}

static int bare_release(void *priv, const struct flexmem_memory *mem)
{
	return -EIO;
}

static int bare_quiesce(void *priv)
{
	return 0;
}

static unsigned int bare_resets;

/* Works at the registration of a device, and fails from then on. */
static int bare_fail(void *priv)
{
	return bare_resets++ ? -EIO : 0;
}

static int bare_scrub(void *priv, const struct flexmem_memory *mem, u64 offset,
		      u64 size)
{
	return 0;
}

static u64 bare_bytes = SZ_1G;

static int bare_capacity(void *priv, unsigned int domain, u64 *capacity)
{
	*capacity = bare_bytes;
	return 0;
}

/*
 * Registers a device and opens it as file 0, calls @use, and removes the
 * device.
 */
static void with_device(struct run *r, const struct flexmem_device_desc *desc,
			void (*use)(struct run *r, struct flexmem_dev *fdev))
{
	struct file *file, *other = r->file[0];
	struct flexmem_dev *fdev;

	fdev = flexmem_device_register(&world.parent[0], desc);
	if (!run_good(r, "register", PTR_ERR_OR_ZERO(fdev), 0))
		return;
	file = native_open(MINOR(fdev->dev.devt), O_RDWR);
	if (run_good(r, "open", PTR_ERR_OR_ZERO(file), 0)) {
		r->file[0] = file;
		use(r, fdev);
		native_close(file);
		r->file[0] = other;
	}
	flexmem_device_unregister(fdev);
}

static void ask_bare(struct run *r, struct flexmem_dev *fdev)
{
	struct flexmem_info info = CMD(info);

	CALL(r, INFO, &info);
	must(r, info.out_capabilities == FLEXMEM_CAP_SCRUB, "capabilities");
	must(r, !info.out_va_page && !info.out_va_start && !info.out_va_length,
	     "device-virtual addresses");
	FAILS(r, VA_RESERVE, &CMD(va_reserve, .length = 1), EOPNOTSUPP);
	FAILS(r, VA_FREE, &CMD(va_free), EOPNOTSUPP);
	FAILS(r, VA_BIND, &CMD(va_bind, .handle = 1), EOPNOTSUPP);
	FAILS(r, VA_UNBIND, &CMD(va_unbind), EOPNOTSUPP);
	FAILS(r, VA_LOOKUP, &CMD(va_lookup), EOPNOTSUPP);
	FAILS(r, COPY, &CMD(copy, .to = 1, .from = 1), EOPNOTSUPP);
	FAILS(r, READ, &CMD(rw, .handle = 1, .length = 1), EOPNOTSUPP);
	FAILS(r, ALLOC, &CMD(alloc, .length = 1,
			     .flags = FLEXMEM_ALLOC_MAPPABLE), EOPNOTSUPP);
	run_good(r, "reset", flexmem_device_reset(fdev), EOPNOTSUPP);
}

static void check_node(struct run *r, struct flexmem_dev *fdev,
		       umode_t mode, const char *text)
{
	const struct attribute_group *group = fdev->dev.class->dev_groups[0];
	struct device_attribute *shown =
		container_of(group->attrs[0], struct device_attribute, attr);
	char buffer[PAGE_SIZE];
	umode_t is = 0;

	must(r, !fdev->dev.class->devnode(&fdev->dev, &is) && is == mode,
	     "mode of the node");
	fdev->dev.class->devnode(&fdev->dev, NULL);
	shown->show(&fdev->dev, shown, buffer);
	must(r, !strcmp(buffer, text), "mode in sysfs");
}

static void use_bare(struct run *r, struct flexmem_dev *fdev)
{
	check_node(r, fdev, 0600, "pf\n");
	check_node(r, world_function(1)->fdev, 0660, "vf\n");
	ask_bare(r, fdev);
}

static const struct flexmem_device_ops bare_ops = {
	.acquire = bare_acquire,
	.release = bare_release,
	.quiesce = bare_quiesce,
	.capacity = bare_capacity,
	.scrub = bare_scrub,
};

static const struct flexmem_device_desc bare = {
	.name = "bare",
	.granule = SZ_4K,
	.ops = &bare_ops,
	.mode = FLEXMEM_MODE_PF,
};

static void run_bare(struct run *r)
{
	struct flexmem_device_desc wrong = bare;
	struct flexmem_dev *fdev;

	wrong.granule = 3;
	fdev = flexmem_device_register(&world.parent[0], &wrong);
	run_good(r, "register", PTR_ERR_OR_ZERO(fdev), EINVAL);
	with_device(r, &bare, use_bare);
}

static int bare_slot_set(void *priv, unsigned int slot,
			 const struct flexmem_memory *mem)
{
	return -EIO;
}

static int bare_slot_clear(void *priv, unsigned int slot)
{
	return -EIO;
}

static struct flexmem_info chosen;

static void ask_chosen(struct run *r, struct flexmem_dev *fdev)
{
	chosen = CMD(info);
	CALL(r, INFO, &chosen);
}

static void expect_chosen(struct run *r, const struct flexmem_device_desc *desc,
			  enum flexmem_order order, unsigned int nr_sizes,
			  u64 first, const char *what)
{
	with_device(r, desc, ask_chosen);
	must(r, chosen.out_order == order &&
		chosen.out_nr_fallback_sizes == nr_sizes &&
		chosen.out_fallback_sizes[0] == first &&
		!chosen.out_fallback_sizes[nr_sizes], what);
}

static void choose(struct run *r)
{
	const struct flexmem_device_ops vf_ops = {
		.acquire = bare_acquire,
		.release = bare_release,
		.slot_set = bare_slot_set,
		.slot_clear = bare_slot_clear,
		.quiesce = bare_quiesce,
		.capacity = bare_capacity,
		.scrub = bare_scrub,
	};
	const enum flexmem_order fill = FLEXMEM_ORDER_FILL_FIRST;
	const enum flexmem_order balance = FLEXMEM_ORDER_LOAD_BALANCE;
	struct flexmem_device_desc pf = bare, vf = bare;

	vf.ops = &vf_ops;
	vf.mode = FLEXMEM_MODE_VF;
	vf.slots = 2;
	bare_bytes = 12ull * SZ_1G;
	native_param_set("order", "auto");
	native_param_set("fallback_sizes", "auto");
	expect_chosen(r, &pf, balance, 3, 12ull * SZ_1G, "default of a PF");
	expect_chosen(r, &vf, fill, 3, 12ull * SZ_1G, "default of a VF");
	pf.order = fill;
	vf.order = balance;
	vf.nr_sizes = 2;
	vf.sizes[0] = SZ_2M;
	vf.sizes[1] = SZ_1M;
	expect_chosen(r, &pf, fill, 3, 12ull * SZ_1G, "order of a driver");
	expect_chosen(r, &vf, balance, 2, SZ_2M, "sizes of a driver");
	native_param_set("order", "fill_first");
	native_param_set("fallback_sizes", "2G,1G");
	expect_chosen(r, &vf, fill, 2, 2ull * SZ_1G,
		      "the administrator's choice");
	bare_bytes = SZ_1M + SZ_4K + 1;
	expect_chosen(r, &vf, fill, 1, SZ_1M + SZ_4K, "one small region");
	bare_bytes = SZ_4K - 1;
	run_good(r, "register a device without room",
		 PTR_ERR_OR_ZERO(flexmem_device_register(&world.parent[0],
							 &vf)), EINVAL);
	bare_bytes = SZ_1G;
}

/*
 * The administrator's setting overrides the driver's, and the driver's setting
 * overrides flexmem's default.
 */
static void run_choices(struct run *r)
{
	char order[PAGE_SIZE], sizes[PAGE_SIZE];

	native_param_get("order", order);
	native_param_get("fallback_sizes", sizes);
	choose(r);
	native_param_set("order", order);
	native_param_set("fallback_sizes", sizes);
}

static int short_acquire(void *priv, u64 size, struct flexmem_memory *mem)
{
	mem->base = mem->id * SZ_4G;
	return 0;
}

static int short_release(void *priv, const struct flexmem_memory *mem)
{
	return 0;
}

static int short_capacity(void *priv, unsigned int domain, u64 *capacity)
{
	*capacity = 12ULL * SZ_1G;
	return 0;
}

static int short_read(void *priv, const struct flexmem_memory *mem, u64 offset,
		      u64 size, void *to)
{
	return 0;
}

static int short_write(void *priv, const struct flexmem_memory *mem, u64 offset,
		       u64 size, const void *from)
{
	return 0;
}

static const struct flexmem_device_ops short_ops = {
	.acquire = short_acquire,
	.release = short_release,
	.quiesce = bare_quiesce,
	.capacity = short_capacity,
	.scrub = bare_scrub,
	.read = short_read,
	.write = short_write,
};

/*
 * Lets each allocation of host memory in READ fail in turn. Only the large
 * buffer is optional: without it READ still works.
 */
static void read_short(struct run *r, struct flexmem_dev *fdev)
{
	struct flexmem_rw cmd = CMD(rw, .length = sizeof(bytes),
				      .data = (uintptr_t)bytes);
	unsigned int n, recovered = 0;
	bool failed = true;
	long rc;

	cmd.handle = alloc(r, 0, sizeof(bytes), 0);
	for (n = 1; failed; n++) {
		memset(bytes, 1, sizeof(bytes));
		current->fail_at = n;
		rc = native_ioctl(r->file[0], FLEXMEM_IOCTL_READ, &cmd);
		failed = !current->fail_at;
		current->fail_at = 0;
		if (rc)
			continue;
		recovered += failed;
		must(r, cmd.out_done == sizeof(bytes), "length of what was read");
		must(r, !memchr_inv(bytes, 0, sizeof(bytes)),
		     "bytes of the kernel");
	}
	must(r, recovered == 1, "READ without a large buffer");
	if (CALL(r, FREE, &CMD(free, .handle = cmd.handle)))
		r->nr[0]--;
}

/*
 * If a driver reports success but has not written the buffer, the user must not
 * see kernel memory.
 */
static void run_short(struct run *r)
{
	struct flexmem_device_desc desc = bare;

	desc.ops = &short_ops;
	with_device(r, &desc, read_short);
}

static void must_be(struct run *r, u32 state)
{
	struct flexmem_info info = CMD(info);

	CALL(r, INFO, &info);
	must(r, info.out_state == state, "state");
}

/*
 * After a failed reset flexmem sends the device no command, even if the device
 * was suspended and resumed since. A reset that succeeds makes the device work
 * again.
 */
static void use_failed(struct run *r, struct flexmem_dev *fdev, bool asleep)
{
	struct flexmem_rw cmd = CMD(rw, .length = 8,
				      .data = (uintptr_t)bytes);

	cmd.handle = alloc(r, 0, sizeof(bytes), 0);
	CALL(r, READ, &cmd);
	if (asleep)
		flexmem_device_suspend(fdev);
	flexmem_device_failed(fdev);
	if (asleep)
		flexmem_device_resume(fdev);
	FAILS(r, READ, &cmd, EIO);
	FAILS(r, TRIM, &CMD(trim), EIO);
	flexmem_device_suspend(fdev);
	must_be(r, FLEXMEM_STATE_SUSPENDED);
	flexmem_device_resume(fdev);
	must_be(r, FLEXMEM_STATE_WEDGED);
	FAILS(r, READ, &cmd, EIO);
	CALL(r, FREE, &CMD(free, .handle = cmd.handle));
	r->nr[0]--;
	run_good(r, "reset", flexmem_device_reset(fdev), 0);
	must_be(r, FLEXMEM_STATE_UP);
}

static void leave_in_use(struct run *r, struct flexmem_dev *fdev)
{
	alloc(r, 0, sizeof(bytes), 0);
	r->nr[0]--;
	native_messages("the driver of the PF clears them");
}

static void leave_failed(struct run *r, struct flexmem_dev *fdev)
{
	leave_in_use(r, fdev);
	flexmem_device_failed(fdev);
}

/*
 * Leaves bytes in the device and removes it. Returns how many messages said
 * that the PF's driver must clear memory.
 */
static unsigned int leave_bytes(struct run *r, bool clears, bool failed)
{
	struct flexmem_device_desc desc = bare;

	desc.ops = &short_ops;
	desc.clears = clears;
	with_device(r, &desc, failed ? leave_failed : leave_in_use);
	return native_messages(NULL);
}

static void run_unbind(struct run *r)
{
	must(r, leave_bytes(r, false, false) == 1, "said at removal");
	must(r, leave_bytes(r, false, true) == 1, "said when it has failed");
	must(r, !leave_bytes(r, true, false), "said of a device that clears");
}

static void use_twice_failed(struct run *r, struct flexmem_dev *fdev)
{
	use_failed(r, fdev, false);
	use_failed(r, fdev, true);
	read_short(r, fdev);
}

static void run_failed(struct run *r)
{
	struct flexmem_device_desc desc = bare;
	struct flexmem_device_ops ops = short_ops;

	ops.reset = bare_quiesce;
	desc.ops = &ops;
	with_device(r, &desc, use_twice_failed);
}

static void reset_once(struct run *r, struct flexmem_dev *fdev)
{
	flexmem_device_reset(fdev);
}

/* Resets a device whose reset operation is @reset, and looks for @remedy. */
static void expect_remedy(struct run *r, int (*reset)(void *priv),
			  const char *remedy)
{
	struct flexmem_device_desc desc = bare;
	struct flexmem_device_ops ops = bare_ops;

	ops.reset = reset;
	desc.ops = &ops;
	bare_resets = 0;
	native_messages(remedy);
	with_device(r, &desc, reset_once);
	must(r, native_messages(NULL) == 1, remedy);
}

/* The uevent of a reset names what brings the function back. */
static void run_remedies(struct run *r)
{
	expect_remedy(r, bare_quiesce, "WEDGED=none\n");
	expect_remedy(r, bare_fail, "WEDGED=rebind\n");
	expect_remedy(r, NULL, "WEDGED=unknown\n");
	world.parent[0].bus = &pci_bus_type;
	expect_remedy(r, bare_quiesce, "WEDGED=none\n");
	expect_remedy(r, bare_fail, "WEDGED=rebind,bus-reset\n");
	expect_remedy(r, NULL, "WEDGED=unknown\n");
	world.parent[0].bus = NULL;
}

static void *late_buffer;
static unsigned int late_reads;

static int late_read(void *priv, const struct flexmem_memory *mem, u64 offset,
		     u64 size, void *to)
{
	late_buffer = to;
	late_reads++;
	return -ENOTRECOVERABLE;
}

/*
 * The first READ fails, and the device keeps the buffer: it can write to the
 * buffer until the reset. flexmem must not free the buffer before.
 */
static void read_late(struct run *r, struct flexmem_dev *fdev)
{
	struct flexmem_rw cmd = CMD(rw, .length = 8,
				      .data = (uintptr_t)bytes);

	late_reads = 0;
	cmd.handle = alloc(r, 0, sizeof(bytes), 0);
	FAILS(r, READ, &cmd, EIO);
	memset(late_buffer, 1, cmd.length);
	FAILS(r, READ, &cmd, EIO);
	FAILS(r, TRIM, &CMD(trim), EIO);
	must(r, late_reads == 1, "reads of a failed device");
	CALL(r, FREE, &CMD(free, .handle = cmd.handle));
	r->nr[0]--;
	run_good(r, "reset", flexmem_device_reset(fdev), 0);
	CALL(r, TRIM, &CMD(trim));
}

/* The driver cannot stop a READ: the operation returns -ENOTRECOVERABLE. */
static void run_late(struct run *r)
{
	struct flexmem_device_desc desc = bare;
	struct flexmem_device_ops ops = short_ops;

	ops.read = late_read;
	ops.reset = bare_quiesce;
	desc.ops = &ops;
	with_device(r, &desc, read_late);
}

/* A device that gives the same memory to each function. */
static int same_acquire(void *priv, u64 size, struct flexmem_memory *mem)
{
	mem->base = 0;
	return 0;
}

static const struct flexmem_device_desc *twin;

static void take_memory(struct run *r, struct flexmem_dev *fdev)
{
	alloc(r, 0, sizeof(bytes), 0);
	r->nr[0]--;
}

static void refuse_memory(struct run *r, struct flexmem_dev *fdev)
{
	native_messages("memory of another function");
	FAILS(r, ALLOC, &CMD(alloc, .length = sizeof(bytes)), EIO);
	must(r, native_messages(NULL) == 1, "message about the memory");
}

/*
 * The twin is a second function of the same device. It cannot get the memory of
 * the first function before that function is removed.
 */
static void use_twin(struct run *r, struct flexmem_dev *fdev)
{
	take_memory(r, fdev);
	with_device(r, twin, refuse_memory);
}

static void run_twins(struct run *r)
{
	struct flexmem_device_desc desc = bare;
	struct flexmem_device_ops ops = short_ops;
	char acquire[PAGE_SIZE];

	ops.acquire = same_acquire;
	desc.ops = &ops;
	desc.device = &ops;
	twin = &desc;
	native_param_get("acquire", acquire);
	native_param_set("acquire", "lazy");
	with_device(r, &desc, use_twin);
	with_device(r, &desc, take_memory);
	native_param_set("acquire", acquire);
}

/* No number of a PF leads anywhere, except that of the simulated world's PF. */
static void open_in_vain(struct run *r)
{
	unsigned int minor;

	for (minor = 0; minor < FLEXMEM_MAX_PFS; minor++)
		if (minor != world_minor(0))
			run_good(r, "open what was never there",
				 PTR_ERR_OR_ZERO(native_open(minor, O_RDWR)),
				 ENXIO);
}

/* After a failed registration, open() of its node number fails with ENXIO. */
static void register_in_vain(struct run *r)
{
	struct flexmem_dev *fdev;
	unsigned int minor, n;

	for (n = 1;; n++) {
		current->fail_at = n;
		fdev = flexmem_device_register(&world.parent[0], &bare);
		current->fail_at = 0;
		if (!IS_ERR(fdev))
			break;
		open_in_vain(r);
	}
	/* An open() that fails leaves nothing behind. */
	minor = MINOR(fdev->dev.devt);
	current->fail_at = 1;
	run_good(r, "open without memory",
		 PTR_ERR_OR_ZERO(native_open(minor, O_RDWR)), ENOMEM);
	flexmem_device_unregister(fdev);
}

/*
 * A device comes back and gets another node number. Its old node leads nowhere,
 * even if a file of the earlier device is open.
 */
static void run_again(struct run *r)
{
	struct flexmem_dev *fdev[2];
	struct file *file[2];
	unsigned int i, minor[2];

	for (i = 0; i < 2; i++) {
		fdev[i] = flexmem_device_register(&world.parent[0], &bare);
		if (!run_good(r, "register", PTR_ERR_OR_ZERO(fdev[i]), 0))
			return;
		minor[i] = MINOR(fdev[i]->dev.devt);
		file[i] = native_open(minor[i], O_RDWR);
		run_good(r, "open", PTR_ERR_OR_ZERO(file[i]), 0);
		flexmem_device_unregister(fdev[i]);
		run_good(r, "open what has gone",
			 PTR_ERR_OR_ZERO(native_open(minor[i], O_RDWR)), ENXIO);
	}
	must(r, minor[0] != minor[1], "number of the node");
	for (i = 0; i < 2; i++)
		native_close(file[i]);
	register_in_vain(r);
}

/*
 * A container keeps the node of a PF. While numbers last, the node leads to no
 * other PF. Then the numbers begin again, but none is given out that is in use.
 */
static void run_old_node(struct run *r)
{
	struct flexmem_dev *fdev;
	unsigned int i, old = 0, minor = 0;

	for (i = 0; i < FLEXMEM_MAX_PFS; i++) {
		fdev = flexmem_device_register(&world.parent[0], &bare);
		if (!run_good(r, "register", PTR_ERR_OR_ZERO(fdev), 0))
			return;
		minor = MINOR(fdev->dev.devt);
		must(r, minor < FLEXMEM_MAX_PFS && minor != world_minor(0),
		     "number of a PF");
		if (i && i < FLEXMEM_MAX_PFS - 1)
			run_good(r, "open an old node",
				 PTR_ERR_OR_ZERO(native_open(old, O_RDWR)),
				 ENXIO);
		old = i ? old : minor;
		flexmem_device_unregister(fdev);
	}
	must(r, minor == old, "numbers that begin again");
}

/*
 * Registers PFs until the node numbers of PFs are used up. The PF of the
 * simulated world exists already.
 */
static void run_many(struct run *r)
{
	static struct flexmem_dev *fdev[FLEXMEM_MAX_PFS];
	unsigned int nr;

	for (nr = 0; nr < ARRAY_SIZE(fdev) - 1; nr++) {
		fdev[nr] = flexmem_device_register(&world.parent[0], &bare);
		if (!run_good(r, "register", PTR_ERR_OR_ZERO(fdev[nr]), 0))
			break;
	}
	fdev[nr] = flexmem_device_register(&world.parent[0], &bare);
	run_good(r, "register too many", PTR_ERR_OR_ZERO(fdev[nr]), ENOSPC);
	while (nr--)
		flexmem_device_unregister(fdev[nr]);
}

const struct sequence bare_corners[] = {
	{ "bare device", prepare, run_bare },
	{ "order and sizes of a device", prepare, run_choices },
	{ "device that answers short", prepare, run_short },
	{ "device that has failed", prepare, run_failed },
	{ "remedies of a reset", prepare, run_remedies },
	{ "device whose bytes may still move", prepare, run_late },
	{ "two functions get the same memory", prepare, run_twins },
	{ "bytes that stay when a driver is removed", prepare, run_unbind },
	{ "device that comes back", prepare, run_again },
	{ "old node", prepare, run_old_node },
	{ "the most PFs", prepare, run_many },
	{}
};
