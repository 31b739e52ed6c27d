/* The part of this kernel's own BTF: every field of the wanted types is where it was, and as large. */
#include "test.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>

#include "base/buf.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "collect/kernel/smallbtf.h"

static const char *const wanted[] = { "task_struct", "mm_struct___flavor", "cfs_rq___before519", "request", "no_such_struct_here" };

static struct btf *names(void)
{
	struct btf *b = btf__new_empty();

	assert_non_null(b);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		assert_true(btf__add_struct(b, wanted[i], 4) > 0);
	assert_true(btf__add_enum(b, "pid_type", 4) > 0);
	return b;
}

/* The kernel's, or skips. */
static char *read_kernel(size_t *ret_n)
{
	char *all;

	if (fd_read_path("/sys/kernel/btf/vmlinux", 256 << 20, &all, ret_n) < 0)
		skip();
	return all;
}

/* The fields of a struct, those of its nameless parts included, are the same in both. Returns how many there are. */
static unsigned compare(const struct btf *a, uint32_t in_a, const struct btf *b, uint32_t in_b)
{
	const struct btf_type *x = btf__type_by_id(a, in_a), *y = btf__type_by_id(b, in_b);
	unsigned fields = 0;

	assert_int_equal(btf_kind(x), btf_kind(y));
	assert_int_equal(x->size, y->size);
	assert_int_equal(btf_vlen(x), btf_vlen(y));
	for (unsigned i = 0; i < btf_vlen(x); i++) {
		const struct btf_member *m = &btf_members(x)[i], *n = &btf_members(y)[i];
		const char *name = btf__name_by_offset(a, m->name_off);

		assert_string_equal(name, btf__name_by_offset(b, n->name_off));
		assert_int_equal(btf_member_bit_offset(x, i), btf_member_bit_offset(y, i));
		assert_int_equal(btf_member_bitfield_size(x, i), btf_member_bitfield_size(y, i));
		assert_true(btf__resolve_size(a, m->type) == btf__resolve_size(b, n->type));
		fields++;
		if (btf_is_composite(btf__type_by_id(a, m->type)))
			fields += compare(a, m->type, b, n->type);
		assert_int_equal(btf_kind(btf__type_by_id(a, m->type)), btf_kind(btf__type_by_id(b, n->type)));
	}
	return fields;
}

static void fields_are_where_they_were(void **state)
{
	static const char *const found[] = { "task_struct", "mm_struct", "cfs_rq", "request" };
	size_t n;
	_cleanup_free_ char *all = read_kernel(&n);
	_cleanup_(buf_done) struct buf small = { 0 };
	struct btf *local = names(), *a = btf__new(all, n), *b;
	unsigned fields = 0;
	int32_t id;

	assert_non_null(a);
	assert_int_equal(smallbtf_make(all, n, local, &small, NULL), 0);
	assert_in_range(small.n, 1, n / 10);
	b = btf__new(small.data, small.n);
	assert_non_null(b);
	for (size_t i = 0; i < ARRAY_LEN(found); i++) {
		id = btf__find_by_name_kind(a, found[i], BTF_KIND_STRUCT);
		if (id > 0)
			fields += compare(a, id, b, btf__find_by_name_kind(b, found[i], BTF_KIND_STRUCT));
		assert_int_equal(smallbtf_number(all, n, found[i]), MAX(id, 0));
	}
	assert_true(fields > 200);
	assert_true(btf__find_by_name_kind(b, "no_such_struct_here", BTF_KIND_STRUCT) < 0);
	assert_true(btf__find_by_name_kind(b, "schedule", BTF_KIND_FUNC) < 0);
	id = btf__find_by_name_kind(b, "pid_type", BTF_KIND_ENUM);
	assert_true(id > 0);
	assert_string_equal(btf__name_by_offset(b, btf_enum(btf__type_by_id(b, id))[0].name_off), "PIDTYPE_PID");
	btf__free(a);
	btf__free(b);
	btf__free(local);
}

/* What programs attach to has the number that libbpf finds for it. */
static void targets_are_found(void **state)
{
	struct smallbtf_target targets[] = {
		{ "btf_trace_sched_switch", BTF_KIND_TYPEDEF, 7 },
		{ "bpf_iter_task", BTF_KIND_FUNC, 7 },
		{ "btf_trace_sched_switch", BTF_KIND_FUNC, 7 },
		{ "no_such_function_here", BTF_KIND_FUNC, 7 },
	};
	size_t n;
	_cleanup_free_ char *all = read_kernel(&n);
	struct btf *b = btf__new(all, n);

	assert_non_null(b);
	smallbtf_find(all, n, targets, ARRAY_LEN(targets));
	for (size_t i = 0; i < ARRAY_LEN(targets); i++)
		assert_int_equal(targets[i].number, MAX(btf__find_by_name_kind(b, targets[i].name, targets[i].kind), 0));
	assert_true(targets[0].number > 0 && targets[1].number > 0);
	assert_int_equal(targets[3].number, 0);
	smallbtf_find(all, n - 1, targets, ARRAY_LEN(targets));
	assert_int_equal(targets[0].number, 0);
	btf__free(b);
}

/* Whatever is cut off or changed: an error, or a BTF that libbpf reads. */
static void damaged_ones_are_refused(void **state)
{
	size_t n;
	_cleanup_free_ char *all = read_kernel(&n);
	_cleanup_(buf_done) struct buf small = { 0 };
	struct btf *local = names(), *b;
	struct btf_header *head = (struct btf_header *)all;

	for (size_t cut = 0; cut < sizeof(*head) + 64; cut++)
		assert_int_equal(smallbtf_make(all, cut, local, &small, NULL), -ENOTSUP);
	assert_int_equal(smallbtf_make(all, n - 1, local, &small, NULL), -ENOTSUP);
	assert_int_equal(small.n, 0);
	assert_int_equal(smallbtf_number(all, n - 1, "task_struct"), 0);
	assert_int_equal(smallbtf_number(all, n, "no_such_struct_here"), 0);
	/* A kind of type that is not known yet. */
	((struct btf_type *)(all + head->hdr_len))->info = 31U << 24;
	assert_int_equal(smallbtf_make(all, n, local, &small, NULL), -ENOTSUP);
	/* Every type refers to types that are not there. */
	((struct btf_type *)(all + head->hdr_len))->info = (uint32_t)BTF_KIND_TYPEDEF << 24;
	((struct btf_type *)(all + head->hdr_len))->type = UINT32_MAX;
	if (!smallbtf_make(all, n, local, &small, NULL)) {
		b = btf__new(small.data, small.n);
		assert_non_null(b);
		btf__free(b);
	}
	btf__free(local);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_where_they_were),
		cmocka_unit_test(targets_are_found),
		cmocka_unit_test(damaged_ones_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
