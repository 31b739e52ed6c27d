/*
 * built.h - the version of the tree that this program was built from (base/version.h); built.c is made by the build.
 */
#pragma once

extern const char built_version[];
