/*
 * detach.h - takes all hooks of gasflame out of a process: `detach`, and `heap detach`, which is its older name.
 */
#pragma once

struct command;

/* The run function of both. */
int detach_run(const struct command *c, int argc, char **argv);
