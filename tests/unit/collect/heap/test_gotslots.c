/* The slots of this very process: where it calls malloc and free, and that what is written there is found
 * again. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/sanitized.h"
#include "collect/heap/gotslots.h"
#include "elf/probe/allocator.h"
#include "elf/worker/worker.h"

static struct worker *worker;

static const struct gotslots_slot *find(const struct gotslots *s, const char *name, uint64_t address)
{
	for (size_t i = 0; i < s->slots.n; i++) {
		const struct gotslots_function *f = &s->functions.v[s->slots.v[i].function];

		if (!strcmp(allocator_names[f->name].name, name) && (!address || f->address == address))
			return &s->slots.v[i];
	}
	return NULL;
}

static void own(void **state)
{
	struct gotslots s;

#ifdef __clang__
	if (SANITIZED)
		skip(); /* clang links the allocator of ASan into the program itself */
#endif
	free(malloc(1)); /* so that they are filled in */
	assert_int_equal(gotslots_find(getpid(), worker, &s, NULL), 0);
	assert_non_null(find(&s, "free", (uint64_t)(uintptr_t)free));
	assert_non_null(find(&s, "malloc", (uint64_t)(uintptr_t)malloc));
	assert_false(s.direct);
	assert_true(strlen(s.allocators) > 0);
	for (size_t i = 0; i < s.slots.n; i++) {
		assert_int_equal(*(uint64_t *)(uintptr_t)s.slots.v[i].address, s.slots.v[i].value);
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(s.slots.v[i].address, s.slots.v[k].address);
	}
	gotslots_done(&s);
}

/* Names of one function that are not filled in yet are found by each of them: glibc's aligned_alloc is
 * memalign. */
static void aliases(void **state)
{
	bool memalign = false, aligned = false;
	struct gotslots s;

	assert_int_equal(gotslots_find(getpid(), worker, &s, NULL), 0);
	for (size_t i = 0; i < s.functions.n; i++) {
		memalign |= !strcmp(allocator_names[s.functions.v[i].name].name, "memalign");
		aligned |= !strcmp(allocator_names[s.functions.v[i].name].name, "aligned_alloc");
	}
	assert_true(aligned);
	assert_true(memalign);
	gotslots_done(&s);
}

static void nobody(void **state)
{
	struct err err = { 0 };
	struct gotslots s;

	assert_true(gotslots_find(0x3fffffff, worker, &s, &err) < 0);
	assert_true(strlen(err.text) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own),
		cmocka_unit_test(aliases),
		cmocka_unit_test(nobody),
	};
	int r;

	worker = worker_new();
	r = cmocka_run_group_tests(tests, NULL, NULL);
	worker_free(worker);
	return r;
}
