#include "collect/collector.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/text/str.h"
#include "collect/inject/blobhead.h"
#include "collect/kernel/kernelmap.h"
#include "collect/process/processes.h"
#include "profile/profile.h"

#define ENTRY(name) [COLLECTOR_##name] = &collector_##name,
const struct collector *const collector_table[COLLECTOR_COUNT] = { COLLECTORS(ENTRY) };
#undef ENTRY

const char *const shared_reason_names[REASON_COUNT] = {
	[REASON_COMPLETE] = "complete",
	[REASON_NO_MAPPING] = "address in no known mapping",
	[REASON_NO_TABLE_YET] = "unwind table not ready yet",
	[REASON_NO_RULE] = "no unwind information there",
	[REASON_UNSUPPORTED] = "unwind rule not supported",
	[REASON_LOST_REGISTER] = "register not known there",
	[REASON_BAD_STACK] = "stack memory not readable",
	[REASON_NOT_RISING] = "stack does not rise",
	[REASON_FRAME_POINTER] = "no table and no frame pointer",
	[REASON_TOO_DEEP] = "deeper than the limit",
	[REASON_NO_REGISTERS] = "no user registers",
	[REASON_ENDING] = "the thread was ending",
	[REASON_DUMP_SHORT] = "deeper than the stack dump",
};

bool collector_any(const struct session *s, enum collector_flag flag)
{
	for (size_t i = 0; i < COLLECTOR_COUNT; i++)
		if (s->chosen[i] && collector_table[i]->flags & flag)
			return true;
	return false;
}

void collector_add_cpu_event(struct session *s)
{
	char describe[64];

	snprintf(describe, sizeof(describe), "CPU time, sampled at %u Hz", (unsigned)s->hz);
	s->cpu_event = profile_add_event(s->profile, "cpu", "ns", describe, 1000000000 / s->hz);
}

void collector_begin_at(struct session *s, uint64_t mono_ns)
{
	s->start_mono_ns = mono_ns;
	s->profile->start_wall_ns = clock_wall_ns() + mono_ns - clock_mono_ns();
	processes_set_start(s->processes, s->start_mono_ns);
}

void collector_begin(struct session *s)
{
	collector_begin_at(s, clock_mono_ns());
}

/* Our own hooks (inject/blobhead.h): between two functions of the program they are none of its calls. */
static bool is_hook(const struct profile *p, uint32_t module)
{
	return module != PROFILE_NONE && str_starts(profile_str(p, p->modules.v[module].path), "/memfd:" BLOB_NAMES);
}

uint32_t collector_stack(struct session *s, const struct shared_record *r, const uint64_t *frames)
{
	struct profile *p = s->profile;
	uint32_t stack = 0, own;

	if (r->reason != REASON_COMPLETE && r->reason < REASON_COUNT)
		stack = profile_stack(p, 0, profile_truncation_frame(p, shared_reason_names[r->reason]));
	for (int i = r->user_count - 1; i >= 0; i--) {
		uint32_t module = processes_module(s->processes, SHARED_FRAME_MODULE(frames[i]));

		/* Their own time is theirs. */
		if (i && is_hook(p, module))
			continue;
		stack = profile_stack(p, stack, profile_frame(p, module, FRAME_USER,
							      SHARED_FRAME_ADDRESS(frames[i])));
	}
	frames += r->user_count;
	own = r->own_frames ? kernelmap_own_frames(s->kernel, frames, r->kernel_count) : 0;
	for (int i = r->kernel_count - 1; i >= (int)own; i--)
		stack = profile_stack(p, stack, kernelmap_frame(s->kernel, frames[i] - (i ? 1 : 0)));
	return stack;
}

void collector_cpu_sample(struct session *s, const struct shared_record *r, uint32_t stack)
{
	char name[sizeof(r->name)];

	snprintf(name, sizeof(name), "%.15s", r->name); /* "": not known, without BPF */
	collector_cpu_sample_of(s, r, stack, processes_thread(s->processes, r->pid, r->tid, name, r->time_ns));
}

void collector_cpu_sample_of(struct session *s, const struct shared_record *r, uint32_t stack, uint32_t thread)
{
	s->sampled_ns += r->value;
	if (r->reason < REASON_COUNT)
		s->reasons[r->reason]++;
	profile_add_sample(s->profile,
		&(struct profile_sample){ .event = s->cpu_event, .value = r->value, .stack = stack,
					  .time_ns = collector_time_ns(s, r->time_ns),
					  .thread = thread });
}
