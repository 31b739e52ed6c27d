/* title.c - names of targets: for file names, titles and sentences. The rest of resolve.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/str.h"
#include "target/initproc.h"
#include "target/processnames.h"
#include "target/resolve.h"

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
		name = mem_strdup(exe && str_starts(processnames_base(exe), s.name) ? processnames_base(exe) : s.name);
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

static bool is_number(const char *s)
{
	return strspn(s, "0123456789") == strlen(s);
}

/* Returns the name as typed, without "container:" and the like. */
static const char *plain_name(const char *name, const struct target_found *f)
{
	const char *colon = strchr(name, ':');

	for (const char *p = name; f && colon && p < colon; p++)
		if (!islower((unsigned char)*p))
			return name;
	return f && colon && colon[1] ? colon + 1 : name;
}

char *target_label(const char *name, const struct target_found *f)
{
	_cleanup_free_ char *shared = f ? shared_name(&f->pids) : NULL;
	const char *plain = plain_name(name, f), *base = processnames_base(plain);
	bool number = is_number(plain), clean = true;

	if (f && f->kind == TARGET_UNIT && f->unit)
		return clean_label(f->unit);
	if (f && f->containers.list.n && (f->kind == TARGET_CONTAINER || f->kind == TARGET_POD)) {
		_cleanup_free_ char *title = container_title(&f->containers.list.v[0]);

		return clean_label(f->kind == TARGET_POD ? f->containers.list.v[0].pod : title);
	}
	for (const char *p = base; *p; p++)
		clean &= isalnum((unsigned char)*p) || *p == '_' || *p == '.' || *p == '-';
	if (clean && *base && !number)
		return clean_label(base);
	if (shared && *shared)
		return clean_label(shared);
	return clean_label(number ? "process" : plain);
}

char *target_title(const char *name, const struct target_found *f)
{
	_cleanup_free_ char *label = target_label(name, f);
	const char *plain = plain_name(name, f);

	if (is_number(plain) || (f && f->kind == TARGET_CONTAINER && strcmp(label, plain)))
		return mem_printf("%s (%s)", label, plain);
	return mem_strdup(plain);
}

/* "9 processes named postgres: 4249, 4250, ..." */
static void describe_processes(const char *name, const struct target_found *f, struct buf *out)
{
	enum { SHOWN = 8 };
	const char *plain = plain_name(name, f);
	size_t n = f->pids.list.n;

	buf_printf(out, "%zu process%s ", n, n == 1 ? "" : "es");
	if (f->kind == TARGET_NAME)
		buf_printf(out, "named %s: ", plain);
	else
		buf_printf(out, "with %s in %s command line%s: ", plain, n == 1 ? "its" : "their", n == 1 ? "" : "s");
	for (size_t i = 0; i < n && i < SHOWN; i++) {
		struct proc_stat s;

		buf_printf(out, "%s%d", i ? ", " : "", (int)f->pids.list.v[i]);
		/* A pattern may match anything: the process names show whether it matched the right ones. */
		if (f->kind == TARGET_COMMAND && !proc_stat(f->pids.list.v[i], &s))
			buf_printf(out, " (%s)", s.name);
	}
	buf_puts(out, n > SHOWN ? ", ..." : "");
}

static void describe_place(const struct target_found *f, struct buf *out)
{
	const struct container *c = f->containers.list.n ? &f->containers.list.v[0] : NULL;

	if (c && f->containers.list.n > 1 && f->kind != TARGET_POD) {
		buf_printf(out, "processes of %zu containers (", f->containers.list.n);
		for (size_t i = 0; i < f->containers.list.n; i++) {
			_cleanup_free_ char *title = container_title(&f->containers.list.v[i]);

			buf_printf(out, "%s%s", i ? ", " : "", title);
		}
		buf_puts(out, "), ");
	} else if (c && c->pod) {
		buf_printf(out, "pod %s/%s, ", c->namespace, c->pod);
		if (f->containers.list.n == 1 && *c->part)
			buf_printf(out, "container %s (%s%s%s), ", c->part, c->engine, *c->image ? ", image " : "", c->image);
		else
			buf_printf(out, "%zu containers (%s), ", f->containers.list.n, c->engine);
	} else if (c) {
		_cleanup_free_ char *title = container_title(c);

		buf_printf(out, "container %s (%s%s%s), ", title, *c->engine ? c->engine : "engine not known",
			   *c->image ? ", image " : "", c->image);
	} else if (f->unit) {
		buf_printf(out, "unit %s, ", f->unit);
	}
	if (f->pids.list.n > 1)
		buf_printf(out, "%zu processes, ", f->pids.list.n);
	if (f->inner_pid != f->main_pid)
		buf_printf(out, "pid %d inside, %d here", (int)f->inner_pid, (int)f->main_pid);
	else
		buf_printf(out, "pid %d", (int)f->main_pid);
	if (f->pids.list.n > 1)
		buf_printf(out, " (%s)", f->name);
	if (*f->wrapper)
		buf_printf(out, ", below %s", f->wrapper);
}

void target_describe(const char *name, const struct target_found *f, struct buf *out)
{
	size_t start = out->n;

	if (!f->containers.list.n && (f->kind == TARGET_NAME || f->kind == TARGET_COMMAND))
		describe_processes(name, f, out);
	else
		describe_place(f, out);
	/* A process chooses its name. */
	for (size_t i = start; i < out->n; i++)
		if ((unsigned char)out->data[i] < ' ' || out->data[i] == 0x7f)
			out->data[i] = '?';
}

void target_without_wrappers(const struct target_found *f, struct proc_ids *ret)
{
	*ret = (struct proc_ids){ 0 };
	for (size_t i = 0; i < f->pids.list.n; i++) {
		struct proc_stat s;

		if (f->pids.list.v[i] == f->main_pid || proc_stat(f->pids.list.v[i], &s) || !initproc_is_wrapper(s.name))
			vec_push(&ret->list, f->pids.list.v[i]);
	}
}
