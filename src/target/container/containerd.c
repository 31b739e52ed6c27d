/*
 * containerd.c - containers of containerd, and so most pods of Kubernetes, by the folders that it keeps while they
 * run: <state>/io.containerd.runtime.v2.task/NAMESPACE/ID/{init.pid,config.json}. Its own store is a database that
 * only it may open.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "target/container/container.h"
#include "target/container/enginejson.h"

enum { STATE_MAX = 4 << 20 };

struct tasks {
	char *path; /* of all, then of a namespace of containerd's */
	const struct container_query *q;
	struct containers *ret;
};

static void look_task(void *context, const char *id)
{
	struct tasks *t = context;
	_cleanup_free_ char *pid_path = mem_printf("%s/%s/init.pid", t->path, id),
			    *path = mem_printf("%s/%s/config.json", t->path, id), *text = NULL;
	struct container c = { .engine = "containerd", .running = true, .hearsay = true, .pid = container_read_pid(pid_path) };
	size_t n;

	if (!c.pid || container_read(path, STATE_MAX, &text, &n))
		return;
	c.id = mem_strdup(id);
	if (enginejson_bundle(text, n, &c))
		container_done(&c);
	else
		containers_add(t->ret, t->q, &c);
}

static void look_namespace(void *context, const char *name)
{
	struct tasks *t = context;
	_cleanup_free_ char *path = mem_printf("%s/%s", t->path, name);
	struct tasks below = { path, t->q, t->ret };

	/* These are Docker's, which knows their names. */
	if (strcmp(name, "moby"))
		container_each(path, look_task, &below);
}

void containerd_look(const char *state, const struct container_query *q, struct containers *ret)
{
	_cleanup_free_ char *path = mem_printf("%s/io.containerd.runtime.v2.task", state);
	struct tasks t = { path, q, ret };

	container_each(path, look_namespace, &t);
}
