/*
 * perfrecord.c - the first line of a sample, read closely.
 *
 *	tokio-rt 3  9421/9423  [001]  1211.121410:    2004008 cpu-clock:ppp:
 *	sh  9421 [000] 1.500000: sched:sched_switch: prev_comm=sh prev_pid=9421 ...
 *	            sh  9421  1211.121410:    2004008 cpu-clock:      7fab33998f5d f+0xb5d (/usr/lib/libc.so.6)
 *
 * A name may hold anything; so the ids are looked for before the first processor or time.
 */
#include <string.h>

#include "folded/collapse/perfline.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The next word from a place on; empty at the end. */
static struct perfline_text next_word(const char *s, size_t n, size_t *at)
{
	size_t from;

	while (*at < n && perfline_space(s[*at]))
		++*at;
	from = *at;
	while (*at < n && !perfline_space(s[*at]))
		++*at;
	return (struct perfline_text){ s + from, *at - from };
}

/* A number of nothing but digits; more than fits becomes the largest. */
static bool take_number(struct perfline_text t, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < t.n; i++) {
		if (!is_digit(t.s[i]))
			return false;
		if (__builtin_mul_overflow(*ret, 10, ret) || __builtin_add_overflow(*ret, t.s[i] - '0', ret))
			*ret = UINT64_MAX;
	}
	return t.n;
}

/* "12", "12/34"; -1 is how perf writes that it does not know. */
static bool take_id(struct perfline_text t, uint32_t *ret)
{
	uint64_t id;

	*ret = 0;
	if (t.n == 2 && t.s[0] == '-' && t.s[1] == '1')
		return true;
	if (!take_number(t, &id) || id > INT32_MAX)
		return false;
	*ret = id;
	return true;
}

static bool take_ids(struct perfline_text t, struct perfline_record *r)
{
	const char *slash = t.n ? memchr(t.s, '/', t.n) : NULL;
	struct perfline_text pid = t;

	if (slash)
		pid.n = slash - t.s;
	if (!take_id(pid, &r->pid))
		return false;
	r->tid = r->pid;
	return !slash || take_id((struct perfline_text){ slash + 1, t.s + t.n - slash - 1 }, &r->tid);
}

/* "[001]" */
static bool take_cpu(struct perfline_text t, struct perfline_record *r)
{
	uint64_t cpu;

	if (t.n < 3 || t.s[0] != '[' || t.s[t.n - 1] != ']' || !take_number((struct perfline_text){ t.s + 1, t.n - 2 }, &cpu))
		return false;
	r->cpu = cpu < UINT32_MAX ? cpu : UINT32_MAX;
	return true;
}

/* "1211.121410:", with nine digits after perf script --ns. */
static bool take_time(struct perfline_text t, struct perfline_record *r)
{
	enum { DIGITS = 9, SECOND_NS = 1000000000 };
	const char *point = t.n ? memchr(t.s, '.', t.n) : NULL;
	uint64_t seconds, fraction;
	size_t digits;

	if (!point || t.s[t.n - 1] != ':')
		return false;
	digits = t.s + t.n - 1 - (point + 1);
	if (!digits || digits > DIGITS || !take_number((struct perfline_text){ t.s, point - t.s }, &seconds) ||
	    !take_number((struct perfline_text){ point + 1, digits }, &fraction) || seconds > INT64_MAX / SECOND_NS - 1)
		return false;
	for (; digits < DIGITS; digits++)
		fraction *= 10;
	r->time_ns = seconds * SECOND_NS + fraction;
	return r->timed = true;
}

/* What follows ids, processor and time: a period, an event with a colon after it, and the rest. */
static void take_end(const char *s, size_t n, size_t at, struct perfline_record *r)
{
	size_t after = at, later;
	struct perfline_text word = next_word(s, n, &after), event = word;
	uint64_t number;

	later = after;
	if (take_number(word, &number)) {
		event = next_word(s, n, &later);
		r->weighted = !event.n || event.s[event.n - 1] == ':';
		r->period = r->weighted ? number : 0;
		if (r->weighted)
			at = later;
	}
	if (event.n > 1 && event.s[event.n - 1] == ':') {
		r->event = (struct perfline_text){ event.s, event.n - 1 };
		at = later;
	}
	while (at < n && perfline_space(s[at]))
		at++;
	while (n > at && perfline_space(s[n - 1]))
		n--;
	r->rest = (struct perfline_text){ s + at, n - at };
}

/* The time after a processor, which letters for the kind of the sample may precede. */
static void take_late_time(const char *s, size_t n, size_t *at, struct perfline_record *r)
{
	size_t after = *at;

	for (int i = 0; i < 2; i++)
		if (take_time(next_word(s, n, &after), r)) {
			*at = after;
			return;
		}
}

/* By the rules of the Perl script, which wants a name and a number; and an event. */
static bool take_loosely(const char *s, size_t n, struct perfline_record *r)
{
	struct perfline_header h;

	if (!perfline_header(s, n, &h) || !take_id(h.pid.s ? h.pid : h.tid, &r->pid) || !take_id(h.tid, &r->tid))
		return false;
	r->comm = h.comm;
	take_end(s, n, h.tid.s + h.tid.n - s, r);
	return r->event.s;
}

bool perfline_record(const char *s, size_t n, struct perfline_record *ret)
{
	struct perfline_text before = { 0 }, word;
	size_t at = 0, start;

	*ret = (struct perfline_record){ .cpu = UINT32_MAX };
	for (; (word = next_word(s, n, &at)).n; before = word) {
		bool cpu = before.n && take_cpu(word, ret);

		if ((!cpu && (!before.n || !take_time(word, ret))) || !take_ids(before, ret))
			continue;
		if (cpu)
			take_late_time(s, n, &at, ret);
		for (start = 0; perfline_space(s[start]);)
			start++;
		ret->comm = (struct perfline_text){ s + start, before.s - (s + start) };
		while (ret->comm.n && perfline_space(ret->comm.s[ret->comm.n - 1]))
			ret->comm.n--;
		take_end(s, n, at, ret);
		return true;
	}
	*ret = (struct perfline_record){ .cpu = UINT32_MAX };
	return take_loosely(s, n, ret);
}
