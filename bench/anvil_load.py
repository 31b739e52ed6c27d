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


def deploy(client, account):
	transaction = {"from": account, "data": contract_code(150), "gas": hex(1_000_000)}
	sent = client.call("eth_sendTransaction", transaction)
	client.call("evm_mine")
	receipt = client.call("eth_getTransactionReceipt", sent)
	if not receipt or int(receipt["status"], 16) != 1:
		raise RuntimeError(f"the contract was not deployed: {receipt}")
	return receipt["contractAddress"]


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
		contract = deploy(client, account)
		nonce = int(client.call("eth_getTransactionCount", account, "latest"), 16)
		turn = 0
		while time.monotonic() < options.end:
			answers = client.post(make_batch(client, account, other, contract, turn, nonce))
			bad = [a for a in answers if "error" in a]
			if bad:
				raise RuntimeError(bad[0]["error"])
			client.call("evm_mine")
			count(index, len(answers))
			turn += 1
			nonce += BATCH
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
