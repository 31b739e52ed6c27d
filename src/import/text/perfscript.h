/*
 * perfscript.h - the text of `perf script` as a profile: each sample with its thread, its time, its stack and its period.
 *
 * Each event of the text is an event of the profile. The first of cpu-clock and task-clock, whose periods are nanoseconds, is "cpu";
 * off-CPU time that perf measured itself (offcpu-time) is "wait". Switches between threads (sched:sched_switch, sched_waking,
 * sched_wakeup, sched_wakeup_new) become "wait" and "queue" with the stack that went to sleep (schedwaits.h). Times are since the first
 * sample. The `# ` lines of --header give the machine, the command line and when it was recorded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct import_input;
struct profile;

bool perfscript_probe(const char *data, size_t n, bool whole);
int perfscript_import(const struct import_input *in, struct profile **ret, struct err *err);
