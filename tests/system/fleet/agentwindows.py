#!/usr/bin/env python3
"""agentwindows.py GASFLAME FOLDER DATABASE NAME... -- SERVER... - are the windows of an agent in its store as they are in its folder?

FOLDER is that of a file sink, SERVER the address of a shard, http://127.0.0.1:8123. For each target: as many windows, each once, and the same
sum of each event. Prints what differs; the exit status says whether anything does.
"""
import glob
import json
import os
import subprocess
import sys
import urllib.parse
import urllib.request


def ask(server, database, sql):
	url = server + "/?" + urllib.parse.urlencode({"database": database})
	with urllib.request.urlopen(urllib.request.Request(url, (sql + " FORMAT JSONCompact").encode()), timeout=60) as reply:
		return json.load(reply)["data"]


def stored(servers, database, target):
	"""Of all shards: how many windows are committed, and the sum of each event."""
	quoted = "'" + target.replace("\\", "\\\\").replace("'", "\\'") + "'"
	windows, sums = 0, {}
	for server in servers:
		for _, events, totals in ask(server, database, f"SELECT window_id, events, totals FROM windows WHERE target = {quoted} AND "
					     f"(window_id, attempt) IN (SELECT window_id, min(attempt) FROM windows WHERE target = {quoted} GROUP BY window_id)"):
			windows += 1
			for event, total in zip(events, totals):
				sums[event] = sums.get(event, 0) + int(total)
	return windows, {event: total for event, total in sums.items() if total}


def kept(program, folder, target):
	"""The same of the captures of a folder."""
	sql = ("select e.name as name, sum(coalesce(s.value, e.period)) as total from sample s join event e on e.id = s.event "
	       "where exists (select 1 from counter where name = 'agent.target: ' || '%s') group by 1" % target.replace("'", "''"))
	windows, sums = 0, {}
	for path in glob.glob(os.path.join(glob.escape(folder), "*", "*", "*.gasflame")):
		out = subprocess.run([program, "query", "--json", path, sql], stdout=subprocess.PIPE, text=True, check=True,
				     stdin=subprocess.DEVNULL).stdout
		rows = json.loads(out)
		whose = subprocess.run([program, "query", "--json", path, "select name from counter where name like 'agent.target: %'"],
				       stdout=subprocess.PIPE, text=True, check=True, stdin=subprocess.DEVNULL).stdout
		windows += json.loads(whose)[0]["name"] == "agent.target: " + target
		for row in rows:
			sums[row["name"]] = sums.get(row["name"], 0) + int(row["total"])
	return windows, {event: total for event, total in sums.items() if total}


def differences(program, folder, database, targets, servers):
	"""A line for each target: (good, what)."""
	for target in targets:
		there, here = stored(servers, database, target), kept(program, folder, target)
		yield (there == here and here[0] > 0,
		       f"{target}: {there[0]} windows in the store, {here[0]} in the folder" + ("" if there == here else f": {there} against {here}"))


def main():
	program, folder, database = sys.argv[1:4]
	rest = sys.argv[4:]
	split = rest.index("--")
	good = True
	for fine, what in differences(program, folder, database, rest[:split], rest[split + 1:]):
		print(what)
		good &= fine
	return 0 if good else 1


if __name__ == "__main__":
	sys.exit(main())
