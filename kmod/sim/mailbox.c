// SPDX-License-Identifier: GPL-2.0
/*
 * The mailbox: carries messages between the host and the card's firmware, and
 * loses, doubles and delays them on demand.
 *
 * Each function has a channel of its own, as with SR-IOV hardware: a queue of
 * requests, taken in order, and one reply at a time. Requests and replies are
 * copied, never pointed to. A reply that comes after its caller gave up is only
 * counted.
 *
 * Whether a caller gets its reply is decided in one place, under the lock. If
 * the reply finds its caller waiting, the caller returns with the reply, even
 * if a timer or signal comes at the same moment. If the caller has given up, no
 * later reply to that number is accepted. The firmware does not learn which of
 * the two happened. flexmem handles replies that did not arrive.
 *
 * Data does not go through the queue: its request names a buffer of the caller.
 * The firmware moves data in parts, and checks before each part whether the
 * caller still waits. A caller that gives up waits until the part that is just
 * being moved is finished. After the caller has returned, the firmware moves no
 * more data of the request. Real hardware would remove the buffer from its
 * IOMMU and stop the copy engine.
 *
 * In addition to the queue, a function has a reset register. Like a register of
 * real hardware (PCI calls this a function level reset), a write to it cannot
 * be lost. It discards the queue, and the firmware handles it before any
 * further message of that function. It also starts a dead firmware again.
 */

#include <linux/jiffies.h>
#include <linux/kthread.h>

#include "mailbox.h"

/*
 * How much lower the number in a stale reply is than the number in the proper
 * reply. Numbers of requests start above this value, so the number in a stale
 * reply is never 0.
 */
#define SIM_STALE_AGE 8

#ifdef CONFIG_FAULT_INJECTION
DECLARE_FAULT_ATTR(sim_fault_attr);

/*
 * Whether the kernel's fault injection wants this message to fail. Called by
 * the sending task, because the setting fail-nth counts the calls of one task.
 */
static bool sim_should_fail(void)
{
	return should_fail(&sim_fault_attr, 1);
}
#else
static bool sim_should_fail(void)
{
	return false;
}
#endif

/**
 * sim_mailbox_init - make an empty mailbox, without faults
 * @mbox: the mailbox
 * @timeout_ms: how long the host waits for a reply
 */
void sim_mailbox_init(struct sim_mailbox *mbox, u32 timeout_ms)
{
	unsigned int i;

	spin_lock_init(&mbox->lock);
	init_waitqueue_head(&mbox->doorbell);
	mbox->timeout_ms = timeout_ms;
	for (i = 0; i < SIM_MAX_FUNCTIONS; i++) {
		init_waitqueue_head(&mbox->channels[i].wait);
		mbox->channels[i].seq = SIM_STALE_AGE;
		mutex_init(&mbox->channels[i].data);
	}
}

/**
 * sim_mailbox_destroy - free a mailbox
 * @mbox: the mailbox; neither host nor firmware uses it any more
 */
void sim_mailbox_destroy(struct sim_mailbox *mbox)
{
	unsigned int i;

	for (i = 0; i < SIM_MAX_FUNCTIONS; i++)
		mutex_destroy(&mbox->channels[i].data);
}

/**
 * sim_mailbox_set_dead - stop the firmware from taking messages, or start it
 * again
 * @mbox: the mailbox
 * @dead: true to stop it
 */
void sim_mailbox_set_dead(struct sim_mailbox *mbox, bool dead)
{
	spin_lock(&mbox->lock);
	WRITE_ONCE(mbox->dead, dead);
	spin_unlock(&mbox->lock);
	wake_up(&mbox->doorbell);
}

/**
 * sim_mailbox_fault - whether a fault hits this message
 * @mbox: the mailbox
 * @fault: which fault
 * @command: command in the message
 *
 * A fault that hits is used up.
 *
 * Return: true if the fault hits.
 */
bool sim_mailbox_fault(struct sim_mailbox *mbox, enum sim_fault fault,
		       enum sim_command command)
{
	enum sim_command only = READ_ONCE(mbox->fault_command);

	if (only != SIM_ANY && only != command)
		return false;
	return atomic_dec_if_positive(&mbox->faults[fault]) >= 0;
}

static bool sim_channel_put(struct sim_channel *ch,
			    const struct sim_request *req)
{
	if (ch->head - ch->tail == SIM_QUEUE)
		return false;
	ch->queue[ch->head++ % SIM_QUEUE] = *req;
	return true;
}

/*
 * Numbers the request and queues it. Returns false if there is no room.
 * Otherwise the caller must now wait for the reply.
 */
static bool sim_channel_send(struct sim_mailbox *mbox, struct sim_channel *ch,
			     struct sim_request *req)
{
	bool sent = false;

	spin_lock(&mbox->lock);
	if (ch->head - ch->tail == SIM_QUEUE)
		goto out_unlock;

	/* ops.c holds &sim_function.turn, so only one request waits here. */
	WARN_ON_ONCE(ch->waiting);
	req->seq = ++ch->seq;
	ch->waiting = req->seq;
	ch->answered = false;
	ch->lost = sim_mailbox_fault(mbox, SIM_DROP_REQUESTS, req->command);
	if (!ch->lost)
		sim_channel_put(ch, req);
	sim_mailbox_count(mbox, SIM_REQUESTS);
	wake_up(&mbox->doorbell);
	sent = true;

out_unlock:
	spin_unlock(&mbox->lock);
	return sent;
}

/*
 * Whether the wait is over: the reply has arrived, or a fault removed it and
 * the caller need not wait for the timeout (@give_up).
 */
static bool sim_channel_is_over(struct sim_mailbox *mbox,
				struct sim_channel *ch)
{
	bool over;

	spin_lock(&mbox->lock);
	over = ch->answered || (ch->lost && READ_ONCE(mbox->give_up));
	spin_unlock(&mbox->lock);
	return over;
}

/*
 * Ends the wait for a request that was sent. Gets the reply if one has arrived
 * by now. Otherwise @left, from wait_event_killable_timeout(), gives the error:
 * @left is negative if the caller was killed.
 */
static int sim_channel_finish(struct sim_mailbox *mbox, struct sim_channel *ch,
			      struct sim_reply *reply, long left)
{
	int ret = 0;

	spin_lock(&mbox->lock);
	if (ch->answered) {
		*reply = ch->reply;
	} else {
		sim_mailbox_count(mbox, left < 0 ? SIM_KILLED : SIM_TIMEOUTS);
		ret = left < 0 ? -EINTR : -ETIMEDOUT;
	}
	ch->waiting = 0;
	ch->answered = false;
	spin_unlock(&mbox->lock);
	return ret;
}

/**
 * sim_mailbox_call - send a request and wait for its reply
 * @mbox: the mailbox
 * @function: sender
 * @req: the request; @req->seq receives the number, or 0 if nothing was sent
 * @reply: receives the reply
 *
 * If this fails and @req->seq is not 0, the firmware may have carried out the
 * request, or may do so later. But the firmware moves no more data for it.
 *
 * Context: May sleep, for the timeout at most. A caller that gives up also
 * waits until the current part of its data has been moved. One caller at a time
 * for each function.
 *
 * Return:
 * * 0		- there is a reply
 * * -ETIMEDOUT	- there was none in time
 * * -EINTR	- the caller was killed
 * * -EIO	- fault injected by the kernel's framework: not sent
 */
int sim_mailbox_call(struct sim_mailbox *mbox, unsigned int function,
		     struct sim_request *req, struct sim_reply *reply)
{
	struct sim_channel *ch = &mbox->channels[function];
	long left = msecs_to_jiffies(READ_ONCE(mbox->timeout_ms));
	int ret;

	req->seq = 0;
	if (sim_should_fail())
		return -EIO;

	left = wait_event_killable_timeout(ch->wait,
					   sim_channel_send(mbox, ch, req),
					   left);
	if (!req->seq) {
		sim_mailbox_count(mbox, left ? SIM_KILLED : SIM_TIMEOUTS);
		return left ? -EINTR : -ETIMEDOUT;
	}

	left = wait_event_killable_timeout(ch->wait,
					   sim_channel_is_over(mbox, ch),
					   left);
	ret = sim_channel_finish(mbox, ch, reply, left);
	if (ret) {
		/* Waits until the firmware has moved the current part. */
		mutex_lock(&ch->data);
		mutex_unlock(&ch->data);
	}
	return ret;
}

/**
 * sim_mailbox_post - send a request without a reply
 * @mbox: the mailbox
 * @function: sender
 * @req: the request; its @seq is 0
 *
 * The request may get lost, or find no room.
 *
 * Context: any in which a spinlock can be taken.
 */
void sim_mailbox_post(struct sim_mailbox *mbox, unsigned int function,
		      const struct sim_request *req)
{
	spin_lock(&mbox->lock);
	sim_channel_put(&mbox->channels[function], req);
	spin_unlock(&mbox->lock);
	wake_up(&mbox->doorbell);
}

static bool sim_channel_is_reset(struct sim_mailbox *mbox,
				 struct sim_channel *ch)
{
	bool reset;

	spin_lock(&mbox->lock);
	reset = !ch->reset;
	spin_unlock(&mbox->lock);
	return reset;
}

/**
 * sim_mailbox_reset - reset a function
 * @mbox: the mailbox
 * @function: the function; no caller may be in sim_mailbox_call() for it
 *
 * Waits for the firmware, at most as long as for a command. The wait may end
 * early without harm: the register stays set, and no later message of this
 * function overtakes it. A dead firmware starts again, and continues with the
 * queues of the other functions.
 *
 * Context: May sleep.
 */
void sim_mailbox_reset(struct sim_mailbox *mbox, unsigned int function)
{
	struct sim_channel *ch = &mbox->channels[function];

	spin_lock(&mbox->lock);
	ch->tail = ch->head;
	ch->reset = true;
	WRITE_ONCE(mbox->dead, false);
	spin_unlock(&mbox->lock);
	wake_up(&mbox->doorbell);

	wait_event_killable_timeout(ch->wait, sim_channel_is_reset(mbox, ch),
				    msecs_to_jiffies(READ_ONCE(mbox->timeout_ms)));
}

/* Takes the next message or reset. The device functions are served in turn. */
static bool sim_mailbox_try_take(struct sim_mailbox *mbox,
				 unsigned int *function,
				 struct sim_request *req)
{
	static const struct sim_request reset = { .command = SIM_RESET };
	bool found = false;
	unsigned int i;

	spin_lock(&mbox->lock);
	if (mbox->dead)
		goto out_unlock;

	for (i = 0; i < SIM_MAX_FUNCTIONS && !found; i++) {
		unsigned int f = (mbox->next + i) % SIM_MAX_FUNCTIONS;
		struct sim_channel *ch = &mbox->channels[f];

		if (ch->reset)
			*req = reset;
		else if (ch->head != ch->tail)
			*req = ch->queue[ch->tail++ % SIM_QUEUE];
		else
			continue;

		*function = f;
		mbox->next = (f + 1) % SIM_MAX_FUNCTIONS;
		wake_up(&ch->wait);
		found = true;
	}

out_unlock:
	spin_unlock(&mbox->lock);
	return found;
}

/**
 * sim_mailbox_take - wait for the next request
 * @mbox: the mailbox
 * @function: receives the sender of the request
 * @req: receives the request
 *
 * Context: The firmware's thread.
 *
 * Return: false if the thread must stop.
 */
bool sim_mailbox_take(struct sim_mailbox *mbox, unsigned int *function,
		      struct sim_request *req)
{
	bool stop;

	wait_event_idle(mbox->doorbell,
			(stop = kthread_should_stop()) ||
			sim_mailbox_try_take(mbox, function, req));
	return !stop;
}

static void sim_channel_deliver(struct sim_mailbox *mbox,
				struct sim_channel *ch,
				const struct sim_reply *reply)
{
	lockdep_assert_held(&mbox->lock);

	if (reply->seq != ch->waiting || ch->answered) {
		sim_mailbox_count(mbox, reply->seq == ch->replied ?
				  SIM_DUPLICATES : SIM_STALE);
		return;
	}
	ch->reply = *reply;
	ch->answered = true;
	ch->replied = reply->seq;
	sim_mailbox_count(mbox, SIM_REPLIES);
	wake_up(&ch->wait);
}

static void sim_channel_lose(struct sim_mailbox *mbox, struct sim_channel *ch,
			     const struct sim_reply *reply)
{
	spin_lock(&mbox->lock);
	if (reply->seq == ch->waiting)
		ch->lost = true;
	spin_unlock(&mbox->lock);
	wake_up(&ch->wait);
}

/**
 * sim_mailbox_answer - send a reply
 * @mbox: the mailbox
 * @function: receiver
 * @command: command of the request
 * @reply: the reply
 */
void sim_mailbox_answer(struct sim_mailbox *mbox, unsigned int function,
			enum sim_command command,
			const struct sim_reply *reply)
{
	struct sim_channel *ch = &mbox->channels[function];

	if (sim_mailbox_fault(mbox, SIM_DROP_REPLIES, command)) {
		sim_channel_lose(mbox, ch, reply);
		return;
	}

	spin_lock(&mbox->lock);
	if (sim_mailbox_fault(mbox, SIM_STALE_REPLIES, command)) {
		const struct sim_reply stale = {
			.seq = reply->seq - SIM_STALE_AGE,
		};

		sim_channel_deliver(mbox, ch, &stale);
	}
	sim_channel_deliver(mbox, ch, reply);
	if (sim_mailbox_fault(mbox, SIM_DUPLICATE_REPLIES, command))
		sim_channel_deliver(mbox, ch, reply);
	spin_unlock(&mbox->lock);
}

/**
 * sim_mailbox_data_begin - whether the firmware may move data for a request
 * @mbox: the mailbox
 * @function: sender of the request
 * @seq: number of the request
 *
 * Return: true if the sender still waits for the reply. A sender that gives up
 * later waits for sim_mailbox_data_end() before it returns.
 */
bool sim_mailbox_data_begin(struct sim_mailbox *mbox, unsigned int function,
			    u64 seq)
{
	struct sim_channel *ch = &mbox->channels[function];
	bool awaited;

	mutex_lock(&ch->data);
	spin_lock(&mbox->lock);
	awaited = seq == ch->waiting;
	spin_unlock(&mbox->lock);
	if (!awaited)
		mutex_unlock(&ch->data);
	return awaited;
}

/**
 * sim_mailbox_data_end - the firmware has moved a part of the data
 * @mbox: the mailbox
 * @function: sender of the request
 */
void sim_mailbox_data_end(struct sim_mailbox *mbox, unsigned int function)
{
	mutex_unlock(&mbox->channels[function].data);
}

/**
 * sim_mailbox_reset_done - clear the reset register
 * @mbox: the mailbox
 * @function: function that was reset
 */
void sim_mailbox_reset_done(struct sim_mailbox *mbox, unsigned int function)
{
	struct sim_channel *ch = &mbox->channels[function];

	spin_lock(&mbox->lock);
	ch->reset = false;
	wake_up(&ch->wait);
	spin_unlock(&mbox->lock);
}
