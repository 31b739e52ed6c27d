#include "cmd/symbols/symbolfile.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "elf/unwind/functions.h"
#include "elf/worker/worker.h"
#include "symbol/stripped/otherbuild.h"

enum { LOOKED_MAX = 64 }; /* places that are listed */

const char *symbolfile_names(enum find_level level)
{
	static const char *const words[] = {
		[FIND_NOTHING] = "none: functions are shown by their start",
		[FIND_EXPORTS] = "exported functions only; the others are shown by their start",
		[FIND_SYMBOLS] = "all functions; no lines, no inlined calls",
		[FIND_LINES] = "all functions, with lines and inlined calls",
	};

	return words[level];
}

static void note_place(void *context, const char *path, const char *what)
{
	struct symbolfile *f = context;
	char *line = mem_printf("%s: %s", path, what);

	/* A process may have the same places as the host. */
	for (size_t i = 0; i < f->looked.n && line; i++)
		if (!strcmp(f->looked.v[i], line)) {
			free(line);
			line = NULL;
		}
	if (line && f->looked.n < LOOKED_MAX)
		vec_push(&f->looked, line);
	else
		free(line);
}

/* Where a file that was found is: the cache has no better name for one of a server. */
static char *place_of(const struct source *s)
{
	if (s->where == SOURCE_SERVER)
		return mem_strdup("debuginfod");
	return s->where == SOURCE_NONE ? NULL : mem_strdup(s->path[0] ? s->path : "a deleted file");
}

static void look_for_debug(struct symbolfile_search *s, int fd, pid_t pid, struct symbolfile *f)
{
	struct find find = { .worker = s->worker, .cache = s->cache, .index = s->index, .pid = pid, .path = f->path,
			     .build_id = f->info.build_id, .build_id_size = f->info.build_id_size, .debuginfod = s->fetch,
			     .looked = note_place, .looked_context = f, .main = fcntl(fd, F_DUPFD_CLOEXEC, 3) };

	find_files(&find);
	f->fetched = s->fetch;
	s->fetch = find.debuginfod;
	f->level = find.level;
	f->debug = place_of(&find.debug_from);
	f->alt = place_of(&find.alt_from);
	if (find.other)
		otherbuild_tell(&find, f->other, sizeof(f->other));
	snprintf(f->why, sizeof(f->why), "%s", find.why);
	find_done(&find);
}

int symbolfile_look(struct symbolfile_search *s, int fd, pid_t pid, const char *path, struct symbolfile *ret,
		    struct err *err)
{
	_cleanup_(functions_done) struct functions functions = { 0 };
	struct symbolfile f = { 0 };
	struct stat st;
	int r = worker_inspect(s->worker, fd, &f.info, err);

	if (r)
		return err_prefix(err, "%s", path);
	f.path = mem_strdup(path);
	f.bytes = fstat(fd, &st) ? 0 : st.st_size;
	worker_buildfacts(s->worker, fd, &f.facts, NULL);
	if (!worker_functions(s->worker, fd, &functions, NULL)) {
		f.functions = functions.n;
		f.functions_from = functions.from;
		f.overlapping = functions.overlapping;
		f.text_bytes = functions.text_bytes;
		f.covered_bytes = functions_bytes(&functions);
	}
	*ret = f;
	look_for_debug(s, fd, pid, ret);
	return 0;
}

void symbolfile_done(struct symbolfile *f)
{
	free(f->path);
	free(f->debug);
	free(f->alt);
	vec_done_each(&f->looked, e, free(*e));
}

static const char *type_of(const struct symbols_info *i)
{
	switch (i->type) {
	case ET_EXEC:
		return "program at fixed addresses";
	case ET_DYN:
		return "position-independent program, or library";
	case ET_REL:
		return "object file";
	default:
		return "ELF file";
	}
}

static const char *machine_of(const struct symbols_info *i)
{
	return i->machine == EM_X86_64 ? "x86-64" : i->machine == EM_AARCH64 ? "arm64" : "another machine";
}

static double coverage(const struct symbolfile *f)
{
	return f->functions_from == FUNCTIONS_FDES ? MIN(str_percent(f->covered_bytes, f->text_bytes), 100.0) : 0;
}

static void row(struct buf *out, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void row(struct buf *out, const char *name, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = mem_vprintf(fmt, ap);
	va_end(ap);
	buf_printf(out, "  %-16s ", name);
	plain_add(out, text);
	buf_putc(out, '\n');
}

static void print_tables(const struct symbolfile *f, struct buf *out)
{
	const struct symbols_info *i = &f->info;
	char count[32], text[32];

	if (i->symtab)
		row(out, "symbol table", "%s functions in .symtab", str_count(count, i->symbol_count));
	else
		row(out, "symbol table", "none: it is stripped");
	row(out, "dynamic symbols", "%s functions in .dynsym", str_count(count, i->dynamic_count));
	if (i->go)
		row(out, "Go's own table", "%s functions in .gopclntab, with lines and inlined calls", str_count(count, i->go_count));
	row(out, ".gnu_debugdata", "%s", i->minidebug ? "a compressed symbol table" : "none");
	row(out, "debug info", "%s", i->debug_info ? "lines and inlined calls" : i->debug_line ? "lines" : "none");
	if (i->debuglink[0])
		row(out, "debug link", "%s", i->debuglink);
	if (i->altlink[0])
		row(out, "dwz supplement", "%s%s%s", i->altlink, f->alt ? ", found: " : ", not found", f->alt ? f->alt : "");
	if (f->functions_from == FUNCTIONS_FDES)
		row(out, "unwind", "%s functions by %s, %.1f %% of %s of code%s", str_count(count, f->functions),
		    i->eh_frame || !i->debug_frame ? ".eh_frame" : ".debug_frame", coverage(f), str_bytes(text, f->text_bytes),
		    f->overlapping ? "; some overlap, which no compiler makes" : "");
	else
		row(out, "unwind", i->go ? "by Go's table" : "none: neither .eh_frame nor .debug_frame");
}

static void print_next(const struct symbolfile *f, struct buf *out)
{
	if (f->level == FIND_LINES)
		return;
	if (f->level == FIND_SYMBOLS) {
		row(out, "next", "lines and inlined calls need debug information: build with -g (Rust: debug = \"line-tables-only\")");
		return;
	}
	if (!f->fetched && f->info.build_id_size)
		row(out, "next", "gasflame symbols --fetch asks the servers of DEBUGINFOD_URLS; or install the debug package");
	row(out, f->fetched || !f->info.build_id_size ? "next" : "",
	    "gasflame report --symbols BUILD CAPTURE, with an unstripped build of the same sources, names what was recorded");
}

void symbolfile_print(const struct symbolfile *f, struct buf *out)
{
	char hex[41], bytes[32];

	plain_add(out, f->path);
	buf_putc(out, '\n');
	row(out, "file", "%s, %s, %s", type_of(&f->info), machine_of(&f->info), str_bytes(bytes, f->bytes));
	row(out, "build-id", "%s", f->info.build_id_size ? find_hex(hex, f->info.build_id, f->info.build_id_size) : "none");
	if (f->facts.compiler[0])
		row(out, "built by", "%s", f->facts.compiler);
	print_tables(f, out);
	if (f->other[0])
		row(out, "other build", "%s", f->other);
	else
		row(out, "debug file", "%s", f->debug ? f->debug : f->level == FIND_LINES ? "not needed" : "none found");
	for (size_t i = 0; i < f->looked.n; i++)
		row(out, i ? "" : "looked at", "%s", f->looked.v[i]);
	if (f->why[0] && !str_starts(f->why, "debuginfod")) /* a place that was looked at */
		row(out, "problem", "%s", f->why);
	row(out, "names", "%s", symbolfile_names(f->level == FIND_EXPORTS && !f->info.dynamic_count ? FIND_NOTHING : f->level));
	print_next(f, out);
}

static void put_text(struct json *j, const char *key, const char *text)
{
	if (text && *text)
		json_put_string(j, key, text);
	else
		json_put_null(j, key);
}

void symbolfile_json(const struct symbolfile *f, struct json *j)
{
	static const char *const names[] = { "none", "exported", "symbols", "lines" };
	static const char *const from[] = { "none", "fde", "symbols" };
	const struct symbols_info *i = &f->info;
	char hex[41];

	json_put_string(j, "path", f->path);
	json_put_string(j, "type", i->type == ET_EXEC ? "exec" : i->type == ET_DYN ? "dyn" : i->type == ET_REL ? "rel" : "other");
	json_put_string(j, "machine", machine_of(i));
	put_text(j, "build_id", find_hex(hex, i->build_id, i->build_id_size));
	put_text(j, "built_by", f->facts.compiler);
	json_put_uints(j, { "bytes", f->bytes }, { "text_bytes", f->text_bytes },
		       { "symtab_functions", i->symtab ? i->symbol_count : 0 }, { "dynsym_functions", i->dynamic_count },
		       { "go_functions", i->go_count }, { "unwind_functions", f->functions },
		       { "unwind_overlapping", f->overlapping });
	json_put_string(j, "unwind_from", from[MIN(f->functions_from, 2)]);
	json_put_fixed(j, "unwind_percent_of_text", coverage(f), 1);
	json_put_bool(j, "symtab", i->symtab);
	json_put_bool(j, "dynsym", i->dynsym);
	json_put_bool(j, "gnu_debugdata", i->minidebug);
	json_put_bool(j, "debug_lines", i->debug_line);
	json_put_bool(j, "debug_info", i->debug_info);
	put_text(j, "debuglink", i->debuglink);
	put_text(j, "altlink", i->altlink);
	put_text(j, "alt_file", f->alt);
	put_text(j, "debug_file", f->debug);
	put_text(j, "other_build", f->other);
	put_text(j, "problem", f->why);
	json_put_bool(j, "fetched", f->fetched);
	json_put_strings(j, "looked", (const char *const *)f->looked.v, f->looked.n);
	json_put_string(j, "names", names[f->level]);
}
