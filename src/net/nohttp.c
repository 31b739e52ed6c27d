/* nohttp.c - replaces http.c in a build without libcurl. */
#include <errno.h>

#include "base/err.h"
#include "net/http.h"

int http_get(const char *url, const struct http_limits *limits, http_sink *sink, void *context, struct err *err)
{
	return err_set(err, EOPNOTSUPP, "this gasflame was built without HTTP (-Dhttp=disabled)");
}

int http_get_text(const char *url, const struct http_limits *limits, char **ret, size_t *ret_n, struct err *err)
{
	return http_get(url, limits, NULL, NULL, err);
}

int http_open(const char *url, const char *option, struct http **ret, struct err *err)
{
	return err_set(err, EOPNOTSUPP, "this gasflame was built without HTTP (-Dhttp=disabled), which %s needs", option);
}

int http_ask(struct http *h, const struct http_question *q, struct http_answer *ret, struct err *err)
{
	return -EOPNOTSUPP;
}

int http_send(struct http *h, const struct http_request *q, struct http_reply *ret, struct err *err)
{
	return -EOPNOTSUPP;
}

bool http_header(const struct http_reply *reply, const char *name, char *out, size_t size)
{
	return false;
}

const char *http_url(const struct http *h)
{
	return "";
}

void http_stop(struct http *h)
{
}

void http_stop_on(struct http *h, const volatile sig_atomic_t *flag)
{
}

void http_close(struct http *h)
{
}

bool http_is_local(const char *url)
{
	return true; /* nothing can be sent to it anyway */
}
