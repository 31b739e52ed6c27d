#!/usr/bin/env python3
"""standin.py - a node that stands for reth, op-reth or geth, written from the specifications of the Engine API.

standin.py serve FORK COUNT SECRET [reth]          prints four ports: Engine API, JSON-RPC, WebSocket, source of blocks
standin.py requests FORK COUNT                     the requests of each block, a line each
standin.py refuse PORT SECRET FORK                 sends what must be refused, and checks the codes
standin.py asked PORT                              what was asked of the Engine API, method by method

FORK: isthmus (of the OP stack), osaka or amsterdam. It checks the token, the method for the fork, each field of each
parameter, and the block: its hash, its parent, its roots. reth: it has reth_newPayload, and tells of blocks on disk. The path
of the address spoils what newPayload answers: another id (/id), a page (/html), half an answer (/half, /cut), none (/close).
"""
import base64, hashlib, hmac, http.server, json, re, socket, sys, threading, time, urllib.request

sys.path.insert(0, __file__.rpartition("/")[0])
from ethspec import FORKS, ZERO, access_list, byte, execute, genesis, header, hx, keccak, make_chain, requests_hash, requests_list, \
    requests_of, rlp, seconds, unrlp, START


class Refusal(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def need(good, code, message):
    if not good:
        raise Refusal(code, message)


# --- shapes ---

QUANTITY, DATA = re.compile(r"0x(0|[1-9a-f][0-9a-f]*)"), re.compile(r"0x([0-9a-f]{2})*")


def is_quantity(x, bits=64):
    return isinstance(x, str) and QUANTITY.fullmatch(x) and int(x, 16) < 1 << bits


def is_data(x, low=0, high=None):
    return isinstance(x, str) and DATA.fullmatch(x) and low <= len(x) // 2 - 1 <= (low if high is None else high)


HASH, ADDRESS, BYTES = (lambda x: is_data(x, 32)), (lambda x: is_data(x, 20)), (lambda x: is_data(x, 0, 1 << 24))


def is_list(shape):
    return lambda x: isinstance(x, list) and all(map(shape, x))


def is_withdrawal(x):
    return isinstance(x, dict) and set(x) == {"index", "validatorIndex", "address", "amount"} and ADDRESS(x["address"]) and all(
        is_quantity(x[k]) for k in ("index", "validatorIndex", "amount"))


def payload_fields(fork):
    fields = {"parentHash": HASH, "feeRecipient": ADDRESS, "stateRoot": HASH, "receiptsRoot": HASH, "logsBloom": lambda x: is_data(x, 256),
              "prevRandao": HASH, "blockNumber": is_quantity, "gasLimit": is_quantity, "gasUsed": is_quantity, "timestamp": is_quantity,
              "extraData": lambda x: is_data(x, 0, 32), "baseFeePerGas": lambda x: is_quantity(x, 256), "blockHash": HASH,
              "transactions": is_list(lambda x: is_data(x, 1, 1 << 24)), "withdrawals": is_list(is_withdrawal),
              "blobGasUsed": is_quantity, "excessBlobGas": is_quantity}
    if fork == "isthmus":
        fields["withdrawalsRoot"] = HASH
    if fork == "amsterdam":
        fields.update(blockAccessList=BYTES, slotNumber=is_quantity)
    return fields


def attribute_fields(fork):
    fields = {"timestamp": is_quantity, "prevRandao": HASH, "suggestedFeeRecipient": ADDRESS, "withdrawals": is_list(is_withdrawal),
              "parentBeaconBlockRoot": HASH}
    if fork == "isthmus":
        fields.update(transactions=is_list(lambda x: is_data(x, 1, 1 << 24)), noTxPool=lambda x: isinstance(x, bool), gasLimit=is_quantity,
                      eip1559Params=lambda x: is_data(x, 8))
    if fork == "amsterdam":
        fields.update(slotNumber=is_quantity, targetGasLimit=is_quantity)
    return fields


def check(given, fields, code, what):
    """A value of null counts as not given."""
    need(isinstance(given, dict), code, what + " is no object")
    given = {k: v for k, v in given.items() if v is not None}
    for name in fields:
        need(name in given, code, "%s: missing field `%s`" % (what, name))
        need(fields[name](given[name]), code, "%s: field `%s` is malformed" % (what, name))
    need(set(given) == set(fields), code, "%s: unknown field %s" % (what, sorted(set(given) - set(fields))))


# --- the chain ---


class Chain:
    def __init__(self, fork):
        self.fork, first = fork, genesis(fork)
        self.headers, self.head, self.pool, self.building, self.on_disk = {first["hash"]: first}, first, [], {}, 0

    def status(self, word, valid=None, error=None):
        return {"status": word, "latestValidHash": valid and hx(valid), "validationError": error}

    def add(self, given, transactions, withdrawals, requests, bal):
        """given: the header's fields. The status of the block."""
        expected = execute(self.fork, given["parentHash"], transactions, withdrawals)
        known = {**given, "transactionsRoot": expected["transactionsRoot"]}
        if self.fork != "isthmus":
            known["withdrawalsRoot"] = expected["withdrawalsRoot"]
        h, _ = header(self.fork, known, requestsHash=requests if isinstance(requests, bytes) else requests_hash(requests),
                      blockAccessListHash=keccak(bal))
        if h["hash"] != given["hash"]:
            return self.status("INVALID", None, "blockhash mismatch, want %s, got %s" % (h["hash"].hex(), given["hash"].hex()))
        if given["parentHash"] not in self.headers:
            return self.status("SYNCING")
        parent = self.headers[given["parentHash"]]
        right = given["number"] == parent["number"] + 1 and given["timestamp"] > parent["timestamp"]
        if self.fork == "amsterdam":
            right = right and bal == access_list(given["parentHash"], transactions)
        if not right or any(given[k] != expected[k] for k in ("stateRoot", "receiptsRoot", "gasUsed", "withdrawalsRoot") if k in given):
            return self.status("INVALID", given["parentHash"], "mismatched block state root")
        self.headers[h["hash"]] = h
        return self.status("VALID", h["hash"])

    def ancestors(self, h):
        while h:
            yield h["hash"]
            h = self.headers.get(h["parentHash"])

    def new_payload(self, p, root, requests):
        given = {"parentHash": byte(p["parentHash"]), "miner": byte(p["feeRecipient"]), "stateRoot": byte(p["stateRoot"]),
                 "receiptsRoot": byte(p["receiptsRoot"]), "logsBloom": byte(p["logsBloom"]), "mixHash": byte(p["prevRandao"]),
                 "extraData": byte(p["extraData"]), "hash": byte(p["blockHash"]), "number": int(p["blockNumber"], 16),
                 "parentBeaconBlockRoot": byte(root)}
        for name in "gasLimit", "gasUsed", "timestamp", "baseFeePerGas", "blobGasUsed", "excessBlobGas":
            given[name] = int(p[name], 16)
        if self.fork == "isthmus":
            given["withdrawalsRoot"] = byte(p["withdrawalsRoot"])
        if self.fork == "amsterdam":
            given["slotNumber"] = int(p["slotNumber"], 16)
        withdrawals = [[int(w["index"], 16), int(w["validatorIndex"], 16), byte(w["address"]), int(w["amount"], 16)] for w in p["withdrawals"]]
        return self.add(given, [byte(t) for t in p["transactions"]], withdrawals, requests, byte(p.get("blockAccessList", "0x")))

    def choose(self, state):
        head = byte(state["headBlockHash"])
        if head not in self.headers:
            return self.status("SYNCING")
        family = set(self.ancestors(self.headers[head])) | {ZERO}
        for name in "safeBlockHash", "finalizedBlockHash":
            need(byte(state[name]) in family, -38002, "Invalid forkchoice state")
        self.head = self.headers[head]
        return self.status("VALID", head)

    def build(self, a):
        """A payload by its attributes: the execution decides the rest."""
        parent, amsterdam = self.head, self.fork == "amsterdam"
        raws = [byte(t) for t in a["transactions"]] if self.fork == "isthmus" else self.pool
        withdrawals = [[int(w["index"], 16), int(w["validatorIndex"], 16), byte(w["address"]), int(w["amount"], 16)] for w in a["withdrawals"]]
        requests, bal = requests_list(requests_of(self.fork, parent["number"] + 1)), access_list(parent["hash"], raws)
        limit = a.get("gasLimit", a.get("targetGasLimit", hx(30000000)))
        known = {**execute(self.fork, parent["hash"], raws, withdrawals), "gasLimit": int(limit, 16)}
        h, _ = header(self.fork, known, parentHash=parent["hash"], miner=byte(a["suggestedFeeRecipient"]), number=parent["number"] + 1,
                      timestamp=int(a["timestamp"], 16), mixHash=byte(a["prevRandao"]), parentBeaconBlockRoot=byte(a["parentBeaconBlockRoot"]),
                      extraData=b"\0" + byte(a["eip1559Params"]) if self.fork == "isthmus" else b"toy", requestsHash=requests_hash(requests),
                      blockAccessListHash=keccak(bal), slotNumber=int(a.get("slotNumber", "0x0"), 16))
        names = {"feeRecipient": "miner", "prevRandao": "mixHash", "blockNumber": "number", "blockHash": "hash"}
        payload = {k: hx(h[names.get(k, k)]) for k in payload_fields(self.fork) if names.get(k, k) in h}
        payload.update(transactions=list(map(hx, raws)), withdrawals=a["withdrawals"])
        if amsterdam:
            payload["blockAccessList"] = hx(bal)
        self.pool = []
        number = hx(len(self.building).to_bytes(8, "big"))
        self.building[number] = {"executionPayload": payload, "blockValue": "0x0", "blobsBundle": {"commitments": [], "proofs": [], "blobs": []},
                                 "shouldOverrideBuilder": False, "executionRequests": list(map(hx, requests))}
        return number


# --- methods ---


class Node:
    def __init__(self, fork, reth):
        self.chain, self.fork, self.reth = Chain(fork), fork, reth
        self.asked, self.lock, self.listeners = {}, threading.Lock(), []

    def versioned(self, method, which):
        m = re.fullmatch(r"engine_\w+V([1-6])", method)
        need(int(m[1]) == FORKS[self.fork][which], -38005, "Unsupported fork")

    def new_payload(self, params):
        need(len(params) == 4, -32602, "Invalid params: four are expected, %d are there" % len(params))
        check(params[0], payload_fields(self.fork), -32602, "Invalid params: executionPayload")
        need(is_list(HASH)(params[1]), -32602, "Invalid params: expectedBlobVersionedHashes")
        need(HASH(params[2]), -32602, "Invalid params: parentBeaconBlockRoot")
        need(isinstance(params[3], list), -32602, "Invalid params: executionRequests: invalid type: string, expected a sequence")
        need(all(is_data(r, 2, 1 << 24) for r in params[3]), -32602, "Invalid params: a request is malformed or empty")
        kinds = [byte(r)[0] for r in params[3]]
        need(kinds == sorted(set(kinds)), -32602, "Invalid params: requests are out of order")
        need(self.fork != "isthmus" or not kinds, -32602, "Invalid params: the OP stack has no requests")
        if params[1]:  # no transaction of this chain has blobs
            return self.chain.status("INVALID", None, "mismatched versioned hashes")
        return self.chain.new_payload(params[0], params[2], [byte(r) for r in params[3]])

    def choose(self, params, version):
        need(1 <= len(params) <= (3 if version == 4 else 2), -32602, "Invalid params: their number")
        check(params[0], {"headBlockHash": HASH, "safeBlockHash": HASH, "finalizedBlockHash": HASH}, -32602, "Invalid params: forkchoiceState")
        attributes = params[1] if len(params) > 1 else None
        need(len(params) < 3 or params[2] is None or is_data(params[2], 16), -32602, "Invalid params: custodyColumns")
        status, number = self.chain.choose(params[0]), None
        if attributes is not None and status["status"] == "VALID":
            check(attributes, attribute_fields(self.fork), -38003, "Invalid payload attributes")
            need(version == FORKS[self.fork][1], -38005, "Unsupported fork")
            need(int(attributes["timestamp"], 16) > self.chain.head["timestamp"], -38003, "Invalid payload attributes: timestamp")
            number = self.chain.build(attributes)
        self.persist()
        return {"payloadStatus": status, "payloadId": number}

    def reth_payload(self, params):
        """As reth reads it: an RLP string, or an object with the block and its access list; then two flags or null."""
        need(1 <= len(params) <= 3 and all(p is None or isinstance(p, bool) for p in params[1:]), -32602, "Invalid params")
        block, bal = (params[0].get("block"), params[0].get("bal")) if isinstance(params[0], dict) else (params[0], None)
        need(BYTES(block) and (bal is None or BYTES(bal)), -32602, "Invalid params: data did not match any variant")
        try:
            (fields, transactions, ommers, withdrawals), rest = unrlp(byte(block))
        except (ValueError, IndexError):
            raise Refusal(-32000, "RLP: input too short")
        need(not rest and not ommers, -32000, "RLP: unexpected length")
        names = ["parentHash", "sha3Uncles", "miner", "stateRoot", "transactionsRoot", "receiptsRoot", "logsBloom", "difficulty", "number",
                 "gasLimit", "gasUsed", "timestamp", "extraData", "mixHash", "nonce", "baseFeePerGas", "withdrawalsRoot", "blobGasUsed",
                 "excessBlobGas", "parentBeaconBlockRoot", "requestsHash", "blockAccessListHash", "slotNumber"]
        counts = {"difficulty", "number", "gasLimit", "gasUsed", "timestamp", "baseFeePerGas", "blobGasUsed", "excessBlobGas", "slotNumber"}
        given = {n: int.from_bytes(f, "big") if n in counts else f for n, f in zip(names, fields)}
        need((bal is not None) == (self.fork == "amsterdam"), -32000, "a block access list belongs to Amsterdam")
        given["hash"] = keccak(rlp(fields))
        withdrawals = [[*(int.from_bytes(x, "big") for x in w[:2]), w[2], int.from_bytes(w[3], "big")] for w in withdrawals]
        status = self.chain.add(given, [t if isinstance(t, bytes) else rlp(t) for t in transactions], withdrawals, given["requestsHash"],
                                byte(bal or "0x"))
        flags = [True if len(params) <= i or params[i] is None else params[i] for i in (1, 2)]
        status.update(latency_us=100 + given["number"], persistence_wait_us=7 if flags[0] else 0)
        if flags[1]:
            status.update(execution_cache_wait_us=3, sparse_trie_wait_us=2)
        return status

    def persist(self):
        """As reth: more than 7 in memory are written, but for 5."""
        c = self.chain
        if self.reth and c.head["number"] - c.on_disk > 7:
            c.on_disk = c.head["number"] - 5
            h = next(c.headers[x] for x in c.ancestors(c.head) if c.headers[x]["number"] == c.on_disk)
            for send in self.listeners:
                # reth's documents have "0x…" here, its source (serde of a u64) a number.
                send({"jsonrpc": "2.0", "method": "reth_subscription", "params": {
                    "subscription": "0x1", "result": {"number": h["number"], "hash": hx(h["hash"])}}})

    def shown(self, by):
        h = next((self.chain.headers[x] for x in self.chain.ancestors(self.chain.head) if by == hx(self.chain.headers[x]["number"])),
                 self.chain.head if by == "latest" else None)
        return h and {**{k: hx(v) for k, v in h.items()}, "transactions": []}

    def call(self, method, params):
        with self.lock:
            self.asked[method] = self.asked.get(method, 0) + 1
            if re.fullmatch("engine_newPayloadV[1-5]", method):
                self.versioned(method, 0)
                return self.new_payload(params)
            if re.fullmatch("engine_forkchoiceUpdatedV[1-4]", method):
                return self.choose(params, int(method[-1]))
            if re.fullmatch("engine_getPayloadV[1-6]", method):
                need(len(params) == 1 and is_data(params[0], 8), -32602, "Invalid params: payloadId")
                need(params[0] in self.chain.building, -38001, "Unknown payload")
                self.versioned(method, 2)
                return self.chain.building[params[0]]
            if method == "engine_getPayloadBodiesByHashV1":
                need(len(params) == 1 and is_list(HASH)(params[0]), -32602, "Invalid params")
                need(len(params[0]) <= 32, -38004, "Too large request")
                return [None] * len(params[0])
            if method == "eth_getBlockByNumber":
                return self.shown(params[0])
            if method == "eth_sendRawTransaction":
                self.chain.pool.append(byte(params[0]))
                return hx(keccak(byte(params[0])))
            if self.reth and method == "reth_newPayload":
                return self.reth_payload(params)
            if self.reth and method == "reth_forkchoiceUpdated":
                need(len(params) == 1, -32602, "Invalid params")
                return self.choose(params, FORKS[self.fork][1])
            raise Refusal(-32601, "the method %s does not exist/is not available" % method)


class Source:
    """Another node that has the chain, and a consensus client beside it."""

    def __init__(self, fork, count):
        self.fork, self.blocks = fork, {hx(b["header"]["number"]): b for b in make_chain(fork, count)}

    def call(self, method, params):
        if method == "eth_blockNumber":
            return hx(len(self.blocks))
        if method == "eth_getBlockByNumber":
            return self.blocks[params[0]]["json"] if params[0] in self.blocks else {
                "transactions": [], **{k: hx(v) for k, v in genesis(self.fork).items()}} if params[0] == "0x0" else None
        if method == "debug_getRawBlockAccessList" and self.fork == "amsterdam":
            return hx(self.blocks[params[0]]["bal"])
        raise Refusal(-32601, "the method %s does not exist/is not available" % method)

    def get(self, path):
        if path == "/eth/v1/beacon/genesis":
            return {"genesis_time": str(START), "genesis_fork_version": "0x00000000"}
        if path == "/eth/v1/config/spec":
            return {"SECONDS_PER_SLOT": str(seconds(self.fork)), "SLOTS_PER_EPOCH": "32"}
        # From Gloas on, which goes with Amsterdam, the payload has an envelope of its own.
        gloas = self.fork == "amsterdam"
        slot = re.fullmatch(r"/eth/v1/beacon/execution_payload_envelopes/(\d+)" if gloas else r"/eth/v2/beacon/blocks/(\d+)", path)
        block = slot and self.blocks.get(hx(int(slot[1])))
        if not block:
            return None
        payload = {"execution_requests": requests_of(self.fork, int(slot[1])),
                   "payload" if gloas else "execution_payload": {"block_hash": block["json"]["hash"]}}
        return {"message": payload if gloas else {"slot": slot[1], "body": payload}}


# --- servers ---


def unbase(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def is_token(text, secret):
    try:
        head, claims, sum_ = text.split(".")
        right = hmac.new(secret, (head + "." + claims).encode(), hashlib.sha256).digest()
        return (json.loads(unbase(head))["alg"] == "HS256" and hmac.compare_digest(right, unbase(sum_)) and
                abs(json.loads(unbase(claims))["iat"] - time.time()) <= 60)
    except (ValueError, KeyError, TypeError):
        return False


def listen(owner, secret=None):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # an answer is one packet

        def log_message(self, *args):
            pass

        def say(self, status, body, length=None):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if length != 0:
                self.send_header("Content-Length", str(length or len(body)))
            self.end_headers()
            self.wfile.write(body)

        def spoil(self, answer, kind):
            if kind == "id":
                answer["id"] += 1
            body = json.dumps(answer).encode()
            if kind == "close" or kind == "half" or kind == "cut":
                self.close_connection = True
            if kind == "half":  # as long as it says, but for half of it
                self.say(200, body[:len(body) // 2], len(body))
            elif kind == "cut":  # without a length, so that the end is the end
                self.say(200, body[:len(body) // 2], 0)
            elif kind == "html":
                self.say(200, b"<html><body>404</body></html>")
            elif kind != "close":
                self.say(200, body)

        def do_GET(self):
            found = owner.asked if self.path == "/asked" else owner.get(self.path) if isinstance(owner, Source) else None
            self.say(200 if found is not None else 404, json.dumps(found if self.path == "/asked" else {"data": found}).encode())

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            authorization = self.headers.get("Authorization", "")
            if secret and not (authorization.startswith("Bearer ") and is_token(authorization[7:], secret)):
                return self.say(401, b"Unauthorized")
            answer = {"jsonrpc": "2.0", "id": None}
            try:
                question = json.loads(body)
                need(isinstance(question, dict) and question.get("jsonrpc") == "2.0" and isinstance(question.get("method"), str) and
                     isinstance(question.get("params", []), list) and "id" in question, -32600, "Invalid Request")
                answer["id"] = question["id"]
                answer["result"] = owner.call(question["method"], question.get("params", []))
            except Refusal as e:
                answer["error"] = {"code": e.code, "message": str(e), "data": None}
            except ValueError:
                answer["error"] = {"code": -32700, "message": "Parse error", "data": None}
            if self.path != "/" and "newPayload" in str(answer.get("result") and question["method"]):
                return self.spoil(answer, self.path[1:])
            self.say(200, json.dumps(answer).encode())

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def frame(text):
    size = bytes([len(text)]) if len(text) < 126 else b"\x7e" + len(text).to_bytes(2, "big")
    return b"\x81" + size + text


def talk(c, chain_node):
    text = b""
    while b"\r\n\r\n" not in text:
        text += c.recv(4096)
    key = re.search(rb"(?i)sec-websocket-key: (\S+)", text)[1]
    proof = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + proof + b"\r\n\r\n")
    while True:
        first = c.recv(2, socket.MSG_WAITALL)
        if len(first) < 2 or first[0] & 15 == 8:
            return
        n = first[1] & 127
        n = int.from_bytes(c.recv(2, socket.MSG_WAITALL), "big") if n == 126 else n
        mask, data = c.recv(4, socket.MSG_WAITALL), c.recv(n, socket.MSG_WAITALL)
        question = json.loads(bytes(b ^ mask[i % 4] for i, b in enumerate(data)))
        answer = {"jsonrpc": "2.0", "id": question["id"]}
        if question["method"] == "reth_subscribePersistedBlock" and question["params"] == [] and chain_node.reth:
            answer["result"] = "0x1"
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        with chain_node.lock:
            c.sendall(frame(json.dumps(answer).encode()))
            if "result" in answer:
                chain_node.listeners.append(lambda x: c.sendall(frame(json.dumps(x).encode())))


def listen_websocket(chain_node):
    server = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            threading.Thread(target=talk, args=(server.accept()[0], chain_node), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    return server.getsockname()[1]


def read_secret(path):
    return bytes.fromhex(open(path).read().strip().removeprefix("0x"))


def serve(fork, count, secret, *more):
    chain_node = Node(fork, "reth" in more)
    ports = listen(chain_node, read_secret(secret)), listen(chain_node), listen_websocket(chain_node), listen(Source(fork, int(count)))
    sys.stdout.write("%d %d %d %d\n" % ports)  # in one piece: who waits for it may read at once
    sys.stdout.flush()
    threading.Event().wait()


def requests(fork, count):
    for b in make_chain(fork, int(count)):
        print(json.dumps({"hash": b["json"]["hash"], "executionRequests": list(map(hx, b["requests"]))}))


# --- does it refuse? ---


def ask(port, secret, method, *params, issued=0, body=None):
    part = lambda x: base64.urlsafe_b64encode(json.dumps(x).encode()).rstrip(b"=").decode()
    text = part({"alg": "HS256", "typ": "JWT"}) + "." + part({"iat": int(time.time()) + issued})
    text += "." + base64.urlsafe_b64encode(hmac.new(secret, text.encode(), hashlib.sha256).digest()).rstrip(b"=").decode()
    body = body or json.dumps({"jsonrpc": "2.0", "id": 5, "method": method, "params": params}).encode()
    request = urllib.request.Request("http://127.0.0.1:%s/" % port, body, {"Content-Type": "application/json", "Authorization": "Bearer " + text})
    try:
        answer = json.load(urllib.request.urlopen(request, timeout=20))
    except urllib.error.HTTPError as e:
        return e.code
    return answer["error"]["code"] if "error" in answer else answer["result"]


def payload_of(b, fork):
    """As a consensus client would send it."""
    j, names = b["json"], {"feeRecipient": "miner", "prevRandao": "mixHash", "blockNumber": "number", "blockHash": "hash"}
    p = {k: j[names.get(k, k)] for k in payload_fields(fork) if names.get(k, k) in j}
    p["transactions"] = list(map(hx, b["raws"]))
    if fork == "amsterdam":
        p["blockAccessList"] = hx(b["bal"])
    return [p, [], j["parentBeaconBlockRoot"], list(map(hx, b["requests"]))]


def refuse(port, secret_path, fork):
    secret, (payload, choice, get) = read_secret(secret_path), FORKS[fork]
    block = make_chain(fork, 3)[0]
    new, fcu = "engine_newPayloadV%d" % payload, "engine_forkchoiceUpdatedV%d" % choice
    whole = payload_of(block, fork)
    state = {"headBlockHash": hx(genesis(fork)["hash"]), "safeBlockHash": hx(ZERO), "finalizedBlockHash": hx(ZERO)}
    tests = [(401, ask(port, b"x" * 32, new, *whole)), (401, ask(port, secret, new, *whole, issued=-120)),
             (-32700, ask(port, secret, None, body=b"{")), (-32600, ask(port, secret, None, body=b"{}")), (-32601, ask(port, secret, "engine_x")),
             (-38005, ask(port, secret, "engine_newPayloadV3", *whole[:3])), (-32602, ask(port, secret, new, *whole[:3])),
             (-38005, ask(port, secret, "engine_newPayloadV%d" % (9 - payload), *whole)),
             (-32602, ask(port, secret, new, *whole[:3], hx(ZERO))), (-32602, ask(port, secret, new, *whole[:3], ["0x01"])),
             (-32602, ask(port, secret, new, *whole[:3], ["0x0101", "0x0001"])), (-32602, ask(port, secret, new, {**whole[0], "x": "0x1"}, *whole[1:])),
             (-32602, ask(port, secret, new, {**whole[0], "gasUsed": "0x00"}, *whole[1:])),
             (-32602, ask(port, secret, fcu, {})), (-38002, ask(port, secret, fcu, {**state, "safeBlockHash": "0x" + "11" * 32}, None)),
             (-38003, ask(port, secret, fcu, state, {"timestamp": "0x1"})), (-38001, ask(port, secret, "engine_getPayloadV%d" % get, "0x" + "ff" * 8)),
             (-38004, ask(port, secret, "engine_getPayloadBodiesByHashV1", [hx(ZERO)] * 33))]
    tests += [(-32602, ask(port, secret, new, {k: v for k, v in whole[0].items() if k != name}, *whole[1:])) for name in whole[0]]
    if choice == 4:
        tests.append((-32602, ask(port, secret, fcu, state, None, "0x01")))
    for i, (wanted, got) in enumerate(tests):
        assert got == wanted, (i, wanted, got)
    for wrong in {**whole[0], "stateRoot": hx(ZERO)}, {**whole[0], "blockHash": hx(ZERO)}:
        assert ask(port, secret, new, wrong, *whole[1:])["status"] == "INVALID"
    assert ask(port, secret, new, *payload_of(make_chain(fork, 3)[2], fork))["status"] == "SYNCING"
    answer = ask(port, secret, new, *whole)
    assert answer["status"] == "VALID", answer


def asked(port):
    print(urllib.request.urlopen("http://127.0.0.1:%s/asked" % port, timeout=20).read().decode())


if __name__ == "__main__":
    {"serve": serve, "requests": requests, "refuse": refuse, "asked": asked}[sys.argv[1]](*sys.argv[2:])
