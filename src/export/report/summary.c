/*
 * summary.c - counts of events: locks, I/O, context switches, disk requests, faults, memory pressure.
 *
 * A group appears when an event of it was recorded, and in it a line for each recorded event: 0 means that
 * it did not happen, never that it was not recorded. Events of no group come last.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analyze/eventcounts.h"
#include "analyze/select.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "profile/keys.h"
#include "profile/profile.h"

struct summary {
	const struct profile *profile;
	struct eventcounts counts;
	struct buf *out;
	bool *shown; /* by event */
	uint64_t duration_ns; /* of the selection */
};

/* --- looking events up --- */

/* Returns the event called name, counted or summed by any field; PROFILE_NONE: not recorded. */
static uint32_t find_event(const struct summary *s, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < s->profile->events.n; i++) {
		const char *event = profile_str(s->profile, s->profile->events.v[i].name);

		if (str_starts(event, name) && (!event[n] || event[n] == '/' || !strcmp(event + n, ":u")))
			return i;
	}
	return PROFILE_NONE;
}

static uint64_t counter(const struct summary *s, const char *family, uint32_t event)
{
	return profile_counter_of(s->profile, family, profile_str(s->profile, s->profile->events.v[event].name));
}

static const char *unit_of(const struct summary *s, uint32_t event)
{
	return profile_str(s->profile, s->profile->events.v[event].unit);
}

/* --- lines --- */

static void heading(struct summary *s, const char *title)
{
	buf_printf(s->out, "\n%s:\n", title);
}

static void hint(struct summary *s, const char *text)
{
	buf_printf(s->out, "  → %s\n", text);
}

/* Adds the remarks of a line: a sum, errors, and counts elsewhere. */
static void remarks(struct summary *s, uint32_t event)
{
	const struct eventcounts_event *t = &s->counts.events.v[event];
	uint64_t elsewhere = counter(s, KEY_EVENT_ELSEWHERE_OF, event), negative = counter(s, KEY_EVENT_NEGATIVE_OF, event);
	char text[32];

	if (!strcmp(unit_of(s, event), "bytes"))
		buf_printf(s->out, ", %llu bytes (%s)", (unsigned long long)t->value, str_bytes(text, t->value));
	else if (!strcmp(unit_of(s, event), "ns"))
		buf_printf(s->out, ", %s", str_duration(text, t->value));
	else if (t->value != t->count)
		buf_printf(s->out, ", sum %llu", (unsigned long long)t->value);
	if (negative)
		buf_printf(s->out, ", %s of them errors", str_count(text, negative));
	if (strstr(profile_str(s->profile, s->profile->events.v[event].describe), "whole machine"))
		buf_puts(s->out, " (of the whole machine)");
	else if (elsewhere)
		buf_printf(s->out, " (and %s outside the target)", str_count(text, elsewhere));
	s->shown[event] = true;
}

/* A line for an event, if it was recorded. */
static uint64_t line(struct summary *s, const char *label, uint32_t event)
{
	if (event == PROFILE_NONE)
		return 0;
	buf_printf(s->out, "  %-20s %llu", label, (unsigned long long)s->counts.events.v[event].count);
	remarks(s, event);
	buf_putc(s->out, '\n');
	return s->counts.events.v[event].count;
}

struct row {
	const char *label, *event;
};

static bool any_of(const struct summary *s, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (find_event(s, rows[i].event) != PROFILE_NONE)
			return true;
	return false;
}

/* A group of rows with its title; false: none of it was recorded. */
static bool group(struct summary *s, const char *title, const struct row *rows, size_t n)
{
	if (!any_of(s, rows, n))
		return false;
	heading(s, title);
	for (size_t i = 0; i < n; i++)
		line(s, rows[i].label, find_event(s, rows[i].event));
	return true;
}

/* --- groups --- */

static uint64_t count_of(const struct summary *s, const char *name)
{
	uint32_t event = find_event(s, name);

	return event == PROFILE_NONE ? 0 : s->counts.events.v[event].count;
}

static void locks(struct summary *s)
{
	static const struct row rows[] = {
		{ "futex calls:", "syscalls:sys_enter_futex" },
		{ "futex returns:", "syscalls:sys_exit_futex" },
		{ "futex_wait calls:", "syscalls:sys_enter_futex_wait" },
		{ "futex_wait ret:", "syscalls:sys_exit_futex_wait" },
	};
	uint32_t enter = find_event(s, rows[0].event);
	uint64_t waits = count_of(s, rows[2].event);

	if (!any_of(s, rows, ARRAY_LEN(rows)))
		return;
	heading(s, "Lock Contention (futex syscalls)");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t event = find_event(s, rows[i].event);
		const struct eventcounts_event *t;

		line(s, rows[i].label, event);
		if (i || event == PROFILE_NONE)
			continue;
		t = &s->counts.events.v[event];
		buf_printf(s->out, "  %-20s %llu\n", "  of them waits:", (unsigned long long)t->waits);
		buf_printf(s->out, "  %-20s %llu\n", "  wakes and other:", (unsigned long long)(t->count - t->waits));
		waits += t->waits;
	}
	if (waits)
		hint(s, "Threads waited in futexes: locks, but also channels and idle workers; the stacks tell "
			"which, and -e wait how long");
	else if (enter != PROFILE_NONE && s->counts.events.v[enter].count)
		hint(s, "Only wakes: these are no contention");
}

/* Adds the events of -e wait and -e io, beside events by name. */
static void collected(struct summary *s)
{
	static const struct row waits[] = { { "waits:", "wait" }, { "in the run queue:", "queue" } };
	static const struct row transfers[] = { { "reads:", "read" }, { "writes:", "write" }, { "syncs:", "sync" },
						{ "failed:", "io-error" } };

	if (group(s, "Waits", waits, ARRAY_LEN(waits)))
		hint(s, "--format text has their causes, and who ended them");
	if (group(s, "Reads and writes", transfers, ARRAY_LEN(transfers)))
		hint(s, "By function and file: --format text --what read, --what write or --what sync");
}

enum { READS = 1, WRITES = 2 };

static const struct {
	const char *label, *call;
	unsigned ways;
} calls[] = {
	{ "read syscalls:", "read", READS }, { "pread64 syscalls:", "pread64", READS },
	{ "readv syscalls:", "readv", READS }, { "preadv syscalls:", "preadv", READS },
	{ "preadv2 syscalls:", "preadv2", READS }, { "recvfrom syscalls:", "recvfrom", READS },
	{ "recvmsg syscalls:", "recvmsg", READS }, { "write syscalls:", "write", WRITES },
	{ "pwrite64 syscalls:", "pwrite64", WRITES }, { "writev syscalls:", "writev", WRITES },
	{ "pwritev syscalls:", "pwritev", WRITES }, { "pwritev2 syscalls:", "pwritev2", WRITES },
	{ "sendto syscalls:", "sendto", WRITES }, { "sendmsg syscalls:", "sendmsg", WRITES },
	{ "sendfile syscalls:", "sendfile64", READS | WRITES },
	{ "copy_file_range:", "copy_file_range", READS | WRITES }, { "fsync calls:", "fsync", 0 },
	{ "fdatasync calls:", "fdatasync", 0 }, { "msync calls:", "msync", 0 },
	{ "sync_file_range:", "sync_file_range", 0 },
};

/* Calls of one direction whose results were summed. */
struct total {
	uint64_t count, bytes;
	bool any;
};

static void put_total(struct summary *s, const char *label, const struct total *t)
{
	char a[32], b[32];

	if (!t->any)
		return;
	buf_printf(s->out, "  %-20s %llu bytes (%s)", label, (unsigned long long)t->bytes,
		   str_bytes(a, t->bytes));
	if (t->count)
		buf_printf(s->out, ", %llu bytes a call", (unsigned long long)(t->bytes / t->count));
	if (s->duration_ns)
		buf_printf(s->out, ", %.2f MB/s over %s", t->bytes / (s->duration_ns / 1e9) / (1 << 20),
			   str_duration(b, s->duration_ns));
	buf_putc(s->out, '\n');
}

/* Adds up all calls, as far as their results were recorded. */
static void io_totals(struct summary *s)
{
	struct total totals[2] = { 0 };
	const char *most = NULL;
	uint64_t most_bytes = 0;

	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		char name[64];
		uint32_t event;

		snprintf(name, sizeof(name), "syscalls:sys_exit_%s/ret", calls[i].call);
		event = find_event(s, name);
		for (int way = 0; way < 2 && event != PROFILE_NONE; way++)
			if (calls[i].ways & (way ? WRITES : READS)) {
				totals[way].any = true;
				totals[way].count += s->counts.events.v[event].count;
				totals[way].bytes += s->counts.events.v[event].value;
			}
		if (event != PROFILE_NONE && calls[i].ways && s->counts.events.v[event].value > most_bytes) {
			most_bytes = s->counts.events.v[event].value;
			most = calls[i].call;
		}
	}
	put_total(s, "all read:", &totals[0]);
	put_total(s, "all written:", &totals[1]);
	if (totals[0].bytes && totals[1].bytes)
		buf_printf(s->out, "  %-20s %.2f\n", "read / written:",
			   (double)totals[0].bytes / totals[1].bytes);
	if (most)
		buf_printf(s->out, "  → Which functions: --format text --what syscalls:sys_exit_%s/ret; which "
			   "files: record with -e io\n", most);
}

static void io(struct summary *s)
{
	bool any = false;
	uint64_t syncs = 0;

	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		char name[64];
		uint32_t enter, exit;

		snprintf(name, sizeof(name), "syscalls:sys_enter_%s", calls[i].call);
		enter = find_event(s, name);
		snprintf(name, sizeof(name), "syscalls:sys_exit_%s", calls[i].call);
		exit = find_event(s, name);
		if (enter == PROFILE_NONE && exit == PROFILE_NONE)
			continue;
		if (!any)
			heading(s, "I/O Operations");
		any = true;
		/* The return has the bytes; a call that was recorded both ways is still one. */
		line(s, calls[i].label, exit == PROFILE_NONE ? enter : exit);
		if (enter != PROFILE_NONE)
			s->shown[enter] = true;
		if (strstr(calls[i].call, "sync"))
			syncs += s->counts.events.v[exit == PROFILE_NONE ? enter : exit].count;
	}
	io_totals(s);
	if (syncs)
		hint(s, "The target waited for the disk to sync; the stacks tell who asked for it");
}

static void scheduler(struct summary *s)
{
	static const struct row rows[] = { { "cpu migrations:", "cpu-migrations" }, { "", "migrations" } };
	uint32_t event = find_event(s, "sched:sched_switch");

	if (event == PROFILE_NONE)
		event = find_event(s, "context-switches");
	if (event == PROFILE_NONE)
		event = find_event(s, "cs");
	if (event != PROFILE_NONE) {
		heading(s, "Scheduler context switches");
		buf_printf(s->out, "%llu", (unsigned long long)s->counts.events.v[event].count);
		remarks(s, event);
		buf_putc(s->out, '\n');
	}
	if (event == PROFILE_NONE)
		group(s, "Scheduler", rows, 1);
	else
		line(s, rows[0].label, find_event(s, rows[0].event));
}

static void block(struct summary *s)
{
	static const struct row rows[] = {
		{ "requests issued:", "block:block_rq_issue" },
		{ "requests completed:", "block:block_rq_complete" },
	};

	group(s, "Block I/O operations", rows, ARRAY_LEN(rows));
}

static void faults(struct summary *s)
{
	static const struct row rows[] = {
		{ "major faults:", "major-faults" },
		{ "minor faults:", "minor-faults" },
		{ "page faults:", "page-faults" },
		{ "time of major:", "major-time" },
		{ "time of minor:", "minor-time" },
	};
	uint64_t major = count_of(s, "major-faults"), minor = count_of(s, "minor-faults");
	bool both = find_event(s, "major-faults") != PROFILE_NONE &&
		    find_event(s, "minor-faults") != PROFILE_NONE;

	if (!group(s, "Page faults (memory-mapped I/O)", rows, ARRAY_LEN(rows)))
		return;
	if (both && major + minor) {
		double rate = 100.0 * minor / (major + minor);

		/* A fault that waited for the disk is not rounded away. */
		buf_printf(s->out, "  %-20s %.1f %%\n", "cache hit rate:", major ? MIN(rate, 99.9) : rate);
	}
	if (major) {
		buf_printf(s->out, "  %-20s %.1f MB at least (4 KB for each major fault; the kernel reads ahead)\n",
			   "read from disk:", major * 4 / 1024.0);
		hint(s, "Major faults are pages of mapped files that were read from disk; the stacks tell which code "
			"touched them");
	}
}

static void pressure(struct summary *s)
{
	static const struct row rows[] = {
		{ "direct reclaims:", "vmscan:mm_vmscan_direct_reclaim_begin" },
		{ "reclaims ended:", "vmscan:mm_vmscan_direct_reclaim_end" },
		{ "kswapd wakes:", "vmscan:mm_vmscan_kswapd_wake" },
		{ "direct reclaims:", "reclaims" }, /* of -e fault */
		{ "time of reclaims:", "reclaim-time" },
	};

	if (group(s, "Memory pressure", rows, ARRAY_LEN(rows)) &&
	    (count_of(s, rows[0].event) || count_of(s, "reclaims")))
		hint(s, "Threads had to free memory before they got some: the target needs more than there is");
}

static void others(struct summary *s)
{
	bool any = false;

	for (size_t i = 0; i < s->profile->events.n; i++) {
		struct buf name = { 0 };

		if (s->shown[i])
			continue;
		if (!any)
			heading(s, "Other events");
		any = true;
		cleantext_put(&name, profile_str(s->profile, s->profile->events.v[i].name));
		buf_putc(&name, ':');
		line(s, name.data, i);
		buf_done(&name);
	}
}

/* Notes the events that were only summed, and those that were lost. */
static void notes(struct summary *s)
{
	uint64_t summed = 0, lost = 0, all = 0;
	char a[32], b[32];

	for (size_t i = 0; i < s->profile->events.n; i++) {
		summed += counter(s, KEY_EVENT_SUMMED_OF, i);
		lost += counter(s, KEY_EVENT_LOST_OF, i);
		all += s->counts.events.v[i].count;
	}
	if (summed)
		buf_printf(s->out, "\nFast mode: %s of %s events came too fast to be kept one by one (--max-rate, "
			   "--max-size);\nthey were counted by stack in the kernel. Counts are exact, times are not.\n",
			   str_count(a, summed), str_count(b, MAX(all, summed)));
	if (lost)
		buf_printf(s->out, "\n%s events found no room and are in no count.\n", str_count(a, lost));
}

int summary_write(const struct export_job *job, struct buf *out, struct err *err)
{
	struct summary s = { .profile = job->profile, .out = out };
	int r;

	if (job->selection->options.function)
		return err_set(err, EINVAL, "a summary counts whole events: --function is not for it");
	r = eventcounts_make(&s.counts, job->profile, &job->selection->options, err);
	if (r < 0)
		return r;
	s.shown = mem_alloc(job->profile->events.n + 1);
	s.duration_ns = select_duration_ns(job->profile);
	if (job->selection->options.to_ns)
		s.duration_ns = MIN(s.duration_ns, job->selection->options.to_ns);
	s.duration_ns -= MIN(s.duration_ns, job->selection->options.from_ns);
	buf_puts(out, "=== Off-CPU Event Summary ===\n");
	locks(&s);
	collected(&s);
	io(&s);
	scheduler(&s);
	block(&s);
	faults(&s);
	pressure(&s);
	others(&s);
	notes(&s);
	mem_freep(&s.shown);
	eventcounts_done(&s.counts);
	return 0;
}
