/*
 * blockpartstext.h - what blocks were made of by the node's own spans: lines for people, members for programs.
 */
#pragma once

struct blockparts;
struct block_row;
struct blocks;
struct buf;
struct json;

/* b may be NULL. Puts nothing where there are no spans. */
void blockpartstext_put_one(const struct blockparts *b, const struct block_row *r, struct buf *out);
void blockpartstext_put_all(const struct blockparts *b, const struct blocks *blocks, struct buf *out);
/* The member "spans" of a row. */
void blockpartsjson_put(const struct blockparts *b, const struct block_row *r, struct json *j);
