/*
 * more.js - what was left out of a page that gasflame serve sends: fetched when somebody zooms to where it is.
 *
 * The answer is the subtree of one node, as data of its own, and takes that node's place in G.data. What is light in
 * it may again be left out; zooming further fetches that. Only in pages that are served.
 */
(function () {
	const asked = new Set(), url = document.getElementById("data").dataset.url, MANY = 4, SHARE = 0.002;
	let busy = false;

	/* --- two data become one --- */

	/* By index in a table of theirs: the index in ours, which grows by what it does not have. */
	function strings(ours, theirs) {
		const at = new Map(ours.map((s, i) => [s, i]));
		return theirs.map(s => {
			if (!at.has(s))
				at.set(s, ours.push(s) - 1);
			return at.get(s);
		});
	}

	function behind(ours, theirs) {
		const out = new ours.constructor(ours.length + theirs.length);
		out.set(ours);
		out.set(theirs, ours.length);
		return out;
	}

	/* New identities come behind those that are there, so that these keep their numbers. */
	function identities(d, m) {
		const modules = [...d.modules], crates = [...d.crates], module = strings(modules, m.modules);
		const crate = strings(crates, m.crates), a = d.idents, b = m.idents, at = new Map(), added = [];
		const key = (t, i, mod) => t.note[i] + " " + mod + " " + t.name[i];
		for (let i = 0; i < a.n; i++)
			at.set(key(a, i, a.module[i]), i);
		const map = b.name.map((name, i) => {
			const k = key(b, i, module[b.module[i]]);
			if (!at.has(k))
				at.set(k, a.n + added.push(i) - 1);
			return at.get(k);
		});
		const column = (k, of) => behind(a[k], added.map(i => of ? of[b[k][i]] : b[k][i]));
		const idents = { n: a.n + added.length, name: a.name.concat(added.map(i => b.name[i])), kind: column("kind"),
			note: column("note"), library: column("library"), module: column("module", module), crate: column("crate", crate),
			subsystem: column("subsystem") };
		return { map, modules, crates, idents };
	}

	/* A column of ours with [from, to) replaced, and what comes behind that shifted. */
	function splice(ours, from, to, theirs, change, shift) {
		const out = new ours.constructor(ours.length - (to - from) + theirs.length);
		out.set(ours.subarray(0, from));
		out.set(change ? theirs.map(change) : theirs, from);
		out.set(ours.subarray(to), from + theirs.length);
		for (let i = from + theirs.length; shift && i < out.length; i++)
			out[i] = shift(out[i]);
		return out;
	}

	function tree(d, m, at, map) {
		const t = d.tree, s = m.tree, end = at + t.size[at], more = s.n - t.size[at];
		const of = (k, change, shift) => splice(t[k], at, end, s[k], change, shift);
		const out = { n: t.n + more, ident: of("ident", i => map[i]), size: of("size"), inlined: of("inlined"),
			parent: of("parent", p => p + at, p => p >= end ? p + more : p),
			depth: of("depth", x => x + t.depth[at]), unit: of("unit", u => u && map[u - 1] + 1) };
		out.parent[at] = t.parent[at];
		for (let p = at; p;)
			out.size[p = t.parent[p]] += more;
		return out;
	}

	/* Times of samples in slots of our length. */
	function inSlots(s, theirs, ours) {
		if (theirs === ours)
			return s;
		const to = x => Math.floor(x * theirs / ours), slot = s.slot.map(to);
		return { ...s, slot, span: s.span && s.span.map((x, i) => {
			const last = x ? to(s.slot[i] + x - 1) : 0;
			return last > slot[i] ? last - slot[i] + 1 : 0;
		}) };
	}

	/* A column of samples that not both have, written out. */
	function written(data, s, key) {
		if (s[key])
			return s[key];
		const out = new (key === "span" ? Uint32Array : Float64Array)(s.n), e = data.entries;
		for (let k = 0; key !== "span" && k < e.n; k++)
			out.fill(key === "count" ? 1 : data.events[e.event[k]].period, e.first[k], e.first[k + 1]);
		return out;
	}

	function samples(d, m, from, to) {
		if (!d.samples || !m.samples)
			return null;
		const { samples: a, entries: e } = d, x = e.first[from], y = e.first[to];
		const b = inSlots(m.samples, m.meta.slotNs, d.meta.slotNs);
		const out = { n: a.n - (y - x) + b.n, slot: splice(a.slot, x, y, b.slot) };
		for (const key of ["span", "value", "count"])
			out[key] = a[key] || b[key] ? splice(written(d, a, key), x, y, written(m, b, key)) : null;
		return out;
	}

	/* Entries are in the order of their nodes. */
	function entries(d, m, at) {
		const e = d.entries, f = m.entries, end = at + d.tree.size[at], more = m.tree.n - d.tree.size[at];
		let from = e.node.findIndex(n => n >= at), to;
		from = from < 0 ? e.n : from;
		for (to = from; to < e.n && e.node[to] < end;)
			to++;
		const out = { n: e.n - (to - from) + f.n }, x = e.first[from], grown = f.first[f.n] - (e.first[to] - x);
		for (const key of ["thread", "event", "cause", "side", "value", "count"])
			out[key] = splice(e[key], from, to, f[key]);
		out.node = splice(e.node, from, to, f.node, n => n + at, n => n + more);
		out.first = splice(e.first, from, to, f.first.subarray(0, f.n), i => i + x, i => i + grown);
		return { entries: out, samples: samples(d, m, from, to) };
	}

	const isLeftOut = (d, i) => d.idents.note[d.tree.ident[i]] === G.LEFT_OUT;

	function leftOut(d, nodes) {
		const w = G.model.what(G.state.first).events, e = d.entries;
		let all = 0, out = 0;
		for (let i = 0; i < e.n; i++)
			if (w.includes(e.event[i])) {
				all += e.value[i];
				out += isLeftOut(d, e.node[i]) ? e.value[i] : 0;
			}
		return nodes > 0 && out ? { weightShare: out / all, nodes } : null;
	}

	function real(d, from, to) {
		let n = 0;
		for (let i = from; i < to; i++)
			n += isLeftOut(d, i) ? 0 : 1;
		return n;
	}

	/* Puts the subtree m in the place of node at. */
	function put(m, at) {
		const d = G.data, end = at + d.tree.size[at], { map, ...tables } = identities(d, m);
		const nodes = (d.meta.leftOut || { nodes: 0 }).nodes + real(d, at, end) - real(m, 0, m.tree.n);
		const full = splice(d.full, at, end, m.full);
		G.data = { ...d, ...tables, tree: tree(d, m, at, map), full, ...entries(d, m, at) };
		G.data.meta = { ...d.meta, leftOut: leftOut(G.data, nodes) };
		for (const part of [G.model, G.bins, G.tally])
			part.forget();
	}

	/* --- when --- */

	/* Base nodes of the zoom below which enough is left out to be worth a question, the heaviest first. */
	function wanted(s) {
		const d = G.data, w = G.model.weights(s), t = d.tree, missing = m => {
			let sum = 0;
			for (let i = m; i < m + t.size[m]; i++)
				sum += isLeftOut(d, i) ? w.total[i] : 0;
			return sum;
		};
		let n = G.model.view(s);
		for (const name of s.zoom)
			n = n.kids().find(k => G.state.means(name, k.name)) || n;
		if (n.parent && d.idents.note[n.ident] === G.LEFT_OUT)
			n = n.parent;
		return n.parent ? n.members.filter(m => !asked.has(d.full[m]) && missing(m) > SHARE * w.total[m])
			.sort((a, b) => w.total[b] - w.total[a]).slice(0, MANY).map(m => d.full[m]) : [];
	}

	async function get(full) {
		const answer = await fetch(url + "&under=" + full);
		if (!answer.ok)
			throw new Error(await answer.text());
		const m = await G.decode(new Uint8Array(await answer.arrayBuffer()));
		put(m, G.data.full.indexOf(full)); /* where it is now: only its number stays */
	}

	/* What is left out below the zoom of a state. Resolves when it is there and drawn. */
	G.more = async function (s) {
		const list = busy || !G.data.full || s.invert || !s.zoom.length ? [] : wanted(s);
		if (!list.length)
			return;
		G.test.fetching = busy = true;
		await null; /* the views draw first, and say something */
		G.status("fetching what was left out …");
		try {
			for (const full of list) {
				asked.add(full);
				await get(full);
			}
			G.refresh();
		} catch (e) {
			list.forEach(full => asked.delete(full));
			G.status("What was left out cannot be fetched: " + e.message.trim());
			return;
		} finally {
			G.test.fetching = busy = false;
		}
		/* Somebody may have zoomed on meanwhile. */
		if (G.state.now.zoom !== s.zoom)
			await G.more(G.state.now);
	};

	G.state.on((now, before) => now.zoom !== before.zoom && G.more(now));
})();
