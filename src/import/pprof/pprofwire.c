#include "import/pprof/pprofwire.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/codec/protobuf.h"
#include "base/err.h"
#include "base/mem.h"

int pprofwire_bad(const struct pprofwire *w, const void *at, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list args;

	va_start(args, fmt);
	text = mem_vprintf(fmt, args);
	va_end(args);
	return err_set(w->err, EINVAL, "byte %zu: %s", at ? (size_t)((const uint8_t *)at - w->data) : 0, text);
}

int pprofwire_damaged(const struct pprofwire *w, const struct protobuf_field *f)
{
	return pprofwire_bad(w, f->data, "a message of field %u is damaged", f->number);
}

int pprofwire_each(const struct pprofwire *w, const struct protobuf_field *f, uint32_t number, pprofwire_fn *fn, void *context)
{
	struct reader in = f ? protobuf_inside(f) : reader_of(w->data, w->n);
	struct protobuf_field g;
	int r = 0;

	while (!r && protobuf_next(&in, &g)) {
		if (g.number != number)
			continue;
		if (g.wire != PROTOBUF_BYTES)
			return pprofwire_bad(w, in.data + in.pos, "field %u is a number, and should be a message", number);
		r = fn(context, &g);
	}
	return r ?: in.failed ? pprofwire_bad(w, in.data + in.pos, "what follows is no field of a profile, or is cut off") : 0;
}

int pprofwire_numbers(const struct pprofwire *w, const struct protobuf_field *f, uint64_t *to, size_t n)
{
	struct reader in = protobuf_inside(f);
	struct protobuf_field g;

	memset(to, 0, n * sizeof(*to));
	while (protobuf_next(&in, &g))
		if (g.number < n && g.wire != PROTOBUF_BYTES)
			to[g.number] = g.value;
	return in.failed ? pprofwire_damaged(w, f) : 0;
}
