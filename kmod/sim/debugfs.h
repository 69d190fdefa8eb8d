/* SPDX-License-Identifier: GPL-2.0 */
/* The simulator's files in debugfs. */
#ifndef _FLEXMEM_SIM_DEBUGFS_H
#define _FLEXMEM_SIM_DEBUGFS_H

struct sim_card;
struct sim_function;

void sim_debugfs_add_card(struct sim_card *card);
void sim_debugfs_remove_card(struct sim_card *card);
void sim_debugfs_add_function(struct sim_function *fn);
void sim_debugfs_remove_function(struct sim_function *fn);

#endif /* _FLEXMEM_SIM_DEBUGFS_H */
