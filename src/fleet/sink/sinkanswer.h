/*
 * sinkanswer.h - reads what servers say in answers that look good: any server may have written them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* ExportProfilesServiceResponse of OTLP. */
struct sinkanswer_partial {
	int64_t rejected;    /* profiles; 0: it took all of them */
	const char *message; /* into the answer, without a NUL; "" = none */
	size_t message_n;
};

/* 0, or -EBADMSG: it is no such message. */
int sinkanswer_partial(const char *text, size_t n, struct sinkanswer_partial *ret);
