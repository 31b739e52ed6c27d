#include "import/trace/traceclock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text/str.h"

enum { TAIL = 64 << 10, MANY = 16 /* growths: the nearest of so many is near */ };

#define MS 1000000LL
#define SECOND 1000000000LL

static const uint64_t epoch_ns = 1000000000000000000; /* 2001: no clock but the wall's is so far */
static const uint64_t begins_ns = 60 * SECOND;        /* a trace that counts from its own start begins by then */
static const int64_t tick_ns = 4 * MS;                /* files have the time of the last tick of the kernel */
static const int64_t silence_ns = 30 * SECOND;        /* how long a writer may have had nothing to say at its end */

/* Trace time 0 by when the file was written: upper bounds, INT64_MAX = there is none. */
static int64_t by_growth(const struct traceclock_facts *f)
{
	return f->growths ? f->grown_ns : INT64_MAX;
}

static int64_t by_last_write(const struct traceclock_facts *f)
{
	if (!f->written_wall_ns || !f->last_ns || f->last_ns > INT64_MAX)
		return INT64_MAX;
	return (int64_t)(f->written_wall_ns - f->start_wall_ns) - (int64_t)f->last_ns;
}

static int decide_by_file(const struct traceclock_facts *f, struct traceclock *ret, struct err *err)
{
	int64_t grown = by_growth(f), latest = MIN(grown, by_last_write(f));
	int64_t born = f->born_wall_ns ? (int64_t)(f->born_wall_ns - f->start_wall_ns) : INT64_MAX;
	bool plausible = born != INT64_MAX && (latest == INT64_MAX || (born <= latest + tick_ns && born >= latest - silence_ns));

	if (born == INT64_MAX && latest == INT64_MAX)
		return err_set(err, ENODATA, "nothing says when the trace began, which its times count from: --marks-offset does");
	/* One that is seen to grow often is seen at the moment at which it does. */
	if (f->growths >= MANY || (f->growths && !plausible))
		*ret = (struct traceclock){ TRACECLOCK_GROWN, grown, plausible ? (uint64_t)MAX(grown - born, MS) : UINT64_MAX };
	else if (plausible)
		*ret = (struct traceclock){ TRACECLOCK_BORN, born, tick_ns };
	else
		*ret = (struct traceclock){ TRACECLOCK_WRITTEN, latest, UINT64_MAX };
	return 0;
}

int traceclock_decide(const struct traceclock_facts *f, uint64_t first_ns, struct traceclock *ret, struct err *err)
{
	if (f->given) {
		*ret = (struct traceclock){ TRACECLOCK_GIVEN, f->given_ns, 0 };
		return 0;
	}
	if (first_ns >= epoch_ns) {
		*ret = (struct traceclock){ TRACECLOCK_WALL, -(int64_t)f->start_wall_ns, 0 };
		return 0;
	}
	/* It was not long before the recording, and not after it. */
	if (f->start_mono_ns && first_ns > begins_ns && first_ns < f->start_mono_ns + f->duration_ns + SECOND &&
	    first_ns + 24 * 3600 * SECOND > f->start_mono_ns) {
		*ret = (struct traceclock){ TRACECLOCK_MONO, -(int64_t)f->start_mono_ns, 0 };
		return 0;
	}
	return decide_by_file(f, ret, err);
}

int traceclock_parse_offset(const char *text, int64_t *ret_ns, struct err *err)
{
	uint64_t ns;

	if (str_parse_duration(text + (*text == '-' || *text == '+'), &ns) || ns > INT64_MAX)
		return err_set(err, EINVAL, "--marks-offset takes a time like 2.5s or -250ms: %s", text);
	*ret_ns = *text == '-' ? -(int64_t)ns : (int64_t)ns;
	return 0;
}

bool traceclock_convert(const struct traceclock *c, uint64_t trace_ns, uint64_t *ret_ns)
{
	int64_t at;

	if (trace_ns > INT64_MAX || __builtin_add_overflow((int64_t)trace_ns, c->zero_ns, &at) || at < 0)
		return false;
	*ret_ns = at;
	return true;
}

void traceclock_say(const struct traceclock *c, struct buf *out)
{
	static const char *const by[] = {
		[TRACECLOCK_GIVEN] = "by --marks-offset",
		[TRACECLOCK_BORN] = "when its file was created",
		[TRACECLOCK_GROWN] = "by the moments at which its file grew",
		[TRACECLOCK_WRITTEN] = "by when its file was last written to",
	};
	char text[32];

	if (c->how == TRACECLOCK_WALL || c->how == TRACECLOCK_MONO) {
		buf_printf(out, "its times are of the %s clock", c->how == TRACECLOCK_WALL ? "wall" : "monotonic");
		return;
	}
	buf_printf(out, "its times count from %s %s the start of the recording, %s",
		   str_duration(text, c->zero_ns < 0 ? -(uint64_t)c->zero_ns : (uint64_t)c->zero_ns), c->zero_ns < 0 ? "before" : "after",
		   by[c->how]);
	if (c->blur_ns == UINT64_MAX)
		buf_printf(out, "; that may be too late, and --marks-offset sets it");
	else if (c->blur_ns)
		buf_printf(out, "; right within %s", str_duration(text, c->blur_ns));
}

bool traceclock_last(const char *data, size_t n, uint64_t *ret_ns)
{
	static const char key[] = "\"ts\":";
	bool found = false;

	/* A number at the very end may be cut. */
	for (const char *s = data, *end = data + n; (s = memmem(s, end - s, key, sizeof(key) - 1)); ) {
		char text[40];
		size_t k = 0;
		double d;

		for (s += sizeof(key) - 1; s < end && *s == ' ';)
			s++;
		while (s + k < end && k < sizeof(text) - 1 && ((s[k] >= '0' && s[k] <= '9') || s[k] == '.'))
			k++;
		if (s + k == end || !k)
			continue;
		memcpy(text, s, k);
		text[k] = 0;
		d = strtod(text, NULL) * 1000;
		if (d > 0 && d < 9e18) {
			*ret_ns = found ? MAX(*ret_ns, (uint64_t)d) : (uint64_t)d;
			found = true;
		}
	}
	return found;
}

static uint64_t wall_ns(const struct statx_timestamp *t)
{
	return t->tv_sec > 0 && t->tv_sec < INT64_MAX / SECOND ? t->tv_sec * (uint64_t)SECOND + t->tv_nsec : 0;
}

void traceclock_look(int fd, struct traceclock_facts *f)
{
	_cleanup_free_ char *tail = mem_alloc(TAIL);
	struct statx st;
	ssize_t n;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME | STATX_MTIME | STATX_SIZE | STATX_TYPE, &st) || !S_ISREG(st.stx_mode))
		return;
	f->born_wall_ns = st.stx_mask & STATX_BTIME ? wall_ns(&st.stx_btime) : 0;
	f->written_wall_ns = wall_ns(&st.stx_mtime);
	n = pread(fd, tail, TAIL, st.stx_size > TAIL ? st.stx_size - TAIL : 0);
	if (n <= 0 || !traceclock_last(tail, n, &f->last_ns))
		f->last_ns = 0;
}
