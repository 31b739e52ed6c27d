/*
 * data.js - decodes what src/export/page/page.c wrote (docs/page-format.md) into G.data.
 *
 * Everything stays in typed arrays; the only strings are names.
 */
var G = G || {};

G.LEFT_OUT = 15; /* idents.note of what stands for nodes that are left out */

(function () {
	async function inflate(bytes) {
		const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
		return new Uint8Array(await new Response(stream).arrayBuffer());
	}

	function fromBase64(text) {
		if (Uint8Array.fromBase64)
			return Uint8Array.fromBase64(text);
		const s = atob(text), out = new Uint8Array(s.length);
		for (let i = 0; i < s.length; i++)
			out[i] = s.charCodeAt(i);
		return out;
	}

	function damaged(what) {
		throw new Error("its data are damaged: " + what);
	}

	/* n numbers of seven bits a byte, least first. Those above 32 bits need doubles. Each takes a byte at least. */
	function numbers(bytes, n, type) {
		if (!(Number.isInteger(n) && n >= 0 && n <= bytes.length))
			damaged("a column of " + bytes.length + " bytes cannot hold " + n + " numbers");
		const out = new (type || Uint32Array)(n);
		let at = 0;
		for (let i = 0; i < n; i++) {
			let b = bytes[at++], v = b & 127;
			for (let scale = 128; b > 127; scale *= 128) {
				b = bytes[at++];
				v += (b & 127) * scale;
			}
			out[i] = v;
		}
		return out;
	}

	/* How many numbers a column has: one for each byte that ends one. */
	function length(bytes) {
		let n = 0;
		for (let i = 0; i < bytes.length; i++)
			n += bytes[i] < 128;
		return n;
	}

	function decodeIdents(c, n) {
		if (!(Number.isInteger(n) && n >= 0 && n <= c.kinds.length))
			damaged(n + " functions");
		const name = new TextDecoder().decode(c.names).split("\n"), kind = new Uint8Array(n), note = new Uint8Array(n),
			library = new Uint8Array(n);
		name.length = n;
		for (let i = 0; i < n; i++) {
			kind[i] = c.kinds[i] & 7;
			library[i] = c.kinds[i] >> 3 & 1;
			note[i] = c.kinds[i] >> 4;
		}
		return { n, name, module: numbers(c.modules, n), kind, note, library, crate: numbers(c.crates, n),
			subsystem: numbers(c.subsystems, n, Uint8Array) };
	}

	/* A node's identity is one of those that its parent's calls. */
	function decodeTree(c, n, idents, root) {
		const fans = numbers(c.fans, idents), first = new Uint32Array(idents + 1);
		for (let i = 0; i < idents; i++)
			first[i + 1] = first[i] + fans[i];
		const calls = numbers(c.calls, first[idents]), codes = c.codes, ups = c.ups;
		if (!(Number.isInteger(n) && n >= 1 && n <= codes.length + 1 && root < idents))
			damaged(n + " nodes");
		const ident = new Uint32Array(n), parent = new Uint32Array(n), size = new Uint32Array(n);
		const depth = new Uint16Array(n), inlined = new Uint8Array(n);
		let code = 0, up = 0;
		ident[0] = root;
		size.fill(1);
		for (let i = 1, above = 0; i < n; i++) {
			let b = codes[code++], v = b & 127;
			for (let shift = 7; b > 127; shift += 7)
				v |= ((b = codes[code++]) & 127) << shift;
			let u = (b = ups[up++]) & 127;
			for (let shift = 7; b > 127; shift += 7)
				u |= ((b = ups[up++]) & 127) << shift;
			if (!(u >= 0 && u <= depth[above]))
				damaged("node " + i);
			for (; u; u--)
				above = parent[above];
			const call = calls[first[ident[above]] + v];
			if (!(call >>> 1 < idents) || depth[above] === 65535)
				damaged("node " + i);
			parent[i] = above;
			depth[i] = depth[above] + 1;
			ident[i] = call >>> 1;
			inlined[i] = call & 1;
			above = i;
		}
		for (let i = n - 1; i > 0; i--)
			size[parent[i]] += size[i];
		/* Where the stack of a unit of work begins: 1 + the identity of the unit. */
		const unit = new Uint32Array(n), u = numbers(c.units, length(c.units));
		for (let k = 0, i = 0; k < u.length; k += 2) {
			i += u[k];
			if (!(i < n && u[k + 1] < idents))
				damaged("units");
			unit[i] = u[k + 1] + 1;
		}
		return { n, ident, parent, size, depth, inlined, unit };
	}

	/* The number that each node has in the tree of which this is a part; what was left out has its parent's. */
	function decodeFull(c, t, note) {
		const full = new Uint32Array(t.n), steps = numbers(c.full, length(c.full));
		for (let i = 0, k = 0, last = 0; i < t.n; i++)
			full[i] = note[t.ident[i]] === G.LEFT_OUT ? full[t.parent[i]] : last += steps[k++];
		return full;
	}

	function decodeEntries(c, n, events, threads, causes, nodes) {
		const whos = numbers(c.whos, length(c.whos)), who = numbers(c.who, n), node = numbers(c.at, n);
		const thread = new Uint32Array(n), event = new Uint8Array(n), cause = new Uint8Array(n), side = new Uint8Array(n);
		const count = numbers(c.counts, n, Float64Array), value = numbers(c.values, n, Float64Array);
		const regular = new Uint8Array(n);
		for (let i = 0; i < n; i++) {
			const w = who[i] * 3;
			node[i] += i ? node[i - 1] : 0;
			thread[i] = whos[w];
			event[i] = whos[w + 1];
			cause[i] = whos[w + 2];
			if (!(node[i] < nodes && whos[w] < threads.length && whos[w + 1] < events.length && whos[w + 2] < causes.length))
				damaged("entry " + i);
			side[i] = threads[thread[i]].side;
			regular[i] = value[i] === 0;
			value[i] = value[i] ? (value[i] - 1) / events[event[i]].scale : count[i] * events[event[i]].period;
		}
		return { n, node, thread, event, cause, side, value, count, first: new Uint32Array(n + 1), regular };
	}

	/* Values of single samples are rounded; scaled to their sum they add up again. */
	function scale(value, from, to, sum) {
		let have = 0;
		for (let k = from; k < to; k++)
			have += value[k];
		if (have)
			for (let k = from; k < to; k++)
				value[k] *= sum / have;
	}

	function decodeSamples(c, n, e, events) {
		const merged = numbers(c.merged, e.n, Float64Array), slot = numbers(c.slots, n);
		const spans = numbers(c.spans, length(c.spans)), more = numbers(c.more, length(c.more));
		const span = spans.some(x => x) ? new Uint32Array(n) : null;
		const count = merged.some(x => x) ? new Float64Array(n).fill(1) : null;
		const value = !count && e.regular.every(x => x) ? null : new Float64Array(n);
		let at = 0, s = 0, m = 0, v = 0;
		for (let i = 0; i < e.n; i++) {
			const ev = events[e.event[i]], timed = ev.spanned || ev.role === "wait" || ev.role === "queue";
			const to = at + e.count[i] - merged[i], from = at, one = to - from === 1;
			if (!(to >= at && to <= n))
				damaged("samples of entry " + i);
			for (e.first[i] = at; at < to; at++) {
				slot[at] += at > from ? slot[at - 1] : 0;
				if (timed && span)
					span[at] = spans[s++];
				if (merged[i])
					count[at] = one ? e.count[i] : more[m++] + 1;
				if (value && one)
					value[at] = e.value[i];
				else if (value && e.regular[i])
					value[at] = ev.period * (count ? count[at] : 1);
				else if (value) {
					const x = c.exponents[v], bits = c.bits[v++];
					value[at] = x ? (256 + bits) * 2 ** (x - 1) : bits;
				}
			}
			if (!one && !e.regular[i])
				scale(value, from, to, e.value[i]);
		}
		e.first[e.n] = at;
		return { n, slot, span, value, count };
	}

	/* The bytes of a page's data as G.data has them. */
	G.decode = async function (bytes) {
		const view = new DataView(bytes.buffer, bytes.byteOffset), size = view.getUint32(0, true);
		const d = JSON.parse(new TextDecoder().decode(await inflate(bytes.subarray(4, 4 + size))));
		const c = {}, { sizes } = d;
		if (d.format !== 1)
			throw new Error("its data have format " + d.format + ", which another version of gasflame wrote");
		let at = 4 + size;
		await Promise.all(d.columns.map(async ([name, , packed]) => {
			const from = at;
			at += packed;
			c[name] = await inflate(bytes.subarray(from, from + packed));
		}));
		for (const e of d.events)
			e.period /= e.scale;
		d.idents = decodeIdents(c, sizes.idents);
		d.tree = decodeTree(c, sizes.nodes, sizes.idents, sizes.root);
		d.full = sizes.all ? null : decodeFull(c, d.tree, d.idents.note);
		d.entries = decodeEntries(c, sizes.entries, d.events, d.threads, d.causes, d.tree.n);
		d.samples = sizes.times ? decodeSamples(c, sizes.samples, d.entries, d.events) : null;
		for (const s of d.series || []) {
			s.t = Float64Array.from(s.t);
			s.v = Float64Array.from(s.v);
		}
		return d;
	};

	G.load = async function () {
		const element = document.getElementById("data");
		let bytes;
		if (element.dataset.url)
			bytes = await G.served();
		else {
			bytes = fromBase64(element.textContent);
			element.remove();
		}
		G.data = await G.decode(bytes);
	};
})();
