#include "ethereum/rpccall.h"

#include <ctype.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "net/http.h"

void rpccall_json_freep(json_t **j)
{
	json_decref(*j);
}

void rpccall_copy_plain(char *to, size_t size, const char *from)
{
	size_t n = 0;

	for (; from && *from && n + 1 < size; from++)
		to[n++] = iscntrl((unsigned char)*from) ? ' ' : *from;
	to[n] = 0;
}

static void begin(struct rpccall *c, const char *method)
{
	static atomic_uint_fast64_t last;

	*c = (struct rpccall){ .id = ++last };
	c->params = json_begin(&c->body);
	json_open_object(&c->params, NULL);
	json_put_string(&c->params, "jsonrpc", "2.0");
	json_put_uint(&c->params, "id", c->id);
	json_put_string(&c->params, "method", method);
}

void rpccall_begin(struct rpccall *c, const char *method)
{
	begin(c, method);
	json_open_array(&c->params, "params");
}

void rpccall_begin_raw(struct rpccall *c, const char *method, const char *params, size_t n)
{
	begin(c, method);
	json_put_raw(&c->params, "params", params, n);
}

void rpccall_end(struct rpccall *c)
{
	while (c->params.depth)
		json_close(&c->params);
}

void rpccall_done(struct rpccall *c)
{
	buf_done(&c->body);
}

/* Says why the text is no JSON: each of these has a cause that the user can do something about. */
static int not_json(const char *text, size_t n, const json_error_t *why, struct err *err)
{
	size_t blank = 0;

	while (blank < n && isspace((unsigned char)text[blank]))
		blank++;
	if (blank == n)
		return err_set(err, EPROTO, "its answer is empty");
	if (text[blank] == '<')
		return err_set(err, EPROTO, "it answers with a page, not with JSON-RPC: is another server at this address?");
	if (json_error_code(why) == json_error_premature_end_of_input)
		return err_set(err, EPROTO, "its answer ends in the middle, after %zu bytes", n);
	return err_set(err, EPROTO, "its answer is not JSON-RPC");
}

static int check_id(const json_t *answer, uint64_t id, struct err *err)
{
	const json_t *got = json_object_get(answer, "id");

	/* An error may have none: the node could not read the request. */
	if (json_is_null(got) && json_object_get(answer, "error"))
		return 0;
	if (json_is_number(got) && json_number_value(got) == (double)id)
		return 0;
	return err_set(err, EPROTO, "it answers another request than the one it was sent (its id is not %llu)",
		       (unsigned long long)id);
}

/* Larger integers than jansson has, in members that are not needed, are accepted as doubles. */
int rpccall_parse(const char *text, size_t n, uint64_t id, json_t **ret, long long *ret_code, struct err *err)
{
	json_error_t why = { 0 };
	_cleanup_json_ json_t *answer = n ? json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &why) : NULL;
	const json_t *error = json_object_get(answer, "error"), *code = json_object_get(error, "code");
	char said[256];
	int e;

	if (ret_code)
		*ret_code = 0;
	if (!answer)
		return not_json(text, n, &why, err);
	if (!json_is_object(answer))
		return err_set(err, EPROTO, "its answer is not JSON-RPC");
	e = check_id(answer, id, err);
	if (e)
		return e;
	if (error && !json_is_null(error)) {
		const char *message = json_string_value(json_object_get(error, "message"));
		double number = json_number_value(code);

		rpccall_copy_plain(said, sizeof(said), message ? message : "an error");
		if (!(number > -1e15 && number < 1e15))
			number = 0;
		if (ret_code)
			*ret_code = (long long)number;
		return err_set(err, EREMOTEIO, "%s (%lld)", said, (long long)number);
	}
	*ret = json_object_get(answer, "result");
	json_incref(*ret);
	return *ret ? 0 : err_set(err, EPROTO, "its answer has no result");
}

int rpccall_ask(struct rpccall *c, struct http *h, const struct http_question *how, json_t **ret, struct err *err)
{
	struct http_question q = *how;
	struct http_answer a = { 0 };
	int e;

	rpccall_end(c);
	q.body = c->body.data;
	q.n = c->body.n;
	c->code = 0;
	e = http_ask(h, &q, &a, err);
	c->ns = a.ns;
	return e ? e : rpccall_parse(a.text, a.n, c->id, ret, &c->code, err);
}
