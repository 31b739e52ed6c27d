#include "collect/inject/instructions.h"

#include <string.h>

/* syscall; int3 */
const struct instructions instructions_x86 = { .call = { 0x0f, 0x05 }, .trap = { 0xcc }, .call_bytes = 2, .trap_bytes = 1, .step = 1 };
/* svc #0; brk #0 */
const struct instructions instructions_arm64 = {
	.call = { 0x01, 0x00, 0x00, 0xd4 }, .trap = { 0x00, 0x00, 0x20, 0xd4 }, .call_bytes = 4, .trap_bytes = 4, .step = 4,
};

bool instructions_is_call(const struct instructions *i, uint64_t code)
{
	return !memcmp(&code, i->call, i->call_bytes);
}

size_t instructions_find_call(const struct instructions *i, const uint8_t *code, size_t n)
{
	for (size_t at = 0; at + i->call_bytes <= n; at += i->step)
		if (!memcmp(code + at, i->call, i->call_bytes))
			return at;
	return n;
}
