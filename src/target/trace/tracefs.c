#include "target/trace/tracefs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"

enum {
	FORMAT_LIMIT = 1 << 20, /* the longest today have 30 kB, nearly all of it "print fmt" */
	FIELDS_LIMIT = 256,
	RECORD_LIMIT = 8192,    /* PERF_MAX_TRACE_SIZE */
	COMMON_BYTES = 8,       /* common_type to common_pid; a program sees a pointer there */
};

int tracefs_root(const char **ret, struct err *err)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	bool forbidden = false;

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/events/header_page", places[i]);
		if (!access(path, R_OK)) {
			*ret = places[i];
			return 0;
		}
		forbidden |= errno == EACCES;
	}
	if (forbidden)
		return err_set(err, EACCES,
			       "tracepoints are listed in /sys/kernel/tracing, which only root may read: run with sudo");
	return err_set(err, ENOENT,
		       "tracepoints need tracefs, which is not mounted: "
		       "sudo mount -t tracefs tracefs /sys/kernel/tracing");
}

/* --- one format file --- */

/* A line of the text, advanced over. */
struct line {
	const char *at, *end;
};

static bool next_line(const char **text, const char *end, struct line *ret)
{
	const char *newline;

	if (*text >= end)
		return false;
	newline = memchr(*text, '\n', end - *text);
	ret->at = *text;
	ret->end = newline ? newline : end;
	*text = newline ? newline + 1 : end;
	while (ret->at < ret->end && (*ret->at == ' ' || *ret->at == '\t'))
		ret->at++;
	return true;
}

/* Skips prefix, if the line begins with it. */
static bool take(struct line *l, const char *prefix)
{
	size_t n = strlen(prefix);

	if ((size_t)(l->end - l->at) < n || memcmp(l->at, prefix, n))
		return false;
	l->at += n;
	return true;
}

static void skip_blanks(struct line *l)
{
	while (l->at < l->end && (*l->at == ' ' || *l->at == '\t'))
		l->at++;
}

static bool take_number(struct line *l, uint32_t limit, uint32_t *ret)
{
	uint64_t n = 0;
	const char *from;

	skip_blanks(l);
	for (from = l->at; l->at < l->end && *l->at >= '0' && *l->at <= '9'; l->at++) {
		n = n * 10 + (*l->at - '0');
		if (n > limit)
			return false;
	}
	*ret = n;
	return l->at > from;
}

static bool name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* "unsigned int bytes", "char comm[16]", "__data_loc char[] cmd": the last word is the name. */
static bool split_declaration(const char *from, const char *to, struct tracefs_field *f)
{
	const char *end = to, *name;

	if (end > from && end[-1] == ']') {
		while (end > from && end[-1] != '[')
			end--;
		end -= end > from;
	}
	name = end;
	while (name > from && name_char(name[-1]))
		name--;
	if (name == end || name == from)
		return false;
	f->name = mem_strndup(name, end - name);
	while (name > from && name[-1] == ' ')
		name--;
	f->type = mem_printf("%.*s%.*s", (int)(name - from), from, (int)(to - end), end);
	/* A pointer is a number, but no sum of pointers means anything. */
	f->integer = f->size >= 1 && f->size <= 8 && !strchr(f->type, '[') && !strchr(f->type, '*') &&
		     !str_starts(f->type, "__data_loc") && !str_starts(f->type, "__rel_loc") &&
		     !str_starts(f->type, "struct ") && !str_starts(f->type, "union ");
	return true;
}

/* Parses the text after "field:". False: not a field. */
static bool parse_field(struct line *l, struct tracefs_field *f)
{
	const char *from = l->at, *to = memchr(l->at, ';', l->end - l->at);
	uint32_t is_signed = 0;

	if (!to || memchr(from, 0, to - from))
		return false;
	l->at = to + 1;
	skip_blanks(l);
	if (!take(l, "offset:") || !take_number(l, RECORD_LIMIT, &f->offset) || !take(l, ";"))
		return false;
	skip_blanks(l);
	if (!take(l, "size:") || !take_number(l, RECORD_LIMIT, &f->size) || !take(l, ";") ||
	    f->offset + f->size > RECORD_LIMIT)
		return false;
	skip_blanks(l);
	/* Kernels before 2.6.38 had no such word. */
	if (take(l, "signed:") && !take_number(l, 1, &is_signed))
		return false;
	f->is_signed = is_signed;
	return split_declaration(from, to, f);
}

static void field_done(struct tracefs_field *f)
{
	free(f->type);
	free(f->name);
}

void tracefs_format_done(struct tracefs_format *f)
{
	vec_done_each(&f->fields, e, field_done(e));
}

static int bad(struct err *err, const char *text, const char *at, const char *what)
{
	int r = err_set(err, EINVAL, "the description of the tracepoint is damaged: %s", what);

	if (err)
		err->offset = at - text;
	return r;
}

static int parse_lines(const char *text, size_t n, struct tracefs_format *ret, struct err *err)
{
	const char *at = text, *end = text + n;
	bool has_id = false;
	struct line l;

	while (next_line(&at, end, &l)) {
		const char *from = l.at;

		if (take(&l, "ID:")) {
			if (!take_number(&l, INT_MAX, &ret->id))
				return bad(err, text, from, "its number is none");
			has_id = true;
		} else if (take(&l, "field:")) {
			struct tracefs_field f = { 0 };

			if (!parse_field(&l, &f)) {
				field_done(&f);
				return bad(err, text, from, "a field without name, offset or size");
			}
			if (ret->fields.n >= FIELDS_LIMIT) {
				field_done(&f);
				return bad(err, text, from, "too many fields");
			}
			if (f.offset < COMMON_BYTES)
				field_done(&f);
			else
				vec_push(&ret->fields, f);
		} else if (take(&l, "print fmt:")) {
			break;
		}
	}
	return has_id ? 0 : bad(err, text, at, "it has no number");
}

int tracefs_parse_format(const char *text, size_t n, struct tracefs_format *ret, struct err *err)
{
	int r;

	*ret = (struct tracefs_format){ 0 };
	r = parse_lines(text, n, ret, err);
	if (r < 0)
		tracefs_format_done(ret);
	return r;
}

int tracefs_read_format(const char *group, const char *name, struct tracefs_format *ret, struct err *err)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	const char *root;
	size_t n;
	int r = tracefs_root(&root, err);

	if (r < 0)
		return r;
	path = mem_printf("%s/events/%s/%s/format", root, group, name);
	r = fd_read_path(path, FORMAT_LIMIT, &text, &n);
	if (r == -ENOENT || r == -ENOTDIR)
		return err_set(err, ENOENT, "this kernel has no tracepoint %s:%s", group, name);
	if (r < 0)
		return err_errno(err, -r, "cannot read %s", path);
	r = tracefs_parse_format(text, n, ret, err);
	return r < 0 ? err_prefix(err, "%s", path) : 0;
}

const struct tracefs_field *tracefs_find_field(const struct tracefs_format *f, const char *name)
{
	for (size_t i = 0; i < f->fields.n; i++)
		if (!strcmp(f->fields.v[i].name, name))
			return &f->fields.v[i];
	return NULL;
}

/* --- which there are --- */

struct names {
	VEC(char *) list;
};

/* Lists the folders of a folder. A folder that vanishes, as of a module, is empty. */
static void read_folders(const char *path, struct names *ret)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			vec_push(&ret->list, mem_strdup(e->d_name));
	if (dir)
		closedir(dir);
	vec_sort(&ret->list, str_order);
}

static void names_done(struct names *n)
{
	vec_done_each(&n->list, e, free(*e));
}

int tracefs_list(tracefs_list_fn *fn, void *context, struct err *err)
{
	_cleanup_free_ char *events = NULL;
	struct names groups = { 0 };
	const char *root;
	int r = tracefs_root(&root, err);

	if (r < 0)
		return r;
	events = mem_printf("%s/events", root);
	read_folders(events, &groups);
	for (size_t i = 0; r >= 0 && i < groups.list.n; i++) {
		_cleanup_free_ char *path = mem_printf("%s/%s", events, groups.list.v[i]);
		struct names events_of = { 0 };

		/* Functions that ftrace itself traces; no perf event opens on these. */
		if (strcmp(groups.list.v[i], "ftrace"))
			read_folders(path, &events_of);
		for (size_t k = 0; r >= 0 && k < events_of.list.n; k++)
			r = fn(context, groups.list.v[i], events_of.list.v[k]);
		names_done(&events_of);
	}
	names_done(&groups);
	return r < 0 ? r : 0;
}
