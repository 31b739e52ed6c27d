/* nopost.c - post.h in a build without libcurl. */
#include <errno.h>

#include "base/err.h"
#include "net/post.h"

int post_open(const char *url, const char *option, struct post **ret, struct err *err)
{
	return err_set(err, ENOSYS, "this gasflame was built without libcurl, which %s needs", option);
}

int post_ask(struct post *p, const struct post_question *q, struct post_answer *ret, struct err *err)
{
	return -ENOSYS;
}

void post_stop(struct post *p)
{
}

void post_close(struct post *p)
{
}

void post_stop_on(struct post *p, const volatile sig_atomic_t *flag)
{
}

bool post_is_local(const char *url)
{
	return true; /* nothing can be sent to it anyway */
}
