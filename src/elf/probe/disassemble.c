#include "elf/probe/disassemble.h"

#include <capstone.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "elf/file.h"
#include "elf/symbols.h"
#include "elf/symtab.h"

enum { MAX_BYTES = 256 << 10, UNKNOWN_BYTES = 512 };

bool disassemble_there(void)
{
	return true;
}

static int open_machine(uint16_t machine, csh *ret, struct err *err)
{
	cs_err e = machine == EM_X86_64 ? cs_open(CS_ARCH_X86, CS_MODE_64, ret) :
		   machine == EM_AARCH64 ? cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, ret) : CS_ERR_ARCH;

	if (e != CS_ERR_OK)
		return err_set(err, ENOTSUP, "its instructions cannot be read: %s", cs_strerror(e));
	/* Bytes that are no instruction are shown as data, and disassembly goes on after them. */
	cs_option(*ret, CS_OPT_SKIPDATA, CS_OPT_ON);
	return 0;
}

static void put(struct buf *out, const cs_insn *in)
{
	struct disassemble_entry e = { .address = in->address, .size = in->size };
	char text[sizeof(in->mnemonic) + sizeof(in->op_str) + 2];
	int n = snprintf(text, sizeof(text), *in->op_str ? "%-7s %s" : "%s", in->mnemonic, in->op_str);

	e.text_size = MIN((size_t)MAX(n, 0), sizeof(text) - 1);
	buf_add(out, &e, sizeof(e));
	buf_add(out, text, e.text_size);
}

int disassemble_function(const struct symbols_files *files, uint64_t address, struct buf *out,
			 struct err *err)
{
	struct symtab *t = symtab_new(files);
	uint64_t start = address, end = address + UNKNOWN_BYTES, n;
	const uint8_t *code;
	cs_insn *in;
	csh handle;
	int r;

	if (symtab_range(t, address, &start, &end) && end - start > MAX_BYTES)
		end = start + MAX_BYTES;
	symtab_free(t);
	n = end - start;
	code = elf_code_at(files->main, start, &n);
	if (!code)
		return err_set(err, ENOENT, "the file has no code at %#llx", (unsigned long long)start);
	r = open_machine(files->main->machine, &handle, err);
	if (r < 0)
		return r;
	in = cs_malloc(handle);
	for (size_t left = n; left && cs_disasm_iter(handle, &code, &left, &start, in);)
		put(out, in);
	cs_free(in, 1);
	cs_close(&handle);
	return 0;
}
