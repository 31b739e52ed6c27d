#include "elf/worker/packedtable.h"

#include <string.h>

#include "base/mem.h"

struct packedtable packedtable_of(const struct unwind_table *t)
{
	return (struct packedtable){ t->first_page, t->page_count, t->row_count, t->rule_count, t->unsupported };
}

uint64_t packedtable_bytes(const struct packedtable *head)
{
	return sizeof(*head) + head->page_count * (uint64_t)sizeof(struct unwind_page) +
	       head->row_count * (uint64_t)sizeof(uint32_t) + head->rule_count * (uint64_t)sizeof(uint64_t);
}

bool packedtable_open(const char *data, size_t n, struct unwind_table *ret)
{
	struct packedtable head;
	struct unwind_table t;

	if (n < sizeof(head))
		return false;
	memcpy(&head, data, sizeof(head));
	if (packedtable_bytes(&head) != n)
		return false;
	t = (struct unwind_table){ .first_page = head.first_page, .page_count = head.page_count,
				   .row_count = head.row_count, .rule_count = head.rule_count,
				   .unsupported = head.unsupported };
	t.pages = mem_alloc(t.page_count * sizeof(*t.pages) + 1);
	t.rows = mem_alloc(t.row_count * sizeof(*t.rows) + 1);
	t.rules = mem_alloc(t.rule_count * sizeof(*t.rules) + 1);
	data += sizeof(head);
	memcpy(t.pages, data, t.page_count * sizeof(*t.pages));
	data += t.page_count * sizeof(*t.pages);
	memcpy(t.rows, data, t.row_count * sizeof(*t.rows));
	data += t.row_count * sizeof(*t.rows);
	memcpy(t.rules, data, t.rule_count * sizeof(*t.rules));
	if (t.page_count && !unwind_valid(&t)) {
		unwind_done(&t);
		return false;
	}
	*ret = t;
	return true;
}
