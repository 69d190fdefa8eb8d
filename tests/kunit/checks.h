/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Checks of the invariants of the driver's structures. The driver calls the one
 * of blocks in debug builds: flexmem_blocks_check().
 */
#ifndef _FLEXMEM_TEST_CHECKS_H
#define _FLEXMEM_TEST_CHECKS_H

struct flexmem_accounts;
struct flexmem_client;
struct flexmem_table;

/* Each function returns NULL, or a text that says what is wrong. */
const char *checks_of_accounts(struct flexmem_accounts *accounts);
const char *checks_of_client(struct flexmem_client *client);
const char *checks_of_table(struct flexmem_table *table);

#endif /* _FLEXMEM_TEST_CHECKS_H */
