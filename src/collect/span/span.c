/*
 * span.c - the span collector: marks from entry and return of functions (--mark-function), and from the program itself
 * (include/gasflame.h).
 *
 * Probes are on files (elf/probe/probesites.h, elf/probe/usdt.h say where): other processes that run the same file pay for
 * the trap, and are not recorded. No stack is taken. What comes more often than SPANS a second is not kept, and a function
 * that is passed more often than HITS a second loses its probes; both are said.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/process/codefiles.h"
#include "collect/collector.h"
#include "collect/bpfengine.h"
#include "collect/blocks/blockmarks.h"
#include "collect/probestack.h"
#include "collect/process/processes.h"
#include "collect/sharedspan.h"
#include "collect/blocks/spanjoin.h"
#include "collect/span/spanset.h"
#include "collect/uprobes.h"
#include "elf/probe/probesites.h"
#include "elf/probe/usdt.h"
#include "elf/worker/worker.h"
#include "profile/keys.h"
#include "profile/profile.h"

#include "gasflame.skel.h"

enum { SPANS = 2000, HITS = 4000, LOOK_TICKS = 5, CALM_NS = 200000000 };

/* Words of struct pt_regs with the first two arguments. */
#ifdef __aarch64__
enum { REGS_1ST = 0, REGS_2ND = 1 };
#else
enum { REGS_1ST = 14, REGS_2ND = 13 };
#endif

struct function {
	char name[64];
	bool block;
	bool given_up;
	uint64_t hits; /* at the last look */
};

struct probes {
	struct uprobes *probes; /* NULL: taken away again */
	uint32_t function;      /* UINT32_MAX: the program's own */
	uint32_t first, count;  /* cookies */
};

struct spans {
	struct spanset set;
	struct codefiles files;
	struct spanjoin *join;
	VEC(struct function) functions;
	VEC(struct probes) probes;
	uint32_t place_count;     /* cookies that are given out */
	unsigned ticks;
	bool off;                 /* this kernel is not known to bear our probes */
	uint64_t calmed_ns;       /* when it was last looked at how often they are passed */
	uint64_t own;             /* places of the program that speak */
	uint64_t unplaced;        /* that there was no room for, or that were odd */
	uint64_t files_without_names;
	struct buf refused;       /* functions that were found and cannot be used, and why */
};

static struct spans *own(const struct session *s)
{
	return s->state[COLLECTOR_span];
}

/* --- probes --- */

/* Places of one file that come and go together. */
struct batch {
	uint64_t offsets[USDT_PLACES], cookies[USDT_PLACES];
	size_t n;
};
_Static_assert((int)USDT_PLACES > PROBESITES_OUT, "room for a function");

static int add_place(struct session *s, struct batch *b, uint64_t offset, const struct shared_span_probe *p, struct err *err)
{
	int fd = bpf_map__fd(bpfengine_skeleton(s->engine)->maps.span_probes);
	uint32_t cookie = own(s)->place_count;

	if (cookie >= SHARED_SPAN_PROBES)
		return err_set(err, E2BIG, "there are more places to probe than the %d that there is room for: mark fewer functions",
			       SHARED_SPAN_PROBES);
	if (bpf_map_update_elem(fd, &cookie, p, BPF_ANY))
		return err_errno(err, errno, "cannot fill in a BPF map");
	own(s)->place_count++;
	b->offsets[b->n] = offset;
	b->cookies[b->n++] = cookie;
	return 0;
}

static int attach(struct session *s, int fd, const struct batch *b, uint32_t function, struct err *err)
{
	struct probes p = { .function = function, .first = b->n ? b->cookies[0] : 0, .count = b->n };
	int r = b->n ? uprobes_attach(bpfengine_skeleton(s->engine)->progs.on_span, fd, b->offsets, b->cookies, b->n,
	                              &p.probes, err)
	             : 0;

	if (!r && b->n)
		vec_push(&own(s)->probes, p);
	return r;
}

static int attach_function(struct session *s, int fd, const struct probesites *d, bool block, struct err *err)
{
	struct spans *a = own(s);
	struct shared_span_probe p = { .what = SPAN_LEAVE, .function = a->functions.n, .state = d->state,
				       .words = { SHARED_SPAN_NONE } };
	struct function f = { .block = block };
	_cleanup_free_ struct batch *b = mem_alloc(sizeof(*b));
	int r = 0;

	if (d->trouble) {
		buf_printf(&a->refused, "%s%.120s: %s", a->refused.n ? "; " : "", d->name,
		           probesites_trouble_text(d->trouble));
		return 0;
	}
	for (uint32_t i = 0; i < d->out_count && !r; i++)
		r = add_place(s, b, d->out[i], &p, err);
	p.what = SPAN_ENTER;
	p.depth = d->depth;
	p.link = d->link;
	if (d->future)
		p.words[0] = d->future == PROBESITES_FUTURE_1ST ? REGS_1ST : REGS_2ND;
	if (!r)
		r = add_place(s, b, d->in, &p, err);
	if (!r)
		r = attach(s, fd, b, a->functions.n, err);
	if (r)
		return err ? err_prefix(err, "%.120s", d->name) : r;
	spanset_mark_name(&a->set.patterns.v[d->pattern], d->name, f.name, sizeof(f.name));
	vec_push(&a->functions, f);
	if (f.block && s->mark)
		blockmarks_expect_spans(s->mark);
	a->set.patterns.v[d->pattern].functions++;
	log_debug("marking %s: %u ways out%s", d->name, d->out_count, d->future ? ", a future" : "");
	return 0;
}

/* More than there is room for: the user must say more of the name. */
static int too_many(const struct spans *a, const struct probesites_info *info, struct err *err)
{
	for (size_t i = 0; i < a->set.patterns.n; i++) {
		_cleanup_(buf_done) struct buf some = { 0 };
		unsigned n = 0;

		if (info->matched[i] <= PROBESITES_FUNCTIONS / 2 || a->set.patterns.v[i].known)
			continue;
		for (uint32_t k = 0; k < info->count && n < 3; k++)
			if (info->list[k].pattern == i && ++n)
				buf_printf(&some, "%s%.100s", n > 1 ? ", " : "", info->list[k].name);
		return err_set(err, EINVAL, "--mark-function %s: %llu functions have that in their names (%s, ...); say more of it",
			       a->set.patterns.v[i].text, (unsigned long long)info->matched[i], some.n ? some.data : "");
	}
	return 0;
}

static int mark_functions(struct session *s, int fd, struct err *err)
{
	_cleanup_free_ struct probesites_info *info = mem_alloc(sizeof(*info));
	_cleanup_(buf_done) struct buf text = { 0 };
	enum spanset_use uses[PROBESITES_FUNCTIONS];
	struct err why = { 0 };
	int r;

	for (size_t i = 0; i < own(s)->set.patterns.n; i++)
		buf_add(&text, own(s)->set.patterns.v[i].text, strlen(own(s)->set.patterns.v[i].text) + 1);
	if (!text.n)
		return 0;
	r = worker_probesites(s->worker, fd, text.data, text.n, info, &why);
	if (r == -ENOTSUP && s->options->function_count)
		return err_set(err, ENOTSUP, "--mark-function: %s", why.text);
	if (r == -ETIMEDOUT || r == -ECHILD)
		log_warn("functions to mark were not found in a file of the target: %s", why.text);
	if (r < 0)
		return 0; /* not one that we can read: there are others */
	own(s)->files_without_names += !info->functions;
	r = too_many(own(s), info, err);
	/* Before the first is attached: functions then count as found in another file. */
	for (uint32_t i = 0; i < info->count; i++)
		uses[i] = spanset_use(&own(s)->set, info, info->list[i].pattern);
	for (uint32_t i = 0; i < info->count && !r; i++)
		if (uses[i] != SPANSET_NOT)
			r = attach_function(s, fd, &info->list[i], uses[i] == SPANSET_BLOCK, err);
	return r;
}

static int listen_to_program(struct session *s, int fd, struct err *err)
{
	static const uint32_t whats[] = { [USDT_BEGIN] = SPAN_BEGIN, [USDT_END] = SPAN_END, [USDT_MARK] = SPAN_MARK,
					  [USDT_BLOCK_END] = SPAN_BLOCK_END };
	_cleanup_free_ struct usdt_info *info = mem_alloc(sizeof(*info));
	_cleanup_free_ struct batch *b = mem_alloc(sizeof(*b));
	int r = 0;

	if (worker_usdt(s->worker, fd, info, NULL) < 0)
		return 0;
	own(s)->unplaced += info->beyond + info->odd;
	for (uint32_t i = 0; i < info->count && !r; i++) {
		struct shared_span_probe p = { .what = whats[info->list[i].what] };

		for (unsigned k = 0; k < USDT_ARGUMENTS; k++)
			p.words[k] = MIN(info->list[i].arguments[k], (uint32_t)SHARED_SPAN_NONE);
		r = add_place(s, b, info->list[i].offset, &p, err);
		own(s)->own += !r;
		if (p.what == SPAN_BLOCK_END && s->mark)
			blockmarks_expect_spans(s->mark);
	}
	return r ? r : attach(s, fd, b, UINT32_MAX, err);
}

static int look_at_file(void *context, int fd, const char *path, struct err *err)
{
	struct session *s = context;
	int r = mark_functions(s, fd, err);

	return r ? r : listen_to_program(s, fd, err);
}

/* --- spans --- */

static void add_mark(struct session *s, const struct span *x, const char *kind, const char *called, uint32_t thread)
{
	struct profile *p = s->profile;
	struct profile_mark m = { .thread = thread, .kind = profile_string(p, kind) };
	char name[128];

	if (x->start_ns < s->start_mono_ns)
		return;
	snprintf(name, sizeof(name), "%.80s", called);
	if (x->block.known & BLOCK_NUMBER && x->block.number <= INT64_MAX)
		snprintf(name, sizeof(name), "%.80s %llu", called, (unsigned long long)x->block.number);
	m.name = profile_string(p, name);
	m.start_ns = x->start_ns - s->start_mono_ns;
	m.end_ns = x->end_ns - s->start_mono_ns;
	/* Numbers that SQLite cannot store are unknown. */
	if (x->block.number <= INT64_MAX && x->block.gas <= INT64_MAX && x->block.transactions <= INT64_MAX)
		m.block = x->block;
	profile_add_mark(p, &m);
}

static void got_span(void *context, const struct span *x)
{
	struct session *s = context;
	const struct function *f = x->function < own(s)->functions.n ? &own(s)->functions.v[x->function] : NULL;
	uint32_t thread = processes_thread(s->processes, x->pid, x->tid, "", x->end_ns);
	bool block = f ? f->block : !strcmp(x->name, "block") && x->start_ns < x->end_ns;

	if (block && s->mark)
		blockmarks_add_span(s->mark, x, profile_string(s->profile, f ? f->name : "block"), thread);
	else
		add_mark(s, x, block ? "block" : f ? f->name : *x->name ? x->name : "mark", f ? f->name : *x->name ? x->name : "mark",
			 thread);
}

/* A function that is passed too often costs more than its marks are worth: a return takes some 10 us in a virtual
 * machine. */
static void calm_down(struct session *s, uint64_t now)
{
	struct spans *a = own(s);
	uint64_t passed_ns = now > a->calmed_ns ? now - a->calmed_ns : 0;
	int fd = bpf_map__fd(bpfengine_skeleton(s->engine)->maps.span_probes);
	_cleanup_free_ uint64_t *hits = mem_alloc((a->functions.n + 1) * sizeof(*hits));

	if (passed_ns < CALM_NS)
		return;
	a->calmed_ns = now;
	for (size_t i = 0; i < a->probes.n; i++)
		for (uint32_t k = 0, key; k < a->probes.v[i].count; k++) {
			struct shared_span_probe p;

			key = a->probes.v[i].first + k;
			if (a->probes.v[i].function < a->functions.n && !bpf_map_lookup_elem(fd, &key, &p))
				hits[a->probes.v[i].function] += p.hits;
		}
	for (uint32_t f = 0; f < a->functions.n; f++) {
		uint64_t since = hits[f] - a->functions.v[f].hits;

		a->functions.v[f].hits = hits[f];
		if (since <= HITS * (passed_ns / 1e9) || a->functions.v[f].given_up)
			continue;
		a->functions.v[f].given_up = true;
		for (size_t i = 0; i < a->probes.n; i++)
			if (a->probes.v[i].function == f) {
				uprobes_detach(a->probes.v[i].probes);
				a->probes.v[i].probes = NULL;
			}
		profile_count(s->profile, KEY_MARKS_FUNCTIONS_GIVEN_UP, 1);
		log_warn("%s is called too often to be marked (its probes were passed %.0f times a second, %d is the most): its "
			 "marks end here", a->functions.v[f].name, since / (passed_ns / 1e9), HITS);
	}
}

static void record(struct session *s, const void *data, size_t size)
{
	const struct shared_span *r = data;

	if (size < sizeof(*r))
		return;
	spanjoin_take(own(s)->join, r);
	calm_down(s, r->end_ns);
}

/* --- its life --- */

static int look_at(struct session *s, pid_t pid, struct err *err)
{
	return own(s)->off ? 0 : codefiles_of_process(&own(s)->files, pid, look_at_file, s, err);
}

/* Functions that the user named must exist. */
static int check_found(const struct spans *a, struct err *err)
{
	for (size_t i = 0; i < a->set.patterns.n; i++) {
		const struct spanset_pattern *p = &a->set.patterns.v[i];

		if (p->optional || spanset_found(&a->set, i))
			continue;
		if (a->refused.n)
			return err_set(err, ENOENT, "--mark-function %s: %.300s; name one that it calls or that calls it, or let the "
				       "program speak itself (gasflame.h)", p->text, a->refused.data);
		return err_set(err, ENOENT, "--mark-function %s: no function of the target has that in its name%s; nm -C PROGRAM lists "
			       "the names that it has", p->text,
			       a->files_without_names ? " (stripped files have none; the compiler may have inlined it, too)" :
							" (the compiler may have inlined it)");
	}
	return 0;
}

static bool beside(const struct session_options *o)
{
	return o->function_count || o->listen;
}

struct words_search {
	struct worker *worker;
	bool found;
};

static int find_words(void *context, int fd, const char *path, struct err *err)
{
	struct words_search *search = context;
	_cleanup_free_ struct usdt_info *info = mem_alloc(sizeof(*info));

	if (!search->found && worker_usdt(search->worker, fd, info, NULL) >= 0)
		search->found = info->count || info->beyond || info->odd;
	return 0;
}

static void absent(struct session *s)
{
	struct words_search search = { .worker = s->worker };
	struct codefiles files = { .hurry = true };

	worker_set_timeout(s->worker, CODEFILES_HURRY_NS);
	if (s->options->program)
		codefiles_of_program(&files, s->options->program, find_words, &search, NULL);
	for (size_t i = 0; i < s->options->pid_count && !s->options->program && !search.found; i++)
		codefiles_of_process(&files, s->options->pids[i], find_words, &search, NULL);
	worker_set_timeout(s->worker, UINT64_MAX);
	codefiles_done(&files);
	if (search.found)
		log_warn("what the program says of itself (gasflame.h) is not recorded: that needs BPF, and gasflame doctor says what is missing");
}

static void prepare(struct session *s, struct gasflame_bpf *skeleton)
{
	uprobes_prepare(skeleton->progs.on_span);
}

static int start(struct session *s, struct err *err)
{
	struct spans *a = own(s);
	struct err why = { 0 };
	int r;

	a->join = spanjoin_new(got_span, s);
	a->calmed_ns = s->start_mono_ns;
	bpfengine_skeleton(s->engine)->bss->span_limit = SPANS;
	r = probestack_check(bpfengine_skeleton(s->engine)->progs.on_span, &why);
	if (r < 0 && s->options->function_count) {
		if (err)
			*err = why;
		return r;
	}
	/* Nobody asked for what the program says of itself: the rest is recorded. */
	if (r < 0) {
		log_warn("%s", why.text);
		a->off = true;
		return 0;
	}
	r = spanset_make(&a->set, s->options->functions, s->options->function_count, s->options->guess_functions, err);
	/* The process is not that program yet: the file is, from its first instruction on. */
	if (!r && s->options->program)
		return codefiles_of_program(&a->files, s->options->program, look_at_file, s, err);
	for (size_t i = 0; i < s->options->pid_count && !r; i++)
		r = look_at(s, s->options->pids[i], err);
	return r ? r : check_found(a, err);
}

static int started(struct session *s, struct err *err)
{
	int r = look_at(s, s->options->pids[0], err);

	/* Libraries may still come: what is not there then is said at the end. */
	return r;
}

static void tick(struct session *s, uint64_t now)
{
	calm_down(s, now);
	/* Libraries that were loaded since. */
	if (s->options->program ? own(s)->ticks++ < LOOK_TICKS || own(s)->ticks % LOOK_TICKS == 0 :
				  ++own(s)->ticks % LOOK_TICKS == 0) {
		own(s)->files.hurry = true;
		worker_set_timeout(s->worker, CODEFILES_HURRY_NS);
		for (size_t i = 0; i < s->options->pid_count; i++)
			look_at(s, s->options->pids[i], NULL);
		worker_set_timeout(s->worker, UINT64_MAX);
	}
}

static void count(struct profile *p, const char *name, uint64_t n)
{
	if (n)
		profile_count_set(p, name, n);
}

static void note_counts(struct session *s)
{
	const struct spanjoin_counts *joined = spanjoin_counted(own(s)->join);
	struct shared_span_counts all;

	if (!bpfengine_sum(bpfengine_skeleton(s->engine)->maps.span_counts, 0, &all, sizeof(all)))
		return;
	count(s->profile, KEY_MARKS_PROBE_HITS, all.hits);
	count(s->profile, KEY_MARKS_PROBED_FUNCTIONS, own(s)->functions.n);
	count(s->profile, KEY_MARKS_PROGRAM_PLACES, own(s)->own);
	count(s->profile, KEY_MARKS_PROGRAM_PLACES_ODD, own(s)->unplaced);
	count(s->profile, KEY_MARKS_SPANS, joined->spans);
	count(s->profile, KEY_MARKS_POLLS, joined->polls);
	count(s->profile, KEY_MARKS_SPANS_BEGUN_BEFORE, joined->before);
	count(s->profile, KEY_MARKS_SPANS_CANCELLED, joined->cancelled + all.abandoned);
	count(s->profile, KEY_MARKS_SPANS_REPLACED, joined->replaced);
	count(s->profile, KEY_MARKS_SPANS_UNDER_WAY, spanjoin_open(own(s)->join));
	count(s->profile, KEY_MARKS_SPANS_NESTED, all.nested);
	count(s->profile, KEY_MARKS_SPANS_BEYOND_THE_LIMIT, all.beyond);
	count(s->profile, KEY_MARKS_SPANS_LOST, all.lost);
	if (all.beyond)
		log_warn("%llu spans were more than the %d a second that are kept", (unsigned long long)all.beyond, SPANS);
}

static void stop(struct session *s)
{
	struct spans *a = own(s);
	struct err why = { 0 };

	for (size_t i = 0; i < a->probes.n; i++)
		uprobes_detach(a->probes.v[i].probes);
	bpfengine_drain(s->engine);
	/* Of a running one it was refused at the start. */
	if (s->options->program && check_found(a, &why) < 0)
		log_warn("%s", why.text);
	note_counts(s);
	spanjoin_free(a->join);
	spanset_done(&a->set);
	codefiles_done(&a->files);
	buf_done(&a->refused);
	vec_done(&a->functions);
	vec_done(&a->probes);
}

static void pause_spans(struct session *s, bool pause)
{
	bpfengine_skeleton(s->engine)->bss->span_paused = pause;
}

static const char *const programs[] = { "on_span", NULL };
static const char *const maps[] = { "span_probes", "span_calls", "span_counts", NULL };

const struct collector collector_span = {
	.name = "span",
	.describe = "spans of functions (--mark-function) and of the program's own words (gasflame.h), as marks",
	.state_size = sizeof(struct spans),
	.programs = programs,
	.maps = maps,
	.beside = beside,
	.absent = absent,
	.prepare = prepare,
	.start = start,
	.started = started,
	.record = record,
	.pause = pause_spans,
	.tick = tick,
	.stop = stop,
};
