/*
 * pagedamage.js - damages the data of a page in many ways and has the viewer's own data.js decode them.
 *
 *	node pagedamage.js data.js PAGE ROUNDS
 *
 * Whatever is in the data, the decoder ends soon, takes memory in proportion to the data, and either says that
 * something is wrong or gives tables whose indices are within their bounds. Prints how many rounds did which.
 */
const fs = require("fs"), vm = require("vm"), zlib = require("zlib");
const [code, page, rounds] = process.argv.slice(2);
const context = vm.createContext({ Blob, DecompressionStream, Response, TextDecoder, atob, console });
vm.runInContext(fs.readFileSync(code, "utf8") + ";this.G = G", context);
const { G } = context, SLOW_MS = 20000 /* what takes longer never ends */;
let seed = 12345;

/* The upper bits: the lower ones of such a row repeat soon. */
function random(n) {
	seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
	return Math.floor(seed / 4294967296 * n);
}

function bytesOf(path) {
	const data = fs.readFileSync(path), text = data.toString("latin1"), at = text.indexOf('id="data">');
	return Buffer.from(text.slice(at + 10, text.indexOf("<", at)), "base64");
}

/* The head and the columns, unpacked. */
function unpack(bytes) {
	const size = bytes.readUInt32LE(0), head = JSON.parse(zlib.inflateRawSync(bytes.subarray(4, 4 + size)));
	let at = 4 + size;
	return { head, columns: head.columns.map(([, , n]) => zlib.inflateRawSync(bytes.subarray(at, at += n))) };
}

function pack({ head, columns }) {
	const packed = columns.map(c => zlib.deflateRawSync(c, { level: 1 }));
	head.columns.forEach((c, i) => c[2] = packed[i].length);
	const front = zlib.deflateRawSync(JSON.stringify(head), { level: 1 }), size = Buffer.alloc(4);
	size.writeUInt32LE(front.length);
	return Buffer.concat([size, front, ...packed]);
}

const damage = [
	p => { const c = p.columns[random(p.columns.length)]; if (c.length) c[random(c.length)] = random(256); },
	p => { const c = p.columns[random(p.columns.length)]; for (let i = random(c.length + 1), k = 0; k < 8 && i < c.length; k++, i++) c[i] = 255; },
	p => { const i = random(p.columns.length); p.columns[i] = p.columns[i].subarray(0, random(p.columns[i].length + 1)); },
	p => { const keys = Object.keys(p.head.sizes), k = keys[random(keys.length)];
		p.head.sizes[k] = [0, 1, 2 ** 31, 2 ** 32 - 1, 1e300, -1, null, "x", 3.5][random(9)]; },
	p => { const keys = Object.keys(p.head), k = keys[random(keys.length)]; p.head[k] = [null, [], {}, 7, "x"][random(5)]; },
	p => { const i = random(p.columns.length), k = random(p.columns.length); [p.columns[i], p.columns[k]] = [p.columns[k], p.columns[i]]; },
];

/* What the views rely on. */
function wrong(d) {
	const t = d.tree, e = d.entries;
	for (let i = 1; i < t.n; i++)
		if (t.parent[i] >= i || t.ident[i] >= d.idents.n)
			return "node " + i;
	for (let i = 0; i < e.n; i++)
		if (e.node[i] >= t.n || e.thread[i] >= d.threads.length || e.event[i] >= d.events.length || e.cause[i] >= d.causes.length)
			return "entry " + i;
	if (d.samples && e.first[e.n] > d.samples.n)
		return "samples";
	return null;
}

async function main() {
	const good = bytesOf(page), told = new Map();
	let whole = 0, failed = 0;
	for (let round = 0; round < rounds; round++) {
		let bytes = good, what = "";
		if (random(4)) {
			const p = unpack(good);
			for (let k = random(3) + 1; k; k--) {
				const i = random(damage.length);
				what += " " + i;
				if (Array.isArray(p.head.columns) && p.head.sizes && p.columns.length)
					damage[i](p);
				if (!Array.isArray(p.head.columns))
					break;
			}
			if (Array.isArray(p.head.columns) && p.head.columns.length === p.columns.length)
				bytes = pack(p);
		} else {
			bytes = Buffer.from(good.subarray(0, random(good.length)));
			for (let k = random(5); k && bytes.length; k--)
				bytes[random(bytes.length)] = random(256);
		}
		const begin = Date.now();
		try {
			const bad = wrong(await G.decode(new Uint8Array(bytes)));
			whole++;
			if (bad && failed++ < 5)
				console.log("not ok: round", round, "damage", what, "gave", bad);
		} catch (e) {
			const kind = e.message.slice(0, 30);
			told.set(kind, (told.get(kind) || 0) + 1);
		}
		if (Date.now() - begin > SLOW_MS && failed++ < 5)
			console.log("not ok: round", round, "damage", what, "took", Date.now() - begin, "ms");
	}
	console.log(`${rounds} damaged pages: ${whole} decoded, ${[...told.values()].reduce((a, b) => a + b, 0)} refused`);
	process.exit(failed || !whole || !told.size ? 1 : 0);
}

main();
