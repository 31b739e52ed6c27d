/*
 * block.h - a block of a chain, as logs, nodes, the program itself and marks of a profile tell of it.
 *
 * Some logs have a line for many blocks at once. In a profile such a group is one mark with the number of its last
 * block, and its name says which blocks it is: "blocks 24443105 to 24443168".
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_NUMBER = 1, BLOCK_GAS = 2, BLOCK_TRANSACTIONS = 4 };

struct block {
	uint64_t number, gas, transactions; /* 0 where not known */
	uint32_t known;                     /* which of them are: the bits above */
};

enum { BLOCK_GROUP_NAME = 64 };

static inline void block_group_name(char ret[BLOCK_GROUP_NAME], uint64_t first, uint64_t last)
{
	snprintf(ret, BLOCK_GROUP_NAME, "blocks %llu to %llu", (unsigned long long)first, (unsigned long long)last);
}

/* How many blocks a mark of that name stands for: 1, if it is no group's. */
static inline uint64_t block_group_count(const char *name)
{
	uint64_t first, last = 0;
	char *rest;

	if (strncmp(name, "blocks ", 7))
		return 1;
	first = strtoull(name + 7, &rest, 10);
	if (!strncmp(rest, " to ", 4))
		last = strtoull(rest + 4, &rest, 10);
	return !*rest && last > first ? last - first + 1 : 1;
}
