"""top.py PART ... - drives `gasflame top` on a pseudo-terminal; prints a line a check. From top.sh.

recording CAPTURE        every page, key and size on a recording, against what report says of it
signals CAPTURE          however it ends, the terminal is as it was
live PID                 a running program: refreshes, pause, window, cost
ending PID               the program is killed while it is watched
"""
import collections
import json
import os
import re
import signal
import subprocess
import sys
import time

from terminal import PATIENCE_S, Terminal

GASFLAME = os.environ["GASFLAME"]
failures = 0


def check(name, good, detail=""):
	global failures
	print(("ok - " if good else "not ok - ") + name)
	if not good:
		failures += 1
		for line in str(detail).splitlines()[:40]:
			print("#   " + line)


def top(*arguments, columns=80, lines=24, env=None, pattern="1 functions"):
	t = Terminal([GASFLAME, "top", *arguments], columns, lines, env)
	check(f"{' '.join(a for a in arguments if a[0] == '-') or 'top'} starts at {columns} x {lines}",
	      t.wait_for(pattern, 30), t.text())
	return t


def rows(text):
	"""The rows below the line of titles, as [percent, percent, rest]."""
	found = []
	for line in text.split("\n"):
		match = re.match(r"\s*([0-9.]+) %\s+([0-9.]+) %\s+(.*)", line)
		if match:
			found.append((float(match.group(1)), float(match.group(2)), match.group(3)))
	return found


def named(text, name):
	"""The row of a function, whatever stands before its name."""
	return next((r for r in rows(text) if re.search(r"(^|\s)" + re.escape(name) + r"(\s|$)", r[2])), None)


def folded(capture):
	out = subprocess.run([GASFLAME, "report", "--format", "folded", "--what", "cpu", capture],
			     capture_output=True, text=True, check=False).stdout
	stacks = []
	for line in out.splitlines():
		stack, count = line.rsplit(" ", 1)
		stacks.append(([re.sub(r"_\[[a-z]\]$", "", f) for f in stack.split(";")], int(count)))
	return stacks


def near(a, b, tolerance):
	return abs(a - b) <= tolerance


def see(name, t, good, *keys, seconds=PATIENCE_S):
	"""Presses keys; good is a pattern, or a function of the screen's text. Returns the text."""
	t.keys(*keys)
	result, text = t.until(good if callable(good) else lambda s: re.search(good, s, re.M), seconds)
	check(name, result, text)
	return text


def look(t, pattern, *keys):
	"""The same without a check."""
	t.keys(*keys)
	return t.until(lambda s: re.search(pattern, s, re.M))[1]


def recording(capture):
	stacks = folded(capture)
	all_samples = sum(n for _, n in stacks)
	own, total, callers = collections.Counter(), collections.Counter(), collections.Counter()
	for stack, n in stacks:
		own[stack[-1]] += n
		for f in set(stack[1:]):
			total[f] += n
	hot = own.most_common(1)[0][0]
	for stack, n in stacks:
		if hot in stack:
			callers[stack[stack.index(hot) - 1]] += n

	t = top(capture)
	first = rows(t.text())[0]
	check(f"the first function is report's: {hot}", hot in first[2].split(), t.text())
	check("its self share is report's", near(first[0], own[hot] * 100 / all_samples, 0.06), first)
	check("its total share is report's", near(first[1], total[hot] * 100 / all_samples, 0.06), first)
	known = [r for r in rows(t.text()) for f in total if f in r[2].split()
		 and near(r[1], total[f] * 100 / all_samples, 0.06)]
	check("so are those of the others", len(known) >= 8, t.text())

	for key, title in {"2": "WHAT ITS TIME WAS", "3": "CAUSE", "4": "WRITTEN", "5": "SERIES", "6": "^cpu$", "7": "No block was seen", "8": "Tasks were not recorded", "1": "by SELF%"}.items():
		see(f"page {key}", t, title, key)
	see("Tab goes on", t, "WHAT ITS TIME WAS", "tab")

	see("sorted by self, as the header says", t, "cpu by SELF%", "1")
	see("s: by total", t, lambda s: "by TOTAL%" in s and rows(s)[0][1] == max(r[1] for r in rows(s)), "s")
	see("S: back", t, "by SELF%", "S")
	see("R: smallest first", t, lambda s: "(up)" in s and rows(s)[0][0] <= rows(s)[-1][0], "R")
	look(t, "by SELF%$", "R")

	see("/ filters", t, lambda s: rows(s) and all("trie" in r[2] for r in rows(s)), "/", "t", "r", "i", "e")
	see("and says how much is left", t, r"/trie: \d+ of \d+")
	see("Esc takes the filter away", t, lambda s: not all("trie" in r[2] for r in rows(s)), "enter", "escape")

	text = see("Enter opens the callers", t, f"callers of {hot}", "home", "enter")
	caller, n = callers.most_common(1)[0]
	row = named(text, caller)
	check(f"{caller} calls it, with report's share", row and near(row[1], n * 100 / all_samples, 0.06), text)
	see("d: the callees", t, f"callees of {hot}", "d")
	see("l: its lines", t, r"\d+ \w+\.[ch]\b", "l")
	see("i: its instructions", t, r"%\s+[0-9a-f]{3,12}\b", "i")
	if "without libcapstone" not in t.text():
		see("as text", t, r"\b(mov|add|xor|imul|ldr|eor)\w* ")
	see("Esc goes back", t, "cpu by SELF%", "escape")

	text = look(t, "^cpu$", "6", "home")
	before = len(rows(text))
	see("Right opens the call tree", t, lambda s: len(rows(s)) > before, "down", "right", "right", "right", "up", "up",
	    "home", "right")
	see("Left closes it", t, lambda s: " + " in rows(s)[0][2], "home", "left")

	see("Enter on a wait: its wakers", t, lambda s: re.search(r"^waits in query_rows", s, re.M) and re.search(r"(released|woken) by\s+\+ ", s),
	    "3", "/", *"query_rows", "enter", "home", "enter")
	see("Enter on a waker: its stack", t, lambda s: re.search(r"^\s+(query_unit|commit_unit)\s*$", s, re.M), "down", "down", "enter", "down", "enter")
	see("Enter on the chain: what the waker waited for", t, "^waits in commit_sync", "/", *"commit_sync", "enter", "end", "enter")
	see("Esc: back to the wait", t, "^waits in query_rows", "escape")
	look(t, "^waits by", "escape", "escape", "escape")
	look(t, "^waits by TIME$", "escape")
	see("Enter on a thread: its functions", t, r"cpu by SELF%  thread \d+", "2", "home", "enter")
	see("Esc: the threads again", t, "WHAT ITS TIME WAS", "escape")
	see("h: only that thread", t, lambda s: "thread compute-0" in s and "1 threads" in s, "h", *"compute-0", "enter")
	see("F: only stacks with the function", t, lambda s: (named(s, "trie_fold") or (0, 0))[1] == 100,
	    "x", "1", "F", *"^trie_fold$", "enter", "s")
	see("F: a bad regex is told", t, "not a regular expression", "S", "x", "F", "(", "enter")
	text = see("r: a time range", t, "1 to 2 s", "x", "r", *"1-2", "enter")
	said = subprocess.run([GASFLAME, "report", "--format", "json", "--from", "1", "--to", "2", capture],
			      capture_output=True, text=True, check=False).stdout
	name = json.loads(said)["functions"][0]["name"]
	check("with the function that report has there", name in rows(text)[0][2], name + "\n" + text)
	see("w: something else", t, r"^(wait|queue|read|write)\S* by", "x", "w")
	see("W: back", t, "^cpu by", "W")
	see("c on a wait: its callers, by waits", t, r"^callers of .* wait$", "3", "home", "c")
	see("v: I/O by function", t, lambda s: "WRITTEN" in s and "FUNCTION" in s, "escape", "4", "v")

	text = see("f writes the flame graph", t, r"wrote \S+\.svg and \.html", "1", "f", seconds=60)
	match = re.search(r"wrote (\S+\.svg)", text)
	check("with what is shown", match and hot in open(match.group(1), encoding="utf-8").read(), text)
	page = match.group(1)[:-len("svg")] + "html" if match else ""
	check("and the page of it", os.path.exists(page) and "<script" in open(page, encoding="utf-8").read(),
			text)
	see("? helps", t, "pause: the picture", "?")
	look(t, "by SELF%", "x")

	t.resize(40, 10)
	see("40 x 10", t, lambda s: rows(s) and "functions" in s)
	t.resize(30, 5)
	see("30 x 5 is too small, and says so", t, "too small")
	t.resize(200, 60)
	see("200 x 60", t, lambda s: len(rows(s)) > 25 and "MODULE" in s)
	check("nothing was sent that a terminal does not know", not t.screen.unknown, t.screen.unknown)
	check("8 colours are enough", t.screen.colours and max(t.screen.colours) <= 47, t.screen.colours)
	t.keys("q")
	check("q quits", t.end() == 0, t.status)
	check("and gives the terminal back", not t.restored(), t.restored())

	t = top(capture, env={"NO_COLOR": "1", "LANG": "C", "LC_ALL": "C"})
	look(t, "WHAT ITS", "2")
	look(t, "CAUSE", "3")
	check("NO_COLOR: no colours", not t.screen.colours, t.screen.colours)
	check("LANG=C: no byte beyond ASCII", all(b < 128 for b in t.raw))
	t.keys("q")
	t.end()
	for term in ("vt100", "linux", "dumb"):
		t = Terminal(["env", f"TERM={term}", GASFLAME, "top", capture])
		# Without movements of the cursor the screen is not what the terminal makes of it.
		t.until(lambda _: re.search(rb"functions|not known", t.raw))
		t.keys("2", "q")
		check(f"TERM={term} ends well", t.end() >= 0)


def signals(capture):
	for name, how in (("SIGTERM", signal.SIGTERM), ("SIGHUP", signal.SIGHUP), ("Ctrl-C", None)):
		t = top(capture)
		t.keys("ctrl-c") if how is None else t.signal(how)
		check(f"{name} ends it", t.end() == 0, t.status)
		check(f"{name}: the terminal is as it was", not t.restored(), t.restored())
	# A shell with jobs: Ctrl-Z stops what is in the foreground, and only there.
	t = Terminal(["bash", "-c", f"set -m; '{GASFLAME}' top '{capture}'; echo STOPPED; read; fg >/dev/null; echo BACK $?"])
	look(t, "1 functions")
	see("Ctrl-Z stops it", t, "STOPPED", "ctrl-z")
	check("and the terminal is the shell's meanwhile", not t.restored(), t.restored())
	t.screen.resize(80, 24)
	see("the picture comes back", t, "1 functions", "enter")
	see("and its keys work", t, "WHAT ITS TIME WAS", "2")
	see("and q quits", t, "BACK 0", "q")
	check("the terminal is as it was", not t.restored(), t.restored())
	t.end()
	if os.environ.get("SANITIZED") != "1":
		t = top(capture)
		t.signal(signal.SIGSEGV)
		check("a crash ends it", t.end() != 0)
		check("a crash: the terminal is as it was", not t.restored(), t.restored())


def cpu_seconds(pid):
	fields = open(f"/proc/{pid}/stat", encoding="utf-8").read().rsplit(")", 1)[1].split()
	return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def live(pid):
	t = top("-p", pid, "--window", "3")
	see("functions of the running program, by name", t, r"%.*(mix_state|hash_words|trie_fold)", seconds=30)
	see("its threads", t, r"\d+\.\d %.*#.*compute-0", "2")
	see("the window is as wide as it was asked to be", t, r"last (2\.[5-9]|3\.)")
	see("p: paused", t, "PAUSED", "p")
	text = t.settled()
	t.read(2.5)
	# Below it is a line for messages, which may come at any time.
	check("the picture stands still", t.text().split("\n")[2:-2] == text.split("\n")[2:-2], t.text())
	see("but can be walked through", t, r"thread \d", "down", "down", "enter")
	see("p: goes on", t, lambda s: "PAUSED" not in s, "escape", "p")
	see("t: since the start", t, "since the start", "t")
	see("3: waits with their cause", t, r"lock +\w", "3")
	see("4: files", t, r"/\S*workload", "4")
	see("5: memory", t, r"MB.*workl", "5")
	begin, used = time.monotonic(), cpu_seconds(t.pid)
	t.read(5)
	percent = (cpu_seconds(t.pid) - used) * 100 / (time.monotonic() - begin)
	check(f"its own cost is small: {percent:.1f} % of a CPU", percent < 6)
	t.keys("q")
	check("q quits", t.end(20) == 0 and not t.restored(), t.restored())


def ending(pid):
	t = top("-p", pid)
	t.read(1.5)
	os.kill(int(pid), signal.SIGKILL)
	see("says when the target has ended", t, "ENDED", seconds=30)
	see("and what was recorded is still there", t, "%", "1")
	t.keys("q")
	check("with status 4", os.waitstatus_to_exitcode(t.end(20)) == 4, t.status)


def main():
	{"recording": recording, "signals": signals, "live": live, "ending": ending}[sys.argv[1]](*sys.argv[2:])
	return 1 if failures else 0


sys.exit(main())
