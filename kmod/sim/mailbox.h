/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The mailbox between the host and the card's firmware: the form of messages,
 * the host's end (ops.c), the firmware's end (firmware.c), and the faults on
 * the way (debugfs.c). mailbox.c describes the rules.
 */
#ifndef _FLEXMEM_SIM_MAILBOX_H
#define _FLEXMEM_SIM_MAILBOX_H

#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>

#ifdef CONFIG_FAULT_INJECTION
#include <linux/fault-inject.h>

/* The kernel's fault injection, asked before each message is sent. */
extern struct fault_attr sim_fault_attr;
#endif

/* Function 0 is the PF, function 1 + n is VF n. */
#define SIM_MAX_VFS 8
#define SIM_MAX_FUNCTIONS (1 + SIM_MAX_VFS)

/* The most messages that can wait in the queue of one PF or VF. */
#define SIM_QUEUE 16

/*
 * Upper bounds of the timeout and of the latency; the firmware's thread sleeps
 * for the latency.
 */
#define SIM_MAX_TIMEOUT_MS 60000
#define SIM_MAX_LATENCY_US 10000000

/**
 * enum sim_command - the command in a message
 * @SIM_ANY: never sent; means any command when faults are injected
 * @SIM_ACQUIRE: take @bytes of @domain and name them @memory, unless the
 *	function has memory of that name; the answer has @base
 * @SIM_RELEASE: release @memory, if the function has it
 * @SIM_SLOT_SET: let entry @slot point at @memory
 * @SIM_SLOT_CLEAR: empty entry @slot, if it is filled
 * @SIM_QUIESCE: stop the programs of the function. Until a reset only commands
 *	that release memory are carried out
 * @SIM_CAPACITY: the answer has the @bytes of @domain
 * @SIM_SCRUB: zero @bytes of @memory from @offset on
 * @SIM_READ: copy @bytes at @offset of @memory to @buffer
 * @SIM_WRITE: copy @bytes of @buffer to @offset of @memory
 * @SIM_COPY: copy @bytes at @from_offset of @from_memory to @offset of @memory
 * @SIM_VM_MAP: let programs reach @bytes of @memory, from @offset on, at
 *	@address of @space, for @access
 * @SIM_VM_UNMAP: unmap @bytes from @address of @space on
 * @SIM_RESET: made by the mailbox from the function's reset register
 */
enum sim_command {
	SIM_ANY,
	SIM_ACQUIRE,
	SIM_RELEASE,
	SIM_SLOT_SET,
	SIM_SLOT_CLEAR,
	SIM_QUIESCE,
	SIM_CAPACITY,
	SIM_SCRUB,
	SIM_READ,
	SIM_WRITE,
	SIM_COPY,
	SIM_VM_MAP,
	SIM_VM_UNMAP,
	SIM_RESET,
};

/**
 * enum sim_status - status in a reply
 * @SIM_OK: carried out
 * @SIM_FAILED: the firmware failed; nothing has changed
 * @SIM_HUNG: the firmware cannot say whether bytes still move
 * @SIM_NO_SPACE: no contiguous free memory is large enough
 * @SIM_OVER_CAPACITY: the function's capacity is reached
 * @SIM_SLOT_REFUSED: this entry of the table may not be used
 * @SIM_SLOT_FILLED: the entry points at other memory
 * @SIM_BAD_SIZE: zero, or not a multiple of the granule
 * @SIM_BAD_DOMAIN: the card has no such memory
 * @SIM_BAD_MEMORY: the function has no such memory, or the memory has another
 *	size
 * @SIM_BAD_RANGE: empty, not all in the memory, not aligned, or overlapping the
 *	source of a copy
 * @SIM_IN_USE: an entry of the table points at the memory, it is mapped, or
 *	something is mapped in the range
 * @SIM_BAD_COMMAND: unknown, or not for this kind of function
 * @SIM_QUIET: only commands that release memory are carried out
 * @SIM_OUT_OF_ORDER: the firmware has seen a message with a higher number, or
 *	the caller has given up
 */
enum sim_status {
	SIM_OK,
	SIM_FAILED,
	SIM_HUNG,
	SIM_NO_SPACE,
	SIM_OVER_CAPACITY,
	SIM_SLOT_REFUSED,
	SIM_SLOT_FILLED,
	SIM_BAD_SIZE,
	SIM_BAD_DOMAIN,
	SIM_BAD_MEMORY,
	SIM_BAD_RANGE,
	SIM_IN_USE,
	SIM_BAD_COMMAND,
	SIM_QUIET,
	SIM_OUT_OF_ORDER,
};

/**
 * struct sim_request - message to the firmware
 * @seq: number of the message; 0: no caller waits, and no reply is sent
 * @command: command
 * @slot: entry of the function's table
 * @domain: number of the memory to acquire from
 * @bytes: size of the memory to acquire, or of the range
 * @memory: the name that the host gave a piece of memory; never used twice
 * @offset: first byte of the range in that piece
 * @from_memory: piece that is the source of a copy
 * @from_offset: first byte of the source in that piece
 * @space: the name that the host gave a device-virtual space
 * @address: first address of the range in that space
 * @access: of enum flexmem_vm_access
 * @buffer: the host's buffer for the data. The firmware uses it only between
 *	sim_mailbox_data_begin() and sim_mailbox_data_end()
 */
struct sim_request {
	u64 seq;
	enum sim_command command;
	u32 slot;
	u32 domain;
	u64 bytes;
	u64 memory;
	u64 offset;
	u64 from_memory;
	u64 from_offset;
	u64 space;
	u64 address;
	u32 access;
	void *buffer;
};

/**
 * struct sim_reply - message from the firmware
 * @seq: number of the request
 * @status: outcome; the other members are valid if it is SIM_OK
 * @base: physical address of the memory acquired
 * @bytes: capacity of the function in the domain
 */
struct sim_reply {
	u64 seq;
	enum sim_status status;
	u64 base;
	u64 bytes;
};

/**
 * enum sim_fault - what goes wrong with the next messages
 * @SIM_FAIL_COMMANDS: answered with SIM_FAILED
 * @SIM_DROP_REQUESTS: lost before the firmware sees it
 * @SIM_DROP_REPLIES: carried out, but the reply is lost
 * @SIM_DUPLICATE_REPLIES: the reply comes twice
 * @SIM_STALE_REPLIES: a reply to an old number comes first
 * @SIM_HANG_COMMANDS: answered with SIM_HUNG
 * @SIM_NR_FAULTS: number of faults
 */
enum sim_fault {
	SIM_FAIL_COMMANDS,
	SIM_DROP_REQUESTS,
	SIM_DROP_REPLIES,
	SIM_DUPLICATE_REPLIES,
	SIM_STALE_REPLIES,
	SIM_HANG_COMMANDS,
	SIM_NR_FAULTS,
};

/**
 * enum sim_stat - counters
 * @SIM_REQUESTS: messages sent by the host
 * @SIM_REPLIES: replies that a caller waited for
 * @SIM_TIMEOUTS: callers that gave up because no reply came
 * @SIM_KILLED: callers that gave up because they were killed
 * @SIM_STALE: replies to a number that no caller waits for
 * @SIM_DUPLICATES: replies to a number that has had its reply
 * @SIM_REPEATS: commands whose effect was there already
 * @SIM_RESETS: functions reset
 * @SIM_NR_STATS: number of counters
 */
enum sim_stat {
	SIM_REQUESTS,
	SIM_REPLIES,
	SIM_TIMEOUTS,
	SIM_KILLED,
	SIM_STALE,
	SIM_DUPLICATES,
	SIM_REPEATS,
	SIM_RESETS,
	SIM_NR_STATS,
};

/**
 * struct sim_channel - one function's part of the mailbox
 * @wait: callers of the host that wait for room, a reply, or the end of a reset
 * @queue: messages that the firmware has not taken yet
 * @head: messages queued so far
 * @tail: messages taken or discarded so far
 * @seq: number of the latest request
 * @waiting: number of the request that waits for its reply; 0: none
 * @answered: the reply to @waiting has arrived
 * @lost: a fault removed that request or its reply
 * @reply: the reply, if @answered
 * @replied: number of the latest request that was answered in time
 * @reset: the reset register: set by the host, cleared by the firmware
 * @data: held by the firmware while it moves some data
 *
 * &struct sim_mailbox.lock protects all but @wait and @data.
 */
struct sim_channel {
	wait_queue_head_t wait;
	struct sim_request queue[SIM_QUEUE];
	unsigned int head;
	unsigned int tail;
	u64 seq;
	u64 waiting;
	bool answered;
	bool lost;
	struct sim_reply reply;
	u64 replied;
	bool reset;
	/*
	 * A caller that gives up takes this lock once before it returns. After
	 * that no data is moved for the caller. Taken after &struct
	 * sim_firmware.lock and before &struct sim_mailbox.lock. Nothing waits
	 * under it.
	 */
	struct mutex data;
};

/**
 * struct sim_mailbox - the card's mailbox
 * @lock: held only for a few instructions
 * @doorbell: the firmware waits here for messages
 * @channels: one for each function
 * @next: function whose queue the firmware checks first, for fairness
 * @dead: the firmware takes no message until this is cleared, or a function is
 *	reset
 * @timeout_ms: how long the host waits for a reply; read without a lock because
 *	any value is valid
 * @give_up: the host does not wait for messages that a fault removed; read
 *	without a lock
 * @latency_us: how long the firmware takes for each message; read without a
 *	lock
 * @fault_command: command that the faults hit, or SIM_ANY; read without a lock
 * @faults: for each fault: how many of the next messages it hits
 * @stats: counters
 */
struct sim_mailbox {
	/*
	 * Protects the channels, @next and @dead. Innermost: only the locks of
	 * wait queues are taken under it.
	 */
	spinlock_t lock;
	wait_queue_head_t doorbell;
	struct sim_channel channels[SIM_MAX_FUNCTIONS];
	unsigned int next;
	bool dead;
	u32 timeout_ms;
	bool give_up;
	u32 latency_us;
	enum sim_command fault_command;
	atomic_t faults[SIM_NR_FAULTS];
	atomic64_t stats[SIM_NR_STATS];
};

void sim_mailbox_init(struct sim_mailbox *mbox, u32 timeout_ms);
void sim_mailbox_destroy(struct sim_mailbox *mbox);
void sim_mailbox_set_dead(struct sim_mailbox *mbox, bool dead);

/* the host's end */
int sim_mailbox_call(struct sim_mailbox *mbox, unsigned int function,
		     struct sim_request *req, struct sim_reply *reply);
void sim_mailbox_post(struct sim_mailbox *mbox, unsigned int function,
		      const struct sim_request *req);
void sim_mailbox_reset(struct sim_mailbox *mbox, unsigned int function);

/* the firmware's end */
bool sim_mailbox_take(struct sim_mailbox *mbox, unsigned int *function,
		      struct sim_request *req);
void sim_mailbox_answer(struct sim_mailbox *mbox, unsigned int function,
			enum sim_command command,
			const struct sim_reply *reply);
void sim_mailbox_reset_done(struct sim_mailbox *mbox, unsigned int function);
bool sim_mailbox_data_begin(struct sim_mailbox *mbox, unsigned int function,
			    u64 seq);
void sim_mailbox_data_end(struct sim_mailbox *mbox, unsigned int function);
bool sim_mailbox_fault(struct sim_mailbox *mbox, enum sim_fault fault,
		       enum sim_command command);

static inline void sim_mailbox_count(struct sim_mailbox *mbox,
				     enum sim_stat stat)
{
	atomic64_inc(&mbox->stats[stat]);
}

#endif /* _FLEXMEM_SIM_MAILBOX_H */
