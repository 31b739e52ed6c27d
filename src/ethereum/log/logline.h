/*
 * logline.h - a line of a log, however it was written, as the plain line that the rules of clients.c are about.
 *
 * Colours are removed. A JSON object becomes its message, then its members:
 *
 *	{"t":"…","msg":"Imported new chain segment","number":"7"}	Imported new chain segment t=… number=7
 *	{"fields":{"message":"Slow block","block.number":7}}		Slow block block.number=7
 *	{"msg":"Slow block","block":{"number":7}}			Slow block block.number=7
 *	{"MESSAGE":"Block added","F_NUMBER":"7","_PID":"1"}		Block added number=7	(systemd's journal)
 *	{"log":"number=7\n","stream":"stdout"}				number=7	(a container)
 *
 * The object may stand after other text, its message may be such an object again, and it may be escaped as a string.
 * Of an object that is cut, the members that are whole are taken, and a space follows each: a number at the very end of
 * a line may have been cut.
 */
#pragma once

#include <stddef.h>

struct buf;

/* Appends the line as it is, but for its colours. */
void logline_uncoloured(struct buf *out, const char *line, size_t n);
/* Appends the plain line to out, which holds no newline and no NUL then. line need not end in a NUL. */
void logline_plain(struct buf *out, const char *line, size_t n);
