#include "base/text/match.h"

#include "base/mem.h"

bool match_regex(const regex_t *regex, const char *text, size_t count, regmatch_t *groups)
{
	int r = regexec(regex, text, count, groups, 0);

	if (r == REG_ESPACE)
		mem_exhausted();
	return !r;
}
