#include "cmd/agent/agentmetrics.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"
#include "fleet/agent/board.h"
#include "fleet/sink/metrics.h"

static void set_of(struct metrics *m, const char *name, const char *key, const char *field, const char *more, double value)
{
	char text[BOARD_NAME];
	_cleanup_free_ char *label = mem_printf("%s=%s", key, board_text(field, BOARD_NAME, text, sizeof(text)));

	metrics_set(m, name, (const char *const[]){ label, more, NULL }, value);
}

static void set_target(struct metrics *m, const struct board_target *t)
{
	set_of(m, "gasflame_agent_target_up", "target", t->name, NULL, t->state == BOARD_RECORDING);
	set_of(m, "gasflame_agent_windows_total", "target", t->name, NULL, t->windows);
	set_of(m, "gasflame_agent_windows_lost_total", "target", t->name, "why=not written", t->lost_windows);
	set_of(m, "gasflame_agent_target_level", "target", t->name, NULL, t->level);
}

static void set_sink(struct metrics *m, const struct board_sink *s)
{
	set_of(m, "gasflame_agent_sink_delivered_total", "sink", s->name, NULL, s->delivered);
	set_of(m, "gasflame_agent_sink_failures_total", "sink", s->name, NULL, s->failures);
	set_of(m, "gasflame_agent_sink_refused_total", "sink", s->name, NULL, s->refused);
	set_of(m, "gasflame_agent_sink_dropped_total", "sink", s->name, NULL, s->dropped);
	set_of(m, "gasflame_agent_sink_waiting_windows", "sink", s->name, NULL, s->waiting);
	set_of(m, "gasflame_agent_sink_last_success_timestamp_seconds", "sink", s->name, NULL, s->last_wall_ns / 1e9);
}

void agentmetrics_set(struct metrics *m, const struct board *b)
{
	uint64_t bpf_ns = 0;

	for (size_t i = 0; i < BOARD_TARGETS; i++) {
		bpf_ns += b->targets[i].past_bpf_ns + b->targets[i].bpf_ns;
		if (b->targets[i].state != BOARD_FREE)
			set_target(m, &b->targets[i]);
	}
	for (size_t i = 0; i < BOARD_SINKS; i++)
		if (*b->sinks[i].name)
			set_sink(m, &b->sinks[i]);
	metrics_set(m, "gasflame_agent_cpu_seconds_total", NULL, (b->all_cpu_ns - MIN(bpf_ns, b->all_cpu_ns)) / 1e9);
	metrics_set(m, "gasflame_agent_bpf_seconds_total", NULL, bpf_ns / 1e9);
	metrics_set(m, "gasflame_agent_resident_bytes", NULL, b->resident_bytes);
	metrics_set(m, "gasflame_agent_spool_bytes", NULL, b->spool_bytes);
	metrics_set(m, "gasflame_agent_spool_limit_bytes", NULL, b->spool_limit_bytes);
	metrics_set(m, "gasflame_agent_spool_windows", NULL, b->spool_windows);
	metrics_set(m, "gasflame_agent_spool_dropped_total", NULL, b->lost_windows);
}
