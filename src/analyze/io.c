#include "analyze/io.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/select.h"
#include "analyze/tree/ownfunction.h"
#include "base/err.h"
#include "base/map.h"
#include "profile/keys.h"
#include "profile/profile.h"

enum way { READ, WRITE, SYNC, FAILED, WAYS };
static const char *const events[WAYS] = { "read", "write", "sync", "io-error" };
static const char *const units[WAYS] = { "bytes", "bytes", "ns", "count" };

struct builder {
	const struct profile *p;
	struct io_figures *f;
	struct map functions; /* identity to row */
	struct map files;     /* frame to row */
};

uint64_t io_percentile(const uint64_t counts[64], double share)
{
	uint64_t all = 0, below = 0;
	double want;

	for (int i = 0; i < 64; i++)
		all += counts[i];
	want = share * all;
	for (int i = 0; i < 64; i++) {
		/* The last step has no double that is its end. */
		double low = i ? (double)(1ULL << i) : 0, high = i < 63 ? 2.0 * (1ULL << i) : low;

		if (counts[i] && below + counts[i] >= want)
			return low + (high - low) * (want - below) / counts[i];
		below += counts[i];
	}
	return 0;
}

static struct io_latency latency_of(const struct profile_histogram *h)
{
	struct io_latency l = { .p50_ns = io_percentile(h->counts, 0.5), .p90_ns = io_percentile(h->counts, 0.9),
				.p99_ns = io_percentile(h->counts, 0.99),
				.max_ns = io_percentile(h->counts, 1), .steps = h->counts };

	for (int i = 0; i < 64; i++)
		l.count += h->counts[i];
	return l;
}

static const struct profile_histogram *find_histogram(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->histograms.n; i++)
		if (!strcmp(profile_str(p, p->histograms.v[i].name), name))
			return &p->histograms.v[i];
	return NULL;
}

/* --- by function and file: from the samples --- */

static void add(struct io_row *row, enum way way, uint64_t value, uint64_t calls)
{
	switch (way) {
	case READ:
		row->read_bytes += value;
		row->read_calls += calls;
		break;
	case WRITE:
		row->write_bytes += value;
		row->write_calls += calls;
		break;
	case SYNC:
		row->sync_ns += value;
		row->sync_calls += calls;
		break;
	default:
		row->errors += value;
	}
}

static struct io_row *function_row(struct builder *b, uint32_t stack)
{
	struct idents *t = &b->f->idents;
	bool note = stack && b->p->frames.v[b->p->stacks.v[stack].frame].kind == FRAME_NOTE;
	uint32_t site = ownfunction_of_stack(t, note ? b->p->stacks.v[stack].parent : stack);
	uint64_t *row;

	if (site == OWNFUNCTION_NONE)
		site = idents_add(t, "[no stack]", "", IDENT_UNNAMED);
	row = map_put(&b->functions, site, b->f->functions.n);
	if (*row == b->f->functions.n)
		vec_push(&b->f->functions,
			 (struct io_row){ .name = t->list.v[site].name, .module = t->list.v[site].module });
	return &b->f->functions.v[*row];
}

/* The leaf of a stack of these events is a note: the file. */
static struct io_row *file_row(struct builder *b, uint32_t stack)
{
	uint32_t frame = stack ? b->p->stacks.v[stack].frame : PROFILE_NONE;
	bool note = frame != PROFILE_NONE && b->p->frames.v[frame].kind == FRAME_NOTE;
	uint64_t *row = map_put(&b->files, note ? frame : PROFILE_NONE, b->f->files.n);

	if (*row == b->f->files.n) {
		const char *name = "[file not known]";
		uint32_t n, id;

		if (note) {
			id = idents_of_frame(&b->f->idents, frame, &n)[0];
			name = b->f->idents.list.v[id].name;
		}
		vec_push(&b->f->files, (struct io_row){ .name = name, .module = "" });
	}
	return &b->f->files.v[*row];
}

static bool find_event(const struct profile *p, enum way way, uint32_t *ret)
{
	*ret = profile_find_event(p, events[way], units[way]);
	return *ret != PROFILE_NONE;
}

/* The selection chooses threads and stacks; only the sample itself has its number of calls. */
static void add_event(struct builder *b, enum way way, const struct select_options *o)
{
	const struct profile *p = b->p;
	struct select_options own = *o;
	struct selection s = { 0 };
	struct map picked = { 0 };
	struct err err = { 0 };

	if (!find_event(p, way, &own.event) || selection_make(p, &own, &s, &err) < 0)
		goto out;
	for (size_t i = 0; i < s.entries.n; i++)
		map_put(&picked, map_pair(s.entries.v[i].thread, s.entries.v[i].stack), 1);
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *x = &p->samples.v[i];
		uint64_t calls = x->count ? x->count : 1;

		if (x->event != own.event || x->time_ns < o->from_ns || (o->to_ns && x->time_ns >= o->to_ns) ||
		    !map_get(&picked, map_pair(x->thread, x->stack)))
			continue;
		add(&b->f->all, way, x->value, calls);
		add(function_row(b, x->stack), way, x->value, calls);
		add(file_row(b, x->stack), way, x->value, calls);
	}
out:
	map_done(&picked);
	selection_done(&s);
}

static int compare_rows(const void *a, const void *b)
{
	const struct io_row *x = a, *y = b;
	uint64_t bytes_x = x->read_bytes + x->write_bytes, bytes_y = y->read_bytes + y->write_bytes;
	uint64_t calls_x = x->read_calls + x->write_calls, calls_y = y->read_calls + y->write_calls;

	return ORDER(bytes_y, bytes_x) ?: ORDER(y->sync_ns, x->sync_ns) ?: ORDER(calls_y, calls_x) ?:
	       strcmp(x->name, y->name);
}

/* --- by operation and disk: from the counters --- */

static struct io_latency latency(const struct profile *p, const char *family, const char *which)
{
	_cleanup_free_ char *key = key_of(family, which);
	const struct profile_histogram *h = find_histogram(p, key);

	return h ? latency_of(h) : (struct io_latency){ 0 };
}

static int compare_operations(const void *a, const void *b)
{
	const struct io_operation *x = a, *y = b;

	return x->calls != y->calls ? (x->calls < y->calls ? 1 : -1) : strcmp(x->name, y->name);
}

static void add_operations(struct io_figures *f, const struct profile *p)
{
	for (size_t i = 0; i < p->counters.n; i++) {
		_cleanup_free_ char *name = key_which(KEY_IO_CALLS_OF, profile_str(p, p->counters.v[i].name));
		uint32_t id;

		if (!name || !strcmp(name, "io_uring_enter") || !strcmp(name, "io_submit"))
			continue;
		id = idents_add(&f->idents, name, "", IDENT_NOTE);
		vec_push(&f->operations, (struct io_operation){
			.name = f->idents.list.v[id].name,
			.calls = p->counters.v[i].value, .errors = profile_counter_of(p, KEY_IO_ERRORS_OF, name),
			.bytes = profile_counter_of(p, KEY_IO_BYTES_OF, name), .ns = profile_counter_of(p, KEY_IO_NS_OF, name),
			.latency = latency(p, KEY_IO_LATENCY_OF, name) });
	}
	vec_sort(&f->operations, compare_operations);
}

static int compare_disks(const void *a, const void *b)
{
	const struct io_disk *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static void add_disks(struct io_figures *f, const struct profile *p)
{
	for (size_t i = 0; i < p->counters.n; i++) {
		char *name = key_which(KEY_BLOCK_REQUESTS_OF, profile_str(p, p->counters.v[i].name));
		char *dot;

		if (!name)
			continue;
		vec_push(&f->disks, (struct io_disk){
			.name = name, .requests = p->counters.v[i].value,
			.bytes = profile_counter_of(p, KEY_BLOCK_BYTES_OF, name),
			.errors = profile_counter_of(p, KEY_BLOCK_ERRORS_OF, name),
			.ns = profile_counter_of(p, KEY_BLOCK_NS_OF, name),
			.own_requests = profile_counter_of(p, KEY_BLOCK_OWN_REQUESTS_OF, name),
			.own_bytes = profile_counter_of(p, KEY_BLOCK_OWN_BYTES_OF, name),
			.latency = latency(p, KEY_BLOCK_LATENCY_OF, name) });
		dot = strrchr(name, '.');
		if (dot)
			*dot = ' ';
	}
	vec_sort(&f->disks, compare_disks);
}

/* A remark holds where its counter is not 0 and its system call was called, as far as it names them. */
static void add_remarks(struct io_figures *f, const struct profile *p)
{
	static const struct {
		const char *counter, *call, *sentence;
	} remarks[] = {
		{ KEY_IO_LOST_CALLS, NULL,
		  "some calls found no room on their way here: by function and file they are missing, by "
		  "operation they are counted" },
		{ KEY_IO_URING_NOT_RECORDED, "io_uring_enter",
		  "the target uses io_uring, and this kernel's tracepoints do not tell what is read and written "
		  "through it: that is missing" },
		{ KEY_IO_URING_MULTISHOT_NOT_RECORDED, NULL,
		  "io_uring requests that give many results (multishot) are not counted" },
		{ KEY_IO_URING_REQUESTS_WITHOUT_ROOM, NULL,
		  "there were too many io_uring requests at once: some are missing" },
		{ NULL, "io_submit", "the target uses io_submit (Linux AIO): what it moves is missing" },
		{ KEY_IO_32_BIT_CALLS_NOT_RECORDED, NULL, "calls of 32-bit code are missing" },
		{ KEY_IO_CALLS_OF_THREADS_WITHOUT_ROOM, NULL,
		  "there were too many threads at once: some are missing" },
		{ KEY_BLOCK_NOT_RECORDED, NULL, "this kernel has no tracepoints for block devices" },
	};

	f->walked = profile_counter(p, KEY_IO_STACKS_WALKED);
	f->remembered = profile_counter(p, KEY_IO_STACKS_REMEMBERED);
	f->calls_error = profile_counter(p, KEY_IO_CALLS_ERROR);
	for (size_t i = 0; i < ARRAY_LEN(remarks); i++)
		if ((!remarks[i].counter || profile_counter(p, remarks[i].counter)) &&
		    (!remarks[i].call || profile_counter_of(p, KEY_IO_CALLS_OF, remarks[i].call)))
			vec_push(&f->remarks, remarks[i].sentence);
}

bool io_measure(struct io_figures *f, const struct profile *p, const struct select_options *o)
{
	struct builder b = { .p = p, .f = f };
	uint64_t end = select_duration_ns(p);
	uint32_t event;

	*f = (struct io_figures){ 0 };
	if (!find_event(p, READ, &event))
		return false;
	idents_init(&f->idents, p, 0);
	f->filtered = o->threads || o->processes || o->function || o->from_ns || o->to_ns;
	if (o->to_ns)
		end = MIN(end, o->to_ns);
	f->duration_ns = end > o->from_ns ? end - o->from_ns : 0;
	for (int way = 0; way < WAYS; way++) {
		f->chosen |= o->event == SELECT_IO || (find_event(p, way, &event) && event == o->event);
		add_event(&b, way, o);
	}
	vec_sort(&f->functions, compare_rows);
	vec_sort(&f->files, compare_rows);
	add_operations(f, p);
	add_disks(f, p);
	add_remarks(f, p);
	map_done(&b.functions);
	map_done(&b.files);
	return f->operations.n || f->disks.n || f->functions.n;
}

void io_done(struct io_figures *f)
{
	for (size_t i = 0; i < f->disks.n; i++)
		free(f->disks.v[i].name);
	if (f->idents.p)
		idents_done(&f->idents);
	vec_done(&f->functions);
	vec_done(&f->files);
	vec_done(&f->operations);
	vec_done(&f->disks);
	vec_done(&f->remarks);
	*f = (struct io_figures){ 0 };
}
