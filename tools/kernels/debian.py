"""debian.py - kernels and programs of Debian's suites, for tools/test-kernels.

They are downloaded by apt with a private state, from the machine's own sources with another suite's name, into
build-cache/kernels (or the folder that GASFLAME_KERNELS names), and kept there.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.environ.get("GASFLAME_KERNELS", os.path.join(ROOT, "build-cache", "kernels"))

# (suite, version, flavour). The newest package of that version is taken; a version of None is the newest of the suite.
KERNELS = {
	"5.10": ("bullseye", "5.10", "cloud"),
	"6.1": ("bookworm", "6.1", "cloud"),
	"6.12": ("trixie", "6.12", "cloud"),
	"6.18": ("trixie-backports", "6.18", "cloud"),
	"6.18-rt": ("trixie-backports", "6.18", "rt"),
	"6.1-standard": ("bookworm", "6.1", "standard"),
	"6.12-standard": ("trixie", "6.12", "standard"),
	"newest-standard": ("sid", None, "standard"),
	"newest": ("sid", None, "cloud"),
	"next": ("experimental", None, "cloud"),
	"6.12-16k": ("trixie", "6.12", "16k"), # arm64: pages of 16 KiB
}
USUAL = {"amd64": ["5.10", "6.1", "6.12", "6.12-standard", "6.18", "6.18-rt", "newest"], "arm64": ["6.1", "6.12", "6.12-16k"]}


class Failure(Exception):
	pass


def run(*words, **options):
	return subprocess.run(words, check=True, text=True, capture_output=True, **options).stdout


def mirror():
	"""Where this machine gets Debian from, as a line of sources.list without the suite: [options], URI."""
	for path in glob.glob("/etc/apt/sources.list.d/*.sources"):
		with open(path, encoding="utf-8") as f:
			for block in re.split(r"\n\s*\n", f.read()):
				fields = dict(re.findall(r"(?m)^(\S+?):\s*(.*)$", block))
				if fields.get("URIs", "").rstrip("/").endswith("/debian"):
					key = fields.get("Signed-By", "/usr/share/keyrings/debian-archive-keyring.gpg")
					return f"[signed-by={key}]", fields["URIs"].split()[0]
	for path in ["/etc/apt/sources.list"] + glob.glob("/etc/apt/sources.list.d/*.list"):
		if os.path.exists(path):
			with open(path, encoding="utf-8") as f:
				match = re.search(r"(?m)^deb\s+(\[.*?\])?\s*(\S+/debian)/?\s", f.read())
			if match:
				return match.group(1) or "", match.group(2)
	raise Failure("no source of Debian packages in /etc/apt: kernels cannot be downloaded")


class Apt:
	"""apt with a state of its own: what this machine has installed, and where from, stays as it is."""

	def __init__(self, arch):
		self.arch = arch
		for folder in ("lists/partial", "cache/archives/partial", "debs"):
			os.makedirs(os.path.join(CACHE, folder), exist_ok=True)
		lists = CACHE + ("/lists" if arch == "amd64" else f"/lists-{arch}")
		os.makedirs(lists + "/partial", exist_ok=True)
		self.lists, self.lock = lists, threading.Lock()
		options, uri = mirror()
		sources = os.path.join(CACHE, f"sources-{arch}.list") # runs for both may go on at the same time
		with open(sources, "w", encoding="utf-8") as f:
			for suite in sorted({k[0] for k in KERNELS.values()}):
				f.write(f"deb {options.replace(']', f' arch={arch}]') if options else f'[arch={arch}]'} {uri} {suite} main\n")
		with open(os.path.join(CACHE, "status"), "w", encoding="utf-8"):
			pass
		self.options = []
		for key, value in {"Dir::Etc::sourcelist": sources, "Dir::Etc::sourceparts": "-", "Dir::State::lists": lists,
				"Dir::Cache": CACHE + "/cache", "Dir::State::status": CACHE + "/status", "Acquire::Languages": "none",
				"APT::Architecture": arch, "APT::Architectures": arch, "APT::Sandbox::User": "root"}.items():
			self.options += ["-o", f"{key}={value}"]
		# The lists of a dozen suites take a while: once a day.
		if not os.path.exists(lists + "/read") or time.time() - os.path.getmtime(lists + "/read") > 86400:
			run("apt-get", *self.options, "update")
			with open(lists + "/read", "w", encoding="utf-8"):
				pass

	def ask(self, *words):
		return run("apt-cache", *self.options, *words)

	def newest(self, suite, version, flavour):
		"""The package with the newest such kernel of a suite. apt takes seconds to say it: it is asked once for each list."""
		key, path = f"{suite} {version} {flavour}", self.lists + "/newest"
		with self.lock:
			known = {}
			if os.path.exists(path) and os.path.getmtime(path) >= os.path.getmtime(self.lists + "/read"):
				with open(path, encoding="utf-8") as f:
					known = json.load(f)
			if key not in known:
				known[key] = self.ask_newest(suite, version, flavour)
				with open(path + ".new", "w", encoding="utf-8") as f:
					json.dump(known, f)
				os.rename(path + ".new", path)
			return known[key]

	def ask_newest(self, suite, version, flavour):
		end = {"16k": f"-{self.arch}-16k", "standard": f"-{self.arch}"}.get(flavour, f"-{flavour}-{self.arch}")
		names = re.findall(r"(?m)^(linux-image-\d\S*" + end + r")(?= )", self.ask("search", "--names-only", "^linux-image-[0-9]"))
		best = None
		for about in re.split(r"(?m)^(?=linux-image-)", self.ask("policy", *names)):
			match = re.match(r"(linux-image-(\d\S*)" + end + "):", about)
			if not match or f" {suite}/main" not in about or (version and not re.match(re.escape(version) + r"[.\-]", match.group(2))):
				continue
			if flavour == "standard" and re.search(r"-(cloud|rt)$", match.group(2)):
				continue
			numbers = [int(n) for n in re.findall(r"\d+", match.group(2))]
			if not best or numbers > best[0]:
				best = (numbers, match.group(1))
		if not best:
			raise Failure(f"{suite} has no {flavour} kernel {version or ''}")
		return best[1]

	def unpack(self, package, folder):
		run("apt-get", *self.options, "download", package, cwd=folder)
		run("dpkg-deb", "-x", glob.glob(folder + "/*.deb")[0], folder)
		os.unlink(glob.glob(folder + "/*.deb")[0])

	def program(self, package, path):
		"""A program of a package of the guest's architecture, which is not this machine's."""
		out = os.path.join(CACHE, f"{os.path.basename(path)}-{self.arch}")
		if not os.path.exists(out):
			with tempfile.TemporaryDirectory(dir=CACHE) as folder:
				# Of this machine's own release, whose libraries it gets.
				self.unpack(f"{package}/{re.search(r'(?m)^VERSION_CODENAME=(.*)$', open('/etc/os-release', encoding='utf-8').read())[1]}", folder)
				os.rename(folder + path, out)
		return out

	def modules(self, package, names):
		"""The files of modules and of what they need, unpacked, in the order in which they are to be loaded."""
		out = os.path.join(CACHE, package + ".modules")
		if not os.path.exists(out):
			parts = re.findall(r"Depends: (linux-(?:base|binary|modules)-\S+)", self.ask("depends", package)) or [package]
			with tempfile.TemporaryDirectory(dir=CACHE) as folder:
				for part in parts:
					self.unpack(part, folder)
				base = folder if os.path.exists(folder + "/lib/modules") else folder + "/usr"
				version = os.listdir(base + "/lib/modules")[0]
				run("depmod", "-b", base, version)
				os.makedirs(folder + "/out")
				needed = []
				for name in names: # none: it is built in
					words = run("modprobe", "--show-depends", "-d", base, "-S", version, name)
					needed += [f for f in re.findall(r"(?m)^insmod (\S+)", words) if f not in needed]
				for i, path in enumerate(needed):
					name = f"{folder}/out/{i:02}-" + os.path.basename(path)
					shutil.copy(path, name)
					if name.endswith(".xz"):
						run("xz", "-d", name)
				os.rename(folder + "/out", out)
		return sorted(glob.glob(out + "/*"))

	def download(self, package):
		"""The kernel image of a package. From 7.2 on it lies in a package of its own."""
		out = os.path.join(CACHE, package)
		if os.path.exists(out):
			return out
		parts = re.findall(r"Depends: (linux-binary-\S+)", self.ask("depends", package)) or [package]
		with tempfile.TemporaryDirectory(dir=CACHE) as folder:
			self.unpack(parts[0], folder)
			image = glob.glob(folder + "/boot/vmlinuz-*") + glob.glob(folder + "/usr/lib/modules/*/vmlinuz")
			os.rename(image[0], out)
		return out
