#!/bin/bash
# blockwaits: waits of an engine thread, inside of a block and outside of it, against the program's own clock; and threads
# whose names the kernel has cut.
. "$(dirname "$0")/../lib.sh"
need_root
[ -x "$TRUTH/truth-blockwaits" ] || skip_all "there is no rustc to build the program with"

gf run --backend bpf -e cpu,wait -o waits.gasflame -- "$TRUTH/truth-blockwaits" 25
check_status "it is recorded" 0
grep ^truth "$STDOUT" >truth.txt || cp "$STDERR" truth.txt
"$GASFLAME" report --format json --limit 0 waits.gasflame >waits.json 2>/dev/null
# The program's clock includes the time in the run queue after a wait, the causes do not: what is missing of one is there.
cat >judge.py <<'END'
import json, re, sys
r = json.load(open("waits.json"))
truth = {k: int(v) / 1e6 for k, v in re.findall(r"(\w+) (\d+)", open("truth.txt").read().split("truth")[1])}
rows = {}
for t in r["account"]["threads"]: # a thread that is just being started has the name of the one that starts it
    row = rows.setdefault(t["name"], {})
    for k, v in t.items():
        if isinstance(v, int):
            row[k] = row.get(k, 0) + v / 1e6
inside = truth["answer"] + truth["join"] + truth["pressure"]
sites = {}
for s in r["waits"]["sites"] if isinstance(r["waits"], dict) else r["waits"]:
    sites.setdefault(s["pattern"] if isinstance(s["pattern"], str) else (s["pattern"] or {}).get("name"), []).append(s)
def within(name, found, true, queue):
    good = found <= true * 1.01 + 2 and found >= true * 0.97 - queue - 10
    print("%s: %.1f ms, the program says %.1f (%.1f in the queue)" % (name, found, true, queue))
    sys.exit(0 if good else 1)
e = rows["engine"]
if sys.argv[1] == "idle":
    within("idle", e["idle"], truth["outside"], e["queue"])
if sys.argv[1] == "blocked":
    within("blocked", e["park"] + e["lock"], inside, e["queue"])
if sys.argv[1] == "stranger":
    s = rows["stranger"]
    within("condition", s["park"] + s["lock"], truth["stranger"], s["queue"])
if sys.argv[1] == "pattern":
    print(sorted(k for k in sites if k))
    sys.exit(0 if sys.argv[2] in sites else 1)
if sys.argv[1] == "names":
    print(sorted({t["name"] for t in r["threads"]}))
    sys.exit(0 if all(any(t["name"] == "block_executor_ (%s)" % f for t in r["threads"]) for f in sys.argv[2:]) else 1)
END
judge() { python3 judge.py "$@"; }
check "waits for a block are idle: $(judge idle)" judge idle
check "waits inside of a block are not: $(judge blocked)" judge blocked
check "where no work is known, a wait is one for a condition: $(judge stranger)" judge stranger
for pattern in "persistence back-pressure" "receive from an empty channel" "joins the threads of its work"; do
	check "'$pattern' is told" judge pattern "$pattern"
done
check "threads of one cut name are told apart" judge names warm_block execute_block handle_merkleization
check "and can be selected so" grep -q handle_merkleization <("$GASFLAME" report --format folded --thread '*merkleization*' waits.gasflame 2>/dev/null)
check_not "without the others" grep -q warm_block <("$GASFLAME" report --format folded --thread '*merkleization*' waits.gasflame 2>/dev/null)
check "or by the kernel's name" grep -q warm_block <("$GASFLAME" report --format folded --thread block_executor_ waits.gasflame 2>/dev/null)
finish
