#!/usr/bin/env python3
"""completion.py [--options LIST] SHELL SCRIPT - types lines and the Tab key into a real shell on a terminal, and checks what became of them.

A line is not run: once it is completed, a command that prints its arguments is put before it. fish tells by itself what it
would offer."""
import os
import pty
import re
import select
import subprocess
import sys
import time

# What is typed, and the words that the shell must have then.
LINES = [
	("gasflame repo", ["gasflame", "report"]),
	("gasflame store pu", ["gasflame", "store", "push"]),
	("gasflame report --form", ["gasflame", "report", "--format"]),
	("gasflame report --format speedsc", ["gasflame", "report", "--format", "speedscope"]),
	("gasflame record --backend per", ["gasflame", "record", "--backend", "perf"]),
	("gasflame record -e cpu,goro", ["gasflame", "record", "-e", "cpu,goroutine"]),
	("gasflame record --events li", ["gasflame", "record", "--events", "list.conf"]),
	("gasflame report on", ["gasflame", "report", "one.gasflame"]),
	("gasflame record evil", ["gasflame", "record", "evil$(>P)"]),
	("gasflame heap dump evil", ["gasflame", "heap", "dump", "evil$(>P)"]),
	("gasflame diff-folded --norm", ["gasflame", "diff-folded", "--normalize"]),
	("gasflame help comp", ["gasflame", "help", "compare"]),
	("gasflame run -- ./ev", ["gasflame", "run", "--", "./evil$(>P)"]),
]
START = {
	"bash": (["bash", "--norc", "--noprofile", "-i"], "source {script}\n"),
	"zsh": (["zsh", "-f", "-i"], "bindkey -e; setopt nobeep; autoload -Uz compinit; compinit -D -u; source {script}\n"),
}


class Terminal:
	def __init__(self, command):
		self.pid, self.fd = pty.fork()
		if not self.pid:
			os.environ.update(TERM="xterm", PS1="", HISTFILE="", COLUMNS="200")
			os.execvp(command[0], command)
		self.said = b""

	def type(self, text):
		os.write(self.fd, text.encode())

	def wait(self, pattern, seconds=60):
		"""The match of what was said since the last one."""
		until = time.monotonic() + seconds
		while time.monotonic() < until:
			found = re.search(pattern, self.said, re.S)
			if found:
				self.said = self.said[found.end():]
				return found
			if select.select([self.fd], [], [], 1)[0]:
				try:
					self.said += os.read(self.fd, 65536)
				except OSError:
					break
		raise SystemExit(f"no {pattern} in {self.said!r}")


def complete_typed(shell, script):
	"""The words of each line after a Tab."""
	command, setup = START[shell]
	terminal = Terminal(command)
	# The answer must not be in the echo of the question.
	terminal.type(setup.format(script=script) + "show() { printf '{%s}' \"$@\"; printf '[%s]\\n' end; }; printf '[%s]\\n' ready\n")
	terminal.wait(rb"\[ready\]")
	for line, _ in LINES:
		terminal.type(line + "\t\x01show \n") # to the beginning of the line
		yield re.findall(r"\{(.*?)\}", terminal.wait(rb"((?:\{[^\n]*\})?)\[end\]")[1].decode())
	terminal.type("exit\n")


def complete_fish(script):
	for line, wanted in LINES:
		offers = subprocess.run(["fish", "--no-config", "-c", 'source $argv[1]; complete -C $argv[2]', script, line], check=True,
					stdout=subprocess.PIPE, text=True, env=dict(os.environ, TERM="xterm")).stdout.splitlines()
		words = [offer.split("\t")[0] for offer in offers]
		# It lists what it offers, unquoted.
		yield wanted if words == wanted[-1:] else words


def missing_options(listed, shell, script):
	"""Those of the lines "command:option" that the script does not give that command."""
	with open(script, encoding="utf-8") as f:
		text = f.read()
	with open(listed, encoding="utf-8") as f:
		lines = f.read().splitlines()
	for line in lines or ["no options"]:
		command, _, option = line.partition(":")
		branch, word = {
			"bash": (rf"^\t'{command}'\)\n.*?;;", rf"\s--{option}\s"),
			"zsh": (rf"^_gasflame_{re.sub('[ -]', '_', command)}\(\)\n.*?^}}", rf"--{option}\b"),
			"fish": (rf"^complete -c gasflame -n '__gasflame_is {command}'[^\n]* -l {option} .*?$", "."),
		}[shell]
		found = re.search(branch, text, re.S | re.M)
		if not found or not re.search(word, found[0]):
			yield line


def main(shell, script):
	bad = 0
	results = complete_fish(script) if shell == "fish" else complete_typed(shell, script)
	for (line, wanted), got in zip(LINES, results):
		if got != wanted:
			bad += 1
			print(f"{line}<Tab>: wanted {wanted}, got {got}")
	return 1 if bad else 0


if sys.argv[1] == "--options":
	sys.exit(" ".join(missing_options(*sys.argv[2:])) or 0)
sys.exit(main(*sys.argv[1:]))
