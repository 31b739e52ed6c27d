/*
 * heaptext.h - the part of the text and JSON reports about the heap.
 *
 * Both write nothing where no heap was recorded.
 */
#pragma once

struct buf;
struct export_job;

void heaptext_write(const struct export_job *job, struct buf *out);
/* A member "heap" after others: begins with a comma. */
void heaptext_json(const struct export_job *job, struct buf *out);
