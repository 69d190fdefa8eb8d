/* SPDX-License-Identifier: GPL-2.0 */
/* The part of KUnit that the suites in tests/kunit use. kunit.c runs them. */
#ifndef _NATIVE_KUNIT_TEST_H
#define _NATIVE_KUNIT_TEST_H

#define KUNIT_PARAM_DESC_SIZE 128

struct kunit;
struct kunit_action;

/**
 * struct kunit - the test that is running
 * @name: name of the test case
 * @priv: for the suite's own use
 * @param_value: the parameter that the test runs with
 * @failed: an expectation was not met
 * @actions: functions to call at the end of the test, the last one first
 */
struct kunit {
	const char *name;
	void *priv;
	const void *param_value;
	bool failed;
	struct kunit_action *actions;
};

struct kunit_case {
	void (*run_case)(struct kunit *test);
	const char *name;
	const void *(*generate_params)(const void *previous, char *text);
};

struct kunit_suite {
	const char *name;
	int (*suite_init)(struct kunit_suite *suite);
	int (*init)(struct kunit *test);
	void (*exit)(struct kunit *test);
	struct kunit_case *test_cases;
	struct kunit_suite *next;
};

#define KUNIT_SPEED_SLOW 0
#define KUNIT_CASE(function) { .run_case = function, .name = #function }
#define KUNIT_CASE_SLOW(function) KUNIT_CASE(function)
#define KUNIT_CASE_PARAM(function, generate) \
	{ .run_case = function, .name = #function, .generate_params = generate }
#define KUNIT_CASE_PARAM_ATTR(function, generate, attributes...) \
	KUNIT_CASE_PARAM(function, generate)

void native_kunit_add(struct kunit_suite *suite);
#define kunit_test_suite(suite) \
	static void __attribute__((constructor)) add_##suite(void) \
	{ \
		native_kunit_add(&suite); \
	}

#define KUNIT_ARRAY_PARAM(name, array, describe)				\
static const void *name##_gen_params(const void *previous, char *text)		\
{										\
	typeof((array)[0]) *next = previous ?					\
		(typeof(next))previous + 1 : (array);				\
	void (*tell)(typeof(next), char *) = describe;				\
										\
	if (next >= (array) + ARRAY_SIZE(array))				\
		return NULL;							\
	if (tell)								\
		tell(next, text);						\
	return next;								\
}
#define KUNIT_ARRAY_PARAM_DESC(name, array, member)				\
static const void *name##_gen_params(const void *previous, char *text)		\
{										\
	typeof((array)[0]) *next = previous ?					\
		(typeof(next))previous + 1 : (array);				\
										\
	if (next >= (array) + ARRAY_SIZE(array))				\
		return NULL;							\
	strscpy(text, next->member, KUNIT_PARAM_DESC_SIZE);			\
	return next;								\
}

struct kunit *kunit_get_current_test(void);
int kunit_add_action(struct kunit *test, void (*action)(void *data),
		     void *data);
int kunit_add_action_or_reset(struct kunit *test, void (*action)(void *data),
			      void *data);
void kunit_release_action(struct kunit *test, void (*action)(void *data),
			  void *data);
void *kunit_kmalloc(struct kunit *test, size_t size, gfp_t gfp);
void *kunit_kzalloc(struct kunit *test, size_t size, gfp_t gfp);
void *kunit_kcalloc(struct kunit *test, size_t n, size_t size, gfp_t gfp);
void native_kunit_info(const char *format, ...) __printf(1, 2);
#define kunit_info(test, format...) native_kunit_info(format)

void native_kunit_fail(struct kunit *test, bool abort, const char *file,
		       int line, const char *what);
void native_kunit_say(const char *format, ...) __printf(1, 2);

/* Prints the text that a test gives with an expectation, if there is one. */
#define native_say_text(format...) \
	(sizeof(#format) > 1 ? native_kunit_say("" format) : (void)0)
#define native_check(test, abort, good, what, text...)				\
do {										\
	if (!(good)) {								\
		native_kunit_fail(test, abort, __FILE__, __LINE__, what);	\
		native_say_text(text);						\
		if (abort)							\
			native_kunit_abort(test);				\
	}									\
} while (0)
__noreturn void native_kunit_abort(struct kunit *test);

#define native_compare(test, abort, a, b, op, text...)				\
do {										\
	typeof(a) __a = (a);							\
	typeof(b) __b = (b);							\
										\
	if (!(__a op __b)) {							\
		native_kunit_fail(test, abort, __FILE__, __LINE__,		\
				  #a " " #op " " #b);				\
		native_kunit_say("%lld (%#llx) and %lld (%#llx)",		\
				 (long long)__a, (long long)__a,		\
				 (long long)__b, (long long)__b);		\
		native_say_text(text);						\
		if (abort)							\
			native_kunit_abort(test);				\
	}									\
} while (0)

#define native_compare_text(test, abort, a, b)					\
do {										\
	const char *__a = (a), *__b = (b);					\
										\
	if (strcmp(__a, __b)) {							\
		native_kunit_fail(test, abort, __FILE__, __LINE__,		\
				  #a " == " #b);				\
		native_kunit_say("'%s' and '%s'", __a, __b);			\
		if (abort)							\
			native_kunit_abort(test);				\
	}									\
} while (0)

#define KUNIT_EXPECT_EQ(test, a, b) native_compare(test, false, a, b, ==)
#define KUNIT_EXPECT_NE(test, a, b) native_compare(test, false, a, b, !=)
#define KUNIT_EXPECT_LT(test, a, b) native_compare(test, false, a, b, <)
#define KUNIT_EXPECT_LE(test, a, b) native_compare(test, false, a, b, <=)
#define KUNIT_EXPECT_GT(test, a, b) native_compare(test, false, a, b, >)
#define KUNIT_EXPECT_GE(test, a, b) native_compare(test, false, a, b, >=)
#define KUNIT_EXPECT_PTR_EQ(test, a, b) \
	native_check(test, false, (a) == (b), #a " == " #b)
#define KUNIT_EXPECT_TRUE(test, a) native_check(test, false, a, #a)
#define KUNIT_EXPECT_FALSE(test, a) native_check(test, false, !(a), "!" #a)
#define KUNIT_EXPECT_NULL(test, a) native_check(test, false, !(a), #a " == NULL")
#define KUNIT_EXPECT_NOT_NULL(test, a) native_check(test, false, a, #a " != NULL")
#define KUNIT_EXPECT_NOT_ERR_OR_NULL(test, a) \
	native_check(test, false, !IS_ERR_OR_NULL(a), #a)
#define KUNIT_EXPECT_STREQ(test, a, b) native_compare_text(test, false, a, b)
#define KUNIT_EXPECT_EQ_MSG(test, a, b, text...) \
	native_compare(test, false, a, b, ==, text)
#define KUNIT_EXPECT_GT_MSG(test, a, b, text...) \
	native_compare(test, false, a, b, >, text)
#define KUNIT_EXPECT_NULL_MSG(test, a, text...) \
	native_check(test, false, !(a), #a " == NULL", text)
#define KUNIT_EXPECT_TRUE_MSG(test, a, text...) \
	native_check(test, false, a, #a, text)

#define KUNIT_ASSERT_EQ(test, a, b) native_compare(test, true, a, b, ==)
#define KUNIT_ASSERT_PTR_EQ(test, a, b) \
	native_check(test, true, (a) == (b), #a " == " #b)
#define KUNIT_ASSERT_TRUE(test, a) native_check(test, true, a, #a)
#define KUNIT_ASSERT_FALSE(test, a) native_check(test, true, !(a), "!" #a)
#define KUNIT_ASSERT_NULL(test, a) native_check(test, true, !(a), #a " == NULL")
#define KUNIT_ASSERT_NOT_NULL(test, a) native_check(test, true, a, #a " != NULL")
#define KUNIT_ASSERT_NOT_ERR_OR_NULL(test, a) \
	native_check(test, true, !IS_ERR_OR_NULL(a), #a)
#define KUNIT_ASSERT_STREQ(test, a, b) native_compare_text(test, true, a, b)
#define KUNIT_ASSERT_EQ_MSG(test, a, b, text...) \
	native_compare(test, true, a, b, ==, text)
#define KUNIT_ASSERT_LT_MSG(test, a, b, text...) \
	native_compare(test, true, a, b, <, text)
#define KUNIT_ASSERT_NULL_MSG(test, a, text...) \
	native_check(test, true, !(a), #a " == NULL", text)

#endif /* _NATIVE_KUNIT_TEST_H */
