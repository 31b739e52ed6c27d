#include "base/version.h"

const char *gasflame_version = "test";
