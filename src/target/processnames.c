#include "target/processnames.h"

#include <errno.h>
#include <fnmatch.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/map.h"
#include "base/text/match.h"
#include "base/text/str.h"

const char *processnames_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The base name of the n bytes at s. */
static char *base_of_word(const char *s, size_t n)
{
	_cleanup_free_ char *word = mem_strndup(s, n);

	return mem_strdup(processnames_base(word));
}

/* The letters of options that are followed by code in place of a script (sh -c, perl -e); NULL: no interpreter. */
static const char *code_letters(const char *program)
{
	static const struct {
		const char *pattern, *letters;
	} interpreters[] = {
		{ "sh", "c" },      { "ash", "c" },   { "bash", "c" },  { "busybox", "c" }, { "dash", "c" },
		{ "fish", "c" },    { "ksh*", "c" },  { "zsh*", "c" },  { "python*", "c" }, { "pypy*", "c" },
		{ "perl*", "eE" },  { "ruby*", "e" }, { "lua*", "e" },  { "php*", "r" },    { "node", "ep" },
		{ "nodejs", "ep" }, { "bun", "ep" },  { "deno", "" },   { "java", "" },     { "dotnet", "" },
		{ "mono", "" },     { "tclsh*", "" }, { "qemu-*", "" }, { "ld-linux*", "" }, { "ld-musl*", "" },
	};

	/* A login shell's first word is -bash. */
	program += *program == '-';
	for (size_t i = 0; i < ARRAY_LEN(interpreters); i++)
		if (!fnmatch(interpreters[i].pattern, program, 0))
			return interpreters[i].letters;
	return NULL;
}

/* -c, also among others: -lc. */
static bool code_follows(const char *word, size_t n, const char *letters)
{
	enum { LONGEST = 4 };

	return n >= 2 && n <= LONGEST && word[1] != '-' && strchr(letters, word[n - 1]);
}

char *processnames_script(const char *program, const char *command, bool *ret_code)
{
	const char *letters = code_letters(program), *p = command + strcspn(command, " ");
	size_t n;

	*ret_code = false;
	for (; letters && *p == ' '; p += n) {
		p++;
		n = strcspn(p, " ");
		if (n && *p != '-')
			return base_of_word(p, n);
		*ret_code = code_follows(p, n, letters);
		if (*ret_code)
			break;
	}
	return mem_strdup("");
}

/* Returns whether the program starts other programs as other users. */
static bool changes_user(const char *program)
{
	static const char *const programs[] = { "su", "sudo", "doas", "runuser", "pkexec", "setpriv" };

	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		if (!strcmp(program, programs[i]))
			return true;
	return false;
}

static void candidate_words(struct candidate *c)
{
	const char *program;
	bool code;

	c->first = base_of_word(c->command, strcspn(c->command, " "));
	program = *c->program && strcmp(c->program, "busybox") ? c->program : c->first;
	c->script = processnames_script(program, c->command, &code);
	c->carries = code || changes_user(program);
}

/* This process and its ancestors: sudo, the shell, a test's harness. */
static void find_ancestors(struct map *ret)
{
	struct proc_stat s;

	for (pid_t pid = getpid(); pid > 0 && !map_get(ret, pid); pid = s.parent) {
		map_put(ret, pid, 1);
		if (proc_stat(pid, &s))
			break;
	}
}

int candidates_read(struct candidates *ret)
{
	_cleanup_(map_done) struct map ancestors = { 0 };
	struct proc_ids all;
	int r;

	*ret = (struct candidates){ 0 };
	r = proc_list(&all);
	if (r)
		return r;
	find_ancestors(&ancestors);
	for (size_t i = 0; i < all.list.n; i++) {
		struct candidate c = { .pid = all.list.v[i] };
		struct proc_stat s;
		char *exe;

		if (map_get(&ancestors, c.pid) || proc_stat(c.pid, &s) || s.state == 'Z' || s.state == 'X')
			continue;
		c.command = proc_command(c.pid);
		if (!c.command)
			continue;
		memcpy(c.comm, s.name, sizeof(c.comm));
		exe = proc_exe(c.pid);
		c.program = mem_strdup(exe ? processnames_base(exe) : "");
		free(exe);
		candidate_words(&c);
		vec_push(&ret->list, c);
	}
	vec_done(&all.list);
	return 0;
}

void candidates_done(struct candidates *c)
{
	vec_done_each(&c->list, e, free(e->command); free(e->program); free(e->script); free(e->first));
}

/* The kernel keeps 15 bytes of a name; the whole one is in exe or in the command line. */
static bool goes_by(const struct candidate *c, const char *name)
{
	return !strcmp(c->comm, name) || !strcmp(c->program, name) || !strcmp(c->first, name) ||
	       !strcmp(c->script, name);
}

/* A process chooses its name, and the message may go to a terminal. */
static bool printable(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return false;
	return true;
}

enum { NEAREST = 3 };

struct nearest {
	struct {
		const char *name;
		size_t distance;
	} best[NEAREST];
};

/* Keeps a name if it is among the nearest; limit is how far one may be. */
static void nearest_try(struct nearest *n, const char *candidate, const char *name, size_t limit)
{
	size_t d = strcasestr(candidate, name) ? 0 : str_distance(candidate, name), at;
	bool known = !*candidate || d > limit || strlen(candidate) > 64 || !printable(candidate);

	for (at = 0; at < NEAREST; at++)
		known |= n->best[at].name && !strcmp(n->best[at].name, candidate);
	for (at = 0; at < NEAREST && n->best[at].name && n->best[at].distance <= d; at++)
		;
	if (known || at == NEAREST)
		return;
	memmove(&n->best[at + 1], &n->best[at], (NEAREST - at - 1) * sizeof(n->best[0]));
	n->best[at].name = candidate;
	n->best[at].distance = d;
}

void candidates_nearest(const struct candidates *all, const char *name, const char *const *more, char *out, size_t size)
{
	size_t limit = strlen(name) / 3 + 1;
	struct nearest nearest = { 0 };

	for (size_t i = 0; more && more[i]; i++)
		nearest_try(&nearest, more[i], name, limit);
	for (size_t i = 0; i < all->list.n; i++) {
		const struct candidate *c = &all->list.v[i];

		if (!*c->command)
			continue;
		nearest_try(&nearest, c->comm, name, limit);
		nearest_try(&nearest, c->program, name, limit);
		nearest_try(&nearest, c->script, name, limit);
	}
	*out = 0;
	for (size_t i = 0; i < NEAREST && nearest.best[i].name; i++) {
		size_t used = strlen(out);

		snprintf(out + used, size - used, "%s%s", i ? ", " : "; there is ", nearest.best[i].name);
	}
}

void candidates_named(const struct candidates *all, const char *name, struct proc_ids *ret)
{
	for (size_t i = 0; i < all->list.n; i++)
		if (goes_by(&all->list.v[i], name))
			vec_push(&ret->list, all->list.v[i].pid);
}

int candidates_pattern(const struct candidates *all, const char *pattern, struct proc_ids *ret, pid_t *ret_carrier,
		       struct err *err)
{
	char why[128];
	regex_t re;
	int r = regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB);

	if (r) {
		regerror(r, &re, why, sizeof(why));
		return err_set(err, EINVAL, "%s is neither a process's name nor a pattern: %s", pattern, why);
	}
	/* Another gasflame has the pattern in its command line, but is never the target. */
	for (size_t i = 0; i < all->list.n; i++) {
		const struct candidate *c = &all->list.v[i];

		if (!*c->command || !strcmp(c->comm, "gasflame") || !match_regex(&re, c->command, 0, NULL))
			continue;
		if (ret_carrier && c->carries)
			*ret_carrier = c->pid;
		else
			vec_push(&ret->list, c->pid);
	}
	regfree(&re);
	return 0;
}
