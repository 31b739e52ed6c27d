#include "ethereum/rpcblock.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

enum { DEEPEST = 64 };

struct json {
	const char *s, *end;
};

struct text {
	const char *s; /* between the quotes, as it was sent */
	size_t n;
};

static char peek(struct json *j)
{
	while (j->s < j->end && isspace((unsigned char)*j->s))
		j->s++;
	return j->s < j->end ? *j->s : 0;
}

static bool eat(struct json *j, char c)
{
	if (peek(j) != c || !c)
		return false;
	j->s++;
	return true;
}

static bool read_string(struct json *j, struct text *ret)
{
	if (!eat(j, '"'))
		return false;
	ret->s = j->s;
	while (j->s < j->end && *j->s != '"')
		j->s += *j->s == '\\' && j->s + 1 < j->end ? 2 : 1;
	if (j->s >= j->end)
		return false;
	ret->n = j->s++ - ret->s;
	return true;
}

/* Over a value of any kind; brackets of both kinds count alike, as nothing of it is kept. */
static bool skip(struct json *j)
{
	int depth = 0;

	do {
		char c = peek(j);
		struct text t;

		if (c == '{' || c == '[') {
			j->s++;
			if (++depth > DEEPEST)
				return false;
		} else if (c == '}' || c == ']') {
			j->s++;
			if (--depth < 0)
				return false;
		} else if (c == '"') {
			if (!read_string(j, &t))
				return false;
		} else if (c && (depth || !strchr(",:", c))) {
			j->s++;
			while (!depth && j->s < j->end && !strchr(",:]}[{\" \t\r\n", *j->s))
				j->s++;
		} else {
			return false;
		}
	} while (depth);
	return true;
}

static bool is(const struct text *t, const char *s)
{
	return t->n == strlen(s) && !memcmp(t->s, s, t->n);
}

/* "0x1b4": at most 16 digits. */
static bool read_quantity(struct json *j, uint64_t *ret)
{
	struct text t;

	*ret = 0;
	if (!read_string(j, &t) || t.n < 3 || t.n > 18 || memcmp(t.s, "0x", 2))
		return false;
	for (size_t i = 2; i < t.n; i++) {
		int c = tolower((unsigned char)t.s[i]);

		if (!isxdigit(c))
			return false;
		*ret = *ret << 4 | (uint64_t)(isdigit(c) ? c - '0' : c - 'a' + 10);
	}
	return *ret <= INT64_MAX;
}

static bool read_hash(struct json *j, char ret[67])
{
	struct text t;

	if (!read_string(j, &t) || t.n != 66 || memcmp(t.s, "0x", 2))
		return false;
	for (size_t i = 2; i < t.n; i++)
		if (!isxdigit((unsigned char)t.s[i]))
			return false;
	memcpy(ret, t.s, t.n);
	ret[t.n] = 0;
	return true;
}

static bool count_list(struct json *j, uint64_t *ret)
{
	*ret = 0;
	if (!eat(j, '['))
		return false;
	if (eat(j, ']'))
		return true;
	do {
		if (!skip(j))
			return false;
		++*ret;
	} while (eat(j, ','));
	return eat(j, ']');
}

/* wanted: bits for number, gas, hash and transactions. */
static bool read_block(struct json *j, struct rpcblock *b, unsigned wanted)
{
	unsigned found = 0;
	struct text key;

	if (!eat(j, '{'))
		return false;
	do {
		if (!read_string(j, &key) || !eat(j, ':'))
			return false;
		if (is(&key, "number") ? (found |= 1, !read_quantity(j, &b->number)) :
		    is(&key, "gasUsed") ? (found |= 2, !read_quantity(j, &b->gas)) :
		    is(&key, "hash") ? (found |= 4, !read_hash(j, b->hash)) :
		    is(&key, "transactions") ? (found |= 8, !count_list(j, &b->transactions)) : !skip(j))
			return false;
	} while (eat(j, ','));
	return eat(j, '}') && (found & wanted) == wanted;
}

int rpcblock_parse(const char *text, size_t n, struct rpcblock *ret)
{
	struct json j = { text, text + n };
	bool found = false, error = false, null = false;
	struct text key;

	*ret = (struct rpcblock){ 0 };
	if (!eat(&j, '{'))
		return -EBADMSG;
	do {
		if (!read_string(&j, &key) || !eat(&j, ':'))
			return -EBADMSG;
		if (is(&key, "result") && peek(&j) == '{') {
			if (!read_block(&j, ret, 15))
				return -EBADMSG;
			found = true;
		} else {
			null |= is(&key, "result") && peek(&j) == 'n';
			error |= is(&key, "error") && peek(&j) == '{';
			if (!skip(&j))
				return -EBADMSG;
		}
	} while (eat(&j, ','));
	if (!eat(&j, '}'))
		return -EBADMSG;
	return error ? -EREMOTEIO : found ? 0 : null ? -ENOENT : -EBADMSG;
}

/* {"subscription":"0x…","result":{a header}} */
static bool read_news(struct json *j, struct rpcblock *ret)
{
	bool found = false;
	struct text key;

	if (!eat(j, '{'))
		return false;
	do {
		if (!read_string(j, &key) || !eat(j, ':'))
			return false;
		if (is(&key, "result") && peek(j) == '{') {
			if (!read_block(j, ret, 7))
				return false;
			found = true;
		} else if (!skip(j)) {
			return false;
		}
	} while (eat(j, ','));
	return eat(j, '}') && found;
}

static bool read_id(struct json *j, uint64_t *ret)
{
	const char *at = (peek(j), j->s);

	*ret = 0;
	while (j->s < j->end && isdigit((unsigned char)*j->s) && j->s - at < 18)
		*ret = *ret * 10 + (uint64_t)(*j->s++ - '0');
	if (j->s > at)
		return true;
	return skip(j);
}

enum rpcblock_message rpcblock_message(const char *text, size_t n, uint64_t *ret_id, struct rpcblock *ret)
{
	struct json j = { text, text + n };
	bool answer = false, news = false;
	struct text key;

	*ret = (struct rpcblock){ 0 };
	*ret_id = 0;
	if (!eat(&j, '{'))
		return RPCBLOCK_ODD;
	do {
		if (!read_string(&j, &key) || !eat(&j, ':'))
			return RPCBLOCK_ODD;
		answer |= is(&key, "result") || is(&key, "error");
		if (is(&key, "id") ? !read_id(&j, ret_id) :
		    is(&key, "params") && peek(&j) == '{' ? !(news = read_news(&j, ret)) : !skip(&j))
			return RPCBLOCK_ODD;
	} while (eat(&j, ','));
	if (!eat(&j, '}'))
		return RPCBLOCK_ODD;
	return news ? RPCBLOCK_HEAD : answer ? RPCBLOCK_ANSWER : RPCBLOCK_ODD;
}
