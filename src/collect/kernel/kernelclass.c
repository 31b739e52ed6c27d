#include "collect/kernel/kernelclass.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"
#include "profile/kernelname.h"
#include "target/kallsyms.h"

enum { KNOWN = 1 << 8 };

static void use(struct kernelclass *k, struct kallsyms *symbols)
{
	k->read = true;
	k->symbols = symbols;
	k->known = symbols ? mem_alloc(kallsyms_count(symbols) * sizeof(*k->known)) : NULL;
}

void kernelclass_parse(struct kernelclass *k, const char *kallsyms)
{
	use(k, kallsyms ? kallsyms_parse(mem_strdup(kallsyms)) : NULL);
}

void kernelclass_done(struct kernelclass *k)
{
	kallsyms_free(k->symbols);
	free(k->known);
	*k = (struct kernelclass){ 0 };
}

struct kallsyms *kernelclass_take(struct kernelclass *k)
{
	struct kallsyms *symbols = k->symbols;

	k->symbols = NULL;
	return symbols;
}

/* Functions with several names have what any of them says. */
static uint8_t look_at(const struct kallsyms *symbols, size_t i)
{
	uint64_t start, address;
	const char *name = kallsyms_name(symbols, i, &start);
	uint8_t bits = 0;

	do {
		bits |= kernelname_of(name);
		if (++i == kallsyms_count(symbols))
			break;
		name = kallsyms_name(symbols, i, &address);
	} while (address == start);
	return bits;
}

uint8_t kernelclass_of(struct kernelclass *k, uint64_t address)
{
	struct kallsyms *symbols;
	size_t i;

	if (!k->read)
		use(k, kallsyms_read(&symbols) < 0 ? NULL : symbols);
	i = k->symbols ? kallsyms_at(k->symbols, address) : SIZE_MAX;
	if (i == SIZE_MAX)
		return 0;
	if (!k->known[i])
		k->known[i] = KNOWN | look_at(k->symbols, i);
	return k->known[i];
}
