#include "import/text/perfscript.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/lines.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "folded/collapse/perfline.h"
#include "import/frames.h"
#include "import/import.h"
#include "profile/schedwaits.h"
#include "import/text/perfhead.h"
#include "import/text/perfstack.h"
#include "import/text/perfwait.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum { LARGEST_STACK = 256 << 20 };

struct script_event {
	uint32_t event;
	uint64_t total;
	uint64_t period; /* of its first sample; 0: they differ */
	uint64_t samples;
	bool fixed;      /* the header says what its period is */
};

struct script {
	struct profile *p;
	struct frames frames;
	struct perfstack stacks;
	struct schedwaits waits;
	struct perfhead head;
	struct map pids, tids, threads; /* pid to process; pid and tid, and comm with these, to thread */
	struct map names;               /* of events, to their index */
	VEC(struct script_event) events;
	uint64_t first_ns, last_ns;
	bool timed;

	/* The record that is being read. */
	bool open;
	struct perfline_record record; /* its texts are in line */
	struct buf line, text;
};

/* --- threads --- */

static uint32_t process_of(struct script *s, uint32_t pid, uint32_t tid, uint32_t comm)
{
	uint64_t *id = map_put(&s->pids, pid, PROFILE_NONE);

	if (*id == PROFILE_NONE)
		*id = profile_add_process(s->p, &(struct profile_process){ .pid = pid, .name = comm });
	if (pid == tid && comm)
		s->p->processes.v[*id].name = comm;
	return *id;
}

/* Threads of one tid and two names are two: a program was executed between them, and perf counts them apart. */
static uint32_t thread_of(struct script *s, const struct perfline_record *r)
{
	uint32_t comm = strtab_add_n(&s->p->strings, r->comm.s, r->comm.n);
	uint64_t *node = map_put(&s->tids, map_pair(r->pid, r->tid), s->tids.n);
	uint64_t *id = map_put(&s->threads, map_pair(*node, comm), PROFILE_NONE);

	if (*id == PROFILE_NONE)
		*id = profile_add_thread(s->p, &(struct profile_thread){ .process = process_of(s, r->pid, r->tid, comm), .tid = r->tid,
									 .name = comm });
	return *id;
}

/* --- events --- */

/* A name without its modifiers: "cpu-clock:ppp". */
static bool is_event(struct perfline_text t, const char *name)
{
	size_t n = strlen(name);

	return t.n >= n && !memcmp(t.s, name, n) && (t.n == n || t.s[n] == ':' || t.s[n] == '/');
}

static uint32_t add_event(struct script *s, const char *name, const struct perfline_record *r)
{
	struct profile *p = s->p;
	bool clock = is_event(r->event, "cpu-clock") || is_event(r->event, "task-clock");
	bool waits = is_event(r->event, "offcpu-time");
	_cleanup_free_ char *describe = NULL;

	if (s->head.ours && profile_find_event(p, name, NULL) != PROFILE_NONE)
		return profile_find_event(p, name, NULL);
	if (clock && r->weighted && profile_find_event(p, "cpu", NULL) == PROFILE_NONE) {
		describe = mem_printf("CPU time by perf's %s", name);
		return profile_add_event(p, "cpu", "ns", describe, 0);
	}
	if (waits && r->weighted && s->waits.wait_event == PROFILE_NONE) {
		schedwaits_add_events(&s->waits, SCHED_OFFCPU);
		return s->waits.wait_event;
	}
	return profile_add_event(p, name, (clock || waits) && r->weighted ? "ns" : "count", "", 0);
}

static struct script_event *event_of(struct script *s, const struct perfline_record *r)
{
	_cleanup_free_ char *name = r->event.s ? mem_strndup(r->event.s, r->event.n) : mem_strdup("samples");
	uint64_t *at = map_put(&s->names, profile_string(s->p, name), s->events.n);

	if (*at == s->events.n) {
		struct script_event e = { .event = add_event(s, name, r) };

		e.fixed = s->p->events.v[e.event].period;
		vec_push(&s->events, e);
	}
	return &s->events.v[*at];
}

/* --- records --- */

/* The one frame of a line without a stack: "7fab33998f5d f+0xb5d (/usr/lib/libc.so.6)". */
static void take_inline_frame(struct script *s, struct perfline_text rest)
{
	struct perfline_frame f;

	if (!rest.n || rest.s[rest.n - 1] != ')' || !perfline_frame(rest.s, rest.n, &f) || f.pc.n < 3)
		return;
	for (size_t i = 0; i < f.pc.n; i++)
		if (!strchr("0123456789abcdef", f.pc.s[i]))
			return;
	buf_putc(&s->text, '\t');
	buf_add(&s->text, rest.s, rest.n);
	buf_putc(&s->text, '\n');
}

static void note_time(struct script *s, const struct perfline_record *r)
{
	if (!r->timed)
		return;
	s->first_ns = s->timed ? MIN(s->first_ns, r->time_ns) : r->time_ns;
	s->last_ns = s->timed ? MAX(s->last_ns, r->time_ns) : r->time_ns;
	s->timed = true;
}

static int check_waits(const struct script *s, uint64_t line, struct err *err)
{
	return !s->waits.overflow ? 0 : err_set(err, ERANGE, "line %llu: the waits add up to more than can be counted", (unsigned long long)line);
}

static int end_record(struct script *s, uint64_t line, struct err *err)
{
	const struct perfline_record *r = &s->record;
	uint64_t value = r->period ? r->period : 1;
	struct script_event *e;
	uint32_t stack, thread;

	if (!s->open)
		return 0;
	s->open = false;
	thread = thread_of(s, r);
	if (!s->text.n)
		take_inline_frame(s, r->rest);
	stack = perfstack_make(&s->stacks, s->text.n ? s->text.data : "", s->text.n);
	note_time(s, r);
	if (perfwait_take(&s->waits, r, thread, stack))
		return check_waits(s, line, err);
	e = event_of(s, r);
	if (e->event == s->waits.wait_event) {
		schedwaits_waited(&s->waits, thread, stack, r->timed ? r->time_ns : 0, value);
		return check_waits(s, line, err);
	}
	if (__builtin_add_overflow(e->total, value, &e->total) || e->total > INT64_MAX)
		return err_set(err, ERANGE, "line %llu: the periods add up to more than can be counted", (unsigned long long)line);
	e->period = !e->samples++ || e->period == value ? value : 0;
	profile_add_sample(s->p, &(struct profile_sample){ .time_ns = r->timed ? r->time_ns : 0, .value = value, .thread = thread,
							   .stack = stack, .event = e->event });
	return 0;
}

/* The texts of the record move with the copy of its line. */
static void begin_record(struct script *s, const char *line, size_t n, const struct perfline_record *r)
{
	struct perfline_text *texts[] = { &s->record.comm, &s->record.event, &s->record.rest };

	s->line.n = s->text.n = 0;
	buf_add(&s->line, line, n);
	s->record = *r;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (texts[i]->s)
			texts[i]->s = s->line.data + (texts[i]->s - line);
	s->open = true;
}

/* Does a sample begin here? Lines of frames begin with a tab, or, in old versions, with spaces. */
static bool is_record(const char *line, size_t n, struct perfline_record *r)
{
	if (*line == '\t' || (*line == ' ' && line[n - 1] != ':' && !memmem(line, n, ": ", 2)))
		return false;
	return perfline_record(line, n, r) && (*line != ' ' || r->timed || r->cpu != UINT32_MAX);
}

static int take_line(struct script *s, const struct lines *t, char *line, size_t n, struct err *err)
{
	struct perfline_record r;
	int result;

	if (!n)
		return end_record(s, t->number, err);
	if (*line == '#') {
		perfhead_take(&s->head, line);
		s->stacks.in_modules = s->head.ours;
		return 0;
	}
	if (is_record(line, n, &r)) {
		result = end_record(s, t->number, err);
		begin_record(s, line, n, &r);
		return result;
	}
	if (!s->open || !perfline_space(*line)) {
		s->stacks.unknown_lines++;
		return 0;
	}
	if (s->text.n + n > LARGEST_STACK)
		return err_set(err, EFBIG, "line %llu: its stack is longer than %d MB", (unsigned long long)t->number, LARGEST_STACK >> 20);
	buf_add(&s->text, line, n);
	buf_putc(&s->text, '\n');
	return 0;
}

/* --- the whole --- */

/* Times since the first sample. */
static void move_times(struct script *s)
{
	struct profile *p = s->p;
	uint64_t first = s->head.ours ? 0 : s->first_ns;

	for (size_t i = 0; i < p->samples.n; i++)
		p->samples.v[i].time_ns -= MIN(first, p->samples.v[i].time_ns);
	for (size_t i = 0; i < p->wakes.n; i++)
		p->wakes.v[i].time_ns -= MIN(first, p->wakes.v[i].time_ns);
	p->duration_ns = MAX(p->duration_ns, s->last_ns - first);
}

static int finish(struct script *s, const char *name, struct err *err)
{
	struct profile *p = s->p;

	schedwaits_end(&s->waits, s->last_ns);
	if (s->waits.overflow)
		return err_set(err, ERANGE, "the waits add up to more than can be counted");
	if (!p->samples.n)
		return err_set(err, EINVAL, "there is no sample in it");
	for (size_t i = 0; i < s->events.n; i++)
		if (!s->events.v[i].fixed && s->events.v[i].event != s->waits.wait_event && !s->head.ours)
			p->events.v[s->events.v[i].event].period = s->events.v[i].period;
	move_times(s);
	if (!p->target)
		p->target = profile_string(p, name);
	if (!s->head.ours)
		profile_count(p, KEY_IMPORT_CHAINS, p->samples.n);
	if (s->waits.unended)
		profile_count(p, KEY_IMPORT_WAITS_UNENDED, s->waits.unended);
	if (s->stacks.unknown_lines)
		profile_count(p, KEY_IMPORT_LINES_IGNORED, s->stacks.unknown_lines);
	p->finished = true;
	return 0;
}

static int read_all(struct script *s, const struct import_input *in, struct err *err)
{
	struct lines t = lines_of(in->stream);
	char *line;
	size_t n;
	int r;

	while ((r = lines_next(&t, &line, &n, err)) > 0 && !(r = take_line(s, &t, line, n, err)))
		;
	if (!r)
		r = end_record(s, t.number, err);
	lines_done(&t);
	return r ? r : finish(s, in->name, err);
}

int perfscript_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct profile *p = profile_new();
	struct script s = { .p = p, .head = { .p = p } };
	int r;

	frames_init(&s.frames, p);
	perfstack_init(&s.stacks, &s.frames);
	schedwaits_init(&s.waits, p);
	r = read_all(&s, in, err);
	schedwaits_done(&s.waits);
	perfstack_done(&s.stacks);
	frames_done(&s.frames);
	map_done(&s.pids);
	map_done(&s.tids);
	map_done(&s.threads);
	map_done(&s.names);
	vec_done(&s.events);
	buf_done(&s.line);
	buf_done(&s.text);
	if (r)
		profile_free(p);
	else
		*ret = p;
	return r;
}

/* The first line that is no comment begins a sample: with a time or a processor, and an event or a frame; or frames follow. */
bool perfscript_probe(const char *data, size_t n, bool whole)
{
	struct perfline_record r;
	size_t at = 0;
	bool head = false;
	int others = 0; /* lines of the head: those of a command line that has line breaks */

	while (at < n) {
		const char *s = data + at, *newline = memchr(s, '\n', n - at);
		size_t length = newline ? (size_t)(newline - s) : n - at;

		at += length + 1;
		if (!newline && !whole)
			return false;
		if (length && s[length - 1] == '\r')
			length--;
		head |= length && *s == '#';
		if (!length || *s == '#')
			continue;
		if (!is_record(s, length, &r)) {
			if (!head || others++ > 100)
				return false;
			continue;
		}
		if (r.timed && (r.event.s || r.rest.n))
			return true;
		return (r.timed || r.event.s) && at < n && (data[at] == '\t' || data[at] == ' ');
	}
	return false;
}
