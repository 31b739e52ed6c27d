#include "test.h"

#include "elf/demangle.h"

static void check(const char *linkage, const char *plain, const char *kept)
{
	char *a = demangle(linkage, 0), *b = demangle(linkage, DEMANGLE_KEEP_HASH);

	assert_string_equal(a, plain);
	assert_string_equal(b, kept);
	free(a);
	free(b);
}

static void rust_loses_its_hashes(void **state)
{
	check("_ZN4core3ptr42drop_in_place$LT$std..io..error..Error$GT$17h7484876c1035bb5aE.llvm.182271",
	      "core::ptr::drop_in_place<std::io::error::Error>",
	      "core::ptr::drop_in_place<std::io::error::Error>::h7484876c1035bb5a");
	check("_ZN66_$LT$anvil_core..eth..EthRequest$u20$as$u20$core..clone..Clone$GT$5clone17h9b43167c6090a7ffE",
	      "<anvil_core::eth::EthRequest as core::clone::Clone>::clone",
	      "<anvil_core::eth::EthRequest as core::clone::Clone>::clone::h9b43167c6090a7ff");
	check("_RNvNtCslNYArtu3iFV_5alloc5alloc7dealloc", "alloc::alloc::dealloc",
	      "alloc[fdfd2bd8633a6659]::alloc::dealloc");
	check("_RNvXs_Cs1234_7mycrateAhj20_NtB4_5Trait3foo", "<[u8; 32] as mycrate::Trait>::foo",
	      "<[u8; 32: usize] as mycrate[3c1c0]::Trait>::foo");
}

static void cplusplus_has_parameters(void **state)
{
	check("_ZN3foo3barEv", "foo::bar()", "foo::bar()");
	check("_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector<int, std::allocator<int> >::push_back(int&&)",
	      "std::vector<int, std::allocator<int> >::push_back(int&&)");
	check("_ZN3foo3barEv.isra.0.part.1", "foo::bar()", "foo::bar() [clone .isra.0] [clone .part.1]");
}

static void suffixes_go(void **state)
{
	check("work.constprop.0.isra.2", "work", "work.constprop.0.isra.2");
	check("work.cold", "work", "work.cold");
	check("work.llvm.1234567", "work", "work.llvm.1234567");
	check("memcpy@@GLIBC_2.14", "memcpy", "memcpy@@GLIBC_2.14");
	check("memcpy@GLIBC_2.2.5", "memcpy", "memcpy@GLIBC_2.2.5");
	check("memcpy@plt", "memcpy@plt", "memcpy@plt");
	check("_ZN3foo3barEv@plt", "foo::bar()@plt", "foo::bar()@plt");
}

static void other_names_stay(void **state)
{
	check("", "", "");
	check("main", "main", "main");
	check(".text", ".text", ".text");
	check("module.cold_start", "module.cold_start", "module.cold_start");
	check("_Znonsense", "_Znonsense", "_Znonsense");
	check("_R", "_R", "_R");
}

/* C++ names of more than 1 KiB are common; libiberty's own limit would leave them as they are. */
static void long_names_are_read(void **state)
{
	char name[3000] = "_Z1f", *text;

	for (int i = 0; i < 200; i++)
		strcat(name, "10abcdefghij");
	text = demangle(name, 0);
	assert_true(text[0] == 'f');
	free(text);
}

/* Each parameter holds the one before it twice: 60 of them would make 2^60 bytes. */
static void names_that_explode_stay(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[4096] = "_Z1f1AIiiE", ref[8], *text;

	for (int i = 0; i < 60; i++) {
		if (i < 36)
			snprintf(ref, sizeof(ref), "S%c_", digits[i]);
		else
			snprintf(ref, sizeof(ref), "S1%c_", digits[i - 36]);
		sprintf(name + strlen(name), "S_I%s%sE", ref, ref);
	}
	text = demangle(name, 0);
	assert_string_equal(text, name);
	free(text);
}

static void endless_names_are_cut(void **state)
{
	size_t n = 1 << 20;
	char *name = malloc(n + 1), *text;

	memset(name, 'a', n);
	name[n] = 0;
	text = demangle(name, 0);
	assert_int_equal(strlen(text), 64 << 10);
	free(text);
	free(name);
}

/* Each would have libiberty count to billions without a word. */
static void lifetimes_are_bounded(void **state)
{
	check("_RXXs_C7mycrtbAFFFFFFFGFEFFFF_B6o", "_RXXs_C7mycrtbAFFFFFFFGFEFFFF_B6o",
	      "_RXXs_C7mycrtbAFFFFFFFGFEFFFF_B6o");
	check("_RMC0FGZZZZZZZZ_KCEu", "_RMC0FGZZZZZZZZ_KCEu", "_RMC0FGZZZZZZZZ_KCEu");
	/* An identifier that only looks like it. */
	check("_RNvC7mycrate12Generic_name", "mycrate::Generic_name", "mycrate[0]::Generic_name");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rust_loses_its_hashes), cmocka_unit_test(cplusplus_has_parameters),
		cmocka_unit_test(suffixes_go), cmocka_unit_test(lifetimes_are_bounded), cmocka_unit_test(other_names_stay),
		cmocka_unit_test(long_names_are_read), cmocka_unit_test(names_that_explode_stay),
		cmocka_unit_test(endless_names_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
