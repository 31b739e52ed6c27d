#include "cmd/bench/runmarks.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/runs.h"
#include "base/file/fd.h"
#include "cmd/bench/benchrun.h"
#include "profile/profile.h"

enum { IS_RUN = UINT32_MAX };

struct entry {
	uint64_t start_ns, end_ns; /* on the wall clock */
	uint64_t round;            /* 0: to warm up */
	uint32_t command, phase;   /* phase IS_RUN: all of the run */
};

int runmarks_open(void)
{
	int fd = memfd_create("bench", MFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

void runmarks_add(int fd, uint32_t command, uint64_t round, const struct benchrun_result *m,
		  const struct runlog *l)
{
	uint64_t end = m->start_wall_ns + m->wall_ns;
	struct entry e = { m->start_wall_ns, end, round, command, IS_RUN };

	/* A mark that does not fit into memory is not worth the end of a bench. */
	if (fd_write_all(fd, &e, sizeof(e)))
		return;
	for (size_t i = 0; i < l->spans.n; i++) {
		const struct runlog_span *s = &l->spans.v[i];

		/* The phase lies within the run, though its line may arrive a little later. */
		e.start_ns = MAX(s->start_ns, m->start_wall_ns);
		e.end_ns = MAX(MIN(s->end_ns, end), e.start_ns);
		e.phase = s->phase;
		if (fd_write_all(fd, &e, sizeof(e)))
			return;
	}
}

void runmarks_take(int fd, const struct runs *r, const struct runlog *l, struct profile *p)
{
	struct entry e;

	if (lseek(fd, 0, SEEK_SET))
		return;
	while (fd_read_all(fd, &e, sizeof(e)) == sizeof(e)) {
		_cleanup_free_ char *which =
			r->commands.n > 1 ? mem_printf(" of %s", r->commands.v[e.command]) : mem_strdup("");
		_cleanup_free_ char *name =
			e.phase != IS_RUN ? mem_strdup(l->phases.v[e.phase].name)
			: e.round	  ? mem_printf("run %llu%s", (unsigned long long)e.round, which)
					  : mem_printf("warm-up%s", which);
		struct profile_mark mark = { .name = profile_string(p, name), .thread = PROFILE_NONE,
					     .kind = profile_string(p, e.phase == IS_RUN ? "run" : "phase") };

		if (e.start_ns < p->start_wall_ns)
			continue; /* before the recording began */
		mark.start_ns = e.start_ns - p->start_wall_ns;
		mark.end_ns = e.end_ns - p->start_wall_ns;
		profile_add_mark(p, &mark);
	}
}
