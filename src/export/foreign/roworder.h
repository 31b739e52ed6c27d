/* roworder.h - rows by time. Those of one moment stay as they were recorded: what is read again is written in the same order. */
#pragma once

#include <stdint.h>

struct samplerows;

/* Indexes into the list of rows. Caller frees. */
uint32_t *roworder_by_time(const struct samplerows *rows);
