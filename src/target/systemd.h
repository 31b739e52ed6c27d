/*
 * systemd.h - services of systemd as processes, by the control groups that it keeps them in. Without asking it: the groups
 * are there also where its socket is not, as in a container.
 */
#pragma once

#include <stdbool.h>

struct err;
struct proc_ids;

bool systemd_is_unit(const char *s);
/* "reth.service", "reth", or the path of the group, "/system.slice/reth.service". Appends all of its processes, ourselves left
 * out. -ENOENT: there is none with processes; -ENOTUNIQ: several of that name, with how to name each. */
int systemd_find_unit(const char *name, struct proc_ids *ret, struct err *err);
