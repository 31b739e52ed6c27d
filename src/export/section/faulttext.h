/*
 * faulttext.h - the part of the text and JSON reports about page faults and memory pressure.
 *
 * Both write nothing where no faults were recorded.
 */
#pragma once

struct buf;
struct export_job;

void faulttext_write(const struct export_job *job, struct buf *out);
/* ,"faults":{...},"pressure":{...}: members of an object, each with a comma before it. */
void faulttext_json(const struct export_job *job, struct buf *out);
