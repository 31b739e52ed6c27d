/*
 * memory.js - the heap over time by who holds it: of each own function what it allocated less what was freed of that. What grew
 * most after the first third of the time comes first: a leak goes on growing, a start does not.
 */
G.memory = (function () {
	const BINS = 240, MOST = 6, COLOURS = ["#d55e00", "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"], REST = "#999999";

	/* [{ name, v: bytes by bin, end, grew }], the rest as one without a name; null: no allocations with times were recorded. */
	function holders() {
		const { events, entries: e, samples: s, meta, tree, idents } = G.data, of = G.own.nearest({ what: "alloc" }), by = new Map();
		const id = name => events.findIndex(x => x.name === name && x.unit === "bytes"), alloc = id("alloc"), freed = id("freed");
		const bins = BINS, step = meta.durationNs / bins;
		if (!s || alloc < 0 || freed < 0)
			return null;
		for (let i = 0; i < e.n; i++) {
			if (e.event[i] !== alloc && e.event[i] !== freed)
				continue;
			const fn = of[e.node[i]] < 0 ? tree.ident[e.node[i]] : of[e.node[i]], sign = e.event[i] === alloc ? 1 : -1;
			if (!by.has(fn))
				by.set(fn, new Float64Array(bins));
			for (let k = e.first[i], v = by.get(fn); k < e.first[i + 1]; k++)
				v[Math.min(bins - 1, Math.floor(s.slot[k] * meta.slotNs / step))] += sign * (s.value ? s.value[k] : events[e.event[i]].period);
		}
		let list = [...by].map(([fn, v]) => {
			for (let k = 1; k < bins; k++)
				v[k] += v[k - 1];
			/* Sums of what was added and taken away again have a remainder. */
			const end = Math.round(v[bins - 1]), third = Math.round(v[Math.floor(bins / 3)]);
			return { name: idents.name[fn], v, end, grew: end - third, most: v.reduce((a, b) => Math.max(a, b)) };
		});
		const large = list.reduce((most, h) => Math.max(most, h.most), 0) / 500;
		list = list.filter(h => h.most > large);
		list.sort((a, b) => Math.max(b.grew, b.end / 4) - Math.max(a.grew, a.end / 4) || b.end - a.end);
		const rest = { name: "", v: new Float64Array(bins), end: 0, grew: 0, n: list.length - MOST };
		for (const h of list.splice(MOST)) {
			h.v.forEach((x, k) => rest.v[k] += x);
			rest.end += h.end;
			rest.grew += h.grew;
		}
		return list.length ? rest.n > 0 ? [...list, rest] : list : null;
	}

	const colour = (h, i) => h.name ? COLOURS[i % COLOURS.length] : REST;

	/* The areas upon each other, the first one at the bottom. */
	function draw(canvas, list) {
		const k = G.ratio(), w = canvas.clientWidth, h = canvas.clientHeight, ctx = canvas.getContext("2d");
		const under = new Float64Array(BINS), sums = list[0].v.map((x, b) => list.reduce((sum, l) => sum + Math.max(0, l.v[b]), 0));
		const top = sums.reduce((a, b) => Math.max(a, b)) || 1, x = b => b / (BINS - 1) * w, y = v => h - v / top * (h - 2);
		canvas.width = w * k;
		canvas.height = h * k;
		ctx.scale(k, k);
		list.forEach((l, i) => {
			ctx.beginPath();
			for (let b = 0; b < BINS; b++)
				ctx.lineTo(x(b), y(under[b] + Math.max(0, l.v[b])));
			for (let b = BINS; b--;)
				ctx.lineTo(x(b), y(under[b]));
			ctx.fillStyle = colour(l, i);
			ctx.fill();
			l.v.forEach((v, b) => under[b] += Math.max(0, v));
		});
		return top;
	}

	/* The part of the overview; its canvas is drawn by draw() once it is in the document. */
	function section(head, link) {
		const list = holders(), bytes = v => G.model.format(v, "bytes"), { el } = G;
		if (!list)
			return null;
		const all = list.reduce((sum, h) => sum + h.end, 0), canvas = el("canvas", { role: "img", "aria-label": "the heap over time, by function" });
		canvas.draw = () => {
			const top = draw(canvas, list);
			scale.textContent = bytes(top);
		};
		const scale = el("span", { class: "dim scale", title: "the most that was alive of what was allocated here" });
		const grew = h => (h.grew > 0 ? "+" : "") + bytes(h.grew);
		const line = (h, i) => [el("span", { class: "num", title: "alive at the end, of " + bytes(all) }, bytes(h.end)),
			el("span", { class: "num", title: "since the first third of the time" }, grew(h)),
			el("div", {}, el("i", { class: "swatch", style: "background:" + colour(h, i) }), h.name ?
				link(h.name, { view: "sandwich", what: "growth", fn: h.name, range: null }) : el("span", { class: "dim" }, G.model.plural(h.n, "more function")))];
		return [head("The heap over time, by who holds it", "what was allocated since the start, less what was freed"),
			el("div", { class: "holders" }, scale, canvas), el("div", { class: "holding" },
				el("span", { class: "num dim" }, "at the end"), el("span", { class: "num dim" }, "grew by"), el("span"), list.map(line))];
	}

	return { holders, section };
})();
