#!/usr/bin/env python3
"""serve_client.py GASFLAME - gasflame serve as a client sees it: a friend, a stranger, a slow one, a hundred.

Prints a line for each check, as tests/system/lib.sh does.
"""
import atexit
import http.client
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import capture

failed = 0


def check(name, fine, why=""):
	global failed
	print(("ok - " if fine else "not ok - ") + "serve: " + name)
	if not fine:
		failed += 1
		if why != "":
			print("#   " + str(why)[:500])
	sys.stdout.flush()
	return fine


class Server:
	def __init__(self, *arguments):
		self.process = subprocess.Popen([sys.argv[1], "serve", *arguments], stdout=subprocess.PIPE,
						stderr=subprocess.PIPE, text=True)
		atexit.register(self.process.kill)
		self.url = self.process.stdout.readline().strip()
		m = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/(0/)?", self.url)
		if not m:
			self.process.kill()
			raise SystemExit(f"not ok - serve: prints its URL\n#   {self.url!r} {self.process.stderr.read()}")
		self.port, self.token, self.first = int(m.group(1)), m.group(2), m.group(3) or ""
		self.base = "/" + self.token + "/"

	def ask(self, path, method="GET", host=None, headers=(), body=None):
		"""Status, headers, body."""
		c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
		try:
			c.putrequest(method, path, skip_host=True)
			for h in [f"127.0.0.1:{self.port}"] if host is None else host:
				c.putheader("Host", h)
			for name, value in headers:
				c.putheader(name, value)
			if body is not None:
				c.putheader("Content-Length", str(len(body)))
			c.endheaders()
			if body is not None:
				try:
					c.send(body)
				except OSError:
					pass # it need not listen to the end
			r = c.getresponse()
			return r.status, {k.lower(): v for k, v in r.getheaders()}, r.read()
		finally:
			c.close()

	def raw(self, data, seconds=1):
		with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as s:
			out = b""
			try:
				s.sendall(data)
				s.shutdown(socket.SHUT_WR)
				while more := s.recv(65536):
					out += more
			except OSError:
				pass
			return out

	def rss_kb(self):
		with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
			return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))

	def stop(self, number=signal.SIGINT):
		started = time.monotonic()
		self.process.send_signal(number)
		try:
			self.process.wait(10)
		except subprocess.TimeoutExpired:
			self.process.kill()
		return self.process.wait(), time.monotonic() - started, self.process.stderr.read()


def data_url(page):
	m = re.search(rb'data-url="([^"]+)"', page)
	return m.group(1).decode() if m else ""


def friend(s):
	status, headers, page = s.ask(s.base + "0/")
	check("the page", status == 200 and page.lstrip().lower().startswith(b"<!doctype html"), (status,
			page[:80]))
	check("is HTML", headers.get("content-type") == "text/html; charset=utf-8", headers)
	check("may not be kept", headers.get("cache-control") == "no-store", headers)
	check("is not guessed at", headers.get("x-content-type-options") == "nosniff", headers)
	check("tells no other site its URL", headers.get("referrer-policy") == "no-referrer", headers)
	csp = headers.get("content-security-policy", "")
	check("may load nothing from elsewhere", "default-src 'none'" in csp and "connect-src 'self'" in csp
	      and "frame-ancestors 'none'" in csp and "http" not in csp and "*" not in csp, csp)
	check("no other site may read it", not any(k.startswith("access-control") for k in headers), headers)
	check("names no other place", not re.search(rb"(src|href)=\"?https?:", page))
	url = data_url(page)
	check("says where its data are", re.fullmatch(r"data\?v=[0-9a-f]{16}", url), url)
	status, headers, data = s.ask(s.base + "0/" + url)
	check("the data", status == 200 and len(data) > 1000, (status, len(data)))
	check("are bytes", headers.get("content-type") == "application/octet-stream", headers)
	size = int.from_bytes(data[:4], "little")
	head = zlib.decompress(data[4:4 + size], -15)
	check("of this capture", b'"op-node"' in head, head[:200])
	again = s.ask(s.base + "0/" + url)[2]
	check("are the same again", again == data)
	status, headers, body = s.ask(s.base + "0/", "HEAD")
	check("HEAD has no body", status == 200 and body == b""
			and int(headers["content-length"]) == len(page), status)
	status, headers, body = s.ask(s.base + "0")
	check("a missing slash is put there", status == 302 and headers.get("location") == s.base + "0/",
			(status, headers))
	check("localhost is a name of ours", s.ask(s.base + "0/", host=[f"localhost:{s.port}"])[0] == 200)
	return url


def stranger(s, url):
	nothing = s.ask("/")
	check("without a token there is nothing", nothing[0] == 404, nothing[:2])
	wrong = ("0" if s.token[0] != "0" else "1") + s.token[1:]
	for name, path in {
		"a wrong token": f"/{wrong}/0/", "half a token": f"/{s.token[:16]}/0/",
		"a longer token": f"/{s.token}0/0/",
		"a token in capitals": f"/{s.token.upper()}x/0/", "data without a token": "/0/" + url,
		"favicon": "/favicon.ico",
		"dots": f"/{wrong}/../{s.token}/0/", "another site's URL": f"http://evil.example{wrong}/",
		"escaped": "/%2e%2e/%2e%2e/etc/passwd",
	}.items():
		answer = s.ask(path)
		check(f"{name}: nothing", answer[0] == 404 and answer[2] == nothing[2], answer)
	for name, path in {"the next capture": "1/", "a negative one": "-1/", "a huge one": "99999999999/",
			"a file": "0/etc/passwd",
			   "dots behind the token": "0/../../etc/passwd", "an upper folder": "../"}.items():
		check(f"{name}: nothing", s.ask(s.base + path)[0] == 404)
	for host in ([], ["evil.example"], [f"evil.example:{s.port}"], ["127.0.0.1:1"],
			[f"127.0.0.1:{s.port}", "evil.example"],
		     [f"127.0.0.1:{s.port}.evil.example"], [""]):
		status = s.ask(s.base + "0/", host=host)[0]
		check(f"Host {host}: nothing", status in (400, 404), status)
	for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "BREW"):
		status, headers, _ = s.ask(s.base + "0/", method, headers=[("Origin", "http://evil.example")])
		check(f"{method} is refused", status in (400, 404, 405,
				501) and "access-control-allow-origin" not in headers, status)
	status = s.ask(s.base + "0/", "POST", body=b"x" * (8 << 20))[0]
	check("a large body is refused", status == 405, status)


def nonsense(s, url):
	for query in ("", "?v=", "?v=zz", "?v=0", "?v=" + "f" * 400, "?under=1", url[4:] + "&under=x",
			url[4:] + "&under=-1",
		      url[4:] + "&under=0", url[4:] + "&under=99999999999999999999"):
		status = s.ask(s.base + "0/data" + query)[0]
		check(f"data{query[:40]}: refused", status == 400, status)
	status, _, body = s.ask(s.base + "0/" + url + "&under=4294967295")
	check("a node that is not there", status == 404, (status, body[:100]))
	status, _, body = s.ask(s.base + "0/data?v=" + "0" * 16)
	check("a version that is no more", status == 410 and b"reload" in body, (status, body))
	for name, data in {
		"no HTTP": b"hello\r\n\r\n", "nothing": b"", "zeros": b"\0" * 1000,
		"a long line": b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
		"many headers": b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i
		for i in range(5000)) + b"\r\n",
		"half a request": b"GET / HT",
		"a wrong length": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
		"TLS": bytes.fromhex("160301020001000001fc0303") + b"\1" * 200,
		"version 9": b"GET / HTTP/9.9\r\n\r\n",
	}.items():
		out = s.raw(data)
		check(f"{name}: not answered with anything of ours", not re.match(rb"HTTP/1.\d 200", out),
				out[:60])
	check("and all is well after that", s.ask(s.base + "0/")[0] == 200)


def half_open(s):
	"""Strangers who take every place, and never say what they want: whoever has the token is answered
	all the same, on a connection that he had before, too."""
	friend = http.client.HTTPConnection("127.0.0.1", s.port, timeout=20)
	friend.request("GET", s.base + "0/")
	fine = friend.getresponse().read()
	waiting = []
	for i in range(300):
		try:
			c = socket.create_connection(("127.0.0.1", s.port), timeout=2)
			c.sendall(b"GET /slow HTTP/1.1\r\nHost: 127")
			waiting.append(c)
		except OSError:
			break
	check("300 that say half a request are let in", len(waiting) == 300, len(waiting))
	started = time.monotonic()
	try:
		status = s.ask(s.base + "0/")[0]
	except OSError as e:
		status = e
	seconds = time.monotonic() - started
	check("and keep nobody out who has the token", status == 200 and seconds < 5, (status, seconds))
	try:
		friend.request("GET", s.base + "0/")
		kept = friend.getresponse().read() == fine
	except OSError as e:
		kept = e
	check("nor is his open connection closed", kept is True, kept)
	fds = len(os.listdir(f"/proc/{s.process.pid}/fd"))
	check("most of them were sent away", fds < 100, fds)
	friend.close()
	for c in waiting:
		c.close()


def crowd(s, url):
	before, idle = s.rss_kb(), []
	for i in range(100):
		c = socket.create_connection(("127.0.0.1", s.port), timeout=5)
		c.sendall(b"GET /slow")
		idle.append(c)
	check("a hundred that say half a word do not keep others out", s.ask(s.base + "0/")[0] == 200)
	grown = s.rss_kb() - before
	check("nor cost much memory", grown < 20000, f"{grown} KB")
	for c in idle:
		c.close()
	half_open(s)
	flood = []
	try:
		for i in range(400):
			c = socket.create_connection(("127.0.0.1", s.port), timeout=2)
			flood.append(c)
	except OSError:
		pass
	fds = len(os.listdir(f"/proc/{s.process.pid}/fd"))
	check("open connections are bounded", fds < 160, fds)
	for c in flood:
		c.close()
	# Those that go away in the middle of an answer: no SIGPIPE.
	for i in range(20):
		c = socket.create_connection(("127.0.0.1", s.port), timeout=5)
		c.sendall(f"GET {s.base}0/{url} HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\n\r\n".encode())
		c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
		c.close()
	end = time.monotonic() + 10
	status = 0
	while status != 200 and time.monotonic() < end:
		try:
			status = s.ask(s.base + "0/" + url)[0]
		except OSError:
			time.sleep(0.1)
	check("it answers when they are gone", status == 200, status)


def reachable_from_outside(s):
	with open("/proc/net/tcp", encoding="ascii") as f:
		local = [line.split()[1] for line in f if line.split()[3] == "0A"]
	here = [a for a in local if int(a.split(":")[1], 16) == s.port]
	check("listens on loopback only", here == [f"0100007F:{s.port:04X}"], here)


def replaced(folder):
	path = os.path.join(folder, "moving.gasflame")
	shutil.copy(os.path.join(folder, "node.gasflame"), path)
	s = Server(path)
	url = data_url(s.ask(s.base + "0/")[2])
	data = s.ask(s.base + "0/" + url)[2]
	capture.one(os.path.join(folder, "other.gasflame"))
	os.rename(os.path.join(folder, "other.gasflame"), path)
	check("an open page goes on with what it opened", s.ask(s.base + "0/" + url)[2] == data)
	later = data_url(s.ask(s.base + "0/")[2])
	check("a replaced capture is read anew", later != url
			and len(s.ask(s.base + "0/" + later)[2]) < len(data) / 2)
	status, _, body = s.ask(s.base + "0/" + url)
	check("and the old page is told so", status == 410 and b"reload" in body, (status, body))
	with open(path, "wb") as f:
		f.write(b"no capture at all")
	status, _, body = s.ask(s.base + "0/")
	check("one that is none any more gives a sentence", status == 500 and len(body) > 20, (status, body))
	os.unlink(path)
	check("one that is gone too", s.ask(s.base + "0/")[0] == 500)
	shutil.copy(os.path.join(folder, "node.gasflame"), path)
	check("and when it is back, its page", s.ask(s.base + "0/")[0] == 200)
	status, seconds, said = s.stop(signal.SIGTERM)
	check("SIGTERM ends it", status == 0 and seconds < 5, (status, seconds, said))


def several(folder):
	hostile = os.path.join(folder, "<img src=x onerror=alert(1)>.gasflame")
	shutil.copy(os.path.join(folder, "hostile.gasflame"), hostile)
	files = [os.path.join(folder, "node.gasflame"), os.path.join(folder, "one.gasflame"), hostile]
	s = Server(*files)
	check("of several it shows a list first", s.first == "", s.url)
	status, _, body = s.ask(s.base)
	check("the list", status == 200 and body.count(b"<tr>") == 4, (status, body[-300:]))
	check("has links to each", all(b'href="%d/"' % i in body for i in range(3)), body)
	check("with facts", b"op-node" in body and b"10.0 s" in body, body)
	check("shows names as text", b"<img" not in body and b"&lt;img" in body and b"<script>" not in body,
			body)
	pages = [s.ask(s.base + f"{i}/") for i in range(3)]
	check("each opens", all(p[0] == 200 for p in pages), [p[0] for p in pages])
	check("and no fourth", s.ask(s.base + "3/")[0] == 404)
	datas = [s.ask(s.base + f"{i}/" + data_url(p[2])) for i, p in enumerate(pages)]
	check("each has its own data", len({d[2] for d in datas}) == 3 and all(d[0] == 200 for d in datas))
	# Again the first, which had to make room for the third.
	check("also those that had to make room",
			s.ask(s.base + "0/" + data_url(pages[0][2]))[2] == datas[0][2])
	other = subprocess.run([sys.argv[1], "serve", "--port", str(s.port), files[0]], capture_output=True,
			text=True, timeout=20)
	check("a port that is taken is told", other.returncode == 1 and str(s.port) in other.stderr,
			other.stderr)
	port = s.port
	status, seconds, said = s.stop()
	check("Ctrl-C ends it", status == 0 and seconds < 5, (status, seconds, said))
	s = Server("--port", str(port), files[0])
	check("a port can be chosen, at once again", s.port == port)
	s.stop()
	tokens = set()
	for _ in range(3):
		s = Server(files[0])
		tokens.add(s.token)
		s.stop()
	check("each run has its own token", len(tokens) == 3)


def folded_stacks(folder):
	"""Not a capture, but read all the same; beside one in the list."""
	path = os.path.join(folder, "x.folded")
	with open(path, "w", encoding="utf-8") as f:
		f.write("main;work 3\nmain;rest 4\n")
	s = Server(path, os.path.join(folder, "one.gasflame"))
	listed, page = (s.ask(s.base + p) for p in ("", "0/"))
	check("folded stacks are listed", listed[0] == 200 and b"x.folded" in listed[2]
			and b"folded" in listed[2].replace(b"x.folded", b""), listed[2][-600:])
	check("and have a page", page[0] == 200 and b"<script" in page[2], page[2][:200])
	s.stop()


def command_line(folder):
	def run(*arguments):
		return subprocess.run([sys.argv[1], "serve", *arguments], capture_output=True, text=True,
				timeout=20)

	r = run()
	check("without a file: what to do", r.returncode == 2 and "gasflame record TARGET" in r.stderr, r.stderr)
	r = run(os.path.join(folder, "no such file"))
	check("a missing file", r.returncode == 1 and "no file" in r.stderr and not r.stdout, r.stderr)
	r = run("/etc/passwd")
	check("no capture", r.returncode == 1 and not r.stdout, r.stderr)
	r = run("-")
	check("no standard input", r.returncode == 1 and "file" in r.stderr, r.stderr)
	r = run("--port", "70000", os.path.join(folder, "node.gasflame"))
	check("no such port", r.returncode == 2, r.stderr)
	r = run("--help")
	check("help", r.returncode == 0 and "--max-size" in r.stdout
			and "gasflame serve slow.gasflame" in r.stdout, r.stdout)


def main():
	with tempfile.TemporaryDirectory() as folder:
		for name in ("node", "one", "hostile"):
			getattr(capture, name)(os.path.join(folder, name + ".gasflame"))
		without = subprocess.run([sys.argv[1], "serve", "x"], capture_output=True, text=True,
				timeout=20)
		if "built without" in without.stderr:
			print("ok - serve # SKIP built without libmicrohttpd")
			return 77
		command_line(folder)
		s = Server(os.path.join(folder, "node.gasflame"))
		check("prints its URL", s.first == "0/", s.url)
		url = friend(s)
		reachable_from_outside(s)
		stranger(s, url)
		nonsense(s, url)
		crowd(s, url)
		status, seconds, said = s.stop()
		check("Ctrl-C ends it cleanly", status == 0 and seconds < 5 and "ERROR" not in said, (status,
				seconds, said))
		replaced(folder)
		several(folder)
		folded_stacks(folder)
	return 1 if failed else 0


if __name__ == "__main__":
	resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
			) * 2)
	sys.exit(main())
