#include "collect/kernel/smallbtf.h"

#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/map.h"
#include "base/vec.h"

enum { LARGEST = 256 << 20 };
static const char kernel_btf[] = "/sys/kernel/btf/vmlinux";

struct maker {
	const char *types, *strings;
	uint32_t type_bytes, string_bytes;
	struct map names;       /* hashes of the names that are wanted */
	VEC(uint32_t) at;       /* where type i is in types; 0 is void */
	uint32_t *numbers;      /* its number in the new one; 0 = not in it */
	VEC(uint32_t) waiting;  /* types that were taken, and whose parts were not looked at */
	struct map string_at;   /* old place of a string to its new one */
	struct buf new_strings;
};

/* Of a name up to the mark of a flavor, "___". */
static uint64_t hash_name(const char *name, const char *end)
{
	uint64_t hash = 14695981039346656037ULL;

	for (; name < end && *name && !(end - name > 3 && name[0] == '_' && name[1] == '_' && name[2] == '_' && name[3]); name++)
		hash = (hash ^ (uint8_t)*name) * 1099511628211ULL;
	return hash | 1;
}

static bool can_be_named(unsigned kind)
{
	return kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION || kind == BTF_KIND_ENUM || kind == BTF_KIND_ENUM64 ||
	       kind == BTF_KIND_TYPEDEF;
}

static void take_names(struct maker *m, const struct btf *local)
{
	for (uint32_t i = 1; i < btf__type_cnt(local); i++) {
		const struct btf_type *t = btf__type_by_id(local, i);
		const char *name = btf__name_by_offset(local, t->name_off);

		if (can_be_named(btf_kind(t)) && name && *name)
			*map_put(&m->names, hash_name(name, name + strlen(name)), 0) = 1;
	}
}

/* How many bytes follow the head of a type; -1: a kind that came later than this code. */
static int64_t bytes_behind(const struct btf_type *t)
{
	int64_t n = btf_vlen(t);

	switch (btf_kind(t)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return n * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return n * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return n * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return n * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return n * sizeof(struct btf_var_secinfo);
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	default:
		return -1;
	}
}

static const struct btf_type *type_at(const struct maker *m, uint32_t id)
{
	return (const struct btf_type *)(m->types + m->at.v[id]);
}

static int read_types(struct maker *m)
{
	vec_push(&m->at, 0);
	for (uint64_t at = 0; at < m->type_bytes;) {
		const struct btf_type *t = (const struct btf_type *)(m->types + at);
		int64_t behind = at + sizeof(*t) <= m->type_bytes ? bytes_behind(t) : -1;

		if (behind < 0 || at + sizeof(*t) + behind > m->type_bytes || t->name_off >= m->string_bytes)
			return -ENOTSUP;
		vec_push(&m->at, at);
		at += sizeof(*t) + behind;
	}
	return 0;
}

static void take(struct maker *m, uint32_t id)
{
	unsigned kind;

	if (!id || id >= m->at.n || m->numbers[id])
		return;
	kind = btf_kind(type_at(m, id));
	if (kind == BTF_KIND_FUNC_PROTO || kind == BTF_KIND_FUNC || kind == BTF_KIND_VAR || kind == BTF_KIND_DATASEC ||
	    kind == BTF_KIND_DECL_TAG)
		return; /* a typedef of a function becomes one of void */
	m->numbers[id] = 1;
	vec_push(&m->waiting, id);
}

static void take_wanted(struct maker *m)
{
	for (uint32_t id = 1; id < m->at.n; id++) {
		const struct btf_type *t = type_at(m, id);

		if (can_be_named(btf_kind(t)) && t->name_off &&
		    map_get(&m->names, hash_name(m->strings + t->name_off, m->strings + m->string_bytes)))
			take(m, id);
	}
}

static bool points_to_one(unsigned kind)
{
	return kind == BTF_KIND_TYPEDEF || kind == BTF_KIND_VOLATILE || kind == BTF_KIND_CONST || kind == BTF_KIND_RESTRICT ||
	       kind == BTF_KIND_TYPE_TAG;
}

static void take_parts(struct maker *m, uint32_t id)
{
	const struct btf_type *t = type_at(m, id);

	if (points_to_one(btf_kind(t)))
		take(m, t->type);
	if (btf_is_array(t)) {
		take(m, btf_array(t)->type);
		take(m, btf_array(t)->index_type);
	}
	for (unsigned i = 0; btf_is_composite(t) && i < btf_vlen(t); i++)
		take(m, btf_members(t)[i].type);
}

static uint32_t put_string(struct maker *m, uint32_t old)
{
	const char *text = m->strings + old;
	uint64_t *known;

	if (!old || old >= m->string_bytes)
		return 0;
	known = map_put(&m->string_at, old, 0);
	if (!*known) {
		*known = m->new_strings.n;
		buf_add(&m->new_strings, text, strlen(text) + 1);
	}
	return *known;
}

static uint32_t number_of(const struct maker *m, uint32_t id)
{
	return id < m->at.n ? m->numbers[id] : 0;
}

/* Appends a type, with the numbers and names of the new one. */
static void put_type(struct maker *m, uint32_t id, struct buf *out)
{
	const struct btf_type *old = type_at(m, id);
	size_t at = out->n;
	struct btf_type *t;

	buf_add(out, old, sizeof(*old) + bytes_behind(old));
	t = (struct btf_type *)(out->data + at);
	t->name_off = put_string(m, old->name_off);
	if (btf_is_ptr(t) || points_to_one(btf_kind(t)))
		t->type = number_of(m, old->type);
	if (btf_is_array(t)) {
		btf_array(t)->type = number_of(m, btf_array(old)->type);
		btf_array(t)->index_type = number_of(m, btf_array(old)->index_type);
	}
	for (unsigned i = 0; i < btf_vlen(t); i++) {
		if (btf_is_composite(t)) {
			btf_members(t)[i].name_off = put_string(m, btf_members(old)[i].name_off);
			btf_members(t)[i].type = number_of(m, btf_members(old)[i].type);
		} else if (btf_is_enum(t)) {
			btf_enum(t)[i].name_off = put_string(m, btf_enum(old)[i].name_off);
		} else if (btf_is_enum64(t)) {
			btf_enum64(t)[i].name_off = put_string(m, btf_enum64(old)[i].name_off);
		}
	}
}

static void put_all(struct maker *m, struct buf *ret)
{
	struct btf_header head = { .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(head) };
	_cleanup_(buf_done) struct buf types = { 0 };
	uint32_t count = 0;

	buf_add(&m->new_strings, "", 1);
	for (uint32_t id = 1; id < m->at.n; id++)
		if (m->numbers[id])
			m->numbers[id] = ++count;
	for (uint32_t id = 1; id < m->at.n; id++)
		if (m->numbers[id])
			put_type(m, id, &types);
	head.type_len = head.str_off = types.n;
	head.str_len = m->new_strings.n;
	buf_add(ret, &head, sizeof(head));
	buf_add(ret, types.data, types.n);
	buf_add(ret, m->new_strings.data, m->new_strings.n);
}

/* Finds the two sections. */
static bool open_sections(struct maker *m, const char *all, size_t n)
{
	struct btf_header head;

	if (n < sizeof(head))
		return false;
	memcpy(&head, all, sizeof(head));
	if (head.magic != BTF_MAGIC || head.version != BTF_VERSION || head.hdr_len < sizeof(head) || head.hdr_len > n ||
	    head.hdr_len % 4 || head.type_off % 4 || (uint64_t)head.type_off + head.type_len > n - head.hdr_len ||
	    (uint64_t)head.str_off + head.str_len > n - head.hdr_len || !head.str_len)
		return false;
	m->types = all + head.hdr_len + head.type_off;
	m->type_bytes = head.type_len;
	m->strings = all + head.hdr_len + head.str_off;
	m->string_bytes = head.str_len;
	return !m->strings[m->string_bytes - 1]; /* so that every string ends */
}

int smallbtf_make(const void *all, size_t n, const struct btf *local, struct buf *ret, struct err *err)
{
	struct maker m = { 0 };
	int r = open_sections(&m, all, n) ? read_types(&m) : -ENOTSUP;

	if (!r) {
		m.numbers = mem_alloc(m.at.n * sizeof(*m.numbers));
		take_names(&m, local);
		take_wanted(&m);
		while (m.waiting.n)
			take_parts(&m, m.waiting.v[--m.waiting.n]);
		put_all(&m, ret);
	} else {
		err_set(err, -r, "the kernel's BTF is of another kind than this program knows");
	}
	map_done(&m.names);
	map_done(&m.string_at);
	buf_done(&m.new_strings);
	vec_done(&m.at);
	vec_done(&m.waiting);
	free(m.numbers);
	return r;
}

static void find_target(const struct maker *m, uint32_t id, struct smallbtf_target *targets, size_t count)
{
	const struct btf_type *t = type_at(m, id);

	for (size_t i = 0; i < count; i++)
		if (btf_kind(t) == targets[i].kind && m->strings[t->name_off] == targets[i].name[0] &&
		    !strcmp(m->strings + t->name_off, targets[i].name))
			targets[i].number = id;
}

void smallbtf_find(const void *all, size_t n, struct smallbtf_target *targets, size_t count)
{
	struct maker m = { 0 };

	for (size_t i = 0; i < count; i++)
		targets[i].number = 0;
	if (open_sections(&m, all, n) && !read_types(&m))
		for (uint32_t id = 1; id < m.at.n; id++)
			find_target(&m, id, targets, count);
	vec_done(&m.at);
}

uint32_t smallbtf_number(const void *all, size_t n, const char *name)
{
	struct smallbtf_target target = { .kind = BTF_KIND_STRUCT };

	snprintf(target.name, sizeof(target.name), "%s", name);
	smallbtf_find(all, n, &target, 1);
	return target.number;
}

/* The BTF of the running kernel. */
struct kernel {
	char *data;
	size_t n;
	bool mapped;
};

static void kernel_done(struct kernel *k)
{
	if (k->mapped)
		munmap(k->data, k->n);
	else
		free(k->data);
}

/* Since 6.16 it can be mapped. It is read a page at a time, seven megabytes of it. */
static int kernel_open(struct kernel *k)
{
	_cleanup_fd_ int fd = open(kernel_btf, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *data;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && st.st_size > 0 && st.st_size <= LARGEST) {
		data = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (data != MAP_FAILED) {
			*k = (struct kernel){ data, st.st_size, true };
			return 0;
		}
	}
	return fd_read_file(fd, LARGEST, &k->data, &k->n);
}

void smallbtf_numbers(const char *const *names, uint32_t *ret, size_t count)
{
	_cleanup_(kernel_done) struct kernel k = { 0 };

	memset(ret, 0, count * sizeof(*ret));
	if (kernel_open(&k) >= 0)
		for (size_t i = 0; i < count; i++)
			ret[i] = smallbtf_number(k.data, k.n, names[i]);
}

int smallbtf_write(int fd, const struct btf *local, struct smallbtf_target *targets, size_t count, struct err *err)
{
	_cleanup_(kernel_done) struct kernel k = { 0 };
	_cleanup_(buf_done) struct buf small = { 0 };
	int r = kernel_open(&k);

	if (r < 0)
		return err_errno(err, -r, "cannot read the kernel's BTF");
	r = smallbtf_make(k.data, k.n, local, &small, err);
	smallbtf_find(k.data, k.n, targets, count);
	if (!r)
		r = fd_write_all(fd, small.data, small.n);
	return r;
}
