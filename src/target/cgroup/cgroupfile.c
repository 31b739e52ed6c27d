#include "target/cgroup/cgroupfile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "target/cgroup/cgrouppath.h"

enum { FILE_MAX = 1 << 20 }; /* mountinfo of a machine with many containers */

char *cgroupfile_read(const char *folder, const char *name)
{
	_cleanup_free_ char *path = mem_printf("%s/%s", folder, name);
	char *text = NULL;

	return fd_read_path(path, FILE_MAX, &text, NULL) < 0 ? NULL : text;
}

uint64_t cgroupfile_number(const char *folder, const char *name, uint64_t fallback)
{
	_cleanup_free_ char *text = cgroupfile_read(folder, name);
	char *end;
	uint64_t value;

	if (!text || *text < '0' || *text > '9')
		return fallback;
	errno = 0;
	value = strtoull(text, &end, 10);
	return errno || (*end && *end != '\n') ? fallback : value;
}

uint64_t cgroupfile_key(const char *text, const char *key)
{
	size_t n = strlen(key);
	bool prefix = n && key[n - 1] == '*';
	uint64_t sum = 0;

	for (n -= prefix; text && *text; text += strcspn(text, "\n"), text += *text == '\n') {
		const char *space = text + strcspn(text, " \n");

		if (*space == ' ' && !strncmp(text, key, n) && (prefix || text + n == space))
			sum += strtoull(space + 1, NULL, 10);
	}
	return sum;
}

/* Is name one of those in a list with commas? */
static bool in_list(const char *list, size_t n, const char *name)
{
	size_t length = strlen(name);

	if (!length)
		return !n;
	for (size_t i = 0; i + length <= n;) {
		size_t word = strcspn(list + i, ",:");

		if (word == length && !memcmp(list + i, name, length))
			return true;
		i += word + 1;
	}
	return false;
}

/* Lines are "4:memory:/path", of version 2 "0::/path". */
char *cgroupfile_path(const char *text, const char *controller)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		const char *list = memchr(text, ':', n), *path;

		path = list ? memchr(list + 1, ':', text + n - list - 1) : NULL;
		if (path && in_list(list + 1, path - list - 1, controller))
			return mem_strndup(path + 1, text + n - path - 1);
		text += n + (text[n] == '\n');
	}
	return NULL;
}

int cgroupfile_find(pid_t pid, const struct cgroupfile_place *places,
		    int (*fn)(void *context, const struct cgroupfile_place *place, const char *path), void *context)
{
	_cleanup_free_ char *text = cgrouppath_text(pid);

	if (!text)
		return -ESRCH;
	for (; places->root; places++) {
		_cleanup_free_ char *path = cgroupfile_path(text, places->controller);

		/* ".." is a cgroup outside our namespace, which no path here reaches. */
		if (path && strcmp(path, "/") && !strstr(path, "/..") && !fn(context, places, path))
			return 0;
	}
	return -ENOENT;
}

static int take_folder(void *context, const struct cgroupfile_place *place, const char *path)
{
	_cleanup_free_ char *folder = mem_printf("%s%s", place->root, path), *text = cgroupfile_read(folder, "cgroup.procs");

	if (!text || !*text)
		return -ENOENT;
	*(char **)context = mem_strdup(folder);
	return 0;
}

char *cgroupfile_folder(pid_t pid)
{
	/* Engines put a container into all of them. */
	static const struct cgroupfile_place places[] = {
		{ "/sys/fs/cgroup", "", 2 },
		{ "/sys/fs/cgroup/systemd", "name=systemd", 1 },
		{ "/sys/fs/cgroup/pids", "pids", 1 },
		{ "/sys/fs/cgroup/memory", "memory", 1 },
		{ "/sys/fs/cgroup/cpu", "cpu", 1 },
		{ "/sys/fs/cgroup/cpu,cpuacct", "cpu", 1 },
		{ "/sys/fs/cgroup/unified", "", 2 },
		{ 0 },
	};
	char *folder = NULL;

	cgroupfile_find(pid, places, take_folder, &folder);
	return folder;
}
