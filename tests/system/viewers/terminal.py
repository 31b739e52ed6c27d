"""terminal.py - a program on a pseudo-terminal: keys in, the screen as lines of text out.

A small emulator of what ncurses sends to an xterm (or any terminal whose sequences are a part of that): enough
to read the screen, and to see whether the program gave the terminal back as it was.
"""
import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

CSI = re.compile(r"\x1b\[([?>!]?)([0-9;]*)([ -/]*)([@-~])")
OTHER = re.compile(r"\x1b(?:[()][A-Za-z0-9]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[=>78McDEHZ])")
# What is waited for comes at once; on a machine that is starved, late.
PATIENCE_S = 40


class Screen:
	"""Cells, cursor, colours that were used, and the modes that a program must give back."""

	def __init__(self, columns, lines):
		self.resize(columns, lines)
		self.rest = ""
		self.modes = set()     # private modes that are on
		self.colours = set()   # SGR numbers of colours that were used
		self.unknown = []

	def resize(self, columns, lines):
		self.columns, self.lines = columns, lines
		self.cells = [[" "] * columns for _ in range(lines)]
		self.y = self.x = 0
		self.top, self.bottom = 0, lines - 1

	def text(self):
		return "\n".join("".join(row).rstrip() for row in self.cells)

	def scroll(self, n):
		for _ in range(abs(n)):
			if n > 0:
				del self.cells[self.top]
				self.cells.insert(self.bottom, [" "] * self.columns)
			else:
				del self.cells[self.bottom]
				self.cells.insert(self.top, [" "] * self.columns)

	def put(self, c):
		if self.x >= self.columns:
			self.x = 0
			self.down()
		self.cells[self.y][self.x] = c
		self.last = c
		self.x += 1

	def down(self):
		if self.y == self.bottom:
			self.scroll(1)
		elif self.y < self.lines - 1:
			self.y += 1

	def feed(self, text):
		text = self.rest + text
		self.rest = ""
		at = 0
		while at < len(text):
			c = text[at]
			if c == "\x1b":
				match = CSI.match(text, at) or OTHER.match(text, at)
				if not match:
					if len(text) - at < 32:
						self.rest = text[at:]
						return
					self.unknown.append(text[at:at + 8])
					at += 1
					continue
				if match.re is CSI:
					self.control(match.group(1), match.group(2), match.group(4))
				elif match.group(0) == "\x1bM":
					if self.y == self.top:
						self.scroll(-1)
					else:
						self.y -= 1
				at = match.end()
				continue
			if c == "\n":
				self.down()
			elif c == "\r":
				self.x = 0
			elif c == "\b":
				self.x = max(0, self.x - 1)
			elif c == "\t":
				self.x = min(self.columns - 1, (self.x // 8 + 1) * 8)
			elif c >= " ":
				self.put(c)
			at += 1

	def control(self, private, numbers, final):
		n = [int(x) if x else 0 for x in numbers.split(";")] if numbers else []
		one = max(n[0], 1) if n else 1
		row = self.cells[self.y]
		x = min(self.x, self.columns - 1)
		if private == "?" and final in "hl":
			for mode in n:
				(self.modes.add if final == "h" else self.modes.discard)(mode)
		elif final in "Hf":
			self.y = min(self.lines, one) - 1
			self.x = min(self.columns, max(n[1], 1) if len(n) > 1 else 1) - 1
		elif final == "A":
			self.y = max(0, self.y - one)
		elif final == "B":
			self.y = min(self.lines - 1, self.y + one)
		elif final == "C":
			self.x = min(self.columns - 1, x + one)
		elif final == "D":
			self.x = max(0, x - one)
		elif final == "G":
			self.x = min(self.columns, one) - 1
		elif final == "d":
			self.y = min(self.lines, one) - 1
		elif final == "J":
			kind = n[0] if n else 0
			for y in range(self.lines):
				for k in range(self.columns):
					if kind == 2 or (kind == 0 and (y, k) >= (self.y, x)) or (kind == 1 and (y, k) <= (self.y, x)):
						self.cells[y][k] = " "
		elif final == "K":
			kind = n[0] if n else 0
			for k in range(self.columns):
				if kind == 2 or (kind == 0 and k >= x) or (kind == 1 and k <= x):
					row[k] = " "
		elif final == "X":
			for k in range(x, min(self.columns, x + one)):
				row[k] = " "
		elif final == "P":
			row[x:] = (row[x + one:] + [" "] * self.columns)[:self.columns - x]
		elif final == "@":
			row[x:] = ([" "] * one + row[x:])[:self.columns - x]
		elif final in "LM":
			top, self.top = self.top, self.y
			self.scroll(one if final == "M" else -one)
			self.top = top
		elif final in "ST":
			self.scroll(one if final == "S" else -one)
		elif final == "r":
			self.top, self.bottom = (n[0] - 1, n[1] - 1) if len(n) > 1 else (0, self.lines - 1)
			self.y = self.x = 0
		elif final == "b":
			for _ in range(one):
				self.put(self.last)
		elif final == "m":
			self.colours |= {k for k in n if 30 <= k <= 37 or 40 <= k <= 47 or 90 <= k <= 107 or k in (38, 48)}
		elif final not in "hltnc":
			self.unknown.append(private + numbers + final)


class Terminal:
	KEYS = {"up": "\x1bOA", "down": "\x1bOB", "right": "\x1bOC", "left": "\x1bOD", "enter": "\r", "escape": "\x1b",
		"pagedown": "\x1b[6~", "pageup": "\x1b[5~", "tab": "\t", "end": "\x1bOF", "home": "\x1bOH",
		"erase": "\x7f", "ctrl-c": "\x03", "ctrl-z": "\x1a"}

	def __init__(self, command, columns=80, lines=24, env=None):
		self.screen = Screen(columns, lines)
		self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
		self.raw = b""
		environment = dict(os.environ, TERM="xterm", **(env or {}))
		self.pid, self.fd = pty.fork()
		if not self.pid:
			size = struct.pack("HHHH", lines, columns, 0, 0)
			fcntl.ioctl(0, termios.TIOCSWINSZ, size)
			os.execvpe(command[0], command, environment)
		self.set_size(columns, lines)
		self.status = None
		self.before = termios.tcgetattr(self.fd)

	def set_size(self, columns, lines):
		fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

	def resize(self, columns, lines):
		self.screen.resize(columns, lines)
		self.set_size(columns, lines)

	def read(self, seconds):
		until = time.monotonic() + seconds
		while True:
			left = until - time.monotonic()
			ready, _, _ = select.select([self.fd], [], [], max(0, left))
			if not ready:
				return True
			try:
				data = os.read(self.fd, 65536)
			except OSError:
				return False
			if not data:
				return False
			self.raw += data
			self.screen.feed(self.decoder.decode(data))

	def keys(self, *keys):
		for key in keys:
			os.write(self.fd, self.KEYS.get(key, key).encode())
			# A lone escape must not become a part of the next key.
			self.read(0.1 if key == "escape" else 0.03)
		return self.text()

	def until(self, good, seconds=PATIENCE_S):
		"""Reads on until good(text); what it came to, and the text."""
		until = time.monotonic() + seconds
		while True:
			result = good(self.text())
			if result or time.monotonic() > until:
				return result, self.text()
			if not self.read(0.1):
				return good(self.text()), self.text()

	def settled(self, seconds=PATIENCE_S):
		"""The text once it has not changed for half a second: a picture may come in several pieces."""
		until = time.monotonic() + seconds
		while True:
			before = self.text()
			if not self.read(0.5) or self.text() == before or time.monotonic() > until:
				return self.text()

	def text(self):
		return self.screen.text()

	def wait_for(self, pattern, seconds=PATIENCE_S):
		until = time.monotonic() + seconds
		while time.monotonic() < until:
			if re.search(pattern, self.text(), re.M):
				return True
			if not self.read(0.1):
				break
		return bool(re.search(pattern, self.text(), re.M))

	def signal(self, number):
		os.kill(self.pid, number)

	def end(self, seconds=PATIENCE_S):
		"""The exit status once it has ended; -9 when it had to be killed."""
		until = time.monotonic() + seconds
		while time.monotonic() < until:
			self.read(0.05)
			pid, status = os.waitpid(self.pid, os.WNOHANG)
			if pid:
				self.read(0.1)
				self.status = status
				return status
		os.kill(self.pid, signal.SIGKILL)
		os.waitpid(self.pid, 0)
		return -9

	def restored(self):
		"""Is the terminal as it was: cooked, the cursor shown, the other screen left?"""
		now = termios.tcgetattr(self.fd)
		problems = []
		for name, index, bit in (("echo", 3, termios.ECHO), ("lines", 3, termios.ICANON), ("newlines", 0, termios.ICRNL)):
			if bool(now[index] & bit) != bool(self.before[index] & bit):
				problems.append(name)
		if 1049 in self.screen.modes:
			problems.append("other screen")
		if 25 in self.screen.modes or b"\x1b[?25l" in self.raw:
			last = max(self.raw.rfind(b"\x1b[?25h"), self.raw.rfind(b"\x1b[?12l\x1b[?25h"))
			if last < self.raw.rfind(b"\x1b[?25l"):
				problems.append("cursor")
		if 1 in self.screen.modes:
			problems.append("keypad")
		return problems
