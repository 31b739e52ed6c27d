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
	{ 0, "from", OPTION_DURATION, &(o)->from_ns, "TIME",                                                          \
	  "only samples from this time of the recording on" },                                                        \
	{ 0, "to", OPTION_DURATION, &(o)->to_ns, "TIME", "only samples before this time" },                           \
	{ 'f', "function", OPTION_STRING, &(o)->function, "REGEX", "only stacks in which a function matches" }

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
