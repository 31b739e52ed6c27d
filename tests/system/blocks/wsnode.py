#!/usr/bin/env python3
"""wsnode.py KIND - a node with a WebSocket that tells of one block, or misbehaves; prints its port."""
import base64, hashlib, json, socket, sys, threading, time
kind = sys.argv[1]
HEAD = {"jsonrpc": "2.0", "method": "eth_subscription", "params": {"subscription": "0x1", "result":
	{"number": "0x5", "hash": "0x" + "5" * 64, "gasUsed": "0x5208"}}}
BLOCK = {"number": "0x5", "hash": "0x" + "5" * 64, "gasUsed": "0x5208", "transactions": ["0x1"]}
def frame(data, op=1, final=True):
	n = len(data)
	return bytes([op | (0x80 if final else 0)]) + (bytes([n]) if n < 126 else b"\x7e" + n.to_bytes(2, "big")) + data
def read(c):
	head = c.recv(2, socket.MSG_WAITALL)
	n = head[1] & 127
	if n == 126:
		n = int.from_bytes(c.recv(2, socket.MSG_WAITALL), "big")
	mask, data = c.recv(4, socket.MSG_WAITALL), c.recv(n, socket.MSG_WAITALL)
	return head[0] & 15, bytes(b ^ mask[i % 4] for i, b in enumerate(data))
def serve(c):
	try:
		text = b""
		while b"\r\n\r\n" not in text:
			text += c.recv(4096)
		if kind == "mute":
			time.sleep(60)
		if kind == "http":
			return c.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
		key = [l.split(b": ")[1] for l in text.split(b"\r\n") if l.lower().startswith(b"sec-websocket-key")][0]
		proof = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
		c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
			(b"x" if kind == "liar" else b"") + proof + b"\r\n\r\n")
		while True:
			op, data = read(c)
			if op != 1:
				continue
			question = json.loads(data)
			if kind == "noise":
				c.sendall(b"\xff" * 4096)
			elif kind == "closing":
				c.sendall(frame(b"\x03\xe8", 8))
			elif kind == "huge":
				c.sendall(b"\x81\x7f" + (1 << 40).to_bytes(8, "big") + b"x" * 4096)
			elif question["method"] == "eth_subscribe":
				c.sendall(frame(json.dumps({"id": question["id"], "result": "0x1"}).encode()))
				time.sleep(0.3)
				if kind == "reorg": # a block, the next one, and another one in place of the first
					for number, digit in (5, "5"), (6, "6"), (5, "7"):
						HEAD["params"]["result"].update(number=hex(number), hash="0x" + digit * 64)
						c.sendall(frame(json.dumps(HEAD).encode()))
					continue
				head = json.dumps(HEAD).encode()
				# In pieces, with a ping between them, and cut where it hurts.
				for part in frame(head[:50], 1, False) + frame(b"hello", 9) + frame(head[50:], 0):
					c.sendall(bytes([part]))
			else:
				# The hash that is asked for says which.
				digit = question["params"][0][-1]
				BLOCK.update(hash="0x" + digit * 64, number="0x6" if digit == "6" else "0x5")
				c.sendall(frame(json.dumps({"id": question["id"], "result": BLOCK}).encode()))
	except (OSError, IndexError, ValueError):
		pass
	finally:
		c.close()
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
	threading.Thread(target=serve, args=server.accept()[:1], daemon=True).start()
