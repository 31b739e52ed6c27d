/*
 * privilege.h - least privilege for a recorder: the capabilities that it keeps once everything is set up.
 *
 * One table says for each phase which capabilities are needed, when, and what for. A recorder enters the
 * phases in their order, each for good:
 *
 *	privilege_enter(PRIVILEGE_RECORDING, needs);	// before the first thread starts
 *	privilege_enter(PRIVILEGE_FINISHING, needs);
 *
 * Entering never fails: where a capability cannot be dropped the recording goes on, and -v reports it.
 */
#pragma once

#include <stdint.h>

enum privilege_phase {
	PRIVILEGE_RECORDING, /* samples come in, processes come and go */
	PRIVILEGE_FINISHING, /* addresses get names, the capture is closed */
	PRIVILEGE_PHASES,
};

/* Special needs of a recording; bits. */
enum privilege_need {
	PRIVILEGE_HEAP = 1,         /* targets are stopped and get hooks */
	PRIVILEGE_OTHERS_FOLDER = 2,/* the capture lies where root may write only by CAP_DAC_OVERRIDE */
	PRIVILEGE_GIVE = 4,         /* new files are given to the user behind sudo */
};

/* The capabilities of the table for a phase on this machine; pure but for the kernel's version and settings. */
uint64_t privilege_wanted(enum privilege_phase phase, unsigned needs);
void privilege_enter(enum privilege_phase phase, unsigned needs);
/* For a thread that starts before the recorder enters its first phase, as its first action: it keeps what
 * a recording without special needs requires. Capabilities belong to a thread, and no other thread can
 * take them away. */
void privilege_thread(void);
