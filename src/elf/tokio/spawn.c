/*
 * spawn.c - the code that takes the address of a vtable, which is the code that makes a task of its type.
 *
 * Such an instruction is lea 0x…(%rip),%reg, or in a program at fixed addresses mov $0x…,%reg or movq $0x…,(…): in each of
 * them the last four bytes say which table. So all of the code is looked through for such four bytes first, and only
 * the functions that have some are decoded.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "elf/file.h"
#include "elf/tokio/tokioint.h"

enum {
	MAX_HITS = 1 << 18,
	MAX_APART = 4096, /* bytes of code: a task is filled in field by field */
};

/* Four bytes of code that may be the end of an instruction with the address of a vtable. */
struct hit {
	uint64_t function, end; /* of the bytes */
	uint32_t vtable;
};
struct hits {
	struct hit *v;
	size_t n, capacity;
};

static int compare(const void *pa, const void *pb)
{
	const struct hit *a = pa, *b = pb;

	return ORDER(a->function, b->function) ?: ORDER(a->end, b->end);
}

static const struct tokio_vtable *find(const struct tokio_vtable *v, size_t n, uint64_t address)
{
	size_t at = vec_search(i, 0, n, v[i].address < address);

	return at < n && v[at].address == address ? v + at : NULL;
}

static void scan(const struct tokio_file *f, const struct elf_segment *s, const struct tokio_vtable *v, size_t n, struct hits *ret)
{
	uint64_t bytes = s->file_size, low = v[0].address, high = v[n - 1].address;
	const uint8_t *code = elf_code_at(f->elf, s->address, &bytes);
	bool fixed = f->elf->type == ET_EXEC;

	for (uint64_t i = 0; code && bytes >= 4 && i <= bytes - 4 && ret->n < MAX_HITS; i++) {
		uint64_t end = s->address + i + 4, target;
		const struct functions_range *r;
		const struct tokio_vtable *hit;
		int32_t value;

		memcpy(&value, code + i, 4);
		target = end + (uint64_t)(int64_t)value;
		if (fixed && (uint32_t)value >= low && (uint32_t)value <= high)
			target = (uint32_t)value;
		if (target < low || target > high || !(hit = find(v, n, target)))
			continue;
		r = functions_find(&f->functions, end - 1);
		if (r)
			vec_push(ret, (struct hit){ r->start, end, hit - v });
	}
}

/* --- the places of a function --- */

struct place {
	uint64_t address; /* of the instruction that takes the address of the table */
	uint64_t cheap;   /* of one that always runs next to it, and costs less under a uprobe; 0 = none was found */
	uint32_t vtable;
	bool open;        /* still looking for the cheap one */
};

struct places {
	const struct hit *hits;
	size_t n, next;
	VEC(struct place) found;
};

/* Says whether the kernel emulates an instruction under a uprobe, rather than single-step a copy of it, which takes
 * several times as long: push of a register, call, jmp and jcc to an address. */
static bool is_emulated(const uint8_t *bytes, const struct instruction *i)
{
	if (i->op == OP_PUSH)
		return bytes[0] >> 3 == 0x0a || (bytes[0] == 0x41 && bytes[1] >> 3 == 0x0a);
	return i->op == OP_CALL   ? bytes[0] == 0xe8 :
	       i->op == OP_JUMP   ? bytes[0] == 0xe9 || bytes[0] == 0xeb :
	       i->op == OP_BRANCH ? bytes[0] >> 4 == 7 || bytes[0] == 0x0f :
				    false;
}

/* The code after a place is straight up to the first jump: all of it runs for each task that is made here. */
static void look_for_cheap(struct place *p, uint64_t address, const uint8_t *bytes, const struct instruction *i)
{
	if (is_emulated(bytes, i))
		p->cheap = address;
	p->open = !p->cheap && i->op != OP_JUMP && i->op != OP_RETURN && i->op != OP_STOP && address - p->address < MAX_APART;
}

static bool see_place(void *context, uint64_t address, const uint8_t *bytes, const struct instruction *i)
{
	struct places *p = context;
	bool takes = i->op == OP_OTHER && (i->target || ((bytes[0] & 0xf8) == 0x48 && bytes[1] == 0xc7) || bytes[0] == 0xc7);
	struct place *last = p->found.n ? &p->found.v[p->found.n - 1] : NULL;

	while (p->next < p->n && p->hits[p->next].end < address + i->length)
		p->next++;
	if (p->next < p->n && p->hits[p->next].end == address + i->length && takes) {
		if (last)
			last->open = false;
		vec_push(&p->found, (struct place){ .address = address, .vtable = p->hits[p->next].vtable, .open = true });
	} else if (last && last->open) {
		look_for_cheap(last, address, bytes, i);
	}
	return p->next < p->n || (p->found.n && p->found.v[p->found.n - 1].open);
}

/* A jump to between a place and its cheap one runs only the latter. */
static bool see_jump(void *context, uint64_t address, const uint8_t *bytes, const struct instruction *i)
{
	struct places *p = context;

	for (size_t k = 0; (i->op == OP_JUMP || i->op == OP_BRANCH) && k < p->found.n; k++)
		if (i->target > p->found.v[k].address && i->target <= p->found.v[k].cheap)
			p->found.v[k].cheap = 0;
	return true;
}

static void add_spawn(const struct tokio_file *f, struct tokio_vtable *v, const struct place *p)
{
	struct tokio_spawn s = { .address = p->cheap ? p->cheap : p->address, .cheap = p->cheap };

	if (v->spawn_count == TOKIO_SPAWNS || !elf_address_to_offset(f->elf, s.address, &s.offset))
		return;
	v->spawns = mem_resize(v->spawns, v->spawn_count + 1, sizeof(s));
	v->spawns[v->spawn_count++] = s;
}

static void look(struct tokio_file *f, const struct hit *hits, size_t n, struct tokio_vtable *vtables)
{
	const struct functions_range *r = functions_find(&f->functions, hits->function);
	struct places p = { .hits = hits, .n = n };

	code_walk(f, r, see_place, &p);
	if (p.found.n)
		code_walk(f, r, see_jump, &p);
	for (size_t i = 0; i < p.found.n; i++)
		add_spawn(f, &vtables[p.found.v[i].vtable], &p.found.v[i]);
	vec_done(&p.found);
}

void spawn_find(struct tokio_file *f, struct tokio_vtable *vtables, size_t n)
{
	struct hits h = { 0 };

	for (size_t i = 0; n && i < f->elf->segment_count; i++) {
		const struct elf_segment *s = &f->elf->segments[i];

		if (s->type == PT_LOAD && s->flags & PF_X)
			scan(f, s, vtables, n, &h);
	}
	vec_sort(&h, compare);
	for (size_t i = 0, end; i < h.n; i = end) {
		for (end = i + 1; end < h.n && h.v[end].function == h.v[i].function; end++)
			;
		look(f, h.v + i, end - i, vtables);
	}
	vec_done(&h);
}
