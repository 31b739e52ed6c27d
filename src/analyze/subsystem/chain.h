/*
 * chain.h - stacks of subsystems in place of stacks of functions, for `--group subsystem`.
 *
 * A stack becomes the subsystems that its functions decide for, from the outermost to the innermost, each
 * once in a row: "engine;EVM;state reads". A stack without any is the subsystem that it belongs to. The self
 * of such a name is the time of the stacks that belong to it, as shares.h has it.
 */
#pragma once

struct classifier;
struct profile;
struct selection;

/* Gives the entries of s their new stacks, which are appended to the profile as restack_apply() does. */
void chain_apply(struct profile *p, struct selection *s, struct classifier *c);
