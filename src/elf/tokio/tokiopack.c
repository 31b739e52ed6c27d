#include "elf/tokio/tokiopack.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/plain.h"
#include "elf/tokio/tokio.h"

struct packed_header {
	char version[32];
	uint64_t left_out;
	uint32_t count, spawn_count, string_bytes, zero;
};

struct packed_vtable {
	uint64_t address, poll, schedule, dealloc;
	uint32_t kind, named, id_offset, spawn_count;
	uint32_t name, zero; /* an offset among the strings */
};

struct packed_spawn {
	uint64_t address, offset;
	uint64_t cheap;
};

void tokio_pack(const struct tokio_program *p, struct buf *out)
{
	struct packed_header h = { .left_out = p->left_out, .count = p->count };
	struct buf strings = { 0 };
	size_t at = out->n;

	memcpy(h.version, p->version, sizeof(h.version));
	buf_add(out, &h, sizeof(h));
	for (size_t i = 0; i < p->count; i++) {
		const struct tokio_vtable *v = &p->vtables[i];
		struct packed_vtable packed = { v->address, v->poll, v->schedule, v->dealloc, v->kind, v->named, v->id_offset,
						v->spawn_count, strings.n, 0 };

		buf_add(out, &packed, sizeof(packed));
		buf_add(&strings, v->name, strlen(v->name) + 1);
		h.spawn_count += v->spawn_count;
	}
	for (size_t i = 0; i < p->count; i++)
		for (size_t k = 0; k < p->vtables[i].spawn_count; k++) {
			const struct tokio_spawn *s = &p->vtables[i].spawns[k];

			buf_add(out, &(struct packed_spawn){ s->address, s->offset, s->cheap }, sizeof(struct packed_spawn));
		}
	h.string_bytes = strings.n;
	memcpy(out->data + at, &h, sizeof(h));
	buf_add(out, strings.data, strings.n);
	buf_done(&strings);
}

static bool unpack_vtable(const struct packed_vtable *from, const char *strings, const struct packed_header *h,
			  const char **spawns, uint64_t *spawns_left, struct tokio_vtable *ret)
{
	if (from->kind >= TOKIO_KINDS || from->spawn_count > TOKIO_SPAWNS || from->spawn_count > *spawns_left ||
	    from->name >= h->string_bytes || strlen(strings + from->name) >= TOKIO_NAME)
		return false;
	*ret = (struct tokio_vtable){ .address = from->address, .poll = from->poll, .schedule = from->schedule,
				      .dealloc = from->dealloc, .named = from->named, .kind = from->kind,
				      .id_offset = from->id_offset, .spawn_count = from->spawn_count };
	ret->name = plain_in_place(mem_strdup(strings + from->name));
	ret->spawns = mem_alloc(from->spawn_count * sizeof(*ret->spawns));
	for (uint32_t k = 0; k < from->spawn_count; k++) {
		struct packed_spawn s;

		memcpy(&s, *spawns, sizeof(s));
		*spawns += sizeof(s);
		ret->spawns[k] = (struct tokio_spawn){ s.address, s.offset, s.cheap != 0 };
	}
	*spawns_left -= from->spawn_count;
	return true;
}

bool tokio_unpack(const char *data, size_t n, struct tokio_program *ret)
{
	const char *spawns, *strings;
	struct packed_header h;
	uint64_t spawns_left, last = 0;

	*ret = (struct tokio_program){ 0 };
	if (n < sizeof(h))
		return false;
	memcpy(&h, data, sizeof(h));
	if (h.count > TOKIO_VTABLES || n != sizeof(h) + h.count * sizeof(struct packed_vtable) +
					       h.spawn_count * sizeof(struct packed_spawn) + (uint64_t)h.string_bytes ||
	    (h.string_bytes ? data[n - 1] != 0 : h.count != 0))
		return false;
	data += sizeof(h);
	spawns = data + h.count * sizeof(struct packed_vtable);
	strings = spawns + h.spawn_count * sizeof(struct packed_spawn);
	spawns_left = h.spawn_count;
	ret->left_out = h.left_out;
	memcpy(ret->version, h.version, sizeof(ret->version) - 1);
	plain_in_place(ret->version);
	ret->vtables = mem_alloc(h.count * sizeof(*ret->vtables));
	for (uint32_t i = 0; i < h.count; i++) {
		struct packed_vtable v;

		memcpy(&v, data + i * sizeof(v), sizeof(v));
		if ((i && v.address <= last) || !unpack_vtable(&v, strings, &h, &spawns, &spawns_left, &ret->vtables[i])) {
			tokio_done(ret);
			return false;
		}
		last = v.address;
		ret->count++;
	}
	return true;
}
