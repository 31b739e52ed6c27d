/*
 * conf.h - lines of a configuration file: "[section]", "key = value", "# comment".
 *
 * A comment begins with # at the beginning of a line or after a space, so that a value may hold a #.
 */
#pragma once

enum conf_kind {
	CONF_EMPTY,   /* nothing, or a comment */
	CONF_SECTION, /* key is what stands between [ and ] */
	CONF_KEY,     /* key and value */
	CONF_OPEN,    /* a section without ] at its end; key is the line */
	CONF_NEITHER, /* no "=" in it; key is the line */
};

struct conf_line {
	enum conf_kind kind;
	char *key, *value; /* parts of the line, without spaces around them; value is NULL but for CONF_KEY */
};

/* Takes a line apart; the line is changed, and what is returned points into it. */
struct conf_line conf_line(char *line);
