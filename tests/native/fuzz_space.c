// SPDX-License-Identifier: GPL-2.0
/*
 * Device-virtual addresses. The model of a space is an array of pages: in which
 * range each page lies, and by which binding it is taken.
 */
#include "shim/internal.h"

#include "fuzz.h"
#include "world.h"

/* ---- the model ---- */

static struct fuzz_space *space_of(struct fuzz *f)
{
	return &f->files[f->who].space;
}

static u64 address_of(const struct fuzz *f, unsigned int page)
{
	return FUZZ_VM_START + page * f->vm_page;
}

/* The page that an address lies in; FUZZ_PAGES: it is outside the space. */
static unsigned int page_at(const struct fuzz *f, u64 address)
{
	return address < FUZZ_VM_START ? FUZZ_PAGES :
	       min_t(u64, (address - FUZZ_VM_START) / f->vm_page, FUZZ_PAGES);
}

static unsigned int nr_bindings(const struct fuzz_space *space)
{
	unsigned int i, nr = 0;

	for (i = 0; i < FUZZ_PAGES; i++)
		nr += !!space->binding[i].pages;
	return nr;
}

/* The binding that has taken a page, or NULL. */
static struct fuzz_binding *binding_of(struct fuzz_space *space,
				       unsigned int page)
{
	struct fuzz_binding *b = space->binding;

	for (; b < space->binding + FUZZ_PAGES; b++)
		if (b->pages && page >= b->page && page < b->page + b->pages)
			return b;
	return NULL;
}

/* The binding that has taken a byte of an allocation, or NULL. */
static struct fuzz_binding *binding_with(const struct fuzz *f,
					 struct fuzz_space *space, u64 head,
					 u64 byte)
{
	struct fuzz_binding *b = space->binding;

	for (; b < space->binding + FUZZ_PAGES; b++)
		if (b->pages && b->head == head && byte >= b->offset &&
		    byte - b->offset < b->pages * f->vm_page)
			return b;
	return NULL;
}

/* Free pages from @page on. */
static unsigned int hole_at(const struct fuzz_space *space, unsigned int page)
{
	unsigned int end = page;

	while (end < FUZZ_PAGES && !space->range[end])
		end++;
	return end - page;
}

static unsigned int largest_hole(const struct fuzz_space *space)
{
	unsigned int page, largest = 0;

	for (page = 0; page < FUZZ_PAGES; page++)
		largest = max(largest, hole_at(space, page));
	return largest;
}

/* How many bindings use an allocation. @head: its first chunk. */
unsigned int fuzz_binds(const struct fuzz *f, const struct fuzz_allocation *head)
{
	const struct fuzz_space *space = &f->files[head->file].space;
	unsigned int i, nr = 0;

	for (i = 0; i < FUZZ_PAGES; i++)
		nr += space->binding[i].pages &&
		      space->binding[i].head == head->serial;
	return nr;
}

/* The number of bytes from a byte of an allocation to the end of its chunk. */
static struct fuzz_allocation *chunk_with(struct fuzz *f, u64 head, u64 *byte)
{
	struct fuzz_allocation *a = fuzz_chunk(f, head, 0);

	for (; *byte >= a->size; a = fuzz_chunk(f, head, a->index + 1))
		*byte -= a->size;
	return a;
}

/* ---- VA_RESERVE and VA_FREE ---- */

/* Draws the address of a reserved page, or now and then another address. */
static u64 draw_address(struct fuzz *f)
{
	const struct fuzz_space *space = space_of(f);
	u8 n = fuzz_take(f);
	unsigned int page, i;

	if (n == 255)
		return 0;
	if (n >= 250)
		return n == 254 ? ~0ULL : address_of(f, n % 8) + 128;
	for (page = n % FUZZ_PAGES, i = 0; i < FUZZ_PAGES; i++) {
		page = (page + 1) % FUZZ_PAGES;
		if (n < 220 && space->range[page])
			break;
	}
	return address_of(f, i < FUZZ_PAGES ? page : n % (FUZZ_PAGES + 2));
}

/* Draws the address of a binding, or now and then another address. */
static u64 draw_binding(struct fuzz *f)
{
	const struct fuzz_binding *b = space_of(f)->binding;
	u8 n = fuzz_take(f);
	unsigned int i;

	for (i = 0; i < FUZZ_PAGES && n < 240; i++)
		if (b[(n + i) % FUZZ_PAGES].pages)
			return address_of(f, b[(n + i) % FUZZ_PAGES].page);
	return draw_address(f);
}

static u64 draw_length(struct fuzz *f)
{
	u8 n = fuzz_take(f);

	if (n < 230)
		return (1 + n % 5) * f->vm_page;
	if (n < 240)
		return n % (FUZZ_PAGES + 2) * f->vm_page + 1;
	return n == 240 ? 0 : n == 241 ? ~0ULL :
	       (n % 4) * f->vm_page + 128;
}

static int predict_reserve(struct fuzz *f, u64 length, unsigned int *first)
{
	struct fuzz_space *space = space_of(f);
	unsigned int page, i, pages;

	space->there = true;
	if (!length)
		return -EINVAL;
	if (length > FUZZ_PAGES * f->vm_page)
		return -ENOSPC;
	pages = (length + f->vm_page - 1) / f->vm_page;
	for (page = 0; page < FUZZ_PAGES && hole_at(space, page) < pages;)
		page++;
	if (page == FUZZ_PAGES)
		return -ENOSPC;
	*first = page;
	if (f->late)
		return 0;
	space->last_range++;
	for (i = 0; i < pages; i++)
		space->range[page + i] = space->last_range;
	return 0;
}

static void reserve(struct fuzz *f)
{
	struct flexmem_va_reserve cmd = CMD(va_reserve,
					    .length = draw_length(f));
	u64 length = cmd.length;
	unsigned int page = 0;
	long rc;
	int want;

	if (!fuzz_call(f, FLEXMEM_CMD_VA_RESERVE, &cmd, sizeof(cmd), &rc))
		return;
	want = f->bare ? -EOPNOTSUPP : predict_reserve(f, length, &page);
	SAME(f, rc, f->late && !f->bare ? -EFAULT : want);
	if (f->late || f->bare)
		return;
	SAME(f, cmd.out_address, want ? 0 : address_of(f, page));
	SAME(f, cmd.out_largest_free, want == -EINVAL ? 0 :
				      largest_hole(space_of(f)) * f->vm_page);
}

static int predict_free(struct fuzz *f, u64 address)
{
	struct fuzz_space *space = space_of(f);
	unsigned int page = page_at(f, address), end;
	bool bound = false;

	if (f->bare)
		return -EOPNOTSUPP;
	if (page == FUZZ_PAGES || address != address_of(f, page) ||
	    !space->range[page] ||
	    (page && space->range[page - 1] == space->range[page]))
		return -ENOENT;
	for (end = page; end < FUZZ_PAGES &&
			 space->range[end] == space->range[page]; end++)
		bound |= !!binding_of(space, end);
	if (bound)
		return -EBUSY;
	while (end-- > page)
		space->range[end] = 0;
	return 0;
}

static void free_range(struct fuzz *f)
{
	struct flexmem_va_free cmd = CMD(va_free, .address = draw_address(f));
	u64 address = cmd.address;
	long rc;

	if (fuzz_call(f, FLEXMEM_CMD_VA_FREE, &cmd, sizeof(cmd), &rc))
		SAME(f, rc, predict_free(f, address));
}

/* ---- VA_BIND and VA_UNBIND ---- */

/* Why the device cannot take a command now, or 0. */
static int wait_for_device(struct fuzz *f)
{
	return f->model->broken ? -EIO : model_wait(f->model);
}

static void end_binding(struct fuzz *f, struct fuzz_space *space,
			struct fuzz_binding *b)
{
	u64 head = b->head;

	b->pages = 0;
	if (!nr_bindings(space))
		space->listed = false;
	fuzz_end_unused(f, fuzz_of_serial(f, head));
}

/* Models vm_unmap. @b ends if the device has carried it out. */
static int unmap(struct fuzz *f, struct fuzz_binding *b)
{
	int rc = model_call(f->model, &f->unmap_error);

	b->known = false;
	if (!rc)
		end_binding(f, space_of(f), b);
	return rc;
}

/* Models vm_map for each chunk. @room: empty entries of the page table. */
static int map_chunks(struct fuzz *f, const struct fuzz_binding *b,
		      unsigned int room, u64 *mapped)
{
	u64 size = b->pages * f->vm_page, byte;
	const struct fuzz_allocation *a;
	int rc = 0;

	for (*mapped = 0; !rc && *mapped < size;) {
		byte = b->offset + *mapped;
		a = chunk_with(f, b->head, &byte);
		if (a->lost)
			return -EIO;
		rc = model_call(f->model, &f->map_error);
		if (!rc && !room--)
			return -ENOSPC;
		*mapped += min(a->size - byte, size - *mapped);
	}
	return rc;
}

static int run_bind(struct fuzz *f, struct fuzz_binding *b, unsigned int room)
{
	int rc = wait_for_device(f), undone;
	u64 mapped = 0;

	if (!rc)
		rc = map_chunks(f, b, room, &mapped);
	b->known = !rc;
	space_of(f)->listed |= mapped > 0;
	if (!rc)
		return 0;
	if (!mapped) {
		end_binding(f, space_of(f), b);
		return rc;
	}
	if (model_is_unresponsive(f->model))
		return rc;
	undone = unmap(f, b);
	return rc == -ENOSPC && undone ? undone : rc;
}

static bool has_whole_pages(struct fuzz *f, const struct fuzz_allocation *a)
{
	for (; a; a = fuzz_chunk(f, a->head, a->index + 1))
		if (a->offset % f->vm_page || a->size % f->vm_page)
			return false;
	return true;
}

static bool can_bind(struct fuzz *f, const struct fuzz_allocation *a,
		     const struct flexmem_va_bind *cmd)
{
	return cmd->access && cmd->access < 8 && cmd->length &&
	       !(cmd->address % f->vm_page) && !(cmd->offset % f->vm_page) &&
	       !(cmd->length % f->vm_page) && cmd->offset <= a->whole &&
	       cmd->length <= a->whole - cmd->offset && has_whole_pages(f, a);
}

/* Whether pages, or bytes of an allocation, can be taken. */
static int check_place(struct fuzz *f, const struct fuzz_allocation *a,
		       const struct flexmem_va_bind *cmd)
{
	struct fuzz_space *space = space_of(f);
	unsigned int page = page_at(f, cmd->address), i;
	u64 pages = cmd->length / f->vm_page;

	if (page == FUZZ_PAGES || pages > FUZZ_PAGES - page)
		return -ENXIO;
	for (i = 0; i < pages; i++)
		if (!space->range[page + i] ||
		    space->range[page + i] != space->range[page])
			return -ENXIO;
	for (i = 0; i < pages; i++)
		if (binding_of(space, page + i))
			return -EEXIST;
	for (i = 0; i < pages; i++)
		if (binding_with(f, space, a->serial,
				 cmd->offset + i * f->vm_page))
			return -EBUSY;
	return 0;
}

static int predict_bind(struct fuzz *f, const struct flexmem_va_bind *cmd,
			unsigned int room)
{
	const struct fuzz_allocation *a = fuzz_find(f, cmd->handle);
	struct fuzz_space *space = space_of(f);
	struct fuzz_binding *b = space->binding;
	int rc;

	if (f->bare)
		return -EOPNOTSUPP;
	if (!space->there)
		return -ENXIO;
	if (!a)
		return -ENOENT;
	if (!can_bind(f, a, cmd))
		return -EINVAL;
	rc = check_place(f, a, cmd);
	if (rc)
		return rc;
	while (b->pages)
		b++;
	*b = (struct fuzz_binding) {
		.head = a->serial,
		.page = page_at(f, cmd->address),
		.pages = cmd->length / f->vm_page,
		.offset = cmd->offset,
		.access = cmd->access,
	};
	return run_bind(f, b, room);
}

/* Most other allocations have parts of pages, and cannot be bound. */
static void alloc(struct fuzz *f)
{
	u8 n = fuzz_take(f);
	struct flexmem_alloc cmd = CMD(alloc,
		.length = (1 + n % 8) * f->vm_page, .alignment = f->vm_page);

	if (n & 8 && f->model->nr_domains > 1) {
		cmd.policy = FLEXMEM_POLICY_INTERLEAVE;
		cmd.domains = model_all_domains(f->model);
	}
	fuzz_do_alloc(f, &cmd);
}

static void draw_bind(struct fuzz *f, struct flexmem_va_bind *cmd)
{
	u8 n = fuzz_take(f);
	const struct fuzz_allocation *a;

	*cmd = CMD(va_bind, .handle = fuzz_draw_handle(f), .access = 1 + n % 7,
			    .address = draw_address(f),
			    .length = draw_length(f));
	if (n & 64) {
		cmd->handle = f->files[f->who].next_handle;
		alloc(f);
	}
	a = fuzz_find(f, cmd->handle);
	if (n >= 250)
		cmd->access = n & 1 ? 0 : 8;
	if (n & 16)
		cmd->offset = draw_length(f) - f->vm_page;
	else if (a && n & 32)
		cmd->length = a->whole;
}

static void bind(struct fuzz *f)
{
	struct flexmem_va_bind cmd, given;
	unsigned int room;
	long rc;

	draw_bind(f, &cmd);
	room = f->fake->max_pages - fake_pages_nr(f->fake);
	given = cmd;
	if (fuzz_call(f, FLEXMEM_CMD_VA_BIND, &cmd, sizeof(cmd), &rc))
		SAME(f, rc, predict_bind(f, &given, room));
}

static int predict_unbind(struct fuzz *f, u64 address)
{
	unsigned int page = page_at(f, address);
	struct fuzz_binding *b = binding_of(space_of(f), page);
	int rc;

	if (f->bare)
		return -EOPNOTSUPP;
	if (!b || address != address_of(f, b->page))
		return -ENOENT;
	b->known = false;
	rc = wait_for_device(f);
	return rc ?: unmap(f, b);
}

static void unbind(struct fuzz *f)
{
	struct flexmem_va_unbind cmd = CMD(va_unbind,
					   .address = draw_binding(f));
	u64 address = cmd.address;
	long rc;

	if (fuzz_call(f, FLEXMEM_CMD_VA_UNBIND, &cmd, sizeof(cmd), &rc))
		SAME(f, rc, predict_unbind(f, address));
}

/* ---- VA_LOOKUP ---- */

static void compare_lookup(struct fuzz *f, const struct fuzz_binding *b,
			   u64 byte, const struct flexmem_va_lookup *is)
{
	u64 in_chunk = byte;
	const struct fuzz_allocation *a = chunk_with(f, b->head, &in_chunk);

	SAME(f, is->out_handle, fuzz_of_serial(f, b->head)->handle);
	SAME(f, is->out_offset, byte);
	SAME(f, is->out_address, address_of(f, b->page) + byte - b->offset);
	SAME(f, is->out_length, b->offset + b->pages * f->vm_page - byte);
	SAME(f, is->out_chunk, a->index);
	SAME(f, is->out_access, b->access);
}

static void lookup(struct fuzz *f)
{
	u8 n = fuzz_take(f);
	struct flexmem_va_lookup cmd = CMD(va_lookup,
		.handle = n & 1 ? fuzz_draw_handle(f) : 0,
		.address = !(n & 1) || n == 255 ? draw_address(f) + n : 0,
		.offset = n & 1 || n == 254 ? draw_length(f) - n : 0);
	const struct flexmem_va_lookup given = cmd;
	const struct fuzz_allocation *a;
	struct fuzz_binding *b;
	u64 byte = given.offset;
	long rc;

	if (!fuzz_call(f, FLEXMEM_CMD_VA_LOOKUP, &cmd, sizeof(cmd), &rc))
		return;
	if (f->bare || !space_of(f)->there) {
		SAME(f, rc, f->bare ? -EOPNOTSUPP : -ENOENT);
		return;
	}
	if (given.handle ? given.address : given.offset) {
		SAME(f, rc, -EINVAL);
		return;
	}
	a = fuzz_find(f, given.handle);
	b = given.handle ? (a ? binding_with(f, space_of(f), a->serial, byte) :
				NULL) :
			   binding_of(space_of(f), page_at(f, given.address));
	if (!b || !b->known) {
		SAME(f, rc, -ENOENT);
		return;
	}
	fuzz_answer(f, rc, 0);
	if (!given.handle)
		byte = b->offset + given.address - address_of(f, b->page);
	if (!f->late)
		compare_lookup(f, b, byte, &cmd);
}

/* ---- all of them ---- */

/* One to four calls. The first one of a file is mostly VA_RESERVE. */
void fuzz_space(struct fuzz *f)
{
	static void (*const calls[])(struct fuzz *f) = {
		reserve, reserve, bind, bind, bind, bind, bind, alloc, alloc,
		unbind, unbind, unbind, free_range, lookup, lookup, lookup,
	};
	u8 n = fuzz_take(f);
	unsigned int i;

	if (n & 12 && !space_of(f)->there)
		reserve(f);
	for (i = 0; i <= (n & 3); i++)
		calls[fuzz_take(f) % ARRAY_SIZE(calls)](f);
}

/*
 * Whether close() can unmap everything at once. The model has no closed file
 * whose memory is still in use.
 */
bool fuzz_can_close_space(struct fuzz *f, unsigned int file)
{
	if (f->gone || !f->files[file].space.listed)
		return true;
	return !f->model->broken && !f->model->dead && !f->unmap_error &&
	       !model_is_unresponsive(f->model);
}

/* close() unmaps everything, and then frees the memory. */
void fuzz_close_space(struct fuzz *f, unsigned int file)
{
	struct fuzz_space *space = &f->files[file].space;
	struct fuzz_binding *b = space->binding;

	if (!f->gone && space->listed)
		f->model->timeouts = 0;
	for (; b < space->binding + FUZZ_PAGES; b++)
		if (b->pages)
			end_binding(f, space, b);
	*space = (struct fuzz_space) {};
}

/* ---- the page table ---- */

/* How many bytes of a mapping's range are mapped as they must be. */
static u64 check_page(struct fuzz *f, struct fuzz_space *space,
		      const struct fake_page *is)
{
	const struct fuzz_binding *b =
		binding_of(space, page_at(f, is->range.address));
	const struct fuzz_allocation *a;
	u64 byte;

	if (!b)
		fuzz_wrong(f, "%#llx is mapped, but not bound",
			   is->range.address);
	byte = b->offset + is->range.address - address_of(f, b->page);
	a = chunk_with(f, b->head, &byte);
	/* A failed device keeps its page table, but its memory is lost. */
	if (a->lost)
		return 0;
	SAME(f, is->id, f->fake->piece[f->model->region[a->slot].piece].id);
	SAME(f, is->offset, a->offset + byte);
	SAME(f, is->access, b->access);
	if (is->range.size > a->size - byte)
		fuzz_wrong(f, "a mapping is longer than its chunk");
	return b->known ? is->range.size : 0;
}

static void check_space(struct fuzz *f, unsigned int file)
{
	struct flexmem_file *private = f->files[file].file->private_data;
	struct fuzz_space *space = &f->files[file].space;
	u64 number = flexmem_client_space(&private->client);
	const struct fake_page *page = f->fake->page;
	u64 mapped = 0, bound = 0;
	unsigned int i;

	SAME(f, number != 0, space->there);
	for (; page < f->fake->page + FAKE_MAX_PAGES; page++)
		if (page->range.size && page->range.space == number)
			mapped += check_page(f, space, page);
	for (i = 0; i < FUZZ_PAGES; i++)
		if (space->binding[i].pages && space->binding[i].known &&
		    !fuzz_of_serial(f, space->binding[i].head)->lost)
			bound += space->binding[i].pages * f->vm_page;
	SAME(f, mapped, bound);
}

/* Compares the page table with the bindings. */
void fuzz_check_spaces(struct fuzz *f)
{
	unsigned int i;

	for (i = 0; i < FUZZ_FILES; i++)
		if (f->files[i].file)
			check_space(f, i);
}
