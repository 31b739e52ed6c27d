/*
 * version.h - which gasflame this is: "0.1.0", or "0.1.0-dev.20261118120501.g1dc118a4" between releases (tools/version).
 *
 * main() sets it, from a file of its own that each commit changes: nothing else, and no test, is built anew for that.
 */
#pragma once

extern const char *gasflame_version; /* "test" in a program that does not set it */
