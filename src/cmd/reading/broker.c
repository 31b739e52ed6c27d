#include "cmd/reading/broker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/file/newfile.h"
#include "base/text/str.h"
#include "cmd/reading/captureio.h"
#include "cmd/recording/output.h"
#include "capture/capturenew.h"

enum { MAX_PATH_BYTES = 4096, MAX_DEPTH = 4 };

enum request_kind { REQUEST_WRITE, REQUEST_MOVE, REQUEST_NEW };

struct request {
	int kind;
	char name[256]; /* REQUEST_MOVE: within the folder; REQUEST_NEW: what the files show */
	char path[MAX_PATH_BYTES];
	char extensions[OUTPUT_FILES_MAX][8]; /* REQUEST_NEW: of each descriptor's file */
};

struct reply {
	int status;      /* 0, or a negative errno */
	char text[1024]; /* why; REQUEST_NEW: the stem */
};

static struct broker {
	int sock;      /* the reader's end; -1: there is none */
	pid_t pid;
	char *folder;  /* for temporary files */
	int folder_fd; /* the child's */
} broker = { .sock = -1, .folder_fd = -1 };

/* --- the child --- */

/* "/x/slow.gasflame" and "/x/slow.diff.html": the same name but for what follows the last dot or two. */
static bool is_beside(const char *input, const char *path)
{
	_cleanup_free_ char *stem = captureio_beside(input, "");
	const char *rest = path + strlen(stem);

	return str_starts(path, stem) && *rest == '.' && !strchr(rest, '/') && (str_ends(path, ".html") || str_ends(path, ".svg"));
}

static bool is_allowed(const struct broker_places *p, const char *path)
{
	if ((p->output && !strcmp(path, p->output)) || (p->also && !strcmp(path, p->also)))
		return true;
	for (int i = 0; i < p->input_count; i++)
		if (is_beside(p->inputs[i], path))
			return true;
	return false;
}

/* Root may write there, and knows it. */
static int explain(const struct broker_places *p, int r, struct err *err)
{
	_cleanup_free_ char *text = mem_strdup(err->text);

	return err_set(err, -r, "%s; it is written as %s: `-o - > FILE` writes it as root", text, p->who);
}

/* All that a reader handed over. */
static int child_read(int data, struct buf *b)
{
	char piece[65536];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(data, piece, sizeof(piece), at)) > 0) {
		buf_add(b, piece, n);
		at += n;
	}
	return n < 0 ? -errno : 0;
}

static int child_write(const struct broker_places *p, const char *path, int data, struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	char **inputs = p->input_count ? p->inputs : (char *[]){ "" };
	int r = child_read(data, &b);

	if (r)
		return err_errno(err, -r, "cannot read what to write to %s", path);
	if (p->output && !strcmp(path, p->output))
		r = captureio_write(path, &b, inputs, p->input_count, err);
	else
		r = captureio_write_beside(path, &b, inputs, p->input_count, err);
	return (r == -EACCES || r == -EPERM) && p->who ? explain(p, r, err) : r;
}

/* Nothing but their extensions and a word of their name is the reader's choice. */
static int child_write_new(const struct broker_places *p, struct request *q, const int *data, size_t n, char **ret_stem,
			   struct err *err)
{
	struct output_file files[OUTPUT_FILES_MAX];
	struct buf bytes[OUTPUT_FILES_MAX] = { 0 };
	int r = 0;

	if (!p->pictures || !n)
		return err_set(err, EACCES, "this command makes no new files");
	for (size_t i = 0; !r && i < n; i++) {
		q->extensions[i][sizeof(q->extensions[i]) - 1] = 0;
		if (strcmp(q->extensions[i], ".svg") && strcmp(q->extensions[i], ".html"))
			r = err_set(err, EACCES, "%s is no extension of a picture", q->extensions[i]);
		else if ((r = child_read(data[i], &bytes[i])))
			err_errno(err, -r, "cannot read a picture to write");
		files[i] = (struct output_file){ q->extensions[i], bytes[i].data, bytes[i].n };
	}
	if (!r)
		r = output_write_new(p->pictures, q->name, files, n, ret_stem, err);
	/* Root may write there, and knows it. */
	if ((r == -EACCES || r == -EPERM) && p->who)
		err_set(err, -r, "%s, may not write here: start gasflame in another folder", p->who);
	for (size_t i = 0; i < n; i++)
		buf_done(&bytes[i]);
	return r;
}

static int copy_bytes(int from, int to)
{
	char piece[65536];
	off_t at = 0;
	ssize_t n;
	int r = 0;

	while (!r && (n = pread(from, piece, sizeof(piece), at)) > 0) {
		r = fd_write_all(to, piece, n);
		at += n;
	}
	return r ? r : n < 0 ? -errno : 0;
}

/* The final name gets a copy: the reader may still have a descriptor of the file that it made. */
static int child_move(const char *name, const char *path, struct err *err)
{
	struct owner user = output_owner();
	_cleanup_fd_ int fd = -1;
	struct newfile f;
	struct stat st;
	int r;

	if (strchr(name, '/') || broker.folder_fd < 0)
		return err_set(err, EINVAL, "not a name of a file: %s", name);
	fd = openat(broker.folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_nlink != 1)
		return err_set(err, EINVAL, "the result is not a regular file");
	r = newfile_open(&f, path, 0, 0600, &user, err);
	if (!r && capturenew_is_written(f.folder, f.name))
		r = err_set(err, EBUSY, "%s is being written by another process: name another file with -o", path);
	if (!r) {
		r = copy_bytes(fd, f.fd);
		r = r ? err_errno(err, -r, "cannot write %s", path) : newfile_keep(&f, err);
	}
	if (!r) {
		capturenew_remove_journals(&f);
		unlinkat(broker.folder_fd, name, 0);
	}
	newfile_done(&f);
	return r;
}

/* Removes a reader's leftovers; follows no link and opens only folders. */
static void empty_folder(int fd, int depth)
{
	DIR *d = fdopendir(dup(fd));
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || !unlinkat(fd, e->d_name, 0))
			continue;
		if (depth < MAX_DEPTH) {
			_cleanup_fd_ int below = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			if (below >= 0)
				empty_folder(below, depth + 1);
		}
		unlinkat(fd, e->d_name, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
}

static void remove_folder(void)
{
	if (broker.folder_fd >= 0)
		empty_folder(broker.folder_fd, 0);
	if (broker.folder)
		rmdir(broker.folder);
}

static void serve(const struct broker_places *places, int sock)
{
	for (;;) {
		struct request q;
		struct reply a = { 0 };
		struct err err = { 0 };
		_cleanup_free_ char *stem = NULL;
		int data[OUTPUT_FILES_MAX];
		size_t count = ARRAY_LEN(data);

		if (fd_recv(sock, &q, sizeof(q), data, &count) != sizeof(q))
			return;
		q.name[sizeof(q.name) - 1] = q.path[sizeof(q.path) - 1] = 0;
		if (q.kind == REQUEST_NEW)
			a.status = child_write_new(places, &q, data, count, &stem, &err);
		else if (!is_allowed(places, q.path))
			a.status = err_set(&err, EACCES, "%s is no place that the command line names", q.path);
		else if (q.kind == REQUEST_MOVE)
			a.status = child_move(q.name, q.path, &err);
		else
			a.status = child_write(places, q.path, count ? data[0] : -1, &err);
		for (size_t i = 0; i < count; i++)
			fd_close(&data[i]);
		snprintf(a.text, sizeof(a.text), "%s", a.status || !stem ? err.text : stem);
		if (fd_send(sock, &a, sizeof(a), NULL, 0))
			return;
	}
}

static void be_child(const struct broker_places *places, int sock)
{
	/* Ctrl-C ends the reader, and the end of the reader this process; it has a folder to remove first. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	serve(places, sock);
	remove_folder();
	_exit(0);
}

/* --- the reader --- */

/* The folder exists until the child has removed it: once we have ended, it is gone. */
static void end_broker(void)
{
	if (broker.sock < 0)
		return;
	fd_close(&broker.sock);
	waitpid(broker.pid, NULL, 0);
}

static void make_folder(const struct broker_places *p)
{
	const char *bases[] = { p->temporary, p->temporary ? NULL : getenv("TMPDIR"),
				p->temporary ? NULL : "/var/tmp", p->temporary ? NULL : "/tmp" };

	for (size_t i = 0; !broker.folder && i < ARRAY_LEN(bases); i++) {
		char *name;

		if (!bases[i] || (!p->temporary && bases[i][0] != '/'))
			continue;
		name = mem_printf("%s/.gasflame-XXXXXX", bases[i]);
		if (mkdtemp(name))
			broker.folder = name;
		else
			free(name);
	}
	if (!broker.folder)
		return;
	broker.folder_fd = open(broker.folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (broker.folder_fd >= 0 && p->temporary_owner != geteuid() && fchown(broker.folder_fd, p->temporary_owner, -1))
		log_debug("cannot give the folder for temporary files away: %m");
}

int broker_start(const struct broker_places *places, struct err *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_errno(err, errno, "cannot make a socket for the process that writes");
	make_folder(places);
	fflush(NULL);
	broker.pid = fork();
	if (broker.pid < 0) {
		int r = err_errno(err, errno, "cannot start the process that writes");

		remove_folder();
		close(pair[0]);
		close(pair[1]);
		return r;
	}
	if (!broker.pid) {
		close(pair[0]);
		be_child(places, pair[1]);
	}
	close(pair[1]);
	fd_close(&broker.folder_fd);
	broker.sock = pair[0];
	if (broker.folder)
		setenv("TMPDIR", broker.folder, 1);
	atexit(end_broker);
	return 0;
}

bool broker_runs(void)
{
	return broker.sock >= 0;
}

const char *broker_folder(void)
{
	return broker.folder;
}

static int ask(const struct request *q, const int *data, size_t n, struct reply *a, struct err *err)
{
	int r = fd_send(broker.sock, q, sizeof(*q), data, n);

	if (!r && fd_recv(broker.sock, a, sizeof(*a), NULL, NULL) != sizeof(*a))
		r = -EPIPE;
	if (r)
		return err_errno(err, -r, "the process that writes has ended: cannot write %s", q->path);
	a->text[sizeof(a->text) - 1] = 0;
	return a->status ? err_set(err, -a->status, "%s", a->text) : 0;
}

/* A descriptor of the data, or a negative errno. */
static int hand_over(const void *data, size_t n)
{
	int fd = memfd_create("gasflame-result", MFD_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, data, n);
	if (r)
		fd_close(&fd);
	return r ? r : fd;
}

static int make_request(struct request *q, enum request_kind kind, const char *path, struct err *err)
{
	*q = (struct request){ .kind = kind };
	if (strlen(path) >= sizeof(q->path))
		return err_set(err, ENAMETOOLONG, "the name is too long: %s", path);
	snprintf(q->path, sizeof(q->path), "%s", path);
	return 0;
}

int broker_write(const char *path, const struct buf *data, struct err *err)
{
	_cleanup_fd_ int fd = hand_over(data->data, data->n);
	_cleanup_free_ struct request *q = mem_alloc(sizeof(*q));
	int r = make_request(q, REQUEST_WRITE, path, err);
	struct reply a;

	if (r)
		return r;
	if (fd < 0)
		return err_errno(err, -fd, "cannot hand over what to write to %s", path);
	return ask(q, &fd, 1, &a, err);
}

int broker_move(const char *name, const char *path, struct err *err)
{
	_cleanup_free_ struct request *q = mem_alloc(sizeof(*q));
	int r = make_request(q, REQUEST_MOVE, path, err);
	struct reply a;

	snprintf(q->name, sizeof(q->name), "%s", name);
	return r ? r : ask(q, NULL, 0, &a, err);
}

int broker_write_new(const char *what, const struct output_file *files, size_t n, char **ret_stem, struct err *err)
{
	_cleanup_free_ struct request *q = mem_alloc(sizeof(*q));
	int fds[OUTPUT_FILES_MAX], r = make_request(q, REQUEST_NEW, what, err);
	size_t made = 0;
	struct reply a;

	snprintf(q->name, sizeof(q->name), "%s", what);
	if (!r && n > OUTPUT_FILES_MAX)
		r = err_set(err, E2BIG, "too many files at once");
	while (!r && made < n) {
		snprintf(q->extensions[made], sizeof(q->extensions[made]), "%s", files[made].extension);
		fds[made] = hand_over(files[made].data, files[made].n);
		if (fds[made] < 0)
			r = err_errno(err, -fds[made], "cannot hand over what to write");
		else
			made++;
	}
	if (!r)
		r = ask(q, fds, n, &a, err);
	if (!r)
		*ret_stem = mem_strdup(a.text);
	for (size_t i = 0; i < made; i++)
		fd_close(&fds[i]);
	return r;
}
