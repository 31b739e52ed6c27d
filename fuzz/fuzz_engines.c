/*
 * fuzz_engines.c - what container engines say and write about containers, and the paths of control groups. The first byte
 * chooses the reader.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/plain.h"
#include "target/container/container.h"
#include "target/container/enginejson.h"
#include "target/cgroup/cgrouppath.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What comes out is a name that may go into a path, or none. */
static void check(const struct container *c)
{
	_cleanup_free_ char *title = container_title(c);

	if (!container_is_name(c->id) || (*c->name && !container_is_name(c->name)))
		abort();
	if (c->pod && (!c->namespace || !c->part))
		abort();
	if (c->labels.n > CONTAINER_LABELS)
		abort();
	for (size_t i = 0; i < c->labels.n; i++) {
		const char *label = c->labels.v[i], *key = label;

		while (isalnum((unsigned char)*key) || (*key && strchr("_.-", *key)))
			key++;
		if (*key != '=' || key == label || strlen(label) > CONTAINER_LABEL_BYTES)
			abort();
		for (size_t step; *key; key += step)
			if (plain_harmful(plain_decode(key, &step)))
				abort();
	}
	for (const char *p = c->image; *p; p++)
		if ((unsigned char)*p < ' ')
			abort();
	for (const char *p = title; *p; p++)
		if ((unsigned char)*p < ' ')
			abort();
}

static void check_all(struct containers *all)
{
	for (size_t i = 0; i < all->list.n; i++)
		check(&all->list.v[i]);
	containers_done(all);
}

static void try_group(const char *text)
{
	struct cgrouppath g;

	cgrouppath_parse(text, &g);
	/* What was found is found again by its name. */
	if (g.container && !cgrouppath_has(text, g.container))
		abort();
	if (g.unit && !strstr(g.unit_path, g.unit))
		abort();
	cgrouppath_done(&g);
	cgrouppath_has(text, "web");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct container c = { .engine = "" };
	_cleanup_free_ char *text = size ? mem_strndup((const char *)data + 1, size - 1) : NULL, *root = NULL;
	struct containers all;

	if (!size)
		return 0;
	switch (data[0]) {
	case 'i':
		if (!enginejson_inspect((const char *)data + 1, size - 1, &c))
			check(&c);
		break;
	case 'l':
		if (!enginejson_list((const char *)data + 1, size - 1, &all))
			check_all(&all);
		break;
	case 's':
		if (!enginejson_store((const char *)data + 1, size - 1, &all))
			check_all(&all);
		break;
	case 'b':
		c.id = mem_strdup("x");
		if (!enginejson_bundle((const char *)data + 1, size - 1, &c))
			check(&c);
		break;
	case 'a':
		c.id = mem_strdup("x");
		c.name = mem_strdup("");
		c.image = mem_strdup("");
		if (!enginejson_annotations((const char *)data + 1, size - 1, &c))
			check(&c);
		break;
	case 'd':
		root = enginejson_data_root((const char *)data + 1, size - 1);
		if (root && *root != '/')
			abort();
		break;
	default:
		try_group(text);
	}
	container_done(&c);
	return 0;
}
