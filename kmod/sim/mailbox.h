/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The mailbox between the host and the card's firmware: the form of messages,
 * the host's end (ops.c), the firmware's end (firmware.c), and what can go
 * wrong on the way (debugfs.c). See mailbox.c for the rules.
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

/* Asked before a message is sent. */
extern struct fault_attr sim_fault_attr;
#endif

/* Function 0 is the PF, function 1 + n is VF n. */
#define SIM_MAX_VFS 8
#define SIM_MAX_FUNCTIONS (1 + SIM_MAX_VFS)

/* Messages that wait in one function's queue. */
#define SIM_QUEUE 16

/* Bounds of what can be set; the firmware's thread sleeps that long. */
#define SIM_MAX_TIMEOUT_MS 60000
#define SIM_MAX_LATENCY_US 10000000

/**
 * enum sim_command - what a message asks for
 * @SIM_ANY: never sent: any command, for the choice of faults
 * @SIM_ACQUIRE: take @bytes and call them @memory, unless the function has memory
 *	of that name; answers with @base
 * @SIM_RELEASE: give @memory back, if the function has it
 * @SIM_SLOT_SET: let entry @slot point at @memory
 * @SIM_SLOT_CLEAR: empty entry @slot, if it is not
 * @SIM_QUIESCE: let no program of the function begin or go on: only what gives
 *	back is carried out from now on, until a reset
 * @SIM_CAPACITY: answers with @bytes
 * @SIM_SCRUB: zero @bytes of @memory from @offset on
 * @SIM_READ: copy that range to @buffer
 * @SIM_WRITE: copy it from @buffer
 * @SIM_COPY: copy it from @from_memory, from @from_offset on
 * @SIM_VM_MAP: let programs reach @bytes of @memory, from @offset on, at @address
 *	of @space, for @access
 * @SIM_VM_UNMAP: map nothing in @bytes from @address of @space on
 * @SIM_RESET: made by the mailbox out of the function's reset register
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
 * enum sim_status - what the firmware answers
 * @SIM_OK: carried out
 * @SIM_FAILED: the firmware failed; nothing has changed
 * @SIM_NO_SPACE: no piece of memory is as large as asked for
 * @SIM_OVER_CAPACITY: the function may not have that much
 * @SIM_SLOT_REFUSED: this entry of the table may not be used
 * @SIM_SLOT_FILLED: the entry points at other memory
 * @SIM_BAD_SIZE: zero, or not a multiple of the granule
 * @SIM_BAD_MEMORY: the function has no such memory, or some of another size
 * @SIM_BAD_RANGE: empty, not all in the memory, not aligned as it must be, or
 *	overlapping the one that is copied from
 * @SIM_IN_USE: an entry of the table points at the memory, it is mapped, or
 *	something is mapped in the range
 * @SIM_BAD_COMMAND: unknown, or not for this kind of function
 * @SIM_QUIET: nothing but giving back is carried out any more
 * @SIM_OUT_OF_ORDER: the number has passed, or nobody waits for it any more
 */
enum sim_status {
	SIM_OK,
	SIM_FAILED,
	SIM_NO_SPACE,
	SIM_OVER_CAPACITY,
	SIM_SLOT_REFUSED,
	SIM_SLOT_FILLED,
	SIM_BAD_SIZE,
	SIM_BAD_MEMORY,
	SIM_BAD_RANGE,
	SIM_IN_USE,
	SIM_BAD_COMMAND,
	SIM_QUIET,
	SIM_OUT_OF_ORDER,
};

/**
 * struct sim_request - message to the firmware
 * @seq: number of the message; 0: nobody waits, and no reply is sent
 * @command: what to do
 * @slot: entry of the function's table
 * @bytes: size of the memory wanted, or of the range
 * @memory: the host's name of a piece of memory, never used twice
 * @offset: first byte of the range in that piece
 * @from_memory: the piece that is copied from
 * @from_offset: first byte of the range in that piece
 * @space: the host's name of a device-virtual space
 * @address: first address of the range in that
 * @access: of enum flexmem_vm_access
 * @buffer: of the host, for the data; not looked at unless the mailbox lets
 *	the firmware move data for this request: sim_mailbox_data_begin()
 */
struct sim_request {
	u64 seq;
	enum sim_command command;
	u32 slot;
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
 * @bytes: capacity of the function
 */
struct sim_reply {
	u64 seq;
	enum sim_status status;
	u64 base;
	u64 bytes;
};

/**
 * enum sim_fault - what can go wrong with the next messages
 * @SIM_FAIL_COMMANDS: answered with SIM_FAILED
 * @SIM_DROP_REQUESTS: lost before the firmware sees it
 * @SIM_DROP_REPLIES: carried out, but the reply is lost
 * @SIM_DUPLICATE_REPLIES: the reply comes twice
 * @SIM_STALE_REPLIES: a reply to an old number comes first
 * @SIM_NR_FAULTS: how many there are
 */
enum sim_fault {
	SIM_FAIL_COMMANDS,
	SIM_DROP_REQUESTS,
	SIM_DROP_REPLIES,
	SIM_DUPLICATE_REPLIES,
	SIM_STALE_REPLIES,
	SIM_NR_FAULTS,
};

/**
 * enum sim_stat - what is counted
 * @SIM_REQUESTS: messages sent by the host
 * @SIM_REPLIES: replies that someone waited for
 * @SIM_TIMEOUTS: callers that gave up because no reply came
 * @SIM_KILLED: callers that gave up because they were killed
 * @SIM_STALE: replies to a number nobody waited for (any more)
 * @SIM_DUPLICATES: replies to a number that has had its reply
 * @SIM_REPEATS: commands that found done already what they ask for
 * @SIM_RESETS: functions reset
 * @SIM_NR_STATS: how many there are
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
 * @wait: host's callers: for room, for the reply, for the end of a reset
 * @queue: messages the firmware has not taken yet
 * @head: messages put in since the beginning
 * @tail: messages taken out or thrown away since then
 * @seq: number of the latest request
 * @waiting: number of the request whose reply is awaited; 0: none
 * @answered: its reply is here
 * @lost: a fault took it, or its reply, away
 * @reply: that reply
 * @replied: number of the latest request that was answered in time
 * @reset: the reset register: set by the host, cleared by the firmware
 * @data: held by the firmware while it moves some data
 *
 * All but @wait and @data is protected by &struct sim_mailbox.lock.
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
	 * Whoever takes it after having given up knows that nothing is moved
	 * for him any more. Taken after &struct sim_firmware.lock and before
	 * &struct sim_mailbox.lock; nothing that waits is done under it.
	 */
	struct mutex data;
};

/**
 * struct sim_mailbox - the card's mailbox
 * @lock: held for some instructions only
 * @doorbell: where the firmware waits for messages
 * @channels: one for each function
 * @next: function that the firmware looks at first, for fairness
 * @dead: the firmware takes no message until it is told to, or reset
 * @timeout_ms: how long the host waits for a reply; no lock, any value is good
 * @give_up: the host does not wait for what a fault took away; likewise
 * @latency_us: how long the firmware takes for each message; likewise
 * @fault_command: command that faults are for, or SIM_ANY; likewise
 * @faults: how many of the next messages each fault is for
 * @stats: what was counted
 */
struct sim_mailbox {
	/*
	 * Protects the channels, @next and @dead. Innermost: nothing is taken
	 * under it but the locks of wait queues.
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
