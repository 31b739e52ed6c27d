/*
 * dockerapi.c - containers by the socket of Docker, or of podman, which answers alike. Nothing but GET.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "target/container/container.h"
#include "target/container/enginejson.h"
#include "net/http.h"

static const uint64_t answer_max = 32 << 20;

struct api {
	const char *engine, *socket;
	const struct container_query *q;
};

/* Each may take half of the time that is left, so that a dead one leaves some for the others. */
static unsigned patience_ms(const struct container_query *q)
{
	uint64_t now = clock_mono_ns();

	return now < q->deadline_ns ? (unsigned)((q->deadline_ns - now) / 2000000) + 1 : 1;
}

static int get(const struct api *a, const char *path, char **ret, size_t *ret_n, struct err *err)
{
	_cleanup_free_ char *url = mem_printf("http://localhost%s", path);
	const struct http_limits limits = { .bytes = answer_max, .total_ms = patience_ms(a->q), .socket = a->socket };

	return http_get_text(url, &limits, ret, ret_n, err);
}

static void tell(const struct api *a, bool minor, const char *why)
{
	container_say(a->q, minor, "%s does not answer at %s (%s); its state files are read instead", a->engine, a->socket,
		      why);
}

/* -ENOENT: the engine has none of that name. */
static int look_one(const struct api *a, struct containers *ret, struct err *err)
{
	_cleanup_free_ char *path = mem_printf("/containers/%s/json", a->q->name), *text = NULL;
	struct container c;
	size_t n;
	int r = get(a, path, &text, &n, err);

	if (r)
		return r;
	if (enginejson_inspect(text, n, &c))
		return err_set(err, EPROTO, "its answer does not describe a container");
	c.engine = a->engine;
	containers_add(ret, a->q, &c);
	return 0;
}

static int look_all(const struct api *a, struct containers *ret, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	struct containers all;
	size_t n;
	/* Stopped containers matter only when the user names one. */
	int r = get(a, a->q->name ? "/containers/json?all=1" : "/containers/json", &text, &n, err);

	if (r)
		return r;
	if (enginejson_list(text, n, &all))
		return err_set(err, EPROTO, "its answer is not a list of containers");
	for (size_t i = 0; i < all.list.n; i++) {
		all.list.v[i].engine = a->engine;
		containers_add(ret, a->q, &all.list.v[i]);
	}
	vec_done(&all.list);
	return 0;
}

static bool is_hex(const char *s)
{
	return strspn(s, "0123456789abcdef") == strlen(s);
}

int dockerapi_look(const char *engine, const char *socket, const struct container_query *q, struct containers *ret)
{
	const struct api a = { engine, socket, q };
	struct err err = { 0 };
	struct stat st;
	int r;

	/* A socket that did not answer is not asked again. */
	if (container_said(q, socket))
		return -EIO;
	/* Few run Kubernetes on these engines, and their list may be long: a bare word is not looked for there. */
	if (q->pods && !q->forced && !strchr(q->name, '/'))
		return 0;
	/* Most machines have not all engines: that is nothing to tell. */
	if (stat(socket, &st))
		return -errno;
	if (!S_ISSOCK(st.st_mode)) {
		tell(&a, false, "no socket");
		return -ENOTSOCK;
	}
	if (access(socket, W_OK)) {
		tell(&a, true, "no permission: run it as root");
		return -EACCES;
	}
	if (q->name && !q->pods) {
		size_t before = ret->list.n;

		r = look_one(&a, ret, &err);
		/* The beginning of several ids is an error to the engine, and a choice to us. */
		if (r != -EOPNOTSUPP && ret->list.n == before && is_hex(q->name) && clock_mono_ns() < q->deadline_ns)
			r = look_all(&a, ret, &err);
	} else {
		r = look_all(&a, ret, &err);
	}
	if (r && r != -ENOENT && r != -EOPNOTSUPP)
		tell(&a, false, err.text);
	return r == -ENOENT ? 0 : r;
}
