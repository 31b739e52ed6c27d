/*
 * perfscript.c - samples one by one as perf script prints them, for grep, stackcollapse-perf.pl and whatever else reads that text.
 *
 *	# gasflame : perf-script 1
 *	# event : name = cpu, unit = ns, period = 1000000, describe = CPU time, sampled at 999 Hz
 *	tokio-rt 3 9421/9423 12.000104000:    1000000 cpu:
 *		          2fab10 inner (inlined)
 *		          2fab10 outer (/usr/bin/reth)
 *
 * Addresses are those of the files' own symbols. Where a function begins is not known, so names have no offset, unless the name
 * itself ends like one: readers take that off. Of a name that the line could not be told from, spaces become underscores.
 */
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "export/export.h"
#include "export/report/cleantext.h"
#include "export/samplerows.h"
#include "folded/collapse/perfline.h"
#include "profile/profile.h"

struct printed {
	size_t at, n;
};

struct script {
	const struct export_job *job;
	struct buf *out;
	struct stackcalls calls;
	struct buf stacks;  /* those that were printed */
	struct map printed; /* stack to its place in them */
	VEC(struct printed) places;
	struct buf name;
};

/* --- the head --- */

static void put_word(struct buf *b, const char *s)
{
	size_t at = b->n;

	cleantext_put(b, *s ? s : "samples");
	for (size_t i = at; i < b->n; i++)
		if (b->data[i] == ' ' || b->data[i] == ',')
			b->data[i] = '_';
}

static void put_fact(struct buf *b, const char *key, const char *value)
{
	if (!*value)
		return;
	buf_printf(b, "# %s : ", key);
	cleantext_put(b, value);
	buf_putc(b, '\n');
}

static void put_seconds(struct buf *b, uint64_t ns)
{
	buf_printf(b, "%llu.%09llu", (unsigned long long)(ns / 1000000000), (unsigned long long)(ns % 1000000000));
}

static void put_head(struct script *s, const struct samplerows *rows)
{
	const struct profile *p = s->job->profile;

	buf_puts(s->out, "# gasflame : perf-script 1\n");
	put_fact(s->out, "hostname", profile_str(p, p->host));
	put_fact(s->out, "os release", profile_str(p, p->kernel));
	put_fact(s->out, "target", profile_str(p, p->target));
	if (p->start_wall_ns) {
		buf_puts(s->out, "# started : ");
		put_seconds(s->out, p->start_wall_ns);
		buf_putc(s->out, '\n');
	}
	buf_puts(s->out, "# duration : ");
	put_seconds(s->out, p->duration_ns);
	buf_putc(s->out, '\n');
	for (size_t i = 0; i < rows->events.n; i++) {
		const struct profile_event *e = &p->events.v[rows->events.v[i]];

		buf_puts(s->out, "# event : name = ");
		put_word(s->out, profile_str(p, e->name));
		buf_puts(s->out, ", unit = ");
		put_word(s->out, profile_str(p, e->unit));
		buf_printf(s->out, ", period = %llu, describe = ", (unsigned long long)e->period);
		cleantext_put(s->out, profile_str(p, e->describe));
		buf_putc(s->out, '\n');
	}
}

/* --- a stack --- */

/* A name without an offset is taken for one with it where it ends in "+0x12": then the offset is written, too. An unknown name with
 * an offset is one that stays unknown: its address is not of the file. */
static void put_offset(struct buf *b, size_t at, uint64_t address, bool named)
{
	size_t n = perfline_without_offset(b->data + at, b->n - at);
	uint64_t start = 0;

	if (n == b->n - at) {
		if (named && !strcmp(b->data + at, "[unknown]"))
			buf_puts(b, "+0x0");
		return;
	}
	for (size_t i = at + n + 3; i < b->n; i++)
		start = start << 4 | (b->data[i] <= '9' ? b->data[i] - '0' : b->data[i] - 'a' + 10);
	buf_printf(b, "+0x%llx", (unsigned long long)(address > start && address - start < 1 << 24 ? address - start : 0));
}

/* The last " (" of a line begins the module; "(deleted)" at its end is known to readers. */
static void put_module(struct buf *b, const char *module)
{
	static const char deleted[] = " (deleted)";
	size_t at = b->n, end;

	cleantext_put(b, module);
	end = b->n - at > strlen(deleted) && !memcmp(b->data + b->n - strlen(deleted), deleted, strlen(deleted)) ? b->n - strlen(deleted)
														   : b->n;
	for (size_t i = at; i + 1 < end; i++)
		if (b->data[i] == ' ' && b->data[i + 1] == '(')
			b->data[i] = '_';
}

static const char *module_of(const struct stackcall *c)
{
	if (c->inlined)
		return "inlined";
	if (c->kind == IDENT_NOTE)
		return "note";
	if (c->kind == IDENT_KERNEL && (!*c->module || !strcmp(c->module, "[kernel]")))
		return "[kernel.kallsyms]";
	return *c->module ? c->module : "[unknown]";
}

static void put_call(struct script *s, const struct stackcall *c)
{
	const struct profile_frame *f = &s->job->profile->frames.v[c->frame];
	struct buf *b = &s->stacks;
	size_t at;

	buf_printf(b, "\t%16llx ", (unsigned long long)c->address);
	at = b->n;
	if (!f->line_count && *c->module)
		buf_puts(b, "[unknown]");
	else
		cleantext_put(b, c->name);
	/* Spaces before a name would be lost, and a name in parentheses is taken for that of a process. */
	if (b->data[at] == ' ' || (b->data[at] == '(' && b->data[b->n - 1] == ')'))
		b->data[at] = '_';
	if (!c->inlined)
		put_offset(b, at, c->address, f->line_count);
	buf_puts(b, " (");
	put_module(b, module_of(c));
	buf_puts(b, ")\n");
}

static void put_stack(struct script *s, uint32_t stack)
{
	uint64_t *at = map_put(&s->printed, stack, s->places.n);
	struct printed place = { .at = s->stacks.n };

	if (*at < s->places.n) {
		place = s->places.v[*at];
	} else {
		stackcalls_of(&s->calls, stack);
		for (size_t i = 0; i < s->calls.list.n; i++)
			put_call(s, &s->calls.list.v[i]);
		place.n = s->stacks.n - place.at;
		vec_push(&s->places, place);
	}
	if (place.n)
		buf_add(s->out, s->stacks.data + place.at, place.n);
}

/* --- a sample --- */

static void put_ids(struct script *s, const struct profile_thread *t)
{
	const struct profile *p = s->job->profile;
	uint32_t pid = t->process < p->processes.n ? p->processes.v[t->process].pid : t->tid;

	/* Perl wants a name of two characters: a space is one. */
	buf_printf(s->out, "%s %u/%u ", s->name.n < 2 ? " " : "", pid, t->tid);
}

/* Is the line read as it was meant? */
static bool reads_back(struct script *s, size_t at)
{
	struct perfline_record r;
	const char *line = s->out->data + at;

	return *line != '#' && perfline_record(line, s->out->n - at, &r) && r.comm.n == s->name.n &&
	       !memcmp(r.comm.s, s->name.data, r.comm.n);
}

static void put_line(struct script *s, const struct samplerow *row)
{
	const struct profile *p = s->job->profile;
	const struct profile_thread *t = &p->threads.v[row->thread];

	buf_add(s->out, s->name.data, s->name.n);
	put_ids(s, t);
	put_seconds(s->out, row->begin_ns);
	buf_printf(s->out, ": %10llu ", (unsigned long long)row->value);
	put_word(s->out, profile_str(p, p->events.v[row->event].name));
	buf_puts(s->out, ":");
}

static void put_sample(struct script *s, const struct samplerow *row)
{
	const struct profile *p = s->job->profile;
	const char *name = profile_str(p, p->threads.v[row->thread].name);
	size_t at = s->out->n;

	s->name.n = 0;
	cleantext_put(&s->name, *name ? name : "[no name]");
	put_line(s, row);
	if (!reads_back(s, at)) {
		s->out->n = at;
		for (size_t i = 0; i < s->name.n; i++)
			if (s->name.data[i] == ' ' || (!i && s->name.data[i] == '#'))
				s->name.data[i] = '_';
		put_line(s, row);
	}
	buf_puts(s->out, " \n");
	put_stack(s, row->stack);
	buf_putc(s->out, '\n');
}

int perfscript_write(const struct export_job *job, struct buf *out, struct err *err)
{
	struct script s = { .job = job, .out = out };
	struct samplerows rows;
	int r = samplerows_make(&rows, job, SAMPLEROWS_IDLE | SAMPLEROWS_BY_TIME, err);

	if (!r) {
		stackcalls_init(&s.calls, job);
		put_head(&s, &rows);
		for (size_t i = 0; i < rows.list.n; i++)
			put_sample(&s, &rows.list.v[i]);
		stackcalls_done(&s.calls);
	}
	samplerows_done(&rows);
	buf_done(&s.stacks);
	buf_done(&s.name);
	map_done(&s.printed);
	vec_done(&s.places);
	return r;
}
