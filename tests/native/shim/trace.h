/* SPDX-License-Identifier: GPL-2.0 */
/* Trace events: their arguments are checked, and nothing is traced. */
#ifndef _NATIVE_TRACE_H
#define _NATIVE_TRACE_H

#define TP_PROTO(...) __VA_ARGS__
#define TP_ARGS(...) __VA_ARGS__
#define TRACE_EVENT(name, proto, args, fields, assign, print) \
	static inline void trace_##name(proto) {}
#define DECLARE_EVENT_CLASS(name, proto, args, fields, assign, print)
#define DEFINE_EVENT(class, name, proto, args) \
	static inline void trace_##name(proto) {}

#endif /* _NATIVE_TRACE_H */
