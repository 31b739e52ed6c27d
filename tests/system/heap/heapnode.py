#!/usr/bin/env python3
"""heapnode.py DUMP - the heap pages of nodes, with the answers that their sources give; the port on the first line.

/CLIENT/... is a node of that kind and state: reth-plain was built without jemalloc-prof (501), reth-busy makes another
dump for the first two questions (503), reth-broken cannot write its dump (500), ethrex-plain has no jemalloc_profiling
(501), ethrex-off is not active (403). Without a client, a server that has its heap at /debug/pprof/allocs only.
"""
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

dump = open(sys.argv[1], "rb").read()
asked = {}
ANSWERS = {
    "reth-plain": (501, b"jemalloc pprof support not compiled. Rebuild with the jemalloc-prof feature."),
    "reth-broken": (500, b"Failed to dump pprof: Permission denied"),
    "reth-stuck": (503, b"Profile dump already in progress. Try again later."),
    "ethrex-plain": (501, b"jemalloc profiling is not available"),
    "ethrex-off": (403, b"heap profiling not activated"),
    "html": (200, b"<html>hello</html>"),
}


class Node(BaseHTTPRequestHandler):
    def do_GET(self):
        client = self.path.split("/")[1]
        asked[client] = asked.get(client, 0) + 1
        if client in ANSWERS:
            status, body = ANSWERS[client]
        elif client == "reth-busy" and asked[client] < 3:
            status, body = ANSWERS["reth-stuck"]
        elif client == "reth-busy" or self.path == "/debug/pprof/allocs":
            status, body = 200, dump
        else:
            status, body = 404, b"nothing here"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Node)
print("port", server.server_port, flush=True)
server.serve_forever()
