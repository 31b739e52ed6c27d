#include "ethereum/trace/opcodegas.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "ethereum/codec/hex.h"
#include "ethereum/rpccall.h"
#include "net/http.h"

enum { ANSWER_BYTES = 16 << 20, HASHES_MAX = 20000, HASH_BYTES = 32 };

/*
 * Frames of calls are in s: b, gas at its begin; k, the last operation; g, gas before it; c, what calls
 * within it used; p,
 * "#1" if it calls that precompile. o has count and gas by name. The tracer's own getCost() is not used:
 * anvil's is that of the operation before.
 */
static const char tracer[] =
	"{o:{},s:[],"
	"w:function(k,c){var r=this.o[k]||(this.o[k]=[0,0]);r[0]++;r[1]+=c},"
	"e:function(f,g){var c=f.g-g-f.c;this.w(f.p&&!f.c?f.p:f.k,c>0?c:0)},"
	"step:function(l){var d=l.getDepth(),g=l.getGas(),k=l.op.toString(),s=this.s,f;"
	"while(s.length>d){f=s.pop();this.e(f,f.g);if(s.length&&s[s.length-1])s[s.length-1].c+=f.b-f.g}"
	"f=s[d-1];if(f)this.e(f,g);else f=s[d-1]={b:g};"
	"f.k=k;f.g=g;f.c=0;f.p='';"
	"if(k.indexOf('CALL')>=0&&l.stack.length()>1){var a=parseInt(l.stack.peek(1).toString(16),16);"
	"if(a>0&&a<=17||a===256)f.p='#'+a}},"
	"fault:function(){},"
	"result:function(){while(this.s.length){var f=this.s.pop();if(f)this.e(f,f.g)}return this.o}}";

void opcodegas_done(struct opcodegas *g)
{
	vec_done(&g->rows);
	vec_done(&g->blocks);
}

/* --- answers --- */

/* "#1" to "ecrecover", as configs/subsystems.conf calls it; NULL: there is none. */
static const char *precompile_name(const char *number)
{
	static const char *const names[] = { NULL,        "ecrecover", "sha256",
					     "ripemd160", "identity",  "modexp",
					     "bn254 add", "bn254 mul", "bn254 pairing",
					     "blake2f",   "kzg point" };
	char *end;
	unsigned long n = strtoul(number, &end, 10);

	if (*end || !n)
		return NULL;
	return n < ARRAY_LEN(names) ? names[n] : n <= 17 ? "bls12-381" : n == 256 ? "p256verify" : NULL;
}

static bool is_opcode(const char *name)
{
	size_t n = strlen(name);

	for (const char *c = name; *c; c++)
		if (!isupper((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '_')
			return false;
	return n && n < OPCODEGAS_NAME;
}

/* Reads [count, gas]. */
static bool read_pair(const json_t *pair, uint64_t ret[2])
{
	for (size_t i = 0; i < 2; i++) {
		double x = json_number_value(json_array_get(pair, i));

		if (!json_is_number(json_array_get(pair, i)) || !(x >= 0 && x < 1e15))
			return false;
		ret[i] = x;
	}
	return json_array_size(pair) == 2;
}

/* Adds to the row of that name. An operation that is not called like one ("opcode 0xc not defined") is left
 * out. */
static void add_row(struct opcodegas *g, const char *name, const uint64_t pair[2])
{
	struct opcodegas_row new = { .precompile = *name == '#', .count = pair[0], .gas = pair[1] };
	const char *called = new.precompile ? precompile_name(name + 1) : is_opcode(name) ? name : NULL;

	if (!called)
		return;
	snprintf(new.name, sizeof(new.name), "%s", called);
	for (size_t i = 0; i < g->rows.n; i++)
		if (g->rows.v[i].precompile == new.precompile && !strcmp(g->rows.v[i].name, new.name)) {
			g->rows.v[i].count += new.count;
			g->rows.v[i].gas += new.gas;
			return;
		}
	if (g->rows.n < OPCODEGAS_ROWS)
		vec_push(&g->rows, new);
}

static int read_figures(const json_t *result, struct opcodegas *ret, struct err *err)
{
	const char *name;
	json_t *pair;
	uint64_t figures[2];

	if (!json_is_object(result))
		return err_set(err, EPROTO, "its trace does not match the request");
	json_object_foreach((json_t *)result, name, pair) if (!read_pair(pair, figures)) return err_set(
		err, EPROTO, "its trace has figures that are none");
	json_object_foreach((json_t *)result, name, pair)
	{
		read_pair(pair, figures);
		add_row(ret, name, figures);
	}
	ret->transactions++;
	return 0;
}

int opcodegas_parse(const char *text, size_t n, struct opcodegas *ret, struct err *err)
{
	_cleanup_json_ json_t *result = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);

	return read_figures(result, ret, err);
}

/* --- asking --- */

static int ask(struct rpccall *c, struct http *http, uint64_t end_ns, json_t **ret, struct err *err)
{
	uint64_t now = clock_mono_ns();
	const struct http_question how = { .limit = ANSWER_BYTES,
					   .timeout_ms = now < end_ns ? (end_ns - now) / 1000000 + 1 : 1 };
	int e = rpccall_ask(c, http, &how, ret, err);

	return e ? err_prefix(err, "%s", http_url(http)) : 0;
}

static int ask_block_head(struct http *http, uint64_t number, uint64_t end_ns, json_t **ret, struct err *err)
{
	_cleanup_(rpccall_done) struct rpccall c = { 0 };
	const json_t *list;
	char text[32];
	int e;

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)number);
	rpccall_begin(&c, "eth_getBlockByNumber");
	json_put_string(&c.params, NULL, text);
	json_put_bool(&c.params, NULL, false);
	e = ask(&c, http, end_ns, ret, err);
	if (e)
		return e;
	list = json_object_get(*ret, "transactions");
	for (size_t i = 0; i < json_array_size(list); i++)
		if (!hex_is(json_string_value(json_array_get(list, i)), HASH_BYTES))
			list = NULL;
	if (!json_is_array(list) || json_array_size(list) > HASHES_MAX)
		return err_set(err, EPROTO, "%s: it has no block %llu", http_url(http),
			       (unsigned long long)number);
	return 0;
}

static int ask_transaction(struct http *http, const char *hash, uint64_t end_ns, struct opcodegas *ret,
			   struct err *err)
{
	_cleanup_(rpccall_done) struct rpccall c = { 0 };
	_cleanup_json_ json_t *result = NULL;
	int e;

	rpccall_begin(&c, "debug_traceTransaction");
	json_put_string(&c.params, NULL, hash);
	json_open_object(&c.params, NULL);
	json_put_string(&c.params, "tracer", tracer);
	json_put_string(&c.params, "timeout", "60s");
	json_close(&c.params);
	e = ask(&c, http, end_ns, &result, err);
	if (e == -EREMOTEIO)
		return err_prefix(err, "this node does not trace with a program in JavaScript");
	return e ? e : read_figures(result, ret, err);
}

static int ask_block(struct http *http, uint64_t number, uint64_t end_ns, struct opcodegas *ret,
		     struct err *err)
{
	_cleanup_json_ json_t *block = NULL;
	int e = ask_block_head(http, number, end_ns, &block, err);
	const json_t *list = json_object_get(block, "transactions");

	for (size_t i = 0; !e && i < json_array_size(list); i++)
		e = ask_transaction(http, json_string_value(json_array_get(list, i)), end_ns, ret, err);
	return e;
}

static void copy(struct opcodegas *to, const struct opcodegas *from)
{
	vec_clear(&to->rows);
	for (size_t i = 0; i < from->rows.n; i++)
		vec_push(&to->rows, from->rows.v[i]);
	to->transactions = from->transactions;
}

int opcodegas_ask(const char *url, const uint64_t *numbers, size_t n, uint64_t limit_ms,
		  struct opcodegas *ret, struct err *err)
{
	uint64_t end_ns = clock_mono_ns() + limit_ms * 1000000;
	struct opcodegas sum = { 0 };
	struct http *http;
	int e = http_open(url, "--rpc", &http, err);

	if (e)
		return e;
	for (size_t i = 0; !e && i < n && (!i || clock_mono_ns() < end_ns); i++) {
		e = ask_block(http, numbers[i], end_ns, &sum, err);
		if (e)
			break;
		/* A block that was traced in part would have its time, but not all of its gas. */
		copy(ret, &sum);
		vec_push(&ret->blocks, numbers[i]);
	}
	opcodegas_done(&sum);
	http_close(http);
	return ret->blocks.n ? 0 : e ? e : err_set(err, ENODATA, "there is no block to trace");
}
