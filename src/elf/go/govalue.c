/*
 * govalue.c - values by address, packed as pairs of variable-length numbers: how much the value changes (the
 * sign in the lowest bit), and for how many instructions' sizes it holds. The value begins at -1; a change by 0
 * ends the table.
 */
#include <string.h>

#include "base/mem.h"
#include "elf/go/gotabint.h"

/* Of at most 32 bits, 7 in each byte. */
static bool read_varint(struct gotab_values *v, uint32_t *ret)
{
	uint32_t value = 0;

	for (unsigned shift = 0; shift < 35 && v->at < v->limit; shift += 7) {
		uint8_t byte = *v->at++;

		value |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

struct gotab_values gotab_values(const struct gotab *t, const struct gotab_function *f, uint32_t table)
{
	struct gotab_values v = { .start = f->entry, .end = f->entry, .value = -1, .function_end = f->end,
				  .quantum = t->quantum };

	if (table && table < t->values.size) {
		v.at = t->values.data + table;
		v.limit = t->values.data + t->values.size;
	}
	return v;
}

bool gotab_next(struct gotab_values *v)
{
	uint32_t change, step;

	/* A range is never empty: what all functions' tables cost together is bounded by the code's size. */
	if (v->end >= v->function_end || !read_varint(v, &change) || (!change && v->begun) || !read_varint(v, &step) ||
	    !step)
		return false;
	v->begun = true;
	v->value = (uint32_t)v->value + (-(change & 1) ^ change >> 1);
	v->start = v->end;
	v->end += MIN((uint64_t)step * v->quantum, v->function_end - v->end);
	return true;
}

int32_t gotab_value_at(const struct gotab *t, const struct gotab_function *f, uint32_t table, uint64_t address)
{
	struct gotab_values v = gotab_values(t, f, table);

	while (gotab_next(&v))
		if (address >= v.start && address < v.end)
			return v.value;
	return -1;
}
