#include "analyze/wait/pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text/conf.h"
#include "base/text/match.h"
#include "patterns.conf.h"

static const struct {
	const char *key, *name;
} causes[CAUSE_COUNT] = {
	[CAUSE_UNKNOWN] = { "unknown", "unknown" },
	[CAUSE_CPU] = { "cpu", "on CPU" },
	[CAUSE_QUEUE] = { "queue", "run queue" },
	[CAUSE_LOCK] = { "lock", "lock" },
	[CAUSE_PARK] = { "park", "condition" },
	[CAUSE_DISK_READ] = { "disk-read", "disk read" },
	[CAUSE_DISK_WRITE] = { "disk-write", "disk write" },
	[CAUSE_FAULT] = { "fault", "page fault" },
	[CAUSE_NETWORK] = { "network", "network" },
	[CAUSE_SLEEP] = { "sleep", "sleep" },
	[CAUSE_PIPE] = { "pipe", "pipe/process" },
	[CAUSE_RECLAIM] = { "reclaim", "reclaim" },
	[CAUSE_QUOTA] = { "throttled", "CPU quota" },
	[CAUSE_IDLE] = { "idle", "idle" },
};

const char *cause_key(enum cause c)
{
	return causes[c].key;
}

const char *cause_name(enum cause c)
{
	return causes[c].name;
}

enum { ANY_WORK = 2 }; /* of the regexes of all patterns together; 0 and 1 are of user and kernel functions */

static const char *const part_names[PATTERN_REGEXES] = {
	[PATTERN_USER] = "user",
	[PATTERN_AND] = "and",
	[PATTERN_UNLESS] = "unless",
	[PATTERN_KERNEL] = "kernel",
	[PATTERN_WORK] = "work",
};

void patterns_init(struct patterns *t)
{
	*t = (struct patterns){ 0 };
}

static void forget_any(struct patterns *t)
{
	for (size_t k = 0; k < ARRAY_LEN(t->any); k++) {
		if (t->any_known[k])
			regfree(&t->any[k]);
		t->any_known[k] = false;
	}
}

static void pattern_done(struct pattern *p)
{
	for (int k = 0; k < PATTERN_REGEXES; k++) {
		if (p->regex[k])
			regfree(&p->compiled[k]);
		free(p->regex[k]);
	}
	free(p->name);
	free(p->means);
	free(p->fix);
	*p = (struct pattern){ 0 };
}

static void drop(struct patterns *t, size_t from)
{
	for (size_t i = from; i < t->list.n; i++)
		pattern_done(&t->list.v[i]);
	t->list.n = MIN(t->list.n, from);
}

void patterns_done(struct patterns *t)
{
	drop(t, 0);
	vec_done(&t->list);
	forget_any(t);
}

/* --- reading --- */

struct reading {
	struct patterns *t;
	const char *file;
	size_t line, began; /* began: line of the pattern's name */
	struct pattern p;   /* the pattern being parsed: name NULL = none yet */
	bool has_cause;
	struct err *err;
};

static int complain(const struct reading *r, size_t line, const char *what, const char *which)
{
	return err_set(r->err, EINVAL, "%s:%zu: %s%s%s%s", r->file, line, what, which ? " '" : "",
		       which ? which : "", which ? "'" : "");
}

static void free_reading(struct reading *r)
{
	pattern_done(&r->p);
}

/* The pattern is complete: into the table. */
static int finish(struct reading *r)
{
	struct pattern *p = &r->p;

	if (!p->name)
		return 0;
	if (p->regex[PATTERN_WORK] && (r->has_cause || p->waits || p->no_own || p->outside || p->child || p->regex[PATTERN_USER] ||
				       p->regex[PATTERN_UNLESS] || p->regex[PATTERN_KERNEL]))
		return complain(r, r->began, "work = says nothing of a wait, and goes with means = only, in pattern", p->name);
	if (!r->has_cause && !p->regex[PATTERN_WORK])
		return complain(r, r->began, "no cause = line in pattern", p->name);
	if (p->regex[PATTERN_AND] && !p->regex[PATTERN_USER])
		return complain(r, r->began, "and = needs a user = line in pattern", p->name);
	if (r->t->list.n == PATTERNS_MAX)
		return complain(r, r->began, "too many patterns: 256 fit, with the built-in ones", NULL);
	if (!p->means)
		p->means = mem_strdup("");
	if (!p->fix)
		p->fix = mem_strdup("");
	vec_push(&r->t->list, *p);
	*p = (struct pattern){ 0 };
	return 0;
}

static int add_regex(struct reading *r, enum pattern_part part, const char *value)
{
	struct pattern *p = &r->p;
	char *old = p->regex[part], why[128];
	char *all = old ? mem_printf("%s|%s", old, value) : mem_strdup(value);
	regex_t compiled;
	int e = regcomp(&compiled, value, REG_EXTENDED | REG_NOSUB); /* alone first: "(" and ")" make one */

	if (e) {
		regerror(e, &compiled, why, sizeof(why));
		free(all);
		return err_set(r->err, e == REG_ESPACE ? ENOMEM : EINVAL, "%s:%zu: '%s' is not a regular expression: %s", r->file,
			       r->line, value, why);
	}
	if (old) {
		regfree(&compiled);
		e = regcomp(&compiled, all, REG_EXTENDED | REG_NOSUB);
		if (e) {
			free(all);
			if (e == REG_ESPACE)
				return err_set(r->err, ENOMEM, "%s:%zu: out of memory", r->file, r->line);
			return complain(r, r->line, "these expressions do not fit together at", value);
		}
		regfree(&p->compiled[part]);
		free(old);
	}
	p->regex[part] = all;
	p->compiled[part] = compiled;
	return 0;
}

static int add_waits(struct reading *r, char *value)
{
	char *rest = value, *word;

	while ((word = strsep(&rest, " \t,"))) {
		int k = 0;

		if (!*word)
			continue;
		while (k < KERNEL_WAIT_COUNT && strcmp(word, kernel_wait_key(k)))
			k++;
		if (k == KERNEL_WAIT_COUNT)
			return complain(r, r->line, "there is no kind of wait", word);
		r->p.waits |= 1u << k;
	}
	return 0;
}

static int set_cause(struct reading *r, const char *value)
{
	int k = 0;

	while (k < CAUSE_COUNT && (strcmp(value, causes[k].key) || k == CAUSE_CPU))
		k++;
	if (k == CAUSE_COUNT)
		return complain(r, r->line, "there is no cause", value);
	r->p.cause = k;
	r->has_cause = true;
	return 0;
}

static void add_text(char **text, const char *value)
{
	char *old = *text;

	*text = old ? mem_printf("%s %s", old, value) : mem_strdup(value);
	free(old);
}

static int set_key(struct reading *r, const char *key, char *value)
{
	if (!r->p.name)
		return complain(r, r->line, "a [name] must come before", key);
	if (!*value)
		return complain(r, r->line, "nothing after = for", key);
	for (int k = 0; k < PATTERN_REGEXES; k++)
		if (!strcmp(key, part_names[k]))
			return add_regex(r, k, value);
	if (!strcmp(key, "waits"))
		return add_waits(r, value);
	if (!strcmp(key, "cause"))
		return set_cause(r, value);
	if (!strcmp(key, "own")) {
		if (strcmp(value, "none"))
			return complain(r, r->line, "own can only be none, not", value);
		r->p.no_own = true;
		return 0;
	}
	if (!strcmp(key, "idle")) {
		if (strcmp(value, "outside") && strcmp(value, "child"))
			return complain(r, r->line, "idle can only be outside or child, not", value);
		r->p.outside = !strcmp(value, "outside");
		r->p.child = !r->p.outside;
		return 0;
	}
	if (!strcmp(key, "means") || !strcmp(key, "fix")) {
		add_text(*key == 'm' ? &r->p.means : &r->p.fix, value);
		return 0;
	}
	return complain(r, r->line,
			"keys are waits, user, and, unless, own, kernel, cause, idle, work, means and fix, not", key);
}

static int begin(struct reading *r, const char *line)
{
	int e = finish(r);

	if (e)
		return e;
	if (!*line)
		return complain(r, r->line, "a pattern needs a name between [ and ]", NULL);
	r->p.name = mem_strdup(line);
	r->began = r->line;
	r->has_cause = false;
	return 0;
}

static int read_line(struct reading *r, char *text)
{
	struct conf_line line = conf_line(text);

	switch (line.kind) {
	case CONF_SECTION:
		return begin(r, line.key);
	case CONF_KEY:
		return set_key(r, line.key, line.value);
	case CONF_OPEN:
		return complain(r, r->line, "no ] at the end of", line.key);
	case CONF_NEITHER:
		return complain(r, r->line, "neither [name] nor key = value:", line.key);
	default:
		return 0;
	}
}

int patterns_add(struct patterns *t, const char *file, const char *text, struct err *err)
{
	struct reading r = { .t = t, .file = file, .err = err };
	_cleanup_free_ char *copy = mem_strdup(text);
	char *rest = copy, *line;
	size_t before = t->list.n;
	int e = 0;

	while (!e && (line = strsep(&rest, "\n"))) {
		r.line++;
		e = read_line(&r, line);
	}
	if (!e)
		e = finish(&r);
	free_reading(&r);
	if (e)
		drop(t, before);
	forget_any(t);
	return e;
}

void patterns_add_builtin(struct patterns *t)
{
	struct err err;

	/* A unit test reads the table; a user's patterns may fill the room, which only ends it earlier. */
	if (patterns_add(t, "built-in patterns", patterns_conf, &err) == -ENOMEM)
		mem_exhausted();
}

/* --- matching --- */

/* The side of a part: of the program's functions, the kernel's, or work. */
static int side_of(int part)
{
	return part == PATTERN_WORK ? (int)ANY_WORK : part == PATTERN_KERNEL;
}

/* All regexes of one side as one: most names match nothing, and then this is all that they cost. */
static void know_any(struct patterns *t, int side)
{
	_cleanup_(buf_done) struct buf all = { 0 };

	for (size_t i = 0; i < t->list.n; i++)
		for (int k = 0; k < PATTERN_REGEXES; k++)
			if (t->list.v[i].regex[k] && side_of(k) == side)
				buf_printf(&all, "%s(%s)", all.n ? "|" : "", t->list.v[i].regex[k]);
	/* If they cannot be one, each is asked. */
	t->any_known[side] = !regcomp(&t->any[side], all.n ? all.data : "^$", REG_EXTENDED | REG_NOSUB);
}

bool patterns_is_work(struct patterns *t, const char *name)
{
	if (!t->any_known[ANY_WORK])
		know_any(t, ANY_WORK);
	if (t->any_known[ANY_WORK])
		return *name && match_regex(&t->any[ANY_WORK], name, 0, NULL);
	for (size_t i = 0; i < t->list.n; i++)
		if (t->list.v[i].regex[PATTERN_WORK] && match_regex(&t->list.v[i].compiled[PATTERN_WORK], name, 0, NULL))
			return true;
	return false;
}

void patterns_match_name(struct patterns *t, const char *name, bool kernel,
			 struct pattern_set sets[PATTERN_PARTS])
{
	if (!t->any_known[kernel])
		know_any(t, kernel);
	if (t->any_known[kernel] && !match_regex(&t->any[kernel], name, 0, NULL))
		return;
	for (size_t i = 0; i < t->list.n; i++)
		for (int k = 0; k < PATTERN_PARTS; k++) {
			struct pattern *p = &t->list.v[i];

			if (p->regex[k] && (k == PATTERN_KERNEL) == kernel &&
			    match_regex(&p->compiled[k], name, 0, NULL))
				sets[k].bits[i / 64] |= 1ULL << i % 64;
		}
}

static bool has(const struct pattern_set *s, size_t i)
{
	return s->bits[i / 64] >> i % 64 & 1;
}

const struct pattern *patterns_find(const struct patterns *t, const struct pattern_wait *w,
				    const struct pattern_set sets[PATTERN_PARTS])
{
	for (size_t i = 0; i < t->list.n; i++) {
		const struct pattern *p = &t->list.v[i];

		if ((p->waits && !(p->waits >> w->kind & 1)) || (p->no_own && w->own) || p->regex[PATTERN_WORK] ||
		    (w->work && p->cause == CAUSE_IDLE) ||
		    (p->regex[PATTERN_USER] && !has(&sets[PATTERN_USER], i)) ||
		    (p->regex[PATTERN_AND] && !has(&sets[PATTERN_AND], i)) ||
		    (p->regex[PATTERN_UNLESS] && has(&sets[PATTERN_UNLESS], i)) ||
		    (p->regex[PATTERN_KERNEL] && !has(&sets[PATTERN_KERNEL], i)))
			continue;
		return p;
	}
	return NULL;
}
