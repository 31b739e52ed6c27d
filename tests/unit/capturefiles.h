/*
 * capturefiles.h - doing to capture files what becomes of them: tampering, recorders that are killed.
 */
#pragma once

#include "profiles.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/file/fd.h"
#include "putfile.h"

/* Runs SQL on a closed capture, as somebody who means no good could. */
static inline void tamper(const char *path, const char *sql)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_exec(db, "pragma synchronous = off", NULL, NULL, NULL);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

/* Every id points at something, whatever was lost. */
static inline void assert_sound(const struct profile *p)
{
	for (size_t i = 0; i < p->threads.n; i++)
		assert_true(p->threads.v[i].process < p->processes.n);
	for (size_t i = 0; i < p->frames.n; i++) {
		const struct profile_frame *f = &p->frames.v[i];

		assert_true(f->module == PROFILE_NONE || f->module < p->modules.n);
		assert_true((size_t)f->first_line + f->line_count <= p->lines.n);
	}
	for (size_t i = 0; i < p->lines.n; i++)
		assert_true(p->lines.v[i].function < p->functions.n);
	for (size_t i = 1; i < p->stacks.n; i++)
		assert_true(p->stacks.v[i].parent < i && p->stacks.v[i].frame < p->frames.n);
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];

		assert_true(s->event < p->events.n && s->thread < p->threads.n && s->stack < p->stacks.n);
	}
	for (size_t i = 0; i < p->wakes.n; i++) {
		const struct profile_wake *w = &p->wakes.v[i];

		assert_true(w->thread < p->threads.n && w->stack < p->stacks.n);
		assert_true(w->waker_stack < p->stacks.n);
		assert_true(w->waker == PROFILE_NONE || w->waker < p->threads.n);
		assert_true(w->waker_name < p->strings.n);
	}
	for (size_t i = 0; i < p->taskwakes.n; i++) {
		const struct profile_taskwake *w = &p->taskwakes.v[i];

		assert_true(w->type < p->strings.n && w->waker_type < p->strings.n);
		assert_true(w->thread < p->threads.n);
		assert_true(w->waker == PROFILE_NONE || w->waker < p->threads.n);
		assert_true(w->waker_stack < p->stacks.n);
	}
	for (size_t i = 0; i < p->points.n; i++)
		assert_true(p->points.v[i].series < p->series.n);
}

/* Records until it is killed: every flush adds samples of new stacks, new frames and a new name. */
static inline void record_for_ever(const char *path)
{
	struct profile *p = make_profile(&small);
	struct capture *c;

	p->finished = false;
	if (capture_create(path, &c, NULL) < 0)
		_exit(1);
	for (uint32_t i = 0;; i++) {
		uint32_t frame = profile_frame(p, 0, FRAME_USER, 0x900000 + i), stack;
		struct profile_line line = { .function = add_function(p, 1000 + i, 0) };

		profile_set_lines(p, frame, &line, 1);
		stack = profile_stack(p, p->samples.n ? p->samples.v[0].stack : 0, frame);
		for (int k = 0; k < 100; k++)
			profile_add_sample(p, &(struct profile_sample){ .time_ns = i, .stack = stack, .value = 1 });
		profile_count_set(p, "flushes", i + 1);
		if (capture_flush(c, p, NULL) < 0)
			_exit(1);
		if (i % 3 == 2)
			capture_drop_samples(c, p);
	}
}

/* Kills it so long after its log has so many bytes. */
static inline void kill_recorder(const char *path, off_t bytes, unsigned after_us)
{
	_cleanup_free_ char *wal = mem_printf("%s-wal", path);
	struct stat st = { 0 };
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child)
		record_for_ever(path);
	for (int i = 0; i < 10000 && (stat(wal, &st) < 0 || st.st_size < bytes); i++)
		usleep(1000);
	usleep(after_us);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}
