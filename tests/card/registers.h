/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The register file of the card, one page for each function. Both front ends have it: for QEMU's ivshmem the page is
 * plain memory in BAR 2, and the driver rings the doorbell in BAR 0 after it has written SEND, STOP or RESET; for qcard
 * it is BAR 0, and the write rings. All values are little-endian. The first registers are those of
 * Documentation/examples/npu.c.
 */
#ifndef CARD_REGISTERS_H
#define CARD_REGISTERS_H

#define CARD_FUNCTIONS	16
/* The control area is at the start of BAR 2. Function i has the bytes from i * CARD_AREA on: registers, and a buffer. */
#define CARD_AREA	0x20000
#define CARD_BUFFER_AREA 0x10000
/* The most that one READ or WRITE moves, and the size of the buffer. */
#define CARD_MOVE_MAX	0x10000
/* Device memory begins here. A device address is an offset in BAR 2. */
#define CARD_CONTROL	0x200000

/* Written by the host. The 64-bit registers are those with an L. */
#define CARD_COMMAND	0x00
#define CARD_SLOT	0x04
#define CARD_MEMORY_L	0x08	/* id of the memory, chosen by the host */
#define CARD_SEND	0x10	/* number of the request, never 0; sends it */
#define CARD_OFFSET_L	0x38	/* range within the memory ... */
#define CARD_LENGTH_L	0x40	/* ... and its length; size to acquire */
#define CARD_BUFFER_L	0x48	/* bus address of the buffer of a READ or WRITE; unused without bus mastering */
#define CARD_FROM_L	0x88	/* source of a COPY: id ... */
#define CARD_FROM_OFFSET_L 0x90	/* ... and offset */
/* Ask the hardware, which answers whether or not the firmware lives. The value is a number that differs from the last. */
#define CARD_RESET	0x34
#define CARD_STOP	0x50	/* number of the request to stop */

/* Written by the card. */
#define CARD_DONE	0x14	/* number of the latest request with a reply; 0 after a reset */
#define CARD_STATUS	0x18
#define CARD_RESULT_L	0x20
#define CARD_SLOTS	0x30
#define CARD_HELD	0x58	/* pieces of memory that the function has */
#define CARD_STOPPED	0x60	/* the number in CARD_STOP, when nothing moves any more */
#define CARD_WAS_RESET	0x64	/* the number in CARD_RESET, when the function is as after power-on */
#define CARD_DEATHS	0x68	/* counts deaths of the firmware in which it has lost the function's memory */
#define CARD_CAPACITIES	0x6c	/* counts changes of the capacity */
#define CARD_MAGIC	0x70
#define CARD_ID_L	0x78	/* the same for all functions of a card */
#define CARD_SIZE_L	0x80	/* end of device memory */

/* Written by qcard: the causes of its interrupt, as npu.c reads them. Plain memory behind ivshmem, and unused there. */
#define CARD_EVENT	0x28
#define CARD_EVENT_MASK	0x2c

/* Between the firmware and qcard, which moves bytes for it by bus-master DMA. Drivers do not use them. */
#define CARD_BUS_MASTER	0xa0	/* 1 if the front end is a bus master */
#define CARD_DMA_SEND	0xa4	/* number of the firmware's transfer, 0 if it has none */
#define CARD_DMA_DONE	0xa8	/* number of the latest transfer that has ended */
#define CARD_DMA_TO_HOST 0xac
#define CARD_DMA_STATUS	0xb0	/* 0, or 1 if the bus or the IOMMU has refused it */
#define CARD_DMA_BUS_L	0xb8
#define CARD_DMA_CARD_L	0xc0
#define CARD_DMA_LENGTH_L 0xc8

#define CARD_MAGIC_VALUE 0x44524346

enum { CARD_ACQUIRE, CARD_RELEASE, CARD_SET, CARD_CLEAR, CARD_HALT, CARD_CAPACITY, CARD_SCRUB, CARD_READ, CARD_WRITE,
	CARD_COPY };
enum { CARD_OK, CARD_NO_MEMORY, CARD_NO_SLOT, CARD_FAILED };

/* Doorbells of the card, which is peer 0 of the ivshmem protocol: eventfds for vectors 0 to 2. */
enum { CARD_BELL_REQUEST, CARD_BELL_URGENT, CARD_BELL_DMA_DONE };
/* Vectors of a function. The third is the firmware's wish for a transfer; only qcard has it. */
enum { CARD_VECTOR_REPLY, CARD_VECTOR_NEWS, CARD_VECTOR_DMA };
#define CARD_VECTORS	3

#endif
