#include "elf/unwind/rows.h"

#include "base/vec.h"
#include "elf/unwind/unwind.h"

void rows_rules_init(struct rows_rules *rules)
{
	*rules = (struct rows_rules){ 0 };
	rows_rule(rules, RULE_NONE);
	rows_rule(rules, RULE_UNSUPPORTED);
}

void rows_rules_done(struct rows_rules *rules)
{
	vec_done(rules);
	map_done(&rules->index);
}

uint32_t rows_rule(struct rows_rules *rules, uint64_t rule)
{
	uint64_t *known = map_get(&rules->index, rule);

	if (known)
		return *known;
	if (rules->n == UNWIND_MAX_RULES)
		return ROWS_UNSUPPORTED;
	map_put(&rules->index, rule, rules->n);
	vec_push(rules, rule);
	return rules->n - 1;
}

void rows_done(struct rows *rows)
{
	vec_done(rows);
}

void rows_add(struct rows *rows, uint32_t offset, uint32_t rule)
{
	/* A row that the next one replaces at once may have hidden that nothing changes. */
	if (rows->n && rows->v[rows->n - 1].offset == offset)
		rows->n--;
	if (rule != (rows->n ? rows->v[rows->n - 1].rule : ROWS_NONE))
		vec_push(rows, (struct rows_row){ .offset = offset, .rule = rule });
}

uint32_t rows_find(const struct rows *rows, uint32_t offset, uint32_t *ret_next)
{
	size_t low = vec_search(i, 0, rows->n, rows->v[i].offset <= offset), high = low;

	while (high < rows->n && rows->v[high].rule == ROWS_NONE)
		high++;
	*ret_next = high < rows->n ? rows->v[high].offset : UINT32_MAX;
	return low ? rows->v[low - 1].rule : ROWS_NONE;
}

void rows_fill(struct rows *rows, const struct rows *filler)
{
	struct rows out = { 0 };
	uint32_t rule = ROWS_NONE, fill = ROWS_NONE;
	size_t i = 0, j = 0;

	if (!filler->n)
		return;
	vec_reserve(&out, rows->n + filler->n);
	while (i < rows->n || j < filler->n) {
		uint32_t a = i < rows->n ? rows->v[i].offset : UINT32_MAX;
		uint32_t b = j < filler->n ? filler->v[j].offset : UINT32_MAX;
		uint32_t at = a < b ? a : b;

		if (i < rows->n && a == at)
			rule = rows->v[i++].rule;
		if (j < filler->n && b == at)
			fill = filler->v[j++].rule;
		rows_add(&out, at, rule != ROWS_NONE ? rule : fill);
	}
	rows_done(rows);
	*rows = out;
}
