#include "elf/symtab.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "elf/dynamic/dynamic.h"
#include "elf/file.h"
#include "elf/go/gotab.h"
#include "elf/symbols.h"
#include "elf/unwind/functions.h"

enum {
	NAME_LOOK = 512,   /* names are compared and measured only up to this length */
	NESTING = 64,      /* nested functions that a lookup climbs out of */
	RANK_GO = 14,      /* rank_of() a global function with a size */
};

static const uint64_t table_limit = 4ULL << 30;

struct entry {
	uint64_t address, end;
	const char *name;
	uint32_t parent; /* index + 1 of a function that began earlier and reaches beyond address */
	uint8_t rank;    /* of several names for one address the highest rank is taken */
	bool sized;
};

struct range {
	uint64_t start, end;
};

struct symtab {
	VEC(struct entry) entries;
	struct plt_stub *stubs;
	size_t stub_count;
	struct arena arena;
	uint8_t *mini_data;
	struct elf *mini;
	struct elf view; /* of a file without a section table */
	bool viewed;
};

/* A symbol table of one file, its strings checked once: every offset up to last_nul is a string. */
struct table {
	const uint8_t *symbols;
	size_t count;
	const char *strings;
	size_t string_count; /* offsets below this one are good */
};

static bool table_open(struct elf *elf, const char *section, struct table *t)
{
	const struct elf_section *s = elf_section(elf, section);
	const uint8_t *strings;
	const char *nul;
	size_t n, strings_n;

	*t = (struct table){ 0 };
	if (!s || s->link >= elf->section_count ||
	    elf_section_bytes(elf, s, table_limit, &t->symbols, &n, NULL) ||
	    elf_section_bytes(elf, &elf->sections[s->link], table_limit, &strings, &strings_n, NULL))
		return false;
	nul = strings_n ? memrchr(strings, 0, strings_n) : NULL;
	if (!nul)
		return false;
	t->count = n / sizeof(Elf64_Sym);
	t->strings = (const char *)strings;
	t->string_count = nul - t->strings + 1;
	return true;
}

static const char *table_get(const struct table *t, size_t i, Elf64_Sym *sym)
{
	memcpy(sym, t->symbols + i * sizeof(*sym), sizeof(*sym));
	return sym->st_name < t->string_count ? t->strings + sym->st_name : "";
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return ORDER(x->start, y->start);
}

struct ranges {
	struct range *v;
	size_t n, capacity;
};

/* Executable sections, sorted. A debug file keeps their headers, though not their bytes. */
static void code_ranges(const struct elf *elf, struct ranges *out)
{
	for (size_t i = 0; i < elf->section_count; i++) {
		const struct elf_section *s = &elf->sections[i];

		if (s->flags & SHF_EXECINSTR && s->flags & SHF_ALLOC && s->address + s->size > s->address)
			vec_push(out, (struct range){ s->address, s->address + s->size });
	}
	vec_sort(out, compare_ranges);
}

/* Returns the end of the executable section that holds address, 0 if none does. */
static uint64_t code_end(const struct ranges *code, uint64_t address)
{
	size_t low = vec_search(i, 0, code->n, code->v[i].start <= address);

	return low && address < code->v[low - 1].end ? code->v[low - 1].end : 0;
}

/* Labels made by the assembler or the compiler are not function names. */
static bool is_local_label(const char *name)
{
	return !*name || (name[0] == '.' && name[1] == 'L') || name[0] == '$';
}

static bool is_function(const Elf64_Sym *sym, const char *name)
{
	unsigned type = ELF64_ST_TYPE(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF || !*name)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	return type == STT_NOTYPE && !is_local_label(name);
}

/* Symbols of debug sections (link-time optimization leaves some) have offsets as values, which look like
 * code addresses. Section numbers past the reserved ones are in another table, and those of a file without a
 * section table in none: only the address is checked there. */
static bool in_code(const struct symtab *t, const struct elf *elf, const Elf64_Sym *sym)
{
	return sym->st_shndx >= SHN_LORESERVE || elf == &t->view ||
	       (sym->st_shndx < elf->section_count && elf->sections[sym->st_shndx].flags & SHF_EXECINSTR);
}

static uint8_t rank_of(const Elf64_Sym *sym)
{
	unsigned type = ELF64_ST_TYPE(sym->st_info), bind = ELF64_ST_BIND(sym->st_info);

	return (type != STT_NOTYPE) << 3 | (sym->st_size != 0) << 2 |
	       (bind == STB_WEAK ? 0 : bind == STB_LOCAL ? 1 : 2);
}

/* Adds the functions of one table and returns how many. */
static size_t add_table(struct symtab *t, struct elf *elf, const char *section)
{
	struct ranges code = { 0 };
	size_t before = t->entries.n;
	struct table table;

	if (!table_open(elf, section, &table))
		return 0;
	code_ranges(elf, &code);
	for (size_t i = 1; i < table.count; i++) {
		Elf64_Sym sym;
		const char *name = table_get(&table, i, &sym);
		uint64_t end;

		if (!is_function(&sym, name) || !in_code(t, elf, &sym))
			continue;
		end = code_end(&code, sym.st_value);
		if (!end)
			continue;
		if (sym.st_size)
			end = MIN(end - sym.st_value, sym.st_size) + sym.st_value;
		vec_push(&t->entries, (struct entry){ .address = sym.st_value, .end = end, .name = name,
						      .rank = rank_of(&sym), .sized = sym.st_size != 0 });
	}
	free(code.v);
	return t->entries.n - before;
}

/* Adds the functions of a Go program's own table. */
static void add_go(struct symtab *t, const struct elf *elf)
{
	_cleanup_(gotab_freep) struct gotab *go = NULL;
	struct gotab_function f;

	if (gotab_open(elf, &go, NULL))
		return;
	for (size_t i = 0; i < gotab_count(go); i++)
		if (gotab_get(go, i, &f) && *f.name && f.end > f.entry)
			vec_push(&t->entries, (struct entry){ .address = f.entry, .end = f.end, .name = f.name,
							      .rank = RANK_GO, .sized = true });
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return ORDER(x->address, y->address) ?: y->rank - x->rank;
}

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

static bool better_name(const char *a, const char *b)
{
	size_t ua = strspn(a, "_"), ub = strspn(b, "_");
	size_t na, nb;

	/* _Z and _R begin a mangled name, which has no underscores to lose. */
	if (ua != ub && !is_mangled(a) && !is_mangled(b))
		return ua < ub;
	na = strnlen(a, NAME_LOOK);
	nb = strnlen(b, NAME_LOOK);
	if (na != nb)
		return na < nb;
	return strncmp(a, b, NAME_LOOK) < 0;
}

/* Keeps one entry for each address. */
static void drop_aliases(struct symtab *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->entries.n;) {
		struct entry best = t->entries.v[i];
		size_t j = i + 1;

		for (; j < t->entries.n && t->entries.v[j].address == best.address; j++) {
			const struct entry *e = &t->entries.v[j];

			if (e->rank == best.rank && better_name(e->name, best.name))
				best.name = e->name;
			/* A weak alias may be the one that carries the true size. */
			if (e->sized && best.sized)
				best.end = MAX(best.end, e->end);
			else if (e->sized)
				best.end = e->end, best.sized = true;
		}
		t->entries.v[kept++] = best;
		i = j;
	}
	t->entries.n = kept;
}

/* Drops labels within functions, ends functions without a size at the next symbol, and links each function
 * to the one around it. */
static void nest(struct symtab *t)
{
	VEC(uint32_t) open = { 0 };
	size_t kept = 0;

	for (size_t i = 0; i < t->entries.n; i++) {
		struct entry e = t->entries.v[i];

		while (open.n && t->entries.v[open.v[open.n - 1]].end <= e.address)
			open.n--;
		if (kept && !t->entries.v[kept - 1].sized && t->entries.v[kept - 1].end > e.address) {
			t->entries.v[kept - 1].end = e.address;
			if (open.n && open.v[open.n - 1] == kept - 1)
				open.n--;
		}
		if (!e.sized && open.n)
			continue;
		e.parent = open.n ? open.v[open.n - 1] + 1 : 0;
		t->entries.v[kept] = e;
		vec_push(&open, kept);
		kept++;
	}
	t->entries.n = kept;
	vec_done(&open);
}

static const struct entry *find_entry(const struct symtab *t, uint64_t address)
{
	size_t low = vec_search(i, 0, t->entries.n, t->entries.v[i].address <= address);

	for (int i = 0; low && i < NESTING; i++) {
		const struct entry *e = &t->entries.v[low - 1];

		if (address < e->end)
			return e;
		low = e->parent;
	}
	return NULL;
}

/* In .symtab the next symbol ends one that has no size. A stripped file has too few symbols for that: there it ends with
 * its function, as the unwind information has it, or where the next function starts. */
static void end_by_functions(struct symtab *t, struct elf *elf)
{
	struct functions functions = { 0 };
	bool read = false;

	for (size_t i = 0; i < t->entries.n; i++) {
		struct entry *e = &t->entries.v[i];
		size_t next;

		if (e->sized)
			continue;
		if (!read)
			functions_read(elf, &functions);
		read = true;
		next = vec_search(k, 0, functions.n, functions.v[k].start <= e->address);
		if (next && e->address < functions.v[next - 1].end)
			e->end = MIN(e->end, functions.v[next - 1].end);
		else if (next < functions.n)
			e->end = MIN(e->end, functions.v[next].start);
	}
	functions_done(&functions);
}

static const char *name_of(void *context, uint64_t address)
{
	const struct entry *entry = find_entry(context, address);

	return entry ? entry->name : NULL;
}

struct symtab *symtab_new(const struct symbols_files *files)
{
	struct symtab *t = mem_alloc(sizeof(*t));
	size_t mini_n;

	if (!add_table(t, files->main, ".symtab") &&
	    !(files->debug && add_table(t, files->debug, ".symtab"))) {
		t->viewed = dynamic_view(files->main, &t->view);
		add_table(t, t->viewed ? &t->view : files->main, ".dynsym");
		end_by_functions(t, files->main);
		if (!debugdata_unpack(files->main, &t->mini_data, &mini_n) &&
		    !elf_open_memory(t->mini_data, mini_n, &t->mini, NULL))
			add_table(t, t->mini, ".symtab");
		add_go(t, files->main);
	}
	vec_sort(&t->entries, compare_entries);
	drop_aliases(t);
	nest(t);
	t->stub_count = plt_read(t->viewed ? &t->view : files->main, &t->arena, name_of, t, &t->stubs);
	return t;
}

void symtab_free(struct symtab *t)
{
	if (!t)
		return;
	vec_done(&t->entries);
	free(t->stubs);
	arena_done(&t->arena);
	if (t->viewed)
		dynamic_done(&t->view);
	elf_free(t->mini);
	free(t->mini_data);
	free(t);
}

const char *symtab_find(const struct symtab *t, uint64_t address)
{
	const struct entry *entry = find_entry(t, address);
	size_t low;

	if (entry)
		return entry->name;
	low = vec_search(i, 0, t->stub_count, t->stubs[i].address <= address);
	return low && address < t->stubs[low - 1].end ? t->stubs[low - 1].name : NULL;
}

bool symtab_range(const struct symtab *t, uint64_t address, uint64_t *ret_start, uint64_t *ret_end)
{
	const struct entry *entry = find_entry(t, address);

	if (!entry)
		return false;
	*ret_start = entry->address;
	*ret_end = entry->end;
	return true;
}

uint64_t symtab_count_functions(struct elf *elf, const char *section)
{
	struct table table;
	uint64_t n = 0;

	if (!table_open(elf, section, &table))
		return 0;
	for (size_t i = 1; i < table.count; i++) {
		Elf64_Sym sym;
		unsigned type;

		table_get(&table, i, &sym);
		type = ELF64_ST_TYPE(sym.st_info);
		n += sym.st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_GNU_IFUNC);
	}
	return n;
}

void symtab_each_name(struct elf *elf, const char *section, symtab_see_fn *see, void *context)
{
	struct table table;

	if (!table_open(elf, section, &table))
		return;
	for (size_t i = 1; i < table.count; i++) {
		Elf64_Sym sym;
		const char *name = table_get(&table, i, &sym);

		if (sym.st_shndx != SHN_UNDEF && *name && !see(context, name, sym.st_value))
			return;
	}
}

void symtab_each_function(struct elf *elf, const char *section, symtab_see_function_fn *see, void *context)
{
	struct table table;

	if (!table_open(elf, section, &table))
		return;
	for (size_t i = 1; i < table.count; i++) {
		Elf64_Sym sym;
		const char *name = table_get(&table, i, &sym);

		if (sym.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(sym.st_info) == STT_FUNC && *name &&
		    !see(context, name, sym.st_value, sym.st_size))
			return;
	}
}
