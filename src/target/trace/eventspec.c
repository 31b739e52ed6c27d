#include "target/trace/eventspec.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"

enum { WORD_LIMIT = 256 };

/* --- events that have a name of their own --- */

#define CACHE(level, op, result)                                                       \
	PERF_TYPE_HW_CACHE,                                                            \
	PERF_COUNT_HW_CACHE_##level | PERF_COUNT_HW_CACHE_OP_##op << 8 |               \
	PERF_COUNT_HW_CACHE_RESULT_##result << 16
#define SOFTWARE(which) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##which
#define HARDWARE(which) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##which

static const struct named {
	const char *name;
	uint32_t type;
	uint64_t config;
	bool sampled;
	const char *describe; /* NULL: another word for the one before */
} named[] = {
	{ "page-faults", SOFTWARE(PAGE_FAULTS), false, "page faults of both kinds" },
	{ "faults", SOFTWARE(PAGE_FAULTS), false, NULL },
	{ "minor-faults", SOFTWARE(PAGE_FAULTS_MIN), false, "page faults served from memory" },
	{ "major-faults", SOFTWARE(PAGE_FAULTS_MAJ), false, "page faults that read from disk" },
	{ "context-switches", SOFTWARE(CONTEXT_SWITCHES), false, "threads that left a CPU" },
	{ "cs", SOFTWARE(CONTEXT_SWITCHES), false, NULL },
	{ "cpu-migrations", SOFTWARE(CPU_MIGRATIONS), false, "threads moved to another CPU" },
	{ "migrations", SOFTWARE(CPU_MIGRATIONS), false, NULL },
	{ "alignment-faults", SOFTWARE(ALIGNMENT_FAULTS), false, "unaligned accesses that trapped" },
	{ "emulation-faults", SOFTWARE(EMULATION_FAULTS), false, "instructions that the kernel emulated" },
	{ "cpu-clock", SOFTWARE(CPU_CLOCK), true, "nanoseconds on a CPU, sampled" },
	{ "cycles", HARDWARE(CPU_CYCLES), true, "cycles of the CPU, sampled" },
	{ "cpu-cycles", HARDWARE(CPU_CYCLES), true, NULL },
	{ "instructions", HARDWARE(INSTRUCTIONS), true, "instructions retired, sampled" },
	{ "cache-references", HARDWARE(CACHE_REFERENCES), true, "accesses to the last cache, sampled" },
	{ "cache-misses", HARDWARE(CACHE_MISSES), true, "accesses that went to memory, sampled" },
	{ "branches", HARDWARE(BRANCH_INSTRUCTIONS), true, "branches retired, sampled" },
	{ "branch-instructions", HARDWARE(BRANCH_INSTRUCTIONS), true, NULL },
	{ "branch-misses", HARDWARE(BRANCH_MISSES), true, "branches guessed wrong, sampled" },
	{ "bus-cycles", HARDWARE(BUS_CYCLES), true, "cycles of the bus, sampled" },
	{ "ref-cycles", HARDWARE(REF_CPU_CYCLES), true, "cycles at a fixed frequency, sampled" },
	{ "stalled-cycles-frontend", HARDWARE(STALLED_CYCLES_FRONTEND), true,
	  "cycles without an instruction to run, sampled" },
	{ "stalled-cycles-backend", HARDWARE(STALLED_CYCLES_BACKEND), true,
	  "cycles waiting for memory or a unit, sampled" },
	{ "L1-dcache-loads", CACHE(L1D, READ, ACCESS), true, "loads, sampled" },
	{ "L1-dcache-load-misses", CACHE(L1D, READ, MISS), true, "loads that missed the first cache, sampled" },
	{ "LLC-loads", CACHE(LL, READ, ACCESS), true, "loads from the last cache, sampled" },
	{ "LLC-load-misses", CACHE(LL, READ, MISS), true, "loads that missed the last cache, sampled" },
	{ "dTLB-load-misses", CACHE(DTLB, READ, MISS), true, "loads without a translation at hand, sampled" },
	{ "iTLB-load-misses", CACHE(ITLB, READ, MISS), true, "fetches without a translation at hand, sampled" },
};

const char *eventspec_named(size_t i, enum eventspec_kind *ret_kind, const char **ret_describe)
{
	if (i >= ARRAY_LEN(named))
		return NULL;
	*ret_kind = named[i].type == PERF_TYPE_SOFTWARE ? EVENTSPEC_SOFTWARE : EVENTSPEC_HARDWARE;
	*ret_describe = named[i].describe;
	return named[i].name;
}

/* --- one event --- */

/* Characters in names of tracepoints, and in patterns. */
static bool word_char(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("_-.:/*?[]", c));
}

/* Of a tracepoint: no dots, as these become parts of a path. */
static bool is_name(const char *s, bool pattern)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

	if (!*s)
		return false;
	for (; *s; s++)
		if (!strchr(letters, *s) && !(pattern && strchr("*?[]", *s)))
			return false;
	return true;
}

static const struct named *find_named(const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(named); i++)
		if (strlen(named[i].name) == n && !memcmp(named[i].name, name, n))
			return &named[i];
	return NULL;
}

/* "cycles", "cycles:u". False: no event has this name. */
static bool parse_named(const char *text, struct eventspec *e)
{
	size_t n = strcspn(text, ":");
	const struct named *found = find_named(text, n);
	const char *modifier = text[n] ? text + n + 1 : "";

	if (!found || strspn(modifier, "uk") != strlen(modifier) || (text[n] && !*modifier))
		return false;
	e->kind = found->type == PERF_TYPE_SOFTWARE ? EVENTSPEC_SOFTWARE : EVENTSPEC_HARDWARE;
	e->type = found->type;
	e->config = found->config;
	e->sampled = found->sampled;
	e->user_only = strchr(modifier, 'u') && !strchr(modifier, 'k');
	e->kernel_only = strchr(modifier, 'k') && !strchr(modifier, 'u');
	e->name = mem_strdup(text);
	return true;
}

static bool parse_tracepoint(const char *text, struct eventspec *e)
{
	const char *colon = strchr(text, ':'), *slash = colon ? strchr(colon, '/') : NULL;

	if (!colon)
		return false;
	e->kind = EVENTSPEC_TRACEPOINT;
	e->group = mem_strndup(text, colon - text);
	e->point = slash ? mem_strndup(colon + 1, slash - colon - 1) : mem_strdup(colon + 1);
	e->name = mem_printf("%s:%s", e->group, e->point);
	if (slash)
		e->field = mem_strdup(slash + 1);
	return is_name(e->group, true) && is_name(e->point, true) && (!e->field || is_name(e->field, false));
}

int eventspec_parse(const char *text, struct eventspec *ret, struct err *err)
{
	*ret = (struct eventspec){ 0 };
	if (strlen(text) > WORD_LIMIT)
		return err_set(err, EINVAL, "'%.40s...' is too long for the name of an event", text);
	if (parse_named(text, ret))
		return 0;
	if (find_named(text, strcspn(text, ":")))
		return err_set(err, EINVAL,
			       "'%s' is no event: after %.*s only :u (user code) and :k (the kernel) can stand",
			       text, (int)strcspn(text, ":"), text);
	if (parse_tracepoint(text, ret))
		return 0;
	eventspec_done(ret);
	return err_set(err, EINVAL,
		       "'%s' is no event: write GROUP:NAME, GROUP:NAME/FIELD or a name like page-faults "
		       "(gasflame events lists them)", text);
}

void eventspec_done(struct eventspec *e)
{
	free(e->name);
	free(e->group);
	free(e->point);
	free(e->field);
	*e = (struct eventspec){ 0 };
}

bool eventspec_is_pattern(const struct eventspec *e)
{
	return e->kind == EVENTSPEC_TRACEPOINT && (strpbrk(e->group, "*?[") || strpbrk(e->point, "*?["));
}

int eventspec_probe(const struct eventspec *e)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .type = e->type, .config = e->config,
					.sample_period = 1000000, .disabled = 1, .exclude_kernel = 1, .exclude_hv = 1 };
	_cleanup_fd_ int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : 0;
}

/* --- a file of them --- */

static int bad_line(unsigned line, const char *at, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = at[i];

		if ((c < 0x20 && c != '\t') || c >= 0x7f)
			return err_set(err, EINVAL, "line %u: byte 0x%02x is not text: is this a list of events?",
				       line, c);
	}
	return err_set(err, EINVAL, "line %u: '%.*s%s' is not one event; an event a line, # before a comment",
		       line, (int)MIN(n, 60), at, n > 60 ? "..." : "");
}

int eventspec_parse_file(const char *text, size_t n, eventspec_word_fn *fn, void *context, struct err *err)
{
	static const char mark[] = "\xef\xbb\xbf"; /* what some editors put first */
	const char *at = text, *end = text + n;
	unsigned line = 0;
	int r = 0;

	if (n >= strlen(mark) && !memcmp(at, mark, strlen(mark)))
		at += strlen(mark);
	while (r >= 0 && at < end) {
		const char *newline = memchr(at, '\n', end - at), *stop = newline ? newline : end;
		const char *comment = memchr(at, '#', stop - at), *last = comment ? comment : stop, *p;
		char word[WORD_LIMIT + 1];

		line++;
		while (at < last && (*at == ' ' || *at == '\t' || *at == '\r'))
			at++;
		while (last > at && (last[-1] == ' ' || last[-1] == '\t' || last[-1] == '\r'))
			last--;
		for (p = at; p < last && word_char(*p); p++)
			;
		if (p < last || last - at > WORD_LIMIT)
			return bad_line(line, at, last - at, err);
		if (at < last) {
			memcpy(word, at, last - at);
			word[last - at] = 0;
			r = fn(context, word, line, err);
		}
		at = newline ? newline + 1 : end;
	}
	return r < 0 ? r : 0;
}
