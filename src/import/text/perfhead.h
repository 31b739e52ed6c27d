/*
 * perfhead.h - the lines that begin with "#" before a perf script: perf's own header (--header), and that of gasflame's export.
 *
 *	# captured on    : Wed Nov 18 00:57:19 2026
 *	# hostname : vm
 *	# os release : 6.1.0
 *	# cmdline : /usr/bin/perf record -g ./node
 *	# gasflame : perf-script 1
 *	# started : 1763200931.000000000
 *	# duration : 2.100000000
 *	# event : name = cpu, unit = ns, period = 1000000, describe = CPU time, sampled at 1000 Hz
 *
 * From "gasflame" on they are ours: perf knows neither units nor descriptions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct profile;

struct perfhead {
	struct profile *p;
	bool ours;    /* gasflame wrote it: its addresses are those of the files' symbols */
	bool command; /* the profile's target is from the command line */
};

/* A line with its "#". */
void perfhead_take(struct perfhead *h, const char *line);
