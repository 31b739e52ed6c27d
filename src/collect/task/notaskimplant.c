#include "collect/task/taskimplant.h"

#include <errno.h>
#include <stddef.h>

#include "base/err.h"

/*
 * Instead of taskimplant.c on machines for which there are no hooks (all but x86-64). Nothing is ever put into a process: to open one
 * fails with a sentence, and what takes an open one is not reached.
 */
static const char why[] = "-e task puts hooks into its target, and there are none for this processor yet, only for x86-64; -e cpu,wait "
			  "record its threads here";

int taskimplant_open(pid_t pid, struct taskimplant **ret, struct err *err)
{
	return err_set(err, ENOTSUP, why);
}

int taskimplant_find(pid_t pid, struct taskimplant **ret, struct err *err)
{
	return -ENOENT;
}

int taskimplant_hook(struct taskimplant *t, const struct taskimplant_vtable *v, size_t n, struct err *err)
{
	return -ENOTSUP;
}

int taskimplant_activate(struct taskimplant *t, uint64_t interval_ns, struct err *err)
{
	return -ENOTSUP;
}

int taskimplant_set_interval(struct taskimplant *t, uint64_t interval_ns, struct err *err)
{
	return -ENOTSUP;
}

void taskimplant_deactivate(struct taskimplant *t)
{
}

size_t taskimplant_read(struct taskimplant *t, struct taskimplant_event *ret, size_t room)
{
	return 0;
}

uint64_t taskimplant_until(const struct taskimplant *t)
{
	return 0;
}

uint64_t taskimplant_lost(const struct taskimplant *t)
{
	return 0;
}

size_t taskimplant_polls(struct taskimplant *t, struct taskimplant_event *ret, size_t room)
{
	return 0;
}

void taskimplant_look(struct taskimplant *t, struct taskimplant_task *v, size_t n)
{
}

int taskimplant_hooked(const struct taskimplant *t)
{
	return 0;
}

int taskimplant_unhook(struct taskimplant *t, struct err *err)
{
	return 0;
}

void taskimplant_close(struct taskimplant *t)
{
}

bool taskimplant_gone(const struct taskimplant *t)
{
	return true;
}

bool taskimplant_replaced(const struct taskimplant *t)
{
	return false;
}

uint64_t taskimplant_stopped_ns(const struct taskimplant *t)
{
	return 0;
}

const char *taskimplant_path(const struct taskimplant *t)
{
	return NULL;
}

const uint64_t taskimplant_wake_offsets[] = { 0 };
