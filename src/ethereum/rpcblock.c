#include "ethereum/rpcblock.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "ethereum/codec/hex.h"
#include "ethereum/rpccall.h"

enum { HASH_BYTES = 32 };

/* A node may send larger integers than jansson has, in members that are not needed: they are accepted as
 * doubles. */
static json_t *load(const char *text, size_t n)
{
	return json_loadb(text, n, JSON_DECODE_INT_AS_REAL, NULL);
}

static bool read_quantity(const json_t *object, const char *key, uint64_t *ret)
{
	return hex_number(json_string_value(json_object_get(object, key)), ret) && *ret <= INT64_MAX;
}

/* reth's documents have the number of a block on disk as "0x…", its source as a number. */
static bool read_persisted(const json_t *head, struct rpcblock *ret)
{
	const json_t *number = json_object_get(head, "number");
	const char *hash = json_string_value(json_object_get(head, "hash"));
	double x = json_number_value(number);

	if (json_is_number(number) && x >= 0 && x < 1e15)
		ret->block.number = (uint64_t)x;
	else if (!read_quantity(head, "number", &ret->block.number))
		return false;
	if (!hex_is(hash, HASH_BYTES))
		return false;
	memcpy(ret->hash, hash, sizeof(ret->hash));
	return true;
}

/* The head of a block: all but its transactions. */
static bool read_head(const json_t *head, struct rpcblock *ret)
{
	const char *hash = json_string_value(json_object_get(head, "hash"));

	if (!read_quantity(head, "number", &ret->block.number) || !read_quantity(head, "gasUsed", &ret->block.gas) ||
	    !hex_is(hash, HASH_BYTES))
		return false;
	memcpy(ret->hash, hash, sizeof(ret->hash));
	return true;
}

int rpcblock_read(const json_t *result, struct rpcblock *ret)
{
	const json_t *list = json_object_get(result, "transactions");

	*ret = (struct rpcblock){ 0 };
	if (json_is_null(result))
		return -ENOENT;
	if (!json_is_array(list) || !read_head(result, ret))
		return -EBADMSG;
	ret->block.transactions = json_array_size(list);
	return 0;
}

int rpcblock_parse(const char *text, size_t n, uint64_t id, struct rpcblock *ret, struct err *why)
{
	_cleanup_json_ json_t *result = NULL;
	int e = rpccall_parse(text, n, id, &result, NULL, why);

	if (!e) {
		e = rpcblock_read(result, ret);
		if (e)
			err_set(why, -e, e == -ENOENT ? "it has no such block" : "its answer is not a block");
	}
	return e == -EPROTO ? -EBADMSG : e;
}

/* A request's number, as rpccall.c counts them. */
static bool read_id(const json_t *id, uint64_t *ret)
{
	double x = json_real_value(id);

	*ret = 0;
	if (!json_is_real(id))
		return true;
	if (!(x >= 0 && x < 1e15))
		return false;
	*ret = (uint64_t)x;
	return true;
}

/* What a subscription tells: a new block, or one that is on disk. */
static bool read_news(const json_t *message, struct rpcblock *ret)
{
	const char *method = json_string_value(json_object_get(message, "method"));
	const json_t *result = json_object_get(json_object_get(message, "params"), "result");

	return method && !strcmp(method, "reth_subscription") ? read_persisted(result, ret) : read_head(result, ret);
}

enum rpcblock_message rpcblock_message(const char *text, size_t n, uint64_t *ret_id, struct rpcblock *ret)
{
	enum rpcblock_message kind = RPCBLOCK_ODD;
	json_t *message = load(text, n);
	const json_t *params = json_object_get(message, "params");

	*ret = (struct rpcblock){ 0 };
	if (!read_id(json_object_get(message, "id"), ret_id))
		kind = RPCBLOCK_ODD;
	else if (json_is_object(params))
		kind = read_news(message, ret) ? RPCBLOCK_HEAD : RPCBLOCK_ODD;
	else if (json_object_get(message, "result") || json_object_get(message, "error"))
		kind = RPCBLOCK_ANSWER;
	json_decref(message);
	return kind;
}
