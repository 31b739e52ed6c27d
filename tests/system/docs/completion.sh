#!/bin/bash
# The Tab key in real shells: what they make of a line, and that nobody's name is run.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"

mkdir bin work
ln -s "$GASFLAME" bin/gasflame
export PATH=$tmp/bin:$PATH
touch work/one.gasflame work/list.conf
# Its name is a command to whoever expands it.
cp /bin/sleep 'work/evil$(>P)'
cd work || exit 1
'./evil$(>P)' 3000 &
started+=($!)
until [ "$(cat /proc/$!/comm 2>/dev/null)" = 'evil$(>P)' ]; do sleep 0.02; done
check "ps --names has it" grep -qFx 'evil$(>P)' <("$GASFLAME" ps --names)
"$GASFLAME" ps --names --json >/dev/null 2>&1
[ $? -eq 2 ] && ok "ps: names or objects, not both" || not_ok "ps: names or objects, not both"
"$GASFLAME" help --completion tcsh >/dev/null 2>&1
[ $? -eq 2 ] && ok "a shell that is not known is a wrong command line" || not_ok "a shell that is not known is a wrong command line"

while read -r c; do
	"$GASFLAME" $c --help | sed -n "s/^ \{2,6\}\(-., \)\?--\([a-z-]\+\).*/$c:\2/p"
done < <("$GASFLAME" help --commands) >"$tmp/options"
for shell in bash zsh fish; do
	if ! command -v "$shell" >/dev/null; then
		skip "completion in $shell" "no $shell here"
		continue
	fi
	"$GASFLAME" help --completion "$shell" >"$tmp/script.$shell" || not_ok "$shell: there is a script"
	check "$shell: the script is good" "$shell" -n "$tmp/script.$shell"
	check "$shell: has every option" python3 "$here/completion.py" --options "$tmp/options" "$shell" "$tmp/script.$shell"
	check "$shell: completes" python3 "$here/completion.py" "$shell" "$tmp/script.$shell"
	[ ! -e P ] && ok "$shell: ran nobody's name" || { not_ok "$shell: ran nobody's name"; rm -f P; }
done
finish
