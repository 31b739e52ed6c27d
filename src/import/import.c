#include "import/import.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/stream.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "folded/folded.h"
#include "import/heap/heapfiles.h"
#include "import/jemalloc/heapdumps.h"
#include "import/perf/perfdata.h"
#include "import/pprof/pprof.h"
#include "import/text/callgrind.h"
#include "import/text/jsonl.h"
#include "import/text/perfscript.h"
#include "import/text/printed.h"
#include "import/web/chrometrace.h"
#include "import/web/firefox.h"
#include "import/web/speedscope.h"
#include "import/web/v8profile.h"

/* Tried from the first to the last: folded stacks, which nearly any text with numbers can be, come last. */
const struct import_format import_formats[] = {
	{ "perf.data", "what perf record wrote, into a file or a pipe", perfdata_probe, perfdata_import },
	{ "perf-script", "what perf script prints: each sample with its stack", perfscript_probe, perfscript_import },
	{ "pprof", "a profile of pprof, of any types of samples: Go's, pprof-rs's, jemalloc's", pprof_probe, pprof_import },
	{ "otlp", "profiles of OpenTelemetry (v1development)", otlp_probe, otlp_import },
	{ "heap_v2", "a heap dump of jemalloc", heapv2_probe, heapdumps_import },
	{ "massif", "a heap over time by valgrind --tool=massif", massif_probe, massif_import },
	{ "heaptrack", "a heap over time by heaptrack, interpreted or raw", heaptrack_probe, heaptrack_import },
	{ "dhat", "a heap by valgrind --tool=dhat, or by Rust's dhat", dhat_probe, dhat_import },
	{ "callgrind", "a call graph of callgrind or cachegrind, whose stacks are estimated", callgrind_probe, callgrind_import },
	{ "speedscope", "a file of speedscope (.speedscope.json)", speedscope_probe, speedscope_import },
	{ "firefox", "a profile of the Firefox profiler, as samply writes it", firefox_probe, firefox_import },
	{ "chrome-trace", "a Chrome trace: spans of threads as stacks", chrometrace_probe, chrometrace_import },
	{ "cpuprofile", "a CPU profile of V8, as node and Chrome save it", cpuprofile_probe, cpuprofile_import },
	{ "jsonl", "a line of JSON for each sample, as gasflame writes them", jsonl_probe, jsonl_import },
	{ "bpftrace", "maps of bpftrace with stacks as keys, as text or JSON", bpftrace_probe, bpftrace_import },
	{ "dtrace", "stacks that DTrace aggregated", dtrace_probe, dtrace_import },
	{ "bcc", "stacks of bcc's profile, offcputime and others, and of libbpf-tools'", bcc_probe, bcc_import },
	{ "folded", "folded stacks, \"outer;inner;leaf 123\", as stackcollapse scripts write them", folded_probe, folded_profile },
	{ 0 },
};

const struct import_format *import_find(const char *name)
{
	for (const struct import_format *f = import_formats; f->name; f++)
		if (!strcmp(f->name, name))
			return f;
	return NULL;
}

const struct import_format *import_probe(const char *data, size_t n, bool whole)
{
	for (const struct import_format *f = import_formats; f->name; f++)
		if (f->probe(data, n, whole))
			return f;
	return NULL;
}

static char *import_list(void)
{
	struct buf b = { 0 };

	for (const struct import_format *f = import_formats; f->name; f++)
		buf_printf(&b, "%s%s", f == import_formats ? "" : ", ", f->name);
	return b.data;
}

/* *f, if NULL, becomes the format that the first bytes show. */
static int begin(struct stream *in, const struct import_format **f, struct err *err)
{
	const char *start;
	ssize_t n = *f ? 0 : stream_peek(in, &start, err);
	_cleanup_free_ char *names = NULL;

	if (n < 0)
		return n;
	if (!*f)
		*f = import_probe(start, n, n < STREAM_PEEK_BYTES);
	if (*f)
		return 0;
	if (!n)
		return err_set(err, ENOMSG, "it is empty");
	names = import_list();
	return err_set(err, ENOMSG, "it is neither a capture nor in one of these formats: %s (gasflame import --help)", names);
}

int import_check(const char *path, const struct import_format **ret, struct err *err)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(stream_freep) struct stream *in = NULL;

	if (fd < 0)
		return err_errno(err, errno, "cannot open %s", path);
	in = stream_open(fd);
	*ret = NULL;
	return begin(in, ret, err) ? err_prefix(err, "%s", path) : 0;
}

int import_read(const char *path, const struct import_format *forced, const struct import_options *options, struct profile **ret,
		struct err *err)
{
	bool standard = !strcmp(path, "-");
	const char *shown = standard ? "the standard input" : path;
	_cleanup_fd_ int fd = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(stream_freep) struct stream *in = NULL;
	const struct import_format *f = forced;
	struct import_input input = { .name = standard ? "" : str_base_name(path) };
	int r;

	if (fd < 0)
		return err_errno(err, errno, "cannot open %s", shown);
	in = input.stream = stream_open(fd);
	if (options)
		input.options = *options;
	r = begin(in, &f, err);
	if (!r)
		r = f->read(&input, ret, err);
	return r ? err_prefix(err, "%s", shown) : 0;
}
