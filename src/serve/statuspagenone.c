/* In the place of statuspage.c, in a build without libmicrohttpd. */
#include <errno.h>
#include <stddef.h>

#include "base/err.h"
#include "serve/statuspage.h"

int statuspage_start(const char *address, statuspage_fn *answer, void *context, struct statuspage **ret, struct err *err)
{
	return err_set(err, EOPNOTSUPP, "this build has no status page at %s: it was made without libmicrohttpd (-Dserve)", address);
}

uint16_t statuspage_port(const struct statuspage *s)
{
	return 0;
}

void statuspage_stop(struct statuspage *s)
{
}
