#include "export/section/section.h"

#include <stddef.h>

#define SECTION_POINTER(name) &section_##name,
const struct section *const sections[] = { SECTION_LIST(SECTION_POINTER) NULL };
