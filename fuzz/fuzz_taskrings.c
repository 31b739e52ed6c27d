/*
 * fuzz_taskrings.c - the reader of rings that hooks in a target write, and the target's own threads, too.
 *
 * The input is a list of what becomes of them: a byte says what, one which of eight rings, then 32 bytes of an entry or 8 of a
 * field. Whatever it is, events come in order, within the recording, and each look ends.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collect/task/blob/task.h"
#include "collect/task/taskrings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RINGS = 8, ROOM = 64, BEGIN = 1000, MARGIN = 50, PATIENCE = 5000 };

struct input {
	const uint8_t *data;
	size_t size;
};

static uint64_t next(struct input *in, size_t n)
{
	uint64_t value = 0;

	n = n < in->size ? n : in->size;
	memcpy(&value, in->data, n);
	in->data += n;
	in->size -= n;
	return value;
}

static uint64_t read_all(struct taskrings *r, uint64_t now, uint64_t last)
{
	struct taskrings_event got[ROOM];
	size_t n, total = 0;

	taskrings_look(r, now, MARGIN, PATIENCE, false);
	while ((n = taskrings_read(r, got, ROOM))) {
		total += n;
		for (size_t i = 0; i < n; i++) {
			if (got[i].over < last || got[i].over > now || got[i].ticks > got[i].over - BEGIN ||
			    got[i].awaited > got[i].over - BEGIN || got[i].number >= TASK_VTABLES ||
			    got[i].waker_number >= TASK_VTABLES || (got[i].ticket && !got[i].interval))
				abort();
			last = got[i].over;
		}
		if (total > (size_t)RINGS * TASK_EVENTS)
			abort();
	}
	taskrings_polls(r, now, got, ROOM);
	taskrings_lost(r);
	return last;
}

static void put_entry(struct task_shared *s, uint32_t ring, struct input *in)
{
	struct task_thread *t = &s->threads[ring];
	struct task_event *e = &s->events[ring][t->head++ & (TASK_EVENTS - 1)];

	e->tsc = next(in, 8);
	e->word = next(in, 8);
	e->task = next(in, 8);
	e->more = next(in, 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct task_shared *s;
	struct input in = { data, size };
	struct taskrings *r;
	uint64_t now = BEGIN, last = BEGIN;

	if (!s)
		s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s == MAP_FAILED)
		abort();
	for (uint32_t i = 0; i < RINGS; i++)
		s->threads[i] = (struct task_thread){ 0 };
	r = taskrings_new(s);
	taskrings_begin(r, now);
	while (in.size) {
		uint32_t what = next(&in, 1), ring = next(&in, 1) % RINGS;
		struct task_thread *t = &s->threads[ring];

		switch (what) {
		case 'b':
			t->busy = next(&in, 1);
			break;
		case 'h':
			t->head = next(&in, 8);
			break;
		case 't':
			t->tail = next(&in, 8);
			break;
		case 'p':
			t->current = next(&in, 8);
			t->word = next(&in, 8);
			t->began = next(&in, 8);
			break;
		case 'r':
			now += next(&in, 2);
			last = read_all(r, now, last);
			break;
		default:
			put_entry(s, ring, &in);
		}
	}
	now += MARGIN;
	read_all(r, now, last);
	taskrings_free(r);
	return 0;
}
