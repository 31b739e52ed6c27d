#include "elf/dwarf/dwarf.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include "elf/dwarf/dwarfint.h"
#include "elf/file.h"
#include "elf/symbols.h"

static const char *const section_names[SECTION_COUNT] = {
	[SECTION_INFO] = "info", [SECTION_ABBREV] = "abbrev", [SECTION_LINE] = "line", [SECTION_STR] = "str",
	[SECTION_LINE_STR] = "line_str", [SECTION_STR_OFFSETS] = "str_offsets", [SECTION_ADDR] = "addr",
	[SECTION_RANGES] = "ranges", [SECTION_RNGLISTS] = "rnglists",
};

static const uint64_t section_limit = 16ULL << 30;
static const char unnamed[] = "[inlined]"; /* the name is in a dwz file that was not found */

enum { CALLS = 512 }; /* deeper inlining is cut at the outer end, before the function itself */

static const struct elf_section *find_section(const struct elf *elf, int id)
{
	const struct elf_section *s;
	char name[32];

	snprintf(name, sizeof(name), ".debug_%s", section_names[id]);
	s = elf_section(elf, name);
	if (s && s->data)
		return s;
	snprintf(name, sizeof(name), ".zdebug_%s", section_names[id]);
	s = elf_section(elf, name);
	return s && s->data ? s : NULL;
}

static void load_sections(struct dwarf_file *f, struct elf *elf)
{
	for (int i = 0; i < SECTION_COUNT; i++) {
		const struct elf_section *s = find_section(elf, i);
		struct dwarf_section *out = &f->sections[i];

		if (!s || elf_section_bytes(elf, s, section_limit, &out->data, &out->n, NULL) < 0)
			*out = (struct dwarf_section){ (const uint8_t *)"", 0 };
	}
}

/* Returns the lowest address of mapped code. */
static uint64_t text_start(const struct elf *elf)
{
	uint64_t start = UINT64_MAX;

	for (size_t i = 0; i < elf->segment_count; i++)
		if (elf->segments[i].type == PT_LOAD && elf->segments[i].flags & PF_X)
			start = MIN(start, elf->segments[i].address);
	return start == UINT64_MAX ? 1 : MAX(start, 1);
}

struct dwarf *dwarf_new(const struct symbols_files *files)
{
	struct elf *elf = files->main;
	struct dwarf *d;

	if (files->debug && find_section(files->debug, SECTION_INFO))
		elf = files->debug;
	if (!find_section(elf, SECTION_INFO))
		return NULL;
	d = mem_alloc(sizeof(*d));
	strtab_init(&d->paths);
	load_sections(&d->main, elf);
	d->has_alt = files->alt != NULL;
	if (d->has_alt)
		load_sections(&d->alt, files->alt);
	d->text_start = text_start(files->main);
	return d;
}

static void file_done(struct dwarf_file *f)
{
	vec_done(&f->units);
	abbrev_free_all(f);
}

void dwarf_free(struct dwarf *d)
{
	if (!d)
		return;
	file_done(&d->main);
	file_done(&d->alt);
	map_done(&d->names);
	vec_done(&d->name_list);
	strtab_done(&d->paths);
	free(d);
}

/* Honest files need less than a tenth of this, however large they are. */
static void set_budget(struct dwarf *d, size_t addresses)
{
	uint64_t bytes = 16 << 20;

	for (int i = 0; i < SECTION_COUNT; i++)
		bytes += 8 * (d->main.sections[i].n + d->alt.sections[i].n);
	d->work = MIN(bytes + 2048 * (uint64_t)addresses, (uint64_t)INT64_MAX);
}

/* Sets owner[i] to the unit (index + 1) that covers addresses[i]. */
static void find_units(struct dwarf *d, struct point *points, size_t n, uint32_t *owner)
{
	for (size_t k = 0; k < d->main.units.n; k++) {
		const struct unit *u = &d->main.units.v[k];
		struct ranges_iter it;
		uint64_t low, high;
		struct die root;

		if (!u->covers || !unit_read_root(d, &d->main, u, &root))
			continue;
		range_begin(&it, &d->main, u, &root);
		while (range_next(d, &it, &low, &high)) {
			size_t i = inline_lower(points, n, low);

			for (; i < n && points[i].address < high && dwarf_pay(d, 1); i++)
				if (!owner[i])
					owner[i] = k + 1;
		}
	}
}

struct emit {
	struct dwarf *d;
	const struct line_table *lines;
	const struct frames *frames;
	dwarf_got_fn *got;
	void *context;
};

static const char *path_of(const struct emit *e, uint32_t file)
{
	return e->lines ? line_file(e->d, e->lines, file) : "";
}

/* Emits the calls innermost first: each call's own name, and the source line within it. */
static void emit_point(const struct emit *e, const struct point *p)
{
	struct symbols_call calls[CALLS];
	const char *file = p->has_line ? path_of(e, p->file) : "";
	uint32_t line = p->has_line ? p->line : 0;
	size_t n = 0;

	for (uint32_t i = p->frame, parent; i && n < CALLS - 1 && dwarf_pay(e->d, 64); i = parent) {
		const struct frame *f = &e->frames->v[i - 1];
		struct dwarf_name name = inline_name(e->d, &e->d->main, f->die);

		parent = f->parent;
		if (!*name.linkage && !*name.name)
			name.name = unnamed;
		calls[n++] = (struct symbols_call){ name.linkage, name.name, file, line };
		file = path_of(e, f->call_file);
		line = f->call_line;
	}
	calls[n] = (struct symbols_call){ "", "", file, line };
	if (p->function) {
		struct dwarf_name name = inline_name(e->d, &e->d->main, p->function);

		calls[n].linkage = name.linkage;
		calls[n].name = name.name;
	}
	n++;
	if (p->function || p->has_line)
		e->got(e->context, p->index, calls, n);
}

/* Resolves the points of one unit. */
static void resolve_unit(struct dwarf *d, const struct unit *u, struct point *points, size_t n,
			 struct frames *frames, dwarf_got_fn *got, void *context)
{
	struct emit e = { .d = d, .frames = frames, .got = got, .context = context };
	struct line_table *lines;
	struct die root;

	abbrev_trim(&d->main);
	abbrev_trim(&d->alt);
	if (!unit_read_root(d, &d->main, u, &root))
		return;
	lines = line_open(d, u, &root);
	if (lines)
		line_run(d, lines, points, n);
	vec_clear(frames);
	inline_find(d, u, points, n, frames);
	e.lines = lines;
	for (size_t i = 0; i < n; i++)
		emit_point(&e, &points[i]);
	line_free(lines);
}

void dwarf_resolve(struct dwarf *d, const uint64_t *addresses, size_t n, dwarf_got_fn *got, void *context)
{
	_cleanup_free_ struct point *points = mem_alloc(n * sizeof(*points) + 1);
	_cleanup_free_ struct point *mine = mem_alloc(n * sizeof(*mine) + 1);
	_cleanup_free_ uint32_t *owner = mem_alloc(n * sizeof(*owner) + 1);
	_cleanup_free_ uint32_t *next = mem_alloc(n * sizeof(*next) + 1);
	_cleanup_free_ uint32_t *first = NULL;
	struct frames frames = { 0 };

	set_budget(d, n);
	if (!d->read) {
		unit_read_all(d, &d->main);
		unit_read_all(d, &d->alt);
		d->read = true;
	}
	for (size_t i = 0; i < n; i++)
		points[i] = (struct point){ .address = addresses[i], .index = i };
	find_units(d, points, n, owner);
	/* Builds a list of points for each unit, in order: pushed from the last to the first. */
	first = mem_alloc((d->main.units.n + 1) * sizeof(*first));
	for (size_t i = n; i-- > 0;) {
		next[i] = first[owner[i]];
		first[owner[i]] = i + 1;
	}
	for (size_t k = 0; k < d->main.units.n; k++) {
		size_t count = 0;

		for (uint32_t i = first[k + 1]; i; i = next[i - 1])
			mine[count++] = points[i - 1];
		if (count)
			resolve_unit(d, &d->main.units.v[k], mine, count, &frames, got, context);
	}
	vec_done(&frames);
}
