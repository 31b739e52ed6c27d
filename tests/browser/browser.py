"""browser.py - a real browser, driven by a script: the same calls for Chromium and Firefox.

	with browser.start("chromium") as b:
		b.open("file:///tmp/x.html")
		b.click(100, 200)
		b.key("z", "ctrl")
		assert b.eval("G.state.now.view") == "flame"
		assert not b.errors()

Standard library only. Each browser has a fresh profile folder, no window, no network of its own, and ends
with the script. A click is what a mouse would do, not a call of a function of the page: coordinates are
pixels of the page's area.
"""
import atexit
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# What key() knows by name: (code, virtual key code, text, WebDriver's character). Others are one character.
KEYS = {
	"Enter": ("Enter", 13, "\r", "\ue007"),
	"Escape": ("Escape", 27, "", "\ue00c"),
	"Backspace": ("Backspace", 8, "", "\ue003"),
	"Tab": ("Tab", 9, "", "\ue004"),
	"Delete": ("Delete", 46, "", "\ue017"),
	"ArrowLeft": ("ArrowLeft", 37, "", "\ue012"),
	"ArrowUp": ("ArrowUp", 38, "", "\ue013"),
	"ArrowRight": ("ArrowRight", 39, "", "\ue014"),
	"ArrowDown": ("ArrowDown", 40, "", "\ue015"),
	"PageUp": ("PageUp", 33, "", "\ue00e"),
	"PageDown": ("PageDown", 34, "", "\ue00f"),
	"End": ("End", 35, "", "\ue010"),
	"Home": ("Home", 36, "", "\ue011"),
	"F1": ("F1", 112, "", "\ue031"),
	"F3": ("F3", 114, "", "\ue033"),
	" ": ("Space", 32, " ", " "),
}
# (bit of the DevTools protocol, key, code, virtual key code, WebDriver's character)
MODIFIERS = {
	"alt": (1, "Alt", "AltLeft", 18, "\ue00a"),
	"ctrl": (2, "Control", "ControlLeft", 17, "\ue009"),
	"shift": (8, "Shift", "ShiftLeft", 16, "\ue008"),
}
PROGRAMS = {"chromium": ("chromium", "chromium-browser"), "firefox": ("firefox-esr", "firefox")}


PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


def die_with_parent():
	"""A script that is killed leaves no browser."""
	libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Failed(Exception):
	"""The page threw, or the browser did not do as told."""


def available():
	"""Names of the browsers that are installed here."""
	return [name for name in PROGRAMS if program(name)]


def program(name):
	return next(filter(None, map(shutil.which, PROGRAMS[name])), None)


def start(name="chromium", width=1280, height=800):
	if name not in PROGRAMS:
		raise Failed(f"there is no browser {name!r} here: one of {', '.join(PROGRAMS)}")
	if not program(name):
		raise Failed(f"{name} is not installed (Debian: {PROGRAMS[name][0]})")
	# What is registered to be done at the end is also done when somebody ends the script.
	if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
		signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
	if name == "chromium":
		import chromium
		return chromium.Chromium(program(name), width, height)
	import firefox
	return firefox.Firefox(program(name), width, height)


class Browser:
	"""What both share: the process, its folder, and what is made of the simple calls."""

	name = ""

	def __init__(self):
		self.folder = tempfile.mkdtemp(prefix="gasflame-browser-")
		self.downloads = os.path.join(self.folder, "downloads")
		os.mkdir(self.downloads)
		self.process = None
		atexit.register(self.close)

	def launch(self, command, prepare=lambda: None, **options):
		"""In a session of its own, so that all its processes can be ended; HOME is the profile's folder."""
		env = dict(os.environ, HOME=self.folder, XDG_CONFIG_HOME=self.folder,
				XDG_CACHE_HOME=self.folder,
			   MOZ_CRASHREPORTER_DISABLE="1", MOZ_REMOTE_SETTINGS_DEVTOOLS="1", TZ="UTC")
		env.pop("DISPLAY", None)
		env.pop("DBUS_SESSION_BUS_ADDRESS", None)
		self.log = open(os.path.join(self.folder, "log"), "wb")
		self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=self.log,
						stderr=self.log, start_new_session=True,
						preexec_fn=lambda: (prepare(), die_with_parent()), **options)

	def log_text(self):
		with open(os.path.join(self.folder, "log"), "rb") as f:
			return f.read().decode(errors="replace")

	def close(self):
		atexit.unregister(self.close)
		if self.process:
			try:
				os.killpg(self.process.pid, signal.SIGKILL)
			except ProcessLookupError:
				pass
			self.process.wait()
			self.process = None
			self.log.close()
		# Processes of the browser that are still ending may write into it once more.
		for _ in range(20):
			shutil.rmtree(self.folder, ignore_errors=True)
			if not os.path.exists(self.folder):
				break
			time.sleep(0.05)

	def __enter__(self):
		return self

	def __exit__(self, *_):
		self.close()

	def wait(self, js, seconds=30):
		"""Until the expression is true; gives its value."""
		end = time.monotonic() + seconds
		while True:
			try:
				value, problem = self.eval(js), None
			except Failed as e:
				value, problem = None, e
			if value:
				return value
			if time.monotonic() > end:
				raise Failed(f"after {seconds} s it is still not true: {js}"
					     + (f" ({problem})" if problem else "") + self.first_errors())
			time.sleep(0.02)

	def first_errors(self):
		errors = self.errors()
		return "; the page said: " + " | ".join(errors[:3]) if errors else ""

	def center(self, selector):
		"""Middle of the first visible element that a CSS selector finds."""
		place = self.eval(f"""(() => {{ for (const e of document.querySelectorAll({json.dumps(selector)})) {{
			const r = e.getBoundingClientRect();
			if (r.width && r.height) return [r.left + r.width / 2, r.top + r.height / 2]; }} }})()""")
		if not place:
			raise Failed(f"nothing visible is {selector}")
		return place

	def click_on(self, selector, **options):
		self.click(*self.center(selector), **options)

	def doubleclick(self, x, y):
		self.click(x, y, count=2)

	def rightclick(self, x, y):
		self.click(x, y, button="right")

	def type(self, text):
		for character in text:
			self.key(character)

	def settle(self):
		"""Until what was asked for has been drawn."""
		self.eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => "
			  "setTimeout(done, 0))))")

	def downloaded(self, seconds=5):
		"""Path of the file that the page let the user download last."""
		end = time.monotonic() + seconds
		while time.monotonic() < end:
			names = [n for n in os.listdir(self.downloads) if not n.endswith((".crdownload",
					".part"))]
			paths = [os.path.join(self.downloads, n) for n in names if not n.startswith(".")]
			paths = [p for p in paths if os.path.getsize(p)]
			if paths and len(os.listdir(self.downloads)) == len(names):
				return max(paths, key=os.path.getmtime)
			time.sleep(0.05)
		raise Failed("nothing was downloaded")
