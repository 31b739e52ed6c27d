#include "profile/redact.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "profile/kernelname.h"
#include "profile/keys.h"
#include "profile/profile.h"

void redact_init(struct redact *r)
{
	strtab_init(&r->threads);
	strtab_init(&r->notes);
	strtab_init(&r->paths);
	strtab_init(&r->words);
}

void redact_done(struct redact *r)
{
	strtab_done(&r->threads);
	strtab_done(&r->notes);
	strtab_done(&r->paths);
	strtab_done(&r->words);
}

static const char *word(struct redact *r, const char *text)
{
	return strtab_get(&r->words, strtab_add(&r->words, text));
}

/* Is it "thread 3" already? */
static bool is_numbered(const char *text, const char *what)
{
	size_t n = strlen(what);

	if (strncmp(text, what, n) || text[n] != ' ' || !isdigit((unsigned char)text[n + 1]))
		return false;
	return !text[n + 1 + strspn(text + n + 1, "0123456789")];
}

static const char *number(struct redact *r, struct strtab *names, const char *what, const char *name)
{
	char text[40];

	if (!*name || is_numbered(name, what))
		return name;
	snprintf(text, sizeof(text), "%s %u", what, (unsigned)strtab_add(names, name));
	return word(r, text);
}

const char *redact_numbered(struct redact *r, const char *what, size_t index)
{
	char text[40];

	snprintf(text, sizeof(text), "%s %zu", what, index + 1);
	return word(r, text);
}

/* Idle CPUs and interrupts are nobody's. */
const char *redact_thread(struct redact *r, const char *name)
{
	return strncmp(name, "swapper/", 8) && !kernel_interrupt_is_waker(name) ? number(r, &r->threads, "thread", name) : name;
}

const char *redact_note(struct redact *r, const char *name)
{
	return name[0] == '[' ? name : number(r, &r->notes, "file", name);
}

const char *redact_base(struct redact *r, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A path may have anything in it, so nobody knows where it ends: what follows goes, too. */
const char *redact_text(struct redact *r, const char *text)
{
	const char *path = NULL, *sentence = key_rest(KEY_SYMBOLS_PROBLEM_OF, text) ?: key_rest(KEY_SYMBOLS_BUILD_OF, text);
	char made[256];

	/* These are sentences with names of files in them that no rule knows. */
	if (sentence && strncmp(sentence, "[left out ", 10)) {
		snprintf(made, sizeof(made), "%.*s[left out %u]", (int)(sentence - text), text,
			 (unsigned)strtab_add(&r->paths, text));
		return word(r, made);
	}
	for (const char *c = text; *c && !path; c++)
		if (*c == '/' && (c == text || strchr(" :=\"'(<[", c[-1])) && c[1] && c[1] != ' ')
			path = c;
	if (!path)
		return text;
	snprintf(made, sizeof(made), "%.*s[path %u]", (int)MIN(path - text, 200), text,
		 (unsigned)strtab_add(&r->paths, path));
	return word(r, made);
}

const char *redact_none(struct redact *r, const char *name)
{
	return "";
}

/* Not empty: it is no machine that is at hand, and nothing is to be looked up on this one. */
const char *redact_host(struct redact *r, const char *name)
{
	return "[redacted]";
}

const char *redact_target(struct redact *r, const char *name)
{
	return "target";
}

static const char *kernel_line(struct redact *r, const char *name)
{
	return "a line of the kernel's log";
}

redact_fn *redact_mark(const char *kind)
{
	return strcmp(kind, "kernel") ? redact_text : kernel_line;
}

bool *redact_find_notes(const struct profile *p, size_t first)
{
	bool *notes = mem_alloc(p->functions.n + 1);

	for (size_t i = first; i < p->frames.n; i++) {
		const struct profile_frame *f = &p->frames.v[i];

		for (uint32_t k = 0; f->kind == FRAME_NOTE && k < f->line_count; k++)
			notes[p->lines.v[f->first_line + k].function] = true;
	}
	return notes;
}

/* --- a profile in memory --- */

static void change(struct redact *r, struct profile *p, redact_fn *fn, uint32_t *id)
{
	const char *old = profile_str(p, *id), *new = fn(r, old);

	if (new != old)
		*id = profile_string(p, new);
}

static void change_people(struct redact *r, struct profile *p)
{
	for (size_t i = 0; i < p->owners.n; i++) {
		struct profile_owner *o = &p->owners.v[i];

		o->name = o->cgroup = profile_string(p, redact_numbered(r, "owner", i));
		o->container = o->image = o->pod = 0;
	}
	for (size_t i = 0; i < p->processes.n; i++) {
		struct profile_process *x = &p->processes.v[i];

		change(r, p, redact_base, &x->exe);
		x->name = x->exe ? x->exe : profile_string(p, redact_numbered(r, "process", i));
		x->command = 0;
	}
	for (size_t i = 0; i < p->threads.n; i++)
		change(r, p, redact_thread, &p->threads.v[i].name);
	for (size_t i = 0; i < p->wakes.n; i++)
		change(r, p, redact_thread, &p->wakes.v[i].waker_name);
}

static void change_code(struct redact *r, struct profile *p)
{
	_cleanup_free_ bool *notes = redact_find_notes(p, 0);

	for (size_t i = 0; i < p->modules.n; i++)
		change(r, p, redact_base, &p->modules.v[i].path);
	for (size_t i = 0; i < p->functions.n; i++) {
		change(r, p, notes[i] ? redact_note : redact_text, &p->functions.v[i].name);
		change(r, p, redact_base, &p->functions.v[i].file);
	}
}

void redact_profile(struct profile *p)
{
	struct redact r;

	redact_init(&r);
	change(&r, p, redact_target, &p->target);
	change(&r, p, redact_host, &p->host);
	change_people(&r, p);
	change_code(&r, p);
	for (size_t i = 0; i < p->events.n; i++) {
		change(&r, p, redact_text, &p->events.v[i].name);
		change(&r, p, redact_text, &p->events.v[i].describe);
	}
	for (size_t i = 0; i < p->taskwakes.n; i++) {
		change(&r, p, redact_text, &p->taskwakes.v[i].type);
		change(&r, p, redact_text, &p->taskwakes.v[i].waker_type);
	}
	for (size_t i = 0; i < p->marks.n; i++)
		change(&r, p, redact_mark(profile_str(p, p->marks.v[i].kind)), &p->marks.v[i].name);
	for (size_t i = 0; i < p->series.n; i++)
		change(&r, p, redact_text, &p->series.v[i].name);
	for (size_t i = 0; i < p->histograms.n; i++)
		change(&r, p, redact_text, &p->histograms.v[i].name);
	for (size_t i = 0; i < p->counters.n; i++)
		change(&r, p, redact_text, &p->counters.v[i].name);
	p->redacted = true;
	redact_done(&r);
}
