#include "base/file/library.h"

#include <dlfcn.h>
#include <errno.h>

#include "base/err.h"

#ifdef GASFLAME_STATIC
int library_load(const char *file, const struct library_function *functions, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++)
		*functions[i].at = functions[i].linked;
	return 0;
}
#else
int library_load(const char *file, const struct library_function *functions, size_t count, struct err *err)
{
	void *library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);

	if (!library)
		return err_set(err, ELIBACC, "%s cannot be loaded, which this needs: %s", file, dlerror());
	for (size_t i = 0; i < count; i++) {
		*functions[i].at = dlsym(library, functions[i].name);
		if (!*functions[i].at)
			return err_set(err, ELIBACC, "%s has no %s: it is older than this program needs", file, functions[i].name);
	}
	return 0;
}
#endif
