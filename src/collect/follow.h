/*
 * follow.h - who joins a recording while it goes on: whoever enters a target's cgroup, and, with
 * session_options.follow, what the names stand for again when the targets have ended.
 *
 * Life: new -> exit (from the ring), look (once a second, and when a process has ended), step (in each
 * round) -> finish -> free. Restarts become marks of the kind "restart", which last as long as nothing ran,
 * and the counters "restarts" and "restarts.not running_ns". NULL is fine everywhere: nobody joins then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct follow;
struct session;
struct shared_exit;

/* NULL where there is nothing to follow. */
struct follow *follow_new(struct session *s);
void follow_free(struct follow *f);

void follow_exit(struct follow *f, const struct shared_exit *x);
/* After processes_check_alive(), which said alive. False: all have ended, and nobody is waited for. */
bool follow_look(struct follow *f, uint64_t now_mono_ns, uint32_t alive);
/* While the targets are away: are they back? */
void follow_step(struct follow *f, uint64_t now_mono_ns);
bool follow_is_away(const struct follow *f);
void follow_finish(struct follow *f, uint64_t now_mono_ns);
