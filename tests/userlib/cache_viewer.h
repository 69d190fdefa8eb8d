/* SPDX-License-Identifier: GPL-2.0 */
/* Checks a snapshot by the rules of PyTorch's memory viewer. */
#ifndef CACHE_VIEWER_H
#define CACHE_VIEWER_H

#include <jansson.h>

/*
 * Returns NULL if the viewer shows the snapshot; otherwise a text with the
 * cause, valid until the next call of this thread.
 */
const char *viewer_refuses(const json_t *snapshot);
/* Makes the same check as viewer_refuses(), on the text of a snapshot. */
const char *viewer_refuses_text(const char *text);

#endif /* CACHE_VIEWER_H */
