"""machine.py - an emulated machine of tools/test-kernels: what it has, its boot, and what its lines say."""
import os
import re
import shutil
import stat
import subprocess
import tempfile

from debian import ROOT, run

TOOLS = os.path.join(ROOT, "tools")

# Without cmpxchg16b: in QEMU 7.2 it leaves a part of rax in the flags now and then, and the kernel's allocator, which is full of
# it, ends in a double fault at the next interrupt. Kernels from 6.19 on then give BPF programs no memory for tasks (-e fault), unless
# the allocator checks itself (slab_debug).
MACHINES = {
	"amd64": (["qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=single", "-cpu", "max,-cx16"],
		"console=ttyS0 no_timer_check slab_debug=F,kmalloc-*"),
	"arm64": (["qemu-system-aarch64", "-M", "virt", "-accel", "tcg,thread=multi", "-cpu", "max,pauth-impdef=on"], "console=ttyAMA0"),
}
# What an emulator needs to count instructions, where its machine has a PMU: one thread for all CPUs, and a clock of instructions.
COUNTING = {"arm64": ["-icount", "shift=1"]}


# --- what the guest has ---

def libraries(program, arch):
	"""The shared libraries of a program, and its loader."""
	if arch == "amd64":
		return re.findall(r"(/\S+) \(0x", run("ldd", program))
	found, waiting = {"/lib/ld-linux-aarch64.so.1"}, [program]
	while waiting:
		for name in re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", waiting.pop())):
			path = next((p for p in (f"/lib/aarch64-linux-gnu/{name}", f"/usr/lib/aarch64-linux-gnu/{name}") if os.path.exists(p)), None)
			if path and path not in found:
				found.add(path)
				waiting.append(path)
	return sorted(found)


class Archive:
	"""An initramfs: cpio's newc format."""

	def __init__(self, path):
		self.file = open(path, "wb")
		self.count = 0
		self.folders = {""}

	def put(self, name, mode, data):
		self.count += 1
		fields = [self.count, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
		head = ("070701" + "".join(f"{v:08x}" for v in fields)).encode() + name.encode() + b"\0"
		self.file.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))

	def folder(self, name):
		if name not in self.folders:
			self.folder(os.path.dirname(name))
			self.folders.add(name)
			self.put(name, stat.S_IFDIR | 0o755, b"")

	def add(self, name, data, mode=0o755):
		self.folder(os.path.dirname(name))
		self.put(name, stat.S_IFREG | mode, data)

	def copy(self, name, path):
		with open(path, "rb") as f:
			self.add(name, f.read())

	def link(self, name, to):
		self.folder(os.path.dirname(name))
		self.put(name, stat.S_IFLNK | 0o777, to.encode())

	def close(self):
		self.put("TRAILER!!!", 0, b"")
		self.file.close()


APPLETS = "sh mount mkdir chmod echo grep sed cat tail head rm ip poweroff kill uname sleep".split()


def build_goroutines(options):
	program = os.path.join(options.build, "tests/system/truth/truth-goroutines")
	source = os.path.join(ROOT, "tests/system/truth/wait/goroutines.go")
	run("go", "build", "-o", program, source, env={**os.environ, "GO111MODULE": "off", "GOARCH": options.arch})
	return program


def build_jemalloc(options, apt):
	"""truth-crowd-jemalloc of another architecture, whose libjemalloc-dev cannot be installed beside this machine's."""
	program = os.path.join(options.build, "tests/system/truth/truth-crowd-jemalloc")
	if not os.path.exists(program):
		library = apt.program("libjemalloc-dev", "/usr/lib/aarch64-linux-gnu/libjemalloc.a")
		run("aarch64-linux-gnu-gcc", "-O2", "-g", "-fno-optimize-sibling-calls", "-fno-shrink-wrap", "-Wno-attributes", "-o", program,
			os.path.join(ROOT, "tests/system/truth/events/crowd.c"), library, "-lstdc++", "-lm", "-lpthread")
	return program


def make_initramfs(path, options, apt, cases, settings):
	truth = os.path.join(options.build, "tests/system/truth")
	programs = {"gasflame": os.path.join(options.build, "src/cmd/gasflame"), "setpriv": shutil.which("setpriv")}
	busybox = shutil.which("busybox")
	if options.arch != "amd64":
		programs["setpriv"] = apt.program("util-linux", "/usr/bin/setpriv")
		busybox = apt.program("busybox-static", "/bin/busybox")
		if any(c.startswith("alloc|") for c in cases):
			build_jemalloc(options, apt)
	for name in ("truth-crowd", "truth-crowd-jemalloc", "truth-programs", "truth-spans", "truth-cycles", "truth-stopped", "../implants", "../remotes"):
		if os.path.exists(os.path.join(truth, name)):
			programs[os.path.basename(name)] = os.path.join(truth, name)
	if any(c.startswith("goroutine|") for c in cases):
		programs["truth-goroutines"] = build_goroutines(options)
	archive = Archive(path)
	archive.copy("bin/busybox", busybox)
	for name in APPLETS:
		archive.link("bin/" + name, "busybox")
	known = set()
	for name, program in programs.items():
		archive.copy("bin/" + name, program)
		known.update(libraries(program, options.arch))
	for library in sorted(known):
		archive.copy(library.lstrip("/"), library)
	archive.copy("init", os.path.join(TOOLS, "kernels", "init"))
	archive.add("settings", settings.encode() + b"\n", 0o644)
	archive.add("cases", "".join(c + "\n" for c in cases).encode(), 0o644)
	archive.add("etc/passwd", b"root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n", 0o644)
	archive.close()


# --- one machine ---

CRASH = re.compile(r"(BUG: .*|Oops: .*|Kernel panic.*|WARNING: .*bpf.*|general protection fault.*|watchdog: .*)")


class Outcome:
	"""What the guest's lines say."""

	def __init__(self, text):
		self.kernel, self.numbers, self.done, self.mode = "", (), False, None
		self.cases = {}
		self.promises = {}  # of doctor, for each collector
		# Before the first line of ours it is the emulator that starves on a busy host: a soft lockup while the kernel boots.
		crash = CRASH.search(text, max(text.find("@ kernel"), 0))
		self.crash = crash.group(1).strip() if crash else None
		for line in text.splitlines():
			match = re.search(r"@ (\S+) ?(.*)$", line)
			if not match:
				continue
			name, rest = match.groups()
			if name == "kernel":
				self.kernel = rest.split()[0]
				self.numbers = tuple(int(n) for n in re.findall(r"\d+", self.kernel)[:2])
			elif name == "done":
				self.done = True
			elif name == "doctor":
				key, value = rest.split()
				if key == "mode":
					self.mode = value
				else:
					self.promises[key] = value
			else:
				key, _, value = rest.partition(" ")
				case = self.cases.setdefault(name, {"said": [], "cost": {}})
				if key == "said":
					case["said"].append(value)
				elif key == "cost":
					program, runs, ns = value.split()
					case["cost"][program] = (int(runs), int(ns))
				else:
					case[key] = value.strip()


def boot_words(arch, kernel, initramfs, append, counting=False):
	words = MACHINES[arch][0]
	if counting and arch in COUNTING:
		words = [word.replace("thread=multi", "thread=single") for word in words] + COUNTING[arch]
	return words + ["-smp", "2", "-m", "2G", "-nographic", "-no-reboot", "-nic", "none", "-kernel", kernel, "-initrd", initramfs,
		"-append", f"{MACHINES[arch][1]} panic=-1 loglevel=3 oops=panic {append}"]


def run_machine(words, seconds):
	"""Boots, and returns what it says on its console."""
	try:
		said = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False).stdout
	except subprocess.TimeoutExpired as late:
		said = (late.stdout or b"") + b"\n@ timeout\n"
	return said.decode(errors="replace")


def machine(options, apt, kernel, name, cases, append="", settings="", counting=False):
	"""Boots and says what came of it; the console's text is kept."""
	console = os.path.join(options.out, name + ".console")
	with tempfile.TemporaryDirectory(prefix="gasflame-kernels-") as folder:
		initramfs = os.path.join(folder, "initramfs")
		make_initramfs(initramfs, options, apt, cases, settings)
		for _ in range(3):
			text = run_machine(boot_words(options.arch, kernel, initramfs, append, counting), options.timeout)
			if "@ kernel" in text:  # a busy host's emulator may not come so far
				break
	with open(console, "w", encoding="utf-8") as f:
		f.write(text)
	return Outcome(text)


def native(options, cases):
	"""The same cases on this machine, as it is."""
	if any(c.startswith("goroutine|") for c in cases):
		build_goroutines(options)
	with tempfile.TemporaryDirectory(prefix="gasflame-kernels-") as folder:
		os.chmod(folder, 0o755)
		with open(os.path.join(folder, "cases"), "w", encoding="utf-8") as f:
			f.write("".join(c + "\n" for c in cases))
		path = f"{options.build}/src/cmd:{options.build}/tests/system/truth:{os.environ['PATH']}"
		words = ["busybox", "sh", os.path.join(TOOLS, "kernels", "init")]
		text = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=options.timeout,
			env={**os.environ, "NATIVE": folder, "PATH": path}).stdout
	with open(os.path.join(options.out, "native.console"), "w", encoding="utf-8") as f:
		f.write(text)
	return Outcome(text)
