/*
 * perfettoseq.h - a sequence of packets of a Perfetto trace, with the texts and call stacks that its packets refer to.
 *
 * A sequence has tables of its own: a text, a frame or a call stack is written once, in the packet that needs it first, and has
 * a number from then on. What a packet needs is asked for before it is closed.
 *
 *	struct perfettoseq seq;
 *	perfettoseq_init(&seq, &out, 1, &calls);
 *	size_t packet = perfettoseq_open(&seq, time_ns);
 *	size_t event = protobuf_open(&out, PERFETTO_TRACK_EVENT);
 *	protobuf_put_uint(&out, 10, perfettoseq_text(&seq, PERFETTO_EVENT_NAME, "lock"));
 *	protobuf_close(&out, event);
 *	perfettoseq_close(&seq, packet);
 *	perfettoseq_done(&seq);
 *
 * Names are made plain text on the way.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"

struct stackcalls;

/* Fields of a packet. */
enum {
	PERFETTO_CLOCK_SNAPSHOT = 6,
	PERFETTO_TIMESTAMP = 8,
	PERFETTO_SEQUENCE = 10,
	PERFETTO_TRACK_EVENT = 11,
	PERFETTO_INTERNED = 12,
	PERFETTO_FLAGS = 13,
	PERFETTO_DEFAULTS = 59,
	PERFETTO_TRACK = 60,
	PERFETTO_SAMPLE = 66,
};

/* Texts that are referred to by a number. */
enum perfetto_text {
	PERFETTO_CATEGORY,
	PERFETTO_EVENT_NAME,
	PERFETTO_ANNOTATION_NAME,
	PERFETTO_ANNOTATION_TEXT,
	PERFETTO_FUNCTION,
	PERFETTO_PATH,
	PERFETTO_SOURCE,
	PERFETTO_TEXTS,
};

#define PERFETTO_UNTIMED UINT64_MAX

struct perfettoseq {
	struct buf *out;
	uint32_t id; /* from 1 */
	/* The rest is private. */
	bool begun;
	struct stackcalls *calls;
	struct strtab texts[PERFETTO_TEXTS];
	struct map frames, stacks, modules; /* to their numbers */
	struct buf interned; /* for the packet that is open */
};

/* calls outlive it; other sequences may use the same. */
void perfettoseq_init(struct perfettoseq *s, struct buf *out, uint32_t id, struct stackcalls *calls);
void perfettoseq_done(struct perfettoseq *s);
/* time_ns: PERFETTO_UNTIMED for a packet that has none. */
size_t perfettoseq_open(struct perfettoseq *s, uint64_t time_ns);
void perfettoseq_close(struct perfettoseq *s, size_t packet);
/* The number of a text. */
uint64_t perfettoseq_text(struct perfettoseq *s, enum perfetto_text kind, const char *text);
/* The number of a stack of the profile; 0: it is empty. */
uint64_t perfettoseq_stack(struct perfettoseq *s, uint32_t stack);
/* A field with a name, made plain text. */
void perfettoseq_put_name(struct buf *b, uint32_t field, const char *name);
