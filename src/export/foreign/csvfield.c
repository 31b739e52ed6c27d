#include "export/foreign/csvfield.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "export/report/cleantext.h"

struct csvline csvline_begin(struct buf *out, bool people)
{
	return (struct csvline){ .out = out, .people = people };
}

void csvline_end(struct csvline *c)
{
	buf_puts(c->out, "\r\n");
}

void csvline_none(struct csvline *c)
{
	if (c->filled)
		buf_putc(c->out, ',');
	c->filled = true;
}

void csvline_text(struct csvline *c, const char *s)
{
	struct buf clean = { 0 };

	csvline_none(c);
	if (c->people && *s && strchr("=+-@", *s))
		buf_putc(&clean, '\'');
	cleantext_put(&clean, s);
	if (!clean.n)
		return;
	if (!strpbrk(clean.data, ",\"") && *clean.data != ' ' && clean.data[clean.n - 1] != ' ') {
		buf_add(c->out, clean.data, clean.n);
	} else {
		buf_putc(c->out, '"');
		for (const char *x = clean.data; *x; x++) {
			if (*x == '"')
				buf_putc(c->out, '"');
			buf_putc(c->out, *x);
		}
		buf_putc(c->out, '"');
	}
	buf_done(&clean);
}

void csvline_uint(struct csvline *c, uint64_t value)
{
	csvline_none(c);
	buf_printf(c->out, "%llu", (unsigned long long)value);
}

void csvline_percent(struct csvline *c, double percent)
{
	csvline_none(c);
	buf_printf(c->out, "%.2f", percent);
}

void csvline_head(struct buf *out, const char *columns)
{
	buf_puts(out, columns);
	buf_puts(out, "\r\n");
}
