#!/usr/bin/env python3
"""sbom.py VERSION PROGRAM MAP SOURCES - what is linked into the static program, as CycloneDX 1.4 (JSON) on the standard output.

MAP is the linker's map of it: each archive (.a) from which it took something. Those of Debian are known by the package that holds them, with
its source and version; those of packaging/static/libraries.sh by SOURCES. An archive that nobody knows is an error: the list would lie."""
import hashlib
import json
import os
import re
import subprocess
import sys
import time


def archives(path):
	"""Those of which a member was linked: the map lists each with its reason, before the memory configuration."""
	with open(path, encoding="utf-8", errors="replace") as f:
		text = f.read()
	text = text[:text.index("\nMemory Configuration")] if "\nMemory Configuration" in text else text
	return sorted({os.path.realpath(p) for p in re.findall(r"^(/\S+\.a)\(", text, re.M)})


def packages_of(paths):
	"""Debian's (source, version) by package, of the files; and those that no package holds."""
	found, strange = {}, []
	for path in paths:
		holder = subprocess.run(["dpkg-query", "-S", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
		if not holder and path.startswith("/usr/lib"): # installed before the two folders became one
			holder = subprocess.run(["dpkg-query", "-S", path[4:]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
		if not holder:
			strange.append(path)
			continue
		name = holder.split(": ")[0].split(",")[0]
		fields = subprocess.run(["dpkg-query", "-W", "-f=${binary:Package} ${source:Package} ${source:Version}", name], stdout=subprocess.PIPE,
					text=True, check=True).stdout.split()
		found.setdefault(fields[0].split(":")[0], (fields[1], fields[2]))
	return found, strange


def component(name, source, version, licence=None):
	purl = f"pkg:deb/debian/{name}@{version.replace('+', '%2B')}"
	entry = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
		 "properties": [{"name": "debian:source", "value": source}]}
	if licence:
		entry["licenses"] = [{"license": {"id": licence}}]
	return entry


def main(version, program, linker_map, sources):
	root = os.path.dirname(os.path.realpath(sources))
	with open(program, "rb") as f:
		digest = hashlib.sha256(f.read()).hexdigest()
	found, strange = packages_of(archives(linker_map))
	parts = [component(name, *of) for name, of in sorted(found.items())]
	unknown = [p for p in strange if not p.startswith(root + "/")]
	if not parts or unknown:
		sys.exit(f"sbom.py: no package has {', '.join(unknown) or 'any archive of ' + linker_map}")
	with open(sources, encoding="utf-8") as f:
		for line in f:
			name, built, licence = line.split()
			parts.append(component(name, name, built, licence))
	when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
	me = {"type": "application", "bom-ref": "gasflame", "name": "gasflame", "version": version, "licenses": [{"license": {"id": "BSD-2-Clause"}}],
	      "hashes": [{"alg": "SHA-256", "content": digest}]}
	json.dump({"bomFormat": "CycloneDX", "specVersion": "1.4", "version": 1, "metadata": {"timestamp": when, "component": me},
		   "components": parts, "dependencies": [{"ref": "gasflame", "dependsOn": [p["bom-ref"] for p in parts]}]}, sys.stdout, indent=1)
	print()


main(*sys.argv[1:])
