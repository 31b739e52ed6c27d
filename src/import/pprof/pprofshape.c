#include "import/pprof/pprofshape.h"

#include "base/codec/protobuf.h"
#include "base/mem.h"

/* Skips the value of a field. Returns whether its length fits; *cut: it ends after what is there. */
static bool skip_value(const struct pprofshape *s, uint32_t number, unsigned wire, struct reader *r, uint64_t claimed, bool *cut,
		       unsigned *messages)
{
	const struct pprofshape *inside = s->inside[number];
	uint64_t length = wire == PROTOBUF_VARINT ? 0 : wire == PROTOBUF_FIXED64 ? 8 : wire == PROTOBUF_FIXED32 ? 4 : reader_uleb(r);

	if (wire == PROTOBUF_VARINT)
		reader_uleb(r);
	if (r->failed) {
		*cut = r->end < claimed;
		return *cut;
	}
	if (length > claimed - r->pos)
		return false;
	if (inside && wire == PROTOBUF_BYTES &&
	    !pprofshape_fits(inside, r->data + r->pos, MIN(length, r->end - r->pos), length, messages))
		return false;
	*cut = length > r->end - r->pos;
	if (!*cut)
		r->pos += length;
	return true;
}

bool pprofshape_fits(const struct pprofshape *s, const uint8_t *data, size_t n, uint64_t claimed, unsigned *ret_messages)
{
	struct reader r = reader_of(data, n);
	bool cut = false;

	(*ret_messages)++;
	while (reader_more(&r) && !cut) {
		uint64_t key = reader_uleb(&r);

		if (r.failed)
			return n < claimed;
		if (key >> 3 >= PPROFSHAPE_FIELDS || !(s->wires[key >> 3] & 1U << (key & 7)))
			return false;
		if (!skip_value(s, key >> 3, key & 7, &r, claimed, &cut, ret_messages))
			return false;
	}
	return true;
}
