/*
 * labels.h - the labels of a target's windows: those of the configuration, those that its containers give by themselves, and those
 * that whoever started the containers put there.
 *
 *	namespace=eth pod=reth-0 container=reth image=reth:2		a container in a pod
 *	container=reth-a image=reth:2					another one
 *	region=eu							its label or annotation gasflame.label/region
 *
 * What stands in the configuration goes before the others, and what an engine says before what a container says of itself. Of a target in
 * several containers there are those that all of them have.
 */
#pragma once

#include "base/vec.h"

struct containers;

struct labels {
	VEC(const char *) list; /* "key=value", owned; ends in a NULL that is not counted */
};

/* configured: NULL-terminated, or NULL. containers: NULL = in none. labels_done() ends it. */
void labels_make(struct labels *ret, const char *const *configured, const struct containers *containers);
void labels_done(struct labels *l);
