#!/usr/bin/env python3
"""views.py GASFLAME CAPTURE: the figures of report's views against the same from its folded stacks.

Folded stacks are read line by line, as the one-liners of other guides do; what the program says as JSON must be
the same number of samples, exactly. Prints a line a check.
"""
import collections
import json
import re
import subprocess
import sys

gasflame, capture = sys.argv[1:3]
failed = 0


def run(*options):
    done = subprocess.run([gasflame, "report", *options, capture], capture_output=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"not ok - report {' '.join(options)}: {done.stderr.decode()}")
    return done.stdout.decode()


def view(*options):
    return json.loads(run("--json", *options))


def folded(*options):
    stacks = []
    for line in run("--format", "folded", "--weigh", "samples", "--merged", *options).splitlines():
        stack, count = line.rsplit(" ", 1)
        stacks.append(([re.sub(r"_\[k\]$", "", f) for f in stack.split(";")], int(count)))
    return stacks


def is_code(name):
    """Not what stands in place of a function: "[unknown]", a truncated stack, a note. Our own programs are code."""
    return not name.startswith("[") or name.startswith("[gasflame] ")


def check(name, got, wanted):
    global failed
    if got == wanted:
        print(f"ok - {name}")
        return
    failed += 1
    print(f"not ok - {name}")
    if isinstance(got, dict):
        for key in sorted(set(got) | set(wanted), key=str)[:10000]:
            if got.get(key, 0) != wanted.get(key, 0):
                print(f"#   {key}: {got.get(key, 0)}, folded says {wanted.get(key, 0)}")
                break
    else:
        print(f"#   {got}, folded says {wanted}")


def first(stack, pattern):
    return next((i for i, f in enumerate(stack) if re.search(pattern, f)), None)


def paths(nodes):
    """Of a list of nodes with depths: each path of names and its total."""
    path, found = [], collections.Counter()
    for n in nodes:
        path[n["depth"]:] = [n["name"]]
        found[tuple(path)] += n["total_samples"]
    return found


def tree_of(lists):
    found = collections.Counter()
    for names, count in lists:
        for i in range(len(names)):
            found[tuple(names[:i + 1])] += count
    return found


stacks = folded()
total = sum(n for _, n in stacks)
every = ("--limit", "0")
whole = ("--percent-limit", "0", "--merged")
hot = collections.Counter()
for s, n in stacks:
    hot[s[-1]] += n

functions = collections.Counter()
totals = collections.Counter()
module = {}
for row in view("--table", "functions", *every)["functions"]:
    functions[row["name"]] += row["self_samples"]
    totals[row["name"]] += row["total_samples"]
    module.setdefault(row["name"], row["module"].rsplit("/", 1)[-1])
check("self by leaf", {k: v for k, v in functions.items() if v},
      {k: v for k, v in hot.items() if is_code(k)})
inclusive = collections.Counter()
for s, n in stacks:
    for name in set(s):
        inclusive[name] += n
# Functions of one name in two modules are two rows, and a stack may have both.
twice = {k for k, v in collections.Counter(
    r["name"] for r in view("--table", "functions", *every)["functions"]).items() if v > 1}
check("total", {k: v for k, v in totals.items() if k not in twice},
      {k: v for k, v in inclusive.items() if k not in twice and is_code(k)})

check("tree", paths(view("--tree", *whole)["tree"]), tree_of([(["all"] + s, n) for s, n in stacks]))

for pattern in ("mix_state", "^entry_SYSCALL", "task_run", "_fold$"):
    below = [(s, first(s, pattern), n) for s, n in stacks]
    below = [(s, at, n) for s, at, n in below if at is not None]
    if not below:
        continue
    name = view("--callers", pattern, *whole)["callers"][0]["name"]
    check(f"callers of {pattern}", paths(view("--callers", pattern, *whole)["callers"]),
          tree_of([([name] + s[:at][::-1], n) for s, at, n in below]))
    check(f"callees of {pattern}", paths(view("--callees", pattern, "--percent-limit", "0")["callees"]),
          tree_of([([name] + s[at + 1:], n) for s, at, n in below]))
    rooted = view("--root", pattern, "--table", "functions", *every)
    check(f"root {pattern}: samples", rooted["samples"], sum(n for _, _, n in below))
    check(f"root {pattern}: stacks", sorted((tuple(s), n) for s, n in folded("--root", pattern)),
          sorted(collections.Counter(
              {k: sum(n for s, at, n in below if tuple(s[at:]) == k)
               for k in {tuple(s[at:]) for s, at, n in below}}).items()))

# The program is in C: a crate is a module, and its own is the program's file.
own = "gasflame-workload"
nearest = collections.Counter()
outermost = collections.Counter()
leads = collections.Counter()
target = "^(malloc|free|memcpy|__libc_|__GI_|_int_|epoll_wait|futex)"
for s, n in stacks:
    of = [f for f in s if module.get(f) == own and f not in ("_start",)]
    nearest[own if of else None] += n
    at = first(s, target)
    if at is not None:
        mine = [f for f in s[:at] if module.get(f) == own and f not in ("_start",)]
        leads[mine[-1] if mine else None] += n
crates = view("--table", "crates", *every)
row = next(r for r in crates["crates"] if r["crate"] == own)
check("own crate: nearest", row["nearest_samples"], nearest[own])
check("own crate: outermost", row["outermost_samples"], nearest[own])
check("no own code", crates["no_own_samples"], nearest[None])
check("crates add up", sum(r["self_samples"] for r in crates["crates"]),
      sum(n for s, n in stacks if is_code(s[-1])))
if leads:
    rows = view("--nearest-own", target, *every)["nearest_own"]
    got = collections.Counter()
    for r in rows:
        got[r.get("name")] += r["total_samples"]
    check("nearest own callers", got, leads)

# Groups: the innermost one has the sample.
groups = view("--group", r"(\w+)_unit$", "--group", "kernel=^entry_SYSCALL", "--table", "groups", *every)
wanted, in_group = collections.Counter(), collections.Counter()
for s, n in stacks:
    names = []
    for f in s:
        m = re.search(r"(\w+)_unit$", f)
        names += [m.group(1)] if m else ["kernel"] if f.startswith("entry_SYSCALL") else []
    wanted[names[-1] if names else None] += n
    for g in set(names):
        in_group[g] += n
check("groups: nearest", {r["group"]: r["nearest_samples"] for r in groups["groups"] if r["nearest_samples"]},
      {k: v for k, v in wanted.items() if k})
check("groups: total", {r["group"]: r["total_samples"] for r in groups["groups"]}, dict(in_group))
check("groups: none", groups["no_group_samples"], wanted[None])

phases = view("--phases", "compute_unit,disk_unit,task_run")
wanted = collections.Counter()
for s, n in stacks:
    on = [p for f in s for p in ("compute_unit", "disk_unit", "task_run") if p in f]
    wanted[on[-1] if on else None] += n
check("phases", {r["phase"]: r["innermost_samples"] for r in phases["phases"] if r["innermost_samples"]},
      {k: v for k, v in wanted.items() if k})
check("phases: the rest", phases["outside_samples"] + phases["other_threads_samples"], wanted[None])
check("phases add up", sum(r["innermost_samples"] for r in phases["phases"]) + phases["outside_samples"] +
      phases["other_threads_samples"], total)

half = view("--table", "threads")["duration_ns"] / 2e9
narrow = ("--thread", "compute-*", "--from", "0.1", "--to", f"{half:.3f}")
check("filters", paths(view("--tree", *whole, *narrow)["tree"]),
      tree_of([(["all"] + s, n) for s, n in folded(*narrow)]))
sys.exit(1 if failed else 0)
