/*
 * subsystemio.h - reads the table of subsystems: the files that --subsystems names, the user's own, the
 * built-in one.
 */
#pragma once

#include "cmd/cmd.h"

struct err;
struct subsystems;

#define SUBSYSTEMS_OPTION(list)                                                                              \
	{                                                                                                    \
		0, "subsystems", OPTION_LIST, list, "FILE",                                                  \
			"more patterns for the subsystems of a node, before your own "                       \
		        "(~/.config/gasflame/subsystems.conf) and the "                                      \
			"built-in ones (configs/subsystems.conf)"                                            \
	}

/* The caller releases t, also after an error. */
int subsystemio_read(const struct option_list *paths, struct subsystems *t, struct err *err);
