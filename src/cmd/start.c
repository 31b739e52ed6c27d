#include "cmd/start.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/err.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "target/resolve.h"

/* Thousands of threads and mapped files each need a descriptor. */
void start_raise_limits(void)
{
	struct rlimit rl;

	if (!getrlimit(RLIMIT_NOFILE, &rl)) {
		rl.rlim_cur = rl.rlim_max;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
	/* Before 5.11 BPF maps counted as locked memory. */
	setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
}

/* A library that a target maps needs its table within milliseconds, and on a busy machine we would wait for
 * our turn behind the very target. Where that is permitted; what comes after the recording is not urgent. */
void start_hurry(bool on)
{
	static int before;

	if (on)
		before = getpriority(PRIO_PROCESS, 0);
	setpriority(PRIO_PROCESS, 0, on ? -10 : before);
}

int start_find(struct start *s, const struct option_list *pids, char **names, int count, struct err *err)
{
	for (int i = 0; i < (int)pids->list.n + count; i++) {
		const char *name = i < (int)pids->list.n ? pids->list.v[i] : names[i - pids->list.n];
		struct proc_ids found = { 0 };
		int e = target_resolve(name, &found, err);

		if (e < 0)
			return e;
		for (size_t k = 0; k < found.list.n; k++)
			vec_push(&s->pids.list, found.list.v[k]);
		if (!s->label) {
			s->label = target_label(name, &found);
			/* A number says little in a title. */
			s->target = strspn(name, "0123456789") == strlen(name) ?
					    mem_printf("%s (%s)", s->label, name) : mem_strdup(name);
		}
		vec_done(&found.list);
	}
	if (!s->pids.list.n)
		return err_set(err, EINVAL, "say what to record: a pid or a name, or -- COMMAND (gasflame record --help)");
	return 0;
}

void start_done(struct start *s)
{
	vec_done(&s->pids.list);
	free(s->label);
	free(s->target);
	*s = (struct start){ 0 };
}
