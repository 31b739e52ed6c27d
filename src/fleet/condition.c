#include "fleet/condition.h"

#include "base/buf.h"
#include "base/mem.h"
#include "fleet/sql.h"

static const uint64_t day_seconds = 86400;

void condition_put_time(struct buf *b, const char *column, uint64_t from, uint64_t to)
{
	buf_printf(b, "day >= toDate(%llu) AND day <= toDate(%llu) AND %s >= toDateTime(%llu) AND %s < toDateTime(%llu)",
		   (unsigned long long)(from / day_seconds), (unsigned long long)(to / day_seconds), column, (unsigned long long)from, column,
		   (unsigned long long)to);
}

char *condition_time(const char *column, uint64_t from, uint64_t to, const char *targets)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	condition_put_time(&b, column, from, to);
	if (targets) {
		buf_puts(&b, " AND target LIKE ");
		sql_like(&b, targets);
	}
	return mem_strdup(b.data);
}

char *condition_committed(const char *time, const char *more)
{
	return mem_printf("%s%s AND (window_id, attempt) IN (SELECT window_id, min(attempt) FROM windows WHERE %s GROUP BY window_id)", time,
			  more ? more : "", time);
}
