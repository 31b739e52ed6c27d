/* nohttp.c - stands in for http.c in a build without libcurl. */
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
