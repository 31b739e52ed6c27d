#!/usr/bin/env python3
"""anvil_load.py --port N [--seconds N] - a bounded load for an anvil node, over loopback JSON-RPC.

Each sender keeps one connection and one account of its own. It sends a batch of transactions (transfers,
calls that hash and store, now and then a deployment), has a block mined, and goes on: the node is always
busy, and never has more than a few batches before it. Transactions are counted in a file that can be mapped
(the layout of workload/workload.h), so that a bench reads throughput live.
"""
import argparse
import http.client
import json
import mmap
import struct
import sys
import threading
import time

MAGIC = 0x31464C57464C4147
BATCH = 100


def contract_code(rounds):
	"""Init code of a contract that hashes 64 bytes and stores the result, `rounds` times."""
	loop = 3
	runtime = bytes([0x61, rounds >> 8, rounds & 255, 0x5B])         # PUSH2 rounds; JUMPDEST
	runtime += bytes([0x60, 0x40, 0x60, 0x00, 0x20])                 # keccak256(memory[0..64])
	runtime += bytes([0x80, 0x60, 0x00, 0x52])                       # memory[0] = it
	runtime += bytes([0x80, 0x60, 0x1F, 0x16, 0x55])                 # storage[it & 31] = it
	runtime += bytes([0x60, 0x01, 0x90, 0x03, 0x80, 0x60, loop, 0x57, 0x00])  # until 0; STOP
	init = bytes([0x60, len(runtime), 0x60, 0x0C, 0x60, 0x00, 0x39, 0x60, len(runtime), 0x60, 0x00, 0xF3])
	return "0x" + (init + runtime).hex()


def assemble(runtime):
	"""Init code that deploys the runtime code."""
	size = len(runtime)
	init = bytes([0x61, size >> 8, size & 255, 0x60, 0x0E, 0x60, 0x00, 0x39, 0x61, size >> 8, size & 255, 0x60, 0x00, 0xF3])
	return "0x" + (init + runtime).hex()


def loop_code(setup, body, rounds):
	"""A contract that runs body `rounds` times; body finds the number of rounds left on the stack, and leaves it there."""
	start = setup + bytes([0x61, rounds >> 8, rounds & 255])          # PUSH2 rounds
	at = len(start)
	runtime = start + bytes([0x5B]) + body                            # JUMPDEST
	runtime += bytes([0x60, 0x01, 0x90, 0x03, 0x80, 0x61, at >> 8, at & 255, 0x57, 0x00])  # until 0; STOP
	return assemble(runtime)


# Loads that stress one thing each: setup, the body of a loop, rounds, gas.
KINDS = {
	# storage[n & 255] is read seven times, and becomes one more
	"storage": (b"", bytes([0x80, 0x60, 0xFF, 0x16, *[0x80, 0x54, 0x50] * 6, 0x80, 0x54, 0x60, 0x01, 0x01, 0x90, 0x55]), 5000,
		    12_000_000),
	# keccak256 of 1 KiB
	"keccak": (bytes([0x60, 0x01, 0x61, 0x03, 0xE0, 0x52]), bytes([0x61, 0x04, 0x00, 0x60, 0x00, 0x20, 0x60, 0x00, 0x52]),
		   2000, 2_000_000),
	# ecrecover of r = 1 and s = 1, which are a valid signature of any hash
	"ecrecover": (bytes([0x60, 0x1B, 0x60, 0x20, 0x52, 0x60, 0x01, 0x60, 0x40, 0x52, 0x60, 0x01, 0x60, 0x60, 0x52]),
		      bytes([0x80, 0x60, 0x00, 0x52, 0x60, 0x20, 0x60, 0x80, 0x60, 0x80, 0x60, 0x00, 0x60, 0x01, 0x5A, 0xFA, 0x50]),
		      250, 2_000_000),
}


class Client:
	def __init__(self, port):
		self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
		self.connection.connect()
		self.next_id = 0

	def post(self, body):
		self.connection.request("POST", "/", json.dumps(body), {"Content-Type": "application/json"})
		return json.loads(self.connection.getresponse().read())

	def make(self, method, *params):
		self.next_id += 1
		return {"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": list(params)}

	def call(self, method, *params):
		answer = self.post(self.make(method, *params))
		if "error" in answer:
			raise RuntimeError(f"{method}: {answer['error']}")
		return answer["result"]


def deploy(client, account, code):
	transaction = {"from": account, "data": code, "gas": hex(1_000_000)}
	sent = client.call("eth_sendTransaction", transaction)
	client.call("evm_mine")
	receipt = client.call("eth_getTransactionReceipt", sent)
	if not receipt or int(receipt["status"], 16) != 1:
		raise RuntimeError(f"the contract was not deployed: {receipt}")
	return receipt["contractAddress"]


def make_calls(client, account, calls, turn, nonce):
	"""A batch of calls, of each contract in turn, with its gas."""
	batch = []
	for i in range(BATCH // 4):
		contract, gas = calls[(turn + i) % len(calls)]
		batch.append(client.make("eth_sendTransaction", {"from": account, "gas": hex(gas), "nonce": hex(nonce + i),
								 "to": contract}))
	return batch


def make_batch(client, account, other, contract, turn, nonce):
	"""With nonces of our own: the node's choice races against the blocks that other senders have mined."""
	batch = []
	for i in range(BATCH):
		which = (turn * BATCH + i) % 50
		transaction = {"from": account, "gas": hex(1_500_000), "nonce": hex(nonce + i)}
		if which == 0:
			transaction["data"] = contract_code(150)
		elif which % 2:
			transaction["to"] = contract
		else:
			transaction.update(to=other, value="0x1", gas="0x5208")
		batch.append(client.make("eth_sendTransaction", transaction))
	return batch


def sender(options, index, accounts, count, problems):
	try:
		client = Client(options.port)
		account, other = accounts[index], accounts[-1 - index]
		contract = deploy(client, account, contract_code(150))
		kinds = KINDS if options.kind == "all" else [k for k in KINDS if k == options.kind]
		calls = [(deploy(client, account, loop_code(*KINDS[k][:3])), KINDS[k][3]) for k in kinds]
		nonce = int(client.call("eth_getTransactionCount", account, "latest"), 16)
		turn = 0
		while time.monotonic() < options.end:
			# "all" has a batch of transfers, hashing with storage and deployments before each batch of the three.
			batch = make_calls(client, account, calls, turn, nonce) if calls and (options.kind != "all" or turn % 2) else \
				make_batch(client, account, other, contract, turn, nonce)
			answers = client.post(batch)
			bad = [a for a in answers if "error" in a]
			if bad:
				raise RuntimeError(bad[0]["error"])
			client.call("evm_mine")
			count(index, len(answers))
			turn += 1
			nonce += len(answers)
		# What was sent must have been mined.
		if int(client.call("eth_getTransactionCount", account, "latest"), 16) != nonce:
			raise RuntimeError("transactions were sent and not mined")
	except (OSError, RuntimeError, KeyError, TypeError, ValueError) as problem:
		problems.append(f"sender {index}: {problem}")


def main():
	parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
	parser.add_argument("--port", type=int, required=True)
	parser.add_argument("--seconds", type=float, default=10)
	parser.add_argument("--senders", type=int, default=3)
	parser.add_argument("--kind", default="mixed", choices=["mixed", "all", *KINDS],
			    help="what the transactions do; all: mixed, and in turn the loads that stress one thing")
	parser.add_argument("--counters", help="file to count in")
	options = parser.parse_args()
	begin = time.monotonic()
	options.end = begin + options.seconds

	size = 64 * (1 + 64)
	if options.counters:
		with open(options.counters, "w+b") as f:
			f.truncate(size)
			memory = mmap.mmap(f.fileno(), size)
	else:
		memory = mmap.mmap(-1, size)
	memory[0:16] = struct.pack("<QQ", MAGIC, 64)
	done = [0] * options.senders

	def count(index, n):
		done[index] += n
		at = 64 * (1 + index)
		memory[at:at + 32] = struct.pack("<24sQ", b"transactions", done[index])

	accounts = Client(options.port).call("eth_accounts")
	problems = []
	threads = [threading.Thread(target=sender, args=(options, i, accounts, count, problems))
		   for i in range(options.senders)]
	for thread in threads:
		thread.start()
	for thread in threads:
		thread.join()
	seconds = time.monotonic() - begin
	blocks = int(Client(options.port).call("eth_blockNumber"), 16)
	print(json.dumps({"transactions": sum(done), "per_second": round(sum(done) / seconds, 1), "blocks": blocks,
			  "seconds": round(seconds, 2)}))
	for problem in problems:
		print(problem, file=sys.stderr)
	return 1 if problems else 0


if __name__ == "__main__":
	sys.exit(main())
