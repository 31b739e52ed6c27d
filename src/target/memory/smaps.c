#include "target/memory/smaps.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "target/proc.h"

/* A line is at most a path, each byte of which may be escaped by four. */
/*
 *	7f1c2a000000-7f1c2a028000 r-xp 00028000 fd:01 1234       /usr/lib/libc.so.6
 */
static bool add_mapping(struct smaps *s, const char *line, size_t n)
{
	const char *flags = memchr(line, ' ', n);
	struct proc_maps maps;
	struct proc_mapping *m;

	proc_maps_parse(line, n, &maps);
	if (maps.list.n != 1 || !flags) {
		proc_maps_done(&maps);
		return false;
	}
	m = &maps.list.v[0];
	/* The flags are four characters: the parser has seen to that. */
	vec_push(&s->list, (struct smaps_mapping){ .start = m->start,
						   .end = m->end,
						   .path = *m->path ? m->path : NULL,
						   .device_major = m->device_major,
						   .device_minor = m->device_minor,
						   .readable = flags[1] == 'r',
						   .writable = m->writable,
						   .shared = flags[4] == 's' });
	if (*m->path)
		m->path = NULL;
	proc_maps_done(&maps);
	return true;
}

static void set_flags(struct smaps_mapping *m, const char *s, const char *end)
{
	for (; s + 2 < end; s++) {
		if (*s != ' ')
			continue;
		m->no_huge |= s[1] == 'n' && s[2] == 'h';
		m->no_reserve |= s[1] == 'n' && s[2] == 'r';
	}
}

static uint64_t *field_of(struct smaps_mapping *m, const char *key, size_t n)
{
	const struct {
		const char *key;
		uint64_t *value;
	} fields[] = {
		{ "Rss", &m->rss_bytes }, { "Pss", &m->pss_bytes }, { "Anonymous", &m->anon_bytes },
		{ "Shared_Clean", &m->shared_bytes }, { "Shared_Dirty", &m->shared_bytes },
		{ "AnonHugePages", &m->huge_bytes }, { "ShmemPmdMapped", &m->huge_bytes },
		{ "FilePmdMapped", &m->huge_bytes }, { "LazyFree", &m->lazyfree_bytes },
		{ "Shared_Hugetlb", &m->hugetlb_bytes }, { "Private_Hugetlb", &m->hugetlb_bytes },
		{ "Swap", &m->swap_bytes }, { "Locked", &m->locked_bytes },
	};

	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (strlen(fields[i].key) == n && !memcmp(fields[i].key, key, n))
			return fields[i].value;
	return NULL;
}

/* "Rss:                   8 kB", "VmFlags: rd mr mw me " */
static bool set_field(struct smaps_mapping *m, const char *line, const char *end)
{
	const char *colon = memchr(line, ':', end - line), *p;
	uint64_t *value, kilobytes = 0;

	if (!colon)
		return false;
	if (colon - line == 7 && !memcmp(line, "VmFlags", 7)) {
		set_flags(m, colon + 1, end);
		return true;
	}
	value = field_of(m, line, colon - line);
	if (!value)
		return true;
	for (p = colon + 1; p < end && *p == ' '; p++)
		;
	if (p == end || !isdigit((unsigned char)*p))
		return false;
	for (; p < end && isdigit((unsigned char)*p); p++)
		if (__builtin_mul_overflow(kilobytes, 10, &kilobytes) ||
		    __builtin_add_overflow(kilobytes, (uint64_t)(*p - '0'), &kilobytes))
			return false;
	if (kilobytes > UINT64_MAX >> 20) /* sums of them must fit, too */
		return false;
	*value += kilobytes * 1024;
	return true;
}

/* Whole lines. */
static size_t parse_lines(const char *text, size_t n, struct smaps *s)
{
	const char *p = text, *end = text + n;
	size_t bad = 0;

	while (p < end) {
		const char *newline = memchr(p, '\n', end - p), *stop = newline ? newline : end;

		if (stop == p)
			;
		else if (!isupper((unsigned char)*p)) /* addresses are in lower case */
			bad += !add_mapping(s, p, stop - p);
		else
			bad += !s->list.n || !set_field(&s->list.v[s->list.n - 1], p, stop);
		p = stop + 1;
	}
	return bad;
}

size_t smaps_parse(const char *text, size_t n, struct smaps *ret)
{
	*ret = (struct smaps){ 0 };
	return parse_lines(text, n, ret);
}

static void add_lines(void *context, const char *text, size_t n)
{
	parse_lines(text, n, context);
}

int smaps_read(pid_t pid, struct smaps *ret)
{
	int r;

	*ret = (struct smaps){ 0 };
	r = proc_read_lines(pid, "smaps", add_lines, ret);
	if (r)
		smaps_done(ret);
	return r;
}

void smaps_done(struct smaps *s)
{
	vec_done_each(&s->list, e, free(e->path));
}

const struct smaps_mapping *smaps_find(const struct smaps *s, uint64_t address)
{
	size_t at = vec_search(i, 0, s->list.n, s->list.v[i].end <= address);

	return at < s->list.n && s->list.v[at].start <= address ? &s->list.v[at] : NULL;
}
