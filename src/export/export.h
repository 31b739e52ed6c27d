/*
 * export.h - what a selection looks like on the outside: one format a file, one table.
 *
 * A format is a pure function into a buffer: the same job gives the same bytes. To add one, write its file, declare its
 * function below, and add a line to the table in export.c (docs/howto/add-format.md). Commands ask for flags of a
 * format, never for its name.
 *
 *	struct export_job job = { .profile = p, .selection = &s, .quality = &q };
 *	struct buf out = { 0 };
 *	r = export_find("folded")->write(&job, &out, &err);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/tree/calltree.h"
#include "analyze/tree/top.h"

struct account;
struct buf;
struct classifier;
struct diff_job;
struct err;
struct opcode_costs;
struct profile;
struct quality;
struct selection;
struct verdict;
struct waits;

/* The weight of a stack. */
enum export_weigh {
	EXPORT_WEIGH_AUTO,    /* samples if each has the same value, else the value */
	EXPORT_WEIGH_SAMPLES,
	EXPORT_WEIGH_VALUE,   /* in the event's unit; folded stacks of waits in microseconds */
};

/* The content of the tables, as text or JSON. */
enum export_view {
	EXPORT_VIEW_ALL,       /* functions, crates, modules, threads; account of waits, I/O, faults */
	EXPORT_VIEW_FUNCTIONS,
	EXPORT_VIEW_MODULES,
	EXPORT_VIEW_CRATES,    /* and own crates by their outermost and nearest functions */
	EXPORT_VIEW_THREADS,
	EXPORT_VIEW_GROUPS,
	EXPORT_VIEW_SUBSYSTEMS,
	EXPORT_VIEW_TREE,
	EXPORT_VIEW_CALLERS,
	EXPORT_VIEW_CALLEES,
	EXPORT_VIEW_NEAREST_OWN,
	EXPORT_VIEW_PHASES,
	EXPORT_VIEW_MARKS,
};

struct export_options {
	/* Call trees. */
	enum calltree_group group;
	enum export_weigh weigh;
	bool reverse, no_inline;
	bool mark_inlined;     /* folded: "_[i]" after inlined functions */
	/* Formats with all events (EXPORT_EVENTS). */
	bool every_event;      /* --what was not given */
	/* Pictures. */
	const char *title;     /* NULL: made from the profile */
	unsigned width_px;     /* 0: 1200 */
	bool inverted;         /* the root on top */
	/* Tables. */
	size_t limit;          /* rows of a table, 0 = all */
	bool default_limit;    /* nobody asked for this one: formats for programs have another */
	enum top_order order;
	enum export_view view;
	const char *pattern;            /* of callers, callees and nearest own: a regex */
	const char *const *phases;      /* regexes, NULL-terminated */
	const char *const *own;         /* for crates_init() */
	bool grouped;                   /* the selection has groups (restack.h) */
	double percent_limit;           /* trees: leave out smaller shares of the whole */
	unsigned depth;                 /* trees: so many levels below the root, 0 = all */
	unsigned columns;      /* cut names to this width, 0 = whole */
	bool colour;
	/* Pages. */
	uint64_t max_bytes;    /* of its data, 0 = no limit */
	/* OTLP: attributes of the resource in place of those of the profile, "key=value"; NULL-terminated, NULL = none. */
	const char *const *resource;
};

struct export_job {
	const struct profile *profile;
	const struct selection *selection;
	const struct quality *quality;
	struct export_options options;
	/* Where waits were recorded; NULL = no account is shown. Both or none. */
	const struct account *account;
	const struct waits *waits;
	const struct verdict *verdict; /* NULL = none; may have no sentences */
	/* Subsystems of the profile's stacks; NULL = none are shown. */
	struct classifier *subsystems;
	const struct opcode_costs *opcodes; /* with their gas, NULL = nobody asked a node */
};

/* The kind of a format, and the options that it takes: a set of these. */
enum export_flag {
	EXPORT_VIEWS = 1,     /* tables: --table, --tree, --callers and all other views */
	EXPORT_ROWS = 2,      /* --limit, --sort */
	EXPORT_STACKS = 4,    /* a call tree: --reverse, --weigh, --by-thread, --by-process, --by-task, --merged */
	EXPORT_PICTURE = 8,   /* --title, --width, --inverted */
	EXPORT_INLINED = 16,  /* --mark-inlined */
	EXPORT_PAGE = 32,     /* the whole recording for a browser: --max-size; the terminal gets a summary beside it */
	EXPORT_BESIDE = 64,   /* is of no use in a terminal: goes to a file beside the capture unless -o says otherwise */
	EXPORT_ACCOUNT = 128, /* shows account, waits and verdict of the job */
	EXPORT_LINES = 256,   /* lines for people: other lines may precede them */
	EXPORT_EVENTS = 512,  /* shows all events at once where --what names none (rows.h) */
	EXPORT_TIMES = 1024,  /* shows each sample at its time: those of a long recording are not joined when it is read */
	EXPORT_BINARY = 2048, /* is never written to a terminal */
};

struct export_format {
	const char *name, *describe;
	const char *extension; /* ".svg" */
	unsigned flags;
	int (*write)(const struct export_job *job, struct buf *out, struct err *err);
	/* A comparison of two recordings (export/diff/difftext.h); NULL: the format has none. */
	int (*diff)(const struct diff_job *job, struct buf *out, struct err *err);
};

extern const struct export_format export_formats[]; /* ends in one without a name */
const struct export_format *export_find(const char *name); /* NULL: none */
/* The format whose extension path has, the longest that fits; NULL: none. */
const struct export_format *export_find_path(const char *path);
/* For OPTION_CHOICE: the names of all formats, or of those for a comparison; NULL-terminated, static. */
const char *const *export_names(bool diff);
/* For people: "svg, folded and --tree", the formats that have one of the flags (diff: and show a comparison), and more
 * where it is not NULL. Caller frees. */
char *export_list(unsigned flags, bool diff, const char *more);

/* For the formats. */
bool export_weighs_samples(const struct export_job *job);
/* "1.23 s", "4.56 MB", "1,234": a value in the unit of the job's event. */
char *export_value(char out[32], const struct export_job *job, uint64_t value);
/* Values of the unit "count/100" are hundredths (docs/decisions/0006): 100; of any other 1. */
uint64_t export_unit_parts(const char *unit);
/* value / parts with all of its decimals and no commas. */
void export_decimal(struct buf *b, uint64_t value, uint64_t parts);
/* Name and description of the event; "" if there is none. */
const char *export_event(const struct export_job *job);
const char *export_event_describe(const struct export_job *job);
/* "60.0 s from 2026-11-15 10:02:11", in local time, with the selected range if there is one. */
void export_when(const struct export_job *job, struct buf *b);

/* Below each leaf what its time was? */
bool export_shows_causes(const struct export_job *job);

int callgrind_write(const struct export_job *job, struct buf *out, struct err *err);
int csv_write(const struct export_job *job, struct buf *out, struct err *err);
int csvsamples_write(const struct export_job *job, struct buf *out, struct err *err);
int dot_write(const struct export_job *job, struct buf *out, struct err *err);
int firefox_write(const struct export_job *job, struct buf *out, struct err *err);
int folded_write(const struct export_job *job, struct buf *out, struct err *err);
int heaptable_write(const struct export_job *job, struct buf *out, struct err *err);
int heaptrack_write(const struct export_job *job, struct buf *out, struct err *err);
int heapv2_write(const struct export_job *job, struct buf *out, struct err *err);
int html_write(const struct export_job *job, struct buf *out, struct err *err);
int json_write(const struct export_job *job, struct buf *out, struct err *err);
int jsonl_write(const struct export_job *job, struct buf *out, struct err *err);
int massif_write(const struct export_job *job, struct buf *out, struct err *err);
/* Also the body of a request to a collector: POST /v1development/profiles, application/x-protobuf. */
int otlp_write(const struct export_job *job, struct buf *out, struct err *err);
int perfetto_write(const struct export_job *job, struct buf *out, struct err *err);
int perfscript_write(const struct export_job *job, struct buf *out, struct err *err);
int pprof_write(const struct export_job *job, struct buf *out, struct err *err);
int speedscope_write(const struct export_job *job, struct buf *out, struct err *err);
int summary_write(const struct export_job *job, struct buf *out, struct err *err);
int svg_write(const struct export_job *job, struct buf *out, struct err *err);
int text_write(const struct export_job *job, struct buf *out, struct err *err);

/* A dozen lines for the terminal beside a page: target, quality, account, functions, verdict. */
void terminalsummary_put(const struct export_job *job, struct buf *out);
