/*
 * page.js - decodes a page with the viewer's own data.js and compares it with what test_page.c says is in it.
 *
 *	node page.js data.js PAGE EXPECTED
 *
 * EXPECTED is JSON: "entries" by their stack, thread, event and cause, each with its samples; "sums" by event; "has",
 * members that the data must have; "whole", a file of the data of which these are the
 * heaviest; "under", the names down to the node that is the root of data of their own.
 */
const fs = require("fs"), vm = require("vm");
const [code, page, wanted] = process.argv.slice(2);
const context = vm.createContext({ Blob, DecompressionStream, Response, TextDecoder, atob, console });
vm.runInContext(fs.readFileSync(code, "utf8") + ";this.G = G", context);
const { G } = context;
let failed = 0;

function check(fine, ...words) {
	if (!fine && failed++ < 10)
		console.log("not ok:", ...words);
}

const near = (a, b, share) => Math.abs(a - b) <= Math.abs(b) * share + 1e-6;

function bytesOf(path) {
	const data = fs.readFileSync(path), text = data.toString("latin1"), at = text.indexOf('id="data">');
	return new Uint8Array(at < 0 ? data : Buffer.from(text.slice(at + 10, text.indexOf("<", at)), "base64"));
}

function stackOf(d, n, plain) {
	const names = [];
	for (; n; n = d.tree.parent[n])
		names.unshift(d.idents.name[d.tree.ident[n]] + (d.tree.inlined[n] && !plain ? " (inlined)" : ""));
	return names;
}

/* What must hold of any page. */
function checkShape(d) {
	const t = d.tree, e = d.entries;
	check(d.idents.name.length === d.idents.n, "names", d.idents.name.length, "not", d.idents.n);
	for (let i = 1; i < d.idents.n; i++)
		if (d.full === null && d.idents.name[i - 1] && d.idents.name[i])
			check(Buffer.compare(Buffer.from(d.idents.name[i - 1]), Buffer.from(d.idents.name[i])) <= 0, "order of names", i);
	check(t.parent[0] === 0 && t.depth[0] === 0 && t.size[0] === t.n, "root");
	for (let i = 1; i < t.n; i++) {
		const p = t.parent[i];
		check(p < i && i < p + t.size[p] && t.depth[i] === t.depth[p] + 1, "place of node", i);
		check(t.ident[i] < d.idents.n, "identity of node", i);
		const sibling = i + t.size[i];
		if (sibling < p + t.size[p])
			check(t.parent[sibling] === p && t.ident[sibling] > t.ident[i], "order of siblings", i);
	}
	for (let i = 0; i < e.n; i++) {
		check(e.node[i] < t.n && (!i || e.node[i] >= e.node[i - 1]), "node of entry", i);
		check(e.side[i] === d.threads[e.thread[i]].side, "side of entry", i);
		check(e.first[i] <= e.first[i + 1], "samples of entry", i);
	}
	for (const key of ["module", "crate"])
		check(d.idents[key].every(x => x < d[key + "s"].length), key);
	check(d.idents.subsystem.every(x => x >> 1 < Math.max(1, d.subsystems.length)), "subsystem");
	if (d.samples)
		check(e.first[e.n] === d.samples.n, "samples", e.first[e.n], d.samples.n);
}

/* Sums by event over entries, or over samples. */
function sums(d, samples) {
	const out = {};
	for (let i = 0; i < d.entries.n; i++) {
		const name = d.events[d.entries.event[i]].name;
		out[name] = out[name] || 0;
		if (!samples)
			out[name] += d.entries.value[i];
		else
			for (let k = d.entries.first[i]; k < d.entries.first[i + 1]; k++)
				out[name] += d.samples.value ? d.samples.value[k] : d.events[d.entries.event[i]].period;
	}
	return out;
}

function checkEntry(d, i, w) {
	const e = d.entries, name = w.stack.join(";").slice(0, 200), s = d.samples;
	check(near(e.value[i], w.value, 1e-15) && near(e.count[i], w.count, 1e-15), name, "weighs", e.value[i], e.count[i], "not", w.value,
		w.count);
	check(e.side[i] === w.side, name, "side", e.side[i]);
	if (!s)
		return;
	check(e.first[i + 1] - e.first[i] === w.samples.length, name, "has", e.first[i + 1] - e.first[i], "samples, not",
		w.samples.length);
	w.samples.forEach(([slot, span, value, count], k) => {
		const at = e.first[i] + k, v = s.value ? s.value[at] : d.events[e.event[i]].period;
		check(s.slot[at] === slot && (s.span ? s.span[at] : 0) === span, name, "sample", k, "at", s.slot[at], "not", slot, span);
		check((s.count ? s.count[at] : 1) === count, name, "sample", k, "counts", s.count && s.count[at], "not", count);
		check(near(v, value, 0.004), name, "sample", k, "weighs", v, "not", value);
	});
}

function compare(d, want) {
	const e = d.entries, index = new Map(), under = want.under || [];
	for (let i = 0; i < e.n; i++) {
		const stack = under.concat(stackOf(d, e.node[i], want.plain));
		index.set(JSON.stringify([stack, e.thread[i], d.events[e.event[i]].name, d.causes[e.cause[i]].key]), i);
	}
	check(index.size === e.n, "entries that are alike");
	check(e.n === want.entries.length, e.n, "entries, not", want.entries.length);
	for (const w of want.entries) {
		const key = JSON.stringify([w.stack, w.thread, w.event, w.cause]), i = index.get(key);
		check(i !== undefined, "no entry", key.slice(0, 300));
		if (i !== undefined)
			checkEntry(d, i, w);
	}
}

/* What each node has with all below it, by event and cause. */
function totals(d) {
	const out = new Map(), { node, event, cause, thread, value } = d.entries;
	for (let i = 0; i < d.entries.n; i++)
		for (let n = node[i]; ; n = d.tree.parent[n]) {
			const key = [n, event[i], cause[i], thread[i]].join();
			out.set(key, (out.get(key) || 0) + value[i]);
			if (!n)
				break;
		}
	return out;
}

/* Of nodes that were not left out, each weighs what it does in the whole. */
function checkPruned(d, whole) {
	const all = totals(whole), some = totals(d);
	let left = 0;
	for (const [key, value] of some) {
		const [n, ...rest] = key.split(",");
		if (d.idents.note[d.tree.ident[n]] === G.LEFT_OUT)
			left++;
		else
			check(near(all.get([d.full[n], ...rest].join()), value, 1e-12), "total of node", n, value);
	}
	check(left > 0 && d.meta.leftOut.nodes >= whole.tree.n - d.tree.n, "left out:", left, d.meta.leftOut);
	check(d.meta.leftOut.weightShare > 0 && d.meta.leftOut.weightShare < 1, "share", d.meta.leftOut.weightShare);
	for (let i = 1; i < d.tree.n; i++)
		if (d.idents.note[d.tree.ident[i]] !== G.LEFT_OUT)
			check(whole.tree.ident[d.full[i]] === d.tree.ident[i], "identity of node", i);
}

/* Members of want that d must have as they are. */
function checkPart(got, want, path) {
	if (want === null || typeof want !== "object") {
		check(got === want, path, "is", JSON.stringify(got), "not", JSON.stringify(want));
		return;
	}
	for (const key of Object.keys(want))
		checkPart(got === null || got === undefined ? undefined : got[key], want[key], path + "." + key);
}

(async function () {
	const want = JSON.parse(fs.readFileSync(wanted, "utf8"));
	const d = await G.decode(bytesOf(page));
	checkShape(d);
	if (want.entries)
		compare(d, want);
	for (const [name, sum] of Object.entries(want.sums || {})) {
		check(near(sums(d)[name], sum, 1e-12), "sum of", name, sums(d)[name], "not", sum);
		check(!d.samples || near(sums(d, true)[name], sum, 1e-9), "sum of samples of", name, sums(d, true)[name], "not", sum);
	}
	if (want.whole)
		checkPruned(d, await G.decode(bytesOf(want.whole)));
	checkPart(d, want.has || {}, "data");
	console.log(failed ? failed + " wrong" : "ok " + d.tree.n + " nodes, " + d.entries.n + " entries");
	process.exit(failed ? 1 : 0);
})();
