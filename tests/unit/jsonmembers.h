/* jsonmembers.h - what a part of a report puts into its JSON object, for tests. */
#pragma once

#include "base/buf.h"
#include "base/json.h"

/* Appends {MEMBERS} to the buffer, where call puts the members into j. */
#define put_members(buf, call)                   \
	do {                                     \
		struct json j = json_begin(buf); \
						 \
		json_open_object(&j, NULL);      \
		call;                            \
		json_end(&j);                    \
	} while (0)
