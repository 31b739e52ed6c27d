#include "export/foreign/perfetto/perfettotracks.h"

#include <string.h>

#include "analyze/wait/cause.h"
#include "base/codec/protobuf.h"
#include "base/mem.h"
#include "export/foreign/perfetto/perfettomarks.h"
#include "export/foreign/perfetto/perfettoseq.h"
#include "profile/profile.h"

enum { OF_PROCESSES = 1, OF_THREADS, OF_MARKS, OF_SERIES, KINDS };
enum { MADE_UP = 1 << 30 }; /* Linux gives at most 2^22 */

static uint64_t number_of(unsigned kind, uint32_t index)
{
	return (uint64_t)index * KINDS + kind;
}

uint64_t perfettotrack_process(uint32_t process)
{
	return number_of(OF_PROCESSES, process);
}

uint64_t perfettotrack_thread(uint32_t thread)
{
	return number_of(OF_THREADS, thread);
}

uint64_t perfettotrack_mark(uint32_t track)
{
	return number_of(OF_MARKS, track);
}

uint64_t perfettotrack_series(uint32_t series)
{
	return number_of(OF_SERIES, series);
}

uint32_t perfettotrack_pid(const struct profile *p, uint32_t process)
{
	uint32_t pid = process < p->processes.n ? p->processes.v[process].pid : 0;

	return pid ? pid : MADE_UP + (process < p->processes.n ? process : 0);
}

/* A process without a number has the first half of what is made up, a thread the second. */
uint32_t perfettotrack_tid(const struct profile *p, uint32_t thread)
{
	uint32_t tid = p->threads.v[thread].tid;

	return tid ? tid : MADE_UP + MADE_UP / 2 + thread;
}

void perfettotrack_put_clocks(struct perfettoseq *s, const struct profile *p)
{
	enum { REALTIME = 1, MONOTONIC = 3, BOOTTIME = 6 };
	const struct {
		unsigned id;
		uint64_t now;
	} clocks[] = { { BOOTTIME, 0 }, { MONOTONIC, 0 }, { REALTIME, p->start_wall_ns } };
	size_t packet = perfettoseq_open(s, 0), body = protobuf_open(s->out, PERFETTO_CLOCK_SNAPSHOT);

	for (size_t i = 0; i < ARRAY_LEN(clocks); i++) {
		size_t clock;

		if (clocks[i].id == REALTIME && !p->start_wall_ns)
			continue;
		clock = protobuf_open(s->out, 1);
		protobuf_put_uint(s->out, 1, clocks[i].id);
		protobuf_put_uint(s->out, 2, clocks[i].now);
		protobuf_close(s->out, clock);
	}
	protobuf_put_uint(s->out, 2, BOOTTIME);
	protobuf_close(s->out, body);
	perfettoseq_close(s, packet);
}

/* --- descriptions of tracks --- */

enum { TRACK_NUMBER = 1, TRACK_NAME, TRACK_PROCESS, TRACK_THREAD, TRACK_PARENT, TRACK_COUNTER = 8 };

struct track {
	size_t packet, body;
};

static struct track open_track(struct perfettoseq *s, uint64_t number)
{
	struct track t = { .packet = perfettoseq_open(s, PERFETTO_UNTIMED) };

	t.body = protobuf_open(s->out, PERFETTO_TRACK);
	protobuf_put_uint(s->out, TRACK_NUMBER, number);
	return t;
}

static void close_track(struct perfettoseq *s, struct track t)
{
	protobuf_close(s->out, t.body);
	perfettoseq_close(s, t.packet);
}

static void put_process(struct perfettoseq *s, const struct profile *p, uint32_t process)
{
	const struct profile_process *x = &p->processes.v[process];
	struct track t = open_track(s, perfettotrack_process(process));
	size_t body = protobuf_open(s->out, TRACK_PROCESS);

	protobuf_put_uint(s->out, 1, perfettotrack_pid(p, process));
	if (x->command)
		perfettoseq_put_name(s->out, 2, profile_str(p, x->command));
	if (x->name)
		perfettoseq_put_name(s->out, 6, profile_str(p, x->name));
	protobuf_close(s->out, body);
	close_track(s, t);
}

static void put_thread(struct perfettoseq *s, const struct profile *p, uint32_t thread)
{
	const struct profile_thread *x = &p->threads.v[thread];
	struct track t = open_track(s, perfettotrack_thread(thread));
	size_t body;

	if (x->process < p->processes.n)
		protobuf_put_uint(s->out, TRACK_PARENT, perfettotrack_process(x->process));
	body = protobuf_open(s->out, TRACK_THREAD);
	protobuf_put_uint(s->out, 1, perfettotrack_pid(p, x->process));
	protobuf_put_uint(s->out, 2, perfettotrack_tid(p, thread));
	if (x->name)
		perfettoseq_put_name(s->out, 5, profile_str(p, x->name));
	protobuf_close(s->out, body);
	close_track(s, t);
}

static void put_mark_track(struct perfettoseq *s, const struct profile *p, const struct perfettomark_track *x, uint32_t track)
{
	struct track t = open_track(s, perfettotrack_mark(track));

	if (x->thread < p->threads.n)
		protobuf_put_uint(s->out, TRACK_PARENT, perfettotrack_thread(x->thread));
	perfettoseq_put_name(s->out, TRACK_NAME, profile_str(p, x->kind));
	close_track(s, t);
}

static void put_counter(struct perfettoseq *s, const struct profile *p, uint32_t series)
{
	enum { UNIT = 3, UNIT_NAME = 6, IS_NS = 1, IS_COUNT, IS_BYTES };
	const char *unit = profile_str(p, p->series.v[series].unit);
	struct track t = open_track(s, perfettotrack_series(series));
	size_t body;

	perfettoseq_put_name(s->out, TRACK_NAME, profile_str(p, p->series.v[series].name));
	body = protobuf_open(s->out, TRACK_COUNTER);
	if (!strcmp(unit, "ns") || !strcmp(unit, "count") || !strcmp(unit, "bytes"))
		protobuf_put_uint(s->out, UNIT, *unit == 'n' ? IS_NS : *unit == 'c' ? IS_COUNT : IS_BYTES);
	else
		perfettoseq_put_name(s->out, UNIT_NAME, unit);
	protobuf_close(s->out, body);
	close_track(s, t);
}

void perfettotrack_put_all(struct perfettoseq *s, const struct profile *p, const uint8_t *threads, const uint8_t *series,
			   const struct perfettomarks *marks)
{
	_cleanup_free_ uint8_t *processes = mem_alloc(p->processes.n + 1);

	for (size_t i = 0; i < p->threads.n; i++)
		if (threads[i] && p->threads.v[i].process < p->processes.n)
			processes[p->threads.v[i].process] = 1;
	for (size_t i = 0; i < p->processes.n; i++)
		if (processes[i])
			put_process(s, p, i);
	for (size_t i = 0; i < p->threads.n; i++)
		if (threads[i])
			put_thread(s, p, i);
	for (size_t i = 0; i < marks->tracks.n; i++)
		put_mark_track(s, p, &marks->tracks.v[i], i);
	for (size_t i = 0; i < p->series.n; i++)
		if (series[i])
			put_counter(s, p, i);
}

void perfettotrack_put_session(struct buf *out, const struct profile *p, uint32_t event, uint64_t one_in)
{
	enum { SAMPLES = 12, TIMEBASE = 1, PERIOD = 1, COUNTER = 4, NAME = 10, CPU_CLOCK = 1 };
	const struct profile_event *e = &p->events.v[event];
	size_t defaults = protobuf_open(out, PERFETTO_DEFAULTS), samples = protobuf_open(out, SAMPLES);
	size_t timebase = protobuf_open(out, TIMEBASE);

	if (e->period && e->period <= UINT64_MAX / one_in)
		protobuf_put_uint(out, PERIOD, e->period * one_in);
	if (cause_role(p, event) == ROLE_CPU)
		protobuf_put_uint(out, COUNTER, CPU_CLOCK);
	perfettoseq_put_name(out, NAME, profile_str(p, e->name));
	protobuf_close(out, timebase);
	protobuf_close(out, samples);
	protobuf_close(out, defaults);
}
