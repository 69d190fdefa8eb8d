// SPDX-License-Identifier: GPL-2.0
/*
 * A card with several functions and one memory, as a process. This file is the hardware: it keeps the memory, the tables
 * and the eventfds, serves a socket for each function by the protocol of QEMU's ivshmem server, resets functions, and
 * starts the firmware, which is its child, again when it has died. Documentation/card.rst describes the parts.
 * usage: card DIR FUNCTIONS BYTES        BYTES: size of BAR 2, a power of two
 * Makes DIR/f0.sock and so on for the functions, and DIR/control, a datagram socket that takes:
 *   set KNOB=N...   see card.h; without a knob: all are turned off
 *   kill            kills the firmware
 *   again           lets the firmware repeat the latest transfers
 *   show            has the answer "requests=N deaths=N dma_bytes=N refused=N held=N,N..."
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "card.h"

struct card card;
static pid_t firmware;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

void card_ring(int eventfd)
{
	uint64_t one = 1;

	if (write(eventfd, &one, sizeof(one)) != sizeof(one) && errno != EAGAIN)
		die("write to an eventfd");
}

bool card_drain(int eventfd)
{
	uint64_t count;

	return read(eventfd, &count, sizeof(count)) == sizeof(count);
}

/* The firmware */

static void start_firmware(void)
{
	firmware = fork();
	if (firmware < 0)
		die("fork");
	if (!firmware)
		firmware_run();
	/* The firmware that has ended may have taken doorbells without serving them. */
	for (int i = 0; i < card.functions; i++)
		card_ring(card.function[i].to_card[CARD_BELL_REQUEST]);
}

/* A front end makes no transfer of firmware that has ended. */
static void drop_transfers(void)
{
	for (int i = 0; i < card.functions; i++)
		*reg32(i, CARD_DMA_SEND) = 0;
	card_barrier();
}

/* After this no byte moves, except in the middle of a front end's transfer. */
static void end_firmware(void)
{
	kill(firmware, SIGKILL);
	waitpid(firmware, NULL, 0);
	drop_transfers();
}

/* The function is as after power-on, but for the contents of its memory. The firmware does not run. */
static void forget(int i)
{
	for (int k = 0; k < CARD_PIECES; k++)
		if (card.state->piece[k].function == i)
			card.state->piece[k].size = 0;
	memset(card.state->slot[i], 0, sizeof(card.state->slot[i]));
	card.state->begun[i] = 0;
	*reg32(i, CARD_SEND) = 0;
	*reg32(i, CARD_DONE) = 0;
	*reg32(i, CARD_HELD) = 0;
	card_barrier();
}

/* Other functions keep their requests: the one that the firmware was busy with begins again. */
static void restart_for(int i)
{
	int busy = card.state->busy - 1;

	card.state->busy = 0;
	if (busy >= 0 && busy != i)
		card.state->begun[busy] = 0;
	start_firmware();
}

static void reset(int i)
{
	end_firmware();
	forget(i);
	restart_for(i);
}

/* STOP or RESET of a function. */
static void urgent(int i)
{
	uint32_t stop = *reg32(i, CARD_STOP), ask = *reg32(i, CARD_RESET);

	if (ask != *reg32(i, CARD_WAS_RESET)) {
		fprintf(stderr, "card: reset %u of function %d\n", ask, i);
		reset(i);
		card_barrier();
		*reg32(i, CARD_STOPPED) = stop;
		*reg32(i, CARD_WAS_RESET) = ask;
	} else if (stop != *reg32(i, CARD_STOPPED)) {
		fprintf(stderr, "card: request %u of function %d is stopped\n", stop, i);
		end_firmware();
		card_barrier();
		*reg32(i, CARD_STOPPED) = stop;
		restart_for(i);
	}
}

static void tell_news(int i)
{
	card_barrier();
	card_ring(card.function[i].to_host[CARD_VECTOR_NEWS]);
}

static void firmware_died(void)
{
	bool lost = card.state->knobs.forget;
	int status;

	if (waitpid(firmware, &status, WNOHANG) != firmware)
		return;
	fprintf(stderr, "card: the firmware died (%#x)%s\n", status, lost ? " and forgot all" : "");
	drop_transfers();
	card.state->deaths++;
	card.state->busy = 0;
	for (int i = 0; lost && i < card.functions; i++) {
		forget(i);
		++*reg32(i, CARD_DEATHS);
	}
	usleep(1000 * card.state->knobs.restart_ms);
	start_firmware();
	for (int i = 0; lost && i < card.functions; i++)
		tell_news(i);
}

/* The ivshmem protocol */

/* Sends a message: a number, and perhaps a file descriptor. */
static void say(int to, int64_t value, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { &value, sizeof(value) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *header;

		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &fd, sizeof(int));
	}
	if (sendmsg(to, &message, MSG_NOSIGNAL) != sizeof(value))
		perror("card: a front end does not listen");
}

static void close_client(int i)
{
	if (card.function[i].client < 0)
		return;
	close(card.function[i].client);
	card.function[i].client = -1;
	*reg32(i, CARD_BUS_MASTER) = 0;
	reset(i);
	fprintf(stderr, "card: function %d has no machine\n", i);
}

/*
 * Greets a front end. The card is peer 0. Its eventfds come before the memory, so that the doorbell works before the
 * guest can probe. The front end's own come after it, because QEMU 7.2 crashes if they come earlier.
 */
static void welcome(int i)
{
	struct card_function *f = &card.function[i];
	int client = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);

	if (client < 0)
		return;
	close_client(i);
	f->client = client;
	say(client, 0, -1);	/* version of the protocol */
	say(client, i + 1, -1);	/* the front end's id, which an ivshmem driver reads as IVPosition */
	for (int v = 0; v < CARD_VECTORS; v++)
		say(client, 0, f->to_card[v]);
	say(client, -1, card.memory_fd);
	for (int v = 0; v < CARD_VECTORS; v++)
		say(client, i + 1, f->to_host[v]);
	fprintf(stderr, "card: function %d has a machine\n", i);
}

/* The control socket */

static const struct { const char *name; size_t offset; } knobs[] = {
#define knob(name) { #name, offsetof(struct knobs, name) },
	CARD_KNOBS(knob)
#undef knob
};

static const char *set_knob(char *text)
{
	char *value = strchr(text, '=');

	if (!value)
		return "a knob has no value";
	*value++ = 0;
	for (size_t k = 0; k < sizeof(knobs) / sizeof(*knobs); k++) {
		if (strcmp(text, knobs[k].name))
			continue;
		*(long *)((char *)&card.state->knobs + knobs[k].offset) = atol(value);
		return NULL;
	}
	return "no such knob";
}

static const char *set_knobs(char *text)
{
	const char *wrong = NULL;
	long capacity = card.state->knobs.capacity_mb;

	if (!text)
		memset(&card.state->knobs, 0, sizeof(card.state->knobs));
	for (char *one = text ? strtok(text, " ") : NULL; one && !wrong; one = strtok(NULL, " "))
		wrong = set_knob(one);
	for (int i = 0; capacity != card.state->knobs.capacity_mb && i < card.functions; i++) {
		++*reg32(i, CARD_CAPACITIES);
		tell_news(i);
	}
	return wrong;
}

static void show(char *answer, size_t size)
{
	const struct card_state *s = card.state;
	int at = snprintf(answer, size, "requests=%llu deaths=%llu dma_bytes=%llu refused=%llu held=",
			  (unsigned long long)s->requests, (unsigned long long)s->deaths,
			  (unsigned long long)s->dma_bytes, (unsigned long long)s->refused);

	for (int i = 0; i < card.functions; i++)
		at += snprintf(answer + at, size - at, "%s%u", i ? "," : "", *reg32(i, CARD_HELD));
}

static void control(int fd)
{
	char text[500], answer[500] = "ok";
	struct sockaddr_un from;
	socklen_t size = sizeof(from);
	ssize_t length = recvfrom(fd, text, sizeof(text) - 1, 0, (struct sockaddr *)&from, &size);
	const char *wrong = NULL;
	char *rest;

	if (length < 0)
		return;
	text[length] = 0;
	rest = strchr(text, ' ');
	if (rest)
		*rest++ = 0;
	if (!strcmp(text, "set"))
		wrong = set_knobs(rest);
	else if (!strcmp(text, "kill"))
		kill(firmware, SIGKILL);
	else if (!strcmp(text, "again"))
		kill(firmware, SIGUSR1);
	else if (!strcmp(text, "show"))
		show(answer, sizeof(answer));
	else
		wrong = "no such command";
	if (wrong)
		snprintf(answer, sizeof(answer), "error: %s", wrong);
	if (sendto(fd, answer, strlen(answer), MSG_DONTWAIT, (struct sockaddr *)&from, size) < 0)
		perror("card: the control socket's client does not listen");
}

static int listen_at(const char *dir, const char *name, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", dir, name) >= (int)sizeof(address.sun_path)) {
		fprintf(stderr, "card: the path of '%s' is too long for a socket\n", dir);
		exit(1);
	}
	unlink(address.sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || (type == SOCK_STREAM && listen(fd, 1)))
		die(address.sun_path);
	return fd;
}

static void power_on(const char *dir)
{
	card.memory_fd = memfd_create("card", MFD_CLOEXEC);
	if (card.memory_fd < 0 || ftruncate(card.memory_fd, card.bytes))
		die("memfd");
	card.memory = mmap(NULL, card.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, card.memory_fd, 0);
	card.state = mmap(NULL, sizeof(*card.state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (card.memory == MAP_FAILED || card.state == MAP_FAILED)
		die("mmap");
	for (int i = 0; i < card.functions; i++) {
		struct card_function *f = &card.function[i];
		char name[20];

		snprintf(name, sizeof(name), "f%d.sock", i);
		f->client = -1;
		f->registers = card.memory + i * CARD_AREA;
		f->listener = listen_at(dir, name, SOCK_STREAM);
		for (int v = 0; v < CARD_VECTORS; v++) {
			f->to_card[v] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
			f->to_host[v] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
			if (f->to_card[v] < 0 || f->to_host[v] < 0)
				die("eventfd");
		}
		*reg32(i, CARD_SLOTS) = CARD_NSLOTS;
		*reg64(i, CARD_ID_L) = getpid();
		*reg64(i, CARD_SIZE_L) = card.bytes;
		*reg32(i, CARD_MAGIC) = CARD_MAGIC_VALUE;
	}
}

/* The end of a front end and the next one can come in one round, so the end is handled first. */
static void serve_function(int i, const struct pollfd *listener, const struct pollfd *bell, const struct pollfd *client)
{
	char byte;

	if (bell->revents && card_drain(bell->fd))
		urgent(i);
	if (client->revents && recv(client->fd, &byte, 1, MSG_DONTWAIT) <= 0)
		close_client(i);
	if (listener->revents)
		welcome(i);
}

int main(int argc, char **argv)
{
	struct pollfd p[3 * CARD_FUNCTIONS + 2];
	sigset_t signals;
	int signal_fd, control_fd;

	if (argc != 4 || (card.functions = atoi(argv[2])) < 1 || card.functions > CARD_FUNCTIONS ||
	    (card.bytes = strtoull(argv[3], NULL, 0)) < 2 * CARD_CONTROL || card.bytes & (card.bytes - 1)) {
		fprintf(stderr, "usage: card DIR FUNCTIONS BYTES\n");
		return 2;
	}
	power_on(argv[1]);
	control_fd = listen_at(argv[1], "control", SOCK_DGRAM);
	/* The firmware inherits that SIGUSR1 is blocked, so none comes before it can take it. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	sigdelset(&signals, SIGUSR1);
	signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	start_firmware();
	for (;;) {
		struct signalfd_siginfo info;
		int n = 0;

		p[n++] = (struct pollfd){ .fd = signal_fd, .events = POLLIN };
		p[n++] = (struct pollfd){ .fd = control_fd, .events = POLLIN };
		for (int i = 0; i < card.functions; i++) {
			p[n++] = (struct pollfd){ .fd = card.function[i].listener, .events = POLLIN };
			p[n++] = (struct pollfd){ .fd = card.function[i].to_card[CARD_BELL_URGENT], .events = POLLIN };
			p[n++] = (struct pollfd){ .fd = card.function[i].client, .events = POLLIN };
		}
		if (poll(p, n, -1) < 0)
			continue;
		while (p[0].revents && read(signal_fd, &info, sizeof(info)) > 0)
			firmware_died();
		if (p[1].revents)
			control(control_fd);
		for (int i = 0; i < card.functions; i++)
			serve_function(i, &p[2 + 3 * i], &p[3 + 3 * i], &p[4 + 3 * i]);
	}
}
