#include "ethereum/engine/requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/codec/sha256.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "ethereum/codec/hex.h"
#include "ethereum/rpccall.h"
#include "net/http.h"

enum { FILE_BYTES = 256 << 20, ANSWER_BYTES = 64 << 20, ANSWER_MS = 10000, SLOT_SECONDS = 12 };

struct requests {
	json_t *by_hash;  /* of the file: lists by the hashes of blocks */
	char *beacon;     /* an address without a slash at its end; NULL = none */
	uint64_t genesis, slot_seconds; /* of the consensus client; 0 = not asked yet */
};

/* --- lists --- */

/* sha256 over the sha256 of each request, in the order of their types. */
bool requests_match(const json_t *list, const char *hash)
{
	_cleanup_(buf_done) struct buf sums = { 0 }, wanted = { 0 };
	uint8_t sum[SHA256_BYTES];
	int last = -1;

	if (!json_is_array(list) || !hex_take(hash, false, &wanted) || wanted.n != sizeof(sum))
		return false;
	for (size_t i = 0; i < json_array_size(list); i++) {
		_cleanup_(buf_done) struct buf one = { 0 };

		if (!hex_take(json_string_value(json_array_get(list, i)), false, &one) || one.n < 2 || (uint8_t)one.data[0] <= last)
			return false;
		last = (uint8_t)one.data[0];
		sha256(one.data, one.n, sum);
		buf_add(&sums, sum, sizeof(sum));
	}
	sha256(sums.n ? sums.data : "", sums.n, sum);
	return !memcmp(wanted.data, sum, sizeof(sum));
}

/* The members of a request in SSZ, all of fixed size; 8 bytes are a number, written in decimal. */
struct member {
	const char *name;
	size_t bytes;
};

static const struct {
	const char *name;
	struct member members[6];
} kinds[] = { /* by their type */
	{ "deposits", { { "pubkey", 48 }, { "withdrawal_credentials", 32 }, { "amount", 8 }, { "signature", 96 }, { "index", 8 } } },
	{ "withdrawals", { { "source_address", 20 }, { "validator_pubkey", 48 }, { "amount", 8 } } },
	{ "consolidations", { { "source_address", 20 }, { "source_pubkey", 48 }, { "target_pubkey", 48 } } },
};

static bool put_member(struct buf *out, const struct member *m, const char *value)
{
	uint64_t number;

	if (m->bytes != 8)
		return hex_is(value, m->bytes) && hex_take(value, false, out);
	if (!value || str_parse_uint(value, 0, UINT64_MAX, &number))
		return false;
	for (unsigned i = 0; i < 8; i++)
		buf_putc(out, number >> 8 * i);
	return true;
}

static bool put_kind(json_t *list, size_t type, const json_t *requests)
{
	_cleanup_(buf_done) struct buf bytes = { 0 }, text = { 0 };

	if (!json_array_size(requests))
		return true;
	buf_putc(&bytes, type);
	for (size_t i = 0; i < json_array_size(requests); i++)
		for (const struct member *m = kinds[type].members; m->name; m++)
			if (!put_member(&bytes, m, json_string_value(json_object_get(json_array_get(requests, i), m->name))))
				return false;
	hex_put(&text, bytes.data, bytes.n);
	return !json_array_append_new(list, json_string(text.data));
}

json_t *requests_encode(const json_t *execution_requests)
{
	json_t *list = json_array();

	for (size_t type = 0; type < ARRAY_LEN(kinds); type++)
		if (!put_kind(list, type, json_object_get(execution_requests, kinds[type].name))) {
			json_decref(list);
			return NULL;
		}
	return list;
}

/* --- the file --- */

static int take_line(struct requests *r, const char *line, size_t n)
{
	_cleanup_json_ json_t *j = json_loadb(line, n, JSON_DECODE_INT_AS_REAL, NULL);
	const char *hash = json_string_value(json_object_get(j, "hash"));
	json_t *list = json_object_get(j, "executionRequests");

	if (!hex_is(hash, 32) || !json_is_array(list))
		return -EBADMSG;
	return json_object_set(r->by_hash, hash, list) ? -EBADMSG : 0;
}

static int read_file(struct requests *r, const char *path, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	unsigned long long number = 0;
	size_t size;
	int e = fd_read_path(path, FILE_BYTES, &text, &size);

	if (e)
		return err_errno(err, -e, "cannot read %s", path);
	for (const char *line = text, *end = text + size; line < end; line++) {
		const char *newline = memchr(line, '\n', end - line);
		size_t n = (newline ? newline : end) - line;

		number++;
		if (n && take_line(r, line, n))
			return err_set(err, EBADMSG, "%s: line %llu has no \"hash\" of a block, or no \"executionRequests\" of it", path,
				       number);
		line += n;
	}
	return 0;
}

/* --- the consensus client --- */

static int get(struct requests *r, const char *path, json_t **ret, struct err *err)
{
	const struct http_limits limits = { .bytes = ANSWER_BYTES, .total_ms = ANSWER_MS };
	_cleanup_free_ char *url = mem_printf("%s%s", r->beacon, path), *text = NULL;
	_cleanup_json_ json_t *answer = NULL;
	size_t n;
	int e = http_get_text(url, &limits, &text, &n, err);

	if (e)
		return e;
	answer = json_loadb(text, n, JSON_DECODE_INT_AS_REAL, NULL);
	*ret = json_incref(json_object_get(answer, "data"));
	return *ret ? 0 : err_set(err, EPROTO, "%s%s: its answer is not that of a consensus client", r->beacon, path);
}

static int get_number(struct requests *r, const char *path, const char *name, uint64_t *ret, struct err *err)
{
	_cleanup_json_ json_t *data = NULL;
	const char *text;
	int e = get(r, path, &data, err);

	if (e)
		return e;
	text = json_string_value(json_object_get(data, name));
	if (!text || str_parse_uint(text, 1, INT64_MAX, ret))
		return err_set(err, EPROTO, "%s%s: its answer has no %s", r->beacon, path, name);
	return 0;
}

/* A block is found by its slot, which its time tells: clients do not look for the hash of a payload. */
static int find_slot(struct requests *r, const json_t *block, uint64_t *ret, struct err *err)
{
	uint64_t time;
	int e = 0;

	if (hex_number(json_string_value(json_object_get(block, "slotNumber")), ret))
		return 0;
	if (!r->genesis)
		e = get_number(r, "/eth/v1/beacon/genesis", "genesis_time", &r->genesis, err);
	if (!e && !r->slot_seconds && get_number(r, "/eth/v1/config/spec", "SECONDS_PER_SLOT", &r->slot_seconds, NULL))
		r->slot_seconds = SLOT_SECONDS;
	if (e)
		return e;
	if (!hex_number(json_string_value(json_object_get(block, "timestamp")), &time) || time < r->genesis)
		return err_set(err, EBADMSG, "the block is older than the first one of %s: it is another chain", r->beacon);
	*ret = (time - r->genesis) / r->slot_seconds;
	return 0;
}

/* Up to Fulu the payload is in the block; from Gloas on, which goes with Amsterdam, it has an envelope of its own. */
static int get_payload(struct requests *r, const json_t *block, uint64_t slot, json_t **ret, const char **ret_hash, struct err *err)
{
	bool gloas = json_object_get(block, "slotNumber") != NULL;
	_cleanup_free_ char *path = mem_printf("/eth/v%d/beacon/%s/%llu", gloas ? 1 : 2,
					       gloas ? "execution_payload_envelopes" : "blocks", (unsigned long long)slot);
	_cleanup_json_ json_t *data = NULL;
	json_t *holder;
	int e = get(r, path, &data, err);

	if (e)
		return e;
	holder = json_object_get(data, "message");
	if (!gloas)
		holder = json_object_get(holder, "body");
	*ret_hash = json_string_value(json_object_get(json_object_get(holder, gloas ? "payload" : "execution_payload"), "block_hash"));
	*ret = json_incref(holder);
	return 0;
}

static int ask_beacon(struct requests *r, const json_t *block, json_t **ret, struct err *err)
{
	const char *hash = json_string_value(json_object_get(block, "hash")), *got = NULL;
	_cleanup_json_ json_t *holder = NULL;
	uint64_t slot;
	int e = find_slot(r, block, &slot, err);

	if (!e)
		e = get_payload(r, block, slot, &holder, &got, err);
	if (e)
		return e;
	if (!got || !hash || strcasecmp(got, hash))
		return err_set(err, EBADMSG, "%s has another payload in slot %llu: it is another chain", r->beacon,
			       (unsigned long long)slot);
	*ret = requests_encode(json_object_get(holder, "execution_requests"));
	return *ret ? 0 : err_set(err, EPROTO, "%s: the requests in slot %llu are malformed", r->beacon, (unsigned long long)slot);
}

int requests_find(struct requests *r, const json_t *block, json_t **ret, struct err *err)
{
	const char *hash = json_string_value(json_object_get(block, "hash"));
	json_t *list = hash ? json_object_get(r->by_hash, hash) : NULL;

	*ret = json_incref(list);
	return list || !r->beacon ? 0 : ask_beacon(r, block, ret, err);
}

int requests_open(const char *file, const char *beacon, struct requests **ret, struct err *err)
{
	struct requests *r = mem_alloc(sizeof(*r));
	int e = 0;

	r->by_hash = json_object();
	if (beacon) {
		size_t n = strlen(beacon);

		while (n && beacon[n - 1] == '/')
			n--;
		r->beacon = mem_strndup(beacon, n);
		if (!str_starts(beacon, "http://") && !str_starts(beacon, "https://"))
			e = err_set(err, EINVAL, "'%s' is no address of a consensus client: --beacon http://127.0.0.1:5052", beacon);
	}
	if (!e && file)
		e = read_file(r, file, err);
	if (e) {
		requests_close(r);
		return e;
	}
	*ret = r;
	return 0;
}

void requests_close(struct requests *r)
{
	if (!r)
		return;
	json_decref(r->by_hash);
	free(r->beacon);
	free(r);
}
