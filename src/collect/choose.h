/*
 * choose.h - which collectors a session has: the words of -e and of --events, and what is left of them without BPF.
 */
#pragma once

struct err;
struct session;

/* Sets session.chosen by the session's options. */
int choose_collectors(struct session *s, struct err *err);
/* BPF cannot be had; why: "" if nobody wanted it. Leaves out what was not asked for by name; an error where something
 * that was needs BPF. */
int choose_without_bpf(struct session *s, const char *why, struct err *err);
