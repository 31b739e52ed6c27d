#!/bin/bash
# gasflame serve: who may ask, what is answered, what bad and slow clients do to it, captures that are replaced.
here=$(cd "$(dirname "$0")/../../browser" && pwd) || exit 1
. "$(dirname "$0")/../lib.sh"

output=$(python3 "$here/serve_client.py" "$GASFLAME" 2>&1)
status=$?
printf '%s\n' "$output"
[ $status -eq 0 ] || [ $status -eq 77 ] || printf '%s\n' "$output" | grep -q '^not ok' || echo "not ok - serve: the client broke"
exit $status
