#!/usr/bin/env python3
"""Writes the manual of a gasflame into a folder, which is made anew: gasflame.1, and a page for each of its commands."""
import os
import shutil
import subprocess
import sys


def main(program, folder):
	# Of another architecture: what runs its programs (tools/arm64.cross).
	emulator = os.environ.get("EMULATOR", "").split()

	def ask(*words):
		return subprocess.run([*emulator, program, "help", *words], check=True, stdout=subprocess.PIPE).stdout

	shutil.rmtree(folder, ignore_errors=True)
	os.makedirs(folder)
	for command in ["", *ask("--commands").decode().splitlines()]:
		words = command.split()
		with open(os.path.join(folder, "-".join(["gasflame", *words]) + ".1"), "wb") as page:
			page.write(ask("--man", *words))


main(*sys.argv[1:])
