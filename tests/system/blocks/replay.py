#!/usr/bin/env python3
"""replay.py WHAT ... - what replay.sh needs beside the shell: ports, nodes that misbehave, and checks of files.

ports N                     N free ports
serve KIND [FILE]           an Engine API or a source of blocks that is KIND; prints its port
csv DIR RPC N               the CSV files of DIR have N blocks, as the node says
tamper FILE NUMBER [HASH]   the block of that number with another state root (and the hash that it should have)
"""
import csv
import http.server
import json
import socket
import sys
import time
import urllib.request


def call(url, method, *params):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=20))["result"]


def ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(count))]
    print(*[s.getsockname()[1] for s in sockets])


def serve(kind, path=None):
    blocks = {b["number"]: b for b in map(json.loads, open(path))} if path else {}
    head = {"number": "0x0", "hash": "0x" + "0" * 64, "gasUsed": "0x0", "transactions": []}
    asked = []

    class Node(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def say(self, status, body):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def result(self, value):
            self.say(200, json.dumps({"jsonrpc": "2.0", "id": self.id, "result": value}).encode())

        def do_POST(self):
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            method, params, self.id = question["method"], question["params"], question["id"]
            asked.append(method)
            if kind == "flaky" and len(asked) % 3:  # a source: two failures for each answer
                self.say(503 if len(asked) % 2 else 200, b"<html>busy")
            elif kind == "flaky" and method == "eth_blockNumber":
                self.result(max(blocks, key=lambda n: int(n, 16)))
            elif kind == "flaky":
                self.result(blocks.get(params[0]))
            elif method == "eth_getBlockByNumber":
                self.result(head)
            elif kind == "garbage":
                self.say(200, b"<html>\xff\x00{")
            elif kind == "never":
                print("asked", flush=True)
                time.sleep(30)
            elif kind == "accepted" and "newPayload" in method:
                self.result({"status": "ACCEPTED", "latestValidHash": None, "validationError": None})
            elif kind in ("accepted", "valid"):
                head.update(number=blocks["0x1"]["number"], hash=blocks["0x1"]["hash"])
                status = {"status": "VALID", "latestValidHash": None, "validationError": None}
                self.result(status if "newPayload" in method else {"payloadStatus": status, "payloadId": None})
            elif kind == "fork":
                self.say(200, json.dumps({"id": self.id, "error": {"code": -38005, "message": "Unsupported fork"}}).encode())
            elif kind == "deep":
                self.say(200, b'{"result":' + b"[" * 1000000)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Node)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()


def check_csv(folder, rpc, count):
    rows = list(csv.DictReader(open(folder + "/combined_latency.csv")))
    sums = list(csv.DictReader(open(folder + "/total_gas.csv")))
    data = json.load(open(folder + "/replay.json"))
    assert list(rows[0]) == ["block_number", "gas_limit", "transaction_count", "gas_used", "new_payload_latency",
                             "fcu_latency", "total_latency", "persistence_wait", "execution_cache_wait", "sparse_trie_wait"], rows[0]
    assert list(sums[0]) == ["block_number", "transaction_count", "gas_used", "time"], sums[0]
    assert len(rows) == len(sums) == data["blocks"] == int(count), (len(rows), len(sums), data["blocks"])
    gas = payload = last = 0
    for i, (row, total) in enumerate(zip(rows, sums)):
        row, total = ({k: int(v) for k, v in x.items() if v} for x in (row, total))
        block = call(rpc, "eth_getBlockByNumber", hex(row["block_number"]), False)
        assert row["block_number"] == total["block_number"] == int(rows[0]["block_number"]) + i, row
        assert row["gas_used"] == total["gas_used"] == int(block["gasUsed"], 16), row
        assert row["gas_limit"] == int(block["gasLimit"], 16), row
        assert row["transaction_count"] == total["transaction_count"] == len(block["transactions"]), row
        # The node is at least asked, and the span has both questions in it (each is rounded).
        assert row["new_payload_latency"] > 0 and row["fcu_latency"] > 0, row
        assert row["total_latency"] + 2 >= row["new_payload_latency"] + row["fcu_latency"], row
        assert total["time"] >= last + row["total_latency"] - 2, total
        gas, payload, last = gas + row["gas_used"], payload + row["new_payload_latency"], total["time"]
    assert data["gas"] == gas, data["gas"]
    assert abs(data["gas_per_s_new_payload"] / (gas * 1e6 / payload) - 1) < 0.01, data
    assert abs(data["gas_per_s_wall"] / (gas / data["wall_s"]) - 1) < 0.01, data
    assert data["wall_s"] * 1e6 >= last - 2, (data["wall_s"], last)


def tamper(path, number, right=None):
    for block in map(json.loads, open(path)):
        if int(block["number"], 16) == int(number):
            block["stateRoot"] = "0x" + "12" * 32
            if right:
                block["hash"] = right
            print(json.dumps(block))


{"ports": ports, "serve": serve, "csv": check_csv, "tamper": tamper}[sys.argv[1]](*sys.argv[2:])
