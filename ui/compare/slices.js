/*
 * slices.js - the cost of each function slice by slice of a part of the recording, as src/analyze/diff/slices.c makes it.
 *
 * A side is { spans: [[from, to], ...] in ns, in order and apart; thread: a byte for each thread }. Its spans are joined to one
 * stretch of time, which is cut into slices. A row is a function: its number is its identity's; the last row is the work in
 * interrupts, which belongs to nobody.
 *
 *	const s = G.slices(state, side);
 *	s.rows.get(ident)	// { self: sum, total: sum }, a sum is { value, square, samples, at }
 *	s.slices(wanted).rows	// the same of a set of identities, with at: the value by slice
 */
G.slices = (function () {
	const SLICES = 64, SHORTEST_NS = 2e7, FEWEST = 8;
	const FUNCTIONS = new Set([2, 4, 5]), KERNEL = 4, NOTE = 7; /* of enum ident_kind */
	const INTERRUPT = /^(asm_)?sysvec_|^(asm_common_interrupt|common_interrupt|el0_interrupt|el1_interrupt|el0t_64_irq_handler|el1h_64_irq_handler|do_IRQ|irq_exit_rcu|__irq_exit_rcu)$/;

	/* By slot: how many slots of the side come before it. */
	G.places = function (side) {
		const slot = G.data.meta.slotNs, n = Math.ceil(G.data.meta.durationNs / slot) + 1, before = new Uint32Array(n + 1);
		for (const [from, to] of side.spans)
			before.fill(1, Math.min(n, Math.ceil(from / slot)), Math.min(n, Math.ceil(to / slot)));
		for (let i = 0, sum = 0; i <= n; i++) {
			const is = before[i];
			before[i] = sum;
			sum += is;
		}
		return before;
	};

	const EMPTY = new Float64Array(0), sum = n => ({ value: 0, square: 0, samples: 0, at: n ? new Float64Array(n) : EMPTY });

	function add(to, from) {
		to.value += from.value;
		to.square += from.square;
		to.samples += from.samples;
		for (let i = 0; i < to.at.length; i++)
			to.at[i] += from.at[i];
	}

	function clear(s) {
		s.value = s.square = s.samples = 0;
		if (s.at.length)
			s.at.fill(0);
	}

	/* Adds the samples of an entry that lie in the side to its node's sum. */
	function weigh(to, e, x) {
		const d = G.data, s = d.samples, { period } = d.events[d.entries.event[e]], { before } = x, last = before.length - 1;
		for (let i = d.entries.first[e], end = d.entries.first[e + 1]; i < end; i++) {
			const span = Math.max(1, s.span ? s.span[i] : 1), begin = Math.min(last, s.slot[i]);
			const from = before[begin], till = before[Math.min(last, begin + span)], count = s.count ? s.count[i] : 1;
			if (till === from)
				continue;
			const value = (x.count ? count : s.value ? s.value[i] : period) * (till - from) / span;
			to.value += value;
			to.square += value * value / count;
			to.samples += count;
			if (!to.at.length)
				continue;
			/* A moment is in the middle of its slot; a span is spread over the slices that it touches. */
			const a = (span > 1 ? from : from + .5) / x.length, b = span > 1 ? till / x.length : a;
			const first = Math.min(x.n - 1, Math.floor(a)), final = Math.min(x.n - 1, Math.floor(b));
			for (let k = first; k <= final; k++)
				to.at[k] += first === final ? value
					: value * ((k === final ? b : k + 1) - (k === first ? a : k)) / (b - a);
		}
	}

	/* Sums of all rows (lanes 0), or slices of those that are wanted (lanes: as many as there are slices). */
	function walk(x, lanes, wanted) {
		const { tree: t, idents, entries: e } = G.data, { side, f, drop, interrupts } = x, rows = new Map(), everything = sum(lanes);
		const open = [], pool = [], onPath = new Uint8Array(idents.n + 1), enters = new Int8Array(idents.n).fill(-1);
		const isInterrupt = id => {
			if (enters[id] < 0)
				enters[id] = idents.note[id] === KERNEL && INTERRUPT.test(idents.name[id]) ? 1 : 0;
			return enters[id] === 1;
		};
		const put = (r, part, s) => {
			if (!wanted || wanted.has(r))
				add((rows.get(r) || rows.set(r, { self: sum(lanes), total: sum(lanes) }).get(r))[part], s);
		};

		function leave() {
			const o = open.pop(), up = open[open.length - 1];
			if (o.own.samples) {
				if (o.selfRow >= 0)
					put(o.selfRow, "self", o.own);
				add(o.all, o.own);
				clear(o.own);
			}
			if (o.first)
				onPath[o.row] = 0;
			if (o.all.samples) {
				if (o.first)
					put(o.row, "total", o.all);
				/* Where an interrupt begins, its time is not the caller's. */
				if (up && (!o.inside || up.inside))
					add(up.all, o.all);
				clear(o.all);
			}
			pool.push(o); /* all zeros again */
		}

		/* Nodes and entries are both in preorder. */
		for (let i = 0, k = 0; i < t.n; i++) {
			while (open.length > t.depth[i])
				leave();
			const up = open[open.length - 1], id = t.ident[i], inside = !!up && up.inside || isInterrupt(id);
			const o = pool.pop() || { own: sum(lanes), all: sum(lanes) };
			o.inside = inside;
			o.row = inside ? interrupts : FUNCTIONS.has(idents.note[id]) ? id : -1;
			/* A note at the leaf is no function: its cost is that of the function above it. */
			o.selfRow = idents.note[id] === NOTE && up && !inside ? up.selfRow : o.row;
			o.first = o.row >= 0 && !onPath[o.row];
			if (o.first)
				onPath[o.row] = 1;
			open.push(o);
			for (; k < e.n && e.node[k] === i; k++)
				if (side.thread[e.thread[k]] && f.event[e.event[k]] & f.cause[e.cause[k]] && !(drop && drop[i]))
					weigh(o.own, k, x);
			if (o.own.samples)
				add(everything, o.own);
		}
		while (open.length)
			leave();
		return { rows, everything };
	}

	return function (state, side) {
		const before = G.places(side), slots = before[before.length - 1], interrupts = G.data.idents.n;
		const durationNs = Math.max(1, slots * G.data.meta.slotNs);
		const n = Math.min(SLICES, Math.max(FEWEST, Math.floor(durationNs / SHORTEST_NS)));
		const x = { side, n, length: Math.max(1, slots) / n, before, count: state.count, interrupts, f: G.model.filters(state),
			drop: G.model.weights(state).drop };
		return { n, durationNs, interrupts, ...walk(x, 0, null), slices: wanted => walk(x, n, wanted) };
	};
})();
