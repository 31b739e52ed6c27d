/*
 * shortname.h - the name of a function in as many columns as there are.
 *
 * A name is whole if it fits. If it does not, it loses what tells least, one thing after the other, until it does: the
 * parameters of functions, the paths of types within brackets (`Vec<String>`), the trait of `<A as B>::f`, then the arguments
 * of types, the innermost first. After each of these the left of the path goes, as far as the last two segments, so that the
 * type and the function stay (`..::Vec<String>::push`). Only then all but the last segment goes, and at last its end
 * (`state_r..`).
 *
 * ui/names.js has the same rule for the page; tests/golden/shortnames.tsv has cases for both.
 */
#pragma once

#include <stddef.h>

struct buf;

/* Appends a clean name (cleantext.h) in at most so many columns; mark stands for what is left out. Nothing where only the
 * mark would fit. */
void shortname_put(struct buf *b, const char *name, size_t columns, const char *mark);
