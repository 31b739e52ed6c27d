/*
 * section.h - the sections of a report: each covers one subject, as text, as JSON and on the page.
 *
 * A section is one file that defines a struct section, and one line in SECTION_LIST. It reads the whole recording, not
 * a part of its stacks, so reports below a root (`--root`) have none. A section writes nothing where its subject was
 * not recorded.
 */
#pragma once

#include <stdbool.h>

struct buf;
struct export_job;
struct json;

struct section {
	const char *name;
	/* Lines for people, with an empty line before them. NULL: the report has none. */
	void (*text)(const struct export_job *job, struct buf *out);
	/* Members of the report's object, each on a line of its own. NULL: none. */
	void (*json)(const struct export_job *job, struct json *j);
	/* Members of the page's head (docs/page-format.md), whatever the job selects: the page holds the whole recording, and
	 * has the member also where it is empty. NULL: the page does not show the section. */
	void (*page)(const struct export_job *job, struct json *j);
	bool text_before_functions; /* else after the table of functions */
	bool json_after_tables; /* else before the tables of functions, modules and threads */
};

/* In the order in which the report shows them: X(NAME) stands for section_NAME. */
#define SECTION_LIST(X) \
	X(limit) \
	X(verdict) \
	X(waits) \
	X(account) \
	X(pools) \
	X(subsystems) \
	X(blocks) \
	X(tasks) \
	X(goroutines) \
	X(cgroups) \
	X(io) \
	X(faults) \
	X(heap) \
	X(memory) \
	X(allocator) \
	X(cost) \

#define SECTION_DECLARE(name) extern const struct section section_##name;
SECTION_LIST(SECTION_DECLARE)
#undef SECTION_DECLARE

extern const struct section *const sections[]; /* ends in NULL */

/* The number of waits on a page, with their wakers. */
enum { SECTION_PAGE_WAITS = 20 };

/* The JSON of sections that have a file of their own for it. */
void waitjson_put(const struct export_job *job, struct json *j);
void waitpage_put(const struct export_job *job, struct json *j);
void memjson_put(const struct export_job *job, struct json *j);
void mempage_put(const struct export_job *job, struct json *j);
