/*
 * iotext.h - the tables of I/O, appended to the text and JSON reports where I/O was recorded.
 */
#pragma once

struct buf;
struct export_job;

/* Nothing is written where no I/O was recorded. */
void iotext_write(const struct export_job *job, struct buf *out);
/* A member "io" after others: begins with a comma. */
void iojson_write(const struct export_job *job, struct buf *out);
