// SPDX-License-Identifier: GPL-2.0
/* Reading traces. */
#include "test.h"

#include <unistd.h>
#include <zlib.h>

#include "trace.h"

#define HEADER "# flexmem-trace 1\n"

static char path[] = "/tmp/flexmem-test-XXXXXX";

static void write_file(const void *data, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void write_text(const char *text)
{
	write_file(text, strlen(text));
}

static void expect_good(struct trace *trace)
{
	char error[TRACE_ERROR_MAX] = "";
	int err = trace_read(trace, path, error);

	assert_string_equal(error, "");
	assert_int_equal(err, 0);
}

static void expect_error(const char *expected)
{
	char error[TRACE_ERROR_MAX] = "";
	struct trace trace;

	assert_int_equal(trace_read(&trace, path, error), -EINVAL);
	assert_null(trace.events);
	assert_string_equal(error, expected);
}

static void good_trace(void **state)
{
	struct trace trace;

	(void)state;
	write_text(HEADER "# origin\n0 a 7 1000 0\n5 a 9 24 3\n6 f 7\n"
		   "# in between\n7 a 7 1000 0\n8 f 9\n9 a 1 0 0\n");
	expect_good(&trace);
	assert_int_equal(trace.count, 6);
	assert_int_equal(trace.allocations, 4);
	assert_int_equal(trace.peak_bytes, 1024);
	assert_int_equal(trace.peak_event, 1);
	assert_int_equal(trace.events[0].bytes, 1000);
	assert_int_equal(trace.events[0].line, 3);
	assert_int_equal(trace.events[0].allocation, 0);
	assert_false(trace.events[0].is_free);
	assert_true(trace.events[2].is_free);
	assert_int_equal(trace.events[2].allocation, 0);
	assert_int_equal(trace.events[2].bytes, 1000);
	assert_int_equal(trace.events[3].allocation, 2);
	assert_int_equal(trace.events[3].line, 7);
	assert_int_equal(trace.events[4].allocation, 1);
	assert_int_equal(trace.events[5].bytes, 0);
	trace_free(&trace);
}

static void header_only(void **state)
{
	struct trace trace;

	(void)state;
	write_text(HEADER);
	expect_good(&trace);
	assert_int_equal(trace.count, 0);
	assert_int_equal(trace.allocations, 0);
	trace_free(&trace);
}

static void headers_that_are_refused(void **state)
{
	(void)state;
	write_text("");
	expect_error("the file is empty");
	write_text("0 a 1 1 0\n");
	expect_error("line 1: not a trace: it does not begin with '# flexmem-trace 1'");
	write_text("# flexmem-trace 3\n0 a 1 1 0\n");
	expect_error("line 1: version '3' of traces is not known, only 1 and 2");
	write_text("# flexmem-trace 10\n");
	expect_error("line 1: version '10' of traces is not known, only 1 and 2");
	write_text("# flexmem-trace 1\r\n0 a 1 1 0\r\n");
	expect_error("line 1: the line ends in CRLF, as on Windows; a trace's end in LF");
	write_text(HEADER "0 a 1 1 0\r\n");
	expect_error("line 2: the line ends in CRLF, as on Windows; a trace's end in LF");
	write_text(HEADER "0 a 1 1 0\r1 f 1\n");
	expect_error("line 2: neither 'TIME a ID BYTES STREAM' nor 'TIME f ID': '0 a 1 1 0?1 f 1'");
	write_text("# flexmem-trace 1");
	expect_error("line 1: the file ends in the middle of a line");
}

static void malformed_lines(void **state)
{
	static const char *const lines[] = {
		"", " ", "0", "0 a", "0 a 1", "0 a 1 1", "0 a 1 1 ",
		"0 a 1 1 0 ", "0 a 1 1 0 0", "0 a -1 1 0", "0 a 1 +1 0",
		"0 a 1 0x10 0", "0 a 1 1.5 0", "0  a 1 1 0", " 0 a 1 1 0",
		"0 b 1 1 0", "0 A 1 1 0", "0 f", "0 f 1 1", "0 f x", "0 f 1 ",
		"x a 1 1 0", "0\ta 1 1 0",
		"0 a 1 18446744073709551616 0",
		"0 a 99999999999999999999 1 0",
	};
	char expected[300];
	char text[200];
	size_t i;
	char *c;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(text, sizeof(text), HEADER "0 a 5 1 0\n%s\n",
			 lines[i]);
		snprintf(expected, sizeof(expected),
			 "line 3: neither 'TIME a ID BYTES STREAM' nor 'TIME f ID': '%s'",
			 lines[i]);
		/*
		 * Control characters of the file must not reach the terminal.
		 */
		for (c = expected; *c; c++) {
			if (*c == '\t' || *c == '\r')
				*c = '?';
		}
		write_text(text);
		expect_error(expected);
	}
}

#define RECORDED "# flexmem-trace 2\n"

static void recorded_trace(void **state)
{
	struct trace trace;

	(void)state;
	write_text(RECORDED "# setting 2 a:1\n# settings\n# setting 2 b:[1:2,3:4]\n"
		   "# tag 1 one\n# tag 2 \\x1b\\\\ \xc3\xa4\n# tags\n"
		   "0 a 7 1000 1 2 4 5 4096 1024 2\n1 x 9000 3 1 2 0\n"
		   "2 f 7 2 6\n3 g 2 3 5 4096 2048\n4 r 3 7 6 128 256\n");
	expect_good(&trace);
	assert_int_equal(trace.count, 3);
	assert_int_equal(trace.memory_count, 2);
	assert_int_equal(trace.memory[0].line, 11);
	assert_int_equal(trace.memory[0].process, 1);
	assert_int_equal(trace.memory[0].number, 3);
	assert_int_equal(trace.memory[0].region_id, 5);
	assert_int_equal(trace.memory[0].offset, 4096);
	assert_int_equal(trace.memory[0].size, 2048);
	assert_false(trace.memory[0].returned);
	assert_int_equal(trace.memory[1].process, 2);
	assert_true(trace.memory[1].returned);
	assert_int_equal(trace.allocations, 1);
	assert_int_equal(trace.peak_bytes, 1000);
	assert_int_equal(trace.processes, 3);
	assert_null(trace.settings[0]);
	assert_null(trace.settings[2]);
	assert_string_equal(trace.settings[1], "a:1,b:[1:2,3:4]");
	assert_int_equal(trace.tag_count, 2);
	assert_string_equal(trace.tags[0], "one");
	assert_string_equal(trace.tags[1], "\\x1b\\\\ \xc3\xa4");
	assert_int_equal(trace.exact[0].tag, 2);
	assert_int_equal(trace.exact[1].tag, 0);
	assert_int_equal(trace.exact[0].process, 1);
	assert_int_equal(trace.exact[0].number, 4);
	assert_int_equal(trace.exact[0].region_id, 5);
	assert_int_equal(trace.exact[0].offset, 4096);
	assert_int_equal(trace.exact[0].size, 1024);
	assert_false(trace.exact[0].fails);
	assert_true(trace.exact[1].fails);
	assert_int_equal(trace.exact[1].process, 0);
	assert_int_equal(trace.exact[1].number, 2);
	assert_int_equal(trace.events[1].bytes, 9000);
	assert_true(trace.events[2].is_free);
	assert_int_equal(trace.exact[2].number, 6);
	trace_free(&trace);
}

static void damaged_recorded_trace(void **state)
{
	static const char *const lines[] = {
		"0 a 6 1 0", "0 a 6 1 0 1 1 1 1 1", "0 a 6 1 0 1 1 1 1 1 0 1",
		"0 f 5", "0 f 5 1", "0 f 5 1 2 3", "0 af 5 1 2", "0 x 1 1 1 1",
		"0 x 1 1 1 1 0 1", "0 y 1 1 1 1", "0 g 1 1 1 1",
		"0 g 1 1 1 1 1 1", "0 r 1 1 1 1", "0 gr 1 1 1 1 1", "0 ", "# setting 1",
		"# setting x a:b", "# tag 1", "# tag 1 ", "# tag x a",
	};
	static const char good[] = RECORDED "0 a 5 1 0 1 1 1 1 1 0\n";
	char expected[300];
	char text[200];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(text, sizeof(text), "%s%s\n", good, lines[i]);
		snprintf(expected, sizeof(expected),
			 "line 3: no line of a recorded trace: '%s'", lines[i]);
		write_text(text);
		expect_error(expected);
	}
	write_text(RECORDED "0 a 5 1 0 1 1 1 1 1 0\n0 f 5 2 2\n");
	expect_error("line 3: another process has allocated this");
	write_text(RECORDED "# tag 1 \x1b\n");
	expect_error("line 2: no line of a recorded trace: '# tag 1 ?'");
	write_text(RECORDED "# tag 2 a\n");
	expect_error("line 2: tag 2 where 1 is the next");
	write_text(RECORDED "# tag 1 a\n0 x 5 1 1 1 2\n");
	expect_error("line 3: no line before has the text of tag 2");
	write_text(RECORDED "# tag 1 a\n0 x 5 1 1 1 4294967296\n");
	expect_error("line 3: no line before has the text of tag 4294967295");
	write_text(RECORDED "0 x 5 1 0 1 0\n");
	expect_error("line 2: processes are numbered from 1 to 1024");
	write_text(RECORDED "0 g 1025 1 1 1 1\n");
	expect_error("line 2: processes are numbered from 1 to 1024");
	write_text(RECORDED "0 r 1 1 1 18446744073709551615 1\n");
	expect_error("line 2: the memory ends beyond 2^64");
	write_text(RECORDED "# setting 1025 a:b\n");
	expect_error("line 2: processes are numbered from 1 to 1024");
}

static void nul_in_a_line(void **state)
{
	static const char text[] = HEADER "0 f 1\0 2\n";

	(void)state;
	write_file(text, sizeof(text) - 1);
	expect_error("line 2: neither 'TIME a ID BYTES STREAM' nor 'TIME f ID': '0 f 1'");
}

static void identifiers(void **state)
{
	(void)state;
	write_text(HEADER "0 a 5 1 0\n1 a 5 1 0\n");
	expect_error("line 3: 5 is allocated already");
	write_text(HEADER "0 f 5\n");
	expect_error("line 2: 5 is not allocated");
	write_text(HEADER "0 a 5 1 0\n1 f 5\n2 f 5\n");
	expect_error("line 4: 5 is not allocated");
	write_text(HEADER "0 a 1 18446744073709551615 0\n0 a 2 1 0\n");
	expect_error("line 3: more than 2^64 bytes are live");
}

static void cut_off_line(void **state)
{
	(void)state;
	write_text(HEADER "0 a 5 1 0\n0 a 6 10");
	expect_error("line 3: the file ends in the middle of a line");
}

static void long_lines(void **state)
{
	static char text[100000];
	struct trace trace;
	size_t header;

	(void)state;
	strcpy(text, HEADER "# ");
	header = strlen(text);
	memset(text + header, 'x', sizeof(text) - header - 20);
	strcpy(text + sizeof(text) - 20, "\n0 a 1 1 0\n");
	write_text(text);
	expect_good(&trace);
	assert_int_equal(trace.count, 1);
	assert_int_equal(trace.events[0].line, 3);
	trace_free(&trace);

	/*
	 * A line that is too long is an error, even if it begins like an event.
	 */
	strcpy(text, HEADER "0 f 1");
	header = strlen(text);
	memset(text + header, '1', 1000);
	strcpy(text + header + 1000, "\n");
	write_text(text);
	assert_int_equal(trace_read(&trace, path, text), -EINVAL);
	assert_non_null(strstr(text, "line 2: neither"));
}

/*
 * More identifiers than the first hash table holds, some of them with equal
 * hashes.
 */
static void many_identifiers(void **state)
{
	FILE *file = fopen(path, "w");
	struct trace trace;
	unsigned int i;

	(void)state;
	fputs(HEADER, file);
	for (i = 0; i < 20000; i++)
		fprintf(file, "%u a %llu 1 0\n", i,
			(unsigned long long)i << (i % 3 * 20));
	for (i = 0; i < 20000; i += 2)
		fprintf(file, "%u f %llu\n", i,
			(unsigned long long)i << (i % 3 * 20));
	fclose(file);
	expect_good(&trace);
	assert_int_equal(trace.count, 30000);
	assert_int_equal(trace.peak_bytes, 20000);
	assert_int_equal(trace.peak_event, 19999);
	for (i = 0; i < 10000; i++)
		assert_int_equal(trace.events[20000 + i].allocation, 2 * i);
	trace_free(&trace);
}

static size_t compress_text(unsigned char *data, size_t size)
{
	gzFile out = gzopen(path, "wb");
	FILE *in;
	size_t got;
	int i;

	gzputs(out, HEADER);
	for (i = 0; i < 1000; i++)
		gzprintf(out, "%d a %d %d 0\n", i, i, 13 * i % 1000 + 1);
	gzclose(out);
	in = fopen(path, "r");
	got = fread(data, 1, size, in);
	fclose(in);
	return got;
}

static void compressed(void **state)
{
	unsigned char data[65536];
	struct trace trace;
	size_t size;

	(void)state;
	size = compress_text(data, sizeof(data));
	expect_good(&trace);
	assert_int_equal(trace.count, 1000);
	trace_free(&trace);

	/* A trace that ends anywhere in the middle gives an error. */
	for (size -= 1; size > 20; size -= size / 7 + 1) {
		char error[TRACE_ERROR_MAX];

		write_file(data, size);
		assert_int_equal(trace_read(&trace, path, error), -EINVAL);
		assert_non_null(strstr(error, "compressed data ends too early"));
	}
}

static void damaged(void **state)
{
	unsigned char data[65536];
	char error[TRACE_ERROR_MAX];
	struct trace trace;
	size_t size;

	(void)state;
	size = compress_text(data, sizeof(data));
	data[size - 6] ^= 1;
	write_file(data, size);
	assert_int_equal(trace_read(&trace, path, error), -EINVAL);
	assert_non_null(strstr(error, "incorrect data check"));
}

static void no_file(void **state)
{
	char error[TRACE_ERROR_MAX];
	struct trace trace;

	(void)state;
	assert_int_equal(trace_read(&trace, "/nonexistent/trace", error),
			 -ENOENT);
	assert_string_equal(error, "No such file or directory");
	assert_int_equal(trace_read(&trace, "/", error), -EISDIR);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(good_trace),
		TEST(header_only),
		TEST(headers_that_are_refused),
		TEST(malformed_lines),
		TEST(recorded_trace),
		TEST(damaged_recorded_trace),
		TEST(nul_in_a_line),
		TEST(identifiers),
		TEST(cut_off_line),
		TEST(long_lines),
		TEST(many_identifiers),
		TEST(compressed),
		TEST(damaged),
		TEST(no_file),
	};
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	close(fd);
	return cmocka_run_group_tests(tests, NULL, remove_file);
}
