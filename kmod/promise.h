/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Between account.c, what owners are charged, promise.c, what is kept, and
 * quota.c, what is set.
 */
#ifndef _FLEXMEM_PROMISE_H
#define _FLEXMEM_PROMISE_H

#include <linux/types.h>

#include "account.h"

/* All under &flexmem_accounts.lock. */

void flexmem_promise_withdraw(struct flexmem_accounts *accounts,
			      const struct flexmem_account *client,
			      struct flexmem_account *user);
void flexmem_promise_make(struct flexmem_accounts *accounts,
			  const struct flexmem_account *client,
			  struct flexmem_account *user);
void flexmem_promise_shared_use(struct flexmem_accounts *accounts,
				struct flexmem_account *client, u64 size);
void flexmem_promise_reserved_use(struct flexmem_account *client, int sign);
void flexmem_promise_handles(struct flexmem_account *client, int sign);
void flexmem_promise_set(struct flexmem_accounts *accounts,
			 struct flexmem_account *account, unsigned int r,
			 u64 guarantee);
bool flexmem_promise_can_keep(const struct flexmem_accounts *accounts,
			      const struct flexmem_account *account,
			      unsigned int r);
void flexmem_promise_release(struct flexmem_accounts *accounts,
			     struct flexmem_account *keeper);

enum flexmem_reason flexmem_client_refuses(const struct flexmem_account *client,
					   u64 size, u64 slots);
/*
 * By how much bytes in a shared region add to what is charged to a client's user
 * or promised out of its limit: not by what the client's guarantee covers.
 */
static inline u64 flexmem_promise_growth(const struct flexmem_account *client,
					 u64 size)
{
	const unsigned int b = FLEXMEM_RESOURCE_BYTES;
	u64 own = client->guarantee[b] > client->shared ?
		client->guarantee[b] - client->shared : 0;

	return size > own ? size - own : 0;
}

/* Whether its limit forbids that they grow by so much. */
static inline bool flexmem_user_refuses(const struct flexmem_account *user,
					unsigned int resource, u64 growth)
{
	u64 counted = user->used[resource] + user->promised[resource];

	return growth && (counted > user->limit[resource] ||
			  growth > user->limit[resource] - counted);
}

static inline u64 flexmem_shortfall(u64 wanted, u64 there)
{
	return wanted > there ? wanted - there : 0;
}

static inline bool flexmem_exceeds(u64 used, u64 more, u64 limit)
{
	return used > limit || more > limit - used;
}

static inline bool
flexmem_slot_is_shared(const struct flexmem_accounts *accounts,
		       unsigned int slot)
{
	return !accounts->slot[slot].keeper &&
	       accounts->slot[slot].kind == FLEXMEM_KIND_TENSOR;
}

#endif /* _FLEXMEM_PROMISE_H */
