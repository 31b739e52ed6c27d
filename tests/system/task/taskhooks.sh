#!/bin/bash
# taskhooks: hooks in the vtables of a process: each call and its time is seen, and whatever happens, all is put back.
. "$(dirname "$0")/../lib.sh"
need_root
hooks=$(dirname "$TRUTH")/taskhooks
program=$TRUTH/truth-vtables

relay timeout 120 "$hooks" truth "$program" 200
relay timeout 120 "$hooks" life "$program"
relay timeout 120 "$hooks" both "$program"
relay timeout 120 "$hooks" cycle "$program" 20
relay timeout 120 "$hooks" kill "$program" 30
relay timeout 120 "$hooks" die "$program" 10
relay timeout 120 "$hooks" hostile "$program" 4
finish
