/*
 * tracks.js - what the time area and the overview share: the order and names of threads, the order of causes,
 * series as curves, the page's colours for canvases.
 */
Object.assign(G, (function () {
	let palette = null;

	function colours() {
		const root = document.documentElement, { theme } = root.dataset;
		if (!palette || palette.theme !== theme) {
			const css = getComputedStyle(root);
			palette = { theme };
			for (const k of ["text", "dim", "line", "panel", "accent", "shade", "mark"])
				palette[k] = css.getPropertyValue("--" + k).trim();
		}
		return palette;
	}

	/* Time at work or kept from it; of conditions, pipes and sockets half: some is waiting for work. */
	function worth(sums) {
		const factor = { unknown: 0, idle: 0, sleep: 0, park: .5, pipe: .5, network: .5 };
		return sums.reduce((all, v, i) => all + v * (factor[G.data.causes[i].key] ?? 1), 0);
	}

	/* Those that were seen, the busiest first; of two recordings, threads of one name stand together.
	   Its .causes: what they did at all, a flag for each cause. */
	function threadOrder() {
		const d = G.data, e = d.entries, sums = d.threads.map(() => d.causes.map(() => 0)), seen = [];
		const both = new Map();
		for (let i = 0; i < e.n; i++) {
			seen[e.thread[i]] = true;
			if (d.events[e.event[i]].role !== "other")
				sums[e.thread[i]][e.cause[i]] += e.value[i];
		}
		const value = sums.map(worth), name = i => d.threads[i].name;
		value.forEach((v, i) => both.set(name(i), (both.get(name(i)) || 0) + v));
		const pair = (a, b) => d.meta.sides < 2 || name(a) === name(b) ? 0
			: both.get(name(b)) - both.get(name(a)) || (name(a) < name(b) ? -1 : 1);
		const list = [...value.keys()].filter(i => seen[i]).sort((a, b) => pair(a, b) ||
			value[b] - value[a] || a - b);
		list.causes = d.causes.map((c, k) => sums.some(of => of[k] > 0));
		return list;
	}

	/* Kinds of marks: blocks, long polls of tasks, then those with the most time. A node that traces itself has dozens. */
	function markKinds() {
		const sums = new Map();
		for (const m of G.data.marks)
			sums.set(m.kind, (sums.get(m.kind) || 0) + m.endNs - m.startNs);
		const rank = kind => ["long poll", "block"].indexOf(kind);
		return [...sums.keys()].sort((a, b) => rank(b) - rank(a) || sums.get(b) - sums.get(a));
	}

	/* Is there another thread of that name? */
	function twice(thread) {
		const t = G.data.threads[thread];
		return G.data.threads.some((o, i) => i !== thread && o.name === t.name && o.side === t.side);
	}
	/* How the state names a thread: by its name where that is enough. */
	const handle = thread => G.data.threads[thread][twice(thread) ? "tid" : "name"];

	/* On the CPU first, what is asleep last. */
	function stacking() {
		const { causes } = G.data, last = ["sleep", "unknown", "idle"];
		const rank = i => causes[i].key === "cpu" ? -1 : last.indexOf(causes[i].key) + 1;
		return [...causes.keys()].sort((a, b) => rank(a) - rank(b) || a - b);
	}

	/* Amounts since the point before, as how many there were at a time; polls: a second. */
	const RATES = [["task.queue", 1], ["task.busy", 1], ["task.polls", 1e9]];
	/* Microseconds are what something grew by since the point before: a share of that time. */
	function curve({ t, v, unit, name }) {
		const share = unit === "us", rate = share ? 1e5 : new Map(RATES).get(name);
		const out = { name, unit: share ? "%" : rate ? "count" : unit, t: Array.from(t), v: Array.from(v) };
		if (rate) {
			out.v = out.v.map((x, i) => x * rate / Math.max(1, t[i] - (i ? t[i - 1] : 0)));
			if (t[0] < (t[1] - t[0]) / 2) /* since when is not known so well */
				out.v[0] = out.v[1];
		}
		if (share) {
			out.t.unshift(0);
			out.v.unshift(out.v[0]);
		}
		out.low = out.v.reduce((a, b) => Math.min(a, b));
		out.high = out.v.reduce((a, b) => Math.max(a, b));
		/* Of bytes the whole counts: a curve that begins at its lowest point would make little look like much. */
		out.base = unit === "bytes" ? Math.min(0, out.low) : out.low;
		return out;
	}
	/* What recording cost is one curve, from 0 on; its parts, and what was thinned, are for the pointer. */
	const OWN = /^(cost|thin)\./;
	function costCurve() {
		const of = G.data.series.filter(s => OWN.test(s.name)), total = of.find(s => s.name === "cost.total");
		if (!total || !total.t.length)
			return [];
		const out = { name: "Cost of recording", unit: "%", t: [0, ...total.t], low: 0 };
		out.v = [...total.v].map(v => v / 1e4);
		out.v.unshift(out.v[0]);
		out.high = out.v.reduce((a, b) => Math.max(a, b));
		out.say = t => of.filter(s => s !== total).map(s => {
			const [kind, who] = s.name.split("."), cost = kind === "cost", at = s.t.findIndex(x => cost ? x >= t : x > t);
			const v = s.v[(at < 0 ? s.t.length : at) - (cost && at >= 0 ? 0 : 1)];
			return cost ? v && who + " " + quantity(v / 1e4, "%") : v > 1 && who + ": 1 in " + v;
		}).filter(Boolean).join(", ");
		return out.high > 0 ? [out] : [];
	}
	/* Heap and RSS, where they were recorded, are what the others explain. */
	const FIRST = ["heap.live", "mem.rss", "heap.allocated", "heap.resident"];
	const place = c => (FIRST.indexOf(c.name) + FIRST.length + 1) % (FIRST.length + 1);
	const PRESSURE = /^pressure\./;
	/* Those that say something: a series that never changes does not, nor does a pressure of less than 1 %. */
	const curves = () => G.data.series.filter(c => c.t.length > 1 && !OWN.test(c.name)).map(curve)
		.filter(c => c.high > c.low && !(PRESSURE.test(c.name) && c.high < 1)).sort((a, b) => place(a) - place(b)).concat(costCurve());
	const quantity = (v, unit) => unit === "%" ? G.model.percent(v / 100) : G.model.format(v, unit);
	const extent = c => quantity(c.low, c.unit) + " … " + quantity(c.high, c.unit);

	/* In the box from y on, h high. */
	function drawCurve(ctx, c, x, y, h) {
		const low = c.base ?? c.low, up = v => y + h - 3 - (v - low) / (c.high - low) * (h - 6);
		ctx.beginPath();
		c.t.forEach((t, i) => {
			if (i && c.unit === "%")
				ctx.lineTo(x(c.t[i - 1]), up(c.v[i]));
			ctx.lineTo(x(t), up(c.v[i]));
		});
		ctx.strokeStyle = ctx.fillStyle = colours().accent;
		ctx.lineWidth = 1.25;
		ctx.stroke();
		ctx.lineTo(x(c.t[c.t.length - 1]), y + h);
		ctx.lineTo(x(c.t[0]), y + h);
		ctx.globalAlpha = .18;
		ctx.fill();
		ctx.globalAlpha = 1;
	}

	return { colours, worth, threadOrder, markKinds, twice, handle, stacking, curves, quantity, extent, drawCurve };
})());
