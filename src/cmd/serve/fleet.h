/*
 * fleet.h - the store behind the page of nodes: asks it, and writes its answers as JSON (docs/page-format.md).
 *
 * A question takes at most FLEET_TIMEOUT_MS, or what the address says. It is not asked again: the page does that.
 */
#pragma once

struct buf;
struct err;
struct fleet;
struct site_fleet;

enum {
	FLEET_TIMEOUT_MS = 10000,
	FLEET_CELLS = 500000, /* of one map: the nodes above that are left out, which the page says */
};

/* address: with user and password. Nothing is sent yet. */
int fleet_new(const char *address, struct fleet **ret, struct err *err);
void fleet_free(struct fleet *f); /* NULL is fine */
/* The fragment of the page's address for the times that the store's address names; nothing where it names none. */
void fleet_put_times(const struct fleet *f, struct buf *out);
/* For the site, as long as f lives. */
struct site_fleet fleet_for_site(struct fleet *f);
