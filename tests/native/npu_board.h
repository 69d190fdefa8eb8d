/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The simulated device of the driver guide's example, the example itself, and
 * the firmware. Included by npu.c only.
 */
#ifndef _NATIVE_NPU_BOARD_H
#define _NATIVE_NPU_BOARD_H

#include "npu_pci.h"

/* The board. One task runs at a time, so the board needs no locks. */
#define PIECES 16
#define SLOTS 8

/* A request, as the registers hold it. */
struct request {
	u32 command, slot;
	u64 memory, length;
};

/* Whether BAR 2 has an address, and whether another driver has claimed it. */
enum window { WINDOW_GOOD, WINDOW_LACKS, WINDOW_UNSET, WINDOW_TAKEN };

static struct board {
	enum window window;
	struct request queue[PIECES];
	u32 numbers[PIECES];
	unsigned int head, tail;
	u32 sent, done, status, event;
	u64 result;
	/* The name of the piece that begins at i GiB, or 0 if there is none. */
	u64 name[PIECES];
	u64 slot[SLOTS];
	bool quiet;
	/* References of runtime PM, and what a sleeping device has forgotten. */
	unsigned int users;
	bool asleep, saved, master, has_buffer, msi;
	u32 mask;
	/* A write may not have reached the device yet. A read waits for it. */
	bool posted;
	/* The latest answer about memory. */
	unsigned int held;
	/*
	 * The bus is down: writes are lost, and reads return ones or, as on
	 * some machines, zeroes.
	 */
	bool down;
	/* No task may access the device, or only this task may not. */
	bool closed;
	struct task_struct *barred;
	/* The device fails again during its next reset. */
	bool fails_again;
	/* The copy engine does not stop; the device may fail. */
	bool hangs, fails;
	/* The device sends its "dead" interrupt even if it is masked. */
	bool dying;
	unsigned int resets;
	u64 random;
	/*
	 * The device whose interrupt handler is installed, and whether the
	 * handler is running.
	 */
	struct pci_dev *pdev;
	bool busy;
	wait_queue_head_t doorbell;
} board;

static u8 registers[0x100];
static void *const bars[] = { registers };
static u64 draw(u64 below);
static u32 readl(const void *address);
static u64 readq(const void *address);
static void writel(u32 value, void *address);
static void writeq(u64 value, void *address);

/* How often the driver has reported news about the capacity. */
static unsigned long told;

#define flexmem_device_capacity_changed(fdev) \
	(told++, (flexmem_device_capacity_changed)(fdev))

#include "../../Documentation/examples/npu.c"

static void wait_for_interrupt(void)
{
	while (board.busy)
		schedule_timeout(1);
}

static u64 draw(u64 below)
{
	board.random = board.random * 6364136223846793005ull +
		       1442695040888963407ull;
	return (board.random >> 33) % below;
}

static int request_irq(struct device *dev)
{
	WARN_ON(!board.msi);
	board.pdev = container_of(dev, struct pci_dev, dev);
	return 0;
}

/*
 * How often the copy engine did not stop, how often the device slept, and how
 * often it was asleep when it had an error.
 */
static unsigned long hung, sleeps, errors_asleep;

/* Whether an access reaches the device. The driver must have woken it up. */
static bool is_there(unsigned int offset)
{
	native_point();
	if (board.asleep && offset != NPU_EVENT)
		shim_bug("access to register %#x of a device that sleeps",
			 offset);
	if (offset != NPU_EVENT && (board.closed || board.barred == current))
		shim_bug("access to register %#x before a reset from outside",
			 offset);
	return !board.asleep && !board.down;
}

static unsigned int count_pieces(void)
{
	unsigned int i, nr = 0;

	for (i = 0; i < PIECES; i++)
		nr += board.name[i] != 0;
	return nr;
}

/* Drops what the device loses in a sleep, or in a reset from outside. */
static void forget(void)
{
	board.tail = board.head;
	board.has_buffer = false;
	board.master = false;
	board.mask = 0;
}

static DEFINE_MUTEX(power_lock);

static int pm_runtime_resume_and_get(struct device *dev)
{
	mutex_lock(&power_lock);
	board.users++;
	if (board.asleep) {
		board.asleep = false;
		board.saved = false;
		WARN_ON(the_driver->driver.pm->runtime_resume(dev));
	}
	mutex_unlock(&power_lock);
	return 0;
}

/*
 * The PCI core saves the device's state before a sleep. At the wake-up it
 * restores the state, and then no saved state is left.
 */
static void pm_runtime_put_autosuspend(struct device *dev)
{
	mutex_lock(&power_lock);
	board.held = 1;
	if (!--board.users && !draw(2) &&
	    !the_driver->driver.pm->runtime_suspend(dev)) {
		if (board.held)
			shim_bug("a device with memory falls asleep");
		board.asleep = true;
		board.saved = true;
		forget();
		sleeps++;
	}
	mutex_unlock(&power_lock);
}

static u32 readl(const void *address)
{
	const unsigned int offset = (const u8 *)address - registers;
	u32 value;

	if (!is_there(offset))
		return board.down && draw(2) ? 0 : ~0U;
	board.posted = false;
	switch (offset) {
	case NPU_DONE:
		value = board.done;
		/*
		 * The driver may read this register long after the request has
		 * ended.
		 */
		native_point();
		return value;
	case NPU_STATUS:
		if (board.done != board.sent)
			shim_bug("reply %u is taken for that of %u",
				 board.done, board.sent);
		return board.status;
	case NPU_EVENT:
		value = board.event;
		board.event = 0;
		return value;
	case NPU_SLOTS:
		return SLOTS;
	case NPU_HELD:
		return board.held = count_pieces();
	case NPU_STOP:
		hung += board.hangs;
		return board.hangs;
	default:
		return 0;
	}
}

static u64 readq(const void *address)
{
	return is_there(NPU_RESULT) ? board.result : ~0ULL;
}

static void reset_board(void)
{
	board.tail = board.head;
	memset(board.name, 0, sizeof(board.name));
	memset(board.slot, 0, sizeof(board.slot));
	board.quiet = false;
	board.hangs = false;
}

static void fail_again(void)
{
	struct npu *npu = pci_get_drvdata(board.pdev);

	board.fails_again = false;
	flexmem_device_failed(npu->fdev);
}

static void writel(u32 value, void *address)
{
	const unsigned int offset = (u8 *)address - registers;

	if (!is_there(offset))
		return;
	memcpy(address, &value, sizeof(value));
	board.posted = true;
	if (offset == NPU_EVENT_MASK)
		board.mask = value;
	if (offset == NPU_RESET) {
		board.resets++;
		reset_board();
		if (board.fails_again)
			fail_again();
	}
	if (offset != NPU_SEND)
		return;
	board.sent = value;
	if (board.head - board.tail < PIECES) {
		struct request *req = &board.queue[board.head % PIECES];

		memcpy(&req->command, registers + NPU_COMMAND, 4);
		memcpy(&req->slot, registers + NPU_SLOT, 4);
		memcpy(&req->memory, registers + NPU_MEMORY, 8);
		memcpy(&req->length, registers + NPU_LENGTH, 8);
		board.numbers[board.head++ % PIECES] = value;
	}
	wake_up(&board.doorbell);
}

static void writeq(u64 value, void *address)
{
	const unsigned int offset = (u8 *)address - registers;

	if (!is_there(offset))
		return;
	memcpy(address, &value, sizeof(value));
	board.has_buffer |= offset == NPU_BUFFER;
}

static int find_name(u64 name)
{
	int i;

	for (i = 0; i < PIECES; i++)
		if (board.name[i] == name)
			return i;
	return -1;
}

static u32 carry_out(const struct request *req)
{
	int i = find_name(req->memory), free = find_name(0);
	unsigned int slot;

	if (!board.master || !board.has_buffer ||
	    !(board.mask & NPU_EVENT_REPLY))
		shim_bug("command %u before the device is set up",
			 req->command);
	if (board.quiet && req->command != NPU_RELEASE &&
	    req->command != NPU_CLEAR && req->command != NPU_CAPACITY &&
	    req->command != NPU_HALT)
		shim_bug("command %u after its programs were stopped",
			 req->command);
	switch (req->command) {
	case NPU_ACQUIRE:
		i = i < 0 ? free : i;
		if (i < 0)
			return NPU_NO_MEMORY;
		board.name[i] = req->memory;
		board.result = (u64)i << 30;
		return NPU_OK;
	case NPU_RELEASE:
		for (slot = 0; slot < SLOTS; slot++)
			if (i >= 0 && board.slot[slot] == req->memory)
				shim_bug("released while slot %u names it",
					 slot);
		if (i >= 0)
			board.name[i] = 0;
		return NPU_OK;
	case NPU_SET:
		if (i < 0 || (board.slot[req->slot] &&
			      board.slot[req->slot] != req->memory))
			shim_bug("slot %u is set wrongly", req->slot);
		board.slot[req->slot] = req->memory;
		return NPU_OK;
	case NPU_CLEAR:
		board.slot[req->slot] = 0;
		return NPU_OK;
	case NPU_HALT:
		board.quiet = true;
		return NPU_OK;
	case NPU_CAPACITY:
		board.result = PIECES * (u64)SZ_16M;
		return NPU_OK;
	default:
		return i < 0 ? NPU_FAILED : NPU_OK;
	}
}

static bool has_request(void)
{
	return board.head != board.tail || kthread_should_stop();
}

static void raise_event(u32 event)
{
	wait_for_interrupt();
	board.busy = true;
	board.event |= event;
	if (board.pdev)
		npu_interrupt(0, pci_get_drvdata(board.pdev));
	board.busy = false;
}

/*
 * The firmware. A request takes up to a second, as long as the driver's
 * timeout.
 */
static int run_firmware(void *unused)
{
	struct request req;
	u32 number;

	while (1) {
		wait_event(board.doorbell, has_request());
		if (kthread_should_stop())
			return 0;
		if (!draw(3))
			msleep(980 + draw(25));
		if (board.head == board.tail)
			continue;
		req = board.queue[board.tail % PIECES];
		number = board.numbers[board.tail++ % PIECES];
		board.status = carry_out(&req);
		board.done = number;
		raise_event(NPU_EVENT_REPLY |
			    (board.dying ? NPU_EVENT_DEAD : 0));
	}
}

#endif /* _NATIVE_NPU_BOARD_H */
