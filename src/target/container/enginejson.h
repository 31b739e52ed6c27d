/*
 * enginejson.h - what engines write about their containers, as JSON. Pure parsers, for fuzzers too.
 *
 * Ids and names that no engine would give are refused, control characters in the rest are replaced: an answer may be
 * anybody's. All: 0, or -EINVAL when it is not what it should be, and then nothing is in ret.
 */
#pragma once

#include <stddef.h>

struct container;
struct containers;

/* One container: GET /containers/NAME/json of Docker and podman, and Docker's config.v2.json. */
int enginejson_inspect(const char *text, size_t n, struct container *ret);
/* GET /containers/json. */
int enginejson_list(const char *text, size_t n, struct containers *ret);
/* containers.json of podman and CRI-O. Whether they run is not in it. */
int enginejson_store(const char *text, size_t n, struct containers *ret);
/* config.json of a bundle: the annotations that Kubernetes and nerdctl put there. ret->id is kept. */
int enginejson_bundle(const char *text, size_t n, struct container *ret);
/* daemon.json's data-root; NULL = not in it. Caller frees. */
char *enginejson_data_root(const char *text, size_t n);
