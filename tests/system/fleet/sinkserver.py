#!/usr/bin/env python3
"""sinkserver.py FOLDER [CERTIFICATE] - a server for all kinds of sinks, and for what they must survive: prints "port N".

The first part of a path says what it does: ok (takes it as such a server does; the request is in FOLDER/last.json and FOLDER/last.body, unpacked of
gzip), partial (OTLP: refuses two profiles), html (200, and a page), text (200, and an error), short (less than its length says), cut (the connection
ends), hang (nothing, ever), echo (400, with the Authorization that came), redirect, or a number: that status. bucket: an S3, which checks the signature of each request
(Signature Version 4, worked out here from its description), and keeps objects in FOLDER/s3. With a certificate (and its key) it speaks TLS.
"""
import gzip
import hashlib
import hmac
import http.server
import json
import os
import ssl
import sys
import threading
import urllib.parse

folder = sys.argv[1]
KEY, SECRET, REGION = "AKTEST", "se/cr+et=", "eu-test-1"


def signature_is_right(method, path, headers, body):
	"""None, or what is wrong."""
	auth = headers.get("Authorization", "")
	if not auth.startswith("AWS4-HMAC-SHA256 "):
		return "it is not signed"
	fields = dict(part.strip().split("=", 1) for part in auth[17:].split(","))
	scope = fields["Credential"].split("/")
	if scope[0] != KEY or scope[2:] != [REGION, "s3", "aws4_request"]:
		return "another credential"
	signed = fields["SignedHeaders"].split(";")
	if "host" not in signed or "x-amz-date" not in signed or "x-amz-content-sha256" not in signed:
		return "a header is not signed"
	if headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
		return "the body is another"
	canonical = "\n".join([method, urllib.parse.quote(urllib.parse.unquote(path), safe="/-_.~"), ""]
			      + [f"{name}:{' '.join(headers[name].split())}" for name in signed]
			      + ["", ";".join(signed), headers["x-amz-content-sha256"]])
	text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], "/".join(scope[1:]), hashlib.sha256(canonical.encode()).hexdigest()])
	key = ("AWS4" + SECRET).encode()
	for part in scope[1:]:
		key = hmac.new(key, part.encode(), hashlib.sha256).digest()
	return None if hmac.new(key, text.encode(), hashlib.sha256).hexdigest() == fields["Signature"] else "the signature is another"


class Handler(http.server.BaseHTTPRequestHandler):
	protocol_version = "HTTP/1.1"

	def log_message(self, *_):
		pass

	def answer(self, status, body=b"", kind=None, length=None, **headers):
		self.send_response(status)
		if kind:
			self.send_header("Content-Type", kind)
		for name, value in headers.items():
			self.send_header(name, value)
		self.send_header("Content-Length", str(len(body) if length is None else length))
		self.end_headers()
		self.wfile.write(body)
		self.wfile.flush()

	def keep(self, body):
		with open(os.path.join(folder, "last.json"), "w", encoding="utf-8") as f:
			json.dump({"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}}, f)
		with open(os.path.join(folder, "last.body"), "wb") as f:
			f.write(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)

	def take(self):
		body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
		kind = self.path.split("/")[1]
		if kind == "ok":
			self.keep(body)
			self.answer(200, b"", "application/proto" if "PusherService" in self.path else "application/x-protobuf")
		elif kind == "partial":
			message = b"\x08\x02\x12\x07no room"
			self.answer(200, b"\x0a" + bytes([len(message)]) + message, "application/x-protobuf")
		elif kind == "html":
			self.answer(200, b"<html>Please log in</html>", "text/html")
		elif kind == "text":
			self.answer(200, b"error: out of order", "text/plain")
		elif kind == "garbage":
			self.answer(200, b"\x0a\xff\xff", "application/x-protobuf")
		elif kind in ("short", "cut"):
			if kind == "short":
				self.answer(200, b"\x0a", length=1000)
			self.close_connection = True
		elif kind == "hang":
			threading.Event().wait()
		elif kind == "echo":
			self.answer(400, f"bad: {self.headers.get('Authorization')}".encode(), "text/plain")
		elif kind == "redirect":
			self.answer(308, b"", None, Location=f"http://{self.headers['Host']}/ok")
		elif kind == "bucket":
			why = "PUT wanted" if self.command != "PUT" else signature_is_right(self.command, self.path, self.headers, body)
			if why:
				self.answer(403, f"<Error>SignatureDoesNotMatch: {why}</Error>".encode(), "application/xml")
				return
			name = os.path.join(folder, "s3", urllib.parse.quote(urllib.parse.unquote(self.path[8:]), safe=""))
			with open(name, "wb") as f:
				f.write(body)
			self.answer(200, b"", None, ETag=f'"{hashlib.md5(body).hexdigest()}"')
		else:
			self.answer(int(kind), b"no\x1b[31m room\nsecond line", "text/plain")

	do_POST = do_PUT = take

	def do_GET(self):
		"""The page of metrics, for a scrape."""
		with open(os.path.join(folder, "metrics"), "rb") as f:
			self.answer(200, f.read(), "text/plain; version=0.0.4; charset=utf-8")


os.makedirs(os.path.join(folder, "s3"), exist_ok=True)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
if len(sys.argv) > 2:
	context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
	context.load_cert_chain(sys.argv[2])
	server.socket = context.wrap_socket(server.socket, server_side=True)
print("port", server.server_address[1], flush=True)
server.serve_forever()
