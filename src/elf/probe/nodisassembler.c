/* nodisassembler.c - the build without libcapstone. */
#include <errno.h>

#include "base/err.h"
#include "elf/probe/disassemble.h"
#include "elf/probe/probesites.h"

bool disassemble_there(void)
{
	return false;
}

int disassemble_function(const struct symbols_files *files, uint64_t address, struct buf *out,
			 struct err *err)
{
	return err_set(err, ENOTSUP,
		       "this gasflame was built without libcapstone: addresses alone are shown");
}

int probesites_read(const struct elf *elf, struct probesites *d, uint64_t cold, uint64_t cold_size, bool may_be_future,
		    struct err *err)
{
	return err_set(err, ENOTSUP, "this gasflame was built without libcapstone, which finds where functions end");
}
