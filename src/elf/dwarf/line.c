/*
 * line.c - line programs, versions 2 to 5, run once for all wanted addresses of a unit.
 */
#include <stdio.h>
#include <stdlib.h>

#include "elf/dwarf/dwarfdef.h"
#include "elf/dwarf/dwarfint.h"

enum { ENTRY_FORMATS = 16, PATH_LIMIT = 4096 };

struct line_file {
	struct value name;
	uint64_t directory;
};

struct line_table {
	const struct unit *unit; /* with the sizes of this table's own header */
	struct unit sizes;
	struct cursor program;
	uint16_t version;
	uint8_t min_length, line_range, opcode_base;
	int8_t line_base;
	uint8_t lengths[256]; /* operands of the standard opcodes */
	const char *comp_dir, *unit_name;
	VEC(struct value) directories;
	VEC(struct line_file) files;
};

/* Directories and files of versions 2 to 4: names up to an empty one. */
static void read_old_lists(struct line_table *t, struct cursor *c)
{
	while (c->p < c->end && *c->p) {
		struct value v = { .form = DW_FORM_string, .u = (uintptr_t)c->p };

		cursor_skip_string(c);
		vec_push(&t->directories, v);
	}
	cursor_skip(c, 1);
	while (c->p < c->end && *c->p) {
		struct line_file file = { .name = { .form = DW_FORM_string, .u = (uintptr_t)c->p } };

		cursor_skip_string(c);
		file.directory = cursor_uleb(c);
		cursor_skip_leb(c);
		cursor_skip_leb(c);
		vec_push(&t->files, file);
	}
}

/* Reads a list of version 5: the fields that each entry has, then the entries. */
static void read_new_list(struct line_table *t, struct cursor *c, bool directories)
{
	struct {
		uint64_t content, form;
	} formats[ENTRY_FORMATS];
	unsigned format_count = cursor_uint(c, 1);
	uint64_t count;

	if (format_count > ENTRY_FORMATS) {
		c->p = c->end;
		return;
	}
	for (unsigned i = 0; i < format_count; i++) {
		formats[i].content = cursor_uleb(c);
		formats[i].form = cursor_uleb(c);
	}
	count = cursor_uleb(c);
	for (uint64_t i = 0; i < count; i++) {
		struct line_file file = { 0 };
		const uint8_t *before = c->p;

		for (unsigned k = 0; k < format_count; k++) {
			struct value v = form_read(c, &t->sizes, formats[k].form, 0);

			if (formats[k].content == DW_LNCT_path)
				file.name = v;
			else if (formats[k].content == DW_LNCT_directory_index)
				file.directory = v.u;
		}
		if (c->p == before)
			return; /* an entry without bytes: the count says nothing */
		if (directories)
			vec_push(&t->directories, file.name);
		else
			vec_push(&t->files, file);
	}
}

/* Reads the header before the program. */
static bool read_header(struct line_table *t, struct cursor *c)
{
	uint64_t length, header_length;

	t->sizes.offset_size = 4;
	length = cursor_uint(c, 4);
	if (length == 0xffffffff) {
		t->sizes.offset_size = 8;
		length = cursor_uint(c, 8);
	}
	if (length > cursor_left(c))
		return false;
	c->end = c->p + length;
	t->version = cursor_uint(c, 2);
	if (t->version < 2 || t->version > 5)
		return false;
	t->sizes.version = t->version;
	if (t->version >= 5) {
		t->sizes.address_size = cursor_uint(c, 1);
		cursor_skip(c, 1); /* segment selectors, which no compiler emits */
	}
	header_length = cursor_uint(c, t->sizes.offset_size);
	if (header_length > cursor_left(c))
		return false;
	t->program = (struct cursor){ c->p + header_length, c->end };
	t->min_length = cursor_uint(c, 1);
	if (t->version >= 4)
		cursor_skip(c, 1); /* operations in an instruction: 1 but on VLIW machines */
	cursor_skip(c, 1);         /* is_stmt by default */
	t->line_base = cursor_uint(c, 1);
	t->line_range = cursor_uint(c, 1);
	t->opcode_base = cursor_uint(c, 1);
	if (!t->line_range || !t->opcode_base)
		return false;
	for (unsigned i = 1; i < t->opcode_base; i++)
		t->lengths[i] = cursor_uint(c, 1);
	c->end = t->program.p;
	return true;
}

struct line_table *line_open(struct dwarf *d, const struct unit *u, const struct die *root)
{
	const struct dwarf_section *s = &d->main.sections[SECTION_LINE];
	struct line_table *t;
	struct cursor c;

	if (u->stmt_list >= s->n)
		return NULL;
	t = mem_alloc(sizeof(*t));
	t->unit = u;
	t->sizes = *u;
	c = (struct cursor){ s->data + u->stmt_list, s->data + s->n };
	if (!read_header(t, &c)) {
		free(t);
		return NULL;
	}
	if (dwarf_pay(d, cursor_left(&c))) {
		if (t->version >= 5) {
			read_new_list(t, &c, true);
			read_new_list(t, &c, false);
		} else {
			read_old_lists(t, &c);
		}
	}
	t->comp_dir = form_string(d, &d->main, u, &root->a[ATTR_COMP_DIR]);
	t->unit_name = form_string(d, &d->main, u, &root->a[ATTR_NAME]);
	return t;
}

void line_free(struct line_table *t)
{
	if (!t)
		return;
	vec_done(&t->directories);
	vec_done(&t->files);
	free(t);
}

struct row {
	uint64_t address;
	uint32_t file, line;
};

struct run {
	struct row row, last; /* being made; the one before it in this sequence */
	bool has_last, dropped;
	size_t next;          /* first point not below last.address */
	struct point *points;
	size_t n, left;       /* points, and those without a line */
	uint64_t steps;       /* not yet paid */
};

static void start_sequence(struct run *r)
{
	r->row = (struct row){ .file = 1, .line = 1 };
	r->has_last = false;
	r->dropped = false;
}

/* A row ends the row before it: the points between them get the line of that one. */
static void emit_row(struct run *r, uint64_t text_start)
{
	if (!r->has_last || r->row.address < r->last.address) {
		r->dropped = r->row.address < text_start;
		r->next = inline_lower(r->points, r->n, r->row.address);
		r->has_last = true;
	} else if (!r->dropped) {
		for (; r->next < r->n && r->points[r->next].address < r->row.address; r->next++) {
			struct point *p = &r->points[r->next];

			r->steps++;
			if (p->has_line)
				continue;
			p->has_line = true;
			p->file = r->last.file;
			p->line = r->last.line;
			r->left--;
		}
	}
	r->last = r->row;
}

static void extended(struct line_table *t, struct run *r, struct cursor *c, uint64_t text_start)
{
	uint64_t length = cursor_uleb(c);
	struct cursor sub = { c->p, c->p + MIN(length, cursor_left(c)) };

	cursor_skip(c, length);
	switch (cursor_uint(&sub, 1)) {
	case DW_LNE_end_sequence:
		emit_row(r, text_start);
		start_sequence(r);
		break;
	case DW_LNE_set_address:
		r->row.address = cursor_uint(&sub, MIN(cursor_left(&sub), 8));
		break;
	}
}

static void standard(struct line_table *t, struct run *r, struct cursor *c, unsigned op, uint64_t text_start)
{
	switch (op) {
	case DW_LNS_copy:
		emit_row(r, text_start);
		break;
	case DW_LNS_advance_pc:
		r->row.address += cursor_uleb(c) * t->min_length;
		break;
	case DW_LNS_advance_line:
		r->row.line += cursor_sleb(c);
		break;
	case DW_LNS_set_file:
		r->row.file = cursor_uleb(c);
		break;
	case DW_LNS_const_add_pc:
		r->row.address += (uint64_t)((255 - t->opcode_base) / t->line_range) * t->min_length;
		break;
	case DW_LNS_fixed_advance_pc:
		r->row.address += cursor_uint(c, 2);
		break;
	default:
		for (unsigned i = 0; i < t->lengths[op]; i++)
			cursor_skip_leb(c);
	}
}

void line_run(struct dwarf *d, struct line_table *t, struct point *points, size_t n)
{
	struct run r = { .points = points, .n = n, .left = n };
	struct cursor c = t->program;
	const uint8_t *paid = c.p;

	start_sequence(&r);
	while (c.p < c.end && r.left) {
		unsigned op = *c.p++;

		if (op >= t->opcode_base) {
			op -= t->opcode_base;
			r.row.address += (uint64_t)(op / t->line_range) * t->min_length;
			r.row.line += t->line_base + (int)(op % t->line_range);
			emit_row(&r, d->text_start);
		} else if (op) {
			standard(t, &r, &c, op, d->text_start);
		} else {
			extended(t, &r, &c, d->text_start);
			if (!dwarf_pay(d, c.p - paid + r.steps))
				return;
			paid = c.p;
			r.steps = 0;
		}
	}
	dwarf_pay(d, c.p - paid);
}

/* Returns directory number i, as the table's version counts them; NULL for the compilation directory. */
static const struct value *directory(const struct line_table *t, uint64_t i)
{
	if (t->version < 5 && i == 0)
		return NULL;
	if (t->version < 5)
		i--;
	return i < t->directories.n ? &t->directories.v[i] : NULL;
}

const char *line_file(struct dwarf *d, const struct line_table *t, uint32_t file)
{
	uint64_t i = t->version >= 5 ? file : (uint64_t)file - 1;
	char path[PATH_LIMIT];
	const char *name, *dir = "";
	const struct value *v;
	bool absolute;
	int n;

	if (t->version < 5 && !file)
		name = t->unit_name;
	else if (i < t->files.n) {
		name = form_string(d, &d->main, t->unit, &t->files.v[i].name);
		v = directory(t, t->files.v[i].directory);
		if (v)
			dir = form_string(d, &d->main, t->unit, v);
	} else
		return "";
	if (!*name)
		return "";
	if (*name == '/')
		return name;
	absolute = *dir == '/' || !*t->comp_dir;
	n = snprintf(path, sizeof(path), "%s%s%s%s%s", absolute ? "" : t->comp_dir, absolute ? "" : "/", dir,
		     *dir ? "/" : "", name);
	/* Overlapping names could make many long paths of few bytes. */
	if (n >= PATH_LIMIT || !dwarf_pay(d, 8 * n))
		return name;
	return strtab_get(&d->paths, strtab_add(&d->paths, path));
}
