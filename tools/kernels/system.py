"""system.py - scripts of tests/system in emulated machines: tools/test-kernels --system.

The machine's root is this one's own, read-only over 9p, with a tmpfs over it. So whatever a test uses is there: the build, python, the compilers.
"""
import os
import re
import tempfile

from debian import KERNELS, ROOT
from machine import MACHINES, TOOLS, Archive, boot_words, run_machine

# In this order, each with the seconds that it may take there. An emulated processor is some 20 times slower, so it is not all of them, and those that measure
# how long something takes are left out, as is memory/mem, which wants files on a disk: here they lie in memory.
TESTS = {
	"cpu/stacks": 400,
	"cpu/user": 300,
	"cpu/jit": 300,
	"wait/begin": 300,
	"wait/perfwaits": 400,
	"events/probes": 400,
	"events/io": 400,
	"memory/fault": 400,
	"heap/heap": 600,
	"docs/cmd_doctor": 300,
}
MODULES = ["virtio_pci", "9p", "9pnet_virtio", "overlay"]
APPLETS = "sh mount mkdir cp ln insmod echo chroot ip uname chmod".split()


def make_initramfs(path, options, modules, tests):
	archive = Archive(path)
	archive.copy("bin/busybox", options.busybox)
	for name in APPLETS:
		archive.link("bin/" + name, "busybox")
	for i, module in enumerate(modules):
		archive.copy(f"modules/{i:02}-{os.path.basename(module)}", module)
	archive.copy("init", os.path.join(TOOLS, "kernels", "system"))
	archive.add("tests", "".join(f"{t} {TESTS[t]}\n" for t in tests).encode(), 0o644)
	archive.add("environment", (f"GASFLAME={options.build}/src/cmd/gasflame\nTRUTH={options.build}/tests/system/truth\n"
		f"WORKLOAD={options.build}/workload/gasflame-workload\nTESTS={ROOT}/tests/system\n").encode(), 0o644)
	archive.close()


def run_system(options, apt, kernel):
	"""(kernel's release, [(test, outcome, figures)], what was said, has any failed?)"""
	package = apt.newest(*KERNELS[kernel])
	image, modules = apt.download(package), apt.modules(package, MODULES)
	with tempfile.TemporaryDirectory(prefix="gasflame-kernels-") as folder:
		initramfs = os.path.join(folder, "initramfs")
		make_initramfs(initramfs, options, modules, options.tests)
		words = boot_words(options.arch, image, initramfs, "") + ["-virtfs",
			"local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap"]
		text = run_machine(words, sum(TESTS[t] for t in options.tests) + 300)
	with open(os.path.join(options.out, f"{options.arch}-{kernel}-system.console"), "w", encoding="utf-8") as f:
		f.write(text)
	rows, release = [], re.search(r"@ kernel (\S+)", text)
	for name, status, ok, bad, skipped, seconds in re.findall(r"@ test (\S+) (\d+) (\d+) (\d+) (\d+) (\d+)", text):
		word = {"0": "pass", "77": "skip", "124": "too slow", "137": "too slow"}.get(status, "fail")
		rows.append((name, word, f"{ok} ok, {bad} not ok, {skipped} skipped, {seconds} s"))
	rows += [(t, "no answer", "") for t in options.tests if t not in [r[0] for r in rows]]
	said = re.findall(r"@ said (.*)", text)
	return release.group(1) if release else kernel, rows, said, any(word not in ("pass", "skip") for _, word, _ in rows)


def show(release, rows, said, failed):
	print(f"{'not ok' if failed else 'ok'} - the system tests on {release}")
	for name, word, figures in rows:
		print(f"    {name:16} {word}{': ' + figures if figures else ''}", flush=True)
	for line in said:
		print(f"        {line[:200]}", flush=True)
