"""chromium.py - Chromium by its DevTools protocol, over a pair of pipes: no port is opened."""
import base64
import fcntl
import json
import os
import select
import time

import browser

FLAGS = """--headless=new --no-sandbox --remote-debugging-pipe --no-first-run --no-default-browser-check
--disable-background-networking --disable-component-update --disable-sync --disable-default-apps
--disable-extensions --disable-breakpad --disable-crash-reporter --disable-gpu --disable-dev-shm-usage
--disable-domain-reliability --disable-client-side-phishing-detection --metrics-recording-only --mute-audio
--force-color-profile=srgb --password-store=basic --use-mock-keychain
--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,InterestFeedContentSuggestions
--disable-renderer-backgrounding --disable-backgrounding-occluded-windows --disable-background-timer-throttling
--enable-precise-memory-info --host-resolver-rules=MAP\\ *\\ ~NOTFOUND\\ ,\\ EXCLUDE\\ 127.0.0.1
--no-proxy-server about:blank"""
PATIENCE_S = 60


class Chromium(browser.Browser):
	name = "chromium"

	def __init__(self, program, width, height):
		super().__init__()
		theirs, self.out = os.pipe()
		self.input, to_us = os.pipe()
		# The protocol is spoken on descriptors 3 and 4, which may be something else here.
		high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in (theirs, to_us)]
		self.buffer, self.next_id, self.answers = b"", 0, {}
		self.problems, self.loaded, self.session = [], 0, None
		flags = [w.replace("\0", " ") for w in FLAGS.replace("\\ ", "\0").split()]
		self.launch([program, f"--user-data-dir={self.folder}/profile",
				f"--window-size={width},{height}", *flags],
			    close_fds=False, prepare=lambda: (os.dup2(high[0], 3), os.dup2(high[1], 4)))
		for fd in (theirs, to_us, *high):
			os.close(fd)
		target = self.call("Target.createTarget", url="about:blank")["targetId"]
		self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
		self.call("Browser.setDownloadBehavior", session=None, behavior="allow",
				downloadPath=self.downloads)
		self.call("Browser.grantPermissions", session=None,
			  permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
		for domain in ("Page", "Runtime", "Log"):
			self.call(domain + ".enable")
		self.call("Emulation.setFocusEmulationEnabled", enabled=True)
		self.resize(width, height)

	def close(self):
		super().close()
		for fd in (self.out, self.input):
			if fd >= 0:
				os.close(fd)
		self.out = self.input = -1

	# --- the protocol: JSON, a NUL after each message ---

	def call(self, method, session="own", **params):
		self.next_id += 1
		message = {"id": self.next_id, "method": method, "params": params}
		if session and self.session:
			message["sessionId"] = self.session
		data = json.dumps(message).encode() + b"\0"
		while data:
			data = data[os.write(self.out, data):]
		answer = self.read_until(lambda: self.answers.pop(self.next_id, None), method)
		if "error" in answer:
			raise browser.Failed(f"{method}: {answer['error'].get('message')}")
		return answer["result"]

	def read_until(self, done, what, seconds=PATIENCE_S):
		end = time.monotonic() + seconds
		while True:
			value = done()
			if value:
				return value
			if not select.select([self.input], [], [], max(0, end - time.monotonic()))[0]:
				raise browser.Failed(f"chromium: no answer to {what} in {seconds} s")
			data = os.read(self.input, 1 << 20)
			if not data:
				raise browser.Failed("chromium ended: " + self.log_text()[-500:])
			*whole, self.buffer = (self.buffer + data).split(b"\0")
			for text in whole:
				self.take(json.loads(text))

	def take(self, message):
		params = message.get("params", {})
		method = message.get("method")
		if "id" in message:
			self.answers[message["id"]] = message
		elif method == "Runtime.exceptionThrown":
			details = params["exceptionDetails"]
			self.problems.append(details.get("exception",
					{}).get("description") or details["text"])
		elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
			self.problems.append(" ".join(str(a.get("value",
					a.get("description"))) for a in params["args"]))
		elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
			self.problems.append(params["entry"]["text"] + " " + params["entry"].get("url", ""))
		elif method == "Page.loadEventFired":
			self.loaded += 1
		elif method == "Page.javascriptDialogOpening":
			self.problems.append("dialog: " + params["message"])
			self.next_id += 1
			os.write(self.out, json.dumps({"id": self.next_id,
					"method": "Page.handleJavaScriptDialog",
				"params": {"accept": True}, "sessionId": self.session}).encode() + b"\0")

	# --- what a test calls ---

	def open(self, url, seconds=PATIENCE_S):
		"""Always a new page, also when only the fragment differs."""
		if self.eval("location.href").split("#")[0] == url.split("#")[0]:
			self.open("about:blank")
		before = self.loaded
		result = self.call("Page.navigate", url=url)
		if result.get("errorText"):
			raise browser.Failed(f"{url}: {result['errorText']}")
		self.read_until(lambda: self.loaded > before, url, seconds)

	def eval(self, js):
		result = self.call("Runtime.evaluate", expression=js, awaitPromise=True, returnByValue=True,
				   userGesture=True)
		if "exceptionDetails" in result:
			details = result["exceptionDetails"]
			raise browser.Failed(details.get("exception",
					{}).get("description") or details["text"])
		return result["result"].get("value")

	def errors(self):
		"""What the page said on its console as errors, exceptions and dialogs; empties the list."""
		self.eval("0")
		problems, self.problems = self.problems, []
		return problems

	def mouse(self, kind, x, y, button="none", modifiers=(), **more):
		self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button,
				modifiers=bits(modifiers), **more)

	def move(self, x, y, modifiers=()):
		self.mouse("mouseMoved", x, y, modifiers=modifiers)

	def click(self, x, y, button="left", count=1, modifiers=()):
		self.move(x, y, modifiers)
		held = {"left": 1, "right": 2, "middle": 4}[button]
		for i in range(count):
			self.mouse("mousePressed", x, y, button, modifiers, clickCount=i + 1, buttons=held)
			self.mouse("mouseReleased", x, y, button, modifiers, clickCount=i + 1, buttons=0)

	def drag(self, x1, y1, x2, y2, steps=8, modifiers=()):
		self.move(x1, y1, modifiers)
		self.mouse("mousePressed", x1, y1, "left", modifiers, clickCount=1, buttons=1)
		for i in range(1, steps + 1):
			self.mouse("mouseMoved", x1 + (x2 - x1) * i / steps, y1 + (y2 - y1) * i / steps,
					"left", modifiers,
				   buttons=1)
		self.mouse("mouseReleased", x2, y2, "left", modifiers, clickCount=1, buttons=0)

	def wheel(self, x, y, dx, dy, modifiers=()):
		self.mouse("mouseWheel", x, y, modifiers=modifiers, deltaX=dx, deltaY=dy)

	def key(self, name, *modifiers):
		if name in browser.KEYS:
			code, number, text, _ = browser.KEYS[name]
		else:
			code, number, text = character_code(name)
			if name.isupper() and "shift" not in modifiers:
				modifiers += ("shift",)
		mask = bits(modifiers)
		for m in modifiers:
			_, key, its_code, its_number, _ = browser.MODIFIERS[m]
			self.call("Input.dispatchKeyEvent", type="rawKeyDown", key=key, code=its_code,
				  windowsVirtualKeyCode=its_number, modifiers=mask)
		if mask & 3: # with Ctrl or Alt a key writes nothing
			text = ""
		self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", key=name,
				code=code,
			  windowsVirtualKeyCode=number, text=text, unmodifiedText=text, modifiers=mask)
		self.call("Input.dispatchKeyEvent", type="keyUp", key=name, code=code,
				windowsVirtualKeyCode=number,
			  modifiers=mask)
		for m in reversed(modifiers):
			_, key, its_code, its_number, _ = browser.MODIFIERS[m]
			self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=its_code,
				  windowsVirtualKeyCode=its_number)

	def resize(self, width, height):
		self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
				deviceScaleFactor=1,
			  mobile=False)

	def theme(self, scheme):
		"""What prefers-color-scheme says: "dark" or "light"."""
		self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme",
				"value": scheme}])

	def screenshot(self, path):
		self.settle()
		data = self.call("Page.captureScreenshot", format="png")["data"]
		with open(path, "wb") as f:
			f.write(base64.b64decode(data))

	def tree(self):
		"""The accessibility tree as a screen reader has it: [(role, name, {property: value})]."""
		found = []
		for node in self.call("Accessibility.getFullAXTree")["nodes"]:
			if not node.get("ignored"):
				found.append((node.get("role", {}).get("value"), node.get("name",
						{}).get("value"),
					      {p["name"]: p["value"].get("value")
					      for p in node.get("properties", [])}))
		return found


def bits(modifiers):
	return sum(browser.MODIFIERS[m][0] for m in modifiers)


def character_code(c):
	if c.isalpha() and c.isascii():
		return "Key" + c.upper(), ord(c.upper()), c
	if c.isdigit():
		return "Digit" + c, ord(c), c
	return {"/": "Slash", "?": "Slash", "-": "Minus", "=": "Equal", ".": "Period", ",": "Comma"}.get(c,
			""), 0, c
