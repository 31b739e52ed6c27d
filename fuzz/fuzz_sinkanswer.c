/*
 * fuzz_sinkanswer.c - what a server says in an answer that looks good, which any server may have written; and names that become files and labels.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "fleet/sink/sinkanswer.h"
#include "fleet/sink/sinktypes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One folder of a name, whatever the target is called. */
static void check_folder(const char *target)
{
	struct buf b = { 0 };

	sinkname_put_folder(&b, target);
	if (!b.n || b.n > 200 || *b.data == '.' || strchr(b.data, '/') || strlen(b.data) != b.n)
		abort();
	buf_done(&b);
}

static void check_labels(const char *text)
{
	const char *const list[] = { text, "zone=x", text, NULL };
	struct sink_window w = { .target = text, .release = text, .labels = list };
	struct sinklabels l = { 0 };

	sinklabels_add_window(&l, &w, "target");
	sinklabels_sort(&l);
	for (size_t i = 0; i < l.list.n; i++) {
		const struct sinklabel *x = &l.list.v[i];

		if (strspn(x->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") < strlen(x->name) || !strncmp(x->name, "__", 2) ||
		    (*x->name >= '0' && *x->name <= '9') || !*x->name || !*x->value || strlen(x->value) > SINKLABEL_BYTES)
			abort();
		if (i && strcmp(l.list.v[i - 1].name, x->name) >= 0)
			abort();
	}
	sinklabels_done(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_strndup((const char *)data, size);
	struct sinkanswer_partial p;

	if (!sinkanswer_partial((const char *)data, size, &p) && p.message_n &&
	    (p.message < (const char *)data || p.message + p.message_n > (const char *)data + size))
		abort();
	check_folder(text);
	check_labels(text);
	free(text);
	return 0;
}
