// SPDX-License-Identifier: GPL-2.0
/* Messages, BUG(), numbers and text, and the parameters of the module. */
#include "internal.h"

#include <errno.h>

static bool verbose;
static const char *watched;
static unsigned int seen;

/*
 * Returns how many messages contained the text watched so far. Watches @text
 * from now on.
 */
unsigned int native_messages(const char *text)
{
	watched = text;
	return __atomic_exchange_n(&seen, 0, RELAXED);
}

static void __attribute__((constructor)) be_verbose(void)
{
	verbose = getenv("NATIVE_VERBOSE");
}

/* Prints a report with a stack trace, and ends the process. */
void native_bug(const char *file, int line, const char *format, ...)
{
	static bool begun;
	char text[512];
	va_list args;

	/* Prints only the first report, because later ones follow from it. */
	while (__atomic_exchange_n(&begun, true, RELAXED))
		os_pause();
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "%s:%d: %s (task %s)\n", file, line, text,
		current ? current->comm : "none");
	os_trace();
	printf("Bail out! %s:%d: %s\n", file, line, text);
	os_exit(70);
}

int _printk(const char *format, ...)
{
	va_list args;

	if (!verbose)
		return 0;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	return 0;
}

void native_dev_message(const struct device *dev, const char *format, ...)
{
	char text[512];
	va_list args;

	/*
	 * Formats the message even if it is not printed, so that ASan checks
	 * the arguments.
	 */
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (watched && strstr(text, watched))
		__atomic_fetch_add(&seen, 1, RELAXED);
	_printk("%s: %s", dev ? dev->name : "none", text);
}

ssize_t strscpy(char *to, const char *from, size_t size)
{
	size_t n = strnlen(from, size);

	if (!size)
		return -E2BIG;
	if (n == size) {
		memcpy(to, from, size - 1);
		to[size - 1] = '\0';
		return -E2BIG;
	}
	memcpy(to, from, n + 1);
	return n;
}

int vscnprintf(char *to, size_t size, const char *format, va_list args)
{
	int n = vsnprintf(to, size, format, args);

	return n < 0 || !size ? 0 : min_t(int, n, size - 1);
}

int scnprintf(char *to, size_t size, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vscnprintf(to, size, format, args);
	va_end(args);
	return n;
}

int sysfs_emit(char *to, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vscnprintf(to, PAGE_SIZE, format, args);
	va_end(args);
	return n;
}

int sysfs_emit_at(char *to, int at, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vscnprintf(to + at, PAGE_SIZE - at, format, args);
	va_end(args);
	return n;
}

/* Compares two strings. A newline at the end does not count. */
bool sysfs_streq(const char *a, const char *b)
{
	size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");

	return n == m && !memcmp(a, b, n) && (!a[n] || !a[n + 1]) &&
	       (!b[m] || !b[m + 1]);
}

/* The index of the entry that is equal to @text. The array may end with NULL. */
int __sysfs_match_string(const char *const *array, size_t n, const char *text)
{
	size_t i;

	for (i = 0; i < n && array[i]; i++)
		if (sysfs_streq(array[i], text))
			return i;
	return -EINVAL;
}

int kstrtou64(const char *text, unsigned int base, u64 *value)
{
	char *end;

	if (!isdigit(*text))
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, &end, base);
	return errno || !sysfs_streq(end, "") ? -EINVAL : 0;
}

int kstrtouint(const char *text, unsigned int base, unsigned int *value)
{
	u64 wide;

	if (kstrtou64(text, base, &wide) || wide > UINT_MAX)
		return -EINVAL;
	*value = wide;
	return 0;
}

/* The first byte that is not @c, or NULL. */
void *memchr_inv(const void *start, int c, size_t bytes)
{
	const u8 *p = start;

	for (; bytes; p++, bytes--)
		if (*p != (u8)c)
			return (void *)p;
	return NULL;
}

void memset64(u64 *to, u64 value, size_t n)
{
	while (n--)
		*to++ = value;
}

/* Parameters of the module. */
static struct kernel_param *params;

void native_param_add(struct kernel_param *kp)
{
	kp->next = params;
	params = kp;
}

int native_param_set(const char *name, const char *text)
{
	struct kernel_param *kp;

	for (kp = params; kp; kp = kp->next)
		if (!strcmp(kp->name, name))
			return kp->ops->set(text, kp);
	return -ENOENT;
}

int native_param_get(const char *name, char *buffer)
{
	struct kernel_param *kp;

	for (kp = params; kp; kp = kp->next)
		if (!strcmp(kp->name, name))
			return kp->ops->get(buffer, kp);
	return -ENOENT;
}

static int set_uint(const char *text, const struct kernel_param *kp)
{
	return kstrtouint(text, 0, kp->arg);
}

const struct kernel_param_ops native_param_uint = { .set = set_uint };

/* Writes to a file in /proc. */
void seq_puts(struct seq_file *m, const char *text)
{
	seq_printf(m, "%s", text);
}

void seq_printf(struct seq_file *m, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	m->length += vscnprintf(m->text + m->length,
				sizeof(m->text) - m->length, format, args);
	va_end(args);
}
