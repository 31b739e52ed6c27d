/*
 * sideband.h - what perf events say beside samples: mappings, names, forks, exits.
 *
 * The same records come system-wide (beside BPF) and in the fallback's own ring;
 * both hand them to sideband_record().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct perf_event_header;
struct processes;
struct sideband;

/* Asks for the records in an attr. */
struct perf_event_attr;
void sideband_ask(struct perf_event_attr *attr);
/* Asks for what all events of a ring must have: the thread and the time in each record. */
void sideband_ask_times(struct perf_event_attr *attr);

/* True if the record was about a process that is recorded. */
bool sideband_record(struct processes *ps, const struct perf_event_header *h, uint64_t *lost);

/* Rings of all CPUs that carry nothing else. Needs CAP_PERFMON or perf_event_paranoid < 1. */
int sideband_open(struct sideband **ret, struct err *err);
void sideband_close(struct sideband *sb);
int sideband_epoll(const struct sideband *sb); /* descriptor that is readable when there are records */
/* How many records were of interest. */
uint32_t sideband_drain(struct sideband *sb, struct processes *ps);
