#!/bin/bash
# inject: a sample of the faults of make inject. Which ones depends on the build alone.
. "$(dirname "$0")/../lib.sh"
need_root
here=$(dirname "$0")
case $here in /*) ;; *) here=$OLDPWD/$here ;; esac
INJECT=$(dirname "$TRUTH")/inject.so
export INJECT
[ -e "$INJECT" ] || skip_all "needs syscall user dispatch, which only x86-64 has"

relay python3 "$here/inject.py" --quick
finish
