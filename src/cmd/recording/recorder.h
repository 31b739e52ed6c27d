/*
 * recorder.h - what the process that records needs for itself: rights, limits, its turn on the CPU.
 */
#pragma once

#include <stdbool.h>

/* Keeps only the rights that are needed from here on (sandbox/privilege.h). output: the file that is being or will
 * be written, NULL = none. hooks: targets are changed (-e heap). */
void recorder_drop_rights(const char *output, bool hooks);
/* The recording is over. */
void recorder_drop_more_rights(const char *output);
void recorder_raise_limits(void);
/* Before others, or as before; the latter only after the former. */
void recorder_hurry(bool on);
