/*
 * store.h - the parts of `store`, a file each, and what they share.
 */
#pragma once

struct clickhouse;
struct command;
struct err;

extern const struct command command_store_init, command_store_push, command_store_ls, command_store_map, command_store_rollup, command_store_drop;

/* The client of an address. The caller closes it. */
int store_open(const char *url, struct clickhouse **ret, struct err *err);
