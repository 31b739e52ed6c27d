/*
 * stop.h - Ctrl-C and SIGTERM end what a command does, but not the command: it shows what it has.
 *
 * record, top's screen and others that do more at a signal have handlers of their own.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

/* Set by the first signal. */
extern volatile sig_atomic_t stop_wanted;

/* hangup: SIGHUP, too. also (NULL = nothing) is called in the signal handler: it may only set flags. */
void stop_catch(bool hangup, void (*also)(void));
/* Signals end the program again. */
void stop_release(void);
