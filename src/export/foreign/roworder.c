#include "export/foreign/roworder.h"

#include <stdlib.h>

#include "base/mem.h"
#include "export/samplerows.h"

static int compare(const void *a, const void *b, void *list)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct samplerow *rows = list;

	return ORDER(rows[x].begin_ns, rows[y].begin_ns) ?: ORDER(x, y);
}

uint32_t *roworder_by_time(const struct samplerows *rows)
{
	uint32_t *order = mem_resize(NULL, rows->list.n + 1, sizeof(*order));

	for (size_t i = 0; i < rows->list.n; i++)
		order[i] = i;
	qsort_r(order, rows->list.n, sizeof(*order), compare, rows->list.v);
	return order;
}
