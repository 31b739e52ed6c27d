#include "fleet/storeurl.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/text/str.h"

static const uint64_t second_ns = 1000000000;
/* 2106, where the seconds of the store's DateTime end. */
static const uint64_t last_second = UINT32_MAX;
enum { MOST_LABELS = 64 };

static const struct scheme {
	const char *name, *http;
	bool store; /* and nothing else */
} schemes[] = {
	{ "clickhouse://", "http://", true },
	{ "clickhouses://", "https://", true },
	{ "http://", "http://", false },
	{ "https://", "https://", false },
};

static const struct scheme *scheme_of(const char *text)
{
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (str_starts(text, schemes[i].name))
			return &schemes[i];
	return NULL;
}

bool storeurl_is(const char *text)
{
	const struct scheme *s = scheme_of(text);

	return s && s->store;
}

/* --- times --- */

/* "Z", "+02:00", "-0530", "": the zone behind a time. */
static bool take_zone(const char *s, bool *ret_given, long *ret_seconds)
{
	int sign = *s == '-' ? -1 : 1;

	*ret_given = *s;
	*ret_seconds = 0;
	if (!*s || !strcmp(s, "Z"))
		return true;
	if ((*s != '+' && *s != '-') || strspn(s + 1, "0123456789:") != strlen(s + 1))
		return false;
	s++;
	if (strlen(s) != 4 && !(strlen(s) == 5 && s[2] == ':'))
		return false;
	*ret_seconds = sign * (((s[0] - '0') * 10 + s[1] - '0') * 3600L +
			       ((s[strlen(s) - 2] - '0') * 10 + s[strlen(s) - 1] - '0') * 60L);
	return !strchr(s, ':') || s[2] == ':';
}

static bool take_date(const char *text, int64_t *ret)
{
	static const char *const forms[] = { "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d" };

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		struct tm tm = { .tm_isdst = -1 };
		const char *rest = strptime(text, forms[i], &tm);
		bool given;
		long zone;

		/* A fraction of a second is no more than that. */
		if (rest && strchr(forms[i], 'S') && *rest == '.')
			rest += 1 + strspn(rest + 1, "0123456789");
		if (!rest || !take_zone(rest, &given, &zone))
			continue;
		*ret = given ? timegm(&tm) - zone : mktime(&tm);
		return true;
	}
	return false;
}

int storeurl_time(const char *text, uint64_t now_ns, uint64_t *ret_ns, struct err *err)
{
	const char *digits = text + (*text == '@');
	uint64_t value;
	int64_t date;

	if (!strcmp(text, "now")) {
		*ret_ns = now_ns;
		return 0;
	}
	if (*text == '-' && !str_parse_duration(text + 1, &value)) {
		*ret_ns = value < now_ns ? now_ns - value : 0;
		return 0;
	}
	if (isdigit((unsigned char)*digits) && !digits[strspn(digits, "0123456789")] &&
	    !str_parse_uint(digits, 0, last_second, &value)) {
		*ret_ns = value * second_ns;
		return 0;
	}
	if (take_date(text, &date) && date >= 0 && (uint64_t)date <= last_second) {
		*ret_ns = (uint64_t)date * second_ns;
		return 0;
	}
	return err_set(err, EINVAL, "'%.80s' is no time: 2026-11-17 10:00, 2026-11-17T10:00:30Z, seconds since 1970, or -1h", text);
}

/* --- the address --- */

char *storeurl_decode(const char *s, size_t n)
{
	char *out = mem_alloc(n + 1), *to = out;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = s[i];

		if (c == '%') {
			char hex[3] = { 0 };

			if (i + 2 >= n || !isxdigit((unsigned char)s[i + 1]) || !isxdigit((unsigned char)s[i + 2])) {
				free(out);
				return NULL;
			}
			memcpy(hex, s + i + 1, 2);
			c = strtoul(hex, NULL, 16);
			i += 2;
		}
		if (!c) {
			free(out);
			return NULL;
		}
		*to++ = c;
	}
	return out;
}

static bool has_controls(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return true;
	return false;
}

static int bad_user(struct err *err)
{
	return err_set(err, EINVAL, "the user and the password of a store's address have %%XX for anything but letters and digits, and no "
		       "control characters");
}

/* "user:password" of n bytes. */
static int take_user(struct storeurl_shard *shard, const char *s, size_t n, struct err *err)
{
	const char *colon = memchr(s, ':', n);
	size_t user = colon ? (size_t)(colon - s) : n;

	shard->user = storeurl_decode(s, user);
	shard->password = colon ? storeurl_decode(colon + 1, n - user - 1) : mem_strdup("");
	if (shard->user && shard->password && !has_controls(shard->user) && !has_controls(shard->password))
		return 0;
	free(shard->user);
	free(shard->password);
	shard->user = shard->password = NULL;
	return bad_user(err);
}

static bool is_host(const char *s, size_t n)
{
	static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]";

	return n && strspn(s, known) >= n;
}

/* One server of the list: [scheme][user:password@]host[:port][/database]. *scheme: of the one before. */
static int take_shard(struct storeurl *u, const struct scheme **scheme, const char *s, size_t n, struct err *err)
{
	_cleanup_free_ char *text = mem_strndup(s, n);
	const struct scheme *own = scheme_of(text);
	const char *rest = text + (own ? strlen(own->name) : 0), *slash = strchr(rest, '/'), *end = slash ? slash : rest + strlen(rest);
	const char *at = memrchr(rest, '@', end - rest), *host = at ? at + 1 : rest;
	struct storeurl_shard shard = { 0 };
	int r = at ? take_user(&shard, rest, at - rest, err) : 0;

	if (own)
		*scheme = own;
	if (!r && !is_host(host, end - host))
		r = err_set(err, EINVAL, "a server of the store's address has no host: clickhouse://HOST:8123,HOST:8123/DATABASE");
	if (!r && slash && slash[1]) {
		free(u->database);
		u->database = storeurl_decode(slash + 1, strlen(slash + 1));
		if (!u->database || strchr(u->database, '/') || has_controls(u->database))
			r = err_set(err, EINVAL, "the database of the store's address is no name: clickhouse://HOST:8123/DATABASE");
	}
	shard.address = mem_printf("%s%.*s", (*scheme)->http, (int)(end - host), host);
	vec_push(&u->shards, shard);
	return r;
}

static void inherit_users(struct storeurl *u)
{
	const struct storeurl_shard *said = NULL;

	for (size_t i = 0; i < u->shards.n && !said; i++)
		if (u->shards.v[i].user)
			said = &u->shards.v[i];
	for (size_t i = 0; i < u->shards.n; i++) {
		struct storeurl_shard *shard = &u->shards.v[i];

		if (shard->user) {
			said = shard;
			continue;
		}
		shard->user = mem_strdup(said ? said->user : "");
		shard->password = mem_strdup(said ? said->password : "");
	}
}

static int take_value(struct storeurl *u, const char *key, const char *value, uint64_t now_ns, struct err *err)
{
	uint64_t ns;

	if (!strcmp(key, "target")) {
		free(u->target);
		free(u->targets);
		u->targets = NULL;
		u->target = mem_strdup(value);
		return *value ? 0 : err_set(err, EINVAL, "the target of the store's address has no name");
	}
	if (!strcmp(key, "targets")) {
		free(u->targets);
		free(u->target);
		u->target = NULL;
		u->targets = mem_strdup(value);
		return *value ? 0 : err_set(err, EINVAL, "targets of the store's address has no pattern: targets=reth-*");
	}
	if (!strcmp(key, "release")) {
		free(u->release);
		u->release = mem_strdup(value);
		return 0;
	}
	if (!strcmp(key, "label")) {
		if (!strchr(value, '=') || u->labels.n >= MOST_LABELS)
			return err_set(err, EINVAL, "a label of the store's address is KEY=VALUE, and there are at most %d: label=region%%3Deu", MOST_LABELS);
		vec_push(&u->labels, mem_strdup(value));
		return 0;
	}
	if (!strcmp(key, "from"))
		return storeurl_time(value, now_ns, &u->from_ns, err);
	if (!strcmp(key, "to"))
		return storeurl_time(value, now_ns, &u->to_ns, err);
	if (!strcmp(key, "timeout") && !str_parse_duration(value, &ns) && ns >= 1000000 && ns < 3600 * second_ns) {
		u->timeout_ms = ns / 1000000;
		return 0;
	}
	return err_set(err, EINVAL, "'%.40s' of the store's address is not known: target=NAME, targets=PATTERN, release=NAME, label=KEY%%3DVALUE, "
		       "from=TIME, to=TIME, timeout=10s", key);
}

static int take_values(struct storeurl *u, const char *s, uint64_t now_ns, struct err *err)
{
	int r = 0;

	while (!r && *s) {
		size_t n = strcspn(s, "&"), name = strcspn(s, "=&");
		_cleanup_free_ char *key = mem_strndup(s, name);
		_cleanup_free_ char *value = name < n ? storeurl_decode(s + name + 1, n - name - 1) : mem_strdup("");

		r = value ? take_value(u, key, value, now_ns, err)
			  : err_set(err, EINVAL, "the value of %.40s in the store's address has a %% without two hexadecimal digits", key);
		s += n + (s[n] == '&');
	}
	return r;
}

int storeurl_parse(const char *text, uint64_t now_ns, struct storeurl *ret, struct err *err)
{
	const char *question = strchr(text, '?');
	size_t n = question ? (size_t)(question - text) : strlen(text);
	const struct scheme *scheme = scheme_of(text);
	int r = 0;

	*ret = (struct storeurl){ .timeout_ms = STOREURL_TIMEOUT_MS };
	if (!scheme)
		return err_set(err, EINVAL, "'%.60s' is no address of a store: clickhouse://HOST:8123/DATABASE, or clickhouses:// for TLS", text);
	for (size_t at = 0; !r && at < n;) {
		const char *comma = memchr(text + at, ',', n - at);
		size_t length = comma ? (size_t)(comma - text) - at : n - at;

		r = take_shard(ret, &scheme, text + at, length, err);
		at += length + 1;
	}
	inherit_users(ret);
	if (!ret->database)
		ret->database = mem_strdup("gasflame");
	if (!r && question)
		r = take_values(ret, question + 1, now_ns, err);
	if (!r && ret->to_ns && ret->from_ns >= ret->to_ns)
		r = err_set(err, EINVAL, "the time of the store's address ends before it begins: from=-1h&to=now");
	return r;
}

void storeurl_done(struct storeurl *u)
{
	vec_done_each(&u->shards, e, free(e->address); free(e->user); free(e->password));
	free(u->database);
	free(u->target);
	free(u->targets);
	free(u->release);
	vec_done_each(&u->labels, e, free(*e));
	free(u->ca_file);
	*u = (struct storeurl){ 0 };
}

bool storeurl_names(const struct storeurl *u)
{
	return u->target || u->targets || u->release || u->labels.n;
}

void storeurl_add(struct buf *url, const char *key, const char *value)
{
	buf_printf(url, "%c%s=", url->n && memchr(url->data, '?', url->n) ? '&' : '?', key);
	for (; *value; value++)
		if (isalnum((unsigned char)*value) || strchr("-_.~", *value))
			buf_putc(url, *value);
		else
			buf_printf(url, "%%%02X", (unsigned char)*value);
}

void storeurl_hide(char *text)
{
	size_t n = strcspn(text, "?");

	for (size_t at = 0; at < n;) {
		const struct scheme *scheme = scheme_of(text + at);
		size_t begin = at + (scheme ? strlen(scheme->name) : 0), end = begin;
		const char *user;

		while (end < n && text[end] != ',' && text[end] != '/')
			end++;
		user = memrchr(text + begin, '@', end - begin);
		if (user) {
			size_t gone = user + 1 - (text + begin);

			/* With all that follows, so that nothing of it stays behind the end. */
			memmove(text + begin, user + 1, strlen(user + 1) + 1);
			memset(text + begin + strlen(text + begin), 0, gone);
			n -= gone;
			end -= gone;
		}
		while (end < n && text[end] != ',')
			end++;
		at = end + 1;
	}
}

unsigned storeurl_shard_of(const char *target, unsigned shards)
{
	uint64_t own = map_hash_bytes(target, strlen(target)), best = 0;
	unsigned found = 0;

	for (unsigned i = 0; i < shards; i++) {
		uint64_t weight = map_hash(own ^ map_hash(i + 1));

		if (!i || weight > best) {
			best = weight;
			found = i;
		}
	}
	return found;
}
