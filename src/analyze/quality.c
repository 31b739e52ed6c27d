#include "analyze/quality.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/cost.h"
#include "analyze/wait/cause.h"
#include "analyze/tree/ident.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum {
	MINIMUM_SAMPLES = 1000,
	MINIMUM_OBJECTS = 100,
	IDLE_PERCENT = 10, /* of one CPU */
};

double quality_complete_percent(const struct quality *q)
{
	return q->weight ? str_percent(q->complete_weight, q->weight) : 100;
}

/* For objects the sampled ones, not the number that they represent. */
static uint64_t counted(const struct selection *s, const struct weight *w)
{
	return s->kind == SELECT_OBJECTS ? w->taken : w->samples;
}

double quality_lost_percent(const struct quality *q, const struct selection *s)
{
	return str_percent(q->lost, q->lost + counted(s, &s->recorded));
}

double quality_unnamed_percent(const struct quality *q)
{
	return str_percent(q->unnamed_weight, q->frame_weight);
}

double quality_unnamed_leaf_percent(const struct quality *q)
{
	return str_percent(q->unnamed_leaf_weight, q->weight);
}

/* A percentage that never rounds a fault away: 99.96 is not "100". */
static char *show_percent(char out[32], double v)
{
	if (v > 0 && v < 0.1)
		snprintf(out, 32, "under 0.1 %%");
	else if (v == 0 || v == 100)
		snprintf(out, 32, "%.0f %%", v);
	else
		snprintf(out, 32, "%.1f %%", MIN(v, 99.9));
	return out;
}

static void warn(struct quality *q, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void warn(struct quality *q, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vec_push(&q->warnings, mem_vprintf(fmt, ap));
	va_end(ap);
}

static int compare_reasons(const void *a, const void *b)
{
	const struct quality_reason *x = a, *y = b;

	return ORDER(y->weight, x->weight) ?: strcmp(x->reason, y->reason);
}

/* Facts that every node inherits from its callers: the cut, the depth and the frames without a name. */
struct node_facts {
	uint32_t reason; /* string, PROFILE_NONE = complete */
	uint32_t frames, unnamed;
	bool own; /* one of our BPF programs is on the stack */
};

static void add_reason(struct quality *q, const char *reason, uint64_t samples, uint64_t weight)
{
	for (size_t i = 0; i < q->reasons.n; i++)
		if (q->reasons.v[i].reason == reason) {
			q->reasons.v[i].samples += samples;
			q->reasons.v[i].weight += weight;
			return;
		}
	vec_push(&q->reasons, (struct quality_reason){ reason, samples, weight });
}

/* Returns the weight of an entry. */
static uint64_t weight_of(const struct quality *q, const struct selection *s, const struct select_entry *e)
{
	return q->by_time ? e->weight.value : counted(s, &e->weight);
}

static uint32_t truncation_reason(const struct profile *p, const struct profile_frame *f)
{
	return f->line_count ? p->functions.v[p->lines.v[f->first_line].function].name : 0;
}

/* A thread that was preempted has no stack to show, and where waits are recorded without stacks (collect/perf/switches.h) nothing was cut. */
static bool has_no_stack(const struct profile *p, uint32_t stack)
{
	const char *name = cause_frame_name(p, p->stacks.v[stack].frame);

	return !strcmp(name, "[preempted]") || !strcmp(name, "[stack not recorded]");
}

/* Returns the module of our BPF programs, PROFILE_NONE where none was met. */
static uint32_t own_module(const struct profile *p)
{
	for (size_t i = 0; i < p->modules.n; i++)
		if (p->modules.v[i].kind == MODULE_KERNEL && !strcmp(profile_str(p, p->modules.v[i].path), PROFILE_OWN_MODULE))
			return i;
	return PROFILE_NONE;
}

static void measure_stacks(struct quality *q, const struct profile *p, const struct selection *s)
{
	_cleanup_free_ struct node_facts *facts = mem_alloc((p->stacks.n + 1) * sizeof(*facts));
	_cleanup_free_ uint8_t *unnamed = mem_alloc(p->frames.n + 1);
	uint32_t own;

	for (size_t i = 0; i < p->frames.n; i++)
		unnamed[i] = ident_frame_unnamed(p, i);
	facts[0].reason = PROFILE_NONE;
	own = own_module(p);
	for (size_t i = 1; i < p->stacks.n; i++) {
		const struct profile_node *node = &p->stacks.v[i];
		const struct profile_frame *f = &p->frames.v[node->frame];

		facts[i] = facts[node->parent];
		if (f->kind == FRAME_TRUNCATED) {
			if (!node->parent)
				facts[i].reason = truncation_reason(p, f);
			continue;
		}
		facts[i].frames++;
		facts[i].unnamed += unnamed[node->frame];
		facts[i].own |= f->kind == FRAME_KERNEL && f->module == own && own != PROFILE_NONE;
	}
	for (size_t i = 0; i < s->entries.n; i++) {
		const struct select_entry *e = &s->entries.v[i];
		const struct node_facts *f = &facts[e->stack];
		uint64_t samples = counted(s, &e->weight), weight = weight_of(q, s, e);

		q->weight += weight;
		if (f->own && s->kind == SELECT_SAMPLES)
			q->own_samples += samples;
		q->frames += samples * f->frames;
		q->unnamed += samples * f->unnamed;
		if (e->stack && unnamed[p->stacks.v[e->stack].frame])
			q->unnamed_leaf_weight += weight;
		q->frame_weight += (double)weight * f->frames;
		q->unnamed_weight += (double)weight * f->unnamed;
		/* No stack at all is no complete stack. */
		if (!e->stack && !profile_thread_imported(p, e->thread))
			add_reason(q, "no stack", samples, weight);
		else if (e->stack && cause_is_marker(p, e->stack) && e->cause != CAUSE_QUEUE &&
			 !has_no_stack(p, e->stack))
			add_reason(q, cause_frame_name(p, p->stacks.v[e->stack].frame), samples, weight);
		else if (f->reason != PROFILE_NONE)
			add_reason(q, profile_str(p, f->reason), samples, weight);
		else {
			q->complete += samples;
			q->complete_weight += weight;
		}
	}
	vec_sort(&q->reasons, compare_reasons);
}

/* Returns the module that has most of the frames without a name, or most of the leaves. Each sample counts a module's
 * frames once a node, by weights that are added up towards the root. */
static const char *worst_module(const struct quality *q, const struct profile *p, const struct selection *s, bool leaves)
{
	_cleanup_free_ uint64_t *weight = mem_alloc((p->stacks.n + 1) * sizeof(*weight));
	_cleanup_free_ uint64_t *modules = mem_alloc((p->modules.n + 1) * sizeof(*modules));
	size_t worst = 0;

	for (size_t i = 0; i < s->entries.n; i++)
		weight[s->entries.v[i].stack] += weight_of(q, s, &s->entries.v[i]);
	for (size_t i = p->stacks.n; i-- > 1;) {
		const struct profile_node *node = &p->stacks.v[i];
		uint32_t module = p->frames.v[node->frame].module;

		if (!leaves)
			weight[node->parent] += weight[i];
		if (module < p->modules.n && weight[i] && ident_frame_unnamed(p, node->frame))
			modules[module] += weight[i];
	}
	for (size_t i = 1; i < p->modules.n; i++)
		if (modules[i] > modules[worst])
			worst = i;
	return p->modules.n && modules[worst] ? profile_str(p, p->modules.v[worst].path) : NULL;
}

/* The kernel's account where there is one, else the sampled time. */
static uint64_t target_cpu(const struct profile *p, const struct selection *s)
{
	uint64_t ns = profile_counter(p, KEY_TARGET_CPU_NS);
	const struct profile_event *event =
		s->options.event < p->events.n ? &p->events.v[s->options.event] : NULL;

	for (size_t i = 0; !profile_counter(p, KEY_TARGET_CPU_NS) && i < p->threads.n; i++)
		ns += p->threads.v[i].cpu_ns;
	if (!ns && event && !strcmp(profile_str(p, event->name), "cpu") &&
	    !strcmp(profile_str(p, event->unit), "ns"))
		ns = s->recorded.value;
	return ns;
}

/* Waits, calls and faults are not samples of a clock: each of them was seen. */
const char *quality_noun(const struct selection *s, uint64_t n)
{
	static const char *const nouns[][2] = {
		[SELECT_SAMPLES] = { "samples", "sample" }, [SELECT_WAITS] = { "waits", "wait" },
		[SELECT_CALLS] = { "calls", "call" },       [SELECT_FAULTS] = { "faults", "fault" },
		[SELECT_RECLAIMS] = { "reclaims", "reclaim" }, [SELECT_EVENTS] = { "events", "event" },
		[SELECT_OBJECTS] = { "objects", "object" },    [SELECT_POLLS] = { "polls", "poll" },
		[SELECT_AWAITS] = { "awaits", "await" },       [SELECT_TURNS] = { "turns", "turn" },
		[SELECT_SPAWNS] = { "spawns", "spawn" },
	};

	if (s->options.event == SELECT_WALL)
		return n == 1 ? "sample or wait" : "samples and waits";
	return nouns[s->kind][n == 1];
}

static void warn_about_samples(struct quality *q, const struct selection *s)
{
	char a[32], b[32];
	double cpu = str_percent(q->target_cpu_ns, q->duration_ns), lost = quality_lost_percent(q, s);

	if (!q->finished)
		warn(q, "the recorder did not end normally: this is what it had written until then");
	if (s->kind == SELECT_SAMPLES && !q->series_only && q->target_cpu_ns && q->duration_ns && cpu < IDLE_PERCENT)
		warn(q, "the target used %.*f %% of a CPU: idle? Record while it has work to do",
		     cpu < 1 ? 2 : 0, cpu);
	if (!q->samples && s->idle.samples)
		warn(q, "all of it is idle, %s: --idle shows it", str_duration(a, s->idle.value));
	else if (!q->samples && !q->series_only)
		warn(q, "no %s: the target did nothing that was measured in this time", quality_noun(s, 2));
	else if (q->samples < MINIMUM_SAMPLES && s->kind == SELECT_SAMPLES && q->duration_ns && !q->series_only)
		warn(q, "only %s %s: shares of a few percent mean little; record longer (-d) or faster (-F)",
		     str_count(a, q->samples), q->samples == 1 ? "sample" : "samples");
	else if (q->samples < MINIMUM_OBJECTS && q->interval > 1)
		warn(q, "only %s %s: shares of a few percent mean little; record longer (-d) or take more "
		     "(--heap-sample %s)",
		     str_count(a, q->samples), q->samples == 1 ? "sample" : "samples", q->interval > 64 << 10 ? "64K" : "4K");
	if (lost > 1)
		warn(q, "%s of the %s were lost%s", show_percent(b, lost), quality_noun(s, 2),
		     s->kind == SELECT_SAMPLES ? ": record at a lower rate (-F)" : "");
	if (q->missed && str_percent(q->missed, q->missed + counted(s, &s->recorded)) > 1)
		warn(q, "up to %s %s were not seen: the kernel skips a program on a CPU where it interrupted the same one for another thread",
		     str_count(a, q->missed), quality_noun(s, 2));
	if (s->kind == SELECT_SAMPLES && q->hz && q->hz * 100 < q->hz_asked * 95) /* the rest is rounding */
		warn(q, "the rate was lowered from %s to %s Hz to keep the overhead down",
		     str_count(a, q->hz_asked), str_count(b, q->hz));
}

static void warn_about_processes(struct quality *q, const struct profile *p)
{
	uint64_t n = profile_counter(p, KEY_PROCESSES_NO_ROOM);
	char a[32];

	if (n)
		warn(q, "%s %s not recorded: there were too many at a time", str_count(a, n), n == 1 ? "process was" : "processes were");
}

/* Java's compiled code has frame pointers only when it is told to. */
static bool runs_java(const struct profile *p)
{
	for (size_t i = 0; i < p->modules.n; i++)
		if (!strcmp(str_base_name(profile_str(p, p->modules.v[i].path)), "libjvm.so"))
			return true;
	return false;
}

static void warn_about_stacks(struct quality *q, const struct profile *p)
{
	_cleanup_(buf_done) struct buf reasons = { 0 };
	char a[32];

	if (!q->weight || quality_complete_percent(q) >= 95)
		return;
	for (size_t i = 0; i < q->reasons.n && i < 3; i++)
		buf_printf(&reasons, "%s%s %s", i ? ", " : "",
			   *q->reasons.v[i].reason ? q->reasons.v[i].reason : "unknown reason",
			   show_percent(a, str_percent(q->reasons.v[i].weight, q->weight)));
	warn(q, "only %s of the %s complete (%s): those that are cut begin with [truncated: ...]%s",
	     show_percent(a, quality_complete_percent(q)),
	     q->by_time ? "time has stacks that are" : "stacks are", reasons.data,
	     runs_java(p) ? "; start Java with -XX:+PreserveFramePointer" : "");
}

/* The symbolizer's own sentence for a module where it left one. */
static const char *problem_of(const struct profile *p, const char *module)
{
	for (size_t i = 0; i < p->counters.n; i++) {
		const char *sentence = key_rest(KEY_SYMBOLS_PROBLEM_OF, profile_str(p, p->counters.v[i].name));

		if (sentence && strstr(sentence, module))
			return sentence;
	}
	return NULL;
}

static void warn_about_names(struct quality *q, const struct profile *p)
{
	bool leaves = quality_unnamed_leaf_percent(q) > 10;
	const char *problem;
	char a[32];

	if (!leaves && !(quality_unnamed_percent(q) > 10))
		return;
	/* One hot function on top of deep stacks is few frames, and all of the time. */
	if (leaves && !(quality_unnamed_percent(q) > 10)) {
		problem = q->unnamed_module ? problem_of(p, q->unnamed_module) : NULL;
		warn(q, "%s of the %s end in code that has no name: %s%s", show_percent(a, quality_unnamed_leaf_percent(q)),
		     q->by_time ? "time has stacks that" : "stacks", problem ? problem : "no symbols for ",
		     problem ? "" : q->unnamed_module ? q->unnamed_module : "it");
		return;
	}
	show_percent(a, quality_unnamed_percent(q));
	problem = q->unnamed_module ? problem_of(p, q->unnamed_module) : NULL;
	if (problem)
		warn(q, "%s of the frames have no name: %s", a, problem);
	else if (q->unnamed_module && !strcmp(q->unnamed_module, "[kernel]"))
		warn(q, "%s of the frames have no name, most of them the kernel's: "
		     "record as root, or with kernel.kptr_restrict=0", a);
	else if (q->unnamed_module)
		warn(q, "%s of the frames have no name: functions of %s are shown by their start; gasflame symbols %s says how "
		     "to get names", a, q->unnamed_module, q->unnamed_module);
	else
		warn(q, "%s of the frames have no name and no module", a);
}

static void warn_about_joined(struct quality *q, const struct profile *p)
{
	uint64_t joined = profile_counter(p, KEY_CAPTURE_JOINED);
	char a[32];

	if (joined)
		warn(q, "%s samples were joined to others of their thread and stack, to save memory: sums of the whole recording "
			"are exact, those of a part of its time are estimates (--from and --to read all of them)",
		     str_count(a, joined));
}

/* Events that came too fast to be kept one by one: see the event collector. */
static void warn_about_sums(struct quality *q, const struct profile *p, const struct selection *s)
{
	char a[32];
	uint64_t summed;

	if (s->options.event >= p->events.n)
		return;
	summed = profile_counter_of(p, KEY_EVENT_SUMMED_OF, profile_str(p, p->events.v[s->options.event].name));
	if (summed)
		warn(q,
		     "%s events came too fast to be kept one by one (--max-rate, --max-size): they were "
		     "counted by "
		     "stack in the kernel, so that counts are exact and times are not",
		     str_count(a, summed));
}

/* Of the waits of threads: goroutines have a collector of their own. */
static bool is_of_waits(const struct selection *s)
{
	return s->kind == SELECT_WAITS && !(s->name && !strncmp(s->name, "goroutine", 9));
}

/* Marks of summed time that are in full. *ret_blocks: all of them are blocks. */
static size_t count_full(const struct profile *p, uint64_t until_ns, bool *ret_blocks)
{
	size_t n = 0;

	*ret_blocks = true;
	for (size_t i = 0; i < p->marks.n; i++) {
		const struct profile_mark *m = &p->marks.v[i];

		if (m->end_ns > until_ns || m->end_ns <= m->start_ns || profile_summed_at(p, m->start_ns) ||
		    profile_summed_at(p, m->end_ns - 1))
			continue;
		n++;
		*ret_blocks &= !strcmp(profile_str(p, m->kind), "block");
	}
	return n;
}

/* Old rows of a long recording. */
static void warn_about_slots(struct quality *q, const struct profile *p)
{
	uint64_t until = 0, longest = 0, full;
	char a[32], b[64] = "";
	bool blocks;

	/* A store has nothing but sums, which is known. */
	if (!p->summed.n || profile_counter(p, KEY_STORE_WINDOWS))
		return;
	for (size_t i = 0; i < p->summed.n; i++) {
		until = MAX(until, p->summed.v[i].end_ns);
		longest = MAX(longest, p->summed.v[i].end_ns - p->summed.v[i].start_ns);
	}
	full = count_full(p, until, &blocks);
	if (full)
		snprintf(b, sizeof(b), " (%llu slow %s in full)", (unsigned long long)full,
			 blocks ? full == 1 ? "block" : "blocks" : full == 1 ? "mark" : "marks");
	warn(q, "samples before %llu:%02llu are sums of up to %s%s: their totals are exact, their times are not; record %s "
	     "keeps each of them", (unsigned long long)(until / 60000000000), (unsigned long long)(until / 1000000000 % 60),
	     str_duration(a, longest), b, profile_counter(p, KEY_KEEP_ASKED_NS) ? "with a larger --keep-size" : "--keep-all");
}

/* A flight recorder without the memory for what it was to keep. */
static void warn_about_keep(struct quality *q, const struct profile *p)
{
	uint64_t asked = profile_counter(p, KEY_KEEP_ASKED_NS), recorded = profile_counter(p, KEY_KEEP_RECORDED_NS);
	char a[32], b[32];

	if (p->duration_ns < asked * 0.95 && p->duration_ns < recorded * 0.95)
		warn(q, "the memory of --keep-size was enough for %s before the incident, not for %s", str_duration(a, p->duration_ns),
		     str_duration(b, asked));
}

/* Each collector counts what found no room by itself. */
static uint64_t count_lost(const struct profile *p, const struct selection *s)
{
	switch (s->kind) {
	case SELECT_WAITS:
		if (!is_of_waits(s))
			return profile_counter(p, KEY_GOROUTINES_LOST);
		return profile_counter(p, KEY_WAITS_LOST) +
		       (s->options.event == SELECT_WALL ? profile_counter(p, KEY_SAMPLES_LOST) : 0);
	case SELECT_CALLS:
		return profile_counter(p, KEY_IO_LOST_CALLS);
	case SELECT_FAULTS:
	case SELECT_RECLAIMS: /* one collector, one table */
		return profile_counter(p, KEY_FAULTS_LOST);
	case SELECT_EVENTS:
		return profile_counter_of(p, KEY_EVENT_LOST_OF, s->name);
	case SELECT_OBJECTS:
		return profile_counter(p, KEY_HEAP_LOST) + profile_counter(p, KEY_HEAP_SAMPLES_WITHOUT_ROOM);
	case SELECT_POLLS:
	case SELECT_AWAITS:
	case SELECT_TURNS:
	case SELECT_SPAWNS:
		return profile_counter(p, KEY_TASK_LOST);
	case SELECT_SAMPLES:
		break;
	}
	if (s->name && !strcmp(s->name, "alloc-rate"))
		return profile_counter(p, KEY_ALLOC_LOST);
	return profile_counter(p, KEY_SAMPLES_LOST);
}

/*
 * A kernel that lets a thread be preempted within a program at a tracepoint (seen on 7.2, not on 6.12) skips that program for others on this CPU meanwhile: neither recorded
 * nor lost. Ticks of the clock and switches are not preempted.
 */
static uint64_t count_missed(const struct profile *p, const struct selection *s)
{
	bool may = s->kind == SELECT_CALLS || s->kind == SELECT_EVENTS || s->kind == SELECT_FAULTS || s->kind == SELECT_RECLAIMS;

	return may ? profile_counter(p, KEY_BPF_MISSED) : 0;
}

static void measure_cost(struct quality *q, const struct profile *p)
{
	struct cost c;

	cost_build(&c, p);
	q->cost_percent = c.base_ns ? c.percent : -1;
	q->cost_of_cpu = c.base == COST_OF_CPU;
	cost_done(&c);
}

void quality_measure(struct quality *q, const struct profile *p, const struct selection *s)
{
	*q = (struct quality){
		.samples = counted(s, &s->all),
		/* The peak's samples are sums: the number of objects is not known here. */
		.interval = s->kind == SELECT_OBJECTS && strcmp(s->name, "peak") ?
				    profile_counter(p, KEY_HEAP_INTERVAL_BYTES) : 0,
		.lost = count_lost(p, s),
		.missed = count_missed(p, s),
		.duration_ns = select_duration_ns(p),
		.target_cpu_ns = target_cpu(p, s),
		.own_cpu_ns = profile_counter(p, KEY_SELF_CPU_NS) + profile_counter(p, KEY_BPF_RUN_NS),
		.unwound_elsewhere = profile_counter(p, KEY_IMPORT_CHAINS),
		.unwound_later = s->kind == SELECT_SAMPLES && s->name && !strcmp(s->name, "cpu") ?
					 profile_counter(p, KEY_SAMPLES_UNWOUND_LATER) : 0,
		.guessed = s->kind == SELECT_SAMPLES ? profile_counter(p, KEY_SAMPLES_GUESSED) : 0,
		.derived = s->kind == SELECT_SAMPLES ? profile_counter(p, KEY_SAMPLES_DERIVED) : 0,
		.error_ns = is_of_waits(s) ? profile_counter(p, KEY_WAITS_ERROR_NS) : 0,
		.hz = profile_counter(p, KEY_SAMPLE_HZ),
		.hz_asked = profile_counter(p, KEY_SAMPLE_HZ_ASKED),
		.finished = p->finished,
		.series_only = !p->events.n && p->points.n,
		.by_time = s->waits && s->all.value,
	};
	measure_cost(q, p);
	measure_stacks(q, p, s);
	if (q->unnamed)
		q->unnamed_module = worst_module(q, p, s, quality_unnamed_leaf_percent(q) > 10);
	q->fit = (q->samples || s->idle.samples || q->series_only) && quality_complete_percent(q) >= 50 &&
		 quality_lost_percent(q, s) <= 20;
	warn_about_samples(q, s);
	warn_about_processes(q, p);
	warn_about_stacks(q, p);
	warn_about_names(q, p);
	warn_about_sums(q, p, s);
	warn_about_slots(q, p);
	warn_about_keep(q, p);
	warn_about_joined(q, p);
}

void quality_done(struct quality *q)
{
	vec_done_each(&q->warnings, e, free(*e));
	vec_done(&q->reasons);
}

static double share_of_recorded(uint64_t n, const struct selection *s)
{
	return MIN(100, str_percent(n, MAX(counted(s, &s->recorded), 1)));
}

void quality_line(const struct quality *q, const struct selection *s, struct buf *b)
{
	char a[32], c[32];

	if (q->series_only) {
		buf_puts(b, "series only: memory and the like over time, no stacks");
		return;
	}
	if (s->kind == SELECT_OBJECTS && !strcmp(s->name, "peak")) /* added up by stack */
		buf_printf(b, "%s stacks of %s objects", str_count(a, q->samples), str_count(c, s->all.samples));
	else if (s->kind == SELECT_OBJECTS && q->samples != s->all.samples)
		buf_printf(b, "%s %s for %s objects", str_count(a, q->samples), q->samples == 1 ? "sample" : "samples",
			   str_count(c, s->all.samples));
	else
		buf_printf(b, "%s %s", str_count(a, q->samples), quality_noun(s, q->samples));
	if (q->samples)
		buf_printf(b, ", %s %s", show_percent(a, quality_complete_percent(q)),
			   q->unwound_elsewhere ? "not known to be cut" : "complete");
	if (q->by_time && q->complete < q->samples)
		buf_printf(b, " by time (%s cut)", str_count(a, q->samples - q->complete));
	if (q->unwound_later)
		buf_printf(b, " (%s unwound later)", str_count(a, q->unwound_later));
	if (q->guessed)
		buf_printf(b, ", %s with a guessed frame", show_percent(a, share_of_recorded(q->guessed, s)));
	if (q->derived)
		buf_printf(b, ", %s unwound by reading code", show_percent(a, share_of_recorded(q->derived, s)));
	if (q->error_ns && str_percent(q->error_ns, s->recorded.value) >= 0.1)
		buf_printf(b, ", standard error of a share up to %s",
			   show_percent(a, MIN(50, str_percent(q->error_ns, s->recorded.value))));
	buf_printf(b, ", %s lost", str_count(a, q->lost));
	if (q->lost)
		buf_printf(b, " (%s)", show_percent(a, quality_lost_percent(q, s)));
	if (q->missed)
		buf_printf(b, ", up to %s not seen", str_count(a, q->missed));
	if (q->frames)
		buf_printf(b, ", %s of frames without a name", show_percent(a, quality_unnamed_percent(q)));
	if (q->cost_percent >= 0)
		buf_printf(b, "; own cost %s of %s", show_percent(a, q->cost_percent),
			   q->cost_of_cpu ? "a tenth of a CPU" : "the target's CPU time");
	else if (q->own_cpu_ns && q->duration_ns)
		buf_printf(b, "; own cost %s of a CPU",
			   show_percent(a, str_percent(q->own_cpu_ns, q->duration_ns)));
	if (q->own_samples && q->samples)
		buf_printf(b, "; gasflame's own programs: %s of CPU samples", show_percent(a, str_percent(q->own_samples, q->samples)));
	if (!q->fit)
		buf_puts(b, "; not fit to read");
}
