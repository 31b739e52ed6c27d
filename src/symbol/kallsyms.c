#include "symbol/kallsyms.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/vec.h"

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
static void parse_line(struct kallsyms *k, char *line, char *end, bool *sorted)
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
	if (n && k->symbols.v[n - 1].address > address)
		*sorted = false;
	vec_push(&k->symbols, (struct symbol){ address, name - k->text, module ? module - k->text : 0, n });
}

struct kallsyms *kallsyms_parse(char *text)
{
	struct kallsyms *k = mem_alloc(sizeof(*k));
	bool sorted = true;

	k->text = text;
	for (char *line = text, *next; *line; line = next) {
		char *end = strchr(line, '\n');

		next = end ? end + 1 : line + strlen(line);
		end = end ? end : next;
		parse_line(k, line, end, &sorted);
	}
	if (!sorted)
		vec_sort(&k->symbols, compare);
	return k;
}

int kallsyms_read(struct kallsyms **ret)
{
	char *text;
	int r = fd_read_path("/proc/kallsyms", 256 << 20, &text, NULL);

	if (r < 0)
		return r;
	*ret = kallsyms_parse(text);
	return 0;
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

const char *kallsyms_find(const struct kallsyms *k, uint64_t address, const char **ret_module)
{
	size_t low = vec_search(i, 0, k->symbols.n, k->symbols.v[i].address <= address);
	const struct symbol *s;

	if (!low)
		return NULL;
	s = &k->symbols.v[low - 1];
	/* Of several names for one address the first is the one people know. */
	while (s > k->symbols.v && s[-1].address == s->address)
		s--;
	if (low == k->symbols.n && address - s->address >= last_symbol_bytes)
		return NULL;
	*ret_module = s->module ? k->text + s->module : "";
	return k->text + s->name;
}
