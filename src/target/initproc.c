#include "target/initproc.h"

#include <string.h>

#include "base/map.h"
#include "target/proc.h"

struct member {
	pid_t pid;
	struct proc_stat stat;
};

struct members {
	VEC(struct member) list;
};

bool initproc_is_wrapper(const char *name)
{
	static const char *const wrappers[] = { "tini", "tini-static", "docker-init", "podman-init", "dumb-init",
						"catatonit" };

	for (size_t i = 0; i < ARRAY_LEN(wrappers); i++)
		if (!strcmp(name, wrappers[i]))
			return true;
	return false;
}

static const struct member *find(const struct members *all, pid_t pid)
{
	for (size_t i = 0; i < all->list.n; i++)
		if (all->list.v[i].pid == pid)
			return &all->list.v[i];
	return NULL;
}

/* The oldest of those whose parent this is; NULL: whose parent is none of them. */
static const struct member *oldest_below(const struct members *all, const struct member *parent)
{
	const struct member *best = NULL;

	for (size_t i = 0; i < all->list.n; i++) {
		const struct member *m = &all->list.v[i];

		if (parent ? m->stat.parent != parent->pid : !!find(all, m->stat.parent))
			continue;
		if (!best || m->stat.start_ticks < best->stat.start_ticks ||
		    (m->stat.start_ticks == best->stat.start_ticks && m->pid < best->pid))
			best = m;
	}
	return best;
}

pid_t initproc_main(struct proc_ids *pids, pid_t first)
{
	struct members all = { 0 };
	const struct member *main, *below;
	_cleanup_(map_done) struct map seen = { 0 };
	pid_t result = 0;

	for (size_t i = 0; i < pids->list.n; i++) {
		struct member m = { .pid = pids->list.v[i] };

		if (!proc_stat(m.pid, &m.stat) && m.stat.state != 'Z' && m.stat.state != 'X')
			vec_push(&all.list, m);
	}
	main = find(&all, first);
	if (!main)
		main = oldest_below(&all, NULL);
	/* Parents change while we look: no circle may catch us. */
	while (main && initproc_is_wrapper(main->stat.name) && !map_get(&seen, main->pid) &&
	       (below = oldest_below(&all, main))) {
		map_put(&seen, main->pid, 1);
		main = below;
	}
	vec_clear(&pids->list);
	if (main) {
		result = main->pid;
		vec_push(&pids->list, result);
		for (size_t i = 0; i < all.list.n; i++)
			if (all.list.v[i].pid != result)
				vec_push(&pids->list, all.list.v[i].pid);
	}
	vec_done(&all.list);
	return result;
}
