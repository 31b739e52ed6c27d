/* nohttp.c - stands in for debuginfod.c in a build without libcurl. */
#include <errno.h>
#include <stdio.h>

#include "symbol/debuginfod.h"

int debuginfod_fetch(struct cache *c, const char *build_id, const char *name, char *why, size_t why_size)
{
	snprintf(why, why_size, "this gasflame was built without debuginfod (-Dhttp=disabled)");
	return -EOPNOTSUPP;
}
