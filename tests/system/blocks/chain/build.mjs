// build.mjs MODULES ENGINE RPC JWT - has an ethereumjs client build the chain that tests replay, and prints its blocks,
// one a line, as eth_getBlockByNumber answers them. MODULES: the node_modules folder that has @ethereumjs.
//
// blocks.jsonl.gz is what it printed with @ethereumjs/client 0.10.5 on the genesis of genesis.py. The client is started as in
// tests/system/blocks/replay.sh; the same keys and nonces give the same blocks.
//
// The client makes the blocks (forkchoiceUpdated with attributes, getPayload); what is signed is signed here.
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [modules, engine, rpc, secretFile] = process.argv.slice(2);
const require = createRequire(modules + '/none.js');
const { createTx } = require('@ethereumjs/tx');
const { createCustomCommon, Hardfork, Mainnet } = require('@ethereumjs/common');
const { bytesToHex, hexToBytes } = require('@ethereumjs/util');

const BLOCKS = 52, FORK = 13, START = 0x65000000, EVERY = 12;
const LOOP = '0x00000000000000000000000000000000000c0de1';
const secret = Buffer.from(readFileSync(secretFile, 'utf8').trim().replace(/^0x/, ''), 'hex');
const hex = (n) => '0x' + n.toString(16);
const word = (n) => '0x' + n.toString(16).padStart(64, '0');
const key = (i) => hexToBytes(word(i + 1));
const common = createCustomCommon({ chainId: 1337 }, Mainnet, { hardfork: Hardfork.Prague });

function token() {
	const part = (x) => Buffer.from(JSON.stringify(x)).toString('base64url');
	const text = part({ alg: 'HS256', typ: 'JWT' }) + '.' + part({ iat: Math.floor(Date.now() / 1000) });
	return text + '.' + createHmac('sha256', secret).update(text).digest('base64url');
}

async function call(url, method, ...params) {
	const answer = await fetch(url, {
		method: 'POST',
		headers: { 'Content-Type': 'application/json', Authorization: 'Bearer ' + token() },
		body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
	});
	const said = await answer.json();
	if (said.error) throw new Error(method + ': ' + JSON.stringify(said.error));
	return said.result;
}

const nonces = [0n, 0n, 0n, 0n];
const fees = { maxPriorityFeePerGas: 10n ** 9n, maxFeePerGas: 10n ** 11n };

// Which kinds a block has changes from block to block; every field that a kind has is used by some of them. The client's
// pool takes no transactions of types 3 (without their blobs) and 4.
function transactionsOf(block) {
	const made = [], all = { chainId: 1337n, gasLimit: 1500000n };
	const list = [{ address: LOOP, storageKeys: [word(block), word(255)] }, { address: '0x' + '11'.repeat(20), storageKeys: [] }];
	const add = (who, fields) => made.push(createTx({ ...all, nonce: nonces[who]++, ...fields }, { common }).sign(key(who)));
	add(0, { type: 0, gasPrice: 10n ** 11n, to: '0x' + '22'.repeat(20), value: 10n ** 18n + BigInt(block), gasLimit: 21000n });
	add(0, { type: 0, gasPrice: 10n ** 11n, to: LOOP, data: word(5 + (block % 10)) });
	if (block % 3 === 0) add(1, { type: 1, gasPrice: 10n ** 11n, to: LOOP, data: word(20), accessList: list });
	if (block % 2 === 0) add(2, { type: 2, ...fees, to: LOOP, data: word(30), accessList: block % 4 ? [] : list });
	if (block % 7 === 0) add(2, { type: 2, ...fees, data: '0x600a600c600039600a6000f3602a60005260206000f3', value: 0n });
	return made;
}

function attributes(block) {
	const a = { timestamp: hex(START + EVERY * block), prevRandao: word(block * 7919), suggestedFeeRecipient: '0x' + 'fe'.repeat(20) };
	if (block >= FORK) a.withdrawals = [{ index: hex(block), validatorIndex: hex(block % 5), address: '0x' + '44'.repeat(20), amount: hex(block * 1000) }];
	if (block >= 2 * FORK) a.parentBeaconBlockRoot = word(block * 104729);
	return a;
}

let head = (await call(rpc, 'eth_getBlockByNumber', '0x0', false)).hash;
for (let block = 1; block <= BLOCKS; block++) {
	const version = 1 + Math.floor(block / FORK > 3 ? 3 : block / FORK), choice = Math.min(version, 3);
	for (const t of transactionsOf(block)) await call(rpc, 'eth_sendRawTransaction', bytesToHex(t.serialize()));
	const state = { headBlockHash: head, safeBlockHash: word(0), finalizedBlockHash: word(0) };
	const begun = await call(engine, 'engine_forkchoiceUpdatedV' + choice, state, attributes(block));
	if (!begun.payloadId) throw new Error('block ' + block + ': ' + JSON.stringify(begun));
	const got = await call(engine, 'engine_getPayloadV' + version, begun.payloadId);
	const payload = got.executionPayload ?? got;
	const rest = version >= 3 ? [[], attributes(block).parentBeaconBlockRoot] : [];
	if (version >= 4) rest.push(got.executionRequests);
	const status = await call(engine, 'engine_newPayloadV' + version, payload, ...rest);
	if (status.status !== 'VALID') throw new Error('block ' + block + ': ' + JSON.stringify(status));
	head = payload.blockHash;
	await call(engine, 'engine_forkchoiceUpdatedV' + choice, { ...state, headBlockHash: head }, null);
	process.stderr.write(`block ${block}: V${version}, ${payload.transactions.length} transactions\n`);
}
for (let block = 1; block <= BLOCKS; block++)
	console.log(JSON.stringify(await call(rpc, 'eth_getBlockByNumber', hex(block), true)));
