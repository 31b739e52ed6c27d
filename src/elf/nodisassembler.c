/* nodisassembler.c - the build without libcapstone. */
#include <errno.h>

#include "base/err.h"
#include "elf/disassemble.h"

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
