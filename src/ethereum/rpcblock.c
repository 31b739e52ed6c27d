#include "ethereum/rpcblock.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "ethereum/codec/hex.h"

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

int rpcblock_parse(const char *text, size_t n, struct rpcblock *ret)
{
	json_t *answer = load(text, n);
	const json_t *result = json_object_get(answer, "result"), *list = json_object_get(result, "transactions");
	int e = -EBADMSG;

	*ret = (struct rpcblock){ 0 };
	if (json_is_object(json_object_get(answer, "error")))
		e = -EREMOTEIO;
	else if (json_is_null(result))
		e = -ENOENT;
	else if (json_is_array(list) && read_head(result, ret))
		e = 0;
	ret->block.transactions = json_array_size(list);
	json_decref(answer);
	return e;
}

/* A question's number, as rpc.c counts them. */
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

enum rpcblock_message rpcblock_message(const char *text, size_t n, uint64_t *ret_id, struct rpcblock *ret)
{
	enum rpcblock_message kind = RPCBLOCK_ODD;
	json_t *message = load(text, n);
	const json_t *params = json_object_get(message, "params");

	*ret = (struct rpcblock){ 0 };
	if (!read_id(json_object_get(message, "id"), ret_id))
		kind = RPCBLOCK_ODD;
	else if (json_is_object(params))
		kind = read_head(json_object_get(params, "result"), ret) ? RPCBLOCK_HEAD : RPCBLOCK_ODD;
	else if (json_object_get(message, "result") || json_object_get(message, "error"))
		kind = RPCBLOCK_ANSWER;
	json_decref(message);
	return kind;
}
