/*
 * dockerstate.c - Docker's containers by the files of the daemon, where its socket does not answer:
 * <data-root>/containers/ID/config.v2.json.
 */
#include <string.h>

#include "base/text/str.h"
#include "target/container/container.h"
#include "target/container/enginejson.h"

enum { STATE_MAX = 4 << 20 };

struct folder {
	const char *path;
	const struct container_query *q;
	struct containers *ret;
};

static void look(void *context, const char *id)
{
	struct folder *f = context;
	_cleanup_free_ char *path = mem_printf("%s/%s/config.v2.json", f->path, id), *text = NULL;
	struct container c;
	size_t n;

	if (container_read(path, STATE_MAX, &text, &n))
		return;
	/* Hundreds of containers, one of which is meant: most need not be parsed. */
	if (f->q->name && !f->q->pods && !str_starts(id, f->q->name) && !strstr(text, f->q->name))
		return;
	if (enginejson_inspect(text, n, &c))
		return;
	c.engine = "docker";
	c.hearsay = true;
	containers_add(f->ret, f->q, &c);
}

void dockerstate_look(const char *data_root, const struct container_query *q, struct containers *ret)
{
	_cleanup_free_ char *path = mem_printf("%s/containers", data_root);
	struct folder f = { path, q, ret };

	container_each(path, look, &f);
}
