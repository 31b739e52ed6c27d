#include "analyze/tree/stdnames.h"

#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"

static const char *const cpp_spaces[] = { "std::", "__gnu_cxx::", "__cxxabiv1::", "__gnu_debug::" };

/* Packages, and for those with more below them (`crypto/sha256`) the first element of the path. */
static const char *const go_packages[] = {
	"archive", "bufio",   "bytes",   "cmp",      "compress", "container", "context", "crypto", "database", "debug",
	"embed",   "encoding", "errors", "expvar",   "flag",     "fmt",       "go",      "hash",   "html",     "image",
	"index",   "internal", "io",     "iter",     "log",      "maps",      "math",    "mime",   "net",      "os",
	"path",    "plugin",  "reflect", "regexp",   "runtime",  "slices",    "sort",    "strconv", "strings", "structs",
	"sync",    "syscall", "testing", "text",     "time",     "unicode",   "unique",  "unsafe", "vendor",   "weak",
};

/* In assembler, without a package, and what the linker makes. */
static const char *const go_starts[] = { "type:",       "type..",     "go:",       "_rt0_",     "_cgo_",         "x_cgo_",  "memeqbody",
					 "cmpbody",     "countbody",  "gogo",      "callRet",   "indexbytebody", "setg_gcc",
					 "aeshashbody", "gosave_systemstack_switch", "debugCall", "crosscall" };

/* Where the path of the function begins: behind the last space that is in no brackets and before its arguments. A space may
 * be part of the name: operator bool. */
static const char *cpp_path(const char *name)
{
	const char *path = name;
	int depth = 0;

	for (const char *s = name; *s; s++) {
		if (depth == 0 && str_starts(s, "operator"))
			break;
		if (depth == 0 && *s == '(' && !str_starts(s, "(anonymous"))
			break;
		if (*s == '<' || *s == '(')
			depth++;
		else if ((*s == '>' && (s == name || s[-1] != '-')) || *s == ')')
			depth -= depth > 0;
		else if (*s == ' ' && depth == 0)
			path = s + 1;
	}
	return path + strspn(path, "*&");
}

bool stdnames_is_cpp(const char *name)
{
	const char *path = cpp_path(name);

	for (size_t i = 0; i < ARRAY_LEN(cpp_spaces); i++)
		if (str_starts(path, cpp_spaces[i]))
			return true;
	return false;
}

bool stdnames_is_go(const char *name)
{
	size_t path = strcspn(name, "([{ "), n = strcspn(name, "./");
	const char *slash = memchr(name, '/', path);

	for (size_t i = 0; i < ARRAY_LEN(go_starts); i++)
		if (str_starts(name, go_starts[i]))
			return true;
	/* A dot in the first element: it is a host, and what is there is no part of the language. */
	if (n >= path || (slash && memchr(name, '.', slash - name)))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(go_packages); i++)
		if (strlen(go_packages[i]) == n && !memcmp(name, go_packages[i], n))
			return true;
	return false;
}
