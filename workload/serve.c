/*
 * serve.c - a server that waits in epoll, and a client that asks it over the loopback interface.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "workload.h"

static int ends[2]; /* the server's, the client's */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void connect_ends(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval patience = { 0, 200000 }; /* so that neither waits for one that has ended */
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (void *)&at, size) || listen(listener, 1) ||
	    getsockname(listener, (void *)&at, &size) || connect(ends[1], (void *)&at, size))
		fail("connect");
	ends[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (ends[0] < 0 || setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		fail("accept");
	close(listener);
}

static __attribute__((noinline)) uint64_t answer_request(uint64_t question)
{
	uint64_t state[25] = { question };

	mix_state(state, 200);
	return state[0];
}

/* One turn of the loop of events. */
void serve_unit(struct worker *w)
{
	struct epoll_event event = { .events = EPOLLIN };
	uint64_t question;

	pthread_once(&once, connect_ends);
	if (!w->fd) {
		w->fd = epoll_create1(EPOLL_CLOEXEC);
		if (w->fd < 0 || epoll_ctl(w->fd, EPOLL_CTL_ADD, ends[0], &event))
			fail("epoll");
	}
	if (epoll_wait(w->fd, &event, 1, 100) != 1)
		return;
	if (recv(ends[0], &question, sizeof(question), 0) == sizeof(question)) {
		question = answer_request(question);
		if (send(ends[0], &question, sizeof(question), MSG_NOSIGNAL) < 0)
			fail("send");
	}
}

void ask_unit(struct worker *w)
{
	uint64_t question = worker_random(w);

	pthread_once(&once, connect_ends);
	if (send(ends[1], &question, sizeof(question), MSG_NOSIGNAL) == sizeof(question) &&
	    recv(ends[1], &question, sizeof(question), 0) == sizeof(question))
		w->result ^= question;
}
