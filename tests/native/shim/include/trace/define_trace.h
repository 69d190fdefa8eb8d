/* SPDX-License-Identifier: GPL-2.0 */
/* Nothing is traced: see shim/trace.h. */
