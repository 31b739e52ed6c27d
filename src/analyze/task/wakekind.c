#include "analyze/task/wakekind.h"

#include <string.h>

#include "analyze/tree/ownfunction.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "profile/profile.h"

static const struct {
	const char *key, *name;
} kinds[WAKEKIND_COUNT] = {
	[WAKEKIND_OTHER] = { "other", "a wake-up" },
	[WAKEKIND_TIMER] = { "timer", "a timer" },
	[WAKEKIND_IO] = { "io", "I/O" },
	[WAKEKIND_SIGNAL] = { "signal", "a signal" },
	[WAKEKIND_JOIN] = { "join", "the end of a task" },
	[WAKEKIND_ONESHOT] = { "oneshot", "a oneshot message" },
	[WAKEKIND_CHANNEL] = { "channel", "a message" },
	[WAKEKIND_ROOM] = { "room", "room in a channel" },
	[WAKEKIND_LOCK] = { "lock", "an async lock" },
	[WAKEKIND_NOTIFY] = { "notify", "a notification" },
	[WAKEKIND_YIELD] = { "yield", "its turn after a yield" },
	[WAKEKIND_DRIVER] = { "driver", "a timer or I/O" },
	[WAKEKIND_NOT_ENDED] = { "not-ended", "not ended" },
	[WAKEKIND_NO_STACK] = { "no-stack", "not known" },
};

const char *wakekind_key(enum wakekind kind)
{
	return kinds[kind].key;
}

const char *wakekind_name(enum wakekind kind)
{
	return kinds[kind].name;
}

bool wakekind_is_outer(enum wakekind kind)
{
	return kind == WAKEKIND_TIMER || kind == WAKEKIND_IO || kind == WAKEKIND_SIGNAL || kind == WAKEKIND_DRIVER;
}

bool wakekind_is_inner(enum wakekind kind)
{
	return kind == WAKEKIND_JOIN || kind == WAKEKIND_ONESHOT || kind == WAKEKIND_CHANNEL || kind == WAKEKIND_ROOM ||
	       kind == WAKEKIND_LOCK || kind == WAKEKIND_NOTIFY;
}

/* Pieces of names; the first that fits decides. Only functions of the side that wakes: futures that wait are on the stack
 * of each task that is polled, also of one that wakes another. */
static const struct {
	const char *piece;
	enum wakekind kind;
} known[] = {
	{ "tokio::runtime::io::", WAKEKIND_IO },
	{ "tokio::io::driver", WAKEKIND_IO },
	{ "tokio::runtime::signal::", WAKEKIND_SIGNAL },
	{ "tokio::signal::", WAKEKIND_SIGNAL },
	{ "tokio::runtime::time::", WAKEKIND_TIMER },
	{ "tokio::time::driver", WAKEKIND_TIMER },
	{ "tokio::runtime::scheduler::defer::", WAKEKIND_YIELD },
	{ "tokio::runtime::task::harness::Harness<T,S>::complete", WAKEKIND_JOIN },
	{ "Trailer::wake_join", WAKEKIND_JOIN },
	{ "tokio::sync::oneshot::", WAKEKIND_ONESHOT },
	{ "futures_channel::oneshot::", WAKEKIND_ONESHOT },
	{ "tokio::sync::mpsc::chan::Rx", WAKEKIND_ROOM },
	{ "tokio::sync::mpsc::bounded::Receiver", WAKEKIND_ROOM },
	{ "futures_channel::mpsc::Receiver", WAKEKIND_ROOM },
	{ "tokio::sync::mpsc::", WAKEKIND_CHANNEL },
	{ "futures_channel::mpsc::", WAKEKIND_CHANNEL },
	{ "tokio::sync::broadcast::", WAKEKIND_CHANNEL },
	{ "flume::", WAKEKIND_CHANNEL },
	{ "async_channel::", WAKEKIND_CHANNEL },
	{ "kanal::", WAKEKIND_CHANNEL },
	{ "thingbuf::", WAKEKIND_CHANNEL },
	{ "tokio::sync::batch_semaphore::", WAKEKIND_LOCK },
	{ "tokio::sync::semaphore::", WAKEKIND_LOCK },
	{ "tokio::sync::mutex::", WAKEKIND_LOCK },
	{ "tokio::sync::rwlock::", WAKEKIND_LOCK },
	{ "futures_util::lock::", WAKEKIND_LOCK },
	{ "async_lock::", WAKEKIND_LOCK },
	{ "tokio::sync::notify::", WAKEKIND_NOTIFY },
	{ "tokio::sync::watch::", WAKEKIND_NOTIFY },
	{ "tokio_util::sync::cancellation_token", WAKEKIND_NOTIFY },
	{ "event_listener::", WAKEKIND_NOTIFY },
	{ "want::Giver", WAKEKIND_NOTIFY },
	{ "want::Taker", WAKEKIND_NOTIFY },
	/* Further out than what it drives, which may be inlined. */
	{ "tokio::runtime::driver::", WAKEKIND_DRIVER },
	{ "worker::Context::park", WAKEKIND_DRIVER },
	{ "current_thread::Context::park", WAKEKIND_DRIVER },
};

/* Functions between what woke a task and the queue that it was put into. They tell nothing. */
static bool is_machinery(const char *name, const char *module)
{
	static const char *const pieces[] = {
		"tokio::runtime::task::", "tokio::util::wake", "atomic_waker::AtomicWaker", "futures_unordered::", "futures_task::",
		"alloc::task::", "ArcWake", "arc_wake", "waker::InlineWaker", "tokio::runtime::scheduler::", "tokio::runtime::context::",
		"tokio::runtime::driver::", "tokio::runtime::park::", "tokio::runtime::blocking::",
	};
	static const char *const prefixes[] = { "core::", "<core::", "std::", "<std::", "alloc::", "<alloc::", "__rust_" };

	if (str_starts(str_base_name(module), "memfd:gasflame"))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (str_starts(name, prefixes[i]))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
		if (strstr(name, pieces[i]))
			return true;
	return false;
}

static enum wakekind kind_of_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strstr(name, known[i].piece))
			return known[i].kind;
	return WAKEKIND_OTHER;
}

/* Is the function beside the kind of no interest? The driver runs below whatever waits for it, and a task that ends below its
 * runtime. */
static bool tells_all(enum wakekind kind)
{
	return kind == WAKEKIND_TIMER || kind == WAKEKIND_IO || kind == WAKEKIND_SIGNAL || kind == WAKEKIND_YIELD ||
	       kind == WAKEKIND_DRIVER || kind == WAKEKIND_JOIN;
}

/* What is found on the way outward. */
struct search {
	enum wakekind kind;
	const char *library; /* the innermost that is no machinery */
	const char *own;     /* ends the search */
};

static void look_at(struct search *s, const char *name, const char *module)
{
	enum wakekind kind = kind_of_name(name);

	/* A channel of limited size has a semaphore inside: its receiver makes room. */
	if (s->kind == WAKEKIND_OTHER || (s->kind == WAKEKIND_LOCK && (kind == WAKEKIND_ROOM || kind == WAKEKIND_CHANNEL)))
		s->kind = s->kind == WAKEKIND_LOCK ? WAKEKIND_ROOM : kind;
	if (kind == WAKEKIND_OTHER && is_machinery(name, module))
		return;
	if (!ownfunction_is_library(name, module))
		s->own = name;
	else if (!s->library && strstr(name, "::")) /* not start_thread */
		s->library = name;
}

enum wakekind wakekind_of_stack(const struct profile *p, uint32_t stack, uint32_t until, const char **ret_function)
{
	struct search s = { 0 };

	for (; stack && stack != until && !s.own; stack = p->stacks.v[stack].parent) {
		const struct profile_frame *f = &p->frames.v[p->stacks.v[stack].frame];

		if (f->kind != FRAME_USER)
			continue;
		for (uint32_t k = 0; k < f->line_count && !s.own; k++) {
			const struct profile_function *function = &p->functions.v[p->lines.v[f->first_line + k].function];
			uint32_t module = function->module;

			look_at(&s, profile_str(p, function->name),
				module < p->modules.n ? profile_str(p, p->modules.v[module].path) : "");
		}
	}
	if (ret_function)
		*ret_function = tells_all(s.kind) ? "" : s.own ? s.own : s.library ? s.library : "";
	return s.kind;
}
