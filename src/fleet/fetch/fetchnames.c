#include "fleet/fetch/fetchnames.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "fleet/answer.h"
#include "profile/profile.h"

void fetchnames_init(struct fetchnames *f, struct profile *p)
{
	*f = (struct fetchnames){ .p = p };
	frames_init(&f->made, p);
}

void fetchnames_done(struct fetchnames *f)
{
	map_done(&f->frames);
	map_done(&f->stacks);
	frames_done(&f->made);
}

static size_t read_hex(const char *text, uint8_t *out, size_t size)
{
	size_t n = 0;

	for (; n < size && isxdigit((unsigned char)text[0]) && isxdigit((unsigned char)text[1]); text += 2) {
		char digits[3] = { text[0], text[1], 0 };

		out[n++] = strtoul(digits, NULL, 16);
	}
	return n;
}

static uint32_t module_of(struct fetchnames *f, const char *path, unsigned kind, const char *build_id)
{
	uint8_t id[20];
	size_t n = read_hex(build_id, id, sizeof(id));
	size_t before = f->p->modules.n;
	uint32_t module;

	/* Modules of the kernel have names that only its own list tells from files. */
	module = frames_module(&f->made, path, id, n);
	/* Code of a process that is not here: it has names, and no file to look for others in. */
	if (module != PROFILE_NONE && module >= before)
		f->p->modules.v[module].kind = kind == MODULE_JIT || kind > MODULE_NONE ? MODULE_NONE : kind;
	return module;
}

void fetchnames_take_frame(struct fetchnames *f, const struct answer *a, size_t row)
{
	uint64_t hash = answer_u64(a, row, 0), kind = answer_u64(a, row, 1);
	uint32_t module = module_of(f, answer_text(a, row, 3), answer_u64(a, row, 2), answer_text(a, row, 4)), frame;
	size_t n = answer_count(a, row, 6);
	VEC(struct profile_line) lines = { 0 };
	struct profile *p = f->p;

	if (map_get(&f->frames, hash) || kind > FRAME_NOTE)
		return;
	for (size_t i = 0; i < n; i++) {
		uint64_t named = answer_item_u64(a, row, 9, i);
		struct profile_function function = { .name = profile_string(p, answer_item_text(a, row, 6, i)), .module = module,
						     .file = profile_string(p, answer_item_text(a, row, 7, i)),
						     .named = named < NAMED_KINDS ? named : NAMED_SYMBOL };

		vec_push(&lines, (struct profile_line){ profile_function(p, &function), answer_item_u64(a, row, 8, i), .inlined = i + 1 < n });
	}
	if (kind == FRAME_TRUNCATED && n) {
		frame = profile_truncation_frame(p, answer_item_text(a, row, 6, 0));
	} else {
		frame = p->frames.n;
		vec_push(&p->frames, (struct profile_frame){ .module = module, .kind = kind, .address = answer_u64(a, row, 5) });
		if (n)
			profile_set_lines(p, frame, lines.v, n);
	}
	map_put(&f->frames, hash, frame);
	vec_done(&lines);
}

void fetchnames_take_stack(struct fetchnames *f, const struct answer *a, size_t row)
{
	uint32_t stack = 0;

	/* From the leaf on. */
	for (size_t i = answer_count(a, row, 1); i-- > 0;) {
		const uint64_t *frame = map_get(&f->frames, answer_item_u64(a, row, 1, i));

		stack = profile_stack(f->p, stack, frame ? *frame : profile_truncation_frame(f->p, "not in the store"));
	}
	map_put(&f->stacks, answer_u64(a, row, 0), stack);
}
