#include "target/kallsyms.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/map.h"
#include "base/vec.h"
#include "target/kernelplaces.h"

/* Beyond the last symbol of a run (a module, the kernel) nothing says where it ends. */
static const uint64_t last_symbol_bytes = 1 << 20;

struct symbol {
	uint64_t address;
	uint32_t name, module; /* offsets into text, NUL-terminated; module 0 = none */
	uint32_t order;
};

struct kallsyms {
	char *text;
	VEC(struct symbol) symbols; /* code only, by address */
	uint64_t modules;           /* a hash of the modules that were loaded */
};

static int compare(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return ORDER(x->address, y->address) ?: ORDER(x->order, y->order);
}

static uint64_t hex(const char **p)
{
	uint64_t v = 0;

	for (;; (*p)++) {
		unsigned c = (unsigned char)**p;

		if (c - '0' < 10)
			v = v << 4 | (c - '0');
		else if ((c | 32) - 'a' < 6)
			v = v << 4 | ((c | 32) - 'a' + 10);
		else
			return v;
	}
}

/* "ffffffff81000000 T name\t[module]" */
static void parse_line(struct kallsyms *k, char *line, char *end, size_t *sorted)
{
	const char *p = line;
	uint64_t address = hex(&p);
	char type, *name, *stop, *module, *close;
	size_t n = k->symbols.n;

	if (p == line || p[0] != ' ' || !p[1] || p[2] != ' ')
		return;
	type = p[1] | 32;
	if ((type != 't' && type != 'w') || !address)
		return;
	name = (char *)p + 3;
	for (stop = name; stop < end && !isspace((unsigned char)*stop); stop++)
		;
	for (module = stop; module < end && *module != '['; module++)
		;
	for (close = module; close < end && *close != ']'; close++)
		;
	if (close < end)
		close[1] = 0;
	else
		module = NULL;
	*stop = 0;
	if (stop == name)
		return;
	if (*sorted == n && (!n || k->symbols.v[n - 1].address <= address))
		*sorted = n + 1;
	vec_push(&k->symbols, (struct symbol){ address, name - k->text, module ? module - k->text : 0, n });
}

/* The kernel's own functions come in order, and they are nearly all: only what follows them is sorted, and both are
 * merged from their ends. */
static void sort_tail(struct kallsyms *k, size_t sorted)
{
	size_t n = k->symbols.n - sorted, a = sorted, out = k->symbols.n;
	struct symbol *tail;

	if (!n)
		return;
	tail = mem_alloc(n * sizeof(*tail));
	memcpy(tail, k->symbols.v + sorted, n * sizeof(*tail));
	qsort(tail, n, sizeof(*tail), compare);
	while (n)
		if (a && compare(&k->symbols.v[a - 1], &tail[n - 1]) > 0)
			k->symbols.v[--out] = k->symbols.v[--a];
		else
			k->symbols.v[--out] = tail[--n];
	free(tail);
}

struct kallsyms *kallsyms_parse(char *text)
{
	struct kallsyms *k = mem_alloc(sizeof(*k));
	size_t sorted = 0;

	k->text = text;
	for (char *line = text, *next; *line; line = next) {
		char *end = strchr(line, '\n');

		next = end ? end + 1 : line + strlen(line);
		end = end ? end : next;
		parse_line(k, line, end, &sorted);
	}
	sort_tail(k, sorted);
	return k;
}

static uint64_t hash_modules(void)
{
	struct kernelplaces places = { 0 };
	uint64_t hash = 0;

	kernelplaces_read_modules(&places);
	for (size_t i = 0; i < places.list.n; i++)
		hash = map_hash(hash ^ places.list.v[i].start) + places.list.v[i].end;
	kernelplaces_done(&places);
	return hash;
}

int kallsyms_read(struct kallsyms **ret)
{
	uint64_t modules = hash_modules(); /* before: one that is loaded meanwhile is noticed */
	char *text;
	int r = fd_read_path("/proc/kallsyms", 256 << 20, &text, NULL);

	if (r < 0)
		return r;
	*ret = kallsyms_parse(text);
	(*ret)->modules = modules;
	return 0;
}

bool kallsyms_current(const struct kallsyms *k)
{
	return k->modules == hash_modules();
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	vec_done(&k->symbols);
	free(k->text);
	free(k);
}

bool kallsyms_hidden(const struct kallsyms *k)
{
	return !k->symbols.n;
}

size_t kallsyms_count(const struct kallsyms *k)
{
	return k->symbols.n;
}

size_t kallsyms_at(const struct kallsyms *k, uint64_t address)
{
	size_t at = vec_search(i, 0, k->symbols.n, k->symbols.v[i].address <= address);

	if (!at--)
		return SIZE_MAX;
	/* Of several names for one address the first is the one people know. */
	while (at && k->symbols.v[at - 1].address == k->symbols.v[at].address)
		at--;
	return at;
}

const char *kallsyms_name(const struct kallsyms *k, size_t i, uint64_t *ret_address)
{
	*ret_address = k->symbols.v[i].address;
	return k->text + k->symbols.v[i].name;
}

const char *kallsyms_find(const struct kallsyms *k, uint64_t address, const char **ret_module)
{
	size_t i = kallsyms_at(k, address);
	const struct symbol *s;

	if (i == SIZE_MAX)
		return NULL;
	s = &k->symbols.v[i];
	if (s->address == k->symbols.v[k->symbols.n - 1].address && address - s->address >= last_symbol_bytes)
		return NULL;
	*ret_module = s->module ? k->text + s->module : "";
	return k->text + s->name;
}
