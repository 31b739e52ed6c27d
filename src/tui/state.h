/* state.h - the state that the terminal's parts share: draw.c shows it, keys.c and navigation.c change it.
 * Private to them and tui.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tui/detail/code.h"
#include "tui/look.h"
#include "tui/detail/tree.h"
#include "tui/tui.h"

/* A position in a table. */
struct spot {
	size_t cursor, top; /* rows */
	uint64_t id;        /* of the row at the cursor, so that it is found again */
	bool moved;         /* the user chose the row: it is followed */
	size_t sort;
	bool up, sorted;    /* sorted: by the user's choice */
	char filter[64];
};

enum detail_kind { DETAIL_CALLERS, DETAIL_CALLEES, DETAIL_LINES, DETAIL_CODE, DETAIL_WAIT };

/* A function that was opened, or a place where threads wait. */
struct detail {
	enum detail_kind kind;
	char *name, *module;
	enum cause cause; /* of the wait */
	struct map open;  /* wakers of the wait whose stacks are shown */
	struct tree tree;
	struct code_text text;
	struct spot spot;
	char *what_before; /* to go back to, NULL = as it is */
	bool restores, seen;
};

enum prompt { PROMPT_NONE, PROMPT_FILTER, PROMPT_FUNCTION, PROMPT_THREAD, PROMPT_RANGE };

struct state {
	const struct source *source;
	const struct tui_options *options;
	struct look look;
	enum page page;
	struct spot spots[PAGE_COUNT];
	unsigned variant[PAGE_COUNT];
	struct tree calls;
	VEC(struct detail) details;
	struct table table;
	bool refill, redraw; /* the table is out of date; the screen is */
	bool help, quit, ended;
	bool from_blocks;  /* the range is a block's: Esc goes back to them */
	bool held;         /* the screen of a running program stands still for it */
	bool from_threads; /* the thread was chosen on its page: Esc goes back there */
	enum prompt prompt;
	char input[128];
	char message[512];
	bool alert;
	uint64_t message_until_ns;
	size_t rows_shown; /* on the screen, at the last drawing */
};

static inline struct detail *state_detail(struct state *s)
{
	return s->details.n ? &s->details.v[s->details.n - 1] : NULL;
}
static inline struct spot *state_spot(struct state *s)
{
	return s->details.n ? &state_detail(s)->spot : &s->spots[s->page];
}

void state_say(struct state *s, bool alert, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void draw(struct state *s);
/* Performs the action of a key. */
void keys_handle(struct state *s, int key);

/* navigation.c: moves to a row, to a page, into the item at the cursor, to the right or left in a tree
 * (false: nothing is there), and back. */
void navigation_move(struct state *s, long row);
void navigation_open_page(struct state *s, int page);
void navigation_open_function(struct state *s, enum detail_kind kind);
void navigation_open_row(struct state *s);
void navigation_right(struct state *s);
bool navigation_left(struct state *s);
void navigation_back(struct state *s);
void detail_done(struct detail *d);

/* A key and its action, for the help; the list ends with an entry without a key. */
struct key_help {
	const char *key, *does;
};
extern const struct key_help keys_help[];
