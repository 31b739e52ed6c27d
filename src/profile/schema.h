/*
 * schema.h - the tables and views of a capture, as SQL (docs/capture-format.md).
 *
 * A change that an older gasflame could not read raises SCHEMA_VERSION; the older
 * ones are still read (captureread.c).
 */
#pragma once

#define SCHEMA_VERSION        4
#define SCHEMA_APPLICATION_ID 0x47617346 /* "GasF", at offset 68 of the file */

extern const char schema_tables[];
extern const char schema_views[];
