"""firefox.py - Firefox by Marionette, its own remote protocol, over a TCP socket on loopback."""
import base64
import json
import os
import socket
import time

import browser

# No update, telemetry, first-run page or other traffic; a free port for Marionette.
PREFS = {
	"marionette.port": 0,
	"app.update.enabled": False,
	"app.normandy.enabled": False,
	"browser.aboutwelcome.enabled": False,
	"browser.download.folderList": 2,
	"browser.download.useDownloadDir": True,
	"browser.download.always_ask_before_handling_new_types": False,
	"browser.download.alwaysOpenPanel": False,
	"browser.newtabpage.enabled": False,
	"browser.region.network.url": "",
	"browser.safebrowsing.downloads.enabled": False,
	"browser.safebrowsing.malware.enabled": False,
	"browser.safebrowsing.phishing.enabled": False,
	"browser.shell.checkDefaultBrowser": False,
	"browser.startup.homepage": "about:blank",
	"browser.startup.page": 0,
	"browser.tabs.remote.autostart": True,
	"captivedetect.canonicalURL": "",
	"datareporting.policy.dataSubmissionEnabled": False,
	"dom.events.testing.asyncClipboard": True,
	"dom.ipc.processCount": 1,
	"extensions.getAddons.cache.enabled": False,
	"extensions.update.enabled": False,
	"general.smoothScroll": False,
	"media.gmp-manager.url": "",
	"network.captive-portal-service.enabled": False,
	"network.connectivity-service.enabled": False,
	"network.dns.disablePrefetch": True,
	"network.prefetch-next": False,
	"network.proxy.type": 0,
	"services.settings.server": "data:,",
	"toolkit.telemetry.enabled": False,
	"toolkit.telemetry.server": "",
	"toolkit.cosmeticAnimations.enabled": False,
}
PATIENCE_S = 90
BUTTONS = {"left": 0, "middle": 1, "right": 2}


class Firefox(browser.Browser):
	name = "firefox"

	def __init__(self, program, width, height):
		super().__init__()
		profile = os.path.join(self.folder, "profile")
		os.mkdir(profile)
		prefs = dict(PREFS, **{"browser.download.dir": self.downloads})
		with open(os.path.join(profile, "user.js"), "w", encoding="utf-8") as f:
			for key, value in prefs.items():
				f.write(f"user_pref({json.dumps(key)}, {json.dumps(value)});\n")
		self.launch([program, "--headless", "--marionette", "--remote-allow-system-access",
				"--no-remote",
			     "--profile", profile, f"--width={width}", f"--height={height}", "about:blank"])
		self.connect(os.path.join(profile, "MarionetteActivePort"))
		self.next_id = 0
		self.call("WebDriver:NewSession", pageLoadStrategy="normal", unhandledPromptBehavior="accept")
		self.call("WebDriver:SetTimeouts", script=PATIENCE_S * 1000, pageLoad=PATIENCE_S * 1000)
		self.resize(width, height)

	def connect(self, port_file):
		end = time.monotonic() + PATIENCE_S
		while time.monotonic() < end:
			if self.process.poll() is not None:
				raise browser.Failed("firefox ended: " + self.log_text()[-500:])
			try:
				with open(port_file, encoding="ascii") as f:
					port = int(f.read())
				self.socket = socket.create_connection(("127.0.0.1", port),
						timeout=PATIENCE_S)
				break
			except (OSError, ValueError):
				time.sleep(0.05)
		else:
			raise browser.Failed("firefox did not open its port: " + self.log_text()[-500:])
		self.buffer = b""
		self.receive() # it greets

	def close(self):
		super().close()
		if getattr(self, "socket", None):
			self.socket.close()
			self.socket = None

	# --- the protocol: length, a colon, JSON ---

	def receive(self):
		while True:
			head, colon, rest = self.buffer.partition(b":")
			if colon and len(rest) >= int(head):
				self.buffer = rest[int(head):]
				return json.loads(rest[:int(head)])
			data = self.socket.recv(1 << 20)
			if not data:
				raise browser.Failed("firefox ended: " + self.log_text()[-500:])
			self.buffer += data

	def call(self, command, **params):
		self.next_id += 1
		data = json.dumps([0, self.next_id, command, params]).encode()
		self.socket.sendall(b"%d:%s" % (len(data), data))
		while True:
			_, number, error, result = self.receive()
			if number == self.next_id:
				break
		if error:
			raise browser.Failed(f"{command}: {error.get('message') or error.get('error')}")
		return result

	def privileged(self, script, *args):
		"""Runs a script in the browser itself, not in the page."""
		self.call("Marionette:SetContext", value="chrome")
		try:
			return self.call("WebDriver:ExecuteScript", script=script, args=list(args))["value"]
		finally:
			self.call("Marionette:SetContext", value="content")

	# --- what a test calls ---

	def open(self, url, seconds=PATIENCE_S):
		"""Always a new page, also when only the fragment differs."""
		if self.call("WebDriver:GetCurrentURL")["value"].split("#")[0] == url.split("#")[0]:
			self.call("WebDriver:Navigate", url="about:blank")
		self.call("WebDriver:Navigate", url=url)

	def eval(self, js):
		script = f"""const done = arguments[arguments.length - 1];
			(async () => ({js}))().then(v => done([true, v === undefined ? null : v]),
				e => done([false, String(e) + "\\n" + (e && e.stack)]));"""
		answer = self.call("WebDriver:ExecuteAsyncScript", script=script, args=[])["value"]
		if not answer:
			raise browser.Failed("the page went away meanwhile")
		fine, value = answer
		if not fine:
			raise browser.Failed(value)
		return value

	def errors(self):
		"""What the page said on its console as errors and exceptions; empties the list."""
		return self.privileged("""
			const found = [];
			for (const m of Services.console.getMessageArray()) {
				try { m.QueryInterface(Ci.nsIScriptError); } catch (e) { continue; }
				if (m.flags & 1) continue; // a warning
				if (/^(file|http|data|blob|about:blank)/.test(m.sourceName))
					found.push(m.errorMessage + " " + m.sourceName.slice(0, 200) + ":" + m.lineNumber);
			}
			Services.console.reset();
			return found;""")

	def act(self, actions, keys=None):
		chain = [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
				"actions": actions}]
		self.call("WebDriver:PerformActions", actions=(keys or []) + chain)

	def held(self, modifiers, down):
		"""Presses or lets go modifiers."""
		if modifiers:
			self.call("WebDriver:PerformActions", actions=[{"type": "key", "id": "keys",
					"actions": [
				{"type": "keyDown" if down else "keyUp",
				"value": browser.MODIFIERS[m][4]} for m in modifiers]}])

	def move(self, x, y, modifiers=()):
		self.held(modifiers, True)
		self.act([at(x, y)])
		self.held(modifiers, False)

	def click(self, x, y, button="left", count=1, modifiers=()):
		self.held(modifiers, True)
		number = BUTTONS[button]
		self.act([at(x, y)] + [{"type": "pointerDown", "button": number}, {"type": "pointerUp",
				"button": number}] * count)
		self.held(modifiers, False)

	def drag(self, x1, y1, x2, y2, steps=8, modifiers=()):
		self.held(modifiers, True)
		self.act([at(x1, y1), {"type": "pointerDown", "button": 0}]
			 + [at(x1 + (x2 - x1) * i / steps, y1 + (y2 - y1) * i / steps) for i in range(1,
			 steps + 1)]
			 + [{"type": "pointerUp", "button": 0}])
		self.held(modifiers, False)

	def wheel(self, x, y, dx, dy, modifiers=()):
		self.held(modifiers, True)
		self.call("WebDriver:PerformActions", actions=[{"type": "wheel", "id": "wheel", "actions": [
			{"type": "scroll", "x": int(x), "y": int(y), "deltaX": int(dx), "deltaY": int(dy),
			"duration": 0}]}])
		self.held(modifiers, False)

	def key(self, name, *modifiers):
		value = browser.KEYS[name][3] if name in browser.KEYS else name
		self.held(modifiers, True)
		self.call("WebDriver:PerformActions", actions=[{"type": "key", "id": "keys", "actions": [
			{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]}])
		self.held(modifiers, False)

	def resize(self, width, height):
		"""The page's area, not the window's."""
		for _ in range(3):
			inner = self.eval("[innerWidth, innerHeight]")
			if inner == [width, height]:
				return
			outer = self.call("WebDriver:GetWindowRect")
			self.call("WebDriver:SetWindowRect", width=outer["width"] + width - inner[0],
				  height=outer["height"] + height - inner[1])

	def theme(self, scheme):
		"""What prefers-color-scheme says: "dark" or "light"."""
		self.privileged("Services.prefs.setIntPref('layout.css.prefers-color-scheme.content-override', arguments[0])",
				0 if scheme == "dark" else 1)

	def screenshot(self, path):
		self.settle()
		data = self.call("WebDriver:TakeScreenshot", full=False)["value"]
		with open(path, "wb") as f:
			f.write(base64.b64decode(data))


def at(x, y):
	return {"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0}
