/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Single accesses, barriers, atomics and bits. They are builtins of the
 * compiler, so TSan knows which order each of them guarantees.
 */
#ifndef _NATIVE_ATOMIC_H
#define _NATIVE_ATOMIC_H

#include <linux/build_bug.h>
#include <linux/const.h>
#include <linux/bits.h>
#include <linux/container_of.h>
#include <linux/minmax.h>
#include <linux/limits.h>

#define READ_ONCE(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, value) __atomic_store_n(&(x), (value), __ATOMIC_RELAXED)
#define smp_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define smp_store_release(p, value) \
	__atomic_store_n((p), (value), __ATOMIC_RELEASE)
#define smp_mb() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_store_mb(var, value) \
	do { WRITE_ONCE(var, value); smp_mb(); } while (0)
#define smp_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define smp_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)
#define smp_mb__after_atomic() smp_mb()
#define smp_mb__before_atomic() smp_mb()

#define xchg(p, value) __atomic_exchange_n((p), (value), __ATOMIC_SEQ_CST)
#define cmpxchg(p, old, new) ({ \
	typeof(*(p)) __seen = (old); \
	__atomic_compare_exchange_n((p), &__seen, (new), false, \
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
	__seen; \
})

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	s64 counter;
} atomic64_t;

typedef atomic64_t atomic_long_t;

#define ATOMIC_INIT(n) { (n) }
#define ATOMIC64_INIT(n) { (n) }

#define NATIVE_ATOMIC(prefix, type, value)					\
static inline value prefix##_read(const type *v)				\
{										\
	return __atomic_load_n(&v->counter, __ATOMIC_RELAXED);			\
}										\
static inline void prefix##_set(type *v, value n)				\
{										\
	__atomic_store_n(&v->counter, n, __ATOMIC_RELAXED);			\
}										\
static inline void prefix##_add(value n, type *v)				\
{										\
	__atomic_fetch_add(&v->counter, n, __ATOMIC_RELAXED);			\
}										\
static inline void prefix##_sub(value n, type *v)				\
{										\
	__atomic_fetch_sub(&v->counter, n, __ATOMIC_RELAXED);			\
}										\
static inline void prefix##_inc(type *v)					\
{										\
	prefix##_add(1, v);							\
}										\
static inline void prefix##_dec(type *v)					\
{										\
	prefix##_sub(1, v);							\
}										\
static inline value prefix##_add_return(value n, type *v)			\
{										\
	return __atomic_add_fetch(&v->counter, n, __ATOMIC_SEQ_CST);		\
}										\
static inline value prefix##_inc_return(type *v)				\
{										\
	return prefix##_add_return(1, v);					\
}										\
static inline value prefix##_dec_return(type *v)				\
{										\
	return prefix##_add_return(-1, v);					\
}										\
static inline value prefix##_xchg(type *v, value n)				\
{										\
	return __atomic_exchange_n(&v->counter, n, __ATOMIC_SEQ_CST);		\
}										\
static inline value prefix##_cmpxchg(type *v, value old, value n)		\
{										\
	return cmpxchg(&v->counter, old, n);					\
}										\
static inline bool prefix##_dec_and_test(type *v)				\
{										\
	return !prefix##_dec_return(v);						\
}										\
static inline value prefix##_dec_if_positive(type *v)				\
{										\
	value n = prefix##_read(v);						\
										\
	while (n > 0 &&								\
	       !__atomic_compare_exchange_n(&v->counter, &n, n - 1, false,	\
					    __ATOMIC_SEQ_CST,			\
					    __ATOMIC_RELAXED))			\
		;								\
	return n - 1;								\
}

NATIVE_ATOMIC(atomic, atomic_t, int)
NATIVE_ATOMIC(atomic64, atomic64_t, s64)
#define atomic_long_read(v) ((long)atomic64_read(v))
#define atomic_long_set(v, n) atomic64_set(v, n)
#define atomic_long_inc(v) atomic64_inc(v)
#define atomic_long_dec(v) atomic64_dec(v)

typedef struct {
	int count;
} refcount_t;

#define REFCOUNT_INIT(n) { n }

static inline void refcount_set(refcount_t *r, int n)
{
	__atomic_store_n(&r->count, n, __ATOMIC_RELAXED);
}

/*
 * The kernel's refcount_read() guarantees no order. But a task may read that it
 * holds the only reference, and then take a lock. In the kernel's memory model
 * the task then comes after all former holders. The compiler and TSan do not
 * know this model, so the read is an acquire here.
 */
static inline unsigned int refcount_read(const refcount_t *r)
{
	return __atomic_load_n(&r->count, __ATOMIC_ACQUIRE);
}

static inline void refcount_inc(refcount_t *r)
{
	WARN(__atomic_fetch_add(&r->count, 1, __ATOMIC_RELAXED) <= 0,
	     "refcount: increment of 0, use after free");
}

static inline bool refcount_inc_not_zero(refcount_t *r)
{
	int n = refcount_read(r);

	while (n && !__atomic_compare_exchange_n(&r->count, &n, n + 1, false,
						 __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED))
		;
	return n;
}

static inline bool refcount_dec_and_test(refcount_t *r)
{
	int before = __atomic_fetch_sub(&r->count, 1, __ATOMIC_ACQ_REL);

	WARN(before <= 0, "refcount: underflow, use after free");
	return before == 1;
}

static inline void refcount_dec(refcount_t *r)
{
	WARN(refcount_dec_and_test(r), "refcount: the last reference is leaked");
}

/* Bits. Atomic operations act on whole words, as the kernel's do. */
#define BITS_TO_LONGS(n) (((n) + BITS_PER_LONG - 1) / BITS_PER_LONG)
#define DECLARE_BITMAP(name, bits) unsigned long name[BITS_TO_LONGS(bits)]
#define native_word(n, p) ((unsigned long *)(p) + (n) / BITS_PER_LONG)
#define native_mask(n) (1UL << ((n) % BITS_PER_LONG))

static inline bool test_bit(unsigned long n, const unsigned long *p)
{
	return __atomic_load_n(native_word(n, p), __ATOMIC_RELAXED) &
	       native_mask(n);
}

static inline void set_bit(unsigned long n, unsigned long *p)
{
	__atomic_fetch_or(native_word(n, p), native_mask(n), __ATOMIC_RELAXED);
}

static inline void clear_bit(unsigned long n, unsigned long *p)
{
	__atomic_fetch_and(native_word(n, p), ~native_mask(n),
			   __ATOMIC_RELAXED);
}

static inline bool test_and_set_bit(unsigned long n, unsigned long *p)
{
	return __atomic_fetch_or(native_word(n, p), native_mask(n),
				 __ATOMIC_SEQ_CST) & native_mask(n);
}

static inline void __set_bit(unsigned long n, unsigned long *p)
{
	*native_word(n, p) |= native_mask(n);
}

static inline void __clear_bit(unsigned long n, unsigned long *p)
{
	*native_word(n, p) &= ~native_mask(n);
}

static inline bool __test_and_set_bit(unsigned long n, unsigned long *p)
{
	bool was = *native_word(n, p) & native_mask(n);

	__set_bit(n, p);
	return was;
}

static inline bool __test_and_clear_bit(unsigned long n, unsigned long *p)
{
	bool was = *native_word(n, p) & native_mask(n);

	__clear_bit(n, p);
	return was;
}

#define __assign_bit(n, p, value) \
	((value) ? __set_bit((n), (p)) : __clear_bit((n), (p)))

#define __ffs(word) ((unsigned long)__builtin_ctzl(word))
#define __fls(word) ((unsigned long)(BITS_PER_LONG - 1 - __builtin_clzl(word)))
#define __ffs64(word) __ffs(word)
#define ffz(word) __ffs(~(word))
#define ffs(n) __builtin_ffs(n)

static inline int fls(unsigned int n)
{
	return n ? 32 - __builtin_clz(n) : 0;
}

static inline int fls64(u64 n)
{
	return n ? 64 - __builtin_clzll(n) : 0;
}

static inline unsigned int fls_long(unsigned long n)
{
	return fls64(n);
}

#define hweight64(w) ((unsigned long)__builtin_popcountll(w))
#define hweight32(w) ((unsigned int)__builtin_popcount(w))
#define hweight_long(w) ((unsigned long)__builtin_popcountl(w))
#define hweight8(w) hweight32((u8)(w))
#define rol32(w, n) (((w) << ((n) & 31)) | ((w) >> (-(n) & 31)))
#define array_index_nospec(index, size) (index)

#define do_div(n, base) ({ \
	u32 __rest = (n) % (u32)(base); \
	(n) /= (u32)(base); \
	__rest; \
})
#define nop() ((void)0)

/* The number of the n-th set bit. */
static inline unsigned long fns(unsigned long word, unsigned int n)
{
	while (word && n--)
		word &= word - 1;
	return word ? __ffs(word) : BITS_PER_LONG;
}

#include <linux/bitmap.h>
#include <linux/log2.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/overflow.h>
#include <linux/align.h>
#include <linux/sizes.h>
#include <linux/err.h>
#include <linux/list.h>

#endif /* _NATIVE_ATOMIC_H */
