/* The status page, over its socket. */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "serve/statuspage.h"

static unsigned answers;

static unsigned answer(void *context, const char *path, struct buf *body, const char **ret_type)
{
	answers++;
	assert_string_equal(context, "context");
	if (!strcmp(path, "/empty"))
		return 200;
	if (strcmp(path, "/metrics") != 0)
		return 404;
	buf_puts(body, "gasflame_up 1\n");
	*ret_type = "text/plain; version=0.0.4";
	return 200;
}

static struct statuspage *start(const char *address)
{
	struct statuspage *s;
	struct err err;

	if (statuspage_start(address, answer, "context", &s, &err))
		fail_msg("%s", err.text);
	return s;
}

static int connect_to(const struct statuspage *s)
{
	const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(statuspage_port(s)),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* Sends it as far as it is taken, and reads to the end. Caller frees. */
static char *talk(int fd, const char *request, size_t n)
{
	struct buf got = { 0 };
	char piece[4096];
	ssize_t r;

	send(fd, request, n, MSG_NOSIGNAL);
	while ((r = recv(fd, piece, sizeof(piece), 0)) > 0)
		buf_add(&got, piece, r);
	return got.data ? got.data : mem_strdup("");
}

/* host: NULL: "127.0.0.1:PORT". */
static char *ask(const struct statuspage *s, const char *method, const char *path, const char *host)
{
	_cleanup_free_ char *ours = mem_printf("127.0.0.1:%u", statuspage_port(s)),
			    *request = mem_printf("%s %s HTTP/1.1\r\nHost: %s\r\n\r\n", method, path, host ? host : ours);
	_cleanup_fd_ int fd = connect_to(s);

	return talk(fd, request, strlen(request));
}

static void expect(char *got, const char *begins, const char *has, const char *ends)
{
	if (!str_starts(got, begins) || !strstr(got, has) || !str_ends(got, ends))
		fail_msg("\"%s\" is not \"%s ... %s ... %s\"", got, begins, has, ends);
	free(got);
}

static void it_answers(void **state)
{
	struct statuspage *s = start("127.0.0.1:0");
	unsigned before;

	expect(ask(s, "GET", "/metrics", NULL), "HTTP/1.1 200", "Content-Type: text/plain; version=0.0.4\r\n", "\r\n\r\ngasflame_up 1\n");
	expect(ask(s, "GET", "/metrics?x=1", NULL), "HTTP/1.1 200", "Content-Security-Policy: default-src 'none'", "gasflame_up 1\n");
	expect(ask(s, "HEAD", "/metrics", NULL), "HTTP/1.1 200", "Content-Length: 14\r\n", "\r\n\r\n");
	expect(ask(s, "GET", "/empty", NULL), "HTTP/1.1 200", "Content-Length: 0\r\n", "\r\n\r\n");
	expect(ask(s, "GET", "/../etc/passwd", NULL), "HTTP/1.1 404", "\r\n\r\n", "there is nothing here\n");
	before = answers;
	expect(ask(s, "POST", "/metrics", NULL), "HTTP/1.1 405", "Allow: GET, HEAD\r\n", "reading only\n");
	expect(ask(s, "DELETE", "/metrics", NULL), "HTTP/1.1 405", "Allow: GET, HEAD\r\n", "reading only\n");
	assert_int_equal(answers, before);
	statuspage_stop(s);
}

static void only_this_machine_is_its_host(void **state)
{
	struct statuspage *s = start("localhost:0");
	_cleanup_free_ char *local = mem_printf("localhost:%u", statuspage_port(s)), *evil = mem_printf("evil.example:%u", statuspage_port(s)),
			    *two = mem_printf("127.0.0.1:%u\r\nHost: evil.example", statuspage_port(s)),
			    *six = mem_printf("[::1]:%u", statuspage_port(s));
	const char *const bad[] = { evil, "127.0.0.1", "", two, six };
	unsigned before = answers;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char *got = ask(s, "GET", "/metrics", bad[i]);

		assert_true(str_starts(got, "HTTP/1.1 403") || str_starts(got, "HTTP/1.1 400"));
		assert_null(strstr(got, "gasflame"));
		free(got);
	}
	assert_int_equal(answers, before);
	expect(ask(s, "GET", "/metrics", local), "HTTP/1.1 200", "", "gasflame_up 1\n");
	statuspage_stop(s);
}

static void long_requests_are_refused(void **state)
{
	struct statuspage *s = start("127.0.0.1:0");
	static const size_t lengths[] = { 300, 4000, 100000, 1000000 };
	unsigned before = answers;

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		_cleanup_free_ char *path = mem_alloc(lengths[i] + 1);
		char *got;

		memset(path, 'a', lengths[i]);
		path[0] = '/';
		got = ask(s, "GET", path, NULL);
		/* Or the connection is closed on what it still sends. */
		assert_true(!*got || str_starts(got, "HTTP/1.1 4") || str_starts(got, "HTTP/1.0 4"));
		if (!i)
			assert_true(str_starts(got, "HTTP/1.1 414"));
		free(got);
	}
	assert_int_equal(answers, before);
	expect(ask(s, "GET", "/metrics", NULL), "HTTP/1.1 200", "", "gasflame_up 1\n");
	statuspage_stop(s);
}

static void idle_clients_lock_nobody_out(void **state)
{
	enum { IDLE = 200 };
	struct statuspage *s = start("127.0.0.1:0");
	int fds[IDLE];

	for (size_t i = 0; i < IDLE; i++) {
		fds[i] = connect_to(s);
		assert_int_equal(send(fds[i], "GET /me", 7, MSG_NOSIGNAL), 7);
		if (i % 50 == 49)
			expect(ask(s, "GET", "/metrics", NULL), "HTTP/1.1 200", "", "gasflame_up 1\n");
	}
	for (size_t i = 0; i < IDLE; i++)
		close(fds[i]);
	statuspage_stop(s);
}

static void addresses_are_of_loopback(void **state)
{
	static const char *const bad[] = {
		"", ":0", "0.0.0.0:0", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:x", "127.0.0.1:-1", "[::]:0", "::1:0", "example.org:80",
		"localhost.evil:1", "10.0.0.1:9911",
	};
	struct statuspage *s, *other;
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(statuspage_start(bad[i], answer, NULL, &s, &err), -EINVAL);
	s = start("127.0.0.1:0");
	_cleanup_free_ char *same = mem_printf("127.0.0.1:%u", statuspage_port(s));
	assert_int_equal(statuspage_start(same, answer, NULL, &other, &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, "another port"));
	statuspage_stop(s);
	statuspage_stop(NULL);
}

static void six_is_loopback_too(void **state)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	_cleanup_fd_ int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	_cleanup_free_ char *request = NULL;
	struct statuspage *s;
	struct err err;
	int r = statuspage_start("[::1]:0", answer, "context", &s, &err);

	if (r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT || fd < 0) {
		print_message("no IPv6 here: skipped\n");
		skip();
	}
	assert_int_equal(r, 0);
	to.sin6_port = htons(statuspage_port(s));
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	request = mem_printf("GET /metrics HTTP/1.1\r\nHost: [::1]:%u\r\n\r\n", statuspage_port(s));
	expect(talk(fd, request, strlen(request)), "HTTP/1.1 200", "", "gasflame_up 1\n");
	statuspage_stop(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_answers),
		cmocka_unit_test(only_this_machine_is_its_host),
		cmocka_unit_test(long_requests_are_refused),
		cmocka_unit_test(idle_clients_lock_nobody_out),
		cmocka_unit_test(addresses_are_of_loopback),
		cmocka_unit_test(six_is_loopback_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
