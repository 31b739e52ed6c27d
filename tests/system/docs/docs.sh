#!/bin/bash
# docs.sh - what the documents say of files, commands and options is there (docs.py).
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
relay python3 "$here/docs.py" "$(cd "$here/../../.." && pwd)" "$GASFLAME"
finish
