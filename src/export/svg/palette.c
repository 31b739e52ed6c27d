#include "export/svg/palette.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text/str.h"

/* A channel of a colour: from low on, so much of range as one of three numbers of the name says. */
struct channel {
	unsigned char low, range, which;
};

static const struct {
	const char *name;
	struct channel channels[3];
} plain[] = {
	{ "hot", { { 205, 50, 2 }, { 0, 230, 0 }, { 0, 55, 1 } } },
	{ "mem", { { 0, 0, 0 }, { 190, 50, 1 }, { 0, 210, 0 } } },
	{ "io", { { 80, 60, 0 }, { 80, 60, 0 }, { 190, 55, 1 } } },
	{ "red", { { 200, 55, 0 }, { 50, 80, 0 }, { 50, 80, 0 } } },
	{ "green", { { 50, 60, 0 }, { 200, 55, 0 }, { 50, 60, 0 } } },
	{ "blue", { { 80, 60, 0 }, { 80, 60, 0 }, { 205, 50, 0 } } },
	{ "aqua", { { 50, 60, 0 }, { 165, 55, 0 }, { 165, 55, 0 } } },
	{ "yellow", { { 175, 55, 0 }, { 175, 55, 0 }, { 50, 20, 0 } } },
	{ "purple", { { 190, 65, 0 }, { 80, 60, 0 }, { 190, 65, 0 } } },
	{ "orange", { { 190, 65, 0 }, { 90, 65, 0 }, { 0, 0, 0 } } },
};

const char *const palette_names[] = { "hot", "mem",   "io",   "wakeup", "chain",  "java",   "js",     "perl",
				      "red", "green", "blue", "aqua",   "yellow", "purple", "orange", NULL };

/* --- by the kind of a name --- */

/* Returns the mark at a name's end: 'k' kernel, 'j' compiled at run time, 'i' inlined, 'w' waker; 0 =
 * none. */
static char mark_of(const char *name)
{
	size_t n = strlen(name);

	return n >= 4 && name[n - 4] == '_' && name[n - 3] == '[' && name[n - 1] == ']' ? name[n - 2] : 0;
}

/* "java/lang/Object", "Lorg/apache/x": a package as paths of classes begin. */
static bool is_java_path(const char *name)
{
	static const char *const roots[] = { "java/", "javax/", "jdk/", "net/", "org/",
					     "com/",  "io/",    "sun/", NULL };

	name += *name == 'L';
	for (size_t i = 0; roots[i]; i++)
		if (str_starts(name, roots[i]))
			return true;
	return false;
}

static const char *java_palette(const char *name)
{
	switch (mark_of(name)) {
	case 'j':
		return "green";
	case 'i':
		return "aqua";
	case 'k':
		return "orange";
	default:
		break;
	}
	if (is_java_path(name) || strstr(name, ":::")) /* class:::method, as maps of JIT code have it */
		return "green";
	return strstr(name, "::") ? "yellow" : "red";
}

static const char *perl_palette(const char *name)
{
	if (strstr(name, "::"))
		return "yellow";
	if (strstr(name, "Perl") || strstr(name, ".pl"))
		return "green";
	return mark_of(name) == 'k' ? "orange" : "red";
}

static const char *js_palette(const char *name)
{
	const char *slash = strchr(name, '/');

	if (mark_of(name) == 'j')
		return slash ? "green" : "aqua"; /* a source, or built in */
	if (strstr(name, "::"))
		return "yellow";
	if (slash && strstr(slash, ".js"))
		return "green";
	if (strchr(name, ':'))
		return "aqua";
	if (!strcmp(name, " "))
		return "green"; /* no symbol */
	return strstr(name, "_[k]") ? "orange" : "red";
}

/* The plain palette of a name. */
static const char *choose(const char *palette, const char *name, bool waker)
{
	if (!strcmp(palette, "java"))
		return java_palette(name);
	if (!strcmp(palette, "perl"))
		return perl_palette(name);
	if (!strcmp(palette, "js"))
		return js_palette(name);
	if (!strcmp(palette, "wakeup"))
		return "aqua";
	if (!strcmp(palette, "chain"))
		return waker || strstr(name, "_[w]") ? "aqua" : "blue";
	return palette;
}

/* --- by the name's letters --- */

/*
 * 0..1 by three letters, the first weighing most; a module before a backtick
 * does not count. step -1: from the end of the name.
 */
static double hash_letters(const char *name, size_t n, int step)
{
	double sum = 0, most = 1, weight = 1;
	size_t at = 0;

	for (size_t i = 1; i < n; i++)
		if (name[step > 0 ? i : n - 1 - i] == '`') {
			at = i + 1;
			break;
		}
	for (unsigned base = 10; base < 13 && at < n; base++, at++) {
		unsigned char c = name[step > 0 ? at : n - 1 - at];

		sum += (double)(c % base) / (base - 1) * weight;
		most += weight;
		weight *= 0.7;
	}
	return 1 - sum / most;
}

static void pick_numbers(double v[3], const char *name, enum palette_pick pick, uint64_t *seed)
{
	size_t n = strlen(name);
	uint64_t hash;

	if (pick == PALETTE_HASH) {
		v[0] = hash_letters(name, n, 1);
		v[1] = v[2] = hash_letters(name, n, -1);
		return;
	}
	hash = pick == PALETTE_RANDOM ? map_hash(++*seed) : map_hash_bytes(name, n);
	for (int i = 0; i < 3; i++)
		v[i] = (hash >> (i * 20) & 0xfffff) / (double)0x100000;
}

char *palette_colour(char out[PALETTE_COLOUR], const char *palette, const char *name, bool waker,
		     enum palette_pick pick, uint64_t *seed)
{
	double v[3];
	int c[3] = { 0 };

	palette = choose(palette, name, waker);
	pick_numbers(v, name, pick, seed);
	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		if (!strcmp(plain[i].name, palette))
			for (int k = 0; k < 3; k++) {
				const struct channel *ch = &plain[i].channels[k];

				c[k] = ch->low + (int)(ch->range * v[ch->which]);
			}
	snprintf(out, PALETTE_COLOUR, "rgb(%d,%d,%d)", c[0] & 255, c[1] & 255, c[2] & 255);
	return out;
}

char *palette_difference(char out[PALETTE_COLOUR], double change, double most)
{
	int rest = change ? (int)(210 * (most - (change > 0 ? change : -change)) / most) : 255;

	rest = rest < 0 ? 0 : rest > 255 ? 255 : rest;
	snprintf(out, PALETTE_COLOUR, "rgb(%d,%d,%d)", change < 0 ? rest : 255, rest,
		 change > 0 ? rest : 255);
	return out;
}

/* --- background --- */

const char *const palette_backgrounds[] = { "yellow", "blue", "green", "grey", NULL };

static const char *background_of(const char *palette)
{
	if (!strcmp(palette, "mem"))
		return "green";
	if (!strcmp(palette, "io") || !strcmp(palette, "wakeup") || !strcmp(palette, "chain"))
		return "blue";
	/* The palettes of one hue, which come last in the list. */
	for (size_t i = 8; palette_names[i]; i++)
		if (!strcmp(palette, palette_names[i]))
			return "grey";
	return "yellow";
}

bool palette_background(const char *name, const char *palette, const char *ret[2])
{
	static const char *const ends[][2] = { { "#eeeeee", "#eeeeb0" },
					       { "#eeeeee", "#e0e0ff" },
					       { "#eef2ee", "#e0ffe0" },
					       { "#f8f8f8", "#e8e8e8" } };

	if (!name)
		name = background_of(palette);
	if (*name == '#') {
		ret[0] = name;
		ret[1] = NULL;
		return strlen(name) == 7 && strspn(name + 1, "0123456789abcdefABCDEF") == 6;
	}
	for (size_t i = 0; palette_backgrounds[i]; i++)
		if (!strcmp(palette_backgrounds[i], name)) {
			ret[0] = ends[i][0];
			ret[1] = ends[i][1];
			return true;
		}
	return false;
}

/* --- palette.map --- */

void palette_map_init(struct palette_map *m)
{
	*m = (struct palette_map){ 0 };
	strtab_init(&m->names);
}

void palette_map_done(struct palette_map *m)
{
	vec_done_each(&m->colours, e, free(*e));
	strtab_done(&m->names);
}

void palette_map_set(struct palette_map *m, const char *name, const char *colour)
{
	uint32_t id = strtab_add(&m->names, name);

	while (m->colours.n <= id)
		vec_push(&m->colours, NULL);
	free(m->colours.v[id]);
	m->colours.v[id] = mem_strdup(colour);
}

const char *palette_map_get(struct palette_map *m, const char *name)
{
	uint32_t id = strtab_add(&m->names, name);

	return id < m->colours.n ? m->colours.v[id] : NULL;
}

/* The last arrow counts: names may hold one ("operator->"). */
void palette_map_parse(struct palette_map *m, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		_cleanup_free_ char *line = mem_strndup(text, n);
		char *arrow = NULL;

		for (char *s = line; (s = strstr(s, "->")); s++)
			arrow = s;
		if (arrow) {
			*arrow = 0;
			palette_map_set(m, line, arrow + 2);
		}
		text += n + (text[n] == '\n');
	}
}

static int compare_names(const void *a, const void *b, void *context)
{
	const struct palette_map *m = context;

	return strcmp(strtab_get(&m->names, *(const uint32_t *)a),
		      strtab_get(&m->names, *(const uint32_t *)b));
}

void palette_map_write(struct palette_map *m, struct buf *out)
{
	_cleanup_free_ uint32_t *order = mem_alloc((m->colours.n + 1) * sizeof(*order));
	size_t n = 0;

	for (size_t i = 0; i < m->colours.n; i++)
		if (m->colours.v[i])
			order[n++] = i;
	if (n > 1)
		qsort_r(order, n, sizeof(*order), compare_names, m);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s->%s\n", strtab_get(&m->names, order[i]), m->colours.v[order[i]]);
}
