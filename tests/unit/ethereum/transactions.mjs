// transactions.mjs MODULES - prints transactions.jsonl: one of each type, as JSON and as the bytes that were signed, made by
// @ethereumjs/tx. MODULES: the node_modules folder that has it (tools/ethereumjs brings it).
import { createRequire } from 'node:module';
const require = createRequire(process.argv[2] + '/none.js');
const { createTx } = require('@ethereumjs/tx');
const { createCustomCommon, Hardfork, Mainnet } = require('@ethereumjs/common');
const { bytesToHex, hexToBytes, eoaCode7702SignAuthorization, unpadBytes } = require('@ethereumjs/util');
const word = (n) => '0x' + n.toString(16).padStart(64, '0');
const common = createCustomCommon({ chainId: 1337 }, Mainnet, { hardfork: Hardfork.Prague, customCrypto: { kzg: {} } });
const list = [{ address: '0x' + '11'.repeat(20), storageKeys: [word(1), word(255)] }, { address: '0x' + '22'.repeat(20), storageKeys: [] }];
const fees = { maxPriorityFeePerGas: 1000000000n, maxFeePerGas: 100000000000n };
const to = '0x' + 'ab'.repeat(20);
const auth = eoaCode7702SignAuthorization({ chainId: '0x0539', address: to, nonce: '0x00' }, hexToBytes(word(4))).map((p, i) => (i === 1 ? p : unpadBytes(p)));
for (const f of [
	{ type: 0, gasPrice: 10n**11n, to, value: 10n**18n, data: '0x' },
	{ type: 0, gasPrice: 0n, value: 0n, data: '0x' + '60'.repeat(60) },
	{ type: 1, gasPrice: 10n**11n, to, value: 127n, data: '0x7f', accessList: list },
	{ type: 2, ...fees, to, value: 128n, data: '0x80', accessList: [] },
	{ type: 3, ...fees, to, value: 0n, data: '0x', accessList: list, maxFeePerBlobGas: 7n, blobVersionedHashes: ['0x01' + 'cd'.repeat(31), '0x01' + 'ef'.repeat(31)] },
	{ type: 4, ...fees, to, value: 1n, data: '0x', accessList: [], authorizationList: [auth] },
]) {
	const t = createTx({ chainId: 1337n, nonce: f.type === 0 ? 0n : 300n, gasLimit: 21000n, ...f }, { common }).sign(hexToBytes(word(1)));
	const j = t.toJSON();
	console.log(JSON.stringify({ ...j, hash: bytesToHex(t.hash()), raw: bytesToHex(t.serialize()) }));
}
