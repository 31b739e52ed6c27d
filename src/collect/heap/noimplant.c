#include "collect/heap/implant.h"

#include <errno.h>
#include <stddef.h>

#include "base/err.h"

/*
 * Instead of implant.c on machines for which there are no hooks (all but x86-64). Nothing is ever put into a process: to open one
 * fails with a sentence, and what takes an open one is not reached.
 */
static const char why[] = "-e heap puts hooks into its target, and there are none for this processor yet, only for x86-64; -e alloc and -e fault "
			  "record allocations and new memory here";

int implant_open(pid_t pid, struct worker *w, struct implant **ret, struct err *err)
{
	return err_set(err, ENOTSUP, why);
}

int implant_expect(pid_t pid, struct err *err)
{
	return err_set(err, ENOTSUP, why);
}

int implant_begin(pid_t pid, struct worker *w, struct implant **ret, struct err *err)
{
	return err_set(err, ENOTSUP, why);
}

int implant_begin_again(pid_t pid, struct worker *w, struct implant **ret, struct err *err)
{
	return err_set(err, ENOTSUP, why);
}

void implant_let_go(struct implant *i)
{
}

bool implant_held(const struct implant *i)
{
	return false;
}

int implant_hook(struct implant *i, struct worker *w, struct err *err)
{
	return -ENOTSUP;
}

int implant_activate(struct implant *i, uint64_t interval_bytes, struct err *err)
{
	return -ENOTSUP;
}

int implant_set_interval(struct implant *i, uint64_t interval_bytes, struct err *err)
{
	return -ENOTSUP;
}

void implant_populate(struct implant *i)
{
}

void implant_alive(struct implant *i)
{
}

void implant_deactivate(struct implant *i)
{
}

uint64_t implant_control_at(const struct implant *i, unsigned k)
{
	return 0;
}

int implant_control(struct implant *i, uint64_t function, const struct implant_control *c, uint64_t wait_ns, struct err *err)
{
	return -ENOTSUP;
}

void implant_interrupt(void)
{
}

bool implant_gave_up(int r)
{
	return false;
}

int implant_control_many(struct implant *i, uint64_t function, const struct implant_many *m, uint64_t *values, uint64_t wait_ns, struct err *err)
{
	return -ENOTSUP;
}

int implant_hooked(const struct implant *i)
{
	return 0;
}

int implant_unhook(struct implant *i, struct err *err)
{
	return 0;
}

void implant_close(struct implant *i)
{
}

bool implant_gone(const struct implant *i)
{
	return true;
}

bool implant_replaced(const struct implant *i)
{
	return false;
}

struct blob_shared *implant_shared(struct implant *i)
{
	return NULL;
}

bool implant_thread(const struct implant *i, uint32_t index, struct exact_thread *ret)
{
	return false;
}

void implant_set_stack(struct implant *i, uint32_t index, uint64_t low, uint64_t top)
{
}

void implant_totals(const struct implant *i, uint64_t *ret_count, uint64_t *ret_bytes)
{
}

const char *implant_allocators(const struct implant *i)
{
	return NULL;
}

uint64_t implant_stopped_ns(const struct implant *i)
{
	return 0;
}

const char *implant_path(const struct implant *i)
{
	return NULL;
}

const uint64_t implant_alloc_offsets[] = { 0 };

const uint64_t implant_free_offsets[] = { 0 };

const uint64_t implant_exact_offsets[] = { 0 };
