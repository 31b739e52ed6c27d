/*
 * jsonl.c - a line of JSON for each sample, after one about the recording:
 *
 *	{"format":"gasflame-jsonl","version":1,"target":"reth","start_wall_ns":1763200931000000000,"duration_ns":2100000000,
 *	 "events":[{"name":"cpu","unit":"ns","describe":"CPU time","period":1000000}],"stack":"leaf last"}
 *	{"time":0,"event":"cpu","unit":"ns","value":1000000,"count":1,"pid":100,"tid":101,"process":"reth","thread":"worker",
 *	 "stack":[{"name":"main","module":"/usr/bin/reth","file":"main.rs","line":7},{"name":"run"}]}
 *
 * Times are nanoseconds since the start, addresses are text in hex, as many readers of JSON have no numbers beyond 2^53. A call that
 * is "inlined" is so into the one before it; one that is "unnamed" has a place for want of a name. What is not known is left out. Between the two come the marks, of blocks for example:
 *
 *	{"mark":"block 24443168","kind":"block","time":0,"end":120000000,"number":24443168}
 *
 * src/import/text/jsonl.c reads it.
 */
#include <stdio.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "export/export.h"
#include "export/foreign/roworder.h"
#include "export/samplerows.h"
#include "profile/profile.h"

static void put_known(struct json *j, const char *key, const char *value)
{
	if (*value)
		json_put_string(j, key, value);
}

static void put_head(const struct export_job *job, const struct samplerows *rows, struct buf *out)
{
	const struct profile *p = job->profile;
	struct json j = json_begin(out);

	json_open_object(&j, NULL);
	json_put_string(&j, "format", "gasflame-jsonl");
	json_put_uint(&j, "version", 1);
	json_put_string(&j, "target", profile_str(p, p->target));
	put_known(&j, "host", profile_str(p, p->host));
	put_known(&j, "kernel", profile_str(p, p->kernel));
	if (p->start_wall_ns)
		json_put_uint(&j, "start_wall_ns", p->start_wall_ns);
	json_put_uint(&j, "duration_ns", p->duration_ns);
	json_open_array(&j, "events");
	for (size_t i = 0; i < rows->events.n; i++) {
		const struct profile_event *e = &p->events.v[rows->events.v[i]];

		json_open_object(&j, NULL);
		json_put_string(&j, "name", profile_str(p, e->name));
		json_put_string(&j, "unit", profile_str(p, e->unit));
		put_known(&j, "describe", profile_str(p, e->describe));
		if (e->period)
			json_put_uint(&j, "period", e->period);
		json_close(&j);
	}
	json_close(&j);
	json_put_string(&j, "stack", "leaf last");
	json_end_line(&j);
}

static void put_mark(const struct profile *p, const struct profile_mark *m, struct buf *out)
{
	struct json j = json_begin(out);

	json_open_object(&j, NULL);
	json_put_string(&j, "mark", profile_str(p, m->name));
	json_put_string(&j, "kind", profile_str(p, m->kind));
	json_put_uint(&j, "time", m->start_ns);
	json_put_uint(&j, "end", m->end_ns);
	if (m->block.known & BLOCK_NUMBER)
		json_put_uint(&j, "number", m->block.number);
	if (m->block.known & BLOCK_GAS)
		json_put_uint(&j, "gas", m->block.gas);
	if (m->block.known & BLOCK_TRANSACTIONS)
		json_put_uint(&j, "transactions", m->block.transactions);
	json_end_line(&j);
}

static const char *kind_name(const struct profile *p, const struct stackcall *call)
{
	static const char *const names[] = { [FRAME_USER] = "", [FRAME_KERNEL] = "kernel", [FRAME_TRUNCATED] = "truncated",
					     [FRAME_NOTE] = "note" };

	return names[p->frames.v[call->frame].kind];
}

static void put_call(struct json *j, const struct profile *p, const struct stackcall *call)
{
	char address[24];

	json_open_object(j, NULL);
	json_put_string(j, "name", call->name);
	put_known(j, "module", call->module);
	put_known(j, "file", call->file);
	if (call->line)
		json_put_uint(j, "line", call->line);
	if (call->address && call->kind != IDENT_TRUNCATED) {
		snprintf(address, sizeof(address), "0x%llx", (unsigned long long)call->address);
		json_put_string(j, "address", address);
	}
	put_known(j, "kind", kind_name(p, call));
	if (call->kind == IDENT_UNNAMED)
		json_put_bool(j, "unnamed", true);
	if (call->inlined)
		json_put_bool(j, "inlined", true);
	json_close(j);
}

static void put_thread(struct json *j, const struct profile *p, uint32_t thread)
{
	const struct profile_thread *t = &p->threads.v[thread];

	if (t->process < p->processes.n) {
		json_put_uint(j, "pid", p->processes.v[t->process].pid);
		put_known(j, "process", profile_str(p, p->processes.v[t->process].name));
	}
	json_put_uint(j, "tid", t->tid);
	put_known(j, "thread", profile_str(p, t->name));
}

static void put_row(const struct profile *p, const struct samplerow *row, struct stackcalls *calls, struct buf *out)
{
	struct json j = json_begin(out);

	json_open_object(&j, NULL);
	json_put_uint(&j, "time", row->begin_ns);
	if (row->end_ns > row->begin_ns)
		json_put_uint(&j, "end", row->end_ns);
	json_put_string(&j, "event", profile_str(p, p->events.v[row->event].name));
	json_put_string(&j, "unit", profile_str(p, p->events.v[row->event].unit));
	json_put_uint(&j, "value", row->value);
	json_put_uint(&j, "count", row->count);
	put_thread(&j, p, row->thread);
	put_known(&j, "cause", samplerow_cause(row));
	if (row->block != PROFILE_NONE)
		json_put_string(&j, "block", profile_str(p, p->marks.v[row->block].name));
	stackcalls_of(calls, row->stack);
	json_open_array(&j, "stack");
	for (size_t i = calls->list.n; i-- > 0;)
		put_call(&j, p, &calls->list.v[i]);
	json_close(&j);
	json_end_line(&j);
}

int jsonl_write(const struct export_job *job, struct buf *out, struct err *err)
{
	struct stackcalls calls;
	struct samplerows rows;
	int r = samplerows_make(&rows, job, 0, err);
	_cleanup_free_ uint32_t *order = roworder_by_time(&rows);

	if (!r)
		put_head(job, &rows, out);
	for (size_t i = 0; i < job->profile->marks.n && !r; i++)
		put_mark(job->profile, &job->profile->marks.v[i], out);
	stackcalls_init(&calls, job);
	for (size_t i = 0; i < rows.list.n && !r; i++)
		put_row(job->profile, &rows.list.v[order[i]], &calls, out);
	stackcalls_done(&calls);
	samplerows_done(&rows);
	return r;
}
