#include "analyze/select.h"

#include <errno.h>
#include <fnmatch.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text/match.h"
#include "base/text/str.h"
#include "profile/profile.h"

enum { SLOTS_LEAST = 1024 }; /* a power of two */

/* Of many requested events some may never have happened: takes the first that did, but CPU time before all
 * others. */
static uint32_t first_event(const struct profile *p)
{
	uint32_t first = PROFILE_NONE;

	for (size_t i = 0; i < p->samples.n; i++) {
		if (cause_role(p, p->samples.v[i].event) == ROLE_CPU)
			return p->samples.v[i].event;
		first = MIN(first, p->samples.v[i].event);
	}
	return first == PROFILE_NONE ? 0 : first;
}

/* Returns whether the event is read or written bytes. */
static bool is_io(const struct profile *p, uint32_t event)
{
	const struct profile_event *e = event < p->events.n ? &p->events.v[event] : NULL;

	return e && !strcmp(profile_str(p, e->unit), "bytes") &&
	       (!strcmp(profile_str(p, e->name), "read") || !strcmp(profile_str(p, e->name), "write"));
}

/* The first of list that has samples, else the first that there is. */
static uint32_t first_of(const struct profile *p, const char *const *list, size_t n)
{
	_cleanup_free_ uint8_t *seen = mem_alloc(p->events.n + 1);
	uint32_t any = PROFILE_NONE;

	for (size_t i = 0; i < p->samples.n; i++)
		if (p->samples.v[i].event < p->events.n)
			seen[p->samples.v[i].event] = 1;
	for (size_t i = 0; i < n; i++) {
		uint32_t event = profile_find_event(p, list[i], NULL);

		if (event != PROFILE_NONE && seen[event])
			return event;
		any = any == PROFILE_NONE ? event : any;
	}
	return any;
}

/* Words that people use for events that are called otherwise. */
static uint32_t find_alias(const struct profile *p, const char *name)
{
	static const char *const faults[] = { "major-time", "major-faults", "minor-time", "minor-faults" };
	static const char *const plurals[][2] = { { "reads", "read" },
						  { "writes", "write" },
						  { "syncs", "sync" } };

	if (!strcmp(name, "fault") || !strcmp(name, "faults"))
		return first_of(p, faults, ARRAY_LEN(faults));
	for (size_t i = 0; i < ARRAY_LEN(plurals); i++)
		if (!strcmp(name, plurals[i][0]))
			return profile_find_event(p, plurals[i][1], NULL);
	return PROFILE_NONE;
}

int select_event(const struct profile *p, const char *name, uint32_t *ret, struct err *err)
{
	_cleanup_(buf_done) struct buf list = { 0 };
	bool waits = false, io = false;

	*ret = name ? profile_find_event(p, name, NULL) : first_event(p);
	if (*ret == PROFILE_NONE)
		*ret = find_alias(p, name);
	if (*ret != PROFILE_NONE)
		return 0;
	for (size_t i = 0; i < p->events.n; i++) {
		waits |= cause_role(p, i) == ROLE_WAIT;
		io |= is_io(p, i);
	}
	if ((waits && !strcmp(name, "wall")) || (io && !strcmp(name, "io"))) {
		*ret = strcmp(name, "io") ? SELECT_WALL : SELECT_IO;
		return 0;
	}
	for (size_t i = 0; i < p->events.n; i++)
		buf_printf(&list, "%s%s", i ? ", " : "", profile_str(p, p->events.v[i].name));
	buf_printf(&list, "%s%s", waits ? ", wall" : "", io ? ", io" : "");
	*ret = 0;
	return err_set(err, ENOENT, "nothing called '%s' was recorded: there is %s", name,
		       list.n ? list.data : "nothing");
}

uint64_t select_duration_ns(const struct profile *p)
{
	uint64_t last = 0;

	if (p->duration_ns)
		return p->duration_ns;
	for (size_t i = 0; i < p->samples.n; i++)
		last = MAX(last, p->samples.v[i].time_ns);
	return last;
}

void select_span(const struct profile *p, size_t i, enum role role, uint64_t *ret_begin, uint64_t *ret_end)
{
	const struct profile_sample *s = &p->samples.v[i], *before = i ? s - 1 : NULL;

	*ret_begin = *ret_end = s->time_ns;
	if ((role != ROLE_WAIT && role != ROLE_QUEUE) || s->count > 1)
		return;
	/* Both parts of a wait have its time: first it is blocked, then in the queue. */
	if (role == ROLE_QUEUE && before && before->thread == s->thread && before->time_ns == s->time_ns &&
	    before->stack == s->stack && before->event != s->event)
		*ret_begin += before->value;
	*ret_end = *ret_begin + s->value;
}

uint64_t select_part(uint64_t value, const struct profile_summed *sum, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t begin = MAX(sum->start_ns, from_ns), end = MIN(sum->end_ns, to_ns);

	return begin < end ? (unsigned __int128)value * (end - begin) / (sum->end_ns - sum->start_ns) : 0;
}

uint64_t select_value(const struct profile *p, size_t i, enum role role, uint64_t from_ns, uint64_t to_ns)
{
	const struct profile_summed *sum = profile_summed_of(p, &p->samples.v[i]);
	uint64_t begin, end;

	if (!to_ns)
		to_ns = UINT64_MAX;
	if (sum)
		return select_part(p->samples.v[i].value, sum, from_ns, to_ns);
	select_span(p, i, role, &begin, &end);
	if (begin == end)
		return begin >= from_ns && begin < to_ns ? p->samples.v[i].value : 0;
	begin = MAX(begin, from_ns);
	end = MIN(end, to_ns);
	return begin < end ? end - begin : 0;
}

/* A pattern is the exact name, the number, or a glob. */
static bool matches(const char *const *patterns, const char *name, uint32_t number)
{
	char digits[16];

	if (!patterns)
		return true;
	snprintf(digits, sizeof(digits), "%u", number);
	for (; *patterns; patterns++)
		if (!strcmp(*patterns, name) || !strcmp(*patterns, digits) || !fnmatch(*patterns, name, 0))
			return true;
	return false;
}

/* Different names, sorted, "engine, rpc-1 and 12 more". */
static void list_names(struct buf *b, const char **names, size_t n)
{
	enum { SHOWN = 12 };
	size_t different = 0;

	qsort(names, n, sizeof(*names), str_order);
	for (size_t i = 0; i < n; i++) {
		if (i && !strcmp(names[i], names[i - 1]))
			continue;
		if (different < SHOWN)
			buf_printf(b, "%s%s", different ? ", " : "", names[i]);
		different++;
	}
	if (different > SHOWN)
		buf_printf(b, " and %zu more", different - SHOWN);
}

static int no_such(const struct profile *p, bool threads, const char *pattern, struct err *err)
{
	VEC(const char *) names = { 0 };
	_cleanup_(buf_done) struct buf list = { 0 };
	int r;

	for (size_t i = 0; threads && i < p->threads.n; i++)
		vec_push(&names, profile_str(p, p->threads.v[i].name));
	for (size_t i = 0; !threads && i < p->processes.n; i++)
		vec_push(&names, profile_str(p, p->processes.v[i].name));
	if (names.n)
		list_names(&list, names.v, names.n);
	r = err_set(err, ENODATA, "no %s '%s' in this recording: there is %s", threads ? "thread" : "process",
		    pattern, list.n ? list.data : "none");
	vec_done(&names);
	return r;
}

/* Two containers of one image have the same processes: their own names tell them apart. */
static bool owner_matches(const struct profile *p, const struct profile_process *process, const char *const *patterns)
{
	const struct profile_owner *o = process->owner && process->owner <= p->owners.n ?
						&p->owners.v[process->owner - 1] : NULL;

	return o && o->name && matches(patterns, profile_str(p, o->name), process->pid);
}

int select_threads(const struct profile *p, const struct select_options *o, uint8_t **ret, struct err *err)
{
	_cleanup_free_ uint8_t *picked = mem_alloc(p->threads.n + 1);
	bool any_thread = false, any_process = false;

	for (size_t i = 0; i < p->threads.n; i++) {
		const struct profile_thread *t = &p->threads.v[i];
		const struct profile_process *process =
			t->process < p->processes.n ? &p->processes.v[t->process] : NULL;
		bool by_thread = matches(o->threads, profile_str(p, t->name), t->tid) ||
				 (t->comm && matches(o->threads, profile_str(p, t->comm), t->tid));
		bool by_process = !o->processes || (process && (matches(o->processes,
					profile_str(p, process->name), process->pid) || owner_matches(p, process, o->processes)));

		any_thread |= by_thread;
		any_process |= by_process;
		picked[i] = by_thread && by_process;
	}
	if (p->samples.n && o->threads && !any_thread)
		return no_such(p, true, o->threads[0], err);
	if (p->samples.n && o->processes && !any_process)
		return no_such(p, false, o->processes[0], err);
	*ret = picked;
	picked = NULL;
	return 0;
}

/* Returns a byte for each stack node: whether a function of it, or of its callers, matches. NULL without a
 * regex. */
static int pick_stacks(const struct profile *p, const char *pattern, uint8_t **ret, struct err *err)
{
	_cleanup_free_ uint8_t *functions = NULL, *frames = NULL;
	char why[128];
	uint8_t *nodes;
	regex_t regex;
	int r;

	*ret = NULL;
	if (!pattern)
		return 0;
	r = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB);
	if (r) {
		regerror(r, &regex, why, sizeof(why));
		return err_set(err, EINVAL, "--function '%s' is not a regular expression: %s "
			       "(put \\ before a bracket that is meant literally)", pattern, why);
	}
	functions = mem_alloc(p->functions.n + 1);
	for (size_t i = 0; i < p->functions.n; i++)
		functions[i] = match_regex(&regex, profile_str(p, p->functions.v[i].name), 0, NULL);
	regfree(&regex);

	frames = mem_alloc(p->frames.n + 1);
	for (size_t i = 0; i < p->frames.n; i++)
		for (uint32_t k = 0; k < p->frames.v[i].line_count; k++)
			frames[i] |= functions[p->lines.v[p->frames.v[i].first_line + k].function];
	/* Parents come before their children. */
	nodes = mem_alloc(p->stacks.n + 1);
	for (size_t i = 1; i < p->stacks.n; i++)
		nodes[i] = nodes[p->stacks.v[i].parent] | frames[p->stacks.v[i].frame];
	*ret = nodes;
	return 0;
}

static char *seconds(char out[32], uint64_t ns)
{
	snprintf(out, 32, "%.4g", ns / 1e9);
	return out;
}

bool select_has_waits(const struct profile *p)
{
	for (size_t i = 0; i < p->events.n; i++)
		if (cause_role(p, i) == ROLE_WAIT)
			return true;
	return false;
}

/* Nothing matches: lists the events that were recorded. */
static int nothing_recorded(const struct profile *p, const struct selection *s, struct err *err)
{
	_cleanup_(buf_done) struct buf list = { 0 };
	_cleanup_free_ bool *seen = mem_alloc(p->events.n + 1);

	for (size_t i = 0; i < p->samples.n; i++)
		if (p->samples.v[i].event < p->events.n)
			seen[p->samples.v[i].event] = true;
	for (size_t i = 0; i < p->events.n; i++)
		if (seen[i])
			buf_printf(&list, "%s%s", list.n ? ", " : "", profile_str(p, p->events.v[i].name));
	return err_set(err, ENODATA, "no samples of '%s' were recorded: choose another with --what; there is %s", s->name,
		       list.n ? list.data : "nothing else either");
}

/* There are samples, but the filters leave none: says which one it is. */
static int nothing_left(const struct profile *p, const struct selection *s, size_t in_time,
			size_t in_threads, struct err *err)
{
	const struct select_options *o = &s->options;
	char a[32], b[32], c[32];

	if (!s->recorded.samples)
		return nothing_recorded(p, s, err);
	if (!in_time && o->to_ns)
		return err_set(err, ENODATA, "no samples between %s and %s s: the recording has 0-%s s",
			       seconds(a, o->from_ns), seconds(b, o->to_ns),
			       seconds(c, select_duration_ns(p)));
	if (!in_time)
		return err_set(err, ENODATA, "no samples after %s s: the recording has 0-%s s",
			       seconds(a, o->from_ns), seconds(c, select_duration_ns(p)));
	if (!in_threads && !s->waits && select_has_waits(p))
		return err_set(err, ENODATA, "the selected threads have no samples of '%s' there: "
			       "--what wait shows what they waited for", s->name);
	if (!in_threads)
		return err_set(err, ENODATA, "the selected threads have no samples there: "
			       "the table 'by thread' of `gasflame report` shows which ran");
	return err_set(err, ENODATA, "no function matches '%s': try a shorter piece of its name",
		       o->function);
}

/* Returns whether samples of this event are selected. */
static bool wants(const struct profile *p, const struct select_options *o, uint32_t event, enum role role)
{
	if (o->event == SELECT_WALL)
		return role != ROLE_OTHER;
	return o->event == SELECT_IO ? is_io(p, event) : event == o->event;
}

/* The collectors' own events, tracepoints and counted events are complete; all others are samples. */
static enum select_kind kind_of(const struct selection *s)
{
	static const struct {
		const char *name;
		enum select_kind kind;
	} known[] = {
		{ "io", SELECT_CALLS }, { "read", SELECT_CALLS }, { "write", SELECT_CALLS },
		{ "sync", SELECT_CALLS }, { "io-error", SELECT_CALLS }, { "major-faults", SELECT_FAULTS },
		{ "minor-faults", SELECT_FAULTS }, { "major-time", SELECT_FAULTS },
		{ "minor-time", SELECT_FAULTS }, { "reclaims", SELECT_RECLAIMS },
		{ "reclaim-time", SELECT_RECLAIMS }, { "heap", SELECT_OBJECTS }, { "alloc", SELECT_OBJECTS },
		{ "goroutine", SELECT_WAITS }, { "goroutine-queue", SELECT_WAITS }, { "goroutine-idle", SELECT_WAITS },
		{ "poll", SELECT_POLLS }, { "await", SELECT_AWAITS }, { "taskqueue", SELECT_TURNS }, { "spawn", SELECT_SPAWNS },
		{ "freed", SELECT_OBJECTS }, { "temporary", SELECT_OBJECTS }, { "peak", SELECT_OBJECTS },
	};

	if (s->waits)
		return SELECT_WAITS;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!strcmp(s->name, known[i].name))
			return known[i].kind;
	return str_starts(s->describe, "tracepoint,") || str_ends(s->describe, ", counted") ? SELECT_EVENTS :
											      SELECT_SAMPLES;
}

static void describe(const struct profile *p, struct selection *s)
{
	uint32_t event = s->options.event;
	enum role role = cause_role(p, event);

	s->waits = event == SELECT_WALL || role == ROLE_WAIT || role == ROLE_QUEUE;
	s->name = s->unit = s->describe = "";
	if (event < p->events.n) {
		s->name = profile_str(p, p->events.v[event].name);
		s->unit = profile_str(p, p->events.v[event].unit);
		s->describe = profile_str(p, p->events.v[event].describe);
	} else if (event == SELECT_WALL) {
		s->name = "wall";
		s->unit = "ns";
		s->describe = "all time of the threads, on the CPU and off it";
	} else if (event == SELECT_IO) {
		s->name = "io";
		s->unit = "bytes";
		s->describe = "bytes read and written, as the calls returned them";
	}
	s->kind = kind_of(s);
}

static void add_moment(struct selection *ret, const struct profile *p, const struct select_hit *hit, uint32_t entry)
{
	const struct select_options *o = &ret->options;
	struct select_moment m = { .weight = hit->weight, .entry = entry };

	select_span(p, hit->index, hit->role, &m.begin_ns, &m.end_ns);
	m.begin_ns = MAX(m.begin_ns, o->from_ns);
	if (o->to_ns)
		m.end_ns = MIN(m.end_ns, o->to_ns);
	vec_push(&ret->moments, m);
}

/* Counts what each filter leaves, for the message that explains an empty selection. */
struct walk {
	struct weight recorded;
	size_t in_time, in_threads;
};

/* A stack without the scheduler's functions. trimmed: by stack, what was found before, plus 1. */
static uint32_t trim(const struct profile *p, uint32_t stack, uint32_t *trimmed)
{
	if (!trimmed[stack])
		trimmed[stack] = cause_trim(p, stack) + 1;
	return trimmed[stack] - 1;
}

static struct select_hit make_hit(const struct profile *p, const struct select_options *o, size_t i,
				  enum role role, uint64_t value, uint32_t *trimmed)
{
	const struct profile_sample *s = &p->samples.v[i];
	struct select_hit hit = { .index = i, .role = role, .stack = s->stack,
				  .weight = { s->count ? s->count : 1, value, 1 } };

	/* Of a slot's sum the range may have a part only. */
	if (s->count > 1 && value < s->value)
		hit.weight.samples = MAX((unsigned __int128)s->count * value / s->value, 1);
	if (o->causes)
		hit.cause = causes_of(o->causes, s);
	if (role == ROLE_WAIT || role == ROLE_QUEUE)
		hit.stack = trim(p, s->stack, trimmed);
	hit.idle = role == ROLE_WAIT && hit.cause == CAUSE_IDLE && !o->idle;
	return hit;
}

static int walk_samples(const struct profile *p, const struct select_options *o, struct walk *w,
			select_fn *fn, void *context, struct err *err)
{
	_cleanup_free_ uint8_t *threads = NULL, *stacks = NULL;
	_cleanup_free_ enum role *roles = mem_alloc((p->events.n + 1) * sizeof(*roles));
	_cleanup_free_ uint32_t *trimmed = mem_alloc((p->stacks.n + 1) * sizeof(*trimmed));
	int r;

	if (o->to_ns && o->from_ns >= o->to_ns)
		return err_set(err, EINVAL, "--from is not before --to: nothing lies between them");
	r = select_threads(p, o, &threads, err);
	if (!r)
		r = pick_stacks(p, o->function, &stacks, err);
	if (r)
		return r;
	for (size_t i = 0; i < p->events.n; i++)
		roles[i] = cause_role(p, i);

	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		enum role role = s->event < p->events.n ? roles[s->event] : ROLE_OTHER;
		uint64_t value = s->value;
		struct select_hit hit;

		if (!wants(p, o, s->event, role))
			continue;
		w->recorded.samples += s->count ? s->count : 1;
		w->recorded.value += s->value;
		w->recorded.taken++;
		if (o->from_ns || o->to_ns) {
			value = select_value(p, i, role, o->from_ns, o->to_ns);
			if (!value && (s->value || s->time_ns < o->from_ns ||
				       (o->to_ns && s->time_ns >= o->to_ns)))
				continue;
		}
		w->in_time++;
		if (!threads[s->thread])
			continue;
		w->in_threads++;
		if (stacks && !stacks[s->stack])
			continue;
		hit = make_hit(p, o, i, role, value, trimmed);
		fn(context, &hit);
	}
	return 0;
}

int select_each(const struct profile *p, const struct select_options *o, select_fn *fn, void *context,
		struct err *err)
{
	struct walk w = { 0 };

	return walk_samples(p, o, &w, fn, context, err);
}

struct adding {
	const struct profile *p;
	struct selection *s;
	/* Finds an entry: 1 + its number, 0 = free. At most half of the slots are used. A long recording has millions of
	 * entries: four bytes for each slot, as the key is in the entry. */
	uint32_t *slots;
	size_t slot_count;
};

static bool same_entry(const struct select_entry *a, const struct select_entry *b)
{
	return a->thread == b->thread && a->stack == b->stack && a->cause == b->cause;
}

/* The slot of an entry, or the free one where it belongs. */
static uint32_t *slot_of(const struct adding *a, const struct select_entry *e)
{
	size_t mask = a->slot_count - 1;
	size_t at = map_hash(map_pair(e->thread, e->stack) ^ (uint64_t)e->cause << 56) & mask;

	while (a->slots[at] && !same_entry(&a->s->entries.v[a->slots[at] - 1], e))
		at = (at + 1) & mask;
	return &a->slots[at];
}

static void add_slots(struct adding *a)
{
	free(a->slots);
	a->slot_count = MAX(a->slot_count * 2, (size_t)SLOTS_LEAST);
	a->slots = mem_alloc(a->slot_count * sizeof(*a->slots));
	for (size_t i = 0; i < a->s->entries.n; i++)
		*slot_of(a, &a->s->entries.v[i]) = i + 1;
}

/* The number of the entry, which is added if it is new. */
static uint32_t entry_of(struct adding *a, const struct select_entry *e)
{
	uint32_t *slot;

	if (a->s->entries.n >= a->slot_count / 2)
		add_slots(a);
	slot = slot_of(a, e);
	if (!*slot) {
		vec_push(&a->s->entries, *e);
		*slot = a->s->entries.n;
	}
	return *slot - 1;
}

static void add_weight(struct weight *to, const struct weight *w)
{
	weight_add(to, w);
	to->taken += w->taken;
}

static void add_hit(void *context, const struct select_hit *hit)
{
	struct adding *a = context;
	struct select_entry e = { .thread = a->p->samples.v[hit->index].thread, .stack = hit->stack,
				  .cause = hit->cause };
	size_t at;

	if (hit->idle) {
		add_weight(&a->s->idle, &hit->weight);
		return;
	}
	/* Stacks that differed only in trimmed frames become one. */
	at = entry_of(a, &e); /* the list may move */
	add_weight(&a->s->entries.v[at].weight, &hit->weight);
	add_weight(&a->s->all, &hit->weight);
	if (a->s->options.moments)
		add_moment(a->s, a->p, hit, at);
}

int selection_make(const struct profile *p, const struct select_options *o, struct selection *ret,
		   struct err *err)
{
	struct adding a = { .p = p, .s = ret };
	struct walk w = { 0 };
	int r;

	*ret = (struct selection){ .options = *o };
	describe(p, ret);
	r = walk_samples(p, o, &w, add_hit, &a, err);
	free(a.slots);
	if (r)
		return r;
	ret->recorded = w.recorded;
	if (p->samples.n && !ret->all.samples && !ret->idle.samples)
		return nothing_left(p, ret, w.in_time, w.in_threads, err);
	return 0;
}

void selection_done(struct selection *s)
{
	vec_done(&s->entries);
	free(s->shaped);
	vec_done(&s->moments);
	*s = (struct selection){ 0 };
}
