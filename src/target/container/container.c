#include "target/container/container.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file/fd.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "target/container/enginejson.h"
#include "target/open.h"
#include "target/proc.h"

enum { CONF_MAX = 1 << 20, PIDFILE_MAX = 64 };

/* --- names --- */

bool container_is_name(const char *s)
{
	size_t n = strlen(s);

	/* A name that begins with a dot would be "..". */
	if (!n || n > 255 || (!isalnum((unsigned char)*s) && *s != '_'))
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("_.-", *s))
			return false;
	return true;
}

bool container_is_pod(const char *s)
{
	int slashes = 0;

	for (const char *p = s;; p++) {
		if (islower((unsigned char)*p) || isdigit((unsigned char)*p))
			continue;
		/* No part is empty, or begins or ends with anything but a letter or a digit. */
		if (p == s || !isalnum((unsigned char)p[-1]))
			return false;
		if (!*p)
			break;
		if (*p == '/')
			slashes++;
		else if (*p != '-' && *p != '.')
			return false;
		if (!isalnum((unsigned char)p[1]) && p[1] != '-')
			return false;
	}
	return slashes <= 2;
}

void container_read_pod_name(struct container *c)
{
	_cleanup_free_ char *copy = mem_strdup(c->name);
	char *part[6], *save = NULL;
	size_t n = 0;

	for (char *p = strtok_r(copy, "_", &save); p && n < ARRAY_LEN(part); p = strtok_r(NULL, "_", &save))
		part[n++] = p;
	if (n < 5 || strcmp(part[0], "k8s"))
		return;
	c->part = mem_strdup(part[1]);
	c->pod = mem_strdup(part[2]);
	c->namespace = mem_strdup(part[3]);
}

char *container_label(const char *key, const char *value)
{
	size_t n = strlen(key), end = 0, step;
	struct buf b = { 0 };

	if (!n || n > CONTAINER_LABEL_KEY)
		return NULL;
	for (; *key; key++)
		buf_putc(&b, isalnum((unsigned char)*key) || strchr("_.-", *key) ? *key : '_');
	buf_putc(&b, '=');
	plain_add(&b, value);
	/* No character is cut in two. */
	while (b.data[end] && (plain_decode(b.data + end, &step), end + step) <= CONTAINER_LABEL_BYTES)
		end += step;
	b.data[end] = 0;
	return b.data;
}

bool container_is_sandbox(const struct container *c)
{
	return c->pod && c->part && !strcmp(c->part, "POD");
}

char *container_title(const struct container *c)
{
	if (c->pod)
		return mem_printf("%s/%s%s%s", c->namespace, c->pod, *c->part ? "/" : "", c->part);
	return *c->name ? mem_strdup(c->name) : mem_strndup(c->id, 12);
}

/* NAMESPACE/POD/CONTAINER, NAMESPACE/POD, POD or POD/CONTAINER. */
static bool matches_pod(const struct container *c, const char *name)
{
	_cleanup_free_ char *whole = NULL, *pod = NULL, *part = NULL;

	if (!c->pod || container_is_sandbox(c))
		return false;
	whole = mem_printf("%s/%s/%s", c->namespace, c->pod, c->part);
	pod = mem_printf("%s/%s", c->namespace, c->pod);
	part = mem_printf("%s/%s", c->pod, c->part);
	return !strcmp(name, whole) || !strcmp(name, pod) || !strcmp(name, c->pod) || !strcmp(name, part);
}

bool container_matches(const struct container *c, const struct container_query *q)
{
	size_t n = q->name ? strlen(q->name) : 0;

	if (!q->name)
		return c->running && !container_is_sandbox(c);
	if (q->pods)
		return matches_pod(c, q->name);
	return !strcmp(c->name, q->name) || !strcmp(c->id, q->name) ||
	       ((n >= CONTAINER_ID_SHORTEST || q->forced) && !strncmp(c->id, q->name, n));
}

/* --- lists --- */

void container_done(struct container *c)
{
	free(c->id);
	free(c->name);
	free(c->image);
	free(c->namespace);
	free(c->pod);
	free(c->part);
	vec_done_each(&c->labels, l, free(*l));
	*c = (struct container){ .engine = "" };
}

void containers_done(struct containers *c)
{
	vec_done_each(&c->list, e, container_done(e));
}

void containers_add(struct containers *all, const struct container_query *q, struct container *c)
{
	bool known = !container_matches(c, q);

	/* Docker's containers are containerd's, too. */
	for (size_t i = 0; i < all->list.n && !known; i++)
		known = !strcmp(all->list.v[i].id, c->id);
	if (known)
		container_done(c);
	else
		vec_push(&all->list, *c);
}

void container_say(const struct container_query *q, bool minor, const char *fmt, ...)
{
	struct container_note note = { .minor = minor };
	va_list ap;

	if (!q->notes)
		return;
	va_start(ap, fmt);
	note.text = mem_vprintf(fmt, ap);
	va_end(ap);
	vec_push(&q->notes->list, note);
}

bool container_said(const struct container_query *q, const char *words)
{
	for (size_t i = 0; q->notes && i < q->notes->list.n; i++)
		if (strstr(q->notes->list.v[i].text, words))
			return true;
	return false;
}

void container_notes_done(struct container_notes *n)
{
	vec_done_each(&n->list, e, free(e->text));
}

/* --- shared by the sources --- */

int container_each(const char *folder, void (*each)(void *context, const char *name), void *context)
{
	DIR *dir = opendir(folder);
	struct dirent *e;

	if (!dir)
		return -errno;
	while ((e = readdir(dir)))
		if (container_is_name(e->d_name))
			each(context, e->d_name);
	closedir(dir);
	return 0;
}

int container_read(const char *path, size_t limit, char **ret, size_t *ret_n)
{
	_cleanup_fd_ int fd = -1;
	int r = target_open_host(path, &fd, NULL);

	return r ? r : fd_read_file(fd, limit, ret, ret_n);
}

pid_t container_read_pid(const char *path)
{
	_cleanup_free_ char *text = NULL;
	uint64_t pid;

	if (container_read(path, PIDFILE_MAX, &text, NULL))
		return 0;
	text[strcspn(text, "\n")] = 0;
	return str_parse_uint(text, 1, INT_MAX, &pid) ? 0 : (pid_t)pid;
}

static bool belongs_to_root(pid_t pid)
{
	struct proc_status s;

	return !proc_status(pid, &s) && !s.euid && !s.uid;
}

/* Words of a command line are parted by blanks here; a path that has some is not found. */
static void read_option(char *command, const char *option, void (*each)(void *context, const char *value),
			void *context)
{
	size_t n = strlen(option);
	char *save = NULL;

	for (char *w = strtok_r(command, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		char *value = NULL;

		if (!strncmp(w, option, n) && w[n] == '=')
			value = w + n + 1;
		else if (!strcmp(w, option))
			value = strtok_r(NULL, " ", &save);
		if (value)
			each(context, value);
	}
}

void container_options(const char *program, const char *option, const char *with,
		       void (*each)(void *context, const char *value), void *context)
{
	struct proc_ids all;

	if (proc_list(&all))
		return;
	for (size_t i = 0; i < all.list.n; i++) {
		_cleanup_free_ char *command = NULL;
		struct proc_stat s;

		if (proc_stat(all.list.v[i], &s) || strcmp(s.name, program) || !belongs_to_root(all.list.v[i]))
			continue;
		command = proc_command(all.list.v[i]);
		if (command && (!with || strstr(command, with)))
			read_option(command, option, each, context);
	}
	vec_done(&all.list);
}

/* --- the sources --- */

struct looking {
	const struct container_query *q;
	struct containers *ret;
};

/* The path in "unix:///run/docker.sock" or "unix:/run/...", NULL if it is something else. */
static const char *socket_path(const struct container_query *q, const char *variable, const char *value)
{
	if (str_starts(value, "unix://"))
		return value + strlen("unix://");
	if (*value == '/')
		return value;
	if (!container_said(q, variable))
		container_say(q, false, "%s is %s: only unix:// is asked, since processes of another machine cannot be recorded",
			      variable, value);
	return NULL;
}

/* Returns a socket of the user at the keyboard, also behind sudo. */
static char *user_socket(const char *name)
{
	const char *run = getenv("XDG_RUNTIME_DIR"), *uid = getenv("SUDO_UID");

	if (run && *run == '/')
		return mem_printf("%s/%s", run, name);
	return uid && *uid && strspn(uid, "0123456789") == strlen(uid) ? mem_printf("/run/user/%s/%s", uid, name) :
									   NULL;
}

static void look_docker_root(void *context, const char *root)
{
	struct looking *l = context;

	if (*root == '/')
		dockerstate_look(root, l->q, l->ret);
}

static void look_docker_files(const struct container_query *q, const char *socket, struct containers *ret)
{
	struct looking l = { q, ret };
	_cleanup_free_ char *text = NULL, *root = NULL;
	size_t n;

	/* With DOCKER_HOST: only the engine that was meant by that. */
	container_options("dockerd", "--data-root", socket, look_docker_root, &l);
	if (socket)
		return;
	if (!container_read("/etc/docker/daemon.json", CONF_MAX, &text, &n))
		root = enginejson_data_root(text, n);
	dockerstate_look(root ? root : "/var/lib/docker", q, ret);
}

static void look_docker(const struct container_query *q, struct containers *ret)
{
	const char *host = getenv("DOCKER_HOST");
	_cleanup_free_ char *users = user_socket("docker.sock");

	if (host && *host) {
		const char *path = socket_path(q, "DOCKER_HOST", host);

		if (path && dockerapi_look("docker", path, q, ret))
			look_docker_files(q, path, ret);
		return;
	}
	if (dockerapi_look("docker", "/var/run/docker.sock", q, ret))
		look_docker_files(q, NULL, ret);
	if (users)
		dockerapi_look("docker", users, q, ret);
}

/* "graphroot = "/x"" of storage.conf. Caller frees; NULL = not in it. */
static char *conf_value(const char *text, const char *key)
{
	for (const char *p = text; p && *p; p = strchr(p, '\n'), p += p ? 1 : 0) {
		const char *quote, *end;

		p += strspn(p, " \t");
		if (!str_starts(p, key))
			continue;
		quote = p + strlen(key);
		quote += strspn(quote, " \t");
		if (*quote++ != '=')
			continue;
		quote += strspn(quote, " \t");
		end = *quote == '"' ? strpbrk(quote + 1, "\"\n") : NULL;
		if (end && *end == '"' && quote[1] == '/')
			return mem_strndup(quote + 1, end - quote - 1);
	}
	return NULL;
}

static void look_podman_files(const struct container_query *q, struct containers *ret)
{
	const char *named = getenv("CONTAINERS_STORAGE_CONF");
	_cleanup_free_ char *text = NULL, *root = NULL, *run = NULL;

	if (!container_read(named && *named ? named : "/etc/containers/storage.conf", CONF_MAX, &text, NULL)) {
		root = conf_value(text, "graphroot");
		run = conf_value(text, "runroot");
	}
	podmanstate_look(root ? root : "/var/lib/containers/storage", run ? run : "/run/containers/storage", q, ret);
}

static void look_podman(const struct container_query *q, struct containers *ret)
{
	const char *host = getenv("CONTAINER_HOST");
	_cleanup_free_ char *users = user_socket("podman/podman.sock");
	bool answered;

	if (host && *host) {
		const char *path = socket_path(q, "CONTAINER_HOST", host);

		answered = path && !dockerapi_look("podman", path, q, ret);
	} else {
		answered = !dockerapi_look("podman", "/run/podman/podman.sock", q, ret);
		if (users)
			dockerapi_look("podman", users, q, ret);
	}
	/* CRI-O's containers are in the same store. */
	if (!answered || q->pods)
		look_podman_files(q, ret);
}

static void look_containerd_state(void *context, const char *state)
{
	struct looking *l = context;

	if (*state == '/')
		containerd_look(state, l->q, l->ret);
}

static void look_containerd(const struct container_query *q, struct containers *ret)
{
	static const char *const usual[] = { "/run/containerd", "/run/k3s/containerd",
					     "/var/snap/microk8s/common/run/containerd" };
	struct looking l = { q, ret };

	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		containerd_look(usual[i], q, ret);
	/* An engine that was started by hand. Finding its socket means to look at every process. */
	if (!q->name || !ret->list.n)
		container_options("containerd", "--state", NULL, look_containerd_state, &l);
}

/* In the order of the queries; the first source that knows a container names it. */
static void (*const sources[])(const struct container_query *q, struct containers *ret) = {
	look_docker,
	look_podman,
	look_containerd,
};

void containers_find(struct container_query *q, struct containers *ret)
{
	*ret = (struct containers){ 0 };
	if (!q->deadline_ns)
		q->deadline_ns = clock_mono_ns() + CONTAINER_SOCKETS_MS * 1000000ULL;
	if (q->name && !(q->pods ? container_is_pod(q->name) : container_is_name(q->name)))
		return;
	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		sources[i](q, ret);
}
