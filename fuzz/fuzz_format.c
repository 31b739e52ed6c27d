/*
 * fuzz_format.c - the readers of tracefs's format files and of lists of events.
 *
 * Both get the same bytes: one is the kernel's, the other one is typed by people.
 */
#include <stdlib.h>
#include <string.h>

#include "target/trace/eventspec.h"
#include "target/trace/tracefs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned last_line;

static int check_word(void *context, const char *word, unsigned line, struct err *err)
{
	struct eventspec e;

	if (!*word || strpbrk(word, " \t\r\n#") || line <= last_line)
		abort();
	last_line = line;
	if (eventspec_parse(word, &e, NULL) >= 0) {
		/* It becomes a part of a path. */
		if (!e.name || (e.group && (strchr(e.group, '/') || strchr(e.group, '.'))) ||
		    (e.point && (strchr(e.point, '/') || strchr(e.point, '.'))))
			abort();
	}
	eventspec_done(&e);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tracefs_format f;

	if (tracefs_parse_format((const char *)data, size, &f, NULL) >= 0) {
		for (size_t i = 0; i < f.fields.n; i++) {
			const struct tracefs_field *field = &f.fields.v[i];

			if (!*field->name || field->offset < 8 || field->offset + field->size > 8192 ||
			    (field->integer && (field->size < 1 || field->size > 8)) ||
			    !tracefs_find_field(&f, field->name))
				abort();
		}
		tracefs_format_done(&f);
	}
	last_line = 0;
	eventspec_parse_file((const char *)data, size, check_word, NULL, NULL);
	return 0;
}
