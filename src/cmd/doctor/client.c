/*
 * client.c - which node a process is, how it was built, what its jemalloc can do: for `doctor TARGET`.
 *
 * Nothing of the target is run: the version is what its file says. Whether jemalloc profiles is derived from the
 * configuration that it was started with; a mallctl may have changed it since.
 */
#include "cmd/doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file/fd.h"
#include "base/json.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "elf/symbols.h"
#include "target/proc.h"

/*
 * Read in the sources: reth 2.5.1 (Cargo.toml, crates/node/metrics/src/server.rs), op-reth, okx/xlayer-reth,
 * ethrex 25.0.0-rc.2 (Cargo.toml, Makefile, crates/networking/rpc/rpc.rs), geth 1.17.5 (internal/debug/flags.go).
 */
static const struct client_build {
	const char *name;
	const char *lines;    /* how to get names and lines */
	const char *frames;   /* how to get frame pointers */
	const char *prof;     /* how to get jemalloc's profiling; NULL = it has no jemalloc */
	const char *endpoint; /* where it offers its heap; NULL = nowhere */
} builds[] = {
	{ "reth",
	  "the official container image, whose profile maxperf-symbols keeps full debug information (the release binary, "
	  "maxperf, is stripped), or cargo build --profile maxperf-symbols; --log.samply names spans without symbols",
	  "RUSTFLAGS=\"-C force-frame-pointers=yes\" cargo build --profile maxperf-symbols",
	  "cargo build --profile maxperf-symbols --features jemalloc-prof",
	  "GET /debug/pprof/heap of the metrics port (--metrics ADDRESS:PORT); 501: built without jemalloc-prof, 503: another "
	  "dump is being made" },
	{ "op-reth", "cargo build --profile profiling (its release profile is stripped)",
	  "RUSTFLAGS=\"-C force-frame-pointers=yes\" cargo build --profile profiling",
	  "cargo build --profile profiling --features jemalloc-prof",
	  "GET /debug/pprof/heap of the metrics port (--metrics ADDRESS:PORT); 501: built without jemalloc-prof" },
	{ "xlayer-reth", "cargo build --profile profiling (its release profile is stripped)",
	  "xlayer-toolkit's image, which is built with frame pointers",
	  "cargo build --profile profiling --features jemalloc,jemalloc-prof (without the feature jemalloc it has glibc's malloc)",
	  "GET /debug/pprof/heap of the metrics port (--metrics ADDRESS:PORT); 501: built without jemalloc-prof" },
	{ "ethrex", "cargo build --profile release-with-debug (its releases have names, and no lines)",
	  "FRAME_POINTERS=1 make build",
	  "cargo build --profile release-with-debug --features jemalloc_profiling",
	  "GET /debug/pprof/allocs of the HTTP RPC port, as a flame graph /debug/pprof/allocs/flamegraph; 501: built without "
	  "jemalloc_profiling, 403: not active" },
	{ "geth", "the official binary, or make geth: both keep symbols and DWARF (images built with -ldflags '-s -w' do not)",
	  NULL, NULL, "GET /debug/pprof/heap of --pprof (127.0.0.1:6060)" },
	{ "anvil", "cargo build --profile profiling of foundry", NULL, NULL, NULL },
	{ "erigon", "make erigon: it keeps symbols", NULL, NULL, "GET /debug/pprof/heap of --pprof (127.0.0.1:6060)" },
	{ "nethermind", "DOTNET_PerfMapEnabled=1 in its environment: names of code that is compiled at run time", NULL, NULL, NULL },
	{ "besu", "java -XX:+PreserveFramePointer -XX:+DumpPerfMapAtExit: names of code that is compiled at run time", NULL, NULL, NULL },
};

static const struct client_build *find_build(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(builds); i++)
		if (!strcmp(builds[i].name, name))
			return &builds[i];
	return NULL;
}

/* By the file's own words, or its name; of the JVM and .NET, whose programs are others' files, by the command line. */
static const struct client_build *recognize(const struct doctor_build *b, const char *command)
{
	const struct client_build *found = find_build(*b->facts.flavour ? b->facts.flavour : b->facts.program);

	if (!found)
		found = find_build(b->program);
	if (!found && command && !strcmp(b->program, "java") && strstr(command, "besu"))
		found = find_build("besu");
	if (!found && command && (!strcmp(b->program, "dotnet") || str_starts(b->program, "Nethermind")) &&
	    strstr(command, "ethermind"))
		found = find_build("nethermind");
	return found;
}

static void check_name(const struct doctor_build *b, const struct client_build *known, struct checks *c)
{
	const struct buildfacts *f = &b->facts;

	if (!known)
		return;
	checks_add(c, "client", CHECK_OK, NULL, NULL, "%s%s%s%s%.12s%s", known->name, *f->version ? " " : "",
		   *f->version ? f->version : ", of a version that its file does not say", *f->commit ? " (" : "", f->commit,
		   *f->commit ? ")" : "");
}

static void check_build(const struct doctor_build *b, const struct client_build *known, struct checks *c)
{
	const struct buildfacts *f = &b->facts;
	const char *names = b->symbols ? b->lines ? "names and lines" : "names, no lines" : "stripped";
	bool whole = (b->symbols && b->lines) || !known; /* of others, symbols and debug info have said it */

	if (!known && !*f->compiler)
		return;
	checks_add(c, "build", whole ? CHECK_OK : CHECK_LIMITED, whole ? NULL : known->lines,
		   whole ? NULL : b->symbols ? "function names; no lines, no inlined calls" : "module and offset; exported names",
		   "%s%s%s%s%s%s%s", *f->compiler ? f->compiler : "compiler unknown", *f->profile ? ", profile " : "", f->profile,
		   *f->features ? ", features " : "", f->features, ", ", names);
}

static void check_frames(const struct doctor_build *b, const struct client_build *known, struct checks *c)
{
	const struct buildfacts *f = &b->facts;
	double share = f->checked ? 100.0 * f->framed / f->checked : 0;

	if (f->checked < 20)
		return;
	if (share >= 60)
		checks_add(c, "frame pointers", CHECK_OK, NULL, NULL, "yes: %.0f %% of its functions set one up", share);
	else
		checks_add(c, "frame pointers", CHECK_OK, known ? known->frames : NULL,
			   "all stacks: they are unwound by tables (other profilers need frame pointers)",
			   "%s: %.0f %% of its functions set one up", share < 15 ? "no" : "in part", share);
}

/* --- jemalloc --- */

/* The last value of an option in jemalloc's syntax, "a:b,c:d"; -1 = it is not there. */
static int option_of(const char *conf, const char *name)
{
	size_t n = strlen(name);
	int value = -1;

	for (const char *s = conf; *s; s += strcspn(s, ","), s += *s == ',')
		if (!strncmp(s, name, n) && s[n] == ':')
			value = str_starts(s + n + 1, "true");
	return value;
}

/* A variable of the process's environment, as it was started with. Caller frees; NULL = it has none. */
static char *variable_of(const char *environment, size_t n, const char *name)
{
	size_t size = strlen(name);

	for (size_t at = 0; at < n; at += strlen(environment + at) + 1)
		if (!strncmp(environment + at, name, size) && environment[at + size] == '=')
			return mem_strdup(environment + at + size + 1);
	return NULL;
}

static void read_settings(pid_t pid, struct doctor_build *b)
{
	static const char *const variables[] = { "MALLOC_CONF", "_RJEM_MALLOC_CONF" };
	bool prefixed = strstr(b->allocator, "_rjem_") != NULL;
	_cleanup_free_ char *path = mem_printf("/proc/%d/environ", pid), *text = NULL, *own = NULL, *other = NULL;
	size_t n = 0;

	b->variable = variables[prefixed];
	if (fd_read_path(path, 1 << 20, &text, &n) >= 0) {
		own = variable_of(text, n, b->variable);
		other = variable_of(text, n, variables[!prefixed]);
	}
	b->ignored = other && !own ? variables[!prefixed] : NULL;
	snprintf(b->conf, sizeof(b->conf), "%s%s%s", b->jemalloc.malloc_conf, *b->jemalloc.malloc_conf && own ? "," : "",
		 own ? own : "");
	plain_in_place(b->conf);
	if (b->jemalloc.prof != BUILDFACTS_PROF_YES)
		b->heap = HEAP_NOT_COMPILED;
	else if (option_of(b->conf, "prof") != 1)
		b->heap = HEAP_OFF;
	else
		b->heap = option_of(b->conf, "prof_active") ? HEAP_ACTIVE : HEAP_INACTIVE;
}

static void check_jemalloc(const struct doctor_build *b, const struct client_build *known, struct checks *c)
{
	static const char without[] = "gasflame record -e heap, which needs none of it";
	_cleanup_free_ char *on = mem_printf("start it with %s=prof:true", b->variable);
	_cleanup_free_ char *instead = mem_printf("set %s instead", b->variable);

	checks_add(c, "jemalloc", CHECK_OK, NULL, NULL, "%s: it reads %s; %s%s",
		   strstr(b->allocator, "_rjem_") ? "with the prefix _rjem_" : "without a prefix", b->variable,
		   *b->conf ? "configured by " : "no configuration is compiled in or set", b->conf);
	if (b->ignored)
		checks_add(c, b->ignored, CHECK_LIMITED, instead, NULL,
			   "is set, and has no effect: this jemalloc reads %s", b->variable);
	switch (b->heap) {
	case HEAP_NOT_COMPILED:
		checks_add(c, "heap profiling", CHECK_LIMITED,
			   known && known->prof ? known->prof : "a jemalloc that was configured with --enable-prof", without,
			   "not compiled into its jemalloc: %s=prof:true has no effect", b->variable);
		break;
	case HEAP_OFF:
		checks_add(c, "heap profiling", CHECK_LIMITED, on, without, "compiled into its jemalloc, but off");
		break;
	case HEAP_INACTIVE:
		checks_add(c, "heap profiling", CHECK_LIMITED, "gasflame heap dump --active on TARGET", without,
			   "on, but not active: prof_active:false");
		break;
	case HEAP_ACTIVE:
		checks_add(c, "heap profiling", CHECK_OK, NULL, NULL, "on and active: gasflame heap dump TARGET");
		break;
	case HEAP_UNKNOWN:
		break;
	}
}

void doctor_check_client(pid_t pid, struct doctor_build *b, struct checks *c)
{
	_cleanup_free_ char *command = proc_command(pid);
	const struct client_build *known = recognize(b, command);

	b->client = known ? known->name : NULL;
	check_name(b, known, c);
	check_build(b, known, c);
	check_frames(b, known, c);
	if (str_starts(b->allocator, "jemalloc")) {
		read_settings(pid, b);
		check_jemalloc(b, known, c);
	}
	if (known && known->endpoint)
		checks_add(c, "heap endpoint", CHECK_OK, NULL, NULL, "%s; read by gasflame heap dump --url URL", known->endpoint);
}

void doctor_build_json(const struct doctor_build *b, struct json *j)
{
	static const char *const heaps[] = { [HEAP_NOT_COMPILED] = "not compiled in", [HEAP_OFF] = "off", [HEAP_INACTIVE] = "inactive",
					     [HEAP_ACTIVE] = "active" };
	const struct buildfacts *f = &b->facts;

	json_open_object_line(j, "build", 2);
	json_put_string(j, "client", b->client);
	json_put_string(j, "version", *f->version ? f->version : NULL);
	json_put_string(j, "commit", *f->commit ? f->commit : NULL);
	json_put_string(j, "compiler", *f->compiler ? f->compiler : NULL);
	json_put_string(j, "profile", *f->profile ? f->profile : NULL);
	json_put_string(j, "features", *f->features ? f->features : NULL);
	json_put_bool(j, "symbols", b->symbols);
	json_put_bool(j, "lines", b->lines);
	if (f->checked)
		json_put_fixed(j, "frame_pointers_percent", 100.0 * f->framed / f->checked, 1);
	json_put_string(j, "allocator", *b->allocator ? b->allocator : NULL);
	if (b->heap != HEAP_UNKNOWN) {
		json_put_string(j, "malloc_conf_variable", b->variable);
		json_put_string(j, "malloc_conf_ignored", b->ignored);
		json_put_string(j, "malloc_conf_compiled", b->jemalloc.malloc_conf);
		json_put_string(j, "malloc_conf", b->conf);
		json_put_string(j, "heap_profiling", heaps[b->heap]);
	}
	json_close(j);
}
