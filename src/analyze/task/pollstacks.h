/*
 * pollstacks.h - polls of async tasks by their stacks, for `--what poll`.
 *
 * The collector of tasks counts and times each poll, and takes no stacks in it. What its thread did is in the samples of CPU
 * time and in the waits: their stacks from the task on, below the frame of its type, take the place of the poll's time. Of
 * each type the sum stays the exact one: what no sample covers stays with the type alone, and where samples say more than
 * there was, as they may by chance, they are scaled.
 */
#pragma once

struct profile;
struct selection;

/* Gives a selection of polls these stacks, which are appended to the profile as restack_apply() does. Another selection, and
 * one that keeps its moments, stays as it is. */
void pollstacks_apply(struct profile *p, struct selection *s);
