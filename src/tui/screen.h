/*
 * screen.h - the terminal: opened, drawn on, and always restored.
 *
 * Works with 8 colours or none (NO_COLOR), and without UTF-8. One screen at a time; only this file knows
 * ncurses.
 */
#pragma once


struct err;

enum screen_style {
	STYLE_PLAIN,
	STYLE_BOLD,
	STYLE_DIM,
	STYLE_HEAD,    /* titles of columns */
	STYLE_CURSOR,
	STYLE_ALERT,
	STYLE_KERNEL,
	STYLE_LIBRARY,
	STYLE_CAUSE,   /* + enum cause: parts of bars */
};

/* Keys that are no characters. */
enum screen_key {
	KEY_NONE_YET = -1,
	SCREEN_UP = 0x1000,
	SCREEN_DOWN,
	SCREEN_LEFT,
	SCREEN_RIGHT,
	SCREEN_PAGE_UP,
	SCREEN_PAGE_DOWN,
	SCREEN_HOME,
	SCREEN_END,
	SCREEN_ENTER,
	SCREEN_ESCAPE,
	SCREEN_TAB,
	SCREEN_BACK_TAB,
	SCREEN_ERASE,
	SCREEN_RESIZE,
	SCREEN_QUIT, /* Ctrl-C, SIGTERM, SIGHUP */
};

int screen_open(struct err *err);
void screen_close(void);
void screen_size(int *ret_lines, int *ret_columns);
/* Returns the next key, KEY_NONE_YET where there is none. Handles Ctrl-Z: stops, and goes on later. */
int screen_key(void);
void screen_clear(void);
/* At most width columns; text may be anything. Returns the columns used. */
int screen_put(int line, int column, int width, const char *text, int style);
/* The rest of a line in that style. */
void screen_fill(int line, int column, int style);
void screen_show(void);
