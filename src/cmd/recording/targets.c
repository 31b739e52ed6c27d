#include "cmd/recording/targets.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text/plain.h"
#include "cmd/cmd.h"
#include "target/hurry.h"

void targets_say(const char *name, const struct target_found *f)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	for (size_t i = 0; i < f->notes.list.n; i++)
		if (!f->notes.list.v[i].minor)
			log_warn("%s", f->notes.list.v[i].text);
	/* Of a pid there is nothing to say but where it lives. */
	if (f->kind != TARGET_PID || f->containers.list.n) {
		target_describe(name, f, &b);
		log_info("Found %s", b.data);
	}
}

int targets_find(struct targets *s, const struct option_list *pids, char **names, int count, struct err *err)
{
	for (int i = 0; i < (int)pids->list.n + count; i++) {
		const char *name = i < (int)pids->list.n ? pids->list.v[i] : names[i - pids->list.n];
		struct target_found found;
		int e = target_find(name, &found, err);

		if (hurry_look())
			log_warn(HURRY_WORDS);
		if (e < 0)
			return e;
		targets_say(name, &found);
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
			buf_printf(out, "%s%d (%s)", out->n ? ", " : "", (int)pids->list.v[i], plain_in_place(stat.name));
	}
	if (pids->list.n > SHOWN)
		buf_puts(out, ", ...");
}

int targets_find_one(const char *name, pid_t *ret, char **ret_label, struct err *err)
{
	struct target_found found;
	struct proc_ids pids;
	_cleanup_(buf_done) struct buf b = { 0 };
	int r = target_find(name, &found, err);

	if (r < 0)
		return r;
	targets_say(name, &found);
	target_without_wrappers(&found, &pids);
	if (pids.list.n > 1) {
		list_processes(&pids, &b);
		r = err_set(err, EINVAL, "%s is %zu processes: name one by its pid: %s", name, pids.list.n, b.n ? b.data : "");
	} else {
		*ret = found.main_pid;
		if (ret_label)
			*ret_label = target_label(name, &found);
	}
	vec_done(&pids.list);
	target_found_done(&found);
	return r;
}

void targets_done(struct targets *s)
{
	vec_done_each(&s->found, e, target_found_done(e));
	vec_done(&s->pids.list);
	free(s->label);
	free(s->target);
	*s = (struct targets){ 0 };
}
