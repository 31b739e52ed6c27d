#include "cmd/recording/recordtrace.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/text/str.h"
#include "import/trace/tracemarks.h"
#include "import/trace/tracewatch.h"
#include "profile/profile.h"
#include "target/open.h"

int recordtrace_check(struct recordtrace *t, struct err *err)
{
	_cleanup_fd_ int fd = -1;
	int r;

	if (t->offset && !t->path)
		return err_set(err, EINVAL, "--marks-offset is about a trace: name it with --marks");
	r = t->offset ? traceclock_parse_offset(t->offset, &t->offset_ns, err) : 0;
	if (r < 0 || !t->path)
		return r;
	/* It may be made while the target runs. */
	r = target_open_host(t->path, &fd, err);
	return r < 0 && r != -ENOENT ? err_prefix(err, "--marks %s", t->path) : 0;
}

int recordtrace_begin(struct recordtrace *t, struct err *err)
{
	return t->path ? tracewatch_start(t->path, &t->watch, err) : 0;
}

void recordtrace_finish(struct recordtrace *t, struct profile *p, uint64_t start_mono_ns, size_t first_mark)
{
	struct traceclock_facts facts = { .given = t->offset != NULL, .given_ns = t->offset_ns, .start_mono_ns = start_mono_ns };
	_cleanup_(buf_done) struct buf words = { 0 };
	struct tracemarks_result result;
	struct err err = { 0 }, broken = { 0 };
	_cleanup_fd_ int fd = -1;
	int r;

	if (!t->watch)
		return;
	fd = tracewatch_stop(t->watch, start_mono_ns, &facts, &err);
	t->watch = NULL;
	if (!p)
		return;
	facts.start_wall_ns = p->start_wall_ns;
	facts.duration_ns = p->duration_ns;
	r = fd < 0 ? fd : tracemarks_add(p, fd, &facts, first_mark, &broken, &result, &err);
	if (r < 0) {
		log_warn("--marks %s: %s; the recording has no spans of it, and gasflame import --marks adds them later", t->path,
			 err.text);
		return;
	}
	tracemarks_say(&result, t->path, &words);
	if (tracemarks_troubled(&result))
		log_warn("%s", words.data);
	else
		log_info("%s.", words.data);
}
