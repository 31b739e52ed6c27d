#include "elf/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "elf/disassemble.h"
#include "elf/doors.h"
#include "elf/allocator.h"
#include "elf/names.h"
#include "elf/usdt.h"
#include "elf/workerproto.h"

struct worker {
	pid_t pid; /* 0 = no child */
	int sock;
	uint64_t timeout_ns;
};

struct worker *worker_new(void)
{
	struct worker *w = mem_alloc(sizeof(*w));

	w->sock = -1;
	w->timeout_ns = 60ULL * 1000000000;
	return w;
}

/* Ends the child; the status it died with, or -1 if it is not known. */
static int stop(struct worker *w)
{
	int status = -1;

	fd_close(&w->sock);
	if (w->pid) {
		kill(w->pid, SIGKILL);
		while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	w->pid = 0;
	return status;
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	stop(w);
	free(w);
}

void worker_set_timeout(struct worker *w, uint64_t timeout_ns)
{
	w->timeout_ns = timeout_ns;
}

pid_t worker_child_pid(const struct worker *w)
{
	return w->pid;
}

static void __attribute__((noreturn)) be_child(int sock)
{
	struct worker_reply hello = { 0 };
	struct err err = { 0 };
	int at = sock;

	/* 0, 1 and 2 are about to become /dev/null. */
	if (sock < 3)
		at = fcntl(sock, F_DUPFD_CLOEXEC, 3);
	hello.status = worker_sandbox(at, &err);
	snprintf(hello.text, sizeof(hello.text), "%s", err.text);
	if (!fd_send(at, &hello, sizeof(hello), NULL, 0) && !hello.status)
		worker_child_run(at);
	_exit(0);
}

/* Waits for one reply. -ECHILD when the child died, -ETIMEDOUT when it is too slow. */
static int wait_reply(struct worker *w, struct worker_reply *ret)
{
	uint64_t start = clock_mono_ns();

	for (;;) {
		uint64_t gone = clock_mono_ns() - start;
		struct pollfd p = { .fd = w->sock, .events = POLLIN };
		int left = gone >= w->timeout_ns ? 0 : (w->timeout_ns - gone + 999999) / 1000000;
		int r = poll(&p, 1, left);

		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0)
			break;
		if (!r && clock_mono_ns() - start >= w->timeout_ns)
			return -ETIMEDOUT;
	}
	if (fd_recv(w->sock, ret, sizeof(*ret), NULL, NULL) != sizeof(*ret))
		return -ECHILD;
	ret->text[sizeof(ret->text) - 1] = 0;
	return 0;
}

/* The child is gone or is ended here; says why. */
static int explain_end(struct worker *w, int r, struct err *err)
{
	int status;

	/* A child that died has closed its end and is a zombie: its own status comes, not our SIGKILL. */
	if (r == -ETIMEDOUT) {
		stop(w);
		return err_set(err, ETIMEDOUT, "reading it took longer than %llu s",
			       (unsigned long long)(w->timeout_ns / 1000000000));
	}
	status = stop(w);
	if (status == -1 || !WIFSIGNALED(status))
		return err_set(err, ECHILD, "the process that reads it ended");
	switch (WTERMSIG(status)) {
	case SIGBUS:
		return err_set(err, EIO, "the file shrank while it was read");
	case SIGABRT:
		return err_set(err, ENOMEM, "reading it takes too much memory");
	case SIGSYS:
		return err_set(err, EPERM, "the process that reads it tried what it may not");
	}
	return err_set(err, ECHILD, "the process that reads it died of signal %d (%s)", WTERMSIG(status),
		       strsignal(WTERMSIG(status)));
}

static int start(struct worker *w, struct err *err)
{
	struct worker_reply hello;
	int pair[2], r;

	if (w->pid)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return err_errno(err, errno, "cannot make a socket for the process that reads files");
	w->pid = fork();
	if (w->pid < 0) {
		r = err_errno(err, errno, "cannot start the process that reads files");
		w->pid = 0;
		close(pair[0]);
		close(pair[1]);
		return r;
	}
	if (!w->pid) {
		close(pair[0]);
		be_child(pair[1]);
	}
	close(pair[1]);
	w->sock = pair[0];
	r = wait_reply(w, &hello);
	if (r < 0)
		return explain_end(w, r, err);
	if (hello.status < 0) {
		stop(w);
		return err_set(err, -hello.status, "cannot start the process that reads files: %s",
			       hello.text);
	}
	return 0;
}

/* A descriptor for the child, read-only: with another it could write to the target's file. */
static int readable_copy(int fd, int *ret, struct err *err)
{
	char path[64];
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fstat(fd, &st))
		return err_errno(err, errno, "cannot use the descriptor");
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "not a regular file");
	if ((flags & O_ACCMODE) == O_RDONLY && !(flags & O_PATH)) {
		*ret = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	} else {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		*ret = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	}
	return *ret < 0 ? err_errno(err, errno, "cannot reopen the file") : 0;
}

static int make_reply_file(struct err *err)
{
	int fd = memfd_create("gasflame-reply", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	/* Sparse: only what the child writes takes memory, and it can write no more than this. */
	if (fd < 0 || ftruncate(fd, WORKER_MAX_REPLY) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		int r = err_errno(err, errno, "cannot make a file for the answer");

		fd_close(&fd);
		return r;
	}
	return fd;
}

/* An unlinked file on disk, so that what is unpacked there need not stay in memory. -1 = none. */
static int make_scratch(void)
{
	const char *folders[] = { getenv("TMPDIR"), "/var/tmp", "/tmp" };

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		_cleanup_free_ char *path = NULL;
		int fd;

		if (!folders[i] || folders[i][0] != '/')
			continue;
		fd = open(folders[i], O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
		if (fd >= 0)
			return fd;
		path = mem_printf("%s/gasflame-XXXXXX", folders[i]);
		fd = mkostemp(path, O_CLOEXEC);
		if (fd >= 0) {
			unlink(path);
			return fd;
		}
	}
	return -1;
}

/* Copies the bulk out of the shared file before anyone looks at it. */
static int copy_bulk(int fd, uint64_t n, char **ret, struct err *err)
{
	char *data;
	size_t got = 0;

	if (n > WORKER_MAX_REPLY)
		return err_set(err, EBADMSG, "the process that reads it gave a wrong answer");
	data = malloc(n + 1);
	if (!data)
		return err_set(err, ENOMEM, "no memory for the answer");
	while (got < n) {
		ssize_t r = pread(fd, data + got, n - got, got);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0) {
			free(data);
			return err_errno(err, r ? errno : EIO, "cannot read the answer");
		}
		got += r;
	}
	*ret = data;
	return 0;
}

struct call {
	struct worker_request request;
	int fds[WORKER_FDS];
	char *bulk; /* the answer, ours */
	uint64_t bulk_size;
};

static void call_init(struct call *c, enum worker_op op, int fd)
{
	*c = (struct call){ .request.op = op, .fds = { -1, fd, -1, -1, -1 } };
}

static void call_done(struct call *c)
{
	free(c->bulk);
}

/* One question and its answer; a child that is broken afterwards is gone. fds[WORKER_FD_REPLY] may be
 * made by the caller; the scratch file is handed over as it is, the others read-only. */
static int ask(struct worker *w, struct call *c, struct err *err)
{
	int sent[WORKER_FDS], owned[WORKER_FDS], r = start(w, err);
	struct worker_reply reply;
	size_t count = 0;

	for (int i = 0; i < WORKER_FDS; i++)
		owned[i] = -1;
	for (int i = 0; !r && i < WORKER_FDS; i++) {
		if (i == WORKER_FD_REPLY && c->fds[i] < 0) {
			owned[i] = make_reply_file(err);
			r = owned[i] < 0 ? owned[i] : 0;
		} else if (c->fds[i] >= 0 && i != WORKER_FD_REPLY && i != WORKER_FD_SCRATCH) {
			r = readable_copy(c->fds[i], &owned[i], err);
		}
		if (owned[i] >= 0 || c->fds[i] >= 0) {
			sent[count++] = owned[i] >= 0 ? owned[i] : c->fds[i];
			c->request.have |= 1U << i;
		}
	}
	if (!r) {
		r = fd_send(w->sock, &c->request, sizeof(c->request), sent, count);
		if (!r)
			r = wait_reply(w, &reply);
		if (r < 0)
			r = explain_end(w, r, err);
		else if (reply.status < 0)
			r = err_set(err, -reply.status, "%s", reply.text);
		else
			r = copy_bulk(sent[0], reply.size, &c->bulk, err);
		if (!r)
			c->bulk_size = reply.size;
	}
	for (int i = 0; i < WORKER_FDS; i++)
		fd_close(&owned[i]);
	return r;
}

/* What a child says that does not fit together: it is not to be trusted again. */
static int bad_answer(struct worker *w, struct err *err)
{
	stop(w);
	return err_set(err, EBADMSG, "the process that reads it gave a wrong answer");
}

int worker_unwind(struct worker *w, int fd, struct unwind_table *ret, struct err *err)
{
	struct worker_table head = { 0 };
	struct unwind_table t = { 0 };
	uint64_t need = sizeof(head);
	struct call c;
	char *p;
	int r;

	call_init(&c, WORKER_UNWIND, fd);
	r = ask(w, &c, err);
	if (!r && c.bulk_size >= sizeof(head)) {
		memcpy(&head, c.bulk, sizeof(head));
		need += head.page_count * sizeof(*t.pages) + head.row_count * sizeof(*t.rows) +
			head.rule_count * sizeof(*t.rules);
	}
	if (!r && need != c.bulk_size)
		r = bad_answer(w, err);
	if (!r) {
		t = (struct unwind_table){ .first_page = head.first_page, .page_count = head.page_count,
					   .row_count = head.row_count, .rule_count = head.rule_count,
					   .unsupported = head.unsupported };
		t.pages = mem_alloc(t.page_count * sizeof(*t.pages) + 1);
		t.rows = mem_alloc(t.row_count * sizeof(*t.rows) + 1);
		t.rules = mem_alloc(t.rule_count * sizeof(*t.rules) + 1);
		p = c.bulk + sizeof(head);
		memcpy(t.pages, p, t.page_count * sizeof(*t.pages));
		p += t.page_count * sizeof(*t.pages);
		memcpy(t.rows, p, t.row_count * sizeof(*t.rows));
		p += t.row_count * sizeof(*t.rows);
		memcpy(t.rules, p, t.rule_count * sizeof(*t.rules));
		if (t.page_count && !unwind_valid(&t)) {
			unwind_done(&t);
			r = bad_answer(w, err);
		}
	}
	call_done(&c);
	if (!r)
		*ret = t;
	return r;
}

static void copy_string(char *to, const char *from, size_t size)
{
	memcpy(to, from, size);
	to[size - 1] = 0;
}

int worker_inspect(struct worker *w, int fd, struct symbols_info *ret, struct err *err)
{
	struct worker_info in;
	struct call c;
	int r;

	call_init(&c, WORKER_INSPECT, fd);
	r = ask(w, &c, err);
	if (!r && c.bulk_size != sizeof(in))
		r = bad_answer(w, err);
	if (!r) {
		memcpy(&in, c.bulk, sizeof(in));
		*ret = (struct symbols_info){
			.symtab = in.flags & WORKER_HAS_SYMTAB, .dynsym = in.flags & WORKER_HAS_DYNSYM,
			.debug_line = in.flags & WORKER_HAS_DEBUG_LINE,
			.debug_info = in.flags & WORKER_HAS_DEBUG_INFO,
			.minidebug = in.flags & WORKER_HAS_MINIDEBUG,
			.eh_frame = in.flags & WORKER_HAS_EH_FRAME,
			.debug_frame = in.flags & WORKER_HAS_DEBUG_FRAME,
			.debuglink_crc = in.debuglink_crc, .machine = in.machine, .type = in.type,
			.symbol_count = in.symbol_count, .build_id_size = MIN(in.build_id_size, 20),
			.alt_build_id_size = MIN(in.alt_build_id_size, 20),
		};
		memcpy(ret->build_id, in.build_id, sizeof(ret->build_id));
		memcpy(ret->alt_build_id, in.alt_build_id, sizeof(ret->alt_build_id));
		copy_string(ret->debuglink, in.debuglink, sizeof(ret->debuglink));
		copy_string(ret->altlink, in.altlink, sizeof(ret->altlink));
		copy_string(ret->allocator, in.allocator, sizeof(ret->allocator));
	}
	call_done(&c);
	return r;
}

int worker_symbolize(struct worker *w, const struct worker_files *files, const uint64_t *addresses,
		     size_t n, symbols_got_fn *got, void *context, struct err *err)
{
	_cleanup_fd_ int reply = -1, scratch = -1;
	struct names names;
	struct call c;
	int r;

	if (n > WORKER_MAX_ADDRESSES)
		return err_set(err, E2BIG, "too many addresses");
	call_init(&c, WORKER_SYMBOLIZE, files->main);
	c.request.count = n;
	c.request.flags = (files->keep_hash ? WORKER_KEEP_HASH : 0) |
			  (files->no_dwarf ? WORKER_NO_DWARF : 0);
	c.fds[WORKER_FD_DEBUG] = files->debug;
	c.fds[WORKER_FD_ALT] = files->alt;
	c.fds[WORKER_FD_SCRATCH] = scratch = make_scratch();
	c.fds[WORKER_FD_REPLY] = reply = make_reply_file(err);
	if (reply < 0)
		return reply;
	r = fd_write_all(reply, addresses, n * sizeof(*addresses));
	if (r < 0)
		return err_errno(err, -r, "cannot hand over the addresses");
	r = ask(w, &c, err);
	if (!r && (!names_open(c.bulk, c.bulk_size, &names) || names.count != n))
		r = bad_answer(w, err);
	for (size_t i = 0; !r && i < n; i++) {
		struct symbols_call calls[NAMES_MAX_DEPTH];

		got(context, i, calls, names_calls(&names, i, calls, NAMES_MAX_DEPTH));
	}
	call_done(&c);
	return r;
}

static int ask_plain(struct worker *w, struct call *c, void *ret, size_t n, struct err *err)
{
	int r = ask(w, c, err);

	if (!r && c->bulk_size != n)
		r = bad_answer(w, err);
	if (!r && n)
		memcpy(ret, c->bulk, n);
	call_done(c);
	return r;
}

int worker_offset_to_address(struct worker *w, int fd, uint64_t offset, uint64_t *ret, struct err *err)
{
	struct call c;

	call_init(&c, WORKER_OFFSET, fd);
	c.request.offset = offset;
	return ask_plain(w, &c, ret, sizeof(*ret), err);
}

int worker_identify(struct worker *w, int fd, struct worker_identity *ret, struct err *err)
{
	struct call c;
	int r;

	call_init(&c, WORKER_IDENTIFY, fd);
	r = ask_plain(w, &c, ret, sizeof(*ret), err);
	if (!r)
		ret->build_id_size = MIN(ret->build_id_size, 20);
	return r;
}

int worker_allocator(struct worker *w, int fd, struct allocator_info *ret, struct err *err)
{
	struct call c;
	int r;

	call_init(&c, WORKER_ALLOCATOR, fd);
	r = ask_plain(w, &c, ret, sizeof(*ret), err);
	return r ?: allocator_check(ret) ? 0 : bad_answer(w, err);
}

int worker_doors(struct worker *w, int fd, const char *patterns, size_t n, struct doors_info *ret, struct err *err)
{
	_cleanup_fd_ int reply = make_reply_file(err);
	struct call c;
	int r;

	if (reply < 0)
		return reply;
	call_init(&c, WORKER_DOORS, fd);
	c.request.count = n;
	c.fds[WORKER_FD_REPLY] = reply;
	r = fd_write_all(reply, patterns, n);
	if (r < 0)
		return err_errno(err, -r, "cannot hand over the patterns");
	r = ask_plain(w, &c, ret, sizeof(*ret), err);
	return r ?: doors_check(ret) ? 0 : bad_answer(w, err);
}

int worker_usdt(struct worker *w, int fd, struct usdt_info *ret, struct err *err)
{
	struct call c;
	int r;

	call_init(&c, WORKER_USDT, fd);
	r = ask_plain(w, &c, ret, sizeof(*ret), err);
	return r ?: usdt_check(ret) ? 0 : bad_answer(w, err);
}

int worker_unpack(struct worker *w, int fd, int out, struct err *err)
{
	struct call c;

	call_init(&c, WORKER_UNPACK, fd);
	c.fds[WORKER_FD_SCRATCH] = out;
	return ask_plain(w, &c, NULL, 0, err);
}

/* Instructions follow each other, and their text is what a terminal can show. */
static bool check_instructions(const char *bulk, uint64_t n, worker_instruction_fn *got, void *context)
{
	uint64_t at = 0, next = 0;

	while (at < n) {
		struct disassemble_entry e;
		char text[256];

		if (n - at < sizeof(e))
			return false;
		memcpy(&e, bulk + at, sizeof(e));
		at += sizeof(e);
		if (e.text_size >= sizeof(text) || e.text_size > n - at || !e.size || e.address < next ||
		    e.address + e.size < e.address)
			return false;
		memcpy(text, bulk + at, e.text_size);
		text[e.text_size] = 0;
		for (char *c = text; *c; c++)
			if (*c < ' ' || *c > '~')
				*c = *c == '\t' ? ' ' : '?';
		at += e.text_size;
		next = e.address + e.size;
		got(context, e.address, e.size, text);
	}
	return true;
}

int worker_disassemble(struct worker *w, int fd, int debug, uint64_t address, worker_instruction_fn *got,
		       void *context, struct err *err)
{
	struct call c;
	int r;

	if (!disassemble_there())
		return disassemble_function(NULL, 0, NULL, err);
	call_init(&c, WORKER_DISASSEMBLE, fd);
	c.request.offset = address;
	c.fds[WORKER_FD_DEBUG] = debug;
	r = ask(w, &c, err);
	if (!r && !check_instructions(c.bulk, c.bulk_size, got, context))
		r = bad_answer(w, err);
	call_done(&c);
	return r;
}
