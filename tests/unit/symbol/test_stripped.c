/*
 * Names and functions of files without symbols: their starts, what they export, the stubs of their PLT, and the symbols of
 * other files that may be used for them.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/text/str.h"
#include "elf/unwind/functions.h"
#include "elf/worker/worker.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "symbol/symbolize.h"
#include "test.h"

#include "programs.h"

/* More functions than the C library's start files bring, of different sizes. */
static const char source[] =
	"#include <stdlib.h>\n#include <string.h>\n"
	"volatile int sink;\n"
	/* An exported function without a size: what follows is not part of it. */
	"__asm__(\".text\\n.globl unsized\\n.type unsized, @function\\nunsized: nop\\nret\\n.p2align 4\");\n"
	"#define F(n, ...) __attribute__((noinline)) static void n(int x) { __VA_ARGS__; sink -= x; }\n"
	"F(one, sink++)\nF(two, sink++; sink *= x)\nF(three, sink ^= 3; sink += x; sink *= 5)\n"
	"F(four, for (int i = 0; i < x; i++) sink += i)\n"
	"__attribute__((visibility(\"default\"), noinline)) void exported(char *p, int x) { memset(p, x, x); sink++; }\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"\tone(argc); two(argc); three(argc); four(argc); exported(malloc(argc), argc);\n"
	"#ifdef MORE\n\tsink += 12345 * argc;\n#endif\n"
	"\treturn sink;\n"
	"}\n";

/* full/NAME, and stripped: bare/NAME. */
static char *build(const char *name, const char *flags)
{
	shell("cd $T && gcc -O1 -g %s -o full/%s prog.c && strip -s -o bare/%s full/%s", flags, name, name, name);
	return mem_printf("%s/full/%s", folder, name);
}

static char *bare(const char *name)
{
	return mem_printf("%s/bare/%s", folder, name);
}

/* --- a profile of one module --- */

struct recorded {
	struct worker *worker;
	struct profile *p;
	uint32_t module;
};

static struct recorded record(const char *path)
{
	struct recorded r = { worker_new(), profile_new(), 0 };

	r.module = add_module(r.p, r.worker, path, path);
	return r;
}

static void recorded_done(struct recorded *r)
{
	profile_free(r->p);
	worker_free(r->worker);
}

static uint32_t sample(struct recorded *r, uint64_t address)
{
	return profile_frame(r->p, r->module, FRAME_USER, address);
}

static void name(struct recorded *r, const char *symbols)
{
	const char *const paths[] = { symbols, NULL };
	struct symbolizer *s = symbolizer_new(&(struct symbolize_options){ .paths = paths, .no_cache = true }, r->worker);

	assert_int_equal(symbolize_profile(s, r->p, NULL, NULL, NULL), 0);
	symbolizer_free(s);
}

static const struct profile_function *function_of(const struct recorded *r, uint32_t frame)
{
	const struct profile_frame *f = &r->p->frames.v[frame];

	assert_true(f->line_count > 0);
	return &r->p->functions.v[r->p->lines.v[f->first_line + f->line_count - 1].function];
}

static void expect(const struct recorded *r, uint32_t frame, const char *text, enum profile_named named)
{
	const struct profile_function *f = function_of(r, frame);

	assert_string_equal(profile_str(r->p, f->name), text);
	assert_int_equal(f->named, named);
	assert_int_equal(profile_frame_unnamed(r->p, frame), named >= NAMED_START);
}

static void expect_start(const struct recorded *r, uint32_t frame, const char *module, uint64_t start)
{
	_cleanup_free_ char *text = mem_printf("%s+0x%llx", module, (unsigned long long)start);

	expect(r, frame, text, NAMED_START);
}

/* The sentence of that family that has these words, or "". */
static const char *sentence(const struct recorded *r, const char *family, const char *words)
{
	for (size_t i = 0; i < r->p->counters.n; i++) {
		const char *text = key_rest(family, profile_str(r->p, r->p->counters.v[i].name));

		if (text && strstr(text, words))
			return text;
	}
	return "";
}

/* --- tests --- */

static void functions_have_their_starts(void **state)
{
	_cleanup_free_ char *full = build("starts", ""), *stripped = bare("starts");
	uint64_t two = symbol(full, "two"), three = symbol(full, "three");
	struct recorded r = record(stripped);
	uint32_t a = sample(&r, two), b = sample(&r, two + 1), c = sample(&r, three + 2), nowhere = sample(&r, 0x9123);

	name(&r, NULL);
	expect_start(&r, a, "starts", two);
	expect_start(&r, b, "starts", two);
	expect_start(&r, c, "starts", three);
	/* One function is one box. */
	assert_ptr_equal(function_of(&r, a), function_of(&r, b));
	expect(&r, nowhere, "starts+0x9000 (page)", NAMED_PAGE);
	assert_int_equal(r.p->ranges.n, 2);
	recorded_done(&r);
}

/* Every function symbol of a compiled program starts where its FDE does, and is as long. */
static void symbols_and_fdes_agree(void **state)
{
	_cleanup_free_ char *full = build("agree", "-fPIE");
	_cleanup_(functions_done) struct functions functions = { 0 };
	static const char *const names[] = { "one", "two", "three", "four", "exported", "main" };
	_cleanup_fd_ int fd = open(full, O_RDONLY | O_CLOEXEC);
	struct worker *w = worker_new();

	assert_int_equal(worker_functions(w, fd, &functions, NULL), 0);
	assert_int_equal(functions.from, FUNCTIONS_FDES);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		_cleanup_free_ char *size = mem_printf("nm -S %s | grep -w %s | cut -d' ' -f2", full, names[i]);
		uint64_t start = symbol(full, names[i]);
		const struct functions_range *f = functions_find(&functions, start + 1);

		assert_non_null(f);
		assert_int_equal(f->start, start);
		assert_int_equal(f->end - f->start, number_of(size));
	}
	worker_free(w);
}

static void exports_and_stubs_have_names(void **state)
{
	static const char *const flags[] = { "-rdynamic", "-rdynamic -fcf-protection -Wl,-z,now,-z,ibtplt",
					     "-rdynamic -no-pie -Wl,-z,lazy" };

	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		_cleanup_free_ char *full = build("exports", flags[i]), *stripped = bare("exports");
		_cleanup_free_ char *stub = mem_printf("objdump -d %s | grep '<memset@plt>:'", stripped);
		uint64_t at = symbol(full, "exported"), three = symbol(full, "three");
		struct recorded r = record(stripped);
		uint32_t a = sample(&r, at + 3), b = sample(&r, number_of(stub) + 2), c = sample(&r, three + 1),
			 d = sample(&r, symbol(full, "unsized") + 1);

		name(&r, NULL);
		expect(&r, a, "exported", NAMED_DYNAMIC);
		expect(&r, b, "memset@plt", NAMED_PLT);
		expect_start(&r, c, "exports", three);
		expect(&r, d, "unsized", NAMED_DYNAMIC);
		recorded_done(&r);
	}
}

/* The same without a section table, as some releases are: by what the loader needs. */
static void no_section_table(void **state)
{
	static const char *const flags[] = { "-rdynamic", "-rdynamic -fcf-protection -Wl,-z,now,-z,ibtplt,--hash-style=sysv" };

	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		_cleanup_free_ char *full = build("headless", flags[i]), *stripped = bare("headless");
		_cleanup_free_ char *stub = mem_printf("objdump -d %s | grep '<memset@plt>:'", stripped);
		uint64_t at = symbol(full, "exported"), three = symbol(full, "three"), plt = number_of(stub);
		_cleanup_fd_ int fd = open(stripped, O_RDWR | O_CLOEXEC);
		struct symbols_info info;
		struct recorded r;
		uint32_t a, b, c;

		/* e_shoff; e_shnum and e_shstrndx */
		assert_int_equal(pwrite(fd, "\0\0\0\0\0\0\0\0", 8, 40), 8);
		assert_int_equal(pwrite(fd, "\0\0\0\0", 4, 60), 4);
		r = record(stripped);
		a = sample(&r, at + 3);
		b = sample(&r, plt + 2);
		c = sample(&r, three + 1);
		name(&r, NULL);
		expect(&r, a, "exported", NAMED_DYNAMIC);
		expect(&r, b, "memset@plt", NAMED_PLT);
		expect_start(&r, c, "headless", three);
		assert_int_equal(worker_inspect(r.worker, fd, &info, NULL), 0);
		assert_true(info.dynsym && info.dynamic_count >= 3); /* main, exported, unsized */
		recorded_done(&r);
	}
}

static void another_build_names_what_agrees(void **state)
{
	_cleanup_free_ char *full = build("mine", ""), *stripped = bare("mine");
	_cleanup_free_ char *same = build("same", "-Wl,--build-id=0x1234567890abcdef"), *other = build("unlike", "-O3 -DMORE");
	_cleanup_free_ char *debug = in_folder("full/same.debug");
	uint64_t two = symbol(full, "two");
	struct recorded r = record(stripped);
	uint32_t frame = sample(&r, two + 1);

	name(&r, other);
	expect_start(&r, frame, "mine", two);
	assert_non_null(strstr(sentence(&r, KEY_SYMBOLS_PROBLEM_OF, "unlike was not used"), "99 % must"));
	assert_string_equal(sentence(&r, KEY_SYMBOLS_BUILD_OF, ""), "");
	/* What was shown by its start is renamed when symbols turn up. */
	name(&r, same);
	expect(&r, frame, "two", NAMED_BUILD);
	assert_non_null(strstr(sentence(&r, KEY_SYMBOLS_BUILD_OF, "1234567890abcdef"), "functions agree in start and size"));
	name(&r, full);
	expect(&r, frame, "two", NAMED_SYMBOL);
	recorded_done(&r);

	/* A debug file has no FDEs, but the sizes of its symbols. Those of start files have other sizes: it needs the
	 * functions that were sampled. */
	shell("cd $T && objcopy --only-keep-debug full/same full/same.debug");
	r = record(stripped);
	frame = sample(&r, two + 1);
	sample(&r, symbol(full, "three"));
	sample(&r, symbol(full, "four"));
	name(&r, NULL);
	shell("rm $T/bare/mine");
	name(&r, debug);
	expect(&r, frame, "two", NAMED_BUILD);
	recorded_done(&r);
}

/* The program is gone: what the capture kept of its functions decides. */
static void a_program_that_is_gone(void **state)
{
	_cleanup_free_ char *full = build("gone", ""), *stripped = bare("gone");
	_cleanup_free_ char *same = build("goneagain", "-Wl,--build-id=0xabcdabcdabcdabcd");
	_cleanup_free_ char *other = build("goneother", "-O3 -DMORE");
	struct recorded r = record(stripped);
	uint32_t frames[] = { sample(&r, symbol(full, "two")), sample(&r, symbol(full, "three")),
			      sample(&r, symbol(full, "four") + 1) };
	uint64_t four = symbol(full, "four");

	name(&r, NULL);
	shell("rm $T/bare/gone");
	name(&r, other);
	expect_start(&r, frames[2], "gone", four);
	name(&r, same);
	expect(&r, frames[0], "two", NAMED_BUILD);
	expect(&r, frames[2], "four", NAMED_BUILD);
	assert_non_null(strstr(sentence(&r, KEY_SYMBOLS_BUILD_OF, "3 of 3 sampled functions"), "gone"));
	recorded_done(&r);

	/* Too few functions prove nothing. */
	shell("cd $T && strip -s -o bare/gone full/gone");
	r = record(stripped);
	frames[0] = sample(&r, four);
	name(&r, NULL);
	shell("rm $T/bare/gone");
	name(&r, same);
	expect_start(&r, frames[0], "gone", four);
	recorded_done(&r);
}

static void folders_and_roots(void **state)
{
	_cleanup_free_ char *full = build("placed", "-Wl,--build-id=0x0102030405060708"), *stripped = bare("placed");
	_cleanup_free_ char *store = in_folder("store"), *root = in_folder("root"),
			    *image = in_folder("image"), *theirs = in_folder("theirs");
	uint64_t two = symbol(full, "two");
	struct {
		const char *folder, *make;
		bool named;
	} cases[] = {
		{ store, "mkdir -p store/.build-id/01 && cp full/placed store/.build-id/01/02030405060708.debug", true },
		/* The link counts from the root of the image. */
		{ root, "mkdir -p root/usr/lib/debug/.build-id/01 root/files && cp full/placed root/files/x && ln -s /files/x "
			"root/usr/lib/debug/.build-id/01/02030405060708.debug", true },
		/* Found by a walk, past folders that lead to themselves, pipes and files that are no ELF files. */
		{ image, "mkdir -p image/a/b && ln -s .. image/a/b/up && ln -s loop image/loop && mkfifo image/pipe && "
			 "truncate -s 10G image/sparse && echo x > image/text && cp full/placed image/a/b/any", true },
		/* Another user's link does not lead out of the folder. */
		{ theirs, "mkdir theirs && ln -s $T/full/placed theirs/link && chown -h 12345 theirs theirs/link", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct recorded r = record(stripped);
		uint32_t frame = sample(&r, two + 1);

		if (i == 3 && geteuid()) {
			recorded_done(&r);
			continue;
		}
		shell("cd $T && %s", cases[i].make);
		name(&r, cases[i].folder);
		if (cases[i].named)
			expect(&r, frame, "two", NAMED_SYMBOL);
		else
			expect_start(&r, frame, "placed", two);
		recorded_done(&r);
	}
}

static int make(void **state)
{
	return programs_make(source) || system("mkdir $T/full $T/bare");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_have_their_starts),
		cmocka_unit_test(symbols_and_fdes_agree),
		cmocka_unit_test(exports_and_stubs_have_names),
		cmocka_unit_test(no_section_table),
		cmocka_unit_test(another_build_names_what_agrees),
		cmocka_unit_test(a_program_that_is_gone),
		cmocka_unit_test(folders_and_roots),
	};

	return cmocka_run_group_tests(tests, make, programs_remove);
}
