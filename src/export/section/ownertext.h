/* ownertext.h - which containers, pods and units a recording is of, in a line each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct json;
struct profile;

/* "container reth-a (docker, image tiny:1), pid 1 inside, 4242 here". Clean. False: the profile has no owner i. */
bool ownertext_line(const struct profile *p, size_t i, struct buf *out);
/* All of them as lines; nothing where there are none. */
void ownertext_put(const struct profile *p, struct buf *out);
/* ,"owners":[...] */
void ownertext_json(const struct profile *p, struct json *j);
