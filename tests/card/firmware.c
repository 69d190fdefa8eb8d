// SPDX-License-Identifier: GPL-2.0
/* The firmware of the card: a process that serves the mailboxes of all functions, one request at a time. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "card.h"

#define GIB (1ULL << 30)

static volatile sig_atomic_t again;

static bool hit(long each, uint64_t count)
{
	return each > 0 && count % each == 0;
}

static struct piece *find(int i, uint64_t id)
{
	for (struct piece *p = card.state->piece; p < card.state->piece + CARD_PIECES; p++)
		if (p->size && p->id == id && p->function == i)
			return p;
	return NULL;
}

void firmware_count_held(int i)
{
	uint32_t held = 0;

	for (int k = 0; k < CARD_PIECES; k++)
		held += card.state->piece[k].size && card.state->piece[k].function == i;
	*reg32(i, CARD_HELD) = held;
}

uint64_t firmware_capacity(void)
{
	uint64_t share = (card.bytes - CARD_CONTROL) / card.functions;

	if (card.state->knobs.capacity_mb)
		share = (uint64_t)card.state->knobs.capacity_mb << 20;
	return share & ~(CARD_CONTROL - 1ULL);
}

static const struct piece *piece_over(uint64_t base, uint64_t size)
{
	for (const struct piece *p = card.state->piece; p < card.state->piece + CARD_PIECES; p++)
		if (p->size && base < p->base + p->size && p->base < base + size)
			return p;
	return NULL;
}

/* Finds a free range. flexmem wants regions of 1 GiB and more at multiples of 1 GiB. */
static uint64_t place(uint64_t size)
{
	uint64_t align = size >= GIB ? GIB : CARD_CONTROL;

	if (card.state->knobs.overlap)
		return align;
	for (uint64_t base = align; base + size <= card.bytes; base += align)
		if (!piece_over(base, size))
			return base;
	return 0;
}

/* Idempotent: the same id and size again get the same memory. */
static uint32_t acquire(int i, uint64_t id, uint64_t size, uint64_t *base)
{
	struct piece *p = find(i, id), *vacant = NULL;
	uint64_t held = 0;

	if (p) {
		*base = p->base;
		return p->size == size ? CARD_OK : CARD_FAILED;
	}
	if (!size || size % CARD_CONTROL)
		return CARD_FAILED;
	for (p = card.state->piece; p < card.state->piece + CARD_PIECES; p++) {
		if (!p->size)
			vacant = p;
		else if (p->function == i)
			held += p->size;
	}
	if (!vacant || size > firmware_capacity() || held > firmware_capacity() - size)
		return CARD_NO_MEMORY;
	*base = place(size);
	if (!*base)
		return CARD_NO_MEMORY;
	vacant->id = id;
	vacant->base = *base;
	vacant->function = i;
	/* A firmware that dies here has acquired nothing. */
	card_barrier();
	vacant->size = size;
	if (card.state->knobs.misaligned)
		*base += 4096;
	return CARD_OK;
}

/* Gives whole pages back to the host, so that a sparse memory stays sparse. */
static void clear(uint64_t at, uint64_t length)
{
	if (card.state->knobs.dirty)
		return;
	if ((at | length) % 4096 ||
	    fallocate(card.memory_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, length))
		memset(card.memory + at, 0, length);
}

/* Lets the front end move bytes, and waits for it. Ended by a STOP or RESET, which kill the firmware. */
static bool dma(int i, const struct transfer *t)
{
	struct pollfd done = { .fd = card.function[i].to_card[CARD_BELL_DMA_DONE], .events = POLLIN };
	uint32_t number = ++card.state->transfers;

	*reg64(i, CARD_DMA_BUS_L) = t->bus;
	*reg64(i, CARD_DMA_CARD_L) = t->card;
	*reg64(i, CARD_DMA_LENGTH_L) = t->length;
	*reg32(i, CARD_DMA_TO_HOST) = t->to_host;
	card_barrier();
	*reg32(i, CARD_DMA_SEND) = number;
	card_barrier();
	card_ring(card.function[i].to_host[CARD_VECTOR_DMA]);
	while (*reg32(i, CARD_DMA_DONE) != number) {
		if (poll(&done, 1, -1) > 0)
			card_drain(done.fd);
		card_barrier();
	}
	if (*reg32(i, CARD_DMA_STATUS)) {
		card.state->refused++;
		return false;
	}
	card.state->dma_bytes += t->length;
	return true;
}

/* READ and WRITE: by DMA, or through the function's buffer in BAR 2 if the front end is no bus master. */
static uint32_t exchange(int i, uint64_t at, uint64_t length, bool to_host)
{
	uint8_t *buffer = card.function[i].registers + CARD_BUFFER_AREA;

	if (length > CARD_MOVE_MAX)
		return CARD_FAILED;
	if (*reg32(i, CARD_BUS_MASTER)) {
		struct transfer *t = &card.state->latest[i];

		*t = (struct transfer){ *reg64(i, CARD_BUFFER_L), at, length, to_host };
		return dma(i, t) ? CARD_OK : CARD_FAILED;
	}
	if (to_host)
		memcpy(buffer, card.memory + at, length);
	else
		memcpy(card.memory + at, buffer, length);
	return CARD_OK;
}

static uint32_t move(int i, uint32_t command)
{
	uint64_t offset = *reg64(i, CARD_OFFSET_L), length = *reg64(i, CARD_LENGTH_L), source;
	struct piece *p = find(i, *reg64(i, CARD_MEMORY_L)), *from;

	if (!p || offset > p->size || length > p->size - offset)
		return CARD_FAILED;
	switch (command) {
	case CARD_SCRUB:
		clear(p->base + offset, length);
		return CARD_OK;
	case CARD_READ:
	case CARD_WRITE:
		return exchange(i, p->base + offset, length, command == CARD_READ);
	default:
		from = find(i, *reg64(i, CARD_FROM_L));
		source = *reg64(i, CARD_FROM_OFFSET_L);
		if (!from || source > from->size || length > from->size - source)
			return CARD_FAILED;
		memmove(card.memory + p->base + offset, card.memory + from->base + source, length);
		return CARD_OK;
	}
}

static uint32_t command_of_tables(int i, uint32_t command, uint64_t *result)
{
	uint64_t id = *reg64(i, CARD_MEMORY_L);
	uint32_t slot = *reg32(i, CARD_SLOT);
	struct piece *p = find(i, id);

	switch (command) {
	case CARD_ACQUIRE:
		return acquire(i, id, *reg64(i, CARD_LENGTH_L), result);
	case CARD_RELEASE:
		if (p)
			p->size = 0;
		return CARD_OK;
	case CARD_SET:
		if (slot >= CARD_NSLOTS || card.state->slot[i][slot])
			return CARD_NO_SLOT;
		if (!p)
			return CARD_FAILED;
		card.state->slot[i][slot] = id;
		return CARD_OK;
	case CARD_CLEAR:
		if (slot >= CARD_NSLOTS)
			return CARD_FAILED;
		card.state->slot[i][slot] = 0;
		return CARD_OK;
	case CARD_HALT:
		return CARD_OK;
	case CARD_CAPACITY:
		*result = firmware_capacity();
		return CARD_OK;
	default:
		return CARD_FAILED;
	}
}

static void reply(int i, uint32_t number, uint32_t status, uint64_t result)
{
	const struct knobs *knobs = &card.state->knobs;

	if (hit(knobs->nonsense, card.state->requests)) {
		status = rand();
		result = rand();
	}
	if (hit(knobs->lose, card.state->requests))
		number = 0;
	*reg64(i, CARD_RESULT_L) = result;
	*reg32(i, CARD_STATUS) = status;
	card_barrier();
	*reg32(i, CARD_DONE) = number;
	card_barrier();
	if (number)
		card_ring(card.function[i].to_host[CARD_VECTOR_REPLY]);
}

/* Serves the request in the mailbox, unless that has begun before: a death of the firmware loses the request. */
static void serve(int i)
{
	const struct knobs *knobs = &card.state->knobs;
	uint32_t number = *reg32(i, CARD_SEND), command, status;
	uint64_t result = 0;

	if (!number || number == card.state->begun[i] || number == *reg32(i, CARD_STOPPED))
		return;
	card.state->begun[i] = number;
	card.state->busy = i + 1;
	card_barrier();
	command = *reg32(i, CARD_COMMAND);
	card.state->requests++;
	if (hit(knobs->die, card.state->requests))
		raise(SIGKILL);
	while (hit(knobs->hang, card.state->requests))
		pause();
	if (knobs->delay_ms)
		usleep(1000 * knobs->delay_ms);
	if (command < CARD_SCRUB || command > CARD_COPY) {
		status = command_of_tables(i, command, &result);
		firmware_count_held(i);
	} else if (hit(knobs->late, ++card.state->moves)) {
		reply(i, number, CARD_OK, 0);
		usleep(20000);
		move(i, command);
		return;
	} else {
		status = move(i, command);
	}
	reply(i, number, status, result);
}

/*
 * Repeats the latest transfer of each function, with the old address of the buffer. If the kernel has freed that buffer,
 * an IOMMU must refuse the transfer.
 */
static void repeat_transfers(void)
{
	again = 0;
	for (int i = 0; i < card.functions; i++)
		if (card.state->latest[i].length && *reg32(i, CARD_BUS_MASTER))
			dma(i, &card.state->latest[i]);
}

static void on_again(int signal)
{
	(void)signal;
	again = 1;
}

void firmware_run(void)
{
	struct pollfd p[CARD_FUNCTIONS];
	struct sigaction action = { .sa_handler = on_again };
	sigset_t waiting, block;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	srand(getpid());
	sigemptyset(&waiting);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	sigaction(SIGUSR1, &action, NULL);
	sigprocmask(SIG_SETMASK, &block, NULL);
	for (int i = 0; i < card.functions; i++)
		p[i] = (struct pollfd){ .fd = card.function[i].to_card[CARD_BELL_REQUEST], .events = POLLIN };
	for (;;) {
		int ready = ppoll(p, card.functions, NULL, &waiting);

		if (again)
			repeat_transfers();
		for (int i = 0; ready > 0 && i < card.functions; i++)
			if (p[i].revents && card_drain(p[i].fd))
				serve(i);
		card.state->busy = 0;
	}
}
