#include "import/heap/heapfind.h"

#include <string.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/file/stream.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "elf/worker/worker.h"
#include "import/frames.h"
#include "import/import.h"
#include "profile/profile.h"
#include "target/open.h"

void heapfind_done(struct heapfind *h)
{
	if (h->worker)
		worker_free(h->worker);
	map_done(&h->modules);
}

/* Among the files and folders of --symbols. */
static int open_symbols(const struct heapfind *h, const char *name)
{
	for (const char *const *s = h->in->options.symbols; s && *s; s++) {
		_cleanup_free_ char *inside = mem_printf("%s/%s", *s, name);
		int fd = -1;

		if (!strcmp(str_base_name(*s), name) && !target_open_host(*s, &fd, NULL))
			return fd;
		if (!target_open_host(inside, &fd, NULL))
			return fd;
	}
	return -1;
}

static int open_path(const struct heapfind *h, const char *path)
{
	const char *root = h->in->options.root;
	int fd = -1;

	return (root ? target_open_below(root, path, &fd, NULL) : target_open_host(path, &fd, NULL)) ? -1 : fd;
}

static bool newer(const struct heapfind *h, int fd)
{
	uint64_t written_ns = stream_written_ns(h->in->stream);
	struct stat st;

	return written_ns && !fstat(fd, &st) && st.st_mtim.tv_sec * 1000000000ULL + st.st_mtim.tv_nsec > written_ns;
}

static uint32_t make_module(struct heapfind *h, const char *path)
{
	_cleanup_fd_ int fd = path[0] == '/' ? open_symbols(h, str_base_name(path)) : -1;
	_cleanup_free_ char *other = NULL;
	struct worker_identity id = { 0 };

	if (fd < 0 && path[0] == '/') {
		fd = open_path(h, path);
		/* A path that no file has: the one that is there now must not name its addresses. */
		if (fd >= 0 && newer(h, fd)) {
			other = mem_printf("%s (newer than the recording)", path);
			fd_close(&fd);
		}
	}
	if (fd >= 0 && !h->worker)
		h->worker = worker_new();
	if (fd >= 0 && worker_identify(h->worker, fd, &id, NULL) < 0)
		id = (struct worker_identity){ 0 };
	return frames_module(h->frames, other ? other : path, id.build_id, MIN(id.build_id_size, 20));
}

uint32_t heapfind_module(struct heapfind *h, const char *path)
{
	uint32_t string = profile_string(h->frames->p, path);
	uint64_t *known = map_put(&h->modules, string, 0);

	if (!*known)
		*known = (uint64_t)make_module(h, profile_str(h->frames->p, string)) + 1;
	return *known - 1;
}
