#include "target/resolve.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/map.h"
#include "base/str.h"

/* What a process goes by. */
struct candidate {
	pid_t pid;
	char comm[32];
	char *command, *program; /* program: base name of exe, "" if unreadable */
	char *script;            /* base name of the first argument that is not an option, "" if none */
	char *first;             /* base name of the first word of the command line */
};

struct candidates {
	VEC(struct candidate) list;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The base name of the n bytes at s. */
static char *base_of_word(const char *s, size_t n)
{
	_cleanup_free_ char *word = mem_strndup(s, n);

	return mem_strdup(base_name(word));
}

static void candidate_words(struct candidate *c)
{
	const char *p = c->command;
	size_t n = strcspn(p, " ");

	c->first = base_of_word(p, n);
	for (p += n; *p == ' '; p += n) {
		p++;
		n = strcspn(p, " ");
		if (n && *p != '-')
			break;
	}
	c->script = *p ? base_of_word(p, n) : mem_strdup("");
}

/* Ourselves, who started us, and who started them: sudo, the shell, a test's harness. */
static void find_ancestors(struct map *ret)
{
	struct proc_stat s;

	for (pid_t pid = getpid(); pid > 0 && !map_get(ret, pid); pid = s.parent) {
		map_put(ret, pid, 1);
		if (proc_stat(pid, &s))
			break;
	}
}

static int candidates_read(struct candidates *ret)
{
	struct map ancestors = { 0 };
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
		c.program = mem_strdup(exe ? base_name(exe) : "");
		free(exe);
		candidate_words(&c);
		vec_push(&ret->list, c);
	}
	map_done(&ancestors);
	vec_done(&all.list);
	return 0;
}

static void candidates_done(struct candidates *c)
{
	for (size_t i = 0; i < c->list.n; i++) {
		free(c->list.v[i].command);
		free(c->list.v[i].program);
		free(c->list.v[i].script);
		free(c->list.v[i].first);
	}
	vec_done(&c->list);
}

/* The kernel keeps 15 bytes of a name; the whole one is in exe or in the command line. */
static bool goes_by(const struct candidate *c, const char *name)
{
	return !strcmp(c->comm, name) || !strcmp(c->program, name) || !strcmp(c->first, name) ||
	       !strcmp(c->script, name);
}

/* A process chooses its name, and the sentence may go to a terminal. */
static bool printable(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return false;
	return true;
}

/* A sentence with the nearest names, if any is near. */
static int not_found(const struct candidates *all, const char *name, struct err *err)
{
	enum { NEAREST = 3 };
	struct {
		const char *name;
		size_t distance;
	} best[NEAREST] = { 0 };
	char text[256] = "";
	size_t limit = strlen(name) / 3 + 1;

	for (size_t i = 0; i < all->list.n; i++) {
		const struct candidate *c = &all->list.v[i];
		const char *names[] = { c->comm, c->program, c->script };

		for (size_t n = 0; *c->command && n < ARRAY_LEN(names); n++) {
			size_t d = strcasestr(names[n], name) ? 0 : str_distance(names[n], name), at;
			bool known = !*names[n] || d > limit || strlen(names[n]) > 64 || !printable(names[n]);

			for (at = 0; at < NEAREST; at++)
				known |= best[at].name && !strcmp(best[at].name, names[n]);
			for (at = 0; at < NEAREST && best[at].name && best[at].distance <= d; at++)
				;
			if (known || at == NEAREST)
				continue;
			memmove(&best[at + 1], &best[at], (NEAREST - at - 1) * sizeof(best[0]));
			best[at].name = names[n];
			best[at].distance = d;
		}
	}
	for (size_t i = 0; i < NEAREST && best[i].name; i++) {
		size_t used = strlen(text);

		snprintf(text + used, sizeof(text) - used, "%s%s", i ? ", " : "; there is ", best[i].name);
	}
	return err_set(err, ESRCH, "no process is named %s, and none has it in its command line%s", name,
		       text);
}

static int resolve_pid(const char *name, struct proc_ids *ret, struct err *err)
{
	struct proc_status status;
	struct proc_stat stat;
	uint64_t pid;
	int r;

	if (str_parse_uint(name, 1, INT_MAX, &pid))
		return err_set(err, EINVAL, "%s is not the number of a process", name);
	/* A thread's number stands for its process. */
	r = proc_status(pid, &status);
	if (!r)
		r = proc_stat(status.tgid, &stat);
	if (r == -ESRCH)
		return err_set(err, ESRCH, "there is no process %d", (int)pid);
	if (r)
		return err_errno(err, -r, "cannot read /proc/%d", (int)pid);
	if (stat.state == 'Z' || stat.state == 'X')
		return err_set(err, ESRCH, "process %d (%s) has ended already", (int)pid, stat.name);
	if (status.tgid == getpid())
		return err_set(err, EINVAL, "process %d is gasflame itself", (int)pid);
	vec_push(&ret->list, status.tgid);
	return 0;
}

static int match_pattern(const struct candidates *all, const char *name, struct proc_ids *ret,
			 struct err *err)
{
	char why[128];
	regex_t re;
	int r = regcomp(&re, name, REG_EXTENDED | REG_NOSUB);

	if (r) {
		regerror(r, &re, why, sizeof(why));
		return err_set(err, EINVAL, "%s is neither a process's name nor a pattern: %s", name, why);
	}
	/* Another gasflame has the same words in its command line, but is not what is meant. */
	for (size_t i = 0; i < all->list.n; i++) {
		const struct candidate *c = &all->list.v[i];

		if (*c->command && strcmp(c->comm, "gasflame") && !regexec(&re, c->command, 0, NULL, 0))
			vec_push(&ret->list, c->pid);
	}
	regfree(&re);
	return 0;
}

int target_resolve(const char *name, struct proc_ids *ret, struct err *err)
{
	struct candidates all;
	int r;

	*ret = (struct proc_ids){ 0 };
	if (!*name)
		return err_set(err, EINVAL, "the name of the process is empty");
	if (strspn(name, "0123456789") == strlen(name))
		return resolve_pid(name, ret, err);
	r = candidates_read(&all);
	if (r)
		return err_errno(err, -r, "cannot list /proc");
	for (size_t i = 0; i < all.list.n; i++)
		if (goes_by(&all.list.v[i], name))
			vec_push(&ret->list, all.list.v[i].pid);
	if (!ret->list.n)
		r = match_pattern(&all, name, ret, err);
	if (!r && !ret->list.n)
		r = not_found(&all, name, err);
	candidates_done(&all);
	return r;
}

/* --- labels --- */

static char *clean_label(const char *s)
{
	enum { LONGEST = 64 };
	char *out = mem_alloc(LONGEST + 1);
	size_t n = 0;

	for (; *s && n < LONGEST; s++) {
		/* No leading dot or dash, no two dashes: the label is a folder's name. */
		if (isalnum((unsigned char)*s) || *s == '_' || (*s == '.' && n))
			out[n++] = *s;
		else if (n && out[n - 1] != '-')
			out[n++] = '-';
	}
	while (n && (out[n - 1] == '-' || out[n - 1] == '.'))
		out[--n] = 0;
	if (!n)
		memcpy(out, "process", sizeof("process"));
	return out;
}

/* The name that all of them share; NULL if they do not. */
static char *shared_name(const struct proc_ids *pids)
{
	char *shared = NULL;

	for (size_t i = 0; i < pids->list.n; i++) {
		struct proc_stat s;
		char *exe, *name;
		bool same;

		if (proc_stat(pids->list.v[i], &s))
			continue;
		/* comm is cut at 15 bytes; a program's name that begins with it is the whole. */
		exe = proc_exe(pids->list.v[i]);
		name = mem_strdup(exe && str_starts(base_name(exe), s.name) ? base_name(exe) : s.name);
		free(exe);
		same = !shared || !strcmp(shared, name);
		free(shared);
		shared = name;
		if (!same) {
			free(shared);
			return NULL;
		}
	}
	return shared;
}

char *target_label(const char *name, const struct proc_ids *pids)
{
	bool number = strspn(name, "0123456789") == strlen(name);
	_cleanup_free_ char *shared = pids ? shared_name(pids) : NULL;
	const char *base = base_name(name);
	bool plain = true;

	for (const char *p = base; *p; p++)
		plain &= isalnum((unsigned char)*p) || *p == '_' || *p == '.' || *p == '-';
	if (plain && *base && !number)
		return clean_label(base);
	if (shared && *shared)
		return clean_label(shared);
	return clean_label(number ? "process" : name);
}
