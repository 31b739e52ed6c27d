#include "import/jemalloc/heapdumps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/stream.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "import/jemalloc/heappprof.h"
#include "import/import.h"
#include "profile/keys.h"
#include "profile/profile.h"

static const size_t limit_bytes = 2ULL << 30;

void heapdumps_done(struct heapdumps *d)
{
	vec_done_each(&d->list, e, free(e->path); heapdump_unload(e));
}

/* --- names --- */

/* The number that ends at *end, which is moved before it and the dot in front of it. */
static bool number_before(const char *start, const char **end, uint64_t *ret)
{
	const char *p = *end;
	char digits[24];

	while (p > start && p[-1] >= '0' && p[-1] <= '9')
		p--;
	if (p == *end || p == start || p[-1] != '.' || *end - p >= (long)sizeof(digits))
		return false;
	snprintf(digits, sizeof(digits), "%.*s", (int)(*end - p), p);
	*end = p - 1;
	return !str_parse_uint(digits, 0, UINT64_MAX, ret);
}

/* "jeprof.4242.17.i9.heap", "jeprof.4242.17.f.heap" */
static bool parse_name(const char *path, uint64_t *ret_pid, uint64_t *ret_sequence)
{
	const char *start = str_base_name(path), *end;

	if (!str_ends(path, ".heap"))
		return false;
	end = start + strlen(start) - strlen(".heap");
	while (end > start && end[-1] >= '0' && end[-1] <= '9')
		end--;
	if (end - start < 2 || !strchr("imuf", end[-1]) || end[-2] != '.')
		return false;
	end -= 2;
	return number_before(start, &end, ret_sequence) && number_before(start, &end, ret_pid);
}

/* --- reading --- */

static void push(struct heapdumps *d, struct heapdump dump, const char *path)
{
	dump.path = mem_strdup(path);
	dump.numbered = parse_name(path, &dump.pid, &dump.sequence);
	if (!dump.numbered) {
		dump.pid = 0;
		dump.sequence = d->list.n + 1;
	}
	vec_push(&d->list, dump);
}

static int parse(const char *path, const char *text, size_t n, struct heapv2 *ret, struct err *err)
{
	int r = heappprof_probe(text, n) ? heappprof_parse(text, n, ret, err)
					 : heapv2_parse(text, n, ret, err);

	if (!r)
		return 0;
	heapv2_done(ret);
	return err_prefix(err, "%s", path);
}

int heapdumps_add_text(struct heapdumps *d, const char *path, const char *text, size_t n, uint64_t wall_ns,
		       struct err *err)
{
	struct heapdump dump = { .wall_ns = wall_ns, .loaded = true };
	int r = parse(path, text, n, &dump.data, err);

	if (!r)
		push(d, dump, path);
	return r;
}

int heapdump_load(struct heapdump *dump, struct err *err)
{
	_cleanup_fd_ int fd = dump->loaded ? -1 : open(dump->path, O_RDONLY | O_CLOEXEC);
	_cleanup_(stream_freep) struct stream *in = NULL;
	_cleanup_free_ char *text = NULL;
	size_t n;
	int r;

	if (dump->loaded)
		return 0;
	if (fd < 0)
		return err_errno(err, errno, "cannot open %s", dump->path);
	in = stream_open(fd);
	if (stream_whole(in, limit_bytes, &text, &n, err))
		return err_prefix(err, "%s", dump->path);
	if (!n)
		return err_set(err, ENODATA, "%s is empty: the process could not write it, or is about to",
			       dump->path);
	r = parse(dump->path, text, n, &dump->data, err);
	dump->loaded = !r;
	return r;
}

void heapdump_unload(struct heapdump *dump)
{
	if (!dump->loaded)
		return;
	heapv2_done(&dump->data);
	dump->data = (struct heapv2){ 0 };
	dump->loaded = false;
}

static int add_file(struct heapdumps *d, const char *path, struct err *err)
{
	struct heapdump dump = { 0 };
	struct stat st;

	/* Checks the effective user: access() checks the user who started us. */
	if (stat(path, &st) < 0 || faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) < 0)
		return err_errno(err, errno, "cannot open %s", path);
	dump.wall_ns = st.st_mtim.tv_sec * 1000000000ULL + st.st_mtim.tv_nsec;
	push(d, dump, path);
	return 0;
}

static int add_folder(struct heapdumps *d, const char *path, struct err *err)
{
	DIR *folder = opendir(path);
	VEC(char *) names = { 0 };
	int r = 0;

	if (!folder)
		return err_errno(err, errno, "cannot open the folder %s", path);
	for (struct dirent *e; errno = 0, (e = readdir(folder));)
		if (str_ends(e->d_name, ".heap"))
			vec_push(&names, mem_printf("%s/%s", path, e->d_name));
	if (errno)
		r = err_errno(err, errno, "cannot read the folder %s", path);
	closedir(folder);
	vec_sort(&names, str_order);
	if (!r && !names.n)
		r = err_set(err, ENOENT, "there is no *.heap in %s", path);
	for (size_t i = 0; i < names.n; i++) {
		r = r ?: add_file(d, names.v[i], err);
		free(names.v[i]);
	}
	vec_done(&names);
	return r;
}

int heapdumps_add(struct heapdumps *d, const char *path, struct err *err)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode) ? add_folder(d, path, err) : add_file(d, path, err);
}

/* --- order and choice --- */

static int compare_dumps(const void *a, const void *b)
{
	const struct heapdump *x = a, *y = b;

	return ORDER(x->pid, y->pid) ?: ORDER(x->sequence, y->sequence);
}

void heapdumps_order(struct heapdumps *d)
{
	vec_sort(&d->list, compare_dumps);
}

static bool in_list(const char *list, uint64_t number)
{
	_cleanup_free_ char *copy = mem_strdup(list);
	char *rest = copy, *word;
	uint64_t n;

	while ((word = strsep(&rest, ",")))
		if (!str_parse_uint(word, 0, UINT64_MAX, &n) && n == number)
			return true;
	return false;
}

/* How many of its process come after dump i. */
static size_t later(const struct heapdumps *d, size_t i)
{
	size_t n = 0;

	while (i + n + 1 < d->list.n && d->list.v[i + n + 1].pid == d->list.v[i].pid)
		n++;
	return n;
}

static int check_selection(const char *s, uint64_t *ret_last, bool *ret_list, struct err *err)
{
	_cleanup_free_ char *copy = mem_strdup(s);
	char *rest = copy, *word;
	uint64_t n;

	*ret_last = UINT64_MAX;
	*ret_list = false;
	if (!strcmp(s, "all"))
		return 0;
	if (!strcmp(s, "latest")) {
		*ret_last = 1;
		return 0;
	}
	if (str_starts(s, "last:") && !str_parse_uint(s + 5, 1, UINT32_MAX, ret_last))
		return 0;
	*ret_list = true;
	while ((word = strsep(&rest, ",")))
		if (str_parse_uint(word, 0, UINT64_MAX, &n))
			return err_set(err, EINVAL,
				       "--select takes all, latest, last:N, or the numbers of dumps like "
				       "3,7,12, and not %s",
				       s);
	return 0;
}

int heapdumps_select(struct heapdumps *d, const char *selection, struct err *err)
{
	uint64_t last;
	size_t kept = 0, all = d->list.n;
	bool list;
	int r = check_selection(selection, &last, &list, err);

	if (r)
		return r;
	for (size_t i = 0; i < all; i++) {
		struct heapdump *dump = &d->list.v[i];
		bool take = list ? in_list(selection, dump->sequence) : later(d, i) < last;

		if (!take) {
			free(dump->path);
			heapdump_unload(dump);
			/* later() compares only pids of later dumps. */
			continue;
		}
		if (kept != i)
			d->list.v[kept] = *dump;
		kept++;
	}
	d->list.n = kept;
	return kept ? 0 : err_set(err, ENOENT, "none of the %zu dumps is of --select %s", all, selection);
}

/* --- as an imported file --- */

bool heapdumps_made(const struct profile *p)
{
	return profile_counter(p, KEY_HEAP_DUMPS);
}

int heapdumps_import(const struct import_input *in, struct profile **ret, struct err *err)
{
	_cleanup_(heapdumps_done) struct heapdumps d = { 0 };
	_cleanup_free_ char *text = NULL;
	size_t n;
	int r = stream_whole(in->stream, limit_bytes, &text, &n, err);

	r = r ?: heapdumps_add_text(&d, *in->name ? in->name : "heap dump", text, n, stream_written_ns(in->stream), err);
	return r ?: heapdumps_profile(&d, &(struct heapdumps_options){ .root = in->options.root, .symbols = in->options.symbols }, ret, err);
}
