#!/usr/bin/env python3
"""genesis.py - the first block of the chain that tests replay: four forks, 13 blocks of each, some accounts with money.

Printed as geth's genesis.json. The contracts that Prague calls at the end of each block are there, and do nothing; ours
hashes and stores in a loop, as often as the first word of its input says.
"""
import json

ACCOUNTS = [  # of the private keys 0x…01 to 0x…04
    "7e5f4552091a69125d5dfcb7b8c2659029395bdf", "2b5ad5c4795c026514f8317c7a215e218dccd6cf",
    "6813eb9362372eef6200f3b1dbc3f819671cba69", "1eff47bc3a10a45d4b230b5d10e37751fe6aa718",
]
LOOP = (
    "600035"        # PUSH1 0 CALLDATALOAD: how often
    "5b"            # JUMPDEST, at 3
    "80600052"      # memory[0] = the counter
    "6020600020"    # keccak256(memory[0..32])
    "8060ff1655"    # storage[hash & 255] = hash
    "600190038060035700"  # counter - 1; back while it is not 0; STOP
)
SILENT = ["0000f90827f1c53a10cb7a02335b175320002935", "00000961ef480eb55e80d19ad83579a64c007002",
          "0000bbddc7ce488642fb579f8b00f3a590007251"]
START, EVERY = 0x65000000, 12

alloc = {a: {"balance": hex(10**24)} for a in ACCOUNTS}
alloc["00000000000000000000000000000000000c0de1"] = {"balance": "0x0", "code": "0x" + LOOP}
alloc |= {a: {"balance": "0x0", "code": "0x00"} for a in SILENT}
config = {"chainId": 1337, "terminalTotalDifficulty": 0, "terminalTotalDifficultyPassed": True}
for fork in ("homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg", "istanbul",
             "berlin", "london"):
    config[fork + "Block"] = 0
config["mergeForkBlock"] = 0
for i, fork in enumerate(("shanghai", "cancun", "prague")):
    config[fork + "Time"] = START + EVERY * 13 * (i + 1)
config["blobSchedule"] = {f: {"target": 3 * (i + 1), "max": 6 + 3 * i, "baseFeeUpdateFraction": n}
                          for i, (f, n) in enumerate((("cancun", 3338477), ("prague", 5007716)))}
print(json.dumps({"config": config, "nonce": "0x0", "timestamp": hex(START), "extraData": "0x", "gasLimit": hex(30_000_000),
                  "difficulty": "0x0", "mixHash": "0x" + "0" * 64, "coinbase": "0x" + "0" * 40,
                  "baseFeePerGas": hex(10**9), "alloc": alloc}, indent=1))
