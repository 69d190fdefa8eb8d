/* SPDX-License-Identifier: GPL-2.0 */
/* The data that the card's hardware (card.c) and its firmware (firmware.c) share. */
#ifndef CARD_H
#define CARD_H

#include <stdbool.h>
#include <stdint.h>
#include "registers.h"

#define CARD_NSLOTS	8
#define CARD_PIECES	256

/*
 * The defects of the card. The control socket sets them. A number N of requests means that each Nth request is concerned;
 * 0 turns a knob off.
 */
#define CARD_KNOBS(knob) \
	knob(delay_ms)		/* each request takes this long */ \
	knob(lose)		/* requests: carried out without a reply */ \
	knob(nonsense)		/* requests: the reply is random */ \
	knob(hang)		/* requests: the firmware hangs in it */ \
	knob(die)		/* requests: the firmware dies in it */ \
	knob(forget)		/* 1: a death of the firmware loses all memory */ \
	knob(restart_ms)	/* the firmware is away for this long after a death */ \
	knob(late)		/* moves: the bytes move after the reply */ \
	knob(dirty)		/* 1: SCRUB clears nothing */ \
	knob(overlap)		/* 1: all memory has the same address */ \
	knob(misaligned)	/* 1: memory is 4096 bytes off */ \
	knob(capacity_mb)	/* capacity of each function; 0: an equal share */

struct knobs {
#define knob(name) long name;
	CARD_KNOBS(knob)
#undef knob
};

/* Memory that a function has acquired. Unused if size is 0. */
struct piece {
	uint64_t id, base, size;
	int function;
};

/* A transfer by DMA that the firmware can be told to repeat, with its old addresses. */
struct transfer {
	uint64_t bus, card, length;
	bool to_host;
};

/* The tables of the card. Parent and child share this memory, so it outlives the firmware. */
struct card_state {
	struct piece piece[CARD_PIECES];
	uint64_t slot[CARD_FUNCTIONS][CARD_NSLOTS];	/* ids, 0 if empty */
	uint32_t begun[CARD_FUNCTIONS];		/* number of the latest request that the firmware has begun */
	int busy;				/* 1 + the function with the request that it serves, or 0 */
	uint32_t transfers;			/* number of the latest transfer */
	struct transfer latest[CARD_FUNCTIONS];
	struct knobs knobs;
	uint64_t requests, moves, deaths, dma_bytes, refused;
};

struct card_function {
	int listener, client;
	int to_card[CARD_VECTORS], to_host[CARD_VECTORS];
	uint8_t *registers;
};

struct card {
	int functions;
	int memory_fd;
	uint64_t bytes;
	uint8_t *memory;	/* BAR 2: the control area, and device memory */
	struct card_state *state;
	struct card_function function[CARD_FUNCTIONS];
};
extern struct card card;

static inline volatile uint32_t *reg32(int i, unsigned int offset)
{
	return (volatile uint32_t *)(card.function[i].registers + offset);
}

static inline volatile uint64_t *reg64(int i, unsigned int offset)
{
	return (volatile uint64_t *)(card.function[i].registers + offset);
}

/* Orders accesses to memory that another process or a guest sees. */
static inline void card_barrier(void)
{
	__sync_synchronize();
}

void card_ring(int eventfd);
bool card_drain(int eventfd);

/* The firmware's process. Never returns. */
void firmware_run(void);
void firmware_count_held(int i);
uint64_t firmware_capacity(void);

#endif
