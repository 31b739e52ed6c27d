/*
 * deliver.h - the process of an agent that delivers: windows from the spool to the sinks, and the status page.
 *
 * It has no rights but to read and write in the spool and the folders of file sinks, and to connect; what it reads was made of names that targets chose. One
 * window is read at a time, for all sinks that want it next. A sink that fails is tried again after a growing pause; the others go on, each after the one
 * before it, so that a server that does not answer delays them by its timeout at most.
 */
#pragma once

struct agentconf;
struct board;

/* Until SIGTERM, or the agent is gone; then one more round. Returns the exit code. */
int deliver_run(const struct agentconf *conf, struct board *board);
