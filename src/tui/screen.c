#include "tui/screen.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "analyze/wait/pattern.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/sanitized.h"
#include "base/text/str.h"
#include "export/report/cleantext.h"

static struct {
	bool open, colour, utf8;
	SCREEN *screen;
	struct termios before;
	char reset[256]; /* what gives the terminal back, for when nothing else works any more */
	size_t reset_size;
} screen;
static volatile sig_atomic_t quit_wanted, stop_wanted;

/* A build with sanitizers tells about them itself. */
enum { crashes_are_ours = !SANITIZED };
static const int crashes[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };

/* --- signals --- */

static void on_quit(int number)
{
	quit_wanted = 1;
}

static void on_stop(int number)
{
	stop_wanted = 1;
}

/* Only what may be called from a signal handler. */
static void on_crash(int number)
{
	if (screen.open) {
		ssize_t ignored = write(STDOUT_FILENO, screen.reset, screen.reset_size);

		(void)ignored;
		tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
	}
	signal(number, SIG_DFL);
	raise(number);
}

static void handle(int number, void (*handler)(int), int flags)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags };

	sigaction(number, &sa, NULL);
}

static void handle_signals(bool on)
{
	handle(SIGINT, on ? on_quit : SIG_DFL, 0);
	handle(SIGTERM, on ? on_quit : SIG_DFL, 0);
	handle(SIGHUP, on ? on_quit : SIG_DFL, 0);
	handle(SIGTSTP, on ? on_stop : SIG_DFL, 0);
	for (size_t i = 0; crashes_are_ours && i < sizeof(crashes) / sizeof(*crashes); i++)
		handle(crashes[i], on ? on_crash : SIG_DFL, SA_RESETHAND);
}

static void remember(const char *capability)
{
	const char *s = tigetstr(capability);
	size_t n = s && s != (char *)-1 ? strlen(s) : 0;

	if (screen.reset_size + n > sizeof(screen.reset))
		return;
	memcpy(screen.reset + screen.reset_size, s, n);
	screen.reset_size += n;
}

/* --- life --- */

static void start_colours(void)
{
	/* On the terminal's own background; without use_default_colors() on black. */
	static const short causes[CAUSE_COUNT] = {
		[CAUSE_CPU] = COLOR_GREEN,      [CAUSE_QUEUE] = COLOR_YELLOW,
		[CAUSE_LOCK] = COLOR_RED,       [CAUSE_PARK] = COLOR_MAGENTA,
		[CAUSE_DISK_READ] = COLOR_BLUE, [CAUSE_DISK_WRITE] = COLOR_BLUE,
		[CAUSE_FAULT] = COLOR_CYAN,     [CAUSE_NETWORK] = COLOR_CYAN,
		[CAUSE_SLEEP] = COLOR_WHITE,    [CAUSE_PIPE] = COLOR_MAGENTA,
		[CAUSE_RECLAIM] = COLOR_RED,    [CAUSE_IDLE] = COLOR_WHITE,
		[CAUSE_UNKNOWN] = COLOR_WHITE,  [CAUSE_QUOTA] = COLOR_YELLOW,
	};
	const char *no = getenv("NO_COLOR");
	short background = -1;

	if ((no && *no) || !has_colors() || start_color() == ERR)
		return;
	if (use_default_colors() == ERR)
		background = COLOR_BLACK;
	screen.colour = true;
	init_pair(STYLE_ALERT, COLOR_RED, background);
	init_pair(STYLE_KERNEL, COLOR_YELLOW, background);
	init_pair(STYLE_LIBRARY, COLOR_CYAN, background);
	for (int i = 0; i < CAUSE_COUNT; i++) {
		bool quiet = i == CAUSE_IDLE || i == CAUSE_UNKNOWN || i == CAUSE_SLEEP;

		init_pair(STYLE_CAUSE + i, quiet ? causes[i] : COLOR_BLACK, quiet ? background : causes[i]);
	}
}

#ifdef GASFLAME_STATIC
#include "terminals.h"

/* A machine without ncurses has no descriptions of terminals: the usual ones are in this program. */
static SCREEN *open_terminal(const char *term)
{
	SCREEN *s = newterm(NULL, stdout, stdin);

	for (size_t i = 0; !s && i < ARRAY_LEN(terminals); i++)
		if (str_starts(term, terminals[i].family)) {
			setenv("TERMINFO", terminals[i].description, 1);
			s = newterm(terminals[i].name, stdout, stdin);
		}
	return s;
}
#else
static SCREEN *open_terminal(const char *term)
{
	return newterm(NULL, stdout, stdin);
}
#endif

int screen_open(struct err *err)
{
	const char *term = getenv("TERM");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return err_set(err, ENOTTY,
			       "this is no terminal: --batch prints tables, --json a line a refresh");
	setlocale(LC_CTYPE, "");
	screen.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	if (tcgetattr(STDIN_FILENO, &screen.before))
		return err_errno(err, errno, "cannot read the terminal's state");
	quit_wanted = stop_wanted = 0;
	/* Before newterm(): where curses finds a handler of SIGTSTP, it leaves that alone. Its own one is off while it
	 * writes to the terminal, and a Ctrl-Z in that time would be lost. */
	handle_signals(true);
	screen.screen = open_terminal(term ? term : "");
	if (!screen.screen) {
		handle_signals(false);
		return err_set(err, ENOTTY, "the terminal '%s' is not known here: try TERM=xterm, or --batch",
			       term ? term : "");
	}
	set_term(screen.screen);
	screen.reset_size = 0;
	remember("sgr0");
	remember("rmkx");
	remember("rmcup");
	remember("cnorm");
	screen.open = true;
	cbreak();
	noecho();
	nonl();
	intrflush(stdscr, FALSE);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	start_colours();
	return 0;
}

void screen_close(void)
{
	if (!screen.open)
		return;
	endwin();
	screen.open = false;
	delscreen(screen.screen);
	handle_signals(false);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &screen.before);
}

/* As the shell wants it: the terminal is its own while we are stopped. */
static void stop(void)
{
	stop_wanted = 0;
	def_prog_mode();
	endwin();
	handle(SIGTSTP, SIG_DFL, 0);
	raise(SIGTSTP);
	handle(SIGTSTP, on_stop, 0);
	reset_prog_mode();
	clearok(stdscr, TRUE);
	refresh();
}

void screen_size(int *ret_lines, int *ret_columns)
{
	getmaxyx(stdscr, *ret_lines, *ret_columns);
}

/* --- keys --- */

int screen_key(void)
{
	static const struct {
		int curses, key;
	} keys[] = {
		{ KEY_UP, SCREEN_UP },       { KEY_DOWN, SCREEN_DOWN },     { KEY_LEFT, SCREEN_LEFT },
		{ KEY_RIGHT, SCREEN_RIGHT }, { KEY_PPAGE, SCREEN_PAGE_UP }, { KEY_NPAGE, SCREEN_PAGE_DOWN },
		{ KEY_HOME, SCREEN_HOME },   { KEY_END, SCREEN_END },       { KEY_ENTER, SCREEN_ENTER },
		{ '\r', SCREEN_ENTER },      { '\n', SCREEN_ENTER },        { 27, SCREEN_ESCAPE },
		{ '\t', SCREEN_TAB },        { KEY_BTAB, SCREEN_BACK_TAB }, { KEY_BACKSPACE, SCREEN_ERASE },
		{ 127, SCREEN_ERASE },       { 8, SCREEN_ERASE },           { KEY_RESIZE, SCREEN_RESIZE },
		{ 3, SCREEN_QUIT },
	};
	int c;

	if (quit_wanted)
		return SCREEN_QUIT;
	if (stop_wanted) {
		stop();
		return SCREEN_RESIZE; /* it may have another size now */
	}
	c = getch();
	if (c == ERR)
		return quit_wanted ? SCREEN_QUIT : KEY_NONE_YET;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (keys[i].curses == c)
			return keys[i].key;
	if (c == 12) { /* Ctrl-L */
		clearok(stdscr, TRUE);
		return SCREEN_RESIZE;
	}
	return c < 0x1000 && (c < 256) ? c : 0;
}

/* --- drawing --- */

static attr_t attributes(int style)
{
	switch (style) {
	case STYLE_PLAIN:
		return A_NORMAL;
	case STYLE_BOLD:
		return A_BOLD;
	case STYLE_DIM:
		return A_DIM;
	case STYLE_HEAD:
	case STYLE_CURSOR:
		return A_REVERSE;
	case STYLE_ALERT:
		return A_BOLD | (screen.colour ? COLOR_PAIR(style) : 0);
	}
	return screen.colour ? COLOR_PAIR(style) : A_NORMAL;
}

void screen_clear(void)
{
	erase();
}

/* Puts a '?' for each character beyond ASCII. */
static void put_ascii(struct buf *b, const char *s)
{
	for (; *s; s++)
		if ((*s & 0xc0) != 0x80)
			buf_putc(b, *s & 0x80 ? '?' : *s);
}

int screen_put(int line, int column, int width, const char *text, int style)
{
	struct buf clean = { 0 }, fitting = { 0 }, ascii = { 0 };
	const char *s;
	int used;

	if (width <= 0 || line < 0 || line >= LINES || column >= COLS)
		return 0;
	width = width < COLS - column ? width : COLS - column;
	cleantext_put(&clean, text);
	s = clean.data ? clean.data : "";
	/* cleantext_cut() leaves nothing where there is no room for its two dots. */
	if (cleantext_columns(s) > (size_t)width)
		cleantext_cut(&fitting, s, width);
	else
		buf_puts(&fitting, s);
	s = fitting.data ? fitting.data : "";
	if (!screen.utf8) {
		put_ascii(&ascii, s);
		s = ascii.data ? ascii.data : "";
	}
	attrset(attributes(style));
	mvaddstr(line, column, s);
	attrset(A_NORMAL);
	used = cleantext_columns(s);
	buf_done(&clean);
	buf_done(&fitting);
	buf_done(&ascii);
	return used;
}

void screen_fill(int line, int column, int style)
{
	if (line < 0 || line >= LINES || column >= COLS)
		return;
	attrset(attributes(style));
	mvhline(line, column, ' ', COLS - column);
	attrset(A_NORMAL);
}

void screen_show(void)
{
	refresh();
}
