#include "import/pprof/pprofmodel.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/text/str.h"
#include "import/import.h"
#include "import/pprof/pprofplaces.h"
#include "elf/worker/worker.h"
#include "profile/keys.h"
#include "profile/profile.h"

void pprofmodel_init(struct pprofmodel *m, const struct import_input *in)
{
	*m = (struct pprofmodel){ .p = profile_new(), .in = in };
	m->p->finished = true;
	frames_init(&m->frames, m->p);
}

void pprofmodel_done(struct pprofmodel *m)
{
	frames_done(&m->frames);
	if (m->worker)
		worker_free(m->worker);
	vec_done(&m->strings);
	vec_done(&m->mappings);
	vec_done(&m->functions);
	vec_done(&m->lines);
	vec_done(&m->locations);
	vec_done(&m->types.list);
	vec_done(&m->list);
	profile_free(m->p);
	m->p = NULL;
}

uint32_t pprofmodel_string(struct pprofmodel *m, const void *data, size_t n)
{
	return strtab_add_n(&m->p->strings, data, n);
}

/* --- frames --- */

/* By convention the first mapping is that of the program. */
static const char *program(const struct pprofmodel *m)
{
	const char *path = m->mappings.n ? profile_str(m->p, m->mappings.v[0].file) : "";

	return *path && *path != '[' && !frames_is_kernel(path) ? str_base_name(path) : m->in->name;
}

void pprofmodel_prepare(struct pprofmodel *m)
{
	if (!m->p->target)
		m->p->target = profile_string(m->p, program(m));
	pprofplaces_prepare(m);
}

/* Our own mark of a stack that has no end; PROFILE_NONE: it is none. */
static uint32_t truncation(struct profile *p, const char *name)
{
	static const char mark[] = "[truncated: ";
	size_t n = strlen(name);
	_cleanup_free_ char *reason = NULL;

	if (!str_starts(name, mark) || name[n - 1] != ']')
		return PROFILE_NONE;
	reason = mem_strndup(name + sizeof(mark) - 1, n - sizeof(mark));
	return profile_truncation_frame(p, reason);
}

static uint32_t named_frame(struct pprofmodel *m, const struct pproflocation *l, uint32_t module, enum profile_frame_kind kind,
			    uint64_t address)
{
	VEC(struct frames_call) calls = { 0 };
	uint32_t frame = PROFILE_NONE;

	for (uint32_t i = 0; i < l->line_count; i++) {
		const struct pprofline *line = &m->lines.v[l->first_line + i];
		const struct pproffunction *f = &m->functions.v[line->function];
		uint32_t name = f->name ? f->name : f->linkage;

		vec_push(&calls, (struct frames_call){ .name = profile_str(m->p, name), .file = profile_str(m->p, f->file), .line = line->line,
						       .linkage = f->linkage == name ? NULL : profile_str(m->p, f->linkage) });
	}
	if (calls.n == 1 && module == PROFILE_NONE && kind == FRAME_USER)
		frame = truncation(m->p, calls.v[0].name);
	if (frame == PROFILE_NONE)
		frame = frames_named(&m->frames, module, kind, address, calls.v, calls.n);
	vec_done(&calls);
	return frame;
}

static uint32_t frame_of(struct pprofmodel *m, struct pproflocation *l)
{
	uint64_t address;
	uint32_t module;
	enum profile_frame_kind kind;

	if (l->frame != PROFILE_NONE)
		return l->frame;
	module = pprofplaces_module(m, l, &address);
	kind = l->kernel || (module != PROFILE_NONE && m->p->modules.v[module].kind == MODULE_KERNEL) ? FRAME_KERNEL : FRAME_USER;
	l->frame = l->line_count ? named_frame(m, l, module, kind, address) : profile_frame(m->p, module, kind, address);
	return l->frame;
}

int pprofmodel_stack(struct pprofmodel *m, const struct pprofindexes *locations, size_t first, size_t n, uint32_t *ret, struct err *err)
{
	if (n > PPROFMODEL_DEPTH)
		return err_set(err, EFBIG, "a stack of %zu locations is deeper than can be read (%d)", n, PPROFMODEL_DEPTH);
	vec_clear(&m->list);
	for (size_t i = 0; i < n; i++)
		vec_push(&m->list, frame_of(m, &m->locations.v[locations->v[first + i]]));
	*ret = frames_stack(&m->frames, m->list.v, n);
	return m->p->stacks.n <= PPROFMODEL_NODES ? 0 : err_set(err, EFBIG, "its stacks are more than can be read");
}

/* --- threads --- */

bool pprofwho_take(struct pprofwho *who, struct profile *p, const char *key, const char *text, uint64_t number)
{
	static const struct {
		const char *key;
		enum { NAME, COMMAND, TID, PID } what;
	} keys[] = {
		{ "thread", NAME }, { "thread_name", NAME }, { "thread name", NAME }, { "thread.name", NAME }, { "threadName", NAME },
		{ "comm", COMMAND }, { "tid", TID }, { "thread_id", TID }, { "thread id", TID }, { "thread.id", TID },
		{ "pid", PID }, { "process_id", PID }, { "process id", PID }, { "process.pid", PID },
	};
	uint64_t parsed = number;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		bool names = keys[i].what == NAME || keys[i].what == COMMAND;

		if (strcmp(key, keys[i].key))
			continue;
		if (names && *text) {
			if (!who->name || (keys[i].what == NAME && !who->strict))
				who->name = profile_string(p, text);
			who->strict |= keys[i].what == NAME;
			return true;
		}
		if ((*text && str_parse_uint(text, 0, UINT32_MAX, &parsed)) || parsed > UINT32_MAX)
			return false;
		*(keys[i].what == PID ? &who->pid : &who->tid) = parsed;
		return true;
	}
	return false;
}

uint32_t pprofmodel_thread(struct pprofmodel *m, const struct pprofwho *who)
{
	char number[32];
	const char *name = profile_str(m->p, who->name);

	if (!who->name && who->tid)
		snprintf(number, sizeof(number), "thread %u", (unsigned)who->tid);
	else
		snprintf(number, sizeof(number), "%s", "");
	return frames_thread(&m->frames, who->pid, who->tid, *name ? name : *number ? number : profile_str(m->p, m->p->target));
}

/* --- samples --- */

static int add_value(struct pprofmodel *m, size_t type, const struct pprofmodel_sample *s, struct err *err)
{
	struct pproftype *t = &m->types.list.v[type];
	uint64_t count = t->counted == PROFILE_NONE ? 0 : s->values[t->counted], value;

	if (!count && !strcmp(t->base, "count"))
		count = s->values[type];
	if (s->values[type] > INT64_MAX || count > INT64_MAX)
		return err_set(err, EINVAL, "a value is below zero, as in the difference of two profiles: import both, and compare them by gasflame diff");
	if (__builtin_mul_overflow(s->values[type], t->scale, &value) || __builtin_add_overflow(t->total, value, &t->total))
		return err_set(err, ERANGE, "the values of %s add up to more than can be counted", t->name);
	if (!value && !count)
		return 0;
	if (m->p->samples.n >= PPROFMODEL_SAMPLES)
		return err_set(err, EFBIG, "it has more samples than can be read");
	if (count > UINT32_MAX)
		profile_count(m->p, KEY_IMPORT_COUNTS_CUT, 1);
	profile_add_sample(m->p, &(struct profile_sample){ .time_ns = s->time_ns, .value = value, .thread = s->thread, .stack = s->stack,
							   .event = t->event, .count = MIN(count, (uint64_t)UINT32_MAX) });
	return 0;
}

int pprofmodel_add(struct pprofmodel *m, const struct pprofmodel_sample *s, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < m->types.list.n && !r; i++)
		if (m->types.list.v[i].counts == PROFILE_NONE)
			r = add_value(m, i, s, err);
	return r;
}

struct profile *pprofmodel_finish(struct pprofmodel *m)
{
	struct profile *p = m->p;

	/* A recording of ours that was written so: these formats do not hold how the heap was sampled, and no error is known. */
	if (profile_find_event(p, "temporary", "bytes") != PROFILE_NONE)
		profile_count_set(p, KEY_HEAP_INTERVAL_DIFFERS, 1);
	for (size_t i = 0; i < p->processes.n; i++)
		if (!p->processes.v[i].exe && m->mappings.n && p->processes.n == 1 && !p->processes.v[i].pid)
			p->processes.v[i].exe = m->mappings.v[0].file;
	m->p = NULL;
	return p;
}
