/*
 * enginejson.h - parses the JSON that engines write about their containers. Pure parsers, for fuzzers too.
 *
 * Invalid ids and names are refused, control characters in the rest are replaced: an answer is untrusted. All
 * return 0, or -EINVAL for a malformed answer, and then ret is empty.
 */
#pragma once

#include <stddef.h>

struct container;
struct containers;

/* A single container: GET /containers/NAME/json of Docker and podman, and Docker's config.v2.json. */
int enginejson_inspect(const char *text, size_t n, struct container *ret);
/* GET /containers/json. */
int enginejson_list(const char *text, size_t n, struct containers *ret);
/* containers.json of podman and CRI-O. Whether they run is not in it. */
int enginejson_store(const char *text, size_t n, struct containers *ret);
/* config.json of a bundle: the annotations that Kubernetes and nerdctl put there. ret->id is kept. */
int enginejson_bundle(const char *text, size_t n, struct container *ret);
/* The same of a container that is known otherwise: only ret->labels is changed. */
int enginejson_annotations(const char *text, size_t n, struct container *ret);
/* daemon.json's data-root; NULL = not in it. Caller frees. */
char *enginejson_data_root(const char *text, size_t n);
