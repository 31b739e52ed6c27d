#include "import/import.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "folded/folded.h"
#include "import/jemalloc/heapdumps.h"

const struct import_format import_formats[] = {
	{ "heap_v2", "a heap dump of jemalloc", heapv2_probe, heapdumps_import },
	{ "folded", "folded stacks, \"outer;inner;leaf 123\", as stackcollapse scripts write them",
	  folded_probe, folded_profile },
	{ 0 },
};

const struct import_format *import_find(const char *name)
{
	for (const struct import_format *f = import_formats; f->name; f++)
		if (!strcmp(f->name, name))
			return f;
	return NULL;
}

const struct import_format *import_probe(const char *data, size_t n, bool whole)
{
	for (const struct import_format *f = import_formats; f->name; f++)
		if (f->probe(data, n, whole))
			return f;
	return NULL;
}

/* The first bytes of fd go to start. Returns their number; *f, if NULL, becomes the format that they show. */
static ssize_t begin(int fd, const char *shown, char *start, const struct import_format **f, struct err *err)
{
	ssize_t n = fd_read_all(fd, start, IMPORT_PROBE_BYTES);

	if (n < 0)
		return err_errno(err, -n, "cannot read %s", shown);
	if (!*f)
		*f = import_probe(start, n, n < IMPORT_PROBE_BYTES);
	if (!*f)
		return err_set(err, ENOMSG, "%s is neither a capture nor a heap dump nor folded stacks%s", shown,
		               n ? "" : ": it is empty");
	return n;
}

int import_check(const char *path, const struct import_format **ret, struct err *err)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ char *start = mem_alloc(IMPORT_PROBE_BYTES);
	ssize_t n;

	if (fd < 0)
		return err_errno(err, errno, "cannot open %s", path);
	*ret = NULL;
	n = begin(fd, path, start, ret, err);
	return n < 0 ? n : 0;
}

int import_read(const char *path, const struct import_format *forced, struct profile **ret, struct err *err)
{
	bool standard = !strcmp(path, "-");
	const char *shown = standard ? "the standard input" : path;
	_cleanup_fd_ int fd = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ char *start = mem_alloc(IMPORT_PROBE_BYTES);
	const struct import_format *f = forced;
	ssize_t n;
	int r;

	if (fd < 0)
		return err_errno(err, errno, "cannot open %s", shown);
	n = begin(fd, shown, start, &f, err);
	if (n < 0)
		return n;
	r = f->read(&(struct import_input){ fd, standard ? "" : str_base_name(path), start, n }, ret, err);
	return r ? err_prefix(err, "%s", shown) : 0;
}
