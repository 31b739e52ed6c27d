#!/usr/bin/env python3
"""badstore.py [CERTIFICATE] - a server that a store must not be mistaken for: prints "port N". The database of a request says how it
misbehaves: error200 (an error with the status 200), header (the status 200, and only a header says that it failed), half (an answer
that breaks off, in a body whose length nobody said), short (the same with a length), rows (fewer rows than it says), html (a page),
hang (nothing, ever), busy (no memory). With a certificate (and its key in the same file) it speaks TLS.
"""
import http.server
import ssl
import sys
import threading
import urllib.parse

ERROR = b"Code: 241, e.displayText() = DB::Exception: Memory limit exceeded:\n would use 9 GiB, e.what() = DB::Exception\n"
WHOLE = b'{"meta":[],"data":[["1","0"]],"rows":1}\n'


class Handler(http.server.BaseHTTPRequestHandler):
	def log_message(self, *_):
		pass

	def answer(self, status, body, headers=(), length=None):
		self.send_response(status)
		for name, value in headers:
			self.send_header(name, value)
		if length is not None:
			self.send_header("Content-Length", str(length))
		self.end_headers()
		self.wfile.write(body)
		self.close_connection = True

	def do_POST(self):
		self.rfile.read(int(self.headers.get("Content-Length", 0)))
		kind = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query).get("database", [""])[0]
		if kind == "hang":
			threading.Event().wait()
		elif kind == "error200":
			self.answer(200, b'{"meta":[],"data":[["1"' + ERROR)
		elif kind == "header":
			self.answer(200, WHOLE, [("X-ClickHouse-Exception-Code", "60")])
		elif kind == "half":
			self.answer(200, WHOLE[:20])
		elif kind == "short":
			self.answer(200, WHOLE[:20], length=len(WHOLE))
		elif kind == "rows":
			self.answer(200, WHOLE.replace(b'"rows":1', b'"rows":2'))
		elif kind == "busy":
			self.answer(500, ERROR)
		else:
			self.answer(200, b"<html>hello</html>\n")


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
if len(sys.argv) > 1:
	context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
	context.load_cert_chain(sys.argv[1])
	server.socket = context.wrap_socket(server.socket, server_side=True)
print("port", server.server_address[1], flush=True)
server.serve_forever()
