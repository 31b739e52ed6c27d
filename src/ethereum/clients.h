/*
 * clients.h - the Ethereum clients whose logs are understood: their lines, as tables for log/blocklog.c.
 *
 * A new client is a few lines in clients.c, and a log in tests/golden/logs (docs/howto/add-client.md).
 */
#pragma once

#include <stdbool.h>

enum { CLIENT_PATTERNS = 8 };

/* The role of a line for its block. */
enum client_role {
	LINE_BEGIN,  /* a block begins: the one of that number, or the next one that is done */
	LINE_HINT,   /* the next block begins not before the last of these lines, where nothing else says so */
	LINE_BEFORE, /* tells the gas of a transaction of the next block, or their sum so far */
	LINE_COUNT,  /* is a transaction of the next block that is done */
	LINE_DONE,   /* a block is done; the first pattern must fit */
	LINE_AFTER,  /* tells more about the last block */
	LINE_CLOSE,  /* the same, and nothing follows */
	LINE_OTHER,  /* looks like the line of a block, and is none */
	LINE_DRESS,  /* not a line, but how this client writes one: whose it is, where several have the same */
	LINE_SUMS,   /* this version's lines before a block have the sum of gas so far, */
	LINE_EACH,   /* and this one's the gas of each transaction */
};

struct client_rule {
	const char *client; /* NULL: of several clients; such a line does not tell whose log it is */
	enum client_role role;
	const char *needle;                    /* a line without it is not meant */
	const char *patterns[CLIENT_PATTERNS]; /* as in blocklog.h; each is looked for by itself: order and presence vary */
	bool says_all;   /* the lines before this one say all about the block: without them it is empty */
	bool vague;      /* the needle is in other lines, too: one that does not fit is not a line that was cut */
	bool insertion;  /* the duration of a block that was built here is its insertion only */
};

struct client {
	const char *name, *rules; /* op-reth has the rules of reth */
	bool verified;            /* the lines were captured from the client itself */
};

extern const struct client_rule client_rules[]; /* ends in one without a needle */
extern const struct client clients[];           /* ends in one without a name */

/* The name of the client whose rules these are, of several the first; the same for rules that are not in the table. */
const char *client_of_rules(const char *rules);
/* NULL: there is none of that name. */
const struct client *client_find(const char *name);
/* Returns "reth, geth": the names of the verified clients, or of the others. Caller frees. */
char *client_names(bool verified);
