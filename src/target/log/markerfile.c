#include "target/log/markerfile.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"

enum { CHUNK = 64 << 10 };

/* A number of decimal digits, which are skipped. False: there is none, or it is beyond most. */
static bool take_number(const char **s, const char *end, uint64_t most, uint64_t *ret)
{
	const char *begin = *s;
	uint64_t n = 0;

	for (; *s < end && **s >= '0' && **s <= '9'; ++*s) {
		if (n > (most - (**s - '0')) / 10)
			return false;
		n = n * 10 + (**s - '0');
	}
	*ret = n;
	return *s > begin;
}

bool markerfile_is_name(const char *path, pid_t *ret_pid, pid_t *ret_tid)
{
	static const char before[] = "marker-", after[] = ".txt";
	const char *s = str_base_name(path), *end = s + strlen(s);
	uint64_t pid, tid = 0;

	if (!str_starts(s, before) || !str_ends(s, after) || s + sizeof(before) - 1 + sizeof(after) - 1 > end)
		return false;
	s += sizeof(before) - 1;
	end -= sizeof(after) - 1;
	if (!take_number(&s, end, INT32_MAX, &pid) || !pid)
		return false;
	if (s < end && *s++ == '-' && (!take_number(&s, end, INT32_MAX, &tid) || !tid))
		return false;
	*ret_pid = pid;
	*ret_tid = tid;
	return s == end;
}

bool markerfile_parse(const char *line, size_t n, struct marker_span *ret)
{
	const char *s = line, *end = line + n;

	if (n && end[-1] == '\r')
		end--;
	if (!take_number(&s, end, INT64_MAX, &ret->start_ns) || s == end || *s++ != ' ' ||
	    !take_number(&s, end, INT64_MAX, &ret->end_ns) || s == end || *s++ != ' ' || s == end || ret->start_ns > ret->end_ns)
		return false;
	n = strnlen(s, MIN((size_t)(end - s), sizeof(ret->name) - 1));
	memcpy(ret->name, s, n);
	ret->name[n] = 0;
	return n > 0;
}

void markerfile_init(struct markerfile *f, int fd, bool from_end)
{
	struct stat st;

	*f = (struct markerfile){ .fd = fd };
	if (!from_end || fstat(fd, &st) || !st.st_size)
		return;
	/* The last line may be cut, and its rest is of the recording. */
	f->offset = st.st_size > MARKERFILE_LINE ? st.st_size - MARKERFILE_LINE : 0;
	f->skip = f->offset > 0;
}

static void end_line(struct markerfile *f, markerfile_fn *fn, void *context)
{
	struct marker_span s;

	if (!f->skip) {
		f->lines++;
		if (markerfile_parse(f->line, f->n, &s))
			fn(context, &s);
		else
			f->bad++;
	}
	f->skip = false;
	f->n = 0;
}

static void take(struct markerfile *f, const char *data, size_t n, markerfile_fn *fn, void *context)
{
	while (n) {
		const char *newline = memchr(data, '\n', n);
		size_t k = newline ? (size_t)(newline - data) : n;

		if (k > sizeof(f->line) - f->n && !f->skip) { /* no span is so long */
			f->lines++;
			f->bad++;
			f->skip = true;
		}
		if (!f->skip) {
			memcpy(f->line + f->n, data, k);
			f->n += k;
		}
		if (newline)
			end_line(f, fn, context);
		data += k + (newline != NULL);
		n -= k + (newline != NULL);
	}
}

size_t markerfile_read(struct markerfile *f, size_t most, markerfile_fn *fn, void *context)
{
	_cleanup_free_ char *bytes = NULL;
	struct stat st;
	size_t sum = 0;

	if (fstat(f->fd, &st) || (uint64_t)st.st_size == f->offset)
		return 0;
	if ((uint64_t)st.st_size < f->offset) { /* emptied, and begun again */
		f->offset = f->n = 0;
		f->skip = false;
	}
	bytes = mem_alloc(CHUNK);
	while (sum < most) {
		ssize_t n = pread(f->fd, bytes, MIN((size_t)CHUNK, most - sum), f->offset);

		if (n <= 0)
			break;
		take(f, bytes, n, fn, context);
		f->offset += n;
		sum += n;
	}
	return sum;
}

void markerfile_done(struct markerfile *f)
{
	fd_close(&f->fd);
}
