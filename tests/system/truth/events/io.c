/*
 * io.c FOLDER [rounds] - moves a known number of bytes by every call there is: files, a pipe, sockets,
 * some calls failing; says at the end what was moved, by file and by way. Its own words go to stdout by
 * one write each, at the end: "total" leaves them out, and the tests do as well.
 *
 *	read NAME BYTES CALLS    write NAME BYTES CALLS    sync NAME CALLS    errors CALLS
 */
#include "../truth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { A, B, DELETED, DEEP, PIPE, UNIX, UDP, FILES };
static const char *const names[FILES] = { "a.dat", "b.dat", "gone.dat", "deep.dat", "pipe", "unix", "udp" };

static unsigned long got[FILES], put[FILES], reads[FILES], writes[FILES], syncs[FILES], errors;
static char buffer[65536];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static NOINLINE long did_read(int file, long n)
{
	reads[file]++;
	if (n < 0)
		errors++;
	else
		got[file] += n;
	return n;
}

static NOINLINE long did_write(int file, long n)
{
	writes[file]++;
	if (n < 0)
		errors++;
	else
		put[file] += n;
	return n;
}

static NOINLINE void did_both(int from, int to, long n)
{
	did_read(from, n);
	errors -= n < 0;
	did_write(to, n);
}

static NOINLINE void did_sync(int file, long n)
{
	syncs[file]++;
	errors += n < 0;
}

NOINLINE void write_files(int a, int b)
{
	struct iovec two[2] = { { buffer, 1000 }, { buffer, 234 } };

	did_write(A, write(a, buffer, 40000));
	did_write(A, pwrite(a, buffer, 12345, 70000));
	did_write(A, writev(a, two, 2));
	did_write(A, pwritev(a, two, 2, 90000));
	did_write(A, pwritev2(a, two, 1, 95000, 0));
	did_write(B, write(b, buffer, 1));
	did_write(B, write(b, buffer, 0));
}

NOINLINE void read_files(int a)
{
	struct iovec two[2] = { { buffer, 777 }, { buffer + 1000, 100 } };

	did_read(A, pread(a, buffer, 65536, 0));
	did_read(A, pread(a, buffer, 65536, 60000)); /* fewer come than asked for */
	did_read(A, pread(a, buffer, 100, 1 << 30)); /* the end: none */
	lseek(a, 100, SEEK_SET);
	did_read(A, read(a, buffer, 5000));
	did_read(A, readv(a, two, 2));
	did_read(A, preadv(a, two, 2, 11));
	did_read(A, preadv2(a, two, 1, 22, 0));
}

NOINLINE void copy_files(int a, int b, const int *fds)
{
	off_t at = 0;
	loff_t from = 50, to = 5000;

	did_both(A, B, sendfile(b, a, &at, 3000));
	did_both(A, B, copy_file_range(a, &from, b, &to, 2000, 0));
	from = 0;
	did_both(A, PIPE, splice(a, &from, fds[1], NULL, 1500, 0));
	did_read(PIPE, read(fds[0], buffer, sizeof(buffer)));
}

NOINLINE void use_pipe(const int *fds)
{
	struct iovec one = { buffer, 300 };

	did_write(PIPE, write(fds[1], buffer, 4000));
	did_read(PIPE, read(fds[0], buffer, 100));
	did_read(PIPE, read(fds[0], buffer, sizeof(buffer)));
	did_write(PIPE, vmsplice(fds[1], &one, 1, 0));
	did_read(PIPE, read(fds[0], buffer, sizeof(buffer)));
}

NOINLINE void use_sockets(const int *pair, const int *udp)
{
	struct iovec one = { buffer, 600 }, parts[3] = { { buffer, 10 }, { buffer, 20 }, { buffer, 30 } };
	struct msghdr message = { .msg_iov = &one, .msg_iovlen = 1 };
	struct mmsghdr many[3] = { 0 };
	long bytes = 0;
	int n;

	did_write(UNIX, send(pair[0], buffer, 800, 0));
	did_write(UNIX, sendmsg(pair[0], &message, 0));
	did_write(UNIX, write(pair[0], buffer, 50));
	did_read(UNIX, recv(pair[1], buffer, 300, 0));
	did_read(UNIX, recvmsg(pair[1], &message, 0));
	did_read(UNIX, recv(pair[1], buffer, sizeof(buffer), 0));
	did_read(UNIX, recv(pair[1], buffer, 1, MSG_DONTWAIT)); /* nothing left: fails */
	for (int i = 0; i < 3; i++)
		many[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i], .msg_iovlen = 1 };
	n = sendmmsg(udp[0], many, 3, 0);
	for (int i = 0; i < n; i++)
		bytes += many[i].msg_len;
	did_write(UDP, bytes);
	bytes = 0;
	n = recvmmsg(udp[1], many, 3, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++)
		bytes += many[i].msg_len;
	did_read(UDP, bytes);
}

NOINLINE void fail_calls(int a, int write_only)
{
	did_write(A, pwrite(a, buffer, 10, -1));
	did_read(B, read(write_only, buffer, 10));
	errno = 0;
	if (write(9999, buffer, 1) >= 0) /* no such descriptor */
		fail("write to nowhere");
	errors++;
}

NOINLINE void sync_files(int a, int b, void *map)
{
	did_sync(A, fsync(a));
	did_sync(A, fdatasync(a));
	did_sync(A, sync_file_range(a, 0, 4096, SYNC_FILE_RANGE_WRITE));
	did_sync(B, fdatasync(b));
	if (msync(map, 4096, MS_SYNC))
		fail("msync");
}

static int open_in(const char *folder, const char *name, int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, flags, 0644);
	if (fd < 0)
		fail(path);
	return fd;
}

/* A file whose path is longer than a path may be. */
static int open_deep(const char *folder)
{
	char name[200];
	int at = open(folder, O_PATH | O_DIRECTORY), next;

	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	for (int i = 0; i < 30; i++) {
		mkdirat(at, name, 0755);
		next = openat(at, name, O_PATH | O_DIRECTORY);
		close(at);
		at = next;
	}
	return openat(at, names[DEEP], O_RDWR | O_CREAT | O_TRUNC, 0644);
}

static void open_udp(int *udp)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);

	udp[0] = socket(AF_INET, SOCK_DGRAM, 0);
	udp[1] = socket(AF_INET, SOCK_DGRAM, 0);
	if (bind(udp[1], (void *)&address, size) || getsockname(udp[1], (void *)&address, &size) ||
	    connect(udp[0], (void *)&address, size))
		fail("udp");
}

int main(int argc, char **argv)
{
	const char *folder = argc > 1 ? argv[1] : ".";
	int rounds = argument(argc, argv, 2, 10);
	int a = open_in(folder, names[A], O_RDWR | O_CREAT | O_TRUNC);
	int b = open_in(folder, names[B], O_WRONLY | O_CREAT | O_TRUNC);
	int gone = open_in(folder, names[DELETED], O_RDWR | O_CREAT | O_TRUNC), deep = open_deep(folder);
	int fds[2], pair[2], udp[2];
	void *map;

	if (chdir(folder))
		fail(folder);
	unlink(names[DELETED]);
	if (pipe(fds) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		fail("pipe");
	open_udp(udp);
	usleep(300000); /* so that a recorder has seen what is mapped */
	did_write(DEEP, write(deep, buffer, 4321));
	did_write(DELETED, write(gone, buffer, 2222));
	did_write(A, pwrite(a, buffer, 4096, 0));
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, a, 0);
	for (int i = 0; i < rounds; i++) {
		lseek(a, 0, SEEK_SET);
		write_files(a, b);
		read_files(a);
		copy_files(a, b, fds);
		use_pipe(fds);
		use_sockets(pair, udp);
		fail_calls(a, b);
		if (i < 5)
			sync_files(a, b, map);
	}
	for (int i = 0; i < FILES; i++)
		printf("read %s %lu %lu\nwrite %s %lu %lu\nsync %s %lu\n", names[i], got[i], reads[i], names[i],
		       put[i], writes[i], names[i], syncs[i]);
	printf("errors %lu\n", errors);
	return 0;
}
