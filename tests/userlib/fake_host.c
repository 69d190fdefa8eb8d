// SPDX-License-Identifier: GPL-2.0
/*
 * Parts of the host for the flexmem command.
 *
 * FAKE_TRACING is a folder with the files of an instance of the kernel's tracing.
 * While the instance exists, the folder is in its place.
 *
 * What happens to the fake device while `flexmem watch` waits. FAKE_EVENTS has words
 * with a space between them. Each poll() carries out the next word, or several that
 * are joined by '+'. Without FAKE_EVENTS poll() is that of the host.
 */
#include "fake.h"
#include "fake_state.h"

#include <grp.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
struct group *__real_getgrnam(const char *name);
struct group *__wrap_getgrnam(const char *name);
int __real_poll(struct pollfd *files, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *files, nfds_t count, int timeout);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __real_rmdir(const char *path);
int __wrap_rmdir(const char *path);

int __wrap_mkdir(const char *path, mode_t mode)
{
	const char *tracing = getenv("FAKE_TRACING");

	if (!tracing || !strstr(path, "/tracing/instances/"))
		return __real_mkdir(path, mode);
	if (!access(path, F_OK)) {
		errno = EEXIST;
		return -1;
	}
	return rename(tracing, path);
}

/* With FAKE_TRACING_BUSY another process reads the instance. */
int __wrap_rmdir(const char *path)
{
	const char *tracing = getenv("FAKE_TRACING");

	if (!tracing || !strstr(path, "/tracing/instances/"))
		return __real_rmdir(path);
	errno = EBUSY;
	return getenv("FAKE_TRACING_BUSY") ? -1 : rename(path, tracing);
}

/* With FAKE_TICK each look at a clock is so many microseconds after the one before. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	const char *tick = getenv("FAKE_TICK");
	static uint64_t microseconds;

	if (!tick)
		return __real_clock_gettime(clock, now);
	microseconds += strtoull(tick, NULL, 0);
	now->tv_sec = (time_t)(microseconds / 1000000);
	now->tv_nsec = (long)(microseconds % 1000000) * 1000;
	return 0;
}

/* The group flexmem has the number FAKE_GROUP_ID; 0: there is none. */
struct group *__wrap_getgrnam(const char *name)
{
	static struct group group = { .gr_name = (char *)"flexmem" };
	const char *id = getenv("FAKE_GROUP_ID");

	if (!id || strcmp(name, "flexmem"))
		return __real_getgrnam(name);
	group.gr_gid = (gid_t)strtoul(id, NULL, 0);
	return group.gr_gid ? &group : NULL;
}

static void carry_out(const char *word)
{
	const char *colon = strchr(word, ':');
	uint64_t number = colon ? strtoull(colon + 1, NULL, 0) : 0;

	if (!strcmp(word, "reset")) {
		fake.resets++;
	} else if (!strncmp(word, "state", 5)) {
		fake.state = (uint32_t)number;
	} else if (!strncmp(word, "capacity", 8)) {
		fake.capacity = number;
	} else if (!strncmp(word, "exhausted", 9)) {
		exhausted = number;
	} else if (!strncmp(word, "pressure", 8)) {
		fake_press((uint32_t)number);
	} else if (!strncmp(word, "remove", 6)) {
		fake_remove((unsigned int)number);
	} else if (!strncmp(word, "add", 3)) {
		fake.nodes[number].exists = true;
	} else if (!strncmp(word, "refuse", 6)) {
		fake.nodes[0].open_error = (int)number;
	} else {
		REQUIRE(!strcmp(word, "nothing"));
	}
}

int __wrap_poll(struct pollfd *list, nfds_t count, int timeout)
{
	static char *text, *place;
	char *words, *word, *rest;

	if (!text && getenv("FAKE_EVENTS"))
		text = place = strdup(getenv("FAKE_EVENTS"));
	if (!text)
		return __real_poll(list, count, timeout);
	words = strsep(&place, " ");
	for (word = words ? strtok_r(words, "+", &rest) : NULL; word;
	     word = strtok_r(NULL, "+", &rest))
		carry_out(word);
	return 0;
}
