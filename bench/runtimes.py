#!/usr/bin/env python3
"""runtimes.py [--gasflame PROGRAM] [--dotnet DLL_AND_HOST] [--seconds N] - programs whose code is made at run time.

A program that spends 60, 30 and 10 % of its time in three functions, in each language whose run time is installed: node,
Java, PHP, LuaJIT, PyPy, and .NET where --dotnet names a host and an assembly that was built from SPLIT_CS
("dotnet split.dll"; --print-cs prints the source). Each is recorded as it is and with what makes it write a map. Prints
a table: complete stacks, frames without a name, and what the three functions got; "boxes" is how many names hold 90 % of
the time.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SPLIT_JS = """function sixty(n){let s=0;for(let i=0;i<n*6;i++)s=(s*31+i)|0;return s}
function thirty(n){let s=0;for(let i=0;i<n*3;i++)s=(s*33+i)|0;return s}
function ten(n){let s=0;for(let i=0;i<n;i++)s=(s*35+i)|0;return s}
const end=Date.now()+1000*process.argv[2];let x=0;
function main(){while(Date.now()<end){x^=sixty(100000);x^=thirty(100000);x^=ten(100000)}}
main();
"""
SPLIT_JAVA = """public class Split {
static int sixty(int n){int s=1;for(int i=0;i<n*6;i++)s=s*31+(s^i);return s;}
static int thirty(int n){int s=1;for(int i=0;i<n*3;i++)s=s*33+(s^i);return s;}
static int ten(int n){int s=1;for(int i=0;i<n;i++)s=s*35+(s^i);return s;}
public static void main(String[] a){long end=System.currentTimeMillis()+1000L*Integer.parseInt(a[0]);int x=0;
while(System.currentTimeMillis()<end){x^=sixty(100000);x^=thirty(100000);x^=ten(100000);}System.exit(x&1);}}
"""
SPLIT_CS = """using System; using System.Runtime.CompilerServices;
class Split {
[MethodImpl(MethodImplOptions.NoInlining)] static int Sixty(int n){int s=1;for(int i=0;i<n*6;i++)s=s*31+(s^i);return s;}
[MethodImpl(MethodImplOptions.NoInlining)] static int Thirty(int n){int s=1;for(int i=0;i<n*3;i++)s=s*33+(s^i);return s;}
[MethodImpl(MethodImplOptions.NoInlining)] static int Ten(int n){int s=1;for(int i=0;i<n;i++)s=s*35+(s^i);return s;}
static int Main(string[] a){var end=DateTime.UtcNow.AddSeconds(int.Parse(a[0]));int x=0;
while(DateTime.UtcNow<end){x^=Sixty(100000);x^=Thirty(100000);x^=Ten(100000);}return x&1;}}
"""
SPLIT_PHP = """<?php
function sixty($n){$s=0;for($i=0;$i<$n*6;$i++)$s=($s*31+$i)&0xffffff;return $s;}
function thirty($n){$s=0;for($i=0;$i<$n*3;$i++)$s=($s*33+$i)&0xffffff;return $s;}
function ten($n){$s=0;for($i=0;$i<$n;$i++)$s=($s*35+$i)&0xffffff;return $s;}
$end=time()+(int)$argv[1];$x=0;while(time()<$end){$x^=sixty(100000);$x^=thirty(100000);$x^=ten(100000);}
"""
SPLIT_LUA = """local function sixty(n) local s=0.0 for i=1,n*6 do s=s*0.5+i end return s end
local function thirty(n) local s=0.0 for i=1,n*3 do s=s*0.25+i end return s end
local function ten(n) local s=0.0 for i=1,n do s=s*0.125+i end return s end
local e=os.time()+tonumber(arg[1]) local x=0
while os.time()<e do x=x+sixty(100000)+thirty(100000)+ten(100000) end
"""
SPLIT_PY = """import sys,time
def sixty(n):
    s=0
    for i in range(n*6): s=(s*31+i)&0xffffff
    return s
def thirty(n):
    s=0
    for i in range(n*3): s=(s*33+i)&0xffffff
    return s
def ten(n):
    s=0
    for i in range(n): s=(s*35+i)&0xffffff
    return s
e=time.time()+float(sys.argv[1]);x=0
while time.time()<e: x^=sixty(100000)^thirty(100000)^ten(100000)
"""
FILES = {"split.js": SPLIT_JS, "Split.java": SPLIT_JAVA, "split.php": SPLIT_PHP, "split.lua": SPLIT_LUA, "split.py": SPLIT_PY}
PHP = ["php", "-d", "opcache.enable_cli=1", "-d", "opcache.jit=tracing", "-d", "opcache.jit_buffer_size=64M"]


def cases(dotnet):
	"""What to run: name, command (the seconds come behind it), environment, and a command to run meanwhile."""
	yield "node", ["node", "split.js"], {}, None
	yield "node --perf-basic-prof", ["node", "--perf-basic-prof", "split.js"], {}, None
	perfmap = ["jcmd", "PID", "Compiler.perfmap"]
	yield "java, jcmd Compiler.perfmap", ["java", "Split"], {}, perfmap
	yield "java -XX:+PreserveFramePointer, jcmd", ["java", "-XX:+PreserveFramePointer", "Split"], {}, perfmap
	if dotnet:
		yield ".NET", dotnet, {}, None
		yield ".NET, DOTNET_PerfMapEnabled=1", dotnet, {"DOTNET_PerfMapEnabled": "1", "COMPlus_PerfMapEnabled": "1"}, None
	yield "php, JIT", PHP + ["split.php"], {}, None
	yield "php -d opcache.jit_debug=16", PHP + ["-d", "opcache.jit_debug=16", "split.php"], {}, None
	yield "luajit", ["luajit", "split.lua"], {}, None
	yield "pypy3", ["pypy3", "split.py"], {}, None


def record(gasflame, case, seconds):
	"""Starts it, lets it compile for two seconds, records it; returns the report."""
	_, command, env, meanwhile = case
	program = subprocess.Popen(command + [str(seconds + 30)], env={**os.environ, **env})
	try:
		time.sleep(2)
		recorder = subprocess.Popen([gasflame, "record", "-e", "cpu", "-d", str(seconds), "-o", "x.gasflame", "-p", str(program.pid)],
					    stderr=subprocess.DEVNULL)
		if meanwhile:
			time.sleep(1)
			subprocess.run([str(program.pid) if x == "PID" else x for x in meanwhile], stdout=subprocess.DEVNULL, check=True)
		recorder.wait()
	finally:
		program.kill()
		program.wait()
	# Its status says whether the recording is fit to read, which is not the question.
	return json.loads(subprocess.run([gasflame, "report", "--json", "--limit", "0", "x.gasflame"], stdout=subprocess.PIPE,
					 stderr=subprocess.DEVNULL, check=False).stdout)


def row(name, report):
	"""One line of the table."""
	total = sum(f["self"] for f in report["functions"]) or 1
	shares = []
	for wanted in ("sixty", "thirty", "ten"):
		hits = [f["self"] for f in report["functions"] if wanted in re.split(r"\W+", f["name"].lower())]
		shares.append(f"{100 * sum(hits) / total:.1f}" if hits else "-")
	selves, boxes, sum_ = sorted((f["self"] for f in report["functions"]), reverse=True), 0, 0
	while sum_ < 0.9 * total and boxes < len(selves):
		sum_ += selves[boxes]
		boxes += 1
	q = report["quality"]
	return (f"| {name} | {100 * q['complete'] / max(q['samples'], 1):.1f} % | {100 * q['unnamed'] / max(q['frames'], 1):.1f} % | "
		f"{' / '.join(shares)} | {boxes} |")


def main():
	parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
	parser.add_argument("--gasflame", default=os.path.join(HERE, "../build/src/cmd/gasflame"))
	parser.add_argument("--dotnet", help="host and assembly, as one argument")
	parser.add_argument("--seconds", type=int, default=8)
	parser.add_argument("--print-cs", action="store_true", help="print the source of the assembly for --dotnet")
	o = parser.parse_args()
	if o.print_cs:
		sys.exit(print(SPLIT_CS))
	gasflame = os.path.abspath(o.gasflame)
	dotnet = [os.path.abspath(x) if os.path.exists(x) else x for x in o.dotnet.split()] if o.dotnet else None
	with tempfile.TemporaryDirectory() as folder:
		os.chdir(folder)
		for path, text in FILES.items():
			with open(path, "w", encoding="utf-8") as f:
				f.write(text)
		if shutil.which("javac"):
			subprocess.run(["javac", "Split.java"], check=True)
		print("| run time | complete stacks | frames without a name | 60 / 30 / 10 | boxes for 90 % of the time |\n|---|---|---|---|---|")
		for case in cases(dotnet):
			if shutil.which(case[1][0]):
				print(row(case[0], record(gasflame, case, o.seconds)), flush=True)
			else:
				print(f"| {case[0]} | not installed | | | |")


if __name__ == "__main__":
	main()
