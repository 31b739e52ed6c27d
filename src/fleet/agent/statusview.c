#include "fleet/agent/statusview.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text/str.h"

static const uint64_t start_ns = 300000000000;

enum { SECOND = 1000000000 };

static void clean(char *field, size_t size)
{
	char text[BOARD_NOTE + 1];

	board_set(field, size, board_text(field, size, text, sizeof(text)));
}

static void trouble(struct statusview *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void trouble(struct statusview *v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vec_push(&v->troubles, mem_vprintf(fmt, ap));
	va_end(ap);
}

static void look_at_targets(struct statusview *v)
{
	char lost[32];

	for (size_t i = 0; i < BOARD_TARGETS; i++) {
		const struct board_target *t = &v->b->targets[i];

		if (!statusview_is_target(t))
			continue;
		if (t->state == BOARD_FAILED)
			trouble(v, "%s is not recorded: %s", t->name, *t->note ? t->note : "its recorder ended");
		if (t->lost_windows)
			trouble(v, "%s: %s windows could not be written to the spool", t->name, str_count(lost, t->lost_windows));
	}
}

static void look_at_sinks(struct statusview *v)
{
	char n[32], age[32];

	for (size_t i = 0; i < BOARD_SINKS; i++) {
		const struct board_sink *s = &v->b->sinks[i];

		if (!statusview_is_sink(s))
			continue;
		if (*s->note && s->waiting)
			trouble(v, "%s takes no windows: %s. %s wait, the oldest for %s", s->name, s->note, str_count(n, s->waiting),
				statusview_age(age, v->now_wall_ns, s->oldest_wall_ns));
		else if (*s->note)
			trouble(v, "%s: %s", s->name, s->note);
		if (s->dropped)
			trouble(v, "%s misses %s windows: the spool was full", s->name, str_count(n, s->dropped));
		if (s->refused)
			trouble(v, "%s refused %s windows for good: they are in the spool's folder refused/%s", s->name,
				str_count(n, s->refused), s->name);
	}
}

void statusview_init(struct statusview *v, const struct board *b, uint64_t now_wall_ns)
{
	struct board *copy = mem_alloc(sizeof(*copy));
	char used[32], budget[32];

	*v = (struct statusview){ .b = copy, .now_wall_ns = now_wall_ns, .now_mono_ns = clock_mono_ns() };
	memcpy(copy, b, sizeof(*copy));
	clean(copy->config, sizeof(copy->config));
	clean(copy->note, sizeof(copy->note));
	for (size_t i = 0; i < BOARD_TARGETS; i++) {
		clean(copy->targets[i].name, sizeof(copy->targets[i].name));
		clean(copy->targets[i].note, sizeof(copy->targets[i].note));
		clean(copy->targets[i].what, sizeof(copy->targets[i].what));
	}
	for (size_t i = 0; i < BOARD_SINKS; i++) {
		clean(copy->sinks[i].name, sizeof(copy->sinks[i].name));
		clean(copy->sinks[i].note, sizeof(copy->sinks[i].note));
	}
	if (!isfinite(copy->budget_percent))
		copy->budget_percent = 0;
	if (!isfinite(copy->recent_percent))
		copy->recent_percent = 0;
	v->percent = copy->all_mono_ns > copy->begun_mono_ns ? str_percent(copy->all_cpu_ns, copy->all_mono_ns - copy->begun_mono_ns) : 0;
	if (*copy->note)
		trouble(v, "the last reload was refused, and the old configuration holds: %s", copy->note);
	look_at_targets(v);
	look_at_sinks(v);
	/* Recorders cost more while they start. */
	if (copy->budget_percent > 0 && copy->recent_percent > copy->budget_percent &&
	    copy->all_mono_ns > copy->begun_mono_ns && copy->all_mono_ns - copy->begun_mono_ns > start_ns)
		trouble(v, "it used %s of one CPU in the last minutes, %s was promised", str_share(used, copy->recent_percent),
			str_share(budget, copy->budget_percent));
	if (copy->budget_bytes && copy->resident_bytes > copy->budget_bytes)
		trouble(v, "it uses %s of memory, %s was promised", str_bytes(used, copy->resident_bytes),
			str_bytes(budget, copy->budget_bytes));
}

void statusview_done(struct statusview *v)
{
	vec_done_each(&v->troubles, t, free(*t));
	free(v->b);
	v->b = NULL;
}

bool statusview_is_target(const struct board_target *t)
{
	return t->state != BOARD_FREE;
}

bool statusview_is_sink(const struct board_sink *s)
{
	return *s->name;
}

const char *statusview_state(const struct board_target *t)
{
	static const char *const words[BOARD_STATES] = {
		[BOARD_FREE] = "free", [BOARD_WAITING] = "waiting", [BOARD_STARTING] = "starting",
		[BOARD_RECORDING] = "recording", [BOARD_FAILED] = "failed",
	};

	return t->state < BOARD_STATES ? words[t->state] : "unknown";
}

enum statusview_mood statusview_target_mood(const struct board_target *t)
{
	return t->state == BOARD_RECORDING ? STATUSVIEW_WELL :
	       t->state == BOARD_WAITING || t->state == BOARD_STARTING ? STATUSVIEW_IDLE : STATUSVIEW_BAD;
}

const char *statusview_sink_state(const struct statusview *v, const struct board_sink *s, char out[48])
{
	char age[32];

	if (!*s->note)
		return s->waiting ? "delivering" : s->delivered ? "up to date" : "nothing yet";
	if (s->next_mono_ns <= v->now_mono_ns)
		return "failing";
	snprintf(out, 48, "tried again in %s", statusview_age(age, s->next_mono_ns, v->now_mono_ns));
	return out;
}

enum statusview_mood statusview_sink_mood(const struct board_sink *s)
{
	return *s->note ? STATUSVIEW_BAD : s->delivered ? STATUSVIEW_WELL : STATUSVIEW_IDLE;
}

double statusview_target_percent(const struct statusview *v, const struct board_target *t)
{
	const struct board *b = v->b;
	double ns = (double)t->cpu_ns + t->bpf_ns + t->past_cpu_ns + t->past_bpf_ns;

	return b->all_mono_ns > b->begun_mono_ns ? str_percent(ns, b->all_mono_ns - b->begun_mono_ns) : 0;
}

char *statusview_age(char out[32], uint64_t now_ns, uint64_t then_ns)
{
	unsigned long long s = now_ns > then_ns ? (now_ns - then_ns) / SECOND : 0;

	if (!then_ns)
		snprintf(out, 32, "-");
	else if (s < 60)
		snprintf(out, 32, "%llu s", s);
	else if (s < 3600)
		snprintf(out, 32, "%llu min", s / 60);
	else if (s < 24 * 3600)
		snprintf(out, 32, "%llu h %llu min", s / 3600, s / 60 % 60);
	else
		snprintf(out, 32, "%llu d %llu h", s / 86400, s / 3600 % 24);
	return out;
}
