/*
 * sql.h - the only two ways in which text of others reaches a store: as a literal of a statement, escaped by sql_literal(), or
 * as a field of rows in RowBinary, which has lengths and no escapes.
 *
 *	sql_literal(&query, "it's");		// 'it\'s'
 *
 *	sql_row_u64(&rows, 7);			// the fields of a row, in the order of the columns; nothing between them
 *	sql_row_string(&rows, name);
 *	sql_row_count(&rows, 2);		// an array: how many, then each
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buf;

/* s in quotes. Any bytes are allowed in it; _n also NUL. */
void sql_literal(struct buf *b, const char *s);
void sql_literal_n(struct buf *b, const char *s, size_t n);
/* A pattern of LIKE for a glob, in which * stands for any bytes and ? for one character. */
void sql_like(struct buf *b, const char *glob);
/* The name of a database, a table or a cluster, in back quotes. */
void sql_identifier(struct buf *b, const char *s);

void sql_row_u8(struct buf *b, uint8_t v);
void sql_row_u16(struct buf *b, uint16_t v); /* also Date: days since 1970 */
void sql_row_u32(struct buf *b, uint32_t v); /* also DateTime: seconds since 1970 */
void sql_row_u64(struct buf *b, uint64_t v);
void sql_row_i64(struct buf *b, int64_t v);
void sql_row_string(struct buf *b, const char *s);
void sql_row_count(struct buf *b, size_t n);
