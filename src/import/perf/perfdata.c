#include "import/perf/perfdata.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/stream.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "import/import.h"
#include "import/perf/perfdatafacts.h"
#include "import/perf/perfdataevents.h"
#include "import/perf/perfdatamodule.h"
#include "import/perf/perfdataqueue.h"
#include "import/perf/perfdatareader.h"
#include "import/perf/perfdatasample.h"
#include "import/perf/perfdatasched.h"
#include "import/perf/perfdataspace.h"
#include "import/perf/perfdatastack.h"
#include "profile/schedwaits.h"
#include "profile/keys.h"
#include "profile/profile.h"

/* Records that perf writes itself, rather than the kernel. */
enum {
	RECORD_USER_TYPES = 64,
	RECORD_ATTR = 64,
	RECORD_TRACING_DATA = 66,
	RECORD_BUILD_ID = 67,
	RECORD_FINISHED_ROUND = 68,
	RECORD_AUXTRACE = 71,
	RECORD_EVENT_UPDATE = 78,
	RECORD_FEATURE = 80,
	TRACING_DATA_MOST = 64 << 20,
	WHOLE_MOST = 1 << 30,      /* of a packed file: its sections are at its end */
	MISC_MMAP_BUILD_ID = 1 << 14,
	KSYMBOL_GONE = 1,
};

static const uint64_t odd_time = 1ULL << 63; /* from here on: made up, "at the end" */

struct perfdata {
	struct profile *p;
	struct perfdatafacts facts;
	struct perfdatareader reader;
	struct perfdataqueue queue;
	struct perfdatamodules modules;
	struct perfdataspaces spaces;
	struct perfdatastack stack;
	struct schedwaits waits;
	struct perfdataevents events;
	uint64_t first, last; /* times of samples; first 0: there was none */
	uint64_t written_ns;  /* when the file was written */
	uint64_t ignored;
	struct err *err;
};

bool perfdata_probe(const char *data, size_t n, bool whole)
{
	/* Also what cannot be read, for a sentence that says so. */
	return n >= PERFDATA_MAGIC_BYTES && (!memcmp(data, perfdata_magic, PERFDATA_MAGIC_BYTES) ||
					     !memcmp(data, "2ELIFREP", PERFDATA_MAGIC_BYTES) || !memcmp(data, "PERFFILE", PERFDATA_MAGIC_BYTES));
}

/* Time of the recording. */
static uint64_t since_start(const struct perfdata *d, uint64_t time)
{
	if (time >= odd_time)
		time = d->last;
	return d->first && time > d->first ? time - d->first : 0;
}

/* --- one record --- */

/* The text at the end of a record, before its trailer. Caller frees. */
static char *text_of(const struct perfdataheader *h, size_t at)
{
	return at < h->size ? mem_strndup((const char *)h + at, strnlen((const char *)h + at, h->size - at)) : mem_strdup("");
}

struct mmap_record {
	uint32_t pid, tid;
	uint64_t start, size, offset;
};

/* Code of the kernel, which perf itself describes: "[kernel.kallsyms]_text", "/lib/modules/…/ext4.ko". */
static void got_kernel_map(struct perfdata *d, const struct mmap_record *m, const char *path)
{
	struct perfdatamap map = { .start = m->start, .end = m->start + m->size, .bias = m->start, .resolved = true };

	/* Where the kernel hides its addresses there are none. */
	if (!(m->start >> 63))
		return;
	if (map.end < map.start)
		map.end = UINT64_MAX;
	map.module = perfdatamodules_kernel(&d->modules, path);
	perfdataspaces_map(&d->spaces, &d->spaces.kernel, &map);
}

static void got_map(struct perfdata *d, const struct perfdataheader *h)
{
	struct reader r = reader_of(h, h->size);
	_cleanup_free_ char *path = NULL;
	struct perfdataspace *space;
	struct mmap_record m;
	const uint8_t *facts = NULL, *body;
	uint8_t build_size = 0;

	reader_skip(&r, sizeof(*h));
	body = reader_bytes(&r, sizeof(m));
	if (h->type == PERF_RECORD_MMAP2) {
		uint32_t protection;

		facts = reader_bytes(&r, 24);
		protection = reader_u32(&r);
		reader_u32(&r);
		if (facts && h->misc & MISC_MMAP_BUILD_ID)
			build_size = MIN(facts[0], 20);
		if (!(protection & 4))
			return;
	} else if (h->misc & PERF_RECORD_MISC_MMAP_DATA) {
		return;
	}
	if (r.failed) {
		d->ignored++;
		return;
	}
	memcpy(&m, body, sizeof(m));
	path = text_of(h, r.pos);
	if (m.pid == UINT32_MAX || (h->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL) {
		got_kernel_map(d, &m, path);
		return;
	}
	if (m.size > UINT64_MAX - m.start)
		return;
	space = perfdataspaces_of(&d->spaces, m.pid);
	perfdataspaces_map(&d->spaces, space, &(struct perfdatamap){
		.start = m.start, .end = m.start + m.size, .offset = m.offset,
		.module = perfdatamodules_find(&d->modules, path, build_size ? facts + 4 : NULL, build_size, space->process) });
}

static void got_comm(struct perfdata *d, const struct perfdataheader *h, uint64_t time)
{
	struct reader r = reader_of(h, h->size);
	_cleanup_free_ char *name = NULL;
	uint32_t pid, tid;

	reader_skip(&r, sizeof(*h));
	pid = reader_u32(&r);
	tid = reader_u32(&r);
	name = text_of(h, r.pos);
	if (!r.failed)
		perfdataspaces_comm(&d->spaces, pid, tid, name, h->misc & PERF_RECORD_MISC_COMM_EXEC, since_start(d, time));
}

static void got_task(struct perfdata *d, const struct perfdataheader *h, uint64_t time)
{
	struct reader r = reader_of(h, h->size);
	uint32_t pid, parent_pid, tid, parent_tid;

	reader_skip(&r, sizeof(*h));
	pid = reader_u32(&r);
	parent_pid = reader_u32(&r);
	tid = reader_u32(&r);
	parent_tid = reader_u32(&r);
	if (r.failed)
		return;
	if (h->type == PERF_RECORD_FORK)
		perfdataspaces_fork(&d->spaces, pid, tid, parent_pid, parent_tid, since_start(d, time));
	else
		perfdataspaces_exit(&d->spaces, pid, tid, since_start(d, time));
}

/* A function that the kernel made at run time, as those of BPF programs. */
static void got_symbol(struct perfdata *d, const struct perfdataheader *h)
{
	struct reader r = reader_of(h, h->size);
	_cleanup_free_ char *name = NULL;
	struct perfdatamap map = { .resolved = true };
	uint16_t flags;

	reader_skip(&r, sizeof(*h));
	map.start = reader_u64(&r);
	map.end = map.start + reader_u32(&r);
	reader_u16(&r);
	flags = reader_u16(&r);
	name = text_of(h, r.pos);
	if (r.failed || map.end <= map.start)
		return;
	map.name = profile_string(d->p, name);
	if (flags & KSYMBOL_GONE)
		perfdataspaces_unmap(&d->spaces.kernel, map.start, map.end);
	else
		perfdataspaces_map(&d->spaces, &d->spaces.kernel, &map);
}

static void got_lost(struct perfdata *d, const struct perfdataheader *h)
{
	struct reader r = reader_of(h, h->size);

	reader_skip(&r, sizeof(*h) + (h->type == PERF_RECORD_LOST ? 8 : 0));
	profile_count(d->p, KEY_SAMPLES_LOST, reader_u64(&r) & INT64_MAX);
}

/* The thread that comes to a CPU is in the trailer. */
static void got_switch(struct perfdata *d, const struct perfdataattr *a, const struct perfdataheader *h, uint64_t time)
{
	size_t trailer = perfdataattr_trailer(a);
	uint32_t ids[2];

	if (h->misc & PERF_RECORD_MISC_SWITCH_OUT || !(a->attr.sample_type & PERF_SAMPLE_TID) || !trailer || trailer + sizeof(*h) > h->size)
		return;
	memcpy(ids, (const char *)h + h->size - trailer, sizeof(ids));
	schedwaits_came(&d->waits, ids[1], perfdataspaces_known_thread(&d->spaces, ids[1]), since_start(d, time));
}

/* --- a sample --- */

static int too_much(struct perfdata *d, uint64_t offset)
{
	return err_set(d->err, ERANGE, "byte %llu: the periods of its samples add up to more than can be counted", (unsigned long long)offset);
}

/* The samples of a group that was read at once: each of its events has counted on since it was read last. */
static int add_group(struct perfdata *d, const struct perfdatasample *x, const struct profile_sample *sample, uint64_t offset)
{
	for (uint64_t i = 0; i < x->group.count; i++) {
		uint64_t value = perfdatasample_word(x->group.values, i * x->group.stride);
		uint64_t id = perfdatasample_word(x->group.values, i * x->group.stride + 1);
		const uint64_t *index = map_get(&d->facts.attrs.ids, id);
		uint64_t *before = map_put(&d->facts.attrs.reads, id, 0), by = value > *before ? value - *before : 0;
		struct profile_sample s = *sample;

		*before = value;
		if (!index || !by)
			continue;
		s.event = d->facts.attrs.list.v[*index].event;
		s.value = by;
		if (s.event != PROFILE_NONE && !perfdataevents_add(&d->events, &s))
			return too_much(d, offset);
	}
	return 0;
}

static int got_sample(struct perfdata *d, const struct perfdataattr *a, const struct perfdatarecord *record)
{
	struct profile_sample s = { 0 };
	struct perfdatasample x;

	if (!perfdatasample_parse(a, record->h, &x)) {
		d->ignored++;
		return 0;
	}
	if (x.time && x.time < odd_time) {
		if (!d->first)
			d->first = x.time;
		d->last = MAX(d->last, x.time);
	}
	/* A thread that has just ended has no number any more, but the switch away from it knows it. */
	if (a->kind == SCHED_SWITCH && x.tid == UINT32_MAX)
		perfdatasched_fix_ended(&d->spaces, a, &x);
	/* A pipe may say it after its first records. */
	d->modules.machine = d->facts.arch && !strcmp(d->facts.arch, "aarch64") ? EM_AARCH64 : EM_X86_64;
	d->stack.other_machine = d->facts.arch && d->modules.machine == EM_X86_64 && strcmp(d->facts.arch, "x86_64");
	s.time_ns = since_start(d, x.time);
	s.thread = perfdataspaces_thread(&d->spaces, x.pid, x.tid, s.time_ns);
	s.stack = perfdatastack_of(&d->stack, a, &x);
	s.value = x.period;
	s.event = a->event;
	if (a->kind != SCHED_NONE)
		perfdatasched_sample(&d->waits, &d->spaces, a, &x, s.thread, s.stack, s.time_ns);
	if (x.group.count)
		return add_group(d, &x, &s, record->offset);
	if (s.value && s.event != PROFILE_NONE && !perfdataevents_add(&d->events, &s))
		return too_much(d, record->offset);
	return 0;
}

/* In the order of time. */
static int got(void *context, const struct perfdatarecord *record, uint64_t time)
{
	struct perfdata *d = context;
	const struct perfdataheader *h = record->h;
	const struct perfdataattr *a = perfdataattrs_of(&d->facts.attrs, h);

	switch (h->type) {
	case PERF_RECORD_SAMPLE:
		perfdataevents_prepare(&d->events, &d->facts, &d->waits);
		a = perfdataattrs_of(&d->facts.attrs, h);
		if (a)
			return got_sample(d, a, record);
		d->ignored++;
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		got_map(d, h);
		break;
	case PERF_RECORD_COMM:
		got_comm(d, h, time);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		got_task(d, h, time);
		break;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		got_lost(d, h);
		break;
	case PERF_RECORD_KSYMBOL:
		got_symbol(d, h);
		break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		if (a)
			got_switch(d, a, h, time);
		break;
	}
	return 0;
}

/* --- all records --- */

static int got_tracing_data(struct perfdata *d, const struct perfdatarecord *record)
{
	struct reader r = reader_of(record->h, record->h->size);
	_cleanup_(buf_done) struct buf text = { 0 };
	uint32_t n;
	int result;

	reader_skip(&r, sizeof(*record->h));
	n = reader_u32(&r);
	if (n > TRACING_DATA_MOST)
		return err_set(d->err, EINVAL, "byte %llu: formats of tracepoints of %u bytes", (unsigned long long)record->offset, n);
	result = perfdatareader_after(&d->reader, (n + 7ULL) & ~7ULL, &text, d->err);
	if (!result)
		perfdatatrace_read(&d->facts.trace, text.data, MIN(n, text.n));
	return result;
}

static int got_auxtrace(struct perfdata *d, const struct perfdatarecord *record)
{
	struct reader r = reader_of(record->h, record->h->size);

	reader_skip(&r, sizeof(*record->h));
	d->ignored++;
	return perfdatareader_after(&d->reader, reader_u64(&r), NULL, d->err);
}

/* Records of perf itself. They count when they come: a pipe's header is such. */
static int got_own(struct perfdata *d, const struct perfdatarecord *record)
{
	const struct perfdataheader *h = record->h;
	uint64_t number;

	switch (h->type) {
	case RECORD_ATTR:
		if (!perfdatafacts_attr_record(&d->facts, h))
			return err_set(d->err, EINVAL, "byte %llu: the description of an event makes no sense",
				       (unsigned long long)record->offset);
		return 0;
	case RECORD_TRACING_DATA:
		return got_tracing_data(d, record);
	case RECORD_AUXTRACE:
		return got_auxtrace(d, record);
	case RECORD_BUILD_ID:
		perfdatafacts_build_record(&d->facts, h);
		return 0;
	case RECORD_FINISHED_ROUND:
		return perfdataqueue_round(&d->queue);
	case RECORD_EVENT_UPDATE:
		perfdatafacts_update_record(&d->facts, h);
		return 0;
	case RECORD_FEATURE:
		if (h->size < sizeof(*h) + 8)
			return 0;
		memcpy(&number, h + 1, 8);
		if (number < UINT32_MAX)
			perfdatafacts_feature(&d->facts, number, (const char *)(h + 1) + 8, h->size - sizeof(*h) - 8);
		return 0;
	}
	return 0;
}

static int read_records(struct perfdata *d)
{
	struct perfdatarecord record;
	int r;

	while ((r = perfdatareader_next(&d->reader, &record, d->err)) > 0) {
		if (record.h->type >= RECORD_USER_TYPES) {
			r = got_own(d, &record);
		} else {
			const struct perfdataattr *a = perfdataattrs_of(&d->facts.attrs, record.h);

			r = perfdataqueue_add(&d->queue, &record, a ? perfdataattr_time(a, record.h) : 0);
		}
		if (r)
			return r;
	}
	return r ? r : perfdataqueue_end(&d->queue);
}

/* --- the profile --- */

/* Only one process: that is what was recorded. */
static uint32_t target_of(const struct perfdata *d, const char *name)
{
	const struct profile *p = d->p;
	uint32_t process = PROFILE_NONE;

	for (size_t i = 0; i < p->samples.n; i++) {
		uint32_t x = p->threads.v[p->samples.v[i].thread].process;

		if (process != PROFILE_NONE && x != process)
			return profile_string(d->p, name);
		process = x;
	}
	return process != PROFILE_NONE && p->processes.v[process].name ? p->processes.v[process].name : profile_string(d->p, name);
}

static void finish(struct perfdata *d, const char *name)
{
	struct profile *p = d->p;

	p->duration_ns = d->last - d->first;
	schedwaits_end(&d->waits, p->duration_ns);
	p->target = target_of(d, name);
	p->host = profile_string(p, d->facts.host ? d->facts.host : "");
	p->kernel = profile_string(p, d->facts.release ? d->facts.release : "");
	if (d->facts.clock_wall_ns && d->first)
		p->start_wall_ns = d->facts.clock_wall_ns + (d->first - d->facts.clock_ns);
	else if (d->written_ns > p->duration_ns)
		p->start_wall_ns = d->written_ns - p->duration_ns;
	p->finished = true;
	if (d->ignored)
		profile_count(p, KEY_IMPORT_RECORDS_IGNORED, d->ignored);
	if (d->queue.late)
		profile_count(p, KEY_IMPORT_RECORDS_LATE, d->queue.late);
	if (d->waits.unended)
		profile_count(p, KEY_IMPORT_WAITS_UNENDED, d->waits.unended);
	if (d->reader.cut)
		profile_count(p, KEY_IMPORT_CUT, 1);
}

/* A pipe's header is only the magic number; its size tells. */
static int begin(struct perfdata *d, const struct import_input *in)
{
	const char *start;
	ssize_t n = stream_peek(in->stream, &start, d->err);
	uint64_t head;
	char skipped[PERFDATA_PIPE_BYTES];
	int fd, r;

	if (n < 0)
		return n;
	if (n >= PERFDATA_MAGIC_BYTES && !memcmp(start, "2ELIFREP", PERFDATA_MAGIC_BYTES))
		return err_set(d->err, ENOTSUP, "it was recorded on a big-endian machine, which is not supported: "
			       "run `perf script` there, and import its text");
	if (n >= PERFDATA_MAGIC_BYTES && !memcmp(start, "PERFFILE", PERFDATA_MAGIC_BYTES))
		return err_set(d->err, ENOTSUP, "it is of the first version of the format, from before Linux 3.2: "
			       "run `perf script`, and import its text");
	if (n < PERFDATA_PIPE_BYTES || memcmp(start, perfdata_magic, PERFDATA_MAGIC_BYTES))
		return err_set(d->err, EINVAL, "byte 0: its header is cut or damaged");
	memcpy(&head, start + PERFDATA_MAGIC_BYTES, sizeof(head));
	if (head == PERFDATA_PIPE_BYTES) {
		if (stream_read(in->stream, skipped, sizeof(skipped), d->err) != sizeof(skipped))
			return err_set(d->err, EINVAL, "byte 0: its header is cut");
		perfdatareader_init_stream(&d->reader, in->stream);
		return 0;
	}
	r = stream_seekable(in->stream, WHOLE_MOST, &fd, d->err);
	if (!r)
		r = perfdatafacts_read(&d->facts, fd, d->err);
	if (!r)
		perfdatareader_init_fd(&d->reader, fd, d->facts.data_offset, d->facts.data_end);
	return r;
}

static void prepare(struct perfdata *d, const struct import_input *in)
{
	struct profile *p = d->p;

	d->written_ns = stream_written_ns(in->stream);
	d->queue.got = got;
	d->queue.context = d;
	d->modules.p = d->spaces.p = d->stack.p = d->events.p = p;
	d->modules.options = &in->options;
	d->modules.facts = &d->facts;
	d->modules.recorded_wall_ns = d->written_ns;
	d->spaces.modules = d->stack.modules = &d->modules;
	d->stack.spaces = &d->spaces;
	schedwaits_init(&d->waits, p);
}

int perfdata_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	struct perfdata *d = mem_alloc(sizeof(*d));
	int r;

	d->err = err;
	d->p = profile_new();
	d->reader.fd = -1;
	r = begin(d, in);
	if (!r) {
		prepare(d, in);
		r = read_records(d);
	}
	if (!r && !d->facts.attrs.list.n)
		r = err_set(err, EINVAL, "it has no event");
	if (!r) {
		perfdataevents_prepare(&d->events, &d->facts, &d->waits);
		finish(d, in->name);
		*ret = d->p;
		d->p = NULL;
	}
	perfdataevents_done(&d->events);
	schedwaits_done(&d->waits);
	perfdatastack_done(&d->stack);
	perfdataspaces_done(&d->spaces);
	perfdatamodules_done(&d->modules);
	perfdataqueue_done(&d->queue);
	perfdatareader_done(&d->reader);
	perfdatafacts_done(&d->facts);
	profile_free(d->p);
	free(d);
	return r;
}
