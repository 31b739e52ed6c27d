/*
 * collectors.h - the list of collectors, for user space and for the BPF programs.
 *
 * A line here makes a collector: collector_NAME (NAME.c) enters the table of collector.c, and COLLECTOR_NAME is
 * its index there, the index of its state in a session, and the owner of its records (RECORD_OF). Collectors start
 * and stop in this order, and help lists them in it.
 */
#pragma once

#define COLLECTORS(X) \
	X(wait) \
	X(cpu) \
	X(io) \
	X(fault) \
	X(alloc) \
	X(heap) \
	X(task) \
	X(mem) \
	X(hw) \
	X(goroutine) \
	X(span) \
	X(marker) \
	X(event)

#define COLLECTOR_ENUM(name) COLLECTOR_##name,
enum collector_id { COLLECTORS(COLLECTOR_ENUM) COLLECTOR_COUNT };
#undef COLLECTOR_ENUM

/*
 * The kind of a record, its first 4 bytes: whose it is, and which of the owner's own, up to 127.
 *
 *	enum { RECORD_NAPS = RECORD_OF(COLLECTOR_nap, 1) };
 *
 * A collector whose records are plain samples (struct shared_record) adds RECORD_FRAMES: the engine then takes the
 * frames before the collector gets the record.
 */
#define RECORD_OF(collector, n) (((collector) + 1) << 8 | (n))
#define RECORD_OWNER(kind)      ((kind) >> 8) /* 0: the engine, else 1 + enum collector_id */
#define RECORD_FRAMES           0x80
