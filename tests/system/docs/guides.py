#!/usr/bin/env python3
"""guides.py MIGRATING.md FIXTURES.json: runs the lines of the tables in docs/migrating.md, prints a line a check.

The lines are those that stand there; only what a test cannot have is put in their place: shorter times, ports, and
the target, where there is no container of that name. FIXTURES is what guides.sh has started. A line of the table
without a promise below is an error, and so is a promise without a line, so that neither can drift from the other.
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import threading
import time

LIMIT_S = 60           # for one line, on a machine that is busy
DURATIONS = [1, 4, 12]  # of a recording, in s: a longer one where the target got no CPU in the first


# --- what a line promises ---

def says(*patterns):
    """Words on stdout or stderr."""
    def check(run):
        return [f"no /{p}/ in what it printed" for p in patterns if not re.search(p, run.text, re.M)]
    return check


def capture_of(run):
    return re.search(r"(?:-o|--record-output) (\S+\.gasflame)", run.line)[1]


def holds(*events):
    """The capture that it made has something of each event; a name with a dot is a series."""
    def check(run):
        path = capture_of(run)
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            seen = {n for (n,) in db.execute("select e.name from event e where exists (select 1 from sample s where s.event = e.id)")}
            seen |= {n for (n,) in db.execute("select s.name from series s where exists (select 1 from point p where p.series = s.id)")}
            seen |= {k for (k,) in db.execute("select distinct kind from mark")}
        return [f"no {e} in {path}, which has {sorted(seen)}" for e in events if e not in seen]
    return check


def names(*pieces):
    """The capture that it made has functions with these in their names, which other lines ask for."""
    def check(run):
        path = capture_of(run)
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            found = "\n".join(n for (n,) in db.execute("select distinct name from function"))
        return [f"no function like {p} in {path}" for p in pieces if not re.search(p, found)]
    return check


def writes(path, *patterns):
    """A file with these in it."""
    def check(run):
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                text = f.read()
        except OSError as e:
            return [str(e)]
        return [f"no /{p}/ in {path}" for p in patterns if not re.search(p, text)]
    return check


TRUTH = {}  # ms of CPU time of each part of truth-ethrex in the recording, by the program's own clock
BLOCK = ("sload", "staticcall", "keccak")


def tells_truth(run):
    """The program's last line."""
    found = re.search(r"^truth (.*)$", run.text, re.M)
    words = found[1].split() if found else []
    TRUTH.update(zip(words[::2], map(float, words[1::2])))
    return [] if set(BLOCK) < set(TRUTH) else ["the program did not print its truth"]


def shares_of(run, name):
    """The percentages in the row of a function, crate or phase: the first is self, the last total."""
    found = re.search(rf"^ *[0-9.]+ %.*\b{name}", run.text, re.M)
    return [float(x) for x in re.findall(r"([0-9.]+) %", found[0])] if found else []


def is_all(name):
    """All that is shown is in this row."""
    def check(run):
        shares = shares_of(run, name)
        return [] if shares and shares[0] > 99.9 else [f"{name} has {shares}, not 100 %"]
    return check


def near_truth(name, parts, whole=None):
    """The total share of a row is that of these parts of the program, as far as so many samples can tell. Not the share of
    self: interrupts, which come for other programs, take a part of that."""
    def check(run):
        shares, samples = shares_of(run, name), re.search(r" in ([\d,]+) samples", run.text)
        if not shares or not samples:
            return [f"no share of {name}"]
        wanted = sum(TRUTH[p] for p in parts) / sum(TRUTH[p] for p in whole or TRUTH)
        tolerance = 0.02 + 4 * (wanted * (1 - wanted) / int(samples[1].replace(",", ""))) ** 0.5
        if abs(shares[-1] / 100 - wanted) <= tolerance:
            return []
        return [f"{name} has {shares[-1]} %, not {100 * wanted:.1f} +- {100 * tolerance:.1f}"]
    return check


SVG = r"<svg[\s\S]*</svg>"
PAGE = r"<!DOCTYPE html>"
QUALITY = says(r"samples?[ ,].*% complete, ")
# In the order in which they are tried: a pattern of the line, and what it promises.
PROMISES = [
    (r"gasflame doctor op-reth-seq", [says(r"unwind tables +[\d,]+ rows", r"allocator +jemalloc", r"symbols +\d+ functions")]),
    (r"gasflame doctor$", [says(r"On this machine: ")]),
    (r"gasflame ps$", [says(r"op-reth")]),
    (r"record -e cpu -d", [holds("cpu"), names("compute_unit", "mix_state"), QUALITY]),
    (r"record -e cpu -F 1000", [holds("cpu")]),
    (r"report --format svg cpu", [writes("cpu.svg", SVG)]),
    (r"report cpu\.", [writes("cpu.html", PAGE)]),
    (r"flamegraph --title", [writes("custom.svg", SVG, r'width="2400"', "Custom Title", 'size:16px|size="16"')]),
    (r"head -50", [says(r"^[^;\n]+;.* \d+$")]),
    (r"top cpu", [says("compute_|mix_state")]),
    (r"report --tree --percent-limit", [says("call tree|% of", "compute_unit")]),
    (r"crates --own 'reth\*' cpu", [says("By crate", "kernel")]),
    (r"diff cpu", [says("changed|noise|few samples", "mix_state"), writes("fine.diff.html", PAGE)]),
    (r"record --rpc", [holds("cpu", "wait", "block")]),
    (r"replay --load", [holds("cpu", "wait"), says(r"^[1-9][\d,]* transactions taken", "median +mean", "errors: 0")]),
    (r"record --follow", [holds("cpu", "wait")]),
    (r"--from 0\.2 --to", [says("By function")]),
    (r"record -e cpu,wait,heap,mem", [holds("cpu", "wait", "alloc")]),
    (r"gasflame ls", [says(r"op-reth-seq\S*/cpu-\S+\.gasflame")]),
    (r"gasflame clean", [says("nothing|removed")]),
    (r"record -e wait -d", [holds("wait", "queue"), names("futex", "fsync", "lock_|pool_|query_")]),
    (r"svg --what wait", [writes("wait.svg", SVG, "lock")]),
    (r"text wait\.", [says("^Verdict", "^Where the time of the threads went", r"^all \d+", "woken by")]),
    (r"offcpu-events\.conf", [says("futex", "fsync|fdatasync", "sched_switch|switches")]),
    (r"my-events\.conf", [holds("syscalls:sys_enter_futex")]),
    (r"contextswitches", [holds("sched:sched_switch")]),
    (r"record -e io -d", [holds("read", "write"), says("Reads and writes", "MB/s", "disk_|commit_")]),
    (r"record -e fault -d", [holds("minor-faults"), says(r"minor faults: +[1-9]", "cache hit rate", "direct reclaims")]),
    (r"--tree --what fault", [says("Call tree", "task_run")]),
    (r"--function futex", [says("lock_|pool_|query_")]),
    (r"top --what wait", [says("lock_|pool_|query_")]),
    (r"--function fsync", [says("commit_|fsync")]),
    (r"gasflame events", [says("sched:sched_switch")]),
    (r"record -e heap -d", [holds("alloc", "temporary"), names("alloc_unit"), QUALITY]),
    (r"text heap", [says("^Heap", "allocated", "temporary", "peak", "alive at end", "alloc_unit")]),
    (r"svg --what alloc", [writes("heap.svg", SVG, "alloc_unit")]),
    (r"report heap", [writes("heap.html", PAGE)]),
    (r"--what temporary", [says("%")]),
    (r"--heap-sample 2M", [holds("alloc"), names("alloc_unit")]),
    (r"run --jemalloc-prof", [holds("cpu")]),
    (r"heap dump --every", [holds("heap"), says(r"dumps\.gasflame")]),
    (r"heap dump --collect", [holds("heap")]),
    (r"-o all\.svg", [writes("all.svg", SVG, "grows_leak")]),
    (r"-o latest\.svg", [writes("latest.svg", SVG, "grows_leak", "holds_cache")]),
    (r"-o last5\.svg", [writes("last5.svg", SVG, "grows_leak")]),
    (r"-o two\.svg", [writes("two.svg", SVG, "grows_leak")]),
    (r"heap-table", [says(r"^Total: [0-9.]+ MB", r"^ +[0-9.]+ +[0-9.]+%.* grows_leak")]),
    (r"heap -n 50", [says(r"^jeprof|\.heap", "heap")]),
    (r"heap --format folded", [says(r"^[^;\n]+;.* \d+$")]),
    (r"heap -o dumps\.html", [writes("dumps.html", PAGE)]),
    (r"-o overtime", [holds("alloc")]),
    (r"format massif", [writes("massif.out", "^desc:", "mem_heap_B=")]),
    (r"run -e heap,mem", [holds("alloc")]),
    (r"--fail-on-leak", [says("^No leak: "), holds("alloc")]),
    (r"mem op-reth-seq", [says(r"= RSS", "mapped files", "stacks", "PSS")]),
    (r"mem -n 0", [says(r"= RSS", r"libc\.so\.6")]),
    (r"mem -d 5m", [says(r"^time,seconds,rss,", r"^20[^,]*,[\d.]+,\d{6,},")]),
    (r"mem --metrics", [says("jemalloc", "allocated")]),
    (r"diff --what alloc", [says("alloc_unit")]),
    (r"cpu,wait,io,fault,heap,mem", [holds("cpu", "wait", "read", "minor-faults", "alloc")]),
    (r"-o reth\.gasflame", [holds("alloc")]),
    (r"mem --watch", [says("= RSS", "jemalloc")]),
    (r"limit --memory", [says("killed", "leaky_cache")]),
    (r"limit --cgroup-of", [says("limit|cgroup")]),
    (r"heap -o reth\.html", [writes("reth.html", PAGE)]),
    (r"gasflame bench", [says(r"10 runs", r"block +[0-9.]+ m?s", r"gas_per_s +.*gas/s")]),
    (r"-o block\.gasflame", [says(r"\[METRIC\] BLOCK")]),
    (r"gasflame stat", [says("task-clock", "context-switches", r"\[METRIC\] BLOCK")]),
    (r"--mark-function", [says(r"^10 blocks, median", "wall ms")]),
    (r"-F 997", [holds("cpu"), names("op_sload", "KeccakF1600"), tells_truth]),
    (r"> stacks\.folded", [writes("stacks.folded", r";ethrex_levm::opcodes::op_staticcall \d+")]),
    (r"flamegraph stacks", [writes("flamegraph.svg", SVG, "KeccakF1600")]),
    (r"--table functions stacks", [near_truth("find_key_index", ["sload"]), near_truth("__KeccakF1600", ["keccak"])]),
    (r"--nearest-own", [is_all("handle_merkleization")]),
    (r"--table crates .*stacks", [near_truth("ethrex_levm", ["sload", "staticcall"]), says("ethrex_storage", "By own crate")]),
    (r"--phases", [near_truth("add_block_pipeline", BLOCK), says("cache::load", "prepare_state")]),
    (r"--sort total stacks", [near_truth("op_staticcall", ["staticcall"], BLOCK), says("get_storage_slot")]),
    (r"--group", [near_truth("sload", ["sload"], BLOCK), near_truth("staticcall", ["staticcall"], BLOCK)]),
    (r"report stacks\.", [writes("stacks.html", PAGE)]),
]
STATUS = [(r"limit --memory", 137)]  # all others: 0


# --- the table ---

def lines_of(document):
    """The second column of every table in the document."""
    with open(document, encoding="utf-8") as f:
        text = f.read()
    found = []
    for row in text.splitlines():
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", row)]
        if len(cells) < 4 or not cells[2] or set(cells[2]) <= {"-"} or cells[2] == "instead":
            continue
        code = re.fullmatch(r"`([^`]+)`", cells[2])
        if not code or not code[1].startswith("gasflame "):
            sys.exit(f"not ok - the row of {cells[1]} has one line of gasflame in its second column")
        found.append(code[1].replace("\\|", "|"))
    return found


def shortened(line, fixtures, seconds):
    """The line with what a test has: little time, its own ports and target."""
    rules = [
        (r"(?<= -d )\S+", str(seconds + 1.5 if "--rpc" in line else seconds)),
        (r"(?<=--duration )\S+", str(seconds)),
        (r"(?<=--every )\S+", "0.2"),
        (r"(?<=--watch )\S+", "0.3"),
        (r"127\.0\.0\.1:8123\b", f"127.0.0.1:{fixtures.get('rpc', 0)}"),
        (r"127\.0\.0\.1:9001\b", f"127.0.0.1:{fixtures['metrics']}"),
        (r"--memory 8G", "--memory 64M"),
        (r"\./reth node$", "./leaker 300"),
        (r"\./op-reth node$", f"./op-reth node --quiet --seconds {seconds}"),
        (r"(?<=[ ])op-reth-seq\b", fixtures["target"]),
        (r"(?<=[ ])reth$", fixtures["pid"]),
        (r"(?<= )reth(?= )", fixtures["pid"]),
    ]
    for pattern, text in rules:
        line = re.sub(pattern, text, line)
    return line


class Run:
    """One line: as a shell runs it, `top` in a terminal of its own, `--watch` until Ctrl-C."""

    def __init__(self, row, promise, fixtures):
        self.row, self.promise, self.fixtures = row, promise, fixtures
        self.line, self.text, self.status, self.seconds, self.problems = "", "", None, 0.0, []

    def go(self):
        for seconds in DURATIONS if makes(self.row) else DURATIONS[:1]:
            self.line = shortened(self.row, self.fixtures, seconds)
            start = time.monotonic()
            if self.line.startswith("gasflame top"):
                self.in_terminal()
            else:
                self.in_shell()
            self.seconds = time.monotonic() - start
            self.problems = self.find_problems()
            if not self.problems:
                break

    def in_shell(self):
        ends = "--watch" in self.line
        # exec: the signal must reach gasflame, not a shell around it.
        command = f"exec {self.line}" if ends else self.line
        p = subprocess.Popen(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        killer = threading.Timer(LIMIT_S, p.kill)
        killer.start()
        seen = b""
        while ends and b"= RSS" not in seen:
            piece = os.read(p.stdout.fileno(), 65536)
            if not piece:
                break
            seen += piece
        if ends:
            p.send_signal(signal.SIGINT)
        self.text = (seen + p.communicate()[0]).decode(errors="replace")
        killer.cancel()
        self.status = p.returncode

    def in_terminal(self):
        fd, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        p = subprocess.Popen(["bash", "-c", f"exec {self.line}"], stdin=terminal, stdout=terminal, stderr=terminal,
                             env={**os.environ, "TERM": "xterm"}, start_new_session=True)
        os.close(terminal)
        text, asked, end = b"", 0.0, time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            ready, _, _ = select.select([fd], [], [], 0.3)
            try:
                piece = os.read(fd, 65536) if ready else b""
            except OSError:
                break
            if ready and not piece:
                break
            text += piece
            # q once there is a picture, and again if it came too early.
            if len(text) > 1000 and not ready and time.monotonic() - asked > 1:
                os.write(fd, b"q")
                asked = time.monotonic()
        else:
            p.kill()
        self.status = p.wait()
        os.close(fd)
        # Words may be parted by the terminal's movements.
        self.text = re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>])", " ", text.decode(errors="replace"))

    def find_problems(self):
        wanted = next((s for p, s in STATUS if re.search(p, self.row)), 0)
        if self.status != wanted:
            return [f"status {self.status}, wanted {wanted}"]
        found = []
        for check in self.promise:
            try:
                found += check(self)
            except (sqlite3.Error, AttributeError) as e:
                found.append(repr(e))
        return found


# --- running them ---

def lane_of(row):
    """Lines of one lane run one after the other: the heap's hooks are for one recorder at a time."""
    if re.search(r"\bheap\b|\bmem\b", row) and re.search(r"record|dump", row):
        return "heap"
    return "run" if re.search(r"gasflame (run|bench|stat|limit|replay)", row) else "record"


def makes(row):
    """Does it make something that another line reads?"""
    return bool(re.search(r"gasflame (record|run|replay|heap dump)|> stacks\.folded", row))


def run_all(runs):
    lanes = {}
    for i, r in enumerate(runs):
        lane = lane_of(r.row)
        lanes.setdefault((lane, i % 2 if lane == "record" else 0), []).append(r)
    threads = [threading.Thread(target=lambda lane=lane: [r.go() for r in lane]) for lane in lanes.values()]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def main():
    with open(sys.argv[2], encoding="utf-8") as f:
        fixtures = json.load(f)
    rows, unused = lines_of(sys.argv[1]), list(PROMISES)
    chosen, failed = [], 0
    for row in rows:
        mine = next((p for p in PROMISES if re.search(p[0], row)), None)
        if not mine:
            print(f"not ok - guides.py knows what `{row}` promises")
            failed += 1
            continue
        if mine in unused:
            unused.remove(mine)
        reason = next((why for p, why in fixtures["missing"].items() if re.search(p, row)), None)
        if reason:
            print(f"ok - {row} # SKIP {reason}")
        else:
            chosen.append(Run(row, mine[1], fixtures))
    for pattern, _ in unused:
        print(f"not ok - a line of docs/migrating.md has /{pattern}/")
        failed += 1
    run_all([r for r in chosen if makes(r.row) and "folded" not in r.row])
    run_all([r for r in chosen if makes(r.row) and "folded" in r.row])
    run_all([r for r in chosen if not makes(r.row)])
    for r in chosen:
        print(f"{'not ok' if r.problems else 'ok'} - {r.row}")
        if r.problems:
            failed += 1
            print(f"#   ran: {r.line} ({r.seconds:.1f} s)")
            for p in r.problems + r.text.splitlines()[-12:]:
                print(f"#   {p[:200]}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
