#include "export/samplerows.h"

#include <errno.h>
#include <string.h>

#include "analyze/select.h"
#include "base/err.h"
#include "export/export.h"
#include "profile/profile.h"

/* --- rows --- */

struct block_span {
	uint64_t start_ns, end_ns;
	uint64_t last_ns; /* where the latest of this and all earlier ones ends */
	uint32_t mark;
};

struct making {
	struct samplerows *rows;
	const struct export_job *job;
	VEC(struct block_span) blocks; /* by start */
	uint32_t event; /* that is asked for */
	bool idle;
};

static int compare_spans(const void *a, const void *b)
{
	const struct block_span *x = a, *y = b;

	return ORDER(x->start_ns, y->start_ns) ?: ORDER(y->end_ns, x->end_ns) ?: ORDER(x->mark, y->mark);
}

static void find_blocks(struct making *m)
{
	const struct profile *p = m->job->profile;
	uint64_t last = 0;

	for (size_t i = 0; i < p->marks.n; i++)
		if (!strcmp(profile_str(p, p->marks.v[i].kind), "block") && p->marks.v[i].end_ns > p->marks.v[i].start_ns)
			vec_push(&m->blocks, (struct block_span){ p->marks.v[i].start_ns, p->marks.v[i].end_ns, .mark = i });
	vec_sort(&m->blocks, compare_spans);
	for (size_t i = 0; i < m->blocks.n; i++)
		m->blocks.v[i].last_ns = last = MAX(last, m->blocks.v[i].end_ns);
}

/* Of blocks that overlap, the one that began last. */
static uint32_t block_at(const struct making *m, uint64_t time_ns)
{
	size_t i = vec_search(k, 0, m->blocks.n, m->blocks.v[k].start_ns <= time_ns);

	while (i-- > 0 && m->blocks.v[i].last_ns > time_ns)
		if (m->blocks.v[i].end_ns > time_ns)
			return m->blocks.v[i].mark;
	return PROFILE_NONE;
}

static void add_row(void *context, const struct select_hit *hit)
{
	struct making *m = context;
	const struct profile *p = m->job->profile;
	const struct profile_sample *s = &p->samples.v[hit->index];
	const struct select_options *o = &m->job->selection->options;
	const uint32_t *shaped = m->job->selection->shaped;
	struct samplerow row = { .value = hit->weight.value, .count = hit->weight.samples, .event = s->event, .thread = s->thread,
				 .stack = shaped ? shaped[hit->stack] : hit->stack, .sample = hit->index, .role = hit->role, .cause = hit->cause };

	if ((hit->idle && !m->idle) || row.stack == PROFILE_NONE)
		return;
	select_span(p, hit->index, hit->role, &row.begin_ns, &row.end_ns);
	if (row.end_ns > row.begin_ns) {
		row.begin_ns = MAX(row.begin_ns, o->from_ns);
		row.end_ns = o->to_ns ? MIN(row.end_ns, o->to_ns) : row.end_ns;
	}
	row.block = block_at(m, row.begin_ns);
	vec_push(&m->rows->list, row);
}

static int add_event(struct making *m, uint32_t event, struct err *err)
{
	struct select_options o = m->job->selection->options;

	o.event = event;
	o.idle |= m->idle;
	return select_each(m->job->profile, &o, add_row, m, err);
}

/* An event of which the filters leave nothing is no error, as long as they leave something of another one. */
static int add_events(struct making *m, struct err *err)
{
	const struct profile *p = m->job->profile;
	struct err first = { 0 };

	for (uint32_t i = 0; i < p->events.n; i++) {
		struct err own = { 0 };
		int r = add_event(m, i, &own);

		if (r && r != -ENODATA) {
			if (err)
				*err = own;
			return r;
		}
		if (r && !first.code)
			first = own;
	}
	if (m->rows->list.n || !first.code)
		return 0;
	if (err)
		*err = first;
	return -first.code;
}

static int compare_rows(const void *a, const void *b)
{
	const struct samplerow *x = a, *y = b;

	return ORDER(x->begin_ns, y->begin_ns) ?: ORDER(x->event, y->event) ?: ORDER(x->thread, y->thread) ?: ORDER(x->end_ns, y->end_ns) ?:
	       ORDER(x->stack, y->stack) ?: ORDER(x->value, y->value) ?: ORDER(x->count, y->count);
}

static void list_events(struct samplerows *rows, const struct profile *p)
{
	_cleanup_free_ bool *seen = mem_alloc(p->events.n + 1);

	for (size_t i = 0; i < rows->list.n; i++)
		seen[rows->list.v[i].event] = true;
	for (uint32_t i = 0; i < p->events.n; i++)
		if (seen[i])
			vec_push(&rows->events, i);
}

int samplerows_make(struct samplerows *rows, const struct export_job *job, unsigned flags, struct err *err)
{
	struct making m = { .rows = rows, .job = job, .idle = flags & SAMPLEROWS_IDLE || job->selection->options.idle };
	int r;

	*rows = (struct samplerows){ 0 };
	find_blocks(&m);
	r = flags & SAMPLEROWS_EVERY || job->options.every_event ? add_events(&m, err)
							   : add_event(&m, job->selection->options.event, err);
	vec_done(&m.blocks);
	if (r)
		return r;
	list_events(rows, job->profile);
	if (flags & SAMPLEROWS_BY_TIME)
		vec_sort(&rows->list, compare_rows);
	return 0;
}

void samplerows_done(struct samplerows *rows)
{
	vec_done(&rows->list);
	vec_done(&rows->events);
}

const char *samplerow_cause(const struct samplerow *row)
{
	return row->role == ROLE_WAIT || row->role == ROLE_QUEUE ? cause_name(row->cause) : "";
}

/* --- stacks --- */

void stackcalls_init(struct stackcalls *c, const struct export_job *job)
{
	*c = (struct stackcalls){ 0 };
	idents_init(&c->idents, job->profile, job->options.no_inline ? IDENTS_NO_INLINE : 0);
}

void stackcalls_done(struct stackcalls *c)
{
	vec_done(&c->list);
	idents_done(&c->idents);
}

/* Appends the calls of a frame, the innermost first: lines of a frame are in this order, its identities in the other. */
static void add_frame(struct stackcalls *c, uint32_t frame)
{
	const struct profile *p = c->idents.p;
	const struct profile_frame *f = &p->frames.v[frame];
	uint32_t n;
	const uint32_t *list = idents_of_frame(&c->idents, frame, &n);

	for (uint32_t i = 0; i < n; i++) {
		const struct ident *ident = &c->idents.list.v[list[n - 1 - i]];
		/* Without inlined calls the one identity is that of the last line. */
		uint32_t at = f->line_count - n + i;
		const struct profile_line *line = f->line_count >= n ? &p->lines.v[f->first_line + at] : NULL;
		struct stackcall call = { .name = *ident->name ? ident->name : "[no name]", .linkage = "", .file = "", .module = ident->module,
					  .address = f->address, .frame = frame, .kind = ident->kind, .inlined = i + 1 < n };

		if (line) {
			call.file = profile_str(p, p->functions.v[line->function].file);
			call.linkage = profile_str(p, p->functions.v[line->function].linkage);
			call.line = line->line;
			call.inlined |= line->inlined;
		}
		vec_push(&c->list, call);
	}
}

void stackcalls_of_frame(struct stackcalls *c, uint32_t frame)
{
	vec_clear(&c->list);
	add_frame(c, frame);
}

void stackcalls_of(struct stackcalls *c, uint32_t stack)
{
	const struct profile *p = c->idents.p;

	vec_clear(&c->list);
	for (; stack; stack = p->stacks.v[stack].parent)
		add_frame(c, p->stacks.v[stack].frame);
}
