#include "cmd/stop.h"

#include <stddef.h>

volatile sig_atomic_t stop_wanted;
static void (*call_also)(void);

static void on_stop(int signal)
{
	stop_wanted = 1;
	if (call_also)
		call_also();
}

static void handle(void (*handler)(int), bool hangup)
{
	/* No SA_RESTART: what waits shall end. */
	struct sigaction sa = { .sa_handler = handler };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (hangup)
		sigaction(SIGHUP, &sa, NULL);
}

void stop_catch(bool hangup, void (*also)(void))
{
	call_also = also;
	handle(on_stop, hangup);
}

void stop_release(void)
{
	handle(SIG_DFL, false);
}
