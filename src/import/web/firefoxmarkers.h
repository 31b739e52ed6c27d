/*
 * firefoxmarkers.h - markers of a Firefox profile: those that are blocks become marks, others are counted as left out.
 */
#pragma once

struct fxtables;
struct jsontext_place;
struct webprofile;

/* markers: the table of a thread, which may be missing. strings: whose strings its names are. */
void fxmarkers_read(struct webprofile *w, struct jsontext_place *markers, const struct fxtables *strings);
