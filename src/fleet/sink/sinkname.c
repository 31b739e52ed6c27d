#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/text/plain.h"
#include "base/text/str.h"
#include "export/export.h"
#include "fleet/sink/sinktypes.h"
#include "profile/profile.h"

enum { FOLDER_BYTES = 200 }; /* a file's name has 255 at most */

/* isalnum() of some locales knows more. */
static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* --- paths --- */

/* "~" is what neither a path, nor a shell within a word, nor the address of an object gives a meaning. */
void sinkname_put_folder(struct buf *b, const char *target)
{
	size_t begin = b->n;

	for (const char *s = target; *s; s++)
		if (is_plain(*s) || *s == '-' || *s == '_' || (*s == '.' && s > target))
			buf_putc(b, *s);
		else
			buf_printf(b, "~%02X", (unsigned char)*s);
	if (b->n - begin > FOLDER_BYTES) {
		b->n = begin + FOLDER_BYTES - 18;
		buf_printf(b, "~~%016llx", (unsigned long long)map_hash_bytes(target, strlen(target)));
	}
	if (b->n == begin)
		buf_puts(b, "~");
}

void sinkname_put_path(struct buf *b, const struct sink_window *w)
{
	time_t seconds = w->start_wall_ns / 1000000000;
	char when[32] = "0000-00-00/000000";
	struct tm tm;

	if (gmtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d/%H%M%S", &tm);
	sinkname_put_folder(b, w->target);
	buf_printf(b, "/%s-%llu.gasflame", when, (unsigned long long)w->sequence);
}

const char *sinkname_host(const struct sink_window *w)
{
	return w->job ? profile_str(w->job->profile, w->job->profile->host) : "";
}

/* --- labels --- */

static char *cut_value(const char *value)
{
	_cleanup_(buf_done) struct buf plain = { 0 };
	size_t n = 0, one;

	plain_add(&plain, value);
	if (!plain.n)
		return mem_strdup("");
	/* Between two characters. */
	while (n < plain.n) {
		plain_decode(plain.data + n, &one);
		if (n + one > SINKLABEL_BYTES)
			break;
		n += one;
	}
	return mem_strndup(plain.data, n);
}

void sinklabels_add(struct sinklabels *l, const char *name, const char *value)
{
	struct sinklabel label = { .name = mem_strdup(name), .value = cut_value(value) };
	bool there = false;

	for (size_t i = 0; i < l->list.n; i++)
		there |= !strcmp(l->list.v[i].name, name);
	if (there || !*label.value || l->list.n >= SINKLABELS_MAX) {
		free(label.name);
		free(label.value);
		return;
	}
	vec_push(&l->list, label);
}

/* "key=value": a key of other characters has "_" for them; one that begins with a digit, or with "__" as only servers' own may,
 * has "label_" before it. */
static void add_pair(struct sinklabels *l, const char *pair)
{
	size_t n = strcspn(pair, "=");
	bool bare = n && n <= SINKLABEL_BYTES && !isdigit((unsigned char)*pair) && !str_starts(pair, "__");
	_cleanup_free_ char *name = mem_printf("%s%.*s", bare ? "" : "label_", (int)MIN(n, (size_t)SINKLABEL_BYTES), pair);

	for (char *s = name; *s; s++)
		if (!is_plain(*s))
			*s = '_';
	if (str_starts(name, "__"))
		memcpy(name, "x_", 2);
	sinklabels_add(l, name, pair[n] ? pair + n + 1 : "");
}

void sinklabels_add_window(struct sinklabels *l, const struct sink_window *w, const char *name)
{
	sinklabels_add(l, name, w->target);
	sinklabels_add(l, "release", w->release ? w->release : "");
	sinklabels_add(l, "host", sinkname_host(w));
	for (size_t i = 0; w->labels && w->labels[i]; i++)
		add_pair(l, w->labels[i]);
}

static int by_name(const void *a, const void *b)
{
	const struct sinklabel *x = a, *y = b;

	return strcmp(x->name, y->name);
}

void sinklabels_sort(struct sinklabels *l)
{
	vec_sort(&l->list, by_name);
}

void sinklabels_done(struct sinklabels *l)
{
	vec_done_each(&l->list, e, free(e->name); free(e->value));
}
