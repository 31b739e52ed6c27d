#include "test.h"

#include <errno.h>

#include "base/err.h"
#include "elf/file.h"
#include "elf/go/gotab.h"
#include "elf/symbols.h"
#include "elf/go/gofile.h"

static const int versions[] = { 112, 113, 116, 118, 120, 126, 127 };

struct opened {
	struct gofile file;
	struct elf *elf;
	struct gotab *table;
	struct err err;
};

static int reopen(struct opened *o)
{
	gotab_free(o->table);
	elf_free(o->elf);
	o->table = NULL;
	o->elf = NULL;
	assert_int_equal(elf_open_memory(o->file.image.data, o->file.image.n, &o->elf, NULL), 0);
	return gotab_open(o->elf, &o->table, &o->err);
}

static int make(struct opened *o)
{
	gofile_build(&o->file);
	return reopen(o);
}

static void done(struct opened *o)
{
	gotab_free(o->table);
	elf_free(o->elf);
	buf_done(&o->file.image);
}

/* --- what a good table tells --- */

static void check_functions(struct opened *o)
{
	struct gotab_function f;
	uint64_t start, end;
	size_t i;

	assert_int_equal(gotab_count(o->table), 3);
	gotab_range(o->table, &start, &end);
	assert_int_equal(start, 0x1000);
	assert_int_equal(end, 0x1200);
	assert_true(gotab_get(o->table, 0, &f));
	assert_string_equal(f.name, "main.alpha");
	assert_int_equal(f.entry, 0x1000);
	assert_int_equal(f.end, 0x1100);
	assert_int_equal(f.start_line, o->file.version >= 120 ? 9 : 0);
	assert_true(gotab_get(o->table, 2, &f));
	assert_string_equal(f.name, "main.(*T).gamma");
	assert_int_equal(f.args_bytes, 16);
	assert_int_equal(f.id, 8);
	assert_int_equal(f.flag, o->file.version >= 118 ? GOTAB_TOP_FRAME | GOTAB_ASSEMBLY : 0);
	assert_false(gotab_get(o->table, 3, &f));
	assert_true(gotab_find(o->table, 0x1000, &i) && i == 0);
	assert_true(gotab_find(o->table, 0x10ff, &i) && i == 0);
	assert_true(gotab_find(o->table, 0x1100, &i) && i == 1);
	assert_true(gotab_find(o->table, 0x11ff, &i) && i == 2);
	assert_false(gotab_find(o->table, 0xfff, &i));
	assert_false(gotab_find(o->table, 0x1200, &i));
}

static void check_frames(struct opened *o)
{
	static const struct {
		uint64_t start, end;
		int32_t value;
	} want[] = { { 0x1000, 0x1004, 0 }, { 0x1004, 0x10f4, 24 }, { 0x10f4, 0x10fc, 0 } };
	struct gotab_function f;
	struct gotab_values v;
	size_t n = 0;

	assert_true(gotab_get(o->table, 0, &f));
	for (v = gotab_values(o->table, &f, f.pcsp); gotab_next(&v); n++) {
		assert_true(n < ARRAY_LEN(want));
		assert_int_equal(v.start, want[n].start);
		assert_int_equal(v.end, want[n].end);
		assert_int_equal(v.value, want[n].value);
	}
	assert_int_equal(n, ARRAY_LEN(want));
	assert_int_equal(gotab_value_at(o->table, &f, f.pcsp, 0x1004), 24);
	assert_int_equal(gotab_value_at(o->table, &f, f.pcsp, 0x10fd), -1); /* padding */
	assert_int_equal(gotab_value_at(o->table, &f, 0, 0x1004), -1);
	/* The table of a longer function: it ends with this one. */
	assert_true(gotab_get(o->table, 1, &f));
	for (v = gotab_values(o->table, &f, f.pcsp); gotab_next(&v);)
		assert_true(v.end <= 0x1180);
	assert_int_equal(v.end, 0x1180);
}

static void check_call(const struct symbols_call *c, const char *name, const char *file, uint32_t line)
{
	assert_string_equal(c->linkage, "");
	assert_string_equal(c->name, name);
	assert_string_equal(c->file, file);
	assert_int_equal(c->line, line);
}

static void check_calls(struct opened *o)
{
	struct symbols_call calls[4];

	assert_int_equal(gotab_calls(o->table, 0x1008, calls, 4), 1);
	check_call(&calls[0], "main.alpha", "/src/a.go", 10);
	assert_int_equal(gotab_calls(o->table, 0x1041, calls, 4), 2);
	check_call(&calls[0], "main.inner", "/src/b.go", 100);
	check_call(&calls[1], "main.alpha", "/src/a.go", 12);
	assert_int_equal(gotab_calls(o->table, 0x1050, calls, 4), 3);
	check_call(&calls[0], "main.innermost", "/src/b.go", 200);
	check_call(&calls[1], "main.inner", "/src/b.go", 100);
	check_call(&calls[2], "main.alpha", "/src/a.go", 12);
	assert_int_equal(gotab_calls(o->table, 0x1070, calls, 4), 2);
	check_call(&calls[0], "main.inner", "/src/b.go", 101);
	/* Where there is no room for all, the function itself is the last one. */
	assert_int_equal(gotab_calls(o->table, 0x1050, calls, 2), 2);
	check_call(&calls[1], "main.alpha", "/src/b.go", 100);
	assert_int_equal(gotab_calls(o->table, 0x1100, calls, 4), 1);
	check_call(&calls[0], "main.beta", "/src/a.go", 10);
	assert_int_equal(gotab_calls(o->table, 0x1300, calls, 4), 0);
	assert_int_equal(gotab_calls(o->table, 0x10ff, calls, 4), 1); /* padding has no line */
	check_call(&calls[0], "main.alpha", "", 0);
}

static void check_all(struct opened *o)
{
	check_functions(o);
	check_frames(o);
	check_calls(o);
}

static void every_version_is_read(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		struct opened o = { .file = { .version = versions[i] } };

		assert_int_equal(make(&o), 0);
		assert_int_equal(gotab_version(o.table), versions[i] >= 120 ? 120 : versions[i] == 113 ? 112 : versions[i]);
		check_all(&o);
		done(&o);
	}
}

static void relocations_of_a_pie_are_applied(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		struct opened o = { .file = { .version = versions[i], .pie = true,
					      .section = ".data.rel.ro.gopclntab" } };

		assert_int_equal(make(&o), 0);
		check_all(&o);
		done(&o);
	}
}

static void tables_are_found_without_section_headers(void **state)
{
	for (size_t i = 0; i < 2 * ARRAY_LEN(versions); i++) {
		struct opened o = { .file = { .version = versions[i / 2], .pie = i % 2, .no_sections = true } };

		assert_int_equal(make(&o), 0);
		check_all(&o);
		done(&o);
	}
}

/* The C linker puts it into .data.rel.ro. Other sections say that Go's linker was there. */
static void tables_are_found_in_other_sections(void **state)
{
	struct opened go = { .file = { .version = 119, .section = ".go.buildinfo" } };
	struct opened other = { .file = { .version = 119, .section = ".data.rel.ro" } };

	assert_int_equal(make(&go), 0);
	check_all(&go);
	assert_int_equal(make(&other), -ENOENT);
	done(&go);
	done(&other);
}

/* The table of another program, which this one carries as data: no record of a module points to it. */
static void tables_of_others_are_not_taken(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		struct opened o = { .file = { .version = versions[i], .no_sections = true } };

		assert_int_equal(make(&o), 0);
		gofile_patch(&o.file, o.file.module, GOFILE_TABLE + 8, 8);
		assert_int_equal(reopen(&o), -EBADMSG);
		done(&o);
	}
}

static void symbols_come_from_the_table(void **state)
{
	struct opened o = { .file = { .version = 120 } };
	struct symbols_info info;

	assert_int_equal(make(&o), 0);
	symbols_inspect(o.elf, &info);
	assert_true(info.go);
	assert_int_equal(info.symbol_count, 3);
	assert_int_equal(info.go_count, 3);
	done(&o);
}

struct got {
	char text[2][256];
};

static void got_calls(void *context, size_t index, const struct symbols_call *calls, size_t count)
{
	struct got *got = context;
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += snprintf(got->text[index] + n, sizeof(got->text[index]) - n, "%s%s%s:%u ", calls[i].linkage,
			      calls[i].name, calls[i].file, calls[i].line);
}

static void addresses_are_resolved(void **state)
{
	static const uint64_t addresses[] = { 0x1130, 0x1041 };

	for (int no_dwarf = 0; no_dwarf < 2; no_dwarf++) {
		struct opened o = { .file = { .version = 118 } };
		struct symbols *symbols;
		struct got got = { 0 };

		assert_int_equal(make(&o), 0);
		assert_int_equal(symbols_new(&(struct symbols_files){ .main = o.elf, .scratch_fd = -1,
								      .no_dwarf = no_dwarf }, &symbols, NULL), 0);
		symbols_resolve(symbols, addresses, 2, got_calls, &got);
		assert_string_equal(got.text[0], no_dwarf ? "main.beta:0 " : "main.beta/src/a.go:12 ");
		assert_string_equal(got.text[1], no_dwarf ? "main.alpha:0 " : "main.inner/src/b.go:100 main.alpha/src/a.go:12 ");
		symbols_free(symbols);
		done(&o);
	}
}

/* --- what a damaged table must not do --- */

/* Puts a value into a table of Go 1.20 without relocations, and opens it again. */
static int open_with(uint64_t at, uint64_t value, unsigned bytes)
{
	struct opened o = { .file = { .version = 120 } };
	int r;

	assert_int_equal(make(&o), 0);
	gofile_patch(&o.file, at, value, bytes);
	r = reopen(&o);
	done(&o);
	return r;
}

static void damaged_headers_are_refused(void **state)
{
	enum { COUNT = GOFILE_TABLE + 8, TEXT = GOFILE_TABLE + 24, NAMES = GOFILE_TABLE + 32, FUNCTIONS = GOFILE_TABLE + 64 };

	assert_int_equal(open_with(GOFILE_TABLE, 0xfffffff2, 4), -ENOENT);
	assert_int_equal(open_with(GOFILE_TABLE + 6, 4, 1), -EBADMSG); /* of another machine */
	assert_int_equal(open_with(GOFILE_TABLE + 7, 4, 1), -ENOENT);  /* of 32 bits */
	assert_int_equal(open_with(COUNT, 0, 8), -EBADMSG);
	assert_int_equal(open_with(COUNT, 1ULL << 61, 8), -EBADMSG);
	assert_int_equal(open_with(COUNT, UINT64_MAX, 8), -EBADMSG);
	assert_int_equal(open_with(COUNT, 2000000, 8), -EBADMSG);
	assert_int_equal(open_with(NAMES, 1 << 20, 8), -EBADMSG);
	assert_int_equal(open_with(FUNCTIONS, UINT64_MAX, 8), -EBADMSG);
	/* The module's record is the truth about the start of the code. */
	assert_int_equal(open_with(TEXT, 0xdead0000, 8), 0);
}

static void functions_out_of_order_are_refused(void **state)
{
	struct opened o = { .file = { .version = 120 } };
	uint64_t functions = 0;

	assert_int_equal(make(&o), 0);
	memcpy(&functions, o.file.image.data + GOFILE_TABLE + 64, 8);
	functions += GOFILE_TABLE;
	assert_int_equal(open_with(functions + 8, 0x190, 4), -EBADMSG);
	assert_int_equal(open_with(functions + 24, 0x100000, 4), -EBADMSG); /* beyond the code */
	assert_int_equal(open_with(functions + 4, 0xfffffff0, 4), -EBADMSG); /* the first record lies outside */
	/* A damaged record in the middle costs that function only. */
	gofile_patch(&o.file, functions + 12, 0xfffffff0, 4);
	assert_int_equal(reopen(&o), 0);
	struct gotab_function f;

	assert_false(gotab_get(o.table, 1, &f));
	assert_true(gotab_get(o.table, 2, &f));
	done(&o);
}

/* Values: an endless number, a step of 0, one that never ends. */
static void damaged_values_end(void **state)
{
	static const struct {
		const char *bytes;
		size_t n, ranges;
	} cases[] = {
		{ "\x02\x04\x80\x80\x80\x80\x80\x80\x80", 9, 1 },
		{ "\x02\x00\x02\x00\x02\x00\x02\x00\x02", 9, 0 },
		{ "\x02\x01\x02\x01\x02\x01\x02\x01\x00", 9, 4 },
		{ "\x02\xff\xff\xff\xff\x0f\x02\x01\x00", 9, 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct opened o = { .file = { .version = 120 } };
		struct gotab_function f;
		struct gotab_values v;
		uint64_t values = 0;
		size_t n = 0;

		assert_int_equal(make(&o), 0);
		memcpy(&values, o.file.image.data + GOFILE_TABLE + 56, 8);
		assert_true(gotab_get(o.table, 0, &f));
		memcpy(o.file.image.data + GOFILE_TABLE + values + f.pcsp, cases[i].bytes, cases[i].n);
		for (v = gotab_values(o.table, &f, f.pcsp); gotab_next(&v); n++)
			assert_true(v.start < v.end && v.end <= f.end);
		assert_int_equal(n, cases[i].ranges);
		/* A table beyond the end of the file. */
		v = gotab_values(o.table, &f, UINT32_MAX);
		assert_false(gotab_next(&v));
		done(&o);
	}
}

/* A call site within the inlined code itself: a cycle. Its end is the function. */
static void cycles_of_inlined_calls_end(void **state)
{
	struct opened o = { .file = { .version = 120 } };
	struct symbols_call calls[100];

	assert_int_equal(make(&o), 0);
	gofile_patch(&o.file, o.file.inline_tree + 8, 0x50, 4);
	assert_int_equal(gotab_calls(o.table, 0x1050, calls, 100), 3);
	assert_string_equal(calls[2].name, "main.alpha");
	gofile_patch(&o.file, o.file.inline_tree + 8, 0x40, 4);
	assert_int_equal(gotab_calls(o.table, 0x1040, calls, 100), 2);
	/* A call site in another function, and a name that is none. */
	gofile_patch(&o.file, o.file.inline_tree + 8, 0x7fffffff, 4);
	assert_int_equal(gotab_calls(o.table, 0x1040, calls, 100), 1);
	gofile_patch(&o.file, o.file.inline_tree + 8, 0x20, 4);
	gofile_patch(&o.file, o.file.inline_tree + 4, 0x7fffffff, 4);
	assert_int_equal(gotab_calls(o.table, 0x1040, calls, 100), 1);
	check_call(&calls[0], "main.alpha", "/src/b.go", 100);
	done(&o);
}

/* Every cut of every file is survived; what is left is refused or read within its bounds. */
static void cut_files_are_survived(void **state)
{
	for (size_t i = 0; i < 2 * ARRAY_LEN(versions); i++) {
		struct opened o = { .file = { .version = versions[i / 2], .pie = i % 2, .no_sections = true } };
		struct symbols_call calls[8];
		size_t n;

		gofile_build(&o.file);
		n = o.file.image.n;
		for (size_t cut = GOFILE_TABLE; cut < n; cut += 3) {
			o.file.image.n = cut;
			if (!reopen(&o))
				for (uint64_t a = 0x1000; a < 0x1200; a += 9)
					assert_true(gotab_calls(o.table, a, calls, 8) <= 8);
		}
		done(&o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_version_is_read),
		cmocka_unit_test(relocations_of_a_pie_are_applied),
		cmocka_unit_test(tables_are_found_without_section_headers),
		cmocka_unit_test(tables_are_found_in_other_sections),
		cmocka_unit_test(tables_of_others_are_not_taken),
		cmocka_unit_test(symbols_come_from_the_table),
		cmocka_unit_test(addresses_are_resolved),
		cmocka_unit_test(damaged_headers_are_refused),
		cmocka_unit_test(functions_out_of_order_are_refused),
		cmocka_unit_test(damaged_values_end),
		cmocka_unit_test(cycles_of_inlined_calls_end),
		cmocka_unit_test(cut_files_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
