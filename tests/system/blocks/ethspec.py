"""ethspec.py - Ethereum's encodings and a toy chain, from the specifications: Keccak-256, RLP, tries, headers, requests.

Nothing here is gasflame's. The chain executes nothing: what a block's transactions do to the state is a hash of them, so
that a node can still tell a right block from a wrong one, and build the same block again.
"""
import hashlib

RC = [0x0000000000000001, 0x0000000000008082, 0x800000000000808A, 0x8000000080008000, 0x000000000000808B, 0x0000000080000001,
      0x8000000080008081, 0x8000000000008009, 0x000000000000008A, 0x0000000000000088, 0x0000000080008009, 0x000000008000000A,
      0x000000008000808B, 0x800000000000008B, 0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080,
      0x000000000000800A, 0x800000008000000A, 0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008]
MASK = (1 << 64) - 1


def rotate(x, n):
    return ((x << n) | (x >> (64 - n))) & MASK if n else x


def permute(a):
    for constant in RC:
        c = [a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20] for x in range(5)]
        d = [c[(x - 1) % 5] ^ rotate(c[(x + 1) % 5], 1) for x in range(5)]
        a = [a[i] ^ d[i % 5] for i in range(25)]
        b, x, y, turn = a[:], 1, 0, 0
        for t in range(24):
            turn = (t + 1) * (t + 2) // 2 % 64
            x, y, old = y, (2 * x + 3 * y) % 5, a[x + 5 * y]
            b[x + 5 * y] = rotate(old, turn)
        a = [b[i] ^ (~b[i // 5 * 5 + (i + 1) % 5] & MASK & b[i // 5 * 5 + (i + 2) % 5]) for i in range(25)]
        a[0] ^= constant
    return a


def keccak(data):
    data += b"\x01" + b"\0" * (135 - len(data) % 136)
    data = data[:-1] + bytes([data[-1] | 0x80])
    state = [0] * 25
    for at in range(0, len(data), 136):
        for i in range(17):
            state[i] ^= int.from_bytes(data[at + 8 * i:at + 8 * i + 8], "little")
        state = permute(state)
    return b"".join(x.to_bytes(8, "little") for x in state[:4])


assert keccak(b"").hex() == "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"


def sha(data):
    return hashlib.sha256(data).digest()


def number(n):
    return n.to_bytes((n.bit_length() + 7) // 8, "big")


def rlp(x):
    if isinstance(x, int):
        x = number(x)
    kind = 0x80
    if isinstance(x, (list, tuple)):
        x, kind = b"".join(map(rlp, x)), 0xC0
    elif len(x) == 1 and x[0] < 0x80:
        return x
    if len(x) < 56:
        return bytes([kind + len(x)]) + x
    size = number(len(x))
    return bytes([kind + 55 + len(size)]) + size + x


def unrlp(data):
    """One item, and the rest."""
    first = data[0]
    if first < 0x80:
        return data[:1], data[1:]
    kind = 0xC0 if first >= 0xC0 else 0x80
    size, at = first - kind, 1
    if size > 55:
        at = 1 + size - 55
        size = int.from_bytes(data[1:at], "big")
    body, rest = data[at:at + size], data[at + size:]
    if len(body) != size:
        raise ValueError("cut")
    if kind == 0x80:
        return body, rest
    items = []
    while body:
        item, body = unrlp(body)
        items.append(item)
    return items, rest


def path(nibbles, leaf):
    flag = 2 * leaf + len(nibbles) % 2
    nibbles = ([flag] if len(nibbles) % 2 else [flag, 0]) + nibbles
    return bytes(nibbles[i] * 16 + nibbles[i + 1] for i in range(0, len(nibbles), 2))


def node(pairs):
    """The node of a trie, of pairs of nibbles and values."""
    if len(pairs) == 1:
        return [path(pairs[0][0], True), pairs[0][1]]
    common = 0
    while all(len(k) > common and k[common] == pairs[0][0][common] for k, _ in pairs):
        common += 1
    if common:
        return [path(pairs[0][0][:common], False), reference(node([(k[common:], v) for k, v in pairs]))]
    branch = [reference(node(part)) if (part := [(k[1:], v) for k, v in pairs if k and k[0] == i]) else b"" for i in range(16)]
    return branch + [next((v for k, v in pairs if not k), b"")]


def reference(n):
    return n if len(rlp(n)) < 32 else keccak(rlp(n))


def trie_root(values):
    """Of a list, by its indexes."""
    if not values:
        return keccak(rlp(b""))
    pairs = [([n for byte in rlp(i) for n in (byte >> 4, byte & 15)], v) for i, v in enumerate(values)]
    return keccak(rlp(node(pairs)))


assert trie_root([]).hex() == "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"

# --- blocks ---

OMMERS = keccak(rlp([]))
START = 0x65000000
ZERO = b"\0" * 32
FORKS = {"isthmus": (4, 3, 4), "osaka": (4, 3, 5), "amsterdam": (5, 4, 6)}  # newPayload, forkchoiceUpdated, getPayload


def seconds(fork):
    return 2 if fork == "isthmus" else 12


def hx(x):
    return hex(x) if isinstance(x, int) else "0x" + x.hex()


def byte(text):
    return bytes.fromhex(text[2:])


def requests_of(fork, n):
    """What the block asks of the beacon chain, as a consensus client has it: of every third block."""
    empty = {"deposits": [], "withdrawals": [], "consolidations": []}
    if fork == "isthmus" or n % 3:
        return empty
    fill = lambda tag, size: hx((keccak(b"%s%d" % (tag, n)) * 4)[:size])
    empty["deposits"] = [{"pubkey": fill(b"p", 48), "withdrawal_credentials": fill(b"c", 32), "amount": "32000000000",
                          "signature": fill(b"s", 96), "index": str(n + i)} for i in range(2)]
    empty["withdrawals"] = [{"source_address": fill(b"a", 20), "validator_pubkey": fill(b"v", 48), "amount": str(2**64 - n)}]
    if n % 2:
        empty["consolidations"] = [{"source_address": fill(b"a", 20), "source_pubkey": fill(b"x", 48),
                                    "target_pubkey": fill(b"y", 48)}]
    return empty


def requests_list(requests):
    little = lambda text: int(text).to_bytes(8, "little")
    made = [b"\0" + b"".join(byte(r["pubkey"]) + byte(r["withdrawal_credentials"]) + little(r["amount"]) + byte(r["signature"]) +
                             little(r["index"]) for r in requests["deposits"]),
            b"\1" + b"".join(byte(r["source_address"]) + byte(r["validator_pubkey"]) + little(r["amount"])
                             for r in requests["withdrawals"]),
            b"\2" + b"".join(byte(r["source_address"]) + byte(r["source_pubkey"]) + byte(r["target_pubkey"])
                             for r in requests["consolidations"])]
    return [r for r in made if len(r) > 1]


def requests_hash(requests):
    return sha(b"".join(map(sha, requests)))


def access_list(parent, transactions):
    """RLP of one account and as many changes as there are transactions."""
    return rlp([[keccak(parent)[:20], [], [], [[i + 1, i + 7] for i in range(len(transactions))], [], []]])


def execute(fork, parent, transactions, withdrawals):
    """What the header says of a block's execution. withdrawals: their RLP items."""
    seed = parent + b"".join(transactions)
    return {"stateRoot": keccak(b"state" + seed), "receiptsRoot": keccak(b"receipts" + seed), "gasUsed": 21000 * len(transactions),
            "logsBloom": b"\0" * 256, "transactionsRoot": trie_root(transactions),
            "withdrawalsRoot": keccak(b"passer" + parent) if fork == "isthmus" else trie_root([rlp(w) for w in withdrawals])}


FIELDS = ["parentHash", "sha3Uncles", "miner", "stateRoot", "transactionsRoot", "receiptsRoot", "logsBloom", "difficulty", "number",
          "gasLimit", "gasUsed", "timestamp", "extraData", "mixHash", "nonce", "baseFeePerGas", "withdrawalsRoot", "blobGasUsed",
          "excessBlobGas", "parentBeaconBlockRoot", "requestsHash"]


def header(fork, known, **more):
    """A header with its hash; known: what execute() gave, and the rest."""
    h = {"sha3Uncles": OMMERS, "difficulty": 0, "nonce": b"\0" * 8, "gasLimit": 30000000, "baseFeePerGas": 7, "blobGasUsed": 0,
         "excessBlobGas": 0, **known, **more}
    names = FIELDS + (["blockAccessListHash", "slotNumber"] if fork == "amsterdam" else [])
    h["hash"] = keccak(rlp([h[name] for name in names]))
    return h, rlp([h[name] for name in names])


def transaction(n, i):
    """A legacy one or one of EIP-1559, signed by nobody: its bytes, and as JSON-RPC has it."""
    to, r, s = keccak(b"to%d" % i)[:20], keccak(b"r%d-%d" % (n, i)), keccak(b"s%d-%d" % (n, i))
    t = {"nonce": n, "gas": 21000, "to": to, "value": 10**18 + i, "input": b"\1" * (60 * i)}
    if i % 2:
        t.update(type=2, chainId=1, maxPriorityFeePerGas=1, maxFeePerGas=10**9, yParity=i // 2 % 2)
        raw = b"\x02" + rlp([1, n, 1, 10**9, 21000, to, t["value"], t["input"], [], t["yParity"], number(int.from_bytes(r, "big")),
                             number(int.from_bytes(s, "big"))])
        shown = {"accessList": []}
    else:
        t.update(type=0, gasPrice=10**9, v=37)
        raw = rlp([n, 10**9, 21000, to, t["value"], t["input"], 37, number(int.from_bytes(r, "big")), number(int.from_bytes(s, "big"))])
        shown = {}
    return raw, {**{k: hx(v) for k, v in t.items()}, **shown, "r": hx(int.from_bytes(r, "big")), "s": hx(int.from_bytes(s, "big")),
                 "hash": hx(keccak(raw))}


def deposit(n):
    source, to = keccak(b"deposit%d" % n), byte("0x4200000000000000000000000000000000000015")
    sender, data = byte("0xdeaddeaddeaddeaddeaddeaddeaddeaddead0001"), keccak(b"l1 %d" % n) * 3
    raw = b"\x7e" + rlp([source, sender, to, b"", 0, 1000000, b"", data])
    return raw, {"type": "0x7e", "sourceHash": hx(source), "from": hx(sender), "to": hx(to), "value": "0x0", "gas": hx(1000000),
                 "isSystemTx": False, "input": hx(data), "hash": hx(keccak(raw)), "nonce": hx(n)}


def withdrawal(n):
    return [n, n % 5, keccak(b"w%d" % n)[:20], 1000 * n]


def genesis(fork):
    known = execute(fork, ZERO, [], [])
    h, _ = header(fork, known, parentHash=ZERO, miner=b"\0" * 20, number=0, timestamp=START, extraData=b"", mixHash=ZERO,
                  parentBeaconBlockRoot=ZERO, requestsHash=requests_hash([]), blockAccessListHash=keccak(rlp([])), slotNumber=0)
    return h


def make_block(fork, parent, n):
    """The block n on a parent's header: its header, RLP, and as JSON-RPC has it; its access list and requests apart."""
    pairs = ([deposit(n)] if fork == "isthmus" else []) + [transaction(n, i) for i in range(n % 4)]
    raws = [raw for raw, _ in pairs]
    withdrawals = [] if fork == "isthmus" else [withdrawal(n)]
    requests, bal = requests_list(requests_of(fork, n)), access_list(parent["hash"], raws)
    h, encoded = header(fork, execute(fork, parent["hash"], raws, withdrawals), parentHash=parent["hash"], miner=b"\xfe" * 20, number=n,
                        timestamp=START + seconds(fork) * n, extraData=byte("0x00000000fa00000006") if fork == "isthmus" else b"toy",
                        mixHash=keccak(b"randao%d" % n), parentBeaconBlockRoot=keccak(b"beacon%d" % n),
                        requestsHash=requests_hash(requests), blockAccessListHash=keccak(bal), slotNumber=n)
    shown = {k: hx(v) for k, v in h.items() if fork == "amsterdam" or k not in ("blockAccessListHash", "slotNumber")}
    shown.update(transactions=[t for _, t in pairs], uncles=[], size="0x400", withdrawals=[
        dict(zip(("index", "validatorIndex", "address", "amount"), map(hx, w))) for w in withdrawals])
    block = rlp([unrlp(encoded)[0], [unrlp(raw)[0] if raw[0] >= 0xC0 else raw for raw in raws], [], withdrawals])
    return {"header": h, "rlp": block, "json": shown, "bal": bal, "requests": requests, "raws": raws}


def make_chain(fork, count):
    blocks, parent = [], genesis(fork)
    for n in range(1, count + 1):
        blocks.append(make_block(fork, parent, n))
        parent = blocks[-1]["header"]
    return blocks
