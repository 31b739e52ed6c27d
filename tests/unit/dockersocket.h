/*
 * dockersocket.h - a socket that answers as Docker does, or not as it should, for the tests of container names.
 *
 *	struct dockersocket e;
 *	dockersocket_start(&e, folder, DOCKERSOCKET_GOOD, 200);
 *	...  DOCKER_HOST points to it
 *	dockersocket_stop(&e);
 */
#pragma once

#include <pthread.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"

enum dockersocket_mode {
	DOCKERSOCKET_GOOD,
	DOCKERSOCKET_SILENT, /* takes the question and says nothing */
	DOCKERSOCKET_DRIPS, /* a byte now and then, for ever */
	DOCKERSOCKET_CLOSES, /* without an answer */
	DOCKERSOCKET_GARBAGE, /* no HTTP */
	DOCKERSOCKET_NO_JSON,
	DOCKERSOCKET_LIES, /* says that a container is a process of somebody else */
	DOCKERSOCKET_FLOODS, /* more than anybody wants */
};

struct dockersocket {
	enum dockersocket_mode mode;
	int listener, stop[2];
	size_t count;
	pthread_t thread;
	char path[128], *id; /* id: of container 7 */
	pid_t pid;           /* of the same */
};

static inline char *dockersocket_id(const struct dockersocket *e, size_t i)
{
	return i == 7 && e->id ? mem_strdup(e->id) : mem_printf("%04zx%060zx", i, i * 7919 + 1);
}

static inline void dockersocket_put_one(struct dockersocket *e, struct buf *b, size_t i)
{
	_cleanup_free_ char *id = dockersocket_id(e, i);

	buf_printf(b,
		   "{\"Id\":\"%s\",\"Name\":\"/c-%03zu\",\"State\":{\"Running\":%s,\"Pid\":%d},\"Image\":\"sha256:00\","
		   "\"Config\":{\"Image\":\"tiny:1\",\"Labels\":{}},\"Mounts\":[]}",
		   id, i, i == 9 ? "false" : "true", e->mode == DOCKERSOCKET_LIES ? getppid() : i == 7 ? (int)e->pid : 1);
}

static inline void dockersocket_put_list(struct dockersocket *e, struct buf *b)
{
	buf_putc(b, '[');
	for (size_t i = 0; i < e->count; i++) {
		_cleanup_free_ char *id = dockersocket_id(e, i);

		/* As long as a real one. */
		buf_printf(b,
			   "%s{\"Id\":\"%s\",\"Names\":[\"/c-%03zu\"],\"Image\":\"tiny:1\",\"ImageID\":\"sha256:%064d\",\"Command\":"
			   "\"/opt/imagenode 10 60\",\"Created\":1794749150,\"Ports\":[],\"Labels\":{},\"State\":\"running\","
			   "\"Status\":\"Up 2 seconds\",\"HostConfig\":{\"NetworkMode\":\"none\"},\"NetworkSettings\":{\"Networks\":{"
			   "\"none\":{\"NetworkID\":\"%064d\",\"EndpointID\":\"%064d\",\"Gateway\":\"\",\"IPAddress\":\"\"}}},"
			   "\"Mounts\":[]}",
			   i ? "," : "", id, i, 0, 0, 0);
	}
	buf_putc(b, ']');
}

/* The container that "/containers/X/json" is about: a name, or the beginning of one id. */
static inline bool dockersocket_find(struct dockersocket *e, const char *name, size_t n, size_t *ret)
{
	size_t found = 0;

	for (size_t i = 0; i < e->count; i++) {
		_cleanup_free_ char *id = dockersocket_id(e, i), *own = mem_printf("c-%03zu", i);

		if ((strlen(own) == n && !memcmp(own, name, n)) || (n <= 64 && !memcmp(id, name, n))) {
			*ret = i;
			found++;
		}
	}
	return found == 1;
}

static inline void dockersocket_answer(struct dockersocket *e, int fd, const char *request)
{
	static const char path[] = "GET /containers/";
	struct buf body = { 0 }, head = { 0 };
	const char *name = request + strlen(path);
	int status = 404;
	size_t i;

	if (str_starts(request, "GET /containers/json")) {
		dockersocket_put_list(e, &body);
		status = 200;
	} else if (str_starts(request, path) && dockersocket_find(e, name, strcspn(name, "/ "), &i)) {
		dockersocket_put_one(e, &body, i);
		status = 200;
	}
	if (e->mode == DOCKERSOCKET_NO_JSON || !body.n) {
		body.n = 0;
		if (e->mode == DOCKERSOCKET_NO_JSON)
			status = 200;
		buf_puts(&body, e->mode == DOCKERSOCKET_NO_JSON ? "[[[{\"Id\":" : "{\"message\":\"no such container\"}");
	}
	buf_printf(&head, "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
		   status, body.n);
	fd_write_all(fd, head.data, head.n);
	fd_write_all(fd, body.data, body.n);
	buf_done(&head);
	buf_done(&body);
}

/* Until the other side has enough, or the test. */
static inline void dockersocket_go_on(struct dockersocket *e, int fd, const char *piece, size_t n, int ms)
{
	struct pollfd stop = { .fd = e->stop[0], .events = POLLIN };

	while (!poll(&stop, 1, ms))
		if (n && send(fd, piece, n, MSG_NOSIGNAL) < 0)
			break;
}

static inline void dockersocket_serve(struct dockersocket *e, int fd)
{
	char request[4096];
	ssize_t n = read(fd, request, sizeof(request) - 1);
	static char flood[65536];

	if (n <= 0)
		return;
	request[n] = 0;
	switch (e->mode) {
	case DOCKERSOCKET_SILENT:
		dockersocket_go_on(e, fd, NULL, 0, 50);
		break;
	case DOCKERSOCKET_DRIPS:
		dockersocket_go_on(e, fd, "H", 1, 50);
		break;
	case DOCKERSOCKET_FLOODS:
		send(fd, "HTTP/1.1 200 OK\r\n\r\n[", 20, MSG_NOSIGNAL);
		memset(flood, ' ', sizeof(flood));
		dockersocket_go_on(e, fd, flood, sizeof(flood), 0);
		break;
	case DOCKERSOCKET_CLOSES:
		break;
	case DOCKERSOCKET_GARBAGE:
		send(fd, "\001\002\003 not HTTP at all\r\n\r\n", 24, MSG_NOSIGNAL);
		break;
	default:
		dockersocket_answer(e, fd, request);
	}
}

static inline void *dockersocket_run(void *context)
{
	struct dockersocket *e = context;

	for (;;) {
		struct pollfd p[2] = { { .fd = e->listener, .events = POLLIN }, { .fd = e->stop[0], .events = POLLIN } };
		int fd;

		poll(p, 2, -1);
		if (p[1].revents)
			return NULL;
		fd = accept(e->listener, NULL, NULL);
		if (fd >= 0) {
			dockersocket_serve(e, fd);
			close(fd);
		}
	}
}

static inline void dockersocket_start(struct dockersocket *e, const char *folder, enum dockersocket_mode mode, size_t count)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_free_ char *host = NULL;

	e->mode = mode;
	e->count = count;
	snprintf(e->path, sizeof(e->path), "%s/engine.sock", folder);
	unlink(e->path);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", e->path);
	e->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(e->listener >= 0);
	assert_int_equal(bind(e->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(e->listener, 16), 0);
	assert_int_equal(pipe(e->stop), 0);
	assert_int_equal(pthread_create(&e->thread, NULL, dockersocket_run, e), 0);
	host = mem_printf("unix://%s", e->path);
	setenv("DOCKER_HOST", host, 1);
}

/* The socket's file stays behind, as that of a daemon that died. */
static inline void dockersocket_stop(struct dockersocket *e)
{
	assert_int_equal(write(e->stop[1], "x", 1), 1);
	pthread_join(e->thread, NULL);
	close(e->stop[0]);
	close(e->stop[1]);
	close(e->listener);
}
