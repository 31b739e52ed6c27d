/*
 * fuzz_trace.c - Chrome traces and X Layer's trace.log as marks, and lines of samply's marker files.
 *
 * A mark does not end before it begins, lies in the recording, and there are no more of them than is said. Lines of a
 * marker file are the same, however many bytes of it are read at a time.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "import/trace/tracemarks.h"
#include "profile/profile.h"
#include "target/log/markerfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool good)
{
	if (!good)
		abort();
}

static void check_marks(const struct profile *p, const struct tracemarks_result *r)
{
	expect(p->marks.n == r->marks && r->marks <= TRACEMARKS_MOST && r->blocks <= r->marks);
	for (size_t i = 0; i < p->marks.n; i++) {
		const struct profile_mark *m = &p->marks.v[i];

		expect(m->start_ns <= m->end_ns && m->end_ns <= p->duration_ns && (!i || p->marks.v[i - 1].start_ns <= m->start_ns));
		expect(m->thread == PROFILE_NONE || m->thread < p->threads.n);
		expect(!(m->block.known & BLOCK_NUMBER) || m->block.number <= INT64_MAX);
	}
}

static void got_span(void *context, const struct marker_span *s)
{
	uint64_t *sum = context;

	expect(s->start_ns <= s->end_ns && *s->name && memchr(s->name, 0, sizeof(s->name)));
	*sum = *sum * 31 + s->start_ns + s->end_ns + strlen(s->name);
}

static uint64_t read_markers(int fd, size_t most)
{
	struct markerfile f;
	uint64_t sum = 0;

	markerfile_init(&f, dup(fd), false);
	while (markerfile_read(&f, most, got_span, &sum))
		;
	expect(f.bad <= f.lines);
	markerfile_done(&f);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct traceclock_facts facts = { .given = size % 2, .given_ns = -1000, .start_wall_ns = 1790000000000000000,
					  .start_mono_ns = 5000000000000, .duration_ns = 60000000000 };
	struct tracemarks_result result;
	struct err broken = { 0 };
	struct buf words = { 0 };
	struct profile *p;

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size || lseek(fd, 0, SEEK_SET))
		return 0;
	expect(read_markers(fd, 1 << 20) == read_markers(fd, 61));
	p = profile_new();
	p->duration_ns = facts.duration_ns;
	profile_add_process(p, &(struct profile_process){ .pid = 1 });
	profile_add_thread(p, &(struct profile_thread){ .tid = 7, .name = profile_string(p, "engine") });
	if (!tracemarks_add(p, fd, &facts, 0, &broken, &result, NULL)) {
		check_marks(p, &result);
		tracemarks_say(&result, "x", &words);
	}
	buf_done(&words);
	profile_free(p);
	return 0;
}
