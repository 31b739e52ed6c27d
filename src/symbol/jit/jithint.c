#include "symbol/jit/jithint.h"

#include <stdio.h>
#include <string.h>

#include "base/text/str.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "symbol/jit/jitfiles.h"

/* How a file of a run time is called: a name, or a name that goes on with a version ("libluajit-5.1.so.2"). */
static const struct {
	const char *file;
	struct jithint hint;
} known[] = {
	{ "libjvm.so", { "Java", "jcmd PID Compiler.perfmap while it is recorded (JDK 17 and later), or java "
			 "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit" } },
	{ "libcoreclr.so", { ".NET", "start it with DOTNET_PerfMapEnabled=1" } },
	{ "libnode.so", { "node", "start it with node --perf-basic-prof" } },
	{ "node", { "node", "start it with node --perf-basic-prof" } },
	{ "bun", { "bun", NULL } },
	{ "libluajit-", { "LuaJIT", NULL } },
	{ "luajit", { "LuaJIT", NULL } },
	{ "opcache.so", { "PHP", "start it with -d opcache.jit_debug=16" } },
	{ "libpypy3.", { "PyPy", NULL } },
	{ "beam.smp", { "Erlang", "start it with erl +JPperf true" } },
	{ "libpython3.", { "Python", "start it with python -X perf (3.12 and later)" } },
};

const struct jithint *jithint_of_file(const char *path)
{
	const char *base = str_base_name(path);

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		size_t n = strlen(known[i].file);

		if (!strncmp(base, known[i].file, n) && (!base[n] || strchr("-.", known[i].file[n - 1]) || strchr("-.", base[n])))
			return &known[i].hint;
	}
	return NULL;
}

static const struct jithint *find(const struct profile *p, uint32_t process)
{
	const struct jithint *h = jithint_of_file(profile_str(p, p->processes.v[process].exe));

	for (size_t i = 0; !h && i < p->mappings.n; i++)
		if (p->mappings.v[i].process == process && p->mappings.v[i].module < p->modules.n)
			h = jithint_of_file(profile_str(p, p->modules.v[p->mappings.v[i].module].path));
	return h;
}

void jithint_put(const struct profile *p, uint32_t process, const struct jitfiles_process *x, char *out, size_t size)
{
	const struct profile_process *who = &p->processes.v[process];
	const struct jithint *h = find(p, process);
	const char *path = x && x->folder_count ? x->folders[0].path : "/tmp/perf-PID.map";
	bool have = false;

	for (unsigned i = 0; x && i < x->folder_count; i++)
		have |= x->folders[i].map >= 0;
	if (have || (x && x->dumps.n))
		snprintf(out, size, "[jit]: some of the code that process %u (%s) made at run time is not in %s", who->pid,
			 profile_str(p, who->name), have ? path : x->dumps.v[0].path);
	else if (h && !h->names)
		snprintf(out, size, "[jit]: no names for code that process %u made at run time: %s writes no map of it", who->pid,
			 h->runtime);
	else if (h)
		snprintf(out, size, "[jit]: no names for code that process %u made at run time, as %s wrote no %s: %s", who->pid,
			 h->runtime, path, h->names);
	else
		snprintf(out, size, "[jit]: no names for code that process %u made at run time: have it write %s (node "
			 "--perf-basic-prof, Java: jcmd PID Compiler.perfmap, .NET: DOTNET_PerfMapEnabled=1)", who->pid, path);
}
