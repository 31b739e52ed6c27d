#include "export/foreign/web/foreign.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/json.h"
#include "export/samplerows.h"
#include "profile/profile.h"

const char *foreign_kind(const struct stackcall *c)
{
	switch (c->kind) {
	case IDENT_KERNEL:
		return "kernel";
	case IDENT_UNNAMED:
		return "address";
	case IDENT_TRUNCATED:
		return "truncated";
	case IDENT_NOTE:
		return "note";
	default:
		return c->inlined ? "inlined" : "";
	}
}

const char *foreign_cause(enum cause cause)
{
	static char names[CAUSE_COUNT][32];

	if (!*names[cause])
		snprintf(names[cause], sizeof(names[cause]), "[%s]", cause_name(cause));
	return names[cause];
}

void foreign_put_decimal(struct json *j, const char *key, uint64_t value, uint64_t parts)
{
	char text[48];
	uint64_t whole = value / parts, fraction = value % parts;
	size_t begin = sizeof(text) - 24, end = begin;

	if (!fraction || parts % 10) {
		json_put_uint(j, key, whole);
		return;
	}
	text[end++] = '.';
	for (; fraction && parts >= 10; fraction %= parts) {
		parts /= 10;
		text[end++] = '0' + fraction / parts;
	}
	do
		text[--begin] = '0' + whole % 10;
	while (whole /= 10);
	json_put_raw(j, key, text + begin, end - begin);
}

uint32_t foreign_pid(const struct profile *p, uint32_t thread)
{
	uint32_t process = p->threads.v[thread].process;

	return process < p->processes.n ? p->processes.v[process].pid : 0;
}

void foreign_thread_name(const struct profile *p, uint32_t thread, struct buf *out)
{
	const struct profile_thread *t = &p->threads.v[thread];

	buf_puts(out, *profile_str(p, t->name) ? profile_str(p, t->name) : "[no name]");
	if (t->tid)
		buf_printf(out, " %u", t->tid);
}
