#include "elf/packedsymbols.h"

#include <string.h>

#include "base/buf.h"
#include "base/vec.h"
#include "elf/symbols.h"

bool packedsymbols_open(const void *data, size_t n, struct packedsymbols *ret)
{
	const char *p = data;
	struct packedsymbols_header h;
	uint64_t need = sizeof(h);

	if (n < sizeof(h))
		return false;
	memcpy(&h, p, sizeof(h));
	/* 32-bit counts times small sizes: no overflow in 64 bits. */
	need += h.count * (sizeof(uint64_t) + sizeof(struct packedsymbols_span));
	need += h.call_count * sizeof(struct packedsymbols_call) + (uint64_t)h.string_bytes;
	if (need != n || !h.string_bytes || p[n - 1])
		return false;
	*ret = (struct packedsymbols){ .count = h.count, .call_count = h.call_count,
			       .string_bytes = h.string_bytes };
	p += sizeof(h);
	ret->addresses = (const uint64_t *)p;
	p += h.count * sizeof(uint64_t);
	ret->spans = (const struct packedsymbols_span *)p;
	p += h.count * sizeof(struct packedsymbols_span);
	ret->calls = (const struct packedsymbols_call *)p;
	p += h.call_count * sizeof(struct packedsymbols_call);
	ret->strings = p;
	for (uint32_t i = 0; i < h.count; i++) {
		const struct packedsymbols_span *s = &ret->spans[i];

		if (s->count > PACKEDSYMBOLS_MAX_DEPTH || s->first > h.call_count ||
		    s->count > h.call_count - s->first)
			return false;
	}
	for (uint32_t i = 0; i < h.call_count; i++) {
		const struct packedsymbols_call *c = &ret->calls[i];

		if (c->linkage >= h.string_bytes || c->name >= h.string_bytes || c->file >= h.string_bytes)
			return false;
	}
	return true;
}

bool packedsymbols_sorted(const struct packedsymbols *names)
{
	for (uint32_t i = 1; i < names->count; i++)
		if (names->addresses[i - 1] >= names->addresses[i])
			return false;
	return true;
}

bool packedsymbols_find(const struct packedsymbols *names, uint64_t address, uint32_t *ret_index)
{
	uint32_t low = vec_search(i, 0, names->count, names->addresses[i] < address);

	*ret_index = low;
	return low < names->count && names->addresses[low] == address;
}

uint32_t packedsymbols_calls(const struct packedsymbols *names, uint32_t i, struct symbols_call *out, uint32_t max)
{
	const struct packedsymbols_span *s = &names->spans[i];
	uint32_t n = MIN(s->count, max);

	for (uint32_t k = 0; k < n; k++) {
		const struct packedsymbols_call *c = &names->calls[s->first + k];

		out[k] = (struct symbols_call){ .linkage = names->strings + c->linkage,
						.name = names->strings + c->name,
						.file = names->strings + c->file, .line = c->line };
	}
	return n;
}

void packedsymbols_builder_init(struct packedsymbols_builder *b)
{
	*b = (struct packedsymbols_builder){ 0 };
	strtab_init(&b->strings);
}

void packedsymbols_builder_done(struct packedsymbols_builder *b)
{
	strtab_done(&b->strings);
	vec_done(&b->addresses);
	vec_done(&b->spans);
	vec_done(&b->calls);
}

void packedsymbols_builder_add(struct packedsymbols_builder *b, uint64_t address, const struct symbols_call *calls,
			       size_t count)
{
	count = MIN(count, (size_t)PACKEDSYMBOLS_MAX_DEPTH);
	vec_push(&b->addresses, address);
	vec_push(&b->spans, (struct packedsymbols_span){ b->calls.n, count });
	for (size_t i = 0; i < count; i++)
		vec_push(&b->calls, (struct packedsymbols_call){ .linkage = strtab_add(&b->strings, calls[i].linkage),
							 .name = strtab_add(&b->strings, calls[i].name),
							 .file = strtab_add(&b->strings, calls[i].file),
							 .line = calls[i].line });
}

bool packedsymbols_builder_pack(const struct packedsymbols_builder *b, struct buf *out)
{
	_cleanup_free_ uint32_t *offsets = mem_alloc(b->strings.n * sizeof(*offsets));
	struct packedsymbols_header h = { .count = b->addresses.n, .call_count = b->calls.n };
	uint64_t bytes = 0;

	for (size_t i = 0; i < b->strings.n; i++) {
		offsets[i] = bytes;
		bytes += strlen(strtab_get(&b->strings, i)) + 1;
		if (bytes > UINT32_MAX)
			return false;
	}
	if (b->addresses.n > UINT32_MAX || b->calls.n > UINT32_MAX)
		return false;
	h.string_bytes = bytes;
	buf_add(out, &h, sizeof(h));
	if (h.count) {
		buf_add(out, b->addresses.v, h.count * sizeof(*b->addresses.v));
		buf_add(out, b->spans.v, h.count * sizeof(*b->spans.v));
	}
	for (size_t i = 0; i < b->calls.n; i++) {
		const struct packedsymbols_call *c = &b->calls.v[i];
		struct packedsymbols_call packed = { offsets[c->linkage], offsets[c->name], offsets[c->file],
					     c->line };

		buf_add(out, &packed, sizeof(packed));
	}
	for (size_t i = 0; i < b->strings.n; i++) {
		const char *s = strtab_get(&b->strings, i);

		buf_add(out, s, strlen(s) + 1);
	}
	return true;
}
