#include "elf/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "elf/dwarf/dwarf.h"
#include "elf/file.h"
#include "elf/go/gotab.h"
#include "elf/symtab.h"

enum {
	NAME_LIMIT = 64 << 10, /* a longer string in a symbol table is not taken for a name */
	GO_DEPTH = 128,        /* inlined calls of one address in a Go program; the deepest seen are 8 */
};

struct symbols {
	struct symtab *symtab;
	struct dwarf *dwarf; /* NULL without debug information */
	struct gotab *go;    /* NULL where this is no Go program, or lines are not wanted */
};

int symbols_new(const struct symbols_files *files, struct symbols **ret, struct err *err)
{
	struct elf *all[] = { files->main, files->debug, files->alt };
	struct symbols *s = mem_alloc(sizeof(*s));

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i])
			elf_use_scratch(all[i], files->scratch_fd);
	s->symtab = symtab_new(files);
	s->dwarf = files->no_dwarf ? NULL : dwarf_new(files);
	if (!files->no_dwarf)
		gotab_open(files->main, &s->go, NULL); /* a damaged table leaves what the others tell */
	*ret = s;
	return 0;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	symtab_free(s->symtab);
	dwarf_free(s->dwarf);
	gotab_free(s->go);
	free(s);
}

/* An address and its index in the caller's array. */
struct wanted {
	uint64_t address;
	size_t index;
};

static int compare_wanted(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return ORDER(x->address, y->address) ?: ORDER(x->index, y->index);
}

struct resolve {
	struct symbols *s;
	const struct wanted *wanted;  /* sorted */
	const size_t *first;          /* unique address to its first entry in wanted; one more at the end */
	bool *done;                   /* unique addresses that were answered */
	symbols_got_fn *got;
	void *context;
};

/* Answers all of the caller's indices that ask for unique address i. */
static void answer(const struct resolve *r, size_t i, const struct symbols_call *calls, size_t count)
{
	for (size_t k = r->first[i]; k < r->first[i + 1]; k++)
		r->got(r->context, r->wanted[k].index, calls, count);
	r->done[i] = true;
}

static const char *symbol_at(const struct symbols *s, uint64_t address)
{
	const char *name = symtab_find(s->symtab, address);

	return name && strnlen(name, NAME_LIMIT) < NAME_LIMIT ? name : NULL;
}

static bool is_mangled(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2);
}

/* DWARF takes precedence, but where it gives no linkage name the symbol table may have a fuller one: a C++
 * name without it would be a bare "operator()". */
static void got_dwarf(void *context, size_t i, struct symbols_call *calls, size_t count)
{
	const struct resolve *r = context;
	struct symbols_call *last = &calls[count - 1];

	if (!*last->linkage) {
		const char *symbol = symbol_at(r->s, r->wanted[r->first[i]].address);

		if (symbol && (!*last->name || is_mangled(symbol)))
			last->linkage = symbol;
		else if (!symbol && !*last->name)
			return;
	}
	answer(r, i, calls, count);
}

static void got_symbol(const struct resolve *r, size_t i)
{
	const char *symbol = symbol_at(r->s, r->wanted[r->first[i]].address);
	struct symbols_call call = { .linkage = symbol, .name = "", .file = "" };

	answer(r, i, &call, symbol ? 1 : 0);
}

/* Go's own table has the lines and inlined calls of a program without DWARF (go build -ldflags=-w), and the names of
 * one without a symbol table (-s). */
static bool got_go(const struct resolve *r, size_t i)
{
	struct symbols_call calls[GO_DEPTH];
	uint64_t address = r->wanted[r->first[i]].address;
	size_t count = r->s->go ? gotab_calls(r->s->go, address, calls, GO_DEPTH) : 0;
	const char *symbol;

	if (!count)
		return false;
	/* The table leaves out the types of a generic function: "main.Map[...]". */
	if (strstr(calls[count - 1].name, "[...]") && (symbol = symbol_at(r->s, address)))
		calls[count - 1].name = symbol;
	answer(r, i, calls, count);
	return true;
}

int symbols_resolve(struct symbols *s, const uint64_t *addresses, size_t n, symbols_got_fn *got,
		    void *context)
{
	_cleanup_free_ struct wanted *wanted = mem_alloc(n * sizeof(*wanted) + 1);
	_cleanup_free_ uint64_t *unique = mem_alloc(n * sizeof(*unique) + 1);
	_cleanup_free_ size_t *first = mem_alloc((n + 1) * sizeof(*first));
	_cleanup_free_ bool *done = mem_alloc(n + 1);
	struct resolve r = { .s = s, .wanted = wanted, .first = first, .done = done, .got = got,
			     .context = context };
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		wanted[i] = (struct wanted){ addresses[i], i };
	if (n)
		qsort(wanted, n, sizeof(*wanted), compare_wanted);
	for (size_t i = 0; i < n; i++)
		if (!count || unique[count - 1] != wanted[i].address) {
			first[count] = i;
			unique[count++] = wanted[i].address;
		}
	first[count] = n;
	if (s->dwarf)
		dwarf_resolve(s->dwarf, unique, count, got_dwarf, &r);
	for (size_t i = 0; i < count; i++)
		if (!done[i] && !got_go(&r, i))
			got_symbol(&r, i);
	return 0;
}
