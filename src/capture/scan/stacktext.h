/*
 * stacktext.h - SQL functions that walk the tree of stacks: what a stack is as text, how deep, and where.
 *
 * The views stacks, sites and waits need them for each stack that has samples. A recursive query makes them for each node of
 * the tree, which takes seconds for 250,000 nodes; one pass over arrays takes some hundredths. The file's own views stay
 * plain SQL, for other programs that read it.
 *
 *	stacktext_add(db, &t);                 // functions, and views that use them in place of those of schema.h
 *	...prepare; if the statement uses one of them:
 *	if (stacktext_read(t)) stacktext_remove(db);  // and prepare again
 *	...step...
 *	capturevfs_close(db), stacktext_free(t);
 */
#pragma once

#include <stdbool.h>

#include <sqlite3.h>

struct stacktext;

/* Is it the name of one of the functions? */
bool stacktext_has(const char *function);
/* Returns SQLite's result. *ret is to be freed after the connection was closed, in any case. */
int stacktext_add(sqlite3 *db, struct stacktext **ret);
/* Reads the tree, once. Something other than 0: it is not as a recorder writes it (nodes numbered from 1 on, parents before
 * their children, each frame with a name): only SQL can say what the views mean. */
int stacktext_read(struct stacktext *t);
/* Puts the views of schema.h back. Returns SQLite's result. */
int stacktext_remove(sqlite3 *db);
void stacktext_free(struct stacktext *t); /* NULL is fine */
