#include "cmd/recording/start.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "sandbox/privilege.h"
#include "target/hurry.h"

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
	static bool known;

	if (on && !known) {
		before = getpriority(PRIO_PROCESS, 0);
		known = true;
	}
	setpriority(PRIO_PROCESS, 0, on ? -10 : before);
	if (hurry_look())
		log_warn(HURRY_WORDS);
}

/* Root without capabilities writes to root's folders only. */
static unsigned needs_of(const char *output)
{
	const char *slash = output ? strrchr(output, '/') : NULL;
	_cleanup_free_ char *folder = slash ? mem_strndup(output, slash - output + 1) : mem_strdup(".");
	unsigned needs = 0;
	struct stat st;

	if (!output || geteuid())
		return 0;
	if (stat(folder, &st) || st.st_uid || !(st.st_mode & S_IWUSR))
		needs |= PRIVILEGE_OTHERS_FOLDER;
	if (getenv("SUDO_UID"))
		needs |= PRIVILEGE_GIVE;
	return needs;
}

void start_settle(const char *output, bool hooks)
{
	privilege_enter(PRIVILEGE_RECORDING, needs_of(output) | (hooks ? PRIVILEGE_HEAP : 0));
}

void start_settle_more(const char *output)
{
	privilege_enter(PRIVILEGE_FINISHING, needs_of(output));
}

void start_say(const char *name, const struct target_found *f)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < f->notes.list.n; i++)
		if (!f->notes.list.v[i].minor)
			log_warn("%s", f->notes.list.v[i].text);
	/* Of a pid there is nothing to say but where it lives. */
	if (f->kind != TARGET_PID || f->containers.list.n) {
		target_describe(name, f, &b);
		log_info("Found %s", b.data);
	}
	buf_done(&b);
}

int start_find(struct start *s, const struct option_list *pids, char **names, int count, struct err *err)
{
	for (int i = 0; i < (int)pids->list.n + count; i++) {
		const char *name = i < (int)pids->list.n ? pids->list.v[i] : names[i - pids->list.n];
		struct target_found found;
		int e = target_find(name, &found, err);

		if (hurry_look())
			log_warn(HURRY_WORDS);
		if (e < 0)
			return e;
		start_say(name, &found);
		for (size_t k = 0; k < found.pids.list.n; k++)
			vec_push(&s->pids.list, found.pids.list.v[k]);
		if (!s->label) {
			s->label = target_label(name, &found);
			s->target = target_title(name, &found);
		}
		vec_push(&s->found, found);
	}
	if (!s->pids.list.n)
		return err_set(err, EINVAL,
			       "say what to record: a container, a unit, a process by name or pid, or -- COMMAND (gasflame ps lists "
			       "what there is)");
	return 0;
}

/* "4242 (sh), 4250 (reth)" */
static void list_processes(const struct proc_ids *pids, struct buf *out)
{
	enum { SHOWN = 6 };

	for (size_t i = 0; i < pids->list.n && i < SHOWN; i++) {
		struct proc_stat stat;

		if (!proc_stat(pids->list.v[i], &stat))
			buf_printf(out, "%s%d (%s)", out->n ? ", " : "", (int)pids->list.v[i], command_plain(stat.name));
	}
	if (pids->list.n > SHOWN)
		buf_puts(out, ", ...");
}

int start_find_one(const char *name, pid_t *ret, char **ret_label, struct err *err)
{
	struct target_found found;
	struct proc_ids pids;
	struct buf b = { 0 };
	int r = target_find(name, &found, err);

	if (r < 0)
		return r;
	start_say(name, &found);
	target_without_wrappers(&found, &pids);
	if (pids.list.n > 1) {
		list_processes(&pids, &b);
		r = err_set(err, EINVAL, "%s is %zu processes: name one by its pid: %s", name, pids.list.n, b.n ? b.data : "");
	} else {
		*ret = found.main_pid;
		if (ret_label)
			*ret_label = target_label(name, &found);
	}
	buf_done(&b);
	vec_done(&pids.list);
	target_found_done(&found);
	return r;
}

void start_done(struct start *s)
{
	for (size_t i = 0; i < s->found.n; i++)
		target_found_done(&s->found.v[i]);
	vec_done(&s->found);
	vec_done(&s->pids.list);
	free(s->label);
	free(s->target);
	*s = (struct start){ 0 };
}
