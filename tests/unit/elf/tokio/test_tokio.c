/* test_tokio.c - task types of a program that is made here (tokiofile.h), in each layout, and of programs that are not what they
 * seem. */
#include "test.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "elf/file.h"
#include "elf/symbols.h"
#include "elf/tokio/tokio.h"
#include "elf/tokio/tokiopack.h"
#include "elf/tokio/typetext.h"
#include "elf/worker/worker.h"
#include "tokiofile.h"

#define PATH "/root/.cargo/registry/src/index/tokio-1.43.0/src/runtime/task/core.rs"

static struct err said;

static int find(struct tokio_program *ret)
{
	struct symbols_files files = { .scratch_fd = -1, .no_dwarf = true };
	int r;

	assert_int_equal(elf_open_memory(tokiofile, sizeof(tokiofile), &files.main, NULL), 0);
	r = tokio_find(&files, ret, &said);
	elf_free(files.main);
	return r;
}

static int find_in(struct tokiofile_options o, struct tokio_program *ret)
{
	tokiofile_make(&o);
	return find(ret);
}

static void all_layouts_are_read(void **state)
{
	static const char *const names[] = { "a::serve", "b::Node", "a::digest" };

	for (int layout = TOKIOFILE_RELA; layout <= TOKIOFILE_FIXED; layout++)
		for (int stripped = 0; stripped < 2; stripped++) {
			struct tokiofile_options o = { .path = PATH, .layout = layout, .no_names = stripped };
			struct tokio_program p;

			assert_int_equal(find_in(o, &p), 0);
			assert_string_equal(p.version, "1.43.0");
			assert_int_equal(p.count, TOKIOFILE_TYPES);
			for (int t = 0; t < TOKIOFILE_TYPES; t++) {
				const struct tokio_vtable *v = &p.vtables[t];
				uint64_t spawn = tokiofile_function(&o, t * F_OF_TYPE + F_SPAWN);
				char unnamed[64];

				assert_int_equal(v->address, tokiofile_table(&o, t));
				assert_int_equal(v->poll, tokiofile_function(&o, tokiofile_slot(t, 0)));
				assert_int_equal(v->schedule, tokiofile_function(&o, tokiofile_slot(t, 1)));
				assert_int_equal(v->dealloc, tokiofile_function(&o, tokiofile_slot(t, 2)));
				assert_int_equal(v->id_offset, t == 2 ? 0x20 : 0x28);
				assert_int_equal(v->kind, t == 2 ? TOKIO_BLOCKING : TOKIO_TASK);
				assert_int_equal(v->named, !stripped);
				snprintf(unnamed, sizeof(unnamed), "task type at 0x%llx", (unsigned long long)v->address);
				assert_string_equal(v->name, stripped ? unnamed : names[t]);
				/* The call after the instruction that takes the table's address. */
				assert_int_equal(v->spawn_count, 1);
				assert_true(v->spawns[0].cheap);
				assert_int_equal(v->spawns[0].address, spawn + (layout == TOKIOFILE_FIXED ? 9 : 12));
				assert_int_equal(v->spawns[0].offset, v->spawns[0].address - tokiofile_base(&o));
			}
			tokio_done(&p);
		}
}

/* Without unwind tables and symbols nothing says where functions are. Places would have to be exact: there are none. */
static void functions_need_not_be_known(void **state)
{
	struct tokio_program p;

	assert_int_equal(find_in((struct tokiofile_options){ .path = PATH, .no_functions = true }, &p), 0);
	assert_int_equal(p.count, TOKIOFILE_TYPES);
	for (int t = 0; t < TOKIOFILE_TYPES; t++)
		assert_int_equal(p.vtables[t].spawn_count, 0);
	tokio_done(&p);
	assert_int_equal(find_in((struct tokiofile_options){ .path = PATH, .no_functions = true, .other_abort = true }, &p), -ENOTSUP);
	assert_int_equal(find_in((struct tokiofile_options){ .path = PATH, .no_names = true, .by_slot = true }, &p), 0);
	assert_int_equal(p.count, TOKIOFILE_TYPES);
	tokio_done(&p);
}

/* Slots would be written to: whatever is not as it should be is refused, and the reason is said. */
static void others_are_refused(void **state)
{
	static const struct {
		struct tokiofile_options options;
		int error;
		const char *reason;
	} cases[] = {
		{ { .path = "/src/async-std-1.12.0/src/lib.rs" }, -ENOENT, "no tokio" },
		{ { .path = "/src/tokio-util-0.7.1/src/lib.rs" }, -ENOENT, "no tokio" },
		{ { .path = "/src/tokio-1.19.2/src/lib.rs" }, -ENOTSUP, "tokio 1.19.2" },
		{ { .path = "/src/tokio-0.2.25/src/lib.rs" }, -ENOTSUP, "tokio 0.2.25" },
		{ { .path = PATH, .scheduler = 0x21 }, -ENOTSUP, "no table" },
		{ { .path = PATH, .scheduler = 0x18 }, -ENOTSUP, "no table" },
		/* A newer tokio may have a function more: the last seven of eight look like a table. */
		{ { .path = "/src/tokio-1.77.0/src/lib.rs", .extra_functions = 1 }, -ENOTSUP, "do something else" },
		{ { .path = "/src/tokio-1.77.0/src/lib.rs", .extra_functions = 1, .no_names = true }, -ENOTSUP, "do something else" },
		{ { .path = PATH, .no_names = true, .other_abort = true }, -ENOTSUP, "do something else" },
		{ { .path = "/src/tokio-1.77.0/src/lib.rs", .no_names = true, .other_scheduler = true }, -ENOTSUP, "neither names nor code" },
		{ { .path = "tokio-rt-worker", .no_names = true, .other_scheduler = true }, -ENOTSUP, "of an unknown version" },
		/* These hold all the same. */
		{ { .path = "/src/tokio-1.77.0/src/lib.rs", .no_names = true }, 0, "" },
		{ { .path = "/src/tokio-1.77.0/src/lib.rs", .other_scheduler = true, .other_abort = true }, 0, "" },
		{ { .path = "tokio-rt-worker", .no_names = true }, 0, "" },
		{ { .path = PATH, .scheduler = 0x80 }, 0, "" }, /* a future with an alignment of 128 */
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct tokio_program p;

		said = (struct err){ 0 };
		assert_int_equal(find_in(cases[i].options, &p), cases[i].error);
		assert_non_null(strstr(said.text, cases[i].reason));
		if (!cases[i].error)
			tokio_done(&p);
	}
}

static void damage_is_survived(void **state)
{
	struct tokiofile_options o = { .path = PATH };
	struct tokio_program p;

	/* A symbol that contradicts. */
	tokiofile_make(&o);
	memcpy(strstr((char *)tokiofile + TOKIOFILE_STRINGS + 1, "raw::poll") + 5, "shut", 4);
	assert_int_equal(find(&p), 0);
	assert_int_equal(p.count, TOKIOFILE_TYPES - 1);
	assert_int_equal(p.left_out, 1);
	tokio_done(&p);
	/* A slot in the middle of a function, and relocations that go past the file. */
	tokiofile_make(&o);
	((Elf64_Rela *)(tokiofile + TOKIOFILE_RELOCATIONS))[3].r_addend += 4;
	((Elf64_Dyn *)(tokiofile + TOKIOFILE_DYNAMIC))[1].d_un.d_val = UINT64_MAX;
	assert_int_equal(find(&p), 0);
	assert_int_equal(p.count, TOKIOFILE_TYPES - 1);
	assert_int_equal(p.vtables[0].address, tokiofile_table(&o, 1));
	tokio_done(&p);
}

/* Two futures never share a name, and the two tables of one do. */
static void names_tell_futures_apart(void **state)
{
	struct tokiofile_options o = { .path = PATH };
	struct tokio_program p;
	Elf64_Sym *symbols = (void *)(tokiofile + TOKIOFILE_SYMBOLS);
	char *strings = (char *)tokiofile + TOKIOFILE_STRINGS;
	static const struct {
		const char *future[2], *name[2];
	} cases[] = {
		{ { "a::b::{{closure}}", "a::b::{{closure}}::{{closure}}" }, { "a::b::{{closure}}", "a::b::{{closure}}::{{closure}}" } },
		{ { "a::S<x::Ws>::f::{{closure}}", "a::S<x::Ipc>::f::{{closure}}" }, { "a::S<Ws>::f", "a::S<Ipc>::f" } },
		{ { "b::Node<N1>", "<b::Node<N1> as core::future::future::Future>::poll::{{closure}}" }, { "b::Node", "b::Node::poll" } },
		{ { "core::pin::Pin<alloc::boxed::Box<dyn core::future::future::Future+Output = ()+core::marker::Send>>", "b::Node<N1>" },
		  { "boxed future of a::main_0", "b::Node" } },
		/* The same future in a box. */
		{ { "a::b::{{closure}}", "core::pin::Pin<alloc::boxed::Box<a::b::{{closure}}>>" }, { "a::b", "a::b" } },
		{ { "tokio::fs::f<u8>::{{closure}}", "tokio::fs::f<u16>::{{closure}}::{{closure}}" }, { "tokio::fs::f", "tokio::fs::f" } },
		/* The older mangling does not number closures. */
		{ { "a::b::{{closure}}", "a::b::{{closure}}" }, { "a::b", "a::b #2" } },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		tokiofile_make(&o);
		for (int t = 0; t < 2; t++) {
			uint32_t at = 0xc00 + t * 0x100;

			snprintf(strings + at, 0x100, "tokio::runtime::task::core::Stage<%s>", cases[i].future[t]);
			symbols[1 + t * F_OF_TYPE + F_GLUE].st_name = at;
			/* Their code says nothing. */
			symbols[1 + t * F_OF_TYPE + F_BODY].st_name = symbols[1 + F_BIND].st_name;
		}
		((Elf64_Shdr *)(tokiofile + TOKIOFILE_SECTIONS))[2].sh_size = 0x1000;
		assert_int_equal(find(&p), 0);
		assert_int_equal(p.count, TOKIOFILE_TYPES);
		for (int t = 0; t < 2; t++)
			assert_string_equal(p.vtables[t].name, cases[i].name[t]);
		tokio_done(&p);
	}
}

static void types_are_taken_out_of_symbols(void **state)
{
	static const struct {
		const char *symbol, *future, *scheduler;
	} cases[] = {
		{ "core::ptr::drop_in_place<tokio::runtime::task::core::Stage<a::f::{{closure}}>>", "a::f::{{closure}}", "" },
		{ "core::ptr::drop_in_place::<tokio::runtime::task::core::Cell<a::F<u8, (u8, fn(u8) -> u8)>, S<T>>>", "a::F<u8, (u8, fn(u8) -> u8)>", "S<T>" },
		{ "tokio::runtime::task::raw::poll::<a::f::{closure#0}, alloc::sync::Arc<H>>", "a::f::{closure#0}", "alloc::sync::Arc<H>" },
		{ "tokio::runtime::task::raw::schedule::<alloc::sync::Arc<H>>", NULL, NULL },
		{ "tokio::runtime::task::harness::Harness<T,S>::complete", NULL, NULL },
		{ "tokio::runtime::task::core::Cell<", NULL, NULL },
		{ "tokio::runtime::task::core::Cell<a::b<c", "a::b<c", "" },
		{ "a::b", NULL, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct typetext future, scheduler;

		assert_int_equal(typetext_task(cases[i].symbol, &future, &scheduler), cases[i].future != NULL);
		if (!cases[i].future)
			continue;
		assert_int_equal(future.n, strlen(cases[i].future));
		assert_memory_equal(future.s, cases[i].future, future.n);
		assert_int_equal(scheduler.n, strlen(cases[i].scheduler));
		if (scheduler.n)
			assert_memory_equal(scheduler.s, cases[i].scheduler, scheduler.n);
	}
}

static void types_are_shortened(void **state)
{
	static const struct {
		const char *type, *bare, *short_form;
	} cases[] = {
		{ "a::b::C", "a::b::C", "a::b::C" },
		{ "a::S<x::y::Ws<u8>>::f::{{closure}}", "a::S::f::{{closure}}", "a::S<Ws>::f::{{closure}}" },
		{ "a::f::<x::Y>::{closure#1}", "a::f::{closure#1}", "a::f<Y>::{closure#1}" },
		{ "<a::B<C> as d::E>::f::{{closure}}", "a::B::f::{{closure}}", "a::B<C>::f::{{closure}}" },
		{ "m::<impl a::B<C>>::f", "a::B::f", "a::B<C>::f" },
		{ "m::<impl a::Trait for str>::f", "a::Trait::f", "a::Trait::f" },
		{ "core::pin::Pin<alloc::boxed::Box<a::f::{{closure}}>>", "a::f::{{closure}}", "a::f::{{closure}}" },
		{ "tracing::instrument::Instrumented<futures_util::future::Map<a::F, g>>", "a::F", "a::F" },
		{ "tokio::task::task_local::TaskLocalFuture<a::Key, b::F>", "b::F", "b::F" },
		{ "tokio::f<a::G>::{{closure}}", "tokio::f::{{closure}}", "tokio::f<G>::{{closure}}" },
		{ "a::f<g::{{closure}}, g::{{closure}}::{{closure}}, u8>", "a::f", "a::f<g, u8>" },
		{ "a::b<<<", "a::b", "a::b<_>" },
		{ "", "", "" },
		{ "<", "", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct typetext t = typetext_peel((struct typetext){ cases[i].type, strlen(cases[i].type) });
		_cleanup_free_ char *bare = typetext_short(t, false), *with = typetext_short(t, true);

		assert_string_equal(bare, cases[i].bare);
		assert_string_equal(with, cases[i].short_form);
	}
}

static void versions_are_numbers(void **state)
{
	assert_int_equal(tokio_version_number("1.43.2"), 1043002);
	assert_int_equal(tokio_version_number("1.5.0"), 1005000);
	for (const char *const *bad = (const char *const[]){ "", "1", "1.2", "1.2.", "1.2.3.4", "1.2.3-rc", "1.2222.3", ".1.2", NULL }; *bad; bad++)
		assert_int_equal(tokio_version_number(*bad), 0);
}

static void answers_are_checked(void **state)
{
	struct tokiofile_options o = { .path = PATH };
	struct tokio_program p, again;
	struct buf b = { 0 };

	assert_int_equal(find_in(o, &p), 0);
	tokio_pack(&p, &b);
	assert_true(tokio_unpack(b.data, b.n, &again));
	assert_int_equal(again.count, p.count);
	for (size_t i = 0; i < p.count; i++) {
		assert_string_equal(again.vtables[i].name, p.vtables[i].name);
		assert_int_equal(again.vtables[i].spawn_count, 1);
		assert_int_equal(again.vtables[i].spawns[0].address, p.vtables[i].spawns[0].address);
		assert_int_equal(again.vtables[i].spawns[0].offset, p.vtables[i].spawns[0].offset);
		assert_int_equal(again.vtables[i].spawns[0].cheap, p.vtables[i].spawns[0].cheap);
	}
	tokio_done(&again);
	/* Cut anywhere, it is no answer. With any one byte changed, it is one or none. */
	for (size_t n = 0; n < b.n; n++)
		assert_false(tokio_unpack(b.data, n, &again));
	for (size_t i = 0; i < b.n; i++) {
		b.data[i] ^= 0xff;
		if (tokio_unpack(b.data, b.n, &again)) {
			for (size_t k = 0; k < again.count; k++)
				assert_true(strlen(again.vtables[k].name) < TOKIO_NAME);
			tokio_done(&again);
		}
		b.data[i] ^= 0xff;
	}
	buf_done(&b);
	tokio_done(&p);
}

static void child_answers(void **state)
{
	struct worker *w = worker_new();
	int fd = memfd_create("program", MFD_CLOEXEC);
	struct tokio_program p;

	tokiofile_make(&(struct tokiofile_options){ .path = PATH });
	assert_int_equal(pwrite(fd, tokiofile, sizeof(tokiofile), 0), sizeof(tokiofile));
	assert_int_equal(worker_tokio(w, fd, -1, &p, &said), 0);
	assert_int_equal(p.count, TOKIOFILE_TYPES);
	assert_string_equal(p.vtables[0].name, "a::serve");
	tokio_done(&p);
	tokiofile_make(&(struct tokiofile_options){ .path = "/src/tokio-1.19.2/src/lib.rs" });
	assert_int_equal(pwrite(fd, tokiofile, sizeof(tokiofile), 0), sizeof(tokiofile));
	assert_int_equal(worker_tokio(w, fd, -1, &p, &said), -ENOTSUP);
	assert_non_null(strstr(said.text, "tokio 1.19.2"));
	close(fd);
	worker_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_layouts_are_read),
		cmocka_unit_test(functions_need_not_be_known),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(damage_is_survived),
		cmocka_unit_test(names_tell_futures_apart),
		cmocka_unit_test(types_are_taken_out_of_symbols),
		cmocka_unit_test(types_are_shortened),
		cmocka_unit_test(versions_are_numbers),
		cmocka_unit_test(answers_are_checked),
		cmocka_unit_test(child_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
