#include "import/perf/perfdatafacts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"

const char perfdata_magic[PERFDATA_MAGIC_BYTES] = { 'P', 'E', 'R', 'F', 'I', 'L', 'E', '2' };

/* Sections, as perf counts them. */
enum {
	FEATURE_TRACING_DATA = 1,
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_ARCH = 6,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12,
	FEATURE_CLOCK_DATA = 29,
	FEATURES = 256,
	BUILD_ID_SIZED = 1 << 15, /* misc: the record says how long the id is */
	SECTION_BYTES = 64 << 20, /* the largest that is read: formats of all tracepoints have some MB */
	STRINGS_MOST = 4096,
	IDS_MOST = 1 << 20,
	EVENT_UPDATE_NAME = 2,
};

struct section {
	uint64_t offset, size;
};

void perfdatafacts_done(struct perfdatafacts *f)
{
	perfdataattrs_done(&f->attrs);
	perfdatatrace_done(&f->trace);
	vec_done_each(&f->builds, e, free(e->path));
	map_done(&f->build_index);
	free(f->host);
	free(f->release);
	free(f->arch);
	free(f->command);
}

/* --- sections --- */

/* A string with its padded size before it. Caller frees. */
static char *take_string(struct reader *r)
{
	uint32_t n = reader_u32(r);
	const uint8_t *s = reader_bytes(r, n);

	return s ? mem_strndup((const char *)s, strnlen((const char *)s, n)) : NULL;
}

static void set_string(char **to, struct reader *r)
{
	free(*to);
	*to = take_string(r);
}

static void read_command(struct perfdatafacts *f, struct reader *r)
{
	uint32_t count = reader_u32(r);
	struct buf b = { 0 };

	for (uint32_t i = 0; i < count && i < STRINGS_MOST && !r->failed; i++) {
		_cleanup_free_ char *word = take_string(r);

		buf_printf(&b, "%s%s", i ? " " : "", word ? word : "");
	}
	free(f->command);
	f->command = b.data;
}

/* The names of the events, by their ids. */
static void read_names(struct perfdatafacts *f, struct reader *r)
{
	uint32_t count = reader_u32(r), attr_size = reader_u32(r);

	for (uint32_t i = 0; i < count && !r->failed; i++) {
		_cleanup_free_ char *name = NULL;
		uint32_t ids;

		reader_skip(r, attr_size);
		ids = reader_u32(r);
		name = take_string(r);
		/* An event without ids is the only one, or known by its place. */
		if (!ids && i < f->attrs.list.n && name && !f->attrs.list.v[i].name)
			f->attrs.list.v[i].name = mem_strdup(name);
		for (uint32_t k = 0; k < ids && !r->failed; k++)
			perfdataattrs_name(&f->attrs, reader_u64(r), name);
	}
}

static void add_build(struct perfdatafacts *f, const struct perfdataheader *h)
{
	struct reader r = reader_of(h, h->size);
	struct perfdatafacts_build b = { 0 };
	const uint8_t *id, *path;
	size_t n;

	reader_skip(&r, sizeof(*h) + 4);
	id = reader_bytes(&r, 24);
	n = r.end - r.pos;
	path = reader_bytes(&r, n);
	if (r.failed || !n)
		return;
	b.size = h->misc & BUILD_ID_SIZED ? MIN(id[20], 20) : 20;
	memcpy(b.id, id, 20);
	b.path = mem_strndup((const char *)path, strnlen((const char *)path, n));
	b.kernel = (h->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL &&
		   (b.path[0] == '[' ? str_starts(b.path, "[kernel.kallsyms]") || str_starts(b.path, "[kernel]") :
				       strstr(b.path, "vmlinux") != NULL);
	*map_put(&f->build_index, map_hash_bytes(b.path, strlen(b.path)), 0) = f->builds.n;
	if (b.kernel)
		f->kernel_build = f->builds.n + 1;
	vec_push(&f->builds, b);
}

static void read_builds(struct perfdatafacts *f, struct reader *r)
{
	struct perfdataheader h;

	while (r->end - r->pos >= sizeof(h)) {
		const uint8_t *at = r->data + r->pos;

		memcpy(&h, at, sizeof(h));
		if (h.size < sizeof(h) || h.size > r->end - r->pos)
			return;
		add_build(f, (const void *)at);
		reader_skip(r, h.size);
	}
}

static void read_clock(struct perfdatafacts *f, struct reader *r)
{
	uint32_t version = reader_u32(r);
	uint64_t wall, clock;

	reader_u32(r);
	wall = reader_u64(r);
	clock = reader_u64(r);
	if (version != 1 || r->failed)
		return;
	f->clock_wall_ns = wall;
	f->clock_ns = clock;
}

void perfdatafacts_feature(struct perfdatafacts *f, unsigned number, const void *data, size_t n)
{
	struct reader r = reader_of(data, n);

	switch (number) {
	case FEATURE_TRACING_DATA:
		perfdatatrace_read(&f->trace, data, n);
		break;
	case FEATURE_BUILD_ID:
		read_builds(f, &r);
		break;
	case FEATURE_HOSTNAME:
		set_string(&f->host, &r);
		break;
	case FEATURE_OSRELEASE:
		set_string(&f->release, &r);
		break;
	case FEATURE_ARCH:
		set_string(&f->arch, &r);
		break;
	case FEATURE_CMDLINE:
		read_command(f, &r);
		break;
	case FEATURE_EVENT_DESC:
		read_names(f, &r);
		break;
	case FEATURE_CLOCK_DATA:
		read_clock(f, &r);
		break;
	}
}

/* --- the header of a file --- */

static bool read_at(int fd, void *to, size_t n, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, to, n, offset) == (ssize_t)n;
}

static bool lies_within(const struct section *s, uint64_t size)
{
	return s->offset <= size && s->size <= size - s->offset;
}

static int read_attr(struct perfdatafacts *f, int fd, uint64_t at, uint64_t each, uint64_t file_size, struct err *err)
{
	uint8_t bytes[4096];
	struct section ids;
	size_t n = MIN(each - sizeof(ids), sizeof(bytes));

	if (!read_at(fd, bytes, n, at) || !read_at(fd, &ids, sizeof(ids), at + each - sizeof(ids)) || !perfdataattrs_add(&f->attrs, bytes, n))
		return err_set(err, EINVAL, "byte %llu: the description of an event makes no sense", (unsigned long long)at);
	if (!lies_within(&ids, file_size))
		return err_set(err, EINVAL, "byte %llu: the ids of an event lie beyond the end of the file", (unsigned long long)at);
	if (ids.size / 8 > IDS_MOST - f->attrs.ids.n)
		return err_set(err, EINVAL, "byte %llu: an event has too many ids", (unsigned long long)at);
	for (uint64_t i = 0; i < ids.size / 8; i++) {
		uint64_t id;

		if (!read_at(fd, &id, sizeof(id), ids.offset + 8 * i))
			break;
		perfdataattrs_add_id(&f->attrs, id, f->attrs.list.n - 1);
	}
	return 0;
}

static int read_attrs(struct perfdatafacts *f, int fd, uint64_t each, const struct section *attrs, uint64_t file_size, struct err *err)
{
	if (each < PERFDATAATTR_SMALLEST + sizeof(struct section) || each > 4096)
		return err_set(err, EINVAL, "byte 16: descriptions of events of %llu bytes each are no such", (unsigned long long)each);
	if (!lies_within(attrs, file_size))
		return err_set(err, EINVAL, "byte 24: the events lie beyond the end of the file");
	for (uint64_t i = 0; i < attrs->size / each; i++) {
		int r = read_attr(f, fd, attrs->offset + i * each, each, file_size, err);

		if (r)
			return r;
	}
	return f->attrs.list.n ? 0 : err_set(err, EINVAL, "byte 24: it has no event");
}

static void read_features(struct perfdatafacts *f, int fd, const uint64_t *bits, uint64_t at, uint64_t file_size)
{
	for (unsigned i = 0; i < FEATURES; i++) {
		_cleanup_free_ char *bytes = NULL;
		struct section s;

		if (!(bits[i / 64] >> i % 64 & 1))
			continue;
		if (!read_at(fd, &s, sizeof(s), at))
			return;
		at += sizeof(s);
		if (!lies_within(&s, file_size) || s.size > SECTION_BYTES)
			continue;
		bytes = mem_alloc(s.size + 1);
		if (read_at(fd, bytes, s.size, s.offset))
			perfdatafacts_feature(f, i, bytes, s.size);
	}
}

int perfdatafacts_read(struct perfdatafacts *f, int fd, struct err *err)
{
	struct {
		char magic[PERFDATA_MAGIC_BYTES];
		uint64_t size, attr_size;
		struct section attrs, data, types;
		uint64_t features[FEATURES / 64];
	} head;
	struct stat st;
	uint64_t size;
	int r;

	if (fstat(fd, &st))
		return err_errno(err, errno, "cannot read it");
	size = st.st_size;
	if (!read_at(fd, &head, sizeof(head), 0) || memcmp(head.magic, perfdata_magic, sizeof(head.magic)) || head.size < sizeof(head))
		return err_set(err, EINVAL, "byte 0: its header is cut or damaged");
	r = read_attrs(f, fd, head.attr_size, &head.attrs, size, err);
	if (r)
		return r;
	if (head.data.offset > size)
		return err_set(err, EINVAL, "byte 40: its records lie beyond the end of the file");
	f->data_offset = head.data.offset;
	/* perf writes the size at the end: a recording that was killed has none, and no sections. */
	f->data_end = head.data.size && head.data.size <= size - head.data.offset ? head.data.offset + head.data.size : size;
	if (head.data.size)
		read_features(f, fd, head.features, head.data.offset + head.data.size, size);
	return 0;
}

/* --- a pipe --- */

bool perfdatafacts_attr_record(struct perfdatafacts *f, const struct perfdataheader *h)
{
	const uint8_t *bytes = (const uint8_t *)(h + 1);
	size_t n = h->size - sizeof(*h);
	uint32_t size;

	if (n < PERFDATAATTR_SMALLEST)
		return false;
	memcpy(&size, bytes + 4, sizeof(size));
	if (!size)
		size = PERFDATAATTR_SMALLEST;
	if (size > n || !perfdataattrs_add(&f->attrs, bytes, size))
		return false;
	for (size_t at = size; n - at >= 8; at += 8) {
		uint64_t id;

		memcpy(&id, bytes + at, 8);
		perfdataattrs_add_id(&f->attrs, id, f->attrs.list.n - 1);
	}
	return true;
}

void perfdatafacts_update_record(struct perfdatafacts *f, const struct perfdataheader *h)
{
	struct reader r = reader_of(h, h->size);
	_cleanup_free_ char *name = NULL;
	uint64_t type, id;

	reader_skip(&r, sizeof(*h));
	type = reader_u64(&r);
	id = reader_u64(&r);
	if (r.failed || type != EVENT_UPDATE_NAME)
		return;
	name = mem_strndup((const char *)h + r.pos, strnlen((const char *)h + r.pos, r.end - r.pos));
	perfdataattrs_name(&f->attrs, id, name);
}

void perfdatafacts_build_record(struct perfdatafacts *f, const struct perfdataheader *h)
{
	add_build(f, h);
}

const struct perfdatafacts_build *perfdatafacts_build_of(const struct perfdatafacts *f, const char *path, bool kernel)
{
	const uint64_t *index = map_get(&f->build_index, map_hash_bytes(path, strlen(path)));

	if (kernel)
		return f->kernel_build ? &f->builds.v[f->kernel_build - 1] : NULL;
	return index && !strcmp(f->builds.v[*index].path, path) ? &f->builds.v[*index] : NULL;
}
