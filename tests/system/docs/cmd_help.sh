#!/bin/bash
# The help and the manual of every command, and what is said of a wrong command line.
. "$(dirname "$0")/../lib.sh"

# is NAME WANTED GOT
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "wanted: $2
got: $3"; fi; }
has() { case $3 in *"$2"*) ok "$1" ;; *) not_ok "$1" "no \"$2\" in: $3" ;; esac; }

unset COLUMNS
list=$("$GASFLAME")
is "alone it lists its commands, as help and --help do" "$list$list" "$("$GASFLAME" help)$("$GASFLAME" --help)"
has "there is a quick start" "Quick start:" "$list"
has "--version" "gasflame " "$("$GASFLAME" --version)"

commands=$(printf '%s\n' "$list" | sed -n '/^Quick start/q; s/^  \([a-z]\+\) .*/\1/p')
[ -n "$commands" ] || not_ok "commands are listed"
for c in $commands; do
	help=$("$GASFLAME" "$c" --help) || not_ok "$c --help succeeds"
	is "help $c is $c --help" "$help" "$("$GASFLAME" help "$c")"
	has "$c --help has an example" "Example:
  " "$help"
	is "$c --help fits 80 columns" "" "$(printf '%s\n' "$help" | sed -n '/^Example:/q; /^.\{81,\}/p')"
	page=$("$GASFLAME" help --man "$c") || not_ok "$c has a page in the manual"
	missing=
	for option in $(printf '%s\n' "$help" | sed -n 's/^ \{2,6\}\(-., \)\?--\([a-z-]\+\).*/\2/p'); do
		case $page in *"\\-\\-${option//-/\\-}"*) ;; *) missing="$missing --$option" ;; esac
	done
	is "the manual of $c has every option" "" "$missing"
	if command -v groff >/dev/null; then
		is "the manual of $c is good roff" "" "$(printf '%s\n' "$page" | groff -man -ww -Tutf8 -z 2>&1)"
	fi
	case $("$GASFLAME" help --man) in
	*"gasflame\\-$c (1)"*) ok "gasflame(1) names $c" ;;
	*) not_ok "gasflame(1) names $c" ;;
	esac
done

# A new command has its page without a further line anywhere.
pages=$(dirname "$GASFLAME")/../../man/man1
[ ! -d "$pages" ] || is "every command has a page in the build, and every page a command" \
	"$({ echo gasflame.1 && "$GASFLAME" help --commands | sed 's/^/gasflame-/; s/ /-/g; s/$/.1/'; } | sort)" "$(ls "$pages" | sort)"
for c in $commands; do "$GASFLAME" help --commands | grep -qx "$c" || not_ok "help --commands names $c"; done

for c in $("$GASFLAME" help --commands | sed -n '/ /s/ /_/p'); do # those of two words
	c=${c/_/ }
	help=$("$GASFLAME" $c --help) || not_ok "$c --help succeeds"
	is "help $c is $c --help" "$help" "$("$GASFLAME" help $c)"
	has "$c --help has an example" "Example:
  " "$help"
	has "$c has a page in the manual" "gasflame\\-${c/ /\\-}" "$("$GASFLAME" help --man $c)"
done

output=$("$GASFLAME" docter 2>&1)
is "an unknown command is a wrong command line" 2 $?
has "the nearest command is named" "did you mean doctor?" "$output"
output=$("$GASFLAME" doctor --jsno 2>&1)
is "an unknown option is a wrong command line" 2 $?
has "the nearest option is named" "did you mean --json?" "$output"
"$GASFLAME" --nonsense doctor >/dev/null 2>&1
is "an unknown option before the command too" 2 $?
"$GASFLAME" help nonsense >/dev/null 2>&1
is "help for an unknown command too" 2 $?
if [ -e /dev/full ]; then
	"$GASFLAME" help >/dev/full 2>/dev/null
	is "a full disk behind stdout is an error" 1 $?
fi
is "no colours in a pipe" "" "$("$GASFLAME" help doctor | tr -dc '\033')"
finish
