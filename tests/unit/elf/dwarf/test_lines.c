/*
 * Lines and inlined calls as src/elf/dwarf reads them, against those of libdw, which is an independent reader: at every
 * row of the line tables of this program, and of the files that GASFLAME_LINES names (paths, separated by colons).
 */
#include "test.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "elf/file.h"
#include "elf/symbols.h"

enum { SHOWN = 10 };

/* An address, and what libdw says of it: "inner a.c:4 < outer b.c:20". */
struct row {
	uint64_t address;
	char *theirs, *ours;
};

struct rows {
	struct row *v;
	size_t n, capacity;
};

static void put_call(struct buf *b, const char *name, const char *file, unsigned line)
{
	size_t length = strcspn(name, ".");

	/* The symbol table says foo.cold and foo.part.0 where DWARF says foo. */
	buf_printf(b, "%s%.*s", b->n ? " < " : "", (int)(length ? length : strlen(name)), name);
	if (line)
		buf_printf(b, " %s:%u", str_base_name(file), line);
}

/* --- libdw --- */

/* The name that a linker knows, where there is one. */
static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute))
		name = dwarf_formstring(&attribute);
	return name ?: dwarf_diename(die) ?: "";
}

static unsigned call_number(Dwarf_Die *die, unsigned what)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value = 0;

	if (dwarf_attr(die, what, &attribute))
		dwarf_formudata(&attribute, &value);
	return (unsigned)value;
}

static char *ask_libdw(Dwarf_Die *unit, uint64_t address)
{
	Dwarf_Line *at = dwarf_getsrc_die(unit, address);
	Dwarf_Die *innermost = NULL, *scopes = NULL;
	Dwarf_Files *files = NULL;
	size_t file_count;
	int n = dwarf_getscopes(unit, address, &innermost), line = 0;
	const char *file = at ? dwarf_linesrc(at, NULL, NULL) : "";
	struct buf b = { 0 };
	bool whole = false;

	/* Around an inlined call, dwarf_getscopes() goes on where the function was written; we want who called it. */
	n = n > 0 ? dwarf_getscopes_die(&innermost[0], &scopes) : 0;
	free(innermost);
	if (at)
		dwarf_lineno(at, &line);
	dwarf_getsrcfiles(unit, &files, &file_count);
	for (int i = 0; i < n && !whole; i++) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		put_call(&b, linkage_name(&scopes[i]), file ?: "", (unsigned)line);
		whole = tag == DW_TAG_subprogram;
		line = (int)call_number(&scopes[i], DW_AT_call_line);
		file = files ? dwarf_filesrc(files, call_number(&scopes[i], DW_AT_call_file), NULL, NULL) : "";
	}
	free(scopes);
	if (!whole) { /* a line of code that belongs to no function, as in assembly */
		buf_done(&b);
		return NULL;
	}
	return b.data;
}

/* The rows of one unit; of several rows for one address the last one counts. */
static void add_rows(struct rows *rows, Dwarf_Die *unit)
{
	Dwarf_Lines *lines = NULL;
	size_t n = 0;

	if (dwarf_getsrclines(unit, &lines, &n))
		return;
	for (size_t i = 0; i + 1 < n; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		Dwarf_Addr address = 0, next = 0;
		bool end = true;
		char *theirs;

		dwarf_lineaddr(line, &address);
		dwarf_lineaddr(dwarf_onesrcline(lines, i + 1), &next);
		dwarf_lineendsequence(line, &end);
		if (end || !address || next <= address)
			continue;
		theirs = ask_libdw(unit, address);
		if (theirs)
			vec_push(rows, ((struct row){ .address = address, .theirs = theirs }));
	}
}

static void read_libdw(int fd, struct rows *rows)
{
	Dwarf *dwarf = dwarf_begin(fd, DWARF_C_READ);
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	while (dwarf && !dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &unit, NULL))
		add_rows(rows, &unit);
	if (dwarf)
		dwarf_end(dwarf);
}

/* --- ours --- */

static void got(void *context, size_t index, const struct symbols_call *calls, size_t count)
{
	struct rows *rows = context;
	struct buf b = { 0 };

	for (size_t i = 0; i < count; i++)
		put_call(&b, *calls[i].linkage ? calls[i].linkage : calls[i].name, calls[i].file, calls[i].line);
	rows->v[index].ours = b.data;
}

static void read_ours(int fd, struct rows *rows)
{
	uint64_t *addresses = mem_alloc(rows->n * sizeof(*addresses));
	struct symbols *symbols;
	struct elf *elf;
	struct err err;

	for (size_t i = 0; i < rows->n; i++)
		addresses[i] = rows->v[i].address;
	assert_int_equal(elf_open(fd, &elf, &err), 0);
	assert_int_equal(symbols_new(&(struct symbols_files){ .main = elf, .scratch_fd = -1 }, &symbols, &err), 0);
	assert_int_equal(symbols_resolve(symbols, addresses, rows->n, got, rows), 0);
	symbols_free(symbols);
	elf_free(elf);
	free(addresses);
}

/* --- both --- */

static void compare(const char *path, size_t at_least)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t differ = 0, inlined = 0;
	struct rows rows = { 0 };

	assert_true(fd >= 0);
	read_libdw(fd, &rows);
	assert_true(rows.n >= at_least);
	read_ours(fd, &rows);
	for (size_t i = 0; i < rows.n; i++) {
		const struct row *r = &rows.v[i];

		inlined += strstr(r->theirs, " < ") != NULL;
		if (r->ours && !strcmp(r->ours, r->theirs))
			continue;
		if (differ++ < SHOWN)
			fprintf(stderr, "%#lx: libdw: %s\n%*sours: %s\n", r->address, r->theirs, 10, "", r->ours);
	}
	print_message("%s: %zu rows, %zu in inlined calls, %zu differ\n", path, rows.n, inlined, differ);
	for (size_t i = 0; i < rows.n; i++) {
		free(rows.v[i].theirs);
		free(rows.v[i].ours);
	}
	vec_done(&rows);
	assert_int_equal(differ, 0);
#ifdef __OPTIMIZE__
	assert_true(!at_least || inlined > 0);
#endif
}

static void test_own(void **state)
{
	(void)state;
	compare("/proc/self/exe", 1000);
}

static void test_named(void **state)
{
	char *list = getenv("GASFLAME_LINES") ? mem_strdup(getenv("GASFLAME_LINES")) : NULL, *rest = NULL;

	(void)state;
	for (char *path = list ? strtok_r(list, ":", &rest) : NULL; path; path = strtok_r(NULL, ":", &rest))
		compare(path, 1);
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_own), cmocka_unit_test(test_named) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
