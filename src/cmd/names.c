/*
 * names.c - what commands say while names are found for addresses, and after it.
 */
#include <stdio.h>

#include "base/log.h"
#include "base/text/str.h"
#include "cmd/cmd.h"
#include "profile/keys.h"
#include "profile/profile.h"

void command_show_names(void *context, const char *module, size_t done, size_t total)
{
	log_progress("finding names: %zu of %zu, %s", done, total, str_base_name(module));
}

void command_tell_names(const struct profile *p, size_t first)
{
	log_progress_end();
	for (size_t i = first; i < p->counters.n; i++) {
		const char *name = profile_str(p, p->counters.v[i].name), *used = key_rest(KEY_SYMBOLS_BUILD_OF, name),
			   *problem = key_rest(KEY_SYMBOLS_PROBLEM_OF, name);

		if (used)
			log_info("%s", used);
		else if (problem && str_starts(problem, "--symbols "))
			log_warn("%s", problem);
	}
}
