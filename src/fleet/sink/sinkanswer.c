#include "fleet/sink/sinkanswer.h"

#include <errno.h>

#include "base/codec/protobuf.h"

/* ExportProfilesPartialSuccess. */
static bool take_partial(const struct protobuf_field *outer, struct sinkanswer_partial *ret)
{
	struct reader r = protobuf_inside(outer);
	struct protobuf_field f;

	while (protobuf_next(&r, &f)) {
		if (f.number == 1 && f.wire == PROTOBUF_VARINT)
			ret->rejected = f.value;
		if (f.number == 2 && f.wire == PROTOBUF_BYTES) {
			ret->message = (const char *)f.data;
			ret->message_n = f.n;
		}
	}
	return !r.failed;
}

int sinkanswer_partial(const char *text, size_t n, struct sinkanswer_partial *ret)
{
	struct reader r = reader_of(text, n);
	struct protobuf_field f;

	*ret = (struct sinkanswer_partial){ .message = "" };
	while (protobuf_next(&r, &f))
		if (f.number == 1 && (f.wire != PROTOBUF_BYTES || !take_partial(&f, ret)))
			return -EBADMSG;
	return r.failed ? -EBADMSG : 0;
}
