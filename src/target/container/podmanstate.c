/*
 * podmanstate.c - containers of podman and CRI-O by the store that both keep: names are in
 * <root>/<driver>-containers/containers.json, pids in <run root>/<driver>-containers/ID/userdata/pidfile.
 */

#include "base/text/str.h"
#include "target/container/container.h"
#include "target/container/enginejson.h"

enum { STATE_MAX = 64 << 20, BUNDLE_MAX = 4 << 20 };

struct store {
	const char *root, *run_root, *driver;
	const struct container_query *q;
	struct containers *ret;
};

/* The file stays when a container ends: the caller checks later whether that process is in its cgroup. */
static void read_pid(const struct store *s, struct container *c)
{
	_cleanup_free_ char *path = mem_printf("%s/%s/%s/userdata/pidfile", s->run_root, s->driver, c->id);

	c->pid = container_read_pid(path);
	c->running = c->pid;
	c->hearsay = true;
}

/* Of those that are asked for by name: a list of all is wanted often, and does without. CRI-O has the file in both folders, podman in that which stays. */
static void read_annotations(const struct store *s, struct container *c)
{
	const char *const roots[] = { s->run_root, s->root };

	if (!s->q->name || !container_matches(c, s->q))
		return;
	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		_cleanup_free_ char *path = mem_printf("%s/%s/%s/userdata/config.json", roots[i], s->driver, c->id), *text = NULL;
		size_t n;

		if (!container_read(path, BUNDLE_MAX, &text, &n) && !enginejson_annotations(text, n, c))
			return;
	}
}

static void look_file(const struct store *s, const char *file)
{
	_cleanup_free_ char *path = mem_printf("%s/%s/%s", s->root, s->driver, file), *text = NULL;
	struct containers all;
	size_t n;

	if (container_read(path, STATE_MAX, &text, &n) || enginejson_store(text, n, &all))
		return;
	for (size_t i = 0; i < all.list.n; i++) {
		struct container *c = &all.list.v[i];

		c->engine = c->pod ? "cri-o" : "podman";
		read_pid(s, c);
		read_annotations(s, c);
		containers_add(s->ret, s->q, c);
	}
	vec_done(&all.list);
}

static void look_driver(void *context, const char *name)
{
	struct store *s = context;

	if (!str_ends(name, "-containers"))
		return;
	s->driver = name;
	look_file(s, "containers.json");
	look_file(s, "volatile-containers.json");
}

void podmanstate_look(const char *root, const char *run_root, const struct container_query *q, struct containers *ret)
{
	struct store s = { root, run_root, NULL, q, ret };

	container_each(root, look_driver, &s);
}
