/*
 * tasktext.h - the parts of the section on async tasks. Only the files of this folder use it.
 */
#pragma once

struct blockers;
struct buf;
struct export_job;
struct json;
struct taskchains;
struct tasks;

/* A name from the target, made clean, and on a terminal cut to what is left of a line after so many columns. */
void tasktext_name(const struct export_job *job, const char *name, unsigned used, struct buf *out);
/* Long polls; nothing where there are none. */
void blockertext_put(const struct export_job *job, const struct tasks *t, const struct blockers *b, struct buf *out);
/* Chains of awaits; nothing where there are none. */
void chaintext_put(const struct export_job *job, const struct tasks *t, const struct taskchains *c, struct buf *out);
/* The member "tasks"; that of the page. */
void taskjson_put(const struct export_job *job, struct json *j);
void taskpage_put(const struct export_job *job, struct json *j);
