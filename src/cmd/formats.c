/*
 * formats.c - `gasflame formats`: the files of other tools that are read and written, from the tables of import and export.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text/plain.h"
#include "cmd/cmd.h"
#include "export/export.h"
#include "import/import.h"

static void put_json(struct buf *out)
{
	struct json j = json_begin(out);

	json_open_object(&j, NULL);
	json_open_array(&j, "read");
	for (const struct import_format *f = import_formats; f->name; f++) {
		json_open_row(&j, 1);
		json_put_string(&j, "name", f->name);
		json_put_string(&j, "describe", f->describe);
		json_close(&j);
	}
	json_close(&j);
	json_open_array(&j, "written");
	for (const struct export_format *f = export_formats; f->name; f++) {
		json_open_row(&j, 1);
		json_put_string(&j, "name", f->name);
		json_put_string(&j, "extension", f->extension);
		json_put_bool(&j, "binary", f->flags & EXPORT_BINARY);
		json_put_bool(&j, "diff", f->diff != NULL);
		json_put_string(&j, "describe", f->describe);
		json_close(&j);
	}
	json_close(&j);
	json_end_line(&j);
}

static void put_text(struct buf *out)
{
	buf_puts(out, "Read by every command that takes a capture, packed by gzip, zstd or xz or not:\n");
	buf_printf(out, "  %-13s %s\n", "gasflame", "captures that record made");
	for (const struct import_format *f = import_formats; f->name; f++)
		buf_printf(out, "  %-13s %s\n", f->name, f->describe);
	buf_puts(out, "\nWritten by report --format NAME, or by the ending of -o FILE:\n");
	for (const struct export_format *f = export_formats; f->name; f++)
		buf_printf(out, "  %-13s %-17s %s\n", f->name, f->extension, f->describe);
}

static int formats(const struct command *c, int argc, char **argv)
{
	bool json = false;
	const struct option_spec options[] = {
		{ 0, "json", OPTION_FLAG, &json, .help = "the same as JSON: read and written, an array each" },
		{ 0 },
	};
	_cleanup_(buf_done) struct buf out = { 0 };
	int first = options_parse(c, options, argc, argv), r;

	if (first < 0)
		return -first - 1;
	if (first < argc) {
		log_error("formats takes no file: gasflame report shows what is in %s", argv[first]);
		return EXIT_USAGE;
	}
	(json ? put_json : put_text)(&out);
	r = plain_put(out.data, out.n);
	if (!r && !fflush(stdout))
		return EXIT_OK;
	log_error("cannot write the list: %s", strerror(r ? -r : errno));
	return EXIT_ERROR;
}

const struct command command_formats = {
	.name = "formats",
	.summary = "the files of other tools that are read and written",
	.usage = "[options]",
	.describe = "Lists the formats that report, diff, top, serve, query, import and all others read, told apart by their content, and "
		    "those that report --format writes.",
	.example = "gasflame formats\n"
		   "gasflame formats --json | jq -r '.read[].name'",
	.run = formats,
};
