#include "target/cgroup/cgrouppath.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"

enum { GROUP_TEXT_MAX = 1 << 16, ID_DIGITS = 64 };

/* A component of a path, between slashes. */
struct part {
	const char *s;
	size_t n;
};

static bool is_hex(const char *s, size_t n)
{
	return strspn(s, "0123456789abcdef") >= n;
}

static bool part_is(struct part p, const char *s)
{
	return p.n == strlen(s) && !memcmp(p.s, s, p.n);
}

static bool part_ends(struct part p, const char *s)
{
	size_t n = strlen(s);

	return p.n > n && !memcmp(p.s + p.n - n, s, n);
}

/* The next part of a path that ends at end; false if there is none. */
static bool next_part(const char **at, const char *end, struct part *ret)
{
	while (*at < end && **at == '/')
		++*at;
	ret->s = *at;
	while (*at < end && **at != '/')
		++*at;
	ret->n = *at - ret->s;
	return ret->n;
}

/* Without what systemd and the engines put around an id: "docker-ID.scope", "libpod-ID". */
static struct part strip(struct part p, size_t id_n, struct part *ret_prefix)
{
	if (part_ends(p, ".scope"))
		p.n -= strlen(".scope");
	*ret_prefix = (struct part){ p.s, 0 };
	if (p.n > id_n && p.s[p.n - id_n - 1] == '-') {
		ret_prefix->n = p.n - id_n - 1;
		p.s += p.n - id_n;
		p.n = id_n;
	}
	return p;
}

/* The process that watches a container of podman is in a group named after it, but not in the container. */
static bool is_monitor(struct part prefix)
{
	return part_is(prefix, "conmon") || part_ends(prefix, "-conmon");
}

static const char *engine_of(struct part prefix, struct part above)
{
	static const struct {
		const char *word, *engine;
	} known[] = {
		{ "docker", "docker" },  { "libpod", "podman" }, { "cri-containerd", "containerd" },
		{ "nerdctl", "containerd" }, { "crio", "cri-o" },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (part_is(prefix.n ? prefix : above, known[i].word))
			return known[i].engine;
	return "";
}

static bool is_unit(struct part p)
{
	return part_ends(p, ".service") && p.n < 256;
}

/* Parses the path of one cgroup. */
static void parse_path(const char *path, const char *end, struct cgrouppath *ret)
{
	struct part p, above = { path, 0 }, prefix;

	*ret = (struct cgrouppath){ .engine = "" };
	for (const char *at = path; next_part(&at, end, &p); above = p) {
		struct part id = strip(p, ID_DIGITS, &prefix);

		if (id.n == ID_DIGITS && is_hex(id.s, ID_DIGITS) && !is_monitor(prefix)) {
			ret->container = mem_strndup(id.s, id.n);
			ret->engine = engine_of(prefix, above);
			break;
		}
		if (is_unit(p)) {
			free(ret->unit);
			free(ret->unit_path);
			ret->unit = mem_strndup(p.s, p.n);
			ret->unit_path = mem_strndup(path, at - path);
		}
	}
	/* An engine's containers may be below its own unit, but are not part of that unit. */
	if (ret->container) {
		free(ret->unit);
		free(ret->unit_path);
		ret->unit = ret->unit_path = NULL;
	}
	if (end - path > 1)
		ret->path = mem_strndup(path, end - path);
}

/* Rates how much a path tells: the unified hierarchy is the kernel's own name for a cgroup. */
static int worth(const struct cgrouppath *g, bool unified)
{
	return (g->container ? 8 : g->unit ? 4 : g->path ? 2 : 0) + unified;
}

/* The path of the next line that has one: "4:memory:/path", of version 2 "0::/path". False: there is none. */
static bool next_path(const char **text, struct part *ret, bool *ret_unified)
{
	while (**text) {
		const char *line = *text, *end = line + strcspn(line, "\n"), *list = memchr(line, ':', end - line), *path;

		*text = end + (*end == '\n');
		path = list ? memchr(list + 1, ':', end - list - 1) : NULL;
		if (path && path + 1 < end && path[1] == '/') {
			*ret = (struct part){ path + 1, end - path - 1 };
			*ret_unified = path == list + 1;
			return true;
		}
	}
	return false;
}

void cgrouppath_parse(const char *text, struct cgrouppath *ret)
{
	struct part path;
	bool unified;
	int best = -1;

	*ret = (struct cgrouppath){ .engine = "" };
	while (next_path(&text, &path, &unified)) {
		struct cgrouppath g, less;
		int w;

		parse_path(path.s, path.s + path.n, &g);
		w = worth(&g, unified);
		less = w > best ? *ret : g;
		if (w > best) {
			*ret = g;
			best = w;
		}
		cgrouppath_done(&less);
	}
}

bool cgrouppath_has(const char *text, const char *id)
{
	size_t id_n = strlen(id);
	struct part path;
	bool unified;

	while (id_n && next_path(&text, &path, &unified)) {
		const char *at = path.s, *end = path.s + path.n;
		struct part p, prefix;

		while (next_part(&at, end, &p)) {
			struct part found = strip(p, id_n, &prefix);

			if (found.n == id_n && !memcmp(found.s, id, id_n) && !is_monitor(prefix))
				return true;
		}
	}
	return false;
}

void cgrouppath_done(struct cgrouppath *g)
{
	free(g->path);
	free(g->container);
	free(g->unit);
	free(g->unit_path);
	*g = (struct cgrouppath){ .engine = "" };
}

char *cgrouppath_text(pid_t pid)
{
	char path[64], *text = NULL;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	return fd_read_path(path, GROUP_TEXT_MAX, &text, NULL) < 0 ? NULL : text;
}

int cgrouppath_read(pid_t pid, struct cgrouppath *ret)
{
	_cleanup_free_ char *text = cgrouppath_text(pid);

	cgrouppath_parse(text ? text : "", ret);
	return text ? 0 : -ESRCH;
}

int cgrouppath_of(const char *id, struct proc_ids *ret)
{
	struct proc_ids all;
	int r;

	*ret = (struct proc_ids){ 0 };
	r = proc_list(&all);
	for (size_t i = 0; !r && i < all.list.n; i++) {
		_cleanup_free_ char *text = all.list.v[i] == getpid() ? NULL : cgrouppath_text(all.list.v[i]);

		if (text && cgrouppath_has(text, id))
			vec_push(&ret->list, all.list.v[i]);
	}
	vec_done(&all.list);
	return r;
}
