/*
 * block.h - a block of a chain, as logs, nodes, the program itself and marks of a profile tell of it.
 */
#pragma once

#include <stdint.h>

enum { BLOCK_NUMBER = 1, BLOCK_GAS = 2, BLOCK_TRANSACTIONS = 4 };

struct block {
	uint64_t number, gas, transactions; /* 0 where not known */
	uint32_t known;                     /* which of them are: the bits above */
};
