#include "analyze/select.h"

#include <errno.h>
#include <fnmatch.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "profile/profile.h"

int select_event(const struct profile *p, const char *name, uint32_t *ret, struct err *err)
{
	struct buf list = { 0 };
	int r;

	*ret = 0;
	if (!name)
		return 0;
	for (size_t i = 0; i < p->events.n; i++)
		if (!strcmp(profile_str(p, p->events.v[i].name), name)) {
			*ret = i;
			return 0;
		}
	for (size_t i = 0; i < p->events.n; i++)
		buf_printf(&list, "%s%s", i ? ", " : "", profile_str(p, p->events.v[i].name));
	r = err_set(err, ENOENT, "nothing called '%s' was recorded: there is %s", name,
		    list.n ? list.data : "nothing");
	buf_done(&list);
	return r;
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

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Different names, sorted, "engine, rpc-1 and 12 more". */
static void list_names(struct buf *b, const char **names, size_t n)
{
	enum { SHOWN = 12 };
	size_t different = 0;

	qsort(names, n, sizeof(*names), compare_names);
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
	struct buf list = { 0 };
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
	buf_done(&list);
	return r;
}

/* One byte a thread: is it selected? */
static int pick_threads(const struct profile *p, const struct select_options *o, uint8_t **ret,
			struct err *err)
{
	_cleanup_free_ uint8_t *picked = mem_alloc(p->threads.n + 1);
	bool any_thread = false, any_process = false;

	for (size_t i = 0; i < p->threads.n; i++) {
		const struct profile_thread *t = &p->threads.v[i];
		const struct profile_process *process =
			t->process < p->processes.n ? &p->processes.v[t->process] : NULL;
		bool by_thread = matches(o->threads, profile_str(p, t->name), t->tid);
		bool by_process = !o->processes || (process && matches(o->processes,
					profile_str(p, process->name), process->pid));

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

/* One byte a stack node: does a function of it, or of its callers, match? NULL without a regex. */
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
		functions[i] = !regexec(&regex, profile_str(p, p->functions.v[i].name), 0, NULL, 0);
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

/* There are samples, but the filters leave none: says which one it is. */
static int nothing_left(const struct profile *p, const struct select_options *o, size_t of_event,
			size_t in_time, size_t in_threads, struct err *err)
{
	char a[32], b[32], c[32];
	const char *event = o->event < p->events.n ? profile_str(p, p->events.v[o->event].name) : "";

	if (!of_event)
		return err_set(err, ENODATA, "no samples of '%s' were recorded: choose another with --what",
			       event);
	if (!in_time && o->to_ns)
		return err_set(err, ENODATA, "no samples between %s and %s s: the recording has 0-%s s",
			       seconds(a, o->from_ns), seconds(b, o->to_ns),
			       seconds(c, select_duration_ns(p)));
	if (!in_time)
		return err_set(err, ENODATA, "no samples after %s s: the recording has 0-%s s",
			       seconds(a, o->from_ns), seconds(c, select_duration_ns(p)));
	if (!in_threads)
		return err_set(err, ENODATA, "the selected threads have no samples there: "
			       "the table 'by thread' of `gasflame report` shows which ran");
	return err_set(err, ENODATA, "no function matches '%s': try a shorter piece of its name",
		       o->function);
}

int selection_make(const struct profile *p, const struct select_options *o, struct selection *ret,
		   struct err *err)
{
	_cleanup_free_ uint8_t *threads = NULL, *stacks = NULL;
	uint64_t to_ns = o->to_ns ? o->to_ns : UINT64_MAX;
	size_t in_time = 0, in_threads = 0;
	struct map index = { 0 };
	int r;

	*ret = (struct selection){ .options = *o };
	if (o->from_ns >= to_ns)
		return err_set(err, EINVAL, "--from is not before --to: nothing lies between them");
	r = pick_threads(p, o, &threads, err);
	if (!r)
		r = pick_stacks(p, o->function, &stacks, err);
	if (r)
		return r;

	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		struct weight *w;
		uint64_t *id;

		if (s->event != o->event)
			continue;
		ret->recorded.samples++;
		ret->recorded.value += s->value;
		if (s->time_ns < o->from_ns || s->time_ns >= to_ns)
			continue;
		in_time++;
		if (!threads[s->thread])
			continue;
		in_threads++;
		if (stacks && !stacks[s->stack])
			continue;
		id = map_put(&index, map_pair(s->thread, s->stack), PROFILE_NONE);
		if (*id == PROFILE_NONE) {
			*id = ret->entries.n;
			vec_push(&ret->entries,
				 (struct select_entry){ .thread = s->thread, .stack = s->stack });
		}
		w = &ret->entries.v[*id].weight;
		w->samples++;
		w->value += s->value;
		ret->all.samples++;
		ret->all.value += s->value;
	}
	map_done(&index);
	if (p->samples.n && !ret->all.samples)
		return nothing_left(p, o, ret->recorded.samples, in_time, in_threads, err);
	return 0;
}

void selection_done(struct selection *s)
{
	vec_done(&s->entries);
	*s = (struct selection){ 0 };
}
