/*
 * heapverdict.c - the verdict on the figures of a heap: a leak, churn, bloat, fragmentation, or none of
 * these.
 *
 * By the symptoms that memory guides give: a leak grows and does not level off; churn is a high rate of
 * short-lived objects; bloat is a large live heap, now or for a moment; fragmentation is memory of the
 * process that grows without the heap.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/memory/heap.h"
#include "analyze/tree/ownfunction.h"
#include "analyze/memory/sizeclass.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "profile/keys.h"
#include "profile/profile.h"

#define MB (1 << 20)

enum {
	LEAK_PERCENT = 2,      /* of the peak, that the growing functions grew by */
	CHURN_PERCENT = 30,    /* of allocated bytes, freed at once */
	CHURN_PER_S = 10 * MB, /* below, it does not matter */
	RUSH_PER_S = 500 * MB, /* a higher rate is churn for any lifetime */
	PEAK_TIMES = 2,        /* times the live bytes at the end */
	HOLD_PERCENT = 50,     /* of the live bytes, by one function */
	LARGE = 64 * MB,
	WASTE_PERCENT = 25,    /* of the allocator's memory, without objects */
	SLOW_PERCENT = 10,     /* of the CPU time, in the allocator */
	FULL_PERCENT = 90,     /* of the cgroup's limit */
	FEW = 500,             /* samples of the CPU, below which shares say nothing */
	BUSY_PERCENT = 50, /* of one CPU */
	RISE = 8 * MB,         /* growth of a heap that is worth a sentence */
	LEVEL_PERCENT = 10,    /* of its growth, in the last two thirds: it has levelled off */
};

static void say(struct heap_figures *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct heap_figures *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vec_push(&f->verdict, mem_vprintf(fmt, ap));
	va_end(ap);
	vec_push(&f->links, (struct heap_link){ .finding = strlen(f->verdict.v[f->verdict.n - 1]) });
	f->links.v[f->links.n - 1].said = f->links.v[f->links.n - 1].finding;
}

static void append(struct heap_figures *f, const char *text)
{
	char **last = &f->verdict.v[f->verdict.n - 1], *longer = mem_printf("%s %s", *last, text);

	free(*last);
	*last = longer;
}

/* Adds advice to the last sentence. */
static void advise(struct heap_figures *f, const char *text)
{
	append(f, text);
	f->links.v[f->links.n - 1].said = strlen(f->verdict.v[f->verdict.n - 1]);
}

/* Adds options of the command line that show more of the last sentence: the page has links instead. */
static void name_commands(struct heap_figures *f, const char *text)
{
	append(f, text);
}

/* Links the last sentence to its data. */
static void show(struct heap_figures *f, const char *what, const char *function)
{
	f->links.v[f->links.n - 1].what = what;
	f->links.v[f->links.n - 1].function = function;
}

const char *heap_symptom_name(enum heap_symptom s)
{
	static const char *const names[HEAP_SYMPTOMS] = { "leak", "churn", "bloat", "fragmentation" };

	return names[s];
}

static double seconds(const struct heap_figures *f)
{
	return f->duration_ns / 1e9;
}

static void judge_leak(struct heap_figures *f)
{
	const struct heap_function *most = NULL;
	int64_t grown = 0, of_most = 0;
	char a[32], b[32], c[32], d[32];

	for (size_t i = 0; i < f->functions.n; i++) {
		const struct heap_function *g = &f->functions.v[i];
		int64_t by = g->thirds[2] - g->thirds[0];

		if (!g->grows)
			continue;
		grown += by;
		if (by > of_most) {
			most = g;
			of_most = by;
		}
	}
	if (!most || grown * 100 < (int64_t)f->peak.bytes * LEAK_PERCENT)
		return;
	f->symptoms[HEAP_LEAK] = true;
	say(f,
	    "Leak? What `%s` allocates grew from %s after a third of the time to %s, %s a minute, and "
	    "still grew in the last third (all that grow: %s).",
	    most->name, str_bytes(a, most->thirds[0] > 0 ? most->thirds[0] : 0),
	    str_bytes(b, most->thirds[2]), str_bytes(c, seconds(f) ? of_most / (seconds(f) * 2 / 3) * 60 : 0),
	    str_bytes(d, grown));
	show(f, "heap", most->name);
	f->links.v[f->links.n - 1].grew = true;
	advise(f, "A leak, or a cache that is not full yet: the longer it is recorded the surer.");
	name_commands(f, "Look at --what heap, and compare two recordings some time apart with `gasflame diff`.");
}

/* A heap that grew by much is no leak yet, but worth knowing. */
static void judge_rise(struct heap_figures *f)
{
	const struct heap_function *most = NULL;
	int64_t grown = 0, late = 0;
	char a[32], b[32], c[32];

	for (size_t i = 0; i < f->functions.n; i++) {
		const struct heap_function *g = &f->functions.v[i];

		grown += g->thirds[2];
		late += g->thirds[2] - g->thirds[0];
		if (!most || g->thirds[2] > most->thirds[2])
			most = g;
	}
	if (!most || grown < RISE || f->ended || f->symptoms[HEAP_LEAK] || f->symptoms[HEAP_BLOAT])
		return;
	f->rose = true;
	say(f, "The heap grew by %s, %s of it after the first third of the time; `%s` holds most of that, %s.",
	    str_bytes(a, grown), str_bytes(b, late > 0 ? late : 0), most->name, str_bytes(c, most->thirds[2]));
	show(f, "heap", most->name);
	advise(f, late * 100 < grown * LEVEL_PERCENT ?
			  "It has levelled off: data that is loaded once, or a cache that is full." :
			  "It may level off: record longer to see whether it is a leak.");
}

static void judge_end(struct heap_figures *f)
{
	char a[32], b[32];

	if (!f->ended || !f->live.bytes)
		return;
	say(f, "%s in %s object%s was not freed when the program ended, most of it of `%s`.",
	    str_bytes(a, f->live.bytes), str_count(b, f->live.objects), f->live.objects == 1 ? "" : "s",
	    f->functions.v[0].name);
	show(f, "heap", f->functions.v[0].name);
}

static void judge_churn(struct heap_figures *f)
{
	double rate = seconds(f) ? f->allocated.bytes / seconds(f) : 0;
	double share = str_percent(f->temporary.bytes, f->allocated.bytes);
	const struct heap_function *most = NULL;
	bool at_once = share >= CHURN_PERCENT && rate >= CHURN_PER_S;
	char a[32], b[32];

	if (!at_once && (rate < RUSH_PER_S || f->live.bytes * 20 > f->allocated.bytes))
		return;
	for (size_t i = 0; i < f->functions.n; i++) {
		const struct heap_function *g = &f->functions.v[i];

		if (!most || (at_once ? g->temporary.bytes > most->temporary.bytes
				      : g->allocated.bytes > most->allocated.bytes))
			most = g;
	}
	f->symptoms[HEAP_CHURN] = true;
	if (at_once)
		say(f,
		    "Churn: %.0f %% of the %s that were allocated a second were freed before their "
		    "thread's next allocation, most by `%s`.",
		    share, str_bytes(a, rate), most->name);
	else
		say(f, "Churn: %s were allocated a second and %.0f %% of it freed again, most by `%s`.", str_bytes(b, rate),
		    100.0 * f->freed.bytes / (f->allocated.bytes ? f->allocated.bytes : 1), most->name);
	show(f, at_once ? "temporary" : "alloc", most->name);
	if (at_once)
		advise(f, "Reuse buffers there, or keep them on the stack.");
	name_commands(f, at_once ? "Look at --what temporary." :
				   "Look at --what alloc, and with -e cpu at what the allocator costs.");
}

static void judge_bloat(struct heap_figures *f)
{
	const struct heap_function *most = NULL;
	char a[32], b[32], c[32];

	for (size_t i = 0; i < f->functions.n; i++)
		if (!most || f->functions.v[i].peak.bytes > most->peak.bytes)
			most = &f->functions.v[i];
	if (most && f->peak.bytes >= MB &&
	    f->peak.bytes >= f->live.bytes * PEAK_TIMES + 3 * (heap_error(&f->peak) + heap_error(&f->live))) {
		f->symptoms[HEAP_BLOAT] = true;
		say(f,
		    "Bloat: at its peak, after %s, the heap was %s, and %s at the end; `%s` held most of "
		    "it then.",
		    str_duration(a, f->peak_ns), str_bytes(b, f->peak.bytes), str_bytes(c, f->live.bytes),
		    most->name);
		show(f, "peak", most->name);
		advise(f, "The memory that the machine must have is decided there.");
		name_commands(f, "Look at --what peak.");
		return;
	}
	most = f->functions.n ? &f->functions.v[0] : NULL;
	if (f->symptoms[HEAP_LEAK] || !most || f->live.bytes < LARGE ||
	    most->live.bytes * 100 < f->live.bytes * HOLD_PERCENT)
		return;
	f->symptoms[HEAP_BLOAT] = true;
	say(f,
	    "Bloat: `%s` holds %.0f %% of the %s that are alive, for %s on average.",
	    most->name, 100.0 * most->live.bytes / f->live.bytes, str_bytes(a, f->live.bytes),
	    str_duration(b, most->age_ns));
	show(f, "heap", most->name);
	advise(f, "Is it a cache or a buffer that may be smaller?");
	name_commands(f, "Look at --what heap.");
}

/* First and last value of a series; false: there is none, or too little of it. */
static bool ends_of(const struct profile *p, const char *name, int64_t *ret_first, int64_t *ret_last)
{
	size_t n = 0;

	for (size_t i = 0; i < p->points.n; i++) {
		const struct profile_point *point = &p->points.v[i];

		if (point->series >= p->series.n ||
		    strcmp(profile_str(p, p->series.v[point->series].name), name))
			continue;
		if (!n++)
			*ret_first = point->value;
		*ret_last = point->value;
	}
	return n > 1;
}

/* The last value of a series, 0: there is none. */
static int64_t last_of(const struct profile *p, const char *name)
{
	int64_t first = 0, last = 0;

	ends_of(p, name, &first, &last);
	return last;
}

/* jemalloc's own statistics: slabs with little in use, and free pages that it has not returned. */
static bool judge_classes(struct heap_figures *f, const struct profile *p)
{
	int64_t resident = last_of(p, KEY_JEMALLOC_RESIDENT);
	int64_t kept = resident - last_of(p, KEY_JEMALLOC_ACTIVE) - last_of(p, KEY_JEMALLOC_METADATA);
	struct sizeclasses c;
	uint64_t waste;
	char a[32], b[32], d[32], e[32];

	sizeclasses_read(&c, p);
	waste = sizeclass_waste(&c.all);
	if (waste >= LARGE / 4 && waste * 100 >= c.all.held_bytes * WASTE_PERCENT) {
		f->symptoms[HEAP_FRAGMENTATION] = true;
		say(f,
		    "Fragmentation: jemalloc holds %s for %s of objects. Most of that is of class %s, of whose slabs %.0f %% "
		    "are used: single objects that stay keep whole slabs. See the table of size classes, and with --what "
		    "heap who keeps objects of that size.",
		    str_bytes(a, c.all.held_bytes), str_bytes(b, sizeclass_used(&c.all)), str_count(d, c.list.v[0].size),
		    100.0 * sizeclass_used(&c.list.v[0]) / c.list.v[0].held_bytes);
	}
	if (kept >= LARGE / 4 && kept * 100 >= resident * WASTE_PERCENT) {
		f->symptoms[HEAP_FRAGMENTATION] = true;
		say(f,
		    "Fragmentation? jemalloc keeps %s of free pages that it has not given back to the system, of %s resident: "
		    "dirty_decay_ms and muzzy_decay_ms in MALLOC_CONF say how long it does.",
		    str_bytes(a, kept), str_bytes(e, resident));
	}
	sizeclasses_done(&c);
	return f->symptoms[HEAP_FRAGMENTATION];
}

/* Needs the process's memory beside its heap (-e mem). */
static void judge_growth(struct heap_figures *f, const struct profile *p)
{
	int64_t rss_first = 0, rss_last = 0, live_first = 0, live_last = 0, rss, live;
	char a[32], b[32];

	if (!ends_of(p, KEY_MEM_RSS, &rss_first, &rss_last) ||
	    !ends_of(p, KEY_HEAP_LIVE, &live_first, &live_last))
		return;
	rss = rss_last - rss_first;
	live = live_last - live_first;
	if (rss < LARGE / 4 || rss < 2 * (live > 0 ? live : 0))
		return;
	f->symptoms[HEAP_FRAGMENTATION] = true;
	say(f,
	    "Fragmentation? RSS grew by %s while the live heap grew by %s: memory that the allocator "
	    "keeps, or pages of files. `gasflame mem` says which.",
	    str_bytes(a, rss), str_bytes(b, live > 0 ? live : 0));
}

static uint64_t cpu_ns(const struct profile *p)
{
	uint64_t ns = profile_counter(p, KEY_TARGET_CPU_NS);

	for (size_t i = 0; !profile_counter(p, KEY_TARGET_CPU_NS) && i < p->threads.n; i++)
		ns += p->threads.v[i].cpu_ns;
	return ns;
}

static void judge_fragmentation(struct heap_figures *f, const struct profile *p)
{
	if (!f->filtered && !f->recordings && !judge_classes(f, p))
		judge_growth(f, p);
}

static bool is_allocator(struct heap_figures *f, uint32_t frame)
{
	uint32_t n;
	const uint32_t *list = idents_of_frame(&f->idents, frame, &n);

	for (uint32_t k = 0; k < n; k++)
		if (ownfunction_is_allocator(f->idents.list.v[list[k]].name, f->idents.list.v[list[k]].module))
			return true;
	return false;
}

/* A program that is slow because it allocates: needs the CPU beside the heap (-e cpu). */
static void judge_slow(struct heap_figures *f, const struct profile *p)
{
	_cleanup_free_ uint8_t *own = mem_alloc(p->frames.n + 1), *inside = mem_alloc(p->stacks.n + 1);
	uint64_t all = 0, sum = 0, samples = 0;

	for (size_t i = 0; i < p->frames.n; i++)
		own[i] = p->frames.v[i].kind == FRAME_USER && is_allocator(f, i);
	for (size_t i = 1; i < p->stacks.n; i++) /* parents come first */
		inside[i] = inside[p->stacks.v[i].parent] || own[p->stacks.v[i].frame];
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];

		if (strcmp(profile_str(p, p->events.v[s->event].name), "cpu"))
			continue;
		samples++;
		all += s->value;
		sum += inside[s->stack] ? s->value : 0;
	}
	if (samples < FEW || sum * 100 < all * SLOW_PERCENT)
		return;
	f->symptoms[HEAP_CHURN] = true;
	say(f,
	    "Allocating is slow: %.0f %% of the CPU time is spent in the allocator.",
	    100.0 * sum / all);
	show(f, "alloc", NULL);
	advise(f, "Allocate less often where most is allocated.");
	name_commands(f, "Look at --what alloc, and at --callers '^(malloc|free)' of --what cpu.");
}

/* Out of memory, or nearly: of the cgroup, where it has a limit (-e mem). */
static void judge_limit(struct heap_figures *f, const struct profile *p)
{
	int64_t kills_first = 0, kills = 0, limit = last_of(p, KEY_CGROUP_MEMORY_LIMIT),
		usage = last_of(p, KEY_CGROUP_MEMORY_USAGE);
	char a[32], b[32];

	if (ends_of(p, KEY_CGROUP_MEMORY_OOM_KILLS, &kills_first, &kills) && kills > kills_first)
		say(f,
		    "Out of memory: the kernel killed %lld process%s of the cgroup during the recording. `gasflame limit` "
		    "reproduces it and says what filled the limit.",
		    (long long)(kills - kills_first), kills - kills_first == 1 ? "" : "es");
	else if (limit > 0 && usage * 100 >= limit * FULL_PERCENT)
		say(f,
		    "Nearly out of memory: the cgroup uses %s of its limit of %s. `gasflame mem` says what is in it; cache of "
		    "files is given up first.",
		    str_bytes(a, usage), str_bytes(b, limit));
}

/* CPU against memory. */
static void judge_cpu(struct heap_figures *f, const struct profile *p)
{
	uint64_t whole = p->duration_ns;
	double percent = str_percent(cpu_ns(p), whole);
	bool memory = f->rose;

	for (int i = 0; i < HEAP_SYMPTOMS; i++)
		memory |= f->symptoms[i];
	if (!whole || !cpu_ns(p))
		return;
	if (percent >= BUSY_PERCENT && memory) {
		say(f, "CPU time is high, too (%.0f %% of a CPU).", percent);
		name_commands(f, "Look at both, -e cpu,heap.");
	} else if (percent >= BUSY_PERCENT) {
		say(f, "Nothing of the heap stands out, and CPU time is high (%.0f %% of a CPU).", percent);
		name_commands(f, "Look at -e cpu.");
	} else if (memory) {
		say(f, "CPU time is low (%.0f %% of a CPU): memory is what to look at, as above.", percent);
	} else {
		say(f, "Nothing of the heap stands out, and CPU time is low (%.0f %% of a CPU): if it is slow, it waits.", percent);
		name_commands(f, "Look at -e wait.");
	}
}

void heap_judge(struct heap_figures *f, const struct profile *p)
{
	/* Several recordings have no moments and ages in common. */
	if (!f->recordings)
		judge_leak(f);
	judge_end(f);
	judge_churn(f);
	if (!f->recordings) {
		judge_bloat(f);
		judge_rise(f);
	}
	judge_fragmentation(f, p);
	judge_slow(f, p);
	judge_limit(f, p);
	judge_cpu(f, p);
}
