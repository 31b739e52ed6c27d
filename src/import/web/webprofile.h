/*
 * webprofile.h - a profile that an importer of this folder fills: events by name, sums that cannot wrap, what was left out.
 *
 *	struct webprofile w;
 *	webprofile_init(&w, in);
 *	event = webprofile_event(&w, "cpu", "ns", "", 0);
 *	r = webprofile_add(&w, &sample, err);
 *	r = webprofile_end(&w, r, ret, err);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"
#include "import/frames.h"

struct err;
struct import_input;
struct profile;
struct profile_sample;

struct webprofile {
	struct profile *p;
	struct frames frames;
	struct buf text;        /* of the string at hand */
	uint64_t left_out;      /* things that a profile has no place for, or that make no sense */
	/* The rest is private. */
	VEC(uint64_t) totals;   /* by event */
	uint64_t end_ns;        /* of the latest sample */
};

void webprofile_init(struct webprofile *w, const struct import_input *in);
/* The event of that name and unit, made if there is none. */
uint32_t webprofile_event(struct webprofile *w, const char *name, const char *unit, const char *describe, uint64_t period);
/* Samples without a value are left out, and not counted: they say nothing. lasts_ns: how long after its time it ends.
 * -ERANGE: the values of its event add up to more than 64 bits hold. */
int webprofile_add(struct webprofile *w, const struct profile_sample *s, uint64_t lasts_ns, struct err *err);
/* r: how it went so far. 0: *ret is the profile, with its duration and what was left out; else it is freed. Returns r, or
 * -ENODATA where there is no sample and no mark. */
int webprofile_end(struct webprofile *w, int r, struct profile **ret, struct err *err);

/* How many decimals numbers of a unit of ours have: of "count/100" two (docs/decisions/0006), of most none. */
unsigned webprofile_decimals(const char *unit);
/* A frame by its name, of any kind: "kernel", "inlined", "note", "truncated" or "address", as exports of ours say; "" = user. */
uint32_t webprofile_frame(struct webprofile *w, uint32_t module, const char *kind, const struct frames_call *call);

/* All of the text, 1 GiB at most. */
int webprofile_text(const struct import_input *in, char **ret, size_t *ret_n, struct err *err);
/* Does the text begin with {, after blanks, and hold this? */
bool webprofile_holds(const char *data, size_t n, const char *what);
/* The same without regard to blanks between the tokens: what has none. */
bool webprofile_holds_member(const char *data, size_t n, const char *key, const char *value);
