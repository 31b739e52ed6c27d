/*
 * filters.h - options that several commands share, word for word: the selection of a recording, and the
 * sources of names.
 *
 *	const struct option_spec options[] = {
 *		FILTER_OPTIONS(&r),
 *		NAME_OPTIONS(&r),
 *		{ 0 },
 *	};
 *
 * o points to any struct with members of these names.
 */
#pragma once

#define FILTER_OPTIONS(o)                                                                                             \
	{ 0, "what", OPTION_STRING, &(o)->what, "EVENT",                                                              \
	  "which of the things recorded (cpu, wait, queue, read, ...); wall is cpu, wait and queue "                  \
	  "together, io read and written bytes, fault the time or the number of page faults; of "                     \
	  "async tasks poll, taskqueue and await; by default the first" },                                            \
	{ 0, "idle", OPTION_FLAG, &(o)->idle, .help = "take in the waits of threads that have nothing to do" },       \
	{ 0, "patterns", OPTION_LIST, &(o)->patterns, "FILE",                                                         \
	  "more patterns for the causes of waits, before the built-in ones "                                          \
	  "(configs/patterns.conf)" },                                                                                \
	{ 't', "thread", OPTION_LIST, &(o)->threads, "THREAD",                                                        \
	  "only this thread: a name, a pattern like 'rpc-*', or a tid" },                                             \
	{ 0, "process", OPTION_LIST, &(o)->processes, "PROCESS",                                                      \
	  "only this process: a name, a pattern, or a pid; or its container or unit" },                                                         \
	{ 0, "from", OPTION_MOMENT, &(o)->from, "TIME",                                                               \
	  "only samples from this time of the recording on; with --store a time of the calendar" },                   \
	{ 0, "to", OPTION_MOMENT, &(o)->to, "TIME", "only samples before this time; with --store a time of the calendar" }, \
	{ 'f', "function", OPTION_STRING, &(o)->function, "REGEX", "only stacks in which a function matches" }

/* A profile in a store as the operand, in place of a file (cmd/reading/storeargs.h); s: struct store_choice. */
#define STORE_OPTIONS(s)                                                                                              \
	{ 0, "store", OPTION_STRING, &(s)->store, "URL",                                                              \
	  "read from this store, not from a file: clickhouse://HOST:8123/DATABASE (gasflame store --help); with --target by default " \
	  "that of GASFLAME_STORE" },                                                                                 \
	{ 0, "target", OPTION_STRING, &(s)->target, "NAME",                                                           \
	  "of the store: this target; a pattern with * and ? is the sum of several" },                                \
	{ 0, "release", OPTION_STRING, &(s)->release, "NAME", "of the store: only what was recorded of this release" }, \
	{ 0, "label", OPTION_LIST, &(s)->labels, "KEY=VALUE", "of the store: only what has this label" }

/* Of commands that have no FILTER_OPTIONS. */
#define STORE_TIMES(s)                                                                                                \
	{ 0, "from", OPTION_STRING, &(s)->from, "TIME",                                                               \
	  "of the store: from this time on, as 2026-11-17 10:00, 2026-11-17T10:00:30Z, seconds since 1970, or -1h" }, \
	{ 0, "to", OPTION_STRING, &(s)->to, "TIME", "of the store: until this time" }

#define NAME_OPTIONS(o)                                                                                               \
	{ 0, "no-inline", OPTION_FLAG, &(o)->no_inline, .help = "leave out the inlined functions" }, SYMBOL_OPTIONS(o)

#define SYMBOL_OPTIONS(o)                                                                                             \
	{ 0, "symbols", OPTION_LIST, &(o)->symbols, "PATH",                                                           \
	  COMMAND_SYMBOLS },                                                                                          \
	CACHE_OPTIONS(o)

#define CACHE_OPTIONS(o)                                                                                              \
	{ 0, "debuginfod", OPTION_FLAG, &(o)->debuginfod,                                                             \
	  .help = "ask the servers of DEBUGINFOD_URLS for symbols" },                                                 \
	{ 0, "no-cache", OPTION_FLAG, &(o)->no_cache, .help = "neither read nor write the cache of symbols" }
