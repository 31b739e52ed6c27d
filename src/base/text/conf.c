#include "base/text/conf.h"

#include <ctype.h>
#include <string.h>

static char *trim(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	n = strlen(s);
	while (n && isspace((unsigned char)s[n - 1]))
		s[--n] = 0;
	return s;
}

static void cut_comment(char *line)
{
	for (char *c = line; *c; c++)
		if (*c == '#' && (c == line || isspace((unsigned char)c[-1]))) {
			*c = 0;
			return;
		}
}

struct conf_line conf_line(char *line)
{
	char *equals;

	cut_comment(line);
	line = trim(line);
	if (!*line)
		return (struct conf_line){ CONF_EMPTY, line, NULL };
	if (*line == '[') {
		char *last = line + strlen(line) - 1;

		if (*last != ']')
			return (struct conf_line){ CONF_OPEN, line, NULL };
		*last = 0;
		return (struct conf_line){ CONF_SECTION, trim(line + 1), NULL };
	}
	equals = strchr(line, '=');
	if (!equals)
		return (struct conf_line){ CONF_NEITHER, line, NULL };
	*equals = 0;
	return (struct conf_line){ CONF_KEY, trim(line), trim(equals + 1) };
}
