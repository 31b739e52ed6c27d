"""tasks.py - compares what was recorded of tasks.rs with what it measured itself; reads the files that tasks.sh made.

A preempted thread makes one of two clocks late, not both: a time is compared where it is long against what is done between
the two (1 us a poll). So the yielder's times, of a thousand short polls, are left out, as are polls of some microseconds.
Exits with 2 if only times differ.
"""
import csv
import json
import re
import sys


def rows(path):
    return list(csv.reader(open(path)))[1:]


truth = json.load(open("truth.json"))
types = {t["name"]: t for t in truth["types"]}
counters = {name: int(value) for name, value in rows("counters.csv")}
wakes = rows("wakes.csv")
long_polls = rows("long.csv")
report = open("report.txt").read()
failed = set()


def check(name, wrong, kind="count"):
    print(f"not ok - {name}" if wrong else f"ok - {name}")
    for line in wrong:
        print("#  ", line)
    if wrong:
        failed.add(kind)


def seen(name, key):
    return counters.get(f"task.{name}.{key}", 0)


def compare(key, least, but=()):
    """Differences of more than 3 % where the truth is at least so many ns."""
    wrong, compared = [], 0
    for name, t in types.items():
        if t[key] < least or name in but:
            continue
        compared += 1
        if abs(seen(name, key) - t[key]) > 0.03 * t[key]:
            wrong.append(f"{name}: {key} {seen(name, key)}, and it says {t[key]}")
    return wrong if compared else ["nothing was compared"]


check("nothing was lost", [f"{counters.get('task.lost', 0)} events"] if counters.get("task.lost") else [])
check("each task, poll and end is counted",
      [f"{n}: {k} {seen(n, k)}, and it says {t[k]}" for n, t in types.items() for k in ("spawned", "finished", "polls")
       if seen(n, k) != t[k]])
# A wake at the very end of a poll may be before it for the one and after it for the other.
check("each wake is counted", [f"{n}: {seen(n, 'wakes')}, and it says {t['wakes']}" for n, t in types.items()
                               if abs(seen(n, "wakes") - t["wakes"]) > 1 + t["wakes"] // 100])
check("what a task does adds up to its time",
      [n for n in types if seen(n, "wall_ns") != seen(n, "poll_ns") + seen(n, "queue_ns") + seen(n, "await_ns")])
check("awaiting is as long as the tasks say, each type", compare("await_ns", 100e6, {"tasks::yielder"}), "time")
check("the queue is as long as the tasks say", compare("queue_ns", 100e6, {"tasks::yielder"}), "time")
check("polls are as long as the tasks say", compare("poll_ns", 40e6, {"tasks::yielder"}), "time")
for event, key in (("poll", "poll_ns"), ("await", "await_ns"), ("taskqueue", "queue_ns")):
    all_of = sum(value for name, value in counters.items() if name.endswith(f".{key}"))
    got = {name: int(value) for name, value in rows("samples.csv")}.get(event, 0)
    check(f"samples of {event} have all of that time", [] if abs(got - all_of) <= 0.005 * all_of else [f"{got} of {all_of}"])


def shares(of):
    total = sum(of.values())
    return {who: ns / total for who, ns in of.items()} if total else {}


def wakers(name):
    """Who ended the awaits of a type, as recorded and as it says: shares of the awaited time."""
    was, says = {}, {}
    for kind, ms, thread, waker in wakes:
        if kind == name:
            who = f"task {waker}" if waker else f"thread {thread}"
            was[who] = was.get(who, 0) + float(ms)
    for who, (_, ns) in types[name]["woken_by"].items():
        who = who[:len("thread ") + 15] if who.startswith("thread ") else who  # as the kernel cuts it
        says[who] = says.get(who, 0) + ns
    return shares(was), shares(says)


wrong, compared = [], 0
for name in types:
    was, says = wakers(name)
    # Only the longest awaits of each 10 ms are kept one by one: short ones may be left out, and of several wakers not all
    # have the same share.
    if not was or name == "tasks::yielder":
        continue
    compared += 1
    most = 0.03 if max(says.values()) > 0.97 else 0.25
    wrong += [f"{name}: {who} ended {was.get(who, 0):.3f} of its awaits, and it says {says.get(who, 0):.3f}"
              for who in {*was, *says} if abs(was.get(who, 0) - says.get(who, 0)) > most]
check("each awaited thing's waker is the right one", wrong if compared > 5 else [*wrong, f"only {compared} types were compared"], "time")
for name, who in (("joiner", "task tasks::joined"), ("blocker", "thread starving")):
    got = wakers(f"tasks::{name}")[0].get(who, 0)
    check(f"the {name} is woken by {who}", [] if got > 0.9 else [f"{got:.3f} of its awaits"])
hogs = [float(ms) for name, thread, ms in long_polls if name == "tasks::blocker" and thread == "starving" and float(ms) >= 20]
check("each poll that blocks its worker has a mark", [] if len(hogs) == truth["hogs"] else [f"{len(hogs)} of {truth['hogs']}"])
check("and is as long as it says", [] if abs(sum(hogs) - truth["hog_ns"] / 1e6) < 0.03 * sum(hogs) else
      [f"{sum(hogs)} ms, and it says {truth['hog_ns'] / 1e6}"], "time")


def awaited(name):
    """The lines of the report below a type."""
    lines = report[report.find("\nAsync tasks"):].splitlines()
    at = next((i for i, line in enumerate(lines) if re.search(rf"  tasks::{name}( \(|$)", line)), len(lines))
    end = next((i for i in range(at + 1, len(lines)) if re.match(r" +[\d,]+ +[\d,]+ +[\d,]+ ", lines[i]) or not lines[i]), len(lines))
    return "\n".join(lines[at + 1:end])


for name, what in (("sleeper", "a timer"), ("consumer", r"a message by tasks::producer.* in task tasks::producer"),
                   ("lock_waiter", "an async lock by tasks::lock_holder.* in task tasks::lock_holder"),
                   ("joiner", "the end of task tasks::joined"), ("server", "I/O"), ("starved", "a notification by tasks::run_starving")):
    check(f"the report says what the {name} awaits", [] if re.search(what, awaited(name)) else [awaited(name) or "nothing"])
# Not the verdict: on a machine with many times more threads than CPUs another matter may be worse.
long_section = report[report.find("\nLong polls"):]
check("the report names who blocks a worker, in which function, and who starves",
      [] if re.search(r"  tasks::hog_the_worker\n +task tasks::blocker\n.*\n +queued meanwhile: .*tasks::starved", long_section)
      else long_section.splitlines()[:12])
links = [[(link["type"], link["awaited"]) for link in c["links"]] for c in json.load(open("report.json"))["tasks"]["chains"]]
check("a chain goes from the joiner to the task that it joins, and to the timer which that one awaits",
      [] if any([("tasks::joiner", "join"), ("tasks::joined", how)] in links for how in ("timer", "driver")) else links[:5])
check("polls have their stacks", [] if re.search(r"^task tasks::blocker;.*;tasks::hog_the_worker(;|$| )", open("polls.txt").read(), re.M)
      else ["no stack of the blocker"])
sys.exit(2 if failed == {"time"} else 0)
