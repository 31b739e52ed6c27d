#include "target/systemd.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/text/str.h"
#include "target/cgroup/cgrouppath.h"

struct unit {
	char *path;
	struct proc_ids pids;
};

struct units {
	VEC(struct unit) list;
};

bool systemd_is_unit(const char *s)
{
	for (const char *p = s; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr(":_.\\@-", *p))
			return false;
	return *s && *s != '.' && strlen(s) < 256;
}

static void add_to_unit(struct units *all, const char *path, pid_t pid)
{
	size_t i = 0;

	while (i < all->list.n && strcmp(all->list.v[i].path, path))
		i++;
	if (i == all->list.n)
		vec_push(&all->list, (struct unit){ .path = mem_strdup(path) });
	vec_push(&all->list.v[i].pids.list, pid);
}

/* Units of that name, or with that path. */
static int read_units(const char *name, const char *path, struct units *ret)
{
	struct proc_ids all;
	int r = proc_list(&all);

	*ret = (struct units){ 0 };
	for (size_t i = 0; !r && i < all.list.n; i++) {
		struct cgrouppath g;

		if (all.list.v[i] == getpid())
			continue;
		if (!cgrouppath_read(all.list.v[i], &g) && g.unit &&
		    (path ? !strcmp(g.unit_path, path) : !strcmp(g.unit, name)))
			add_to_unit(ret, g.unit_path, all.list.v[i]);
		cgrouppath_done(&g);
	}
	vec_done(&all.list);
	return r;
}

/* The system's go before users'. */
static int choose(const char *name, const struct units *all, size_t *ret, struct err *err)
{
	enum { SHOWN = 4 };
	size_t system = 0;
	_cleanup_(buf_done) struct buf b = { 0 };

	*ret = 0;
	for (size_t i = 0; i < all->list.n; i++)
		if (!strstr(all->list.v[i].path, "/user.slice/")) {
			*ret = i;
			system++;
		}
	if (all->list.n == 1 || system == 1)
		return 0;
	for (size_t i = 0; i < all->list.n && i < SHOWN; i++)
		buf_printf(&b, "%sunit:%.100s", i ? ", " : "", all->list.v[i].path);
	err_set(err, ENOTUNIQ, "%s is %zu units; name one of them: %s%s", name, all->list.n, b.data,
		all->list.n > SHOWN ? ", ..." : "");
	return -ENOTUNIQ;
}

int systemd_find_unit(const char *name, struct proc_ids *ret, struct err *err)
{
	_cleanup_free_ char *whole = mem_printf("%s%s", name, str_ends(name, ".service") ? "" : ".service");
	struct units all;
	size_t which = 0;
	int r = read_units(whole, *name == '/' ? name : NULL, &all);

	if (!r)
		r = all.list.n ? choose(name, &all, &which, err) : -ENOENT;
	for (size_t i = 0; i < all.list.n; i++) {
		for (size_t k = 0; !r && i == which && k < all.list.v[i].pids.list.n; k++)
			vec_push(&ret->list, all.list.v[i].pids.list.v[k]);
		free(all.list.v[i].path);
		vec_done(&all.list.v[i].pids.list);
	}
	vec_done(&all.list);
	return r;
}
