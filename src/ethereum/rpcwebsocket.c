/*
 * rpcwebsocket.c - JSON-RPC over a WebSocket, on a plain socket: questions, and subscriptions to blocks.
 *
 * A connection that fails is given up; the next call makes a new one, and subscribes again. News that come while an
 * answer is waited for are kept, with the time at which they came.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/vec.h"
#include "ethereum/rpccall.h"
#include "ethereum/rpcint.h"
#include "net/websocket.h"

enum { TOTAL_MS = 2000, STEP_MS = 50, NEWS = 256, CHUNK = 65536 };

struct news {
	struct rpcblock block;
	uint64_t time_ns;
};

struct connection {
	char *host, *port, *path, *authority;
	int fd;               /* -1 = there is none */
	bool subscribed;
	struct websocket in;
	struct buf read;      /* bytes that were not used yet */
	struct buf answer;
	VEC(struct news) news;
};

/* ws://host[:port][/path], host may be [::1]. */
static int split_url(struct connection *c, const char *url, struct err *err)
{
	const char *s = url + strlen("ws://"), *end = s + strcspn(s, "/?#"), *colon, *host_end;
	bool six = *s == '[';

	host_end = six ? memchr(s, ']', end - s) : memchr(s, ':', end - s);
	if (six && !host_end)
		return err_set(err, EINVAL, "'%.200s' is no address: ws://[::1]:8545", url);
	colon = six ? host_end + 1 : host_end;
	if (!colon || colon == end || *colon != ':')
		colon = NULL;
	c->host = mem_strndup(s + six, (six ? host_end : colon ? colon : end) - s - six);
	c->port = colon ? mem_strndup(colon + 1, end - colon - 1) : mem_strdup("80");
	c->authority = mem_strndup(s, end - s);
	c->path = mem_printf("%s%.*s", *end == '/' ? "" : "/", (int)strcspn(end, "#"), end);
	if (!*c->host || !*c->port || strspn(c->port, "0123456789") != strlen(c->port) || strpbrk(url, " \r\n\t@"))
		return err_set(err, EINVAL, "'%.200s' is no address: ws://127.0.0.1:8545", url);
	return 0;
}

static int open_websocket(struct rpc *r, const char *url, struct err *err)
{
	struct connection *c = r->data = mem_alloc(sizeof(*c));

	c->fd = -1;
	return split_url(c, url, err);
}

static void hang_up(struct connection *c)
{
	fd_close(&c->fd);
	c->subscribed = false;
	websocket_done(&c->in);
	c->in = (struct websocket){ 0 };
	c->read.n = 0;
}

static void close_websocket(struct rpc *r)
{
	struct connection *c = r->data;

	if (!c)
		return;
	hang_up(c);
	buf_done(&c->read);
	buf_done(&c->answer);
	vec_done(&c->news);
	free(c->host);
	free(c->port);
	free(c->path);
	free(c->authority);
	free(c);
}

/* --- bytes --- */

/* Until it can be read or written, the time is over, or we are to stop: 1, 0, -errno. */
static int wait_until(struct rpc *r, int fd, short events, uint64_t until_ns)
{
	while (!r->stop) {
		struct pollfd p = { .fd = fd, .events = events };
		uint64_t now = clock_mono_ns();
		int n;

		n = poll(&p, 1, now >= until_ns ? 0 : MIN((until_ns - now) / 1000000 + 1, (uint64_t)STEP_MS));
		if (n > 0)
			return 1;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (now >= until_ns)
			return 0;
	}
	return -ECANCELED;
}

static int send_all(struct rpc *r, const char *data, size_t n, uint64_t until_ns)
{
	struct connection *c = r->data;

	while (n) {
		ssize_t sent = send(c->fd, data, n, MSG_NOSIGNAL);

		if (sent < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (sent > 0) {
			data += sent;
			n -= sent;
		} else {
			int e = wait_until(r, c->fd, POLLOUT, until_ns);

			if (e <= 0)
				return e ? e : -ETIMEDOUT;
		}
	}
	return 0;
}

/* Reads more bytes into the buffer: 1; 0: none until then. */
static int read_some(struct rpc *r, uint64_t until_ns)
{
	struct connection *c = r->data;
	char data[CHUNK];
	ssize_t n;
	int e = wait_until(r, c->fd, POLLIN, until_ns);

	if (e <= 0)
		return e;
	n = recv(c->fd, data, sizeof(data), 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!n)
		return -ECONNRESET;
	buf_add(&c->read, data, n);
	return 1;
}

static void use_up(struct buf *b, size_t n)
{
	b->n -= n;
	memmove(b->data, b->data + n, b->n);
}

static int send_frame(struct rpc *r, enum websocket_opcode opcode, const void *data, size_t n)
{
	_cleanup_(buf_done) struct buf out = { 0 };
	uint8_t mask[4] = { 0 };

	if (getrandom(mask, sizeof(mask), 0) != sizeof(mask))
		return -EIO;
	websocket_frame(&out, opcode, data, n, mask);
	return send_all(r, out.data, out.n, clock_mono_ns() + TOTAL_MS * 1000000ULL);
}

/* --- the connection --- */

static int connect_one(struct rpc *r, const struct addrinfo *a, uint64_t until_ns)
{
	struct connection *c = r->data;
	socklen_t size = sizeof(int);
	int e, one = 1, failed = 0;

	c->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return -errno;
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (!connect(c->fd, a->ai_addr, a->ai_addrlen))
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	e = wait_until(r, c->fd, POLLOUT, until_ns);
	if (e <= 0)
		return e ? e : -ETIMEDOUT;
	getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &failed, &size);
	return -failed;
}

static int connect_socket(struct rpc *r, uint64_t until_ns, struct err *why)
{
	struct connection *c = r->data;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *all = NULL;
	int e = getaddrinfo(c->host, c->port, &hints, &all);

	if (e)
		return err_set(why, EIO, "there is no machine %s: %s", c->host, gai_strerror(e));
	e = -EIO;
	for (const struct addrinfo *a = all; a && e; a = a->ai_next) {
		fd_close(&c->fd);
		e = connect_one(r, a, until_ns);
	}
	freeaddrinfo(all);
	return e ? err_errno(why, -e, "it cannot be reached") : 0;
}

static int shake_hands(struct rpc *r, uint64_t until_ns, struct err *why)
{
	_cleanup_(buf_done) struct buf out = { 0 };
	struct connection *c = r->data;
	char key[WEBSOCKET_KEY];
	uint8_t random[16];
	size_t used;
	int e;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return err_set(why, EIO, "there is no randomness");
	websocket_make_key(random, key);
	websocket_request(&out, c->authority, c->path, key);
	e = send_all(r, out.data, out.n, until_ns);
	while (e >= 0) {
		e = read_some(r, until_ns);
		if (!e)
			e = -ETIMEDOUT;
		if (e < 0)
			break;
		e = websocket_response(c->read.data, c->read.n, key, &used, why);
		if (e < 0)
			return e == -ECONNREFUSED ? e : -EIO;
		if (e)
			use_up(&c->read, used);
		if (e)
			return 0;
	}
	return err_errno(why, -e, "it does not answer");
}

static int need_connection(struct rpc *r, struct err *why)
{
	struct connection *c = r->data;
	uint64_t until = clock_mono_ns() + TOTAL_MS * 1000000ULL;
	int e;

	if (c->fd >= 0)
		return 0;
	e = connect_socket(r, until, why);
	if (!e)
		e = shake_hands(r, until, why);
	if (e)
		hang_up(c);
	return e ? -EIO : 0;
}

/* --- messages --- */

static void keep_news(struct connection *c, const struct rpcblock *b)
{
	if (c->news.n == NEWS) {
		memmove(c->news.v, c->news.v + 1, (NEWS - 1) * sizeof(*c->news.v));
		c->news.n--;
	}
	vec_push(&c->news, (struct news){ *b, clock_mono_ns() });
}

/* Handles a complete message: 1 if it answers that request. */
static int take_message(struct connection *c, uint64_t id)
{
	struct rpcblock b;
	uint64_t got;

	switch (rpcblock_message(c->in.message.data, c->in.message.n, &got, &b)) {
	case RPCBLOCK_HEAD:
		keep_news(c, &b);
		return 0;
	case RPCBLOCK_ANSWER:
		if (got != id || !id)
			return 0;
		c->answer.n = 0;
		buf_add(&c->answer, c->in.message.data, c->in.message.n);
		return 1;
	case RPCBLOCK_ODD:
		break;
	}
	return -EBADMSG;
}

/* Handles the bytes in the buffer: 1 when the answer came. */
static int take_bytes(struct rpc *r, uint64_t id)
{
	struct connection *c = r->data;
	int e = 0;

	while (c->read.n && !e) {
		size_t used;
		int event = websocket_feed(&c->in, (const uint8_t *)c->read.data, c->read.n, &used);

		use_up(&c->read, used);
		if (event == WEBSOCKET_TEXT)
			e = take_message(c, id);
		else if (event == WEBSOCKET_PING)
			e = send_frame(r, WEBSOCKET_OP_PONG, c->in.control, c->in.control_n);
		else if (event == WEBSOCKET_CLOSE)
			e = -ECONNRESET;
		else if (event < 0)
			e = event;
	}
	return e;
}

static int broken(struct connection *c, int e, struct err *why)
{
	hang_up(c);
	return err_set(why, EIO, "%s", e == -EBADMSG ? "it sent something other than an answer" : e == -EFBIG ? "its answer is too long" :
		       e == -ETIMEDOUT ? "it does not answer" : e == -ECANCELED ? "it was not asked any more" : strerror(-e));
}

/* Reads until the answer is there (1), the time is over, or, with id 0, there are news (0). */
static int listen_for(struct rpc *r, uint64_t id, uint64_t until_ns, struct err *why)
{
	struct connection *c = r->data;

	for (;;) {
		int e = take_bytes(r, id);

		if (e > 0)
			return 1;
		if (!e && !id && c->news.n)
			return 0;
		if (!e) {
			e = read_some(r, until_ns);
			if (!e && clock_mono_ns() >= until_ns)
				return 0;
		}
		if (e < 0)
			return broken(c, e, why);
	}
}

static int ask_websocket(struct rpc *r, const char *body, uint64_t id, const char **ret, size_t *ret_n, struct err *why)
{
	struct connection *c = r->data;
	int e = need_connection(r, why);

	if (e)
		return e;
	e = send_frame(r, WEBSOCKET_OP_TEXT, body, strlen(body));
	if (e < 0)
		return broken(c, e, why);
	e = listen_for(r, id, clock_mono_ns() + TOTAL_MS * 1000000ULL, why);
	if (e < 0)
		return e;
	if (!e)
		return broken(c, -ETIMEDOUT, why);
	*ret = c->answer.data;
	*ret_n = c->answer.n;
	return 0;
}

static int subscribe(struct rpc *r, struct err *why)
{
	struct connection *c = r->data;
	_cleanup_(rpccall_done) struct rpccall call = { 0 };
	const char *answer;
	size_t n;
	int e;

	rpccall_begin(&call, r->persisted ? "reth_subscribePersistedBlock" : "eth_subscribe");
	if (!r->persisted)
		json_put_string(&call.params, NULL, "newHeads");
	rpccall_end(&call);
	e = need_connection(r, why);
	if (e || c->subscribed)
		return e;
	e = ask_websocket(r, call.body.data, call.id, &answer, &n, why);
	if (e)
		return e;
	if (memmem(answer, n, "\"error\"", 7))
		return err_set(why, EREMOTEIO, r->persisted ?
			       "it does not announce blocks that it has on disk (reth_subscribePersistedBlock is refused: reth has it with "
			       "--ws --ws.api eth,reth)" :
			       "it does not announce new blocks (eth_subscribe is refused)");
	c->subscribed = true;
	return 0;
}

static int head_websocket(struct rpc *r, int timeout_ms, struct rpcblock *ret, uint64_t *ret_mono_ns, struct err *why)
{
	struct connection *c = r->data;
	int e = subscribe(r, why);

	if (!e && !c->news.n)
		e = listen_for(r, 0, clock_mono_ns() + timeout_ms * 1000000ULL, why);
	if (e < 0)
		return e;
	if (!c->news.n)
		return 0;
	*ret = c->news.v[0].block;
	*ret_mono_ns = c->news.v[0].time_ns;
	c->news.n--;
	memmove(c->news.v, c->news.v + 1, c->news.n * sizeof(*c->news.v));
	return 1;
}

const struct rpc_way rpc_way_websocket = { .schemes = { "ws://" }, .tells = true, .open = open_websocket,
					   .ask = ask_websocket, .head = head_websocket, .close = close_websocket };
