/* test_crate.c - whose code a function is. */
#include "test.h"

#include "analyze/tree/crate.h"
#include "profile/profile.h"

#define NODE "/opt/reth/bin/op-reth"

/* A Rust program called op-reth, with jemalloc in it. */
static struct profile *make(void)
{
	struct profile *p = profile_new();
	uint32_t module;

	p->target = profile_string(p, "op-reth (4242)");
	profile_add_process(p, &(struct profile_process){ .pid = 4242, .name = profile_string(p, "op-reth"),
							  .exe = profile_string(p, NODE) });
	module = profile_add_module(p, &(struct profile_module){ .path = profile_string(p, NODE) });
	profile_add_module(p, &(struct profile_module){ .path = profile_string(p, "[kernel]"),
							.kind = MODULE_KERNEL });
	profile_function(p, &(struct profile_function){ .name = profile_string(p, "core::slice::sort"),
							.module = module });
	profile_function(p, &(struct profile_function){ .name = profile_string(p, "_rjem_malloc"),
							.module = module });
	profile_function(p, &(struct profile_function){ .name = profile_string(p, "zebra::main"),
							.module = module });
	return p;
}

static void check(struct crates *c, const char *name, const char *module, enum ident_kind kind,
		  const char *crate, enum code_kind code)
{
	struct ident id = { .name = name, .module = module, .kind = kind };

	if (strcmp(crate_name(c, &id), crate) || crate_kind(c, &id) != code)
		fail_msg("%s is of %s (%s), not of %s (%s)", name, crate_name(c, &id),
			 code_kind_key(crate_kind(c, &id)), crate, code_kind_key(code));
}

static void test_rust(void **state)
{
	static const struct {
		const char *name, *crate;
		enum code_kind kind;
	} cases[] = {
		{ "reth_db::tables::get", "reth_db", CODE_OWN },
		{ "reth::main", "reth", CODE_OWN },
		{ "op_reth::args::parse", "op_reth", CODE_OWN },
		{ "rethink::x", "rethink", CODE_DEPENDENCY },
		{ "zebra::stripes::{{closure}}", "zebra", CODE_OWN },
		{ "tokio::runtime::task::raw::poll", "tokio", CODE_DEPENDENCY },
		{ "core::ptr::drop_in_place<reth_db::Tx>", "core", CODE_STD },
		{ "<reth_trie::Trie as core::hash::Hash>::hash", "reth_trie", CODE_OWN },
		{ "<reth_trie::Trie<T,(A,B)> as alloy::Hash>::hash", "reth_trie", CODE_OWN },
		{ "<core::fmt::Arguments as tracing_core::field::Value>::record", "tracing_core",
		  CODE_DEPENDENCY },
		{ "<alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once", "alloc",
		  CODE_STD },
		{ "<F as axum::handler::Handler<(M,T1,T2),S>>::call::{{closure}}", "axum", CODE_DEPENDENCY },
		{ "<&mut dyn reth_evm::Db as core::fmt::Debug>::fmt", "reth_evm", CODE_OWN },
		{ "<&'a T as alloy_rlp::Decodable>::decode", "alloy_rlp", CODE_DEPENDENCY },
		{ "<fn(A) -> B as warp::Filter>::call", "warp", CODE_DEPENDENCY },
		{ "<[T]>::sort_by::<reth_db::X>", "core", CODE_STD },
		{ "<reth_evm::Vm>::run", "reth_evm", CODE_OWN },
		{ "ruint::support::serde::<impl serde_core::de::Deserialize for ruint::Uint<_,_>>::deserialize",
		  "ruint", CODE_DEPENDENCY },
		{ "reth_db[9c5f2a01]::tables::get", "reth_db", CODE_OWN },
		{ "alloc::alloc::exchange_malloc", "alloc", CODE_ALLOCATOR },
		{ "<alloc::alloc::Global as core::alloc::Allocator>::allocate", "alloc", CODE_ALLOCATOR },
		{ "__rustc::__rust_alloc", "__rustc", CODE_ALLOCATOR },
	};
	struct profile *p = make();
	struct crates c;

	crates_init(&c, p, NULL);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		check(&c, cases[i].name, NODE, IDENT_USER, cases[i].crate, cases[i].kind);
		check(&c, cases[i].name, "", IDENT_INLINED, cases[i].crate, cases[i].kind);
	}
	crates_done(&c);
	profile_free(p);
	(void)state;
}

static void test_c(void **state)
{
	struct profile *p = make();
	struct crates c;

	crates_init(&c, p, NULL);
	check(&c, "mdbx_txn_commit", NODE, IDENT_USER, "mdbx", CODE_DEPENDENCY);
	check(&c, "rocksdb::DBImpl::Get(rocksdb::ReadOptions const&)", NODE, IDENT_USER, "rocksdb",
	      CODE_DEPENDENCY);
	check(&c, "_rjem_malloc", NODE, IDENT_USER, "jemalloc", CODE_ALLOCATOR);
	check(&c, "arena_slab_alloc", NODE, IDENT_USER, "jemalloc", CODE_ALLOCATOR);
	check(&c, "main", NODE, IDENT_USER, "op-reth", CODE_STD);
	check(&c, "some_c_function", NODE, IDENT_USER, "op-reth", CODE_DEPENDENCY);
	check(&c, "memcpy", NODE, IDENT_USER, "op-reth", CODE_STD);
	check(&c, "__GI___libc_malloc", "/lib/libc.so.6", IDENT_USER, "libc.so.6", CODE_ALLOCATOR);
	check(&c, "__libc_start_main_impl", "/lib/libc.so.6", IDENT_USER, "libc.so.6", CODE_STD);
	check(&c, "std::vector<int>::push_back(int&&)", "/lib/libother.so", IDENT_USER, "libother.so",
	      CODE_STD);
	check(&c, "std::ios::init()", "/lib/libstdc++.so.6", IDENT_USER, "libstdc++.so.6", CODE_STD);
	check(&c, "vfs_read", "[kernel]", IDENT_KERNEL, "[kernel]", CODE_KERNEL);
	check(&c, "[kernel]+0x12", "[kernel]", IDENT_UNNAMED, "[kernel]", CODE_KERNEL);
	check(&c, "libx.so+0x12", "/lib/libx.so", IDENT_UNNAMED, "libx.so", CODE_OTHER);
	check(&c, "[truncated: no table]", "", IDENT_TRUNCATED, "", CODE_OTHER);
	check(&c, "all", "", IDENT_ROOT, "", CODE_OTHER);
	check(&c, "name", "", IDENT_USER, "[unknown]", CODE_DEPENDENCY);
	check(&c, "", "", IDENT_USER, "[unknown]", CODE_DEPENDENCY);
	check(&c, "<", NODE, IDENT_USER, "op-reth", CODE_DEPENDENCY);
	check(&c, "<::", NODE, IDENT_USER, "core", CODE_STD);
	check(&c, "::", NODE, IDENT_USER, "op-reth", CODE_DEPENDENCY);
	check(&c, "<<<& as ", NODE, IDENT_USER, "op-reth", CODE_DEPENDENCY);
	crates_done(&c);
	profile_free(p);
	(void)state;
}

/* A program in C: its file's functions are its own. */
static void test_c_program(void **state)
{
	struct profile *p = profile_new();
	struct crates c;

	profile_add_process(p, &(struct profile_process){ .exe = profile_string(p, "/bin/demo-node") });
	crates_init(&c, p, NULL);
	check(&c, "main", "/bin/demo-node", IDENT_USER, "demo-node", CODE_OWN);
	check(&c, "_start", "/bin/demo-node", IDENT_USER, "demo-node", CODE_STD);
	check(&c, "f(int)", "/bin/demo-node", IDENT_USER, "demo-node", CODE_OWN);
	check(&c, "f", "/lib/libtrie.so", IDENT_USER, "libtrie.so", CODE_DEPENDENCY);
	crates_done(&c);
	profile_free(p);
	(void)state;
}

/* Instances of the standard library's templates are in the program's file, and no code of its own. */
static void test_cpp_program(void **state)
{
	static const struct {
		const char *name;
		enum code_kind kind;
	} cases[] = {
		{ "std::vector<app::Item, std::allocator<app::Item> >::push_back(app::Item const&)", CODE_STD },
		{ "void std::__introsort_loop<int*, long>(int*, int*, long)", CODE_STD },
		{ "std::pair<int, bool> std::_Rb_tree<int, int>::_M_insert(int&&)", CODE_STD },
		{ "bool std::operator==<char>(std::string const&, char const*)", CODE_STD },
		{ "__gnu_cxx::new_allocator<int>::allocate(unsigned long)", CODE_STD },
		{ "std::vector<int> app::load(std::string const&)", CODE_OWN },
		{ "app::Set<std::string>::operator bool() const", CODE_OWN },
		{ "(anonymous namespace)::work(std::vector<int>&)", CODE_OWN },
		{ "app::each<std::function<void (int)> >(std::function<void (int)>)", CODE_OWN },
		{ "standard::run(int)", CODE_OWN },
	};
	struct profile *p = profile_new();
	struct crates c;

	profile_add_process(p, &(struct profile_process){ .exe = profile_string(p, "/bin/demo-node") });
	crates_init(&c, p, NULL);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check(&c, cases[i].name, "/bin/demo-node", IDENT_USER, "demo-node", cases[i].kind);
	crates_done(&c);
	profile_free(p);
	(void)state;
}

/* Go links its library into the program. */
static void test_go_program(void **state)
{
	static const struct {
		const char *name;
		enum code_kind kind;
	} cases[] = {
		{ "runtime.scanobject", CODE_STD },
		{ "crypto/internal/fips140/sha256.block", CODE_STD },
		{ "sort.insertionSort", CODE_STD },
		{ "net/http.(*conn).serve", CODE_STD },
		{ "slices.SortFunc[go.shape.[]github.com/a/b.T]", CODE_STD },
		{ "vendor/golang.org/x/crypto/chacha20poly1305.seal", CODE_STD },
		{ "type:.eq.main.Key", CODE_STD },
		{ "memeqbody", CODE_STD },
		{ "main.main.func1", CODE_OWN },
		{ "main.Sort[go.shape.int]", CODE_OWN },
		{ "go.uber.org/zap.(*Logger).Info", CODE_OWN },
		{ "github.com/ethereum/go-ethereum/core/vm.(*EVM).Call", CODE_OWN },
		{ "sorting.Fast", CODE_OWN },
		{ "runtime", CODE_OWN },
	};
	struct profile *p = profile_new();
	uint32_t module = profile_add_module(p, &(struct profile_module){ .path = profile_string(p, "/bin/geth") });
	struct crates c;

	profile_add_process(p, &(struct profile_process){ .exe = profile_string(p, "/bin/geth") });
	profile_function(p, &(struct profile_function){ .name = profile_string(p, "runtime.goexit"), .module = module });
	crates_init(&c, p, NULL);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check(&c, cases[i].name, "/bin/geth", IDENT_USER, "geth", cases[i].kind);
	crates_done(&c);
	profile_free(p);
	(void)state;
}

static void test_own(void **state)
{
	static const char *const own[] = { "alloy-*", "libtrie*", "revm", NULL };
	struct profile *p = make();
	struct crates c;

	crates_init(&c, p, own);
	check(&c, "alloy_trie::Hash::update", NODE, IDENT_USER, "alloy_trie", CODE_OWN);
	check(&c, "revm::run", NODE, IDENT_USER, "revm", CODE_OWN);
	check(&c, "revm_interpreter::run", NODE, IDENT_USER, "revm_interpreter", CODE_DEPENDENCY);
	check(&c, "trie_fold", "/lib/libtrie.so", IDENT_USER, "libtrie.so", CODE_OWN);
	check(&c, "reth_db::get", NODE, IDENT_USER, "reth_db", CODE_DEPENDENCY);
	check(&c, "core::mem::swap", NODE, IDENT_USER, "core", CODE_STD);
	check(&c, "malloc", "/lib/libtrie.so", IDENT_USER, "libtrie.so", CODE_ALLOCATOR);
	crates_done(&c);
	profile_free(p);
	(void)state;
}

/* A pattern of crates that fits the program's file as well: the C main above all stacks is not meant. */
static void test_own_pattern(void **state)
{
	static const char *const pattern[] = { "op*", NULL }, *const full[] = { "op-reth", NULL };
	struct profile *p = make();
	struct crates c;

	crates_init(&c, p, pattern);
	check(&c, "op_reth_node::launch", NODE, IDENT_USER, "op_reth_node", CODE_OWN);
	check(&c, "main", NODE, IDENT_USER, "op-reth", CODE_DEPENDENCY);
	check(&c, "some_c_function", NODE, IDENT_USER, "op-reth", CODE_DEPENDENCY);
	crates_done(&c);
	crates_init(&c, p, full);
	check(&c, "some_c_function", NODE, IDENT_USER, "op-reth", CODE_OWN);
	crates_done(&c);
	profile_free(p);
	(void)state;
}

/* A program in C whose name has a dash, and is longer than the kernel keeps: what is in its file is its own. */
static void test_long_name(void **state)
{
	struct profile *p = profile_new();
	struct crates c;

	profile_add_process(p, &(struct profile_process){ .pid = 1, .name = profile_string(p, "state-replayer-"),
							  .exe = profile_string(p, "/opt/state-replayer-tool") });
	crates_init(&c, p, NULL);
	check(&c, "replay", "/opt/state-replayer-tool", IDENT_USER, "state-replayer-tool", CODE_OWN);
	check(&c, "replay", "bin/state-replayer-tool", IDENT_USER, "state-replayer-tool", CODE_OWN);
	check(&c, "other", "/usr/lib/libother-tool.so", IDENT_USER, "libother-tool.so", CODE_DEPENDENCY);
	crates_done(&c);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rust),
		cmocka_unit_test(test_c),
		cmocka_unit_test(test_c_program),
		cmocka_unit_test(test_cpp_program),
		cmocka_unit_test(test_go_program),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_own_pattern),
		cmocka_unit_test(test_long_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
