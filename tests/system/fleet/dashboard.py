#!/usr/bin/env python3
"""dashboard.py DASHBOARD URL DATABASE FROM TO SUFFIX - runs each query of a Grafana dashboard against a ClickHouse, with the macros of Grafana's
ClickHouse datasource and the variables replaced as Grafana would. A line for each: panel, rows of its answer. A query that fails, or that
has something left that should have been replaced, is an error.
"""
import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

path, url, database, begin, end, suffix = sys.argv[1:]
board = json.load(open(path, encoding="utf-8"))


def ask(sql):
	request = urllib.request.Request(f"{url}/?{urllib.parse.urlencode({'database': 'default'})}", data=(sql + " FORMAT JSONCompact").encode())
	try:
		with urllib.request.urlopen(request, timeout=60) as answer:
			return json.load(answer)["data"]
	except urllib.error.HTTPError as problem:
		sys.exit(f"{sql}\n{problem.read().decode()}")


def quoted(text):
	return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def filled(sql, variables):
	sql = re.sub(r"\$__dateFilter\((\w+)\)", rf"\1 >= toDate({int(begin) // 86400}) AND \1 <= toDate({int(end) // 86400})", sql)
	sql = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 >= toDateTime({begin}) AND \1 <= toDateTime({end})", sql)
	sql = sql.replace("$__interval_s", "60")
	for name, values in variables.items():
		sql = sql.replace(f"${{{name}:sqlstring}}", ",".join(quoted(v) for v in values)).replace(f"${name}", values[0])
	if "$" in sql:
		sys.exit(f"something is left: {sql}")
	return sql


variables = {"database": [database], "suffix": [suffix], "function": ["state_root"]}
for variable in board["templating"]["list"]:
	if variable["type"] == "query":
		variables[variable["name"]] = [row[0] for row in ask(filled(variable["query"], variables))] or sys.exit(f"{variable['name']}: nothing to choose")
for panel in board["panels"]:
	for target in panel["targets"]:
		print(f"{len(ask(filled(target['rawSql'], variables)))} {panel['title']}")
