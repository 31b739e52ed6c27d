#!/usr/bin/env python3
"""logs.py WORK ...: what `gasflame blocks LOG` makes of logs, for logs.sh. $GASFLAME is the program.

lines FILE...        each row of these tables (client, note, line, block, gas, transactions, elapsed_ns, source) is one block
                     with these figures, or none; and all rows in one log lose none of the blocks
node LOG PORT        number, gas and transactions of each block of LOG are those of the node, and none is missing
table LOG TABLE      the same against a table of number, gas, transactions
hostile              writes hostile.log
"""
import json
import os
import re
import subprocess
import sys
import urllib.request


def unescape(cell):
	"""\\n, \\x1b and \\\\ of a cell."""
	escapes = {"n": "\n", "\\": "\\"}
	return re.sub(r"\\(x[0-9a-f]{2}|.)", lambda m: chr(int(m[1][1:], 16)) if m[1][0] == "x" else escapes[m[1]], cell)


def blocks_of(text):
	"""The rows of a log, and what was counted."""
	done = subprocess.run([os.environ["GASFLAME"], "blocks", "--json", "-"], input=text.encode(), capture_output=True, check=False)
	said = json.loads(done.stdout)
	assert done.returncode == (0 if said["rows"] else 1), (done.returncode, done.stderr)
	return said["rows"], said["counted"]


def lines(paths):
	everything, expected, count = [], 0, 0
	for path in paths:
		with open(path, encoding="utf-8") as f:
			rows = [line.rstrip("\n").split("\t") for line in f][1:]
		for client, note, line, block, gas, txs, elapsed, _ in rows:
			found, counted = blocks_of(unescape(line) + "\n")
			want = [[block.split("..")[-1], gas, txs, elapsed]] if block else []
			got = [["" if r[key] is None else str(r[key]) for key in ("number", "gas", "transactions", "elapsed_ns")] for r in found]
			assert got == want, (client, note, got, want)
			assert not counted["lines_malformed"], (client, note)
			assert all(r["client"] in (client, "reth" if client == "op-reth" else client) for r in found), (client, note, found)
			if ".." in block:
				assert str(found[0]["first"]) == block.split("..")[0] and found[0]["count"] > 1, (client, note)
			if "built here" in note:
				assert found[0]["insertion"] and found[0]["ggas_per_s"] is None, (client, note)
			# Under numbers of their own, so that all can stand in one log.
			expected += len(found)
			if found and found[0]["count"] == 1:
				everything.append(unescape(line).replace("24,443,168", f"{30000000 + count * 1000:,}").replace(
					"24443168", str(30000000 + count * 1000)))
			else:
				expected -= len(found)
			count += 1
	found, counted = blocks_of("\n".join(everything) + "\n")
	assert len({r["number"] for r in found}) >= expected * 0.8 and counted["lines_malformed"] == 0, (len(found), expected, counted)
	assert counted["client_changed"] >= 6, counted
	print(count, "rows,", len(found), "blocks in one log")


def node(path, port):
	def call(method, *params):
		body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
		request = urllib.request.Request(f"http://127.0.0.1:{port}", body, {"Content-Type": "application/json"})
		return json.load(urllib.request.urlopen(request))["result"]

	with open(path, encoding="utf-8") as f:
		found, counted = blocks_of(f.read())
	last = int(call("eth_blockNumber"), 16)
	assert [r["number"] for r in found] == list(range(1, last + 1)), (len(found), last)
	assert last >= 5 and not any(counted.values()), (last, counted)
	for r in found:
		b = call("eth_getBlockByNumber", hex(r["number"]), False)
		assert (int(b["gasUsed"], 16), len(b["transactions"])) == (r["gas"], r["transactions"]), r
	print(last, "blocks")


def table(path, truth):
	with open(path, encoding="utf-8") as f:
		text = f.read()
	found, counted = blocks_of(text)
	with open(truth, encoding="utf-8") as f:
		want = [[int(cell) for cell in line.split()] for line in f.readlines()[1:]]
	assert [[r["number"], r["gas"], r["transactions"]] for r in found] == want and want
	assert not any(counted.values()), counted
	assert text.count("\n") > 3000, text.count("\n")


def hostile():
	done = "INFO Block added to canonical chain number=%s hash=0x%064x txs=3 gas_used=%s elapsed=%s\n"
	with open("hostile.log", "w", encoding="utf-8") as f:
		f.write(done % (1, 1, "1.50Mgas", "20ms"))
		f.write("x" * 10_000_000 + "\n")
		f.write(done.replace("\n", " ") % (2, 2, "1.50Mgas", "20ms") + "x" * 10_000_000 + "\n")
		f.write(done % ("9" * 30, 3, "1.50Mgas", "20ms"))
		f.write(done % (3, 3, "9" * 30 + ".00Ggas", "20ms"))
		f.write(done % (4, 4, "1.50Mgas", "0ns"))
		f.write(done % (5, 5, "1.50Mgas", "9999h0m1s"))
		f.write("Block added to canonical chain num\n")
		f.write('{"fields":{"message":"Block added to canonical chain","number":77\n')
		f.write('{"a":' * 3000 + "\n" + '{"msg":"' * 3000 + "\n" + "\0\xff\x1b[" * 1000 + "\n")
		f.write("INFO [08-01|10:00:00.123] Imported new chain segment number=6 hash=1a2b3c..4d5e6f blocks=1 txs=2 mgas=2.000 elapsed=30ms\n")
		f.write((done % (7, 7, "1.50Mgas", "20ms"))[:-60]) # and there it ends


what, rest = sys.argv[1], sys.argv[2:]
{"lines": lambda: lines(rest), "node": lambda: node(*rest), "table": lambda: table(*rest), "hostile": hostile}[what]()
