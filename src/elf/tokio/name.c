/*
 * name.c - what to call each type of task.
 *
 * Symbols of the newer mangling have the future in the name of poll itself. Those of the older one have it in the names of
 * functions that the table's functions call: drop_in_place<…Cell<FUTURE, SCHEDULER>>, drop_in_place<…Stage<FUTURE>>. Where
 * neither is there, the first function below poll that is not the runtime's names the task. A program without symbols
 * has types without names.
 *
 * The name is short: no arguments of types, no wrappers (base/text/taskname.h), so that it is the one that a stack gives.
 * Two futures that would share a name get longer ones, and in the end numbers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "base/text/taskname.h"
#include "elf/demangle.h"
#include "elf/symtab.h"
#include "elf/tokio/tokioint.h"
#include "elf/tokio/typetext.h"

enum {
	MAX_DEPTH = 3, /* of calls below a function of a table */
	MAX_LOOKED = 512, /* names that are read for the type of one table */
	LEVELS = 5,    /* of names: short, with the function, with arguments, with closures, whole */
};

/* What is known about one type. */
struct known {
	char *whole;     /* its type as symbols have it; NULL = not known */
	char *future;    /* the type without what it is wrapped in */
	char *scheduler; /* likewise */
	char *code;      /* the name that its code gives it; NULL = not looked for, or none */
	bool by_code;    /* the type belongs to another future, whose functions were merged with those of this one */
	unsigned number; /* among futures whose types are written alike, from 0 */
	int level;       /* of its name */
	unsigned looked; /* names that were read for it */
};

static char *symbol_at(const struct tokio_file *f, uint64_t address)
{
	const char *linkage = f->symtab ? symtab_find(f->symtab, address) : NULL;

	return linkage ? demangle(linkage, 0) : NULL;
}

/* --- the future's type --- */

static char *copy(struct typetext t)
{
	return t.n ? mem_strndup(t.s, t.n) : NULL;
}

/* Reads the name of one function; true once all is known. */
static bool read_symbol(struct known *k, const char *symbol)
{
	struct typetext future, scheduler;

	if (!typetext_task(symbol, &future, &scheduler))
		return false;
	if (!k->whole)
		k->whole = copy(future);
	if (!k->scheduler && strlen(k->whole) == future.n && !memcmp(k->whole, future.s, future.n))
		k->scheduler = copy(scheduler);
	return k->scheduler;
}

/* Says whether a function only passes a task on. Without optimization there are some between dealloc and the drop glue. */
static bool passes_on(const char *symbol)
{
	return strstr(symbol, "tokio::runtime::task::") || str_starts(symbol, "core::mem::drop") || strstr(symbol, "drop_in_place");
}

/* Reads the names of what a function calls, and of what is called in turn by those that pass on. */
static bool read_calls(struct tokio_file *f, struct known *k, uint64_t function, int depth)
{
	struct code_calls calls;
	bool done = false;

	code_calls(f, function, &calls);
	for (size_t i = 0; !done && i < calls.n && k->looked < MAX_LOOKED; i++) {
		_cleanup_free_ char *symbol = symbol_at(f, calls.v[i]);

		k->looked++;
		if (!symbol)
			continue;
		done = read_symbol(k, symbol);
		if (!done && depth < MAX_DEPTH && passes_on(symbol))
			done = read_calls(f, k, calls.v[i], depth + 1);
	}
	vec_done(&calls);
	return done;
}

static void find_future(struct tokio_file *f, const struct table *t, struct known *k)
{
	static const int order[] = { SLOT_DEALLOC, SLOT_DROP_ABORT, SLOT_SHUTDOWN, SLOT_DROP_JOIN, SLOT_POLL, SLOT_READ_OUTPUT };
	bool done = false;

	for (size_t i = 0; !done && i < ARRAY_LEN(order); i++) {
		_cleanup_free_ char *symbol = symbol_at(f, t->functions[order[i]]);

		done = (symbol && read_symbol(k, symbol)) || (symbol && read_calls(f, k, t->functions[order[i]], 0));
	}
}

/* --- what the code says --- */

struct best {
	enum taskname_rank rank;
	char *name;
};

static void take(struct best *b, enum taskname_rank rank, char *name)
{
	if (name && rank > b->rank) {
		free(b->name);
		b->name = name;
		b->rank = rank;
	} else {
		free(name);
	}
}

/* Looks for the first future that a function calls; a program's function if it calls none. A library's says nothing. */
static void search_code(struct tokio_file *f, uint64_t function, int depth, struct best *b)
{
	struct code_calls calls;

	code_calls(f, function, &calls);
	for (size_t i = 0; b->rank < TASKNAME_UNIT && i < calls.n; i++) {
		_cleanup_free_ char *symbol = symbol_at(f, calls.v[i]);
		enum taskname_rank rank = symbol ? taskname_rank(symbol) : TASKNAME_NOTHING;

		/* Functions of C libraries are no futures. */
		if (!symbol || strstr(symbol, "drop_in_place") || !strstr(symbol, "::"))
			continue;
		if (rank != TASKNAME_NOTHING)
			take(b, rank, taskname_of_function(symbol));
		else if (depth < MAX_DEPTH && (typetext_polled(symbol).n || strstr(symbol, "tokio::runtime::task::")))
			search_code(f, calls.v[i], depth + 1, b);
	}
	vec_done(&calls);
}

/* Returns the name that the code gives, if it says at least so much. */
static char *name_by_code(struct tokio_file *f, const struct table *t, enum taskname_rank least)
{
	struct best b = { .rank = least - 1 };

	search_code(f, t->functions[SLOT_POLL], 0, &b);
	return b.name;
}

/* --- kinds --- */

static enum tokio_kind find_kind(const struct tokio_file *f, const struct table *t, const struct known *k)
{
	_cleanup_free_ char *schedule = symbol_at(f, t->functions[SLOT_SCHEDULE]);
	const char *texts[] = { k->scheduler, k->whole, schedule };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (!texts[i])
			continue;
		if (strstr(texts[i], "BlockingSchedule") || str_starts(texts[i], "tokio::runtime::blocking::task::BlockingTask<"))
			return TOKIO_BLOCKING;
		if (strstr(texts[i], "tokio::task::local::Shared"))
			return TOKIO_LOCAL;
	}
	/* All schedulers are one pointer; the blocking pool has none. */
	return !k->scheduler && t->id - t->scheduler != 8 ? TOKIO_BLOCKING : TOKIO_TASK;
}

/* --- one name --- */

static void cut_closures(char *name)
{
	static const char closure[] = "::{{closure}}";

	while (str_ends(name, closure) && strlen(name) > strlen(closure))
		name[strlen(name) - strlen(closure)] = 0;
}

/* A boxed future has no type; where it is spawned says most. */
static char *name_by_spawn(struct tokio_file *f, const struct tokio_vtable *v)
{
	for (size_t i = 0; i < v->spawn_count; i++) {
		_cleanup_free_ char *symbol = symbol_at(f, v->spawns[i].address);
		_cleanup_free_ char *name = symbol && taskname_rank(symbol) >= TASKNAME_FUNCTION ? taskname_of_function(symbol) : NULL;

		if (name)
			return mem_printf("boxed future of %s", name);
	}
	return NULL;
}

/*
 * Leaves of a type what makes it another one. A future in a box is the same future; builds with assertions of tokio box large
 * ones and have both. A closure of tokio's own is what it is, whatever it was made for: the worker that block_in_place() hands
 * over, a read of tokio::fs.
 */
static char *reduce(const char *whole)
{
	struct typetext inside = typetext_peel((struct typetext){ whole, strlen(whole) });
	char *reduced;

	if (inside.n < 7 || memcmp(inside.s, "tokio::", 7) != 0)
		return mem_strndup(inside.s, inside.n);
	reduced = typetext_short(inside, false);
	cut_closures(reduced);
	return reduced;
}

/* Gives a future its name of a level; NULL = there is none of the shortest kind. */
static char *name_of_future(const char *future, int level)
{
	char *name;

	if (level == 0)
		return taskname_of_type(future);
	if (level > 3)
		return mem_strdup(future);
	name = typetext_short((struct typetext){ future, strlen(future) }, level > 1);
	if (level < 3)
		cut_closures(name);
	return name;
}

static char *make_name(struct tokio_file *f, const struct known *k, const struct table *t, const struct tokio_vtable *v)
{
	char *name;

	if (k->by_code || !k->future)
		return k->code ? mem_strdup(k->code) : mem_printf("task type at 0x%llx", (unsigned long long)t->address);
	name = name_of_future(k->future, 0);
	if (!name && strstr(k->future, "dyn "))
		return name_by_spawn(f, v) ?: name_of_future(k->future, MAX(k->level, 1));
	if (name && !k->level)
		return name;
	free(name);
	return name_of_future(k->future, MAX(k->level, 1));
}

/* Cuts a name that is too long, between characters. */
static char *fit(char *name, unsigned number)
{
	char suffix[16] = "";
	size_t room = TOKIO_NAME - 1, n = strlen(name);
	char *made;

	if (number)
		snprintf(suffix, sizeof(suffix), " #%u", number + 1);
	room -= strlen(suffix);
	if (n > room) {
		room -= strlen("…");
		while (room && ((unsigned char)name[room] & 0xc0) == 0x80)
			room--;
		made = mem_printf("%.*s…%s", (int)room, name, suffix);
	} else {
		made = mem_printf("%s%s", name, suffix);
	}
	free(name);
	return made;
}

/* --- all of them --- */

struct naming {
	struct tokio_file *f;
	const struct table *tables;
	struct tokio_vtable *vtables;
	struct known *known;
	size_t n;
};

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_future(const struct known *a, const struct known *b)
{
	return a->by_code == b->by_code && a->number == b->number && same(a->future, b->future) &&
	       (a->future || same(a->code, b->code));
}

/* Says whether two types are written alike although their code differs, on one scheduler. */
static bool alike(const struct naming *m, size_t i, size_t j)
{
	const struct known *a = &m->known[i], *b = &m->known[j];

	return i != j && a->whole && same(a->whole, b->whole) && same(a->scheduler, b->scheduler) &&
	       (a->scheduler || m->tables[i].functions[SLOT_SCHEDULE] == m->tables[j].functions[SLOT_SCHEDULE]) &&
	       m->tables[i].functions[SLOT_POLL] != m->tables[j].functions[SLOT_POLL];
}

/* Functions with the same code may have been merged: the type is that of another future then. The code of poll tells. */
static void prefer_code(struct naming *m, size_t i)
{
	struct known *k = &m->known[i];
	_cleanup_free_ char *by_type = NULL;
	bool found = false;

	for (size_t j = 0; j < m->n && !found; j++)
		found = alike(m, i, j);
	if (!found)
		return;
	by_type = taskname_of_type(k->future);
	k->code = name_by_code(m->f, &m->tables[i], TASKNAME_UNIT);
	k->by_code = k->code && by_type && strcmp(k->code, by_type) != 0;
}

/*
 * The older mangling does not tell closures of one function apart: they are numbered by their size, which is the same on
 * each scheduler. A type that was compiled twice has the same size, too, and no number.
 */
static void number_alike(struct naming *m, size_t i)
{
	uint64_t below = 0; /* sizes are counted upwards, each once */

	for (bool more = !m->known[i].by_code && strstr(m->known[i].future ?: "", "{{closure}}"); more;) {
		uint64_t next = m->tables[i].trailer;

		for (size_t j = 0; j < m->n; j++)
			if (alike(m, i, j) && !m->known[j].by_code && m->tables[j].trailer > below)
				next = MIN(next, m->tables[j].trailer);
		more = next < m->tables[i].trailer;
		m->known[i].number += more;
		below = next;
	}
}

/* A type whose code gave it the name of another one is that future on another scheduler. */
static void join_by_code(struct naming *m, size_t i)
{
	struct known *k = &m->known[i];

	for (size_t j = 0; k->by_code && j < m->n; j++) {
		const struct known *other = &m->known[j];
		_cleanup_free_ char *name = other->future && !other->by_code ? taskname_of_type(other->future) : NULL;

		if (!name || strcmp(name, k->code) != 0)
			continue;
		free(k->future);
		k->future = mem_strdup(other->future);
		k->number = other->number;
		k->by_code = false;
	}
}

/* Gives each type that shares its name with another future the next longer name; false if there is none. */
static bool lengthen(struct naming *m)
{
	_cleanup_free_ bool *shared = mem_alloc(m->n);
	bool any = false;

	for (size_t i = 0; i < m->n; i++)
		for (size_t j = 0; j < m->n && !shared[i]; j++)
			shared[i] = strcmp(m->vtables[i].name, m->vtables[j].name) == 0 && !same(m->known[i].future, m->known[j].future);
	for (size_t i = 0; i < m->n; i++) {
		struct known *k = &m->known[i];

		if (!shared[i] || k->by_code || !k->future || ++k->level >= LEVELS)
			continue;
		free(m->vtables[i].name);
		m->vtables[i].name = make_name(m->f, k, &m->tables[i], &m->vtables[i]);
		any = true;
	}
	return any;
}

/* Numbers futures that share a name whatever was tried, and cuts long names. */
static void number_rest(struct naming *m)
{
	_cleanup_free_ size_t *first = mem_alloc(m->n * sizeof(*first)); /* the first type of the same future */
	_cleanup_free_ unsigned *number = mem_alloc(m->n * sizeof(*number));

	for (size_t i = 0; i < m->n; i++) {
		for (first[i] = 0; first[i] < i && !same_future(&m->known[first[i]], &m->known[i]); first[i]++)
			;
		for (size_t j = 0; j < i && first[i] == i; j++)
			number[i] += first[j] == j && !strcmp(m->vtables[i].name, m->vtables[j].name);
		number[i] = number[first[i]];
	}
	for (size_t i = 0; i < m->n; i++)
		m->vtables[i].name = fit(m->vtables[i].name, number[i]);
}

void name_types(struct tokio_file *f, const struct table *tables, struct tokio_vtable *vtables, size_t n)
{
	struct naming m = { f, tables, vtables, mem_alloc(n * sizeof(*m.known)), n };

	for (size_t i = 0; i < n; i++) {
		find_future(f, &tables[i], &m.known[i]);
		vtables[i].kind = find_kind(f, &tables[i], &m.known[i]);
		if (m.known[i].whole)
			m.known[i].future = reduce(m.known[i].whole);
		else
			m.known[i].code = name_by_code(f, &tables[i], TASKNAME_FUNCTION);
		vtables[i].named = m.known[i].future || m.known[i].code;
	}
	for (size_t i = 0; i < n; i++)
		prefer_code(&m, i);
	for (size_t i = 0; i < n; i++)
		number_alike(&m, i);
	for (size_t i = 0; i < n; i++)
		join_by_code(&m, i);
	for (size_t i = 0; i < n; i++)
		vtables[i].name = make_name(f, &m.known[i], &tables[i], &vtables[i]);
	for (int i = 1; i < LEVELS && lengthen(&m); i++)
		;
	number_rest(&m);
	for (size_t i = 0; i < n; i++) {
		free(m.known[i].whole);
		free(m.known[i].future);
		free(m.known[i].scheduler);
		free(m.known[i].code);
	}
	free(m.known);
}
