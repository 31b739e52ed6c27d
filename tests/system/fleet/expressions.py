#!/usr/bin/env python3
"""expressions.py DASHBOARD RULES - the expressions of both, one a line, with values for Grafana's variables. Fails where the dashboard lacks what Grafana
needs: a panel without a place, a target without an expression, two panels of one id, a variable that nobody declares.
expressions.py --ask URL FILE - asks a Prometheus for each expression of a file; fails where it refuses one."""
import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request


def ask(url, path):
	refused = 0
	with open(path, encoding="utf-8") as f:
		for line in f:
			try:
				urllib.request.urlopen(url + "/api/v1/query", urllib.parse.urlencode({"query": line.strip()}).encode()).read()
			except urllib.error.HTTPError as e:
				refused += 1
				print(line.strip(), e.read().decode())
	return refused


if sys.argv[1] == "--ask":
	sys.exit(ask(sys.argv[2], sys.argv[3]) > 0)
with open(sys.argv[1], encoding="utf-8") as f:
	board = json.load(f)
assert board["schemaVersion"] >= 36 and board["uid"] and board["title"], "no dashboard of a current schema"
known = {v["name"] for v in board["templating"]["list"]} | {"__rate_interval", "__range", "__interval"}
seen = set()
for panel in board["panels"]:
	assert panel["id"] not in seen, f"two panels have the id {panel['id']}"
	seen.add(panel["id"])
	place = panel["gridPos"]
	assert 0 <= place["x"] and place["x"] + place["w"] <= 24 and place["h"] > 0, panel["title"]
	if panel["type"] == "row":
		continue
	assert panel["targets"], panel["title"]
	for target in panel["targets"]:
		text = target["expr"]
		for name in re.findall(r"\$\{?(\w+)", text + json.dumps(panel["datasource"])):
			assert name in known, f"{panel['title']}: ${name} is not declared"
		print(re.sub(r"\$\{?(__\w+)\}?", "5m", text).replace("$target", ".*").replace("$host", ".*"))
for variable in board["templating"]["list"]:
	if variable["type"] == "query":
		metric = re.match(r"label_values\((.*), *\w+\)$", variable["query"]["query"])
		print(metric.group(1).replace("$host", ".*"))
with open(sys.argv[2], encoding="utf-8") as f:
	for line in f:
		if line.strip().startswith("expr: "):
			print(line.strip()[6:])
