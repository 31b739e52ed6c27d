/*
 * slices.js - the cost of each function slice by slice of a part of the recording, as src/analyze/diff/slices.c makes it.
 *
 * A side is { spans: [[from, to], ...] in ns, in order and apart; thread: a byte for each thread }. Its spans are joined to one
 * stretch of time, which is cut into slices. A row is a function: its number is its identity's; the last row is the work in
 * interrupts, which belongs to nobody.
 *
 *	const s = G.slices(state, side);
 *	s.sumOf(s.self, ident)	// or s.total: { value, square, samples }, null = nothing
 *	s.slices(wanted)	// the same of a set of identities, with at: the value by slice
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

	/*
	 * Sums of all rows (lanes 0), or slices of those that are wanted (lanes: as many as there are slices).
	 *
	 * Nodes and entries are both in preorder. Only nodes on the way to an entry with weight are visited: the open ones, from the
	 * root on, are a stack, and what is below each of them is added up when it is left.
	 */
	function walk(x, lanes, wanted) {
		const { tree: t, idents, entries: e, samples: s, events } = G.data, { side, f, drop, interrupts, before } = x, last = before.length - 1;
		const column = () => new Float64Array(idents.n + 1), of = () => ({ value: column(), square: column(), samples: column(), at: new Array(lanes && idents.n + 1) });
		const self = of(), total = of(), everything = { value: 0, square: 0, samples: 0, at: new Float64Array(lanes) };
		const onPath = new Uint8Array(idents.n + 1), enters = new Int8Array(idents.n).fill(-1), chain = [];
		const node = [], value = [], square = [], samples = [], row = [], selfRow = [], inside = [], first = [];
		const at = [], low = [], high = []; /* by slice, and between which of them something is */
		let top = -1;

		const isInterrupt = id => {
			if (enters[id] < 0)
				enters[id] = idents.note[id] === KERNEL && INTERRUPT.test(idents.name[id]) ? 1 : 0;
			return enters[id] === 1;
		};
		const isWanted = new Uint8Array(idents.n + 1);
		for (const r of wanted || [])
			isWanted[r] = 1;
		const slicesOf = (part, r) => lanes && r >= 0 && isWanted[r] ? part.at[r] || (part.at[r] = new Float64Array(lanes)) : null;

		function enter(i) {
			const id = t.ident[i], up = top++, within = up >= 0 && inside[up] || isInterrupt(id);
			const r = within ? interrupts : FUNCTIONS.has(idents.note[id]) ? id : -1;
			node[top] = i;
			value[top] = square[top] = samples[top] = 0;
			inside[top] = within;
			row[top] = r;
			/* A note at the leaf is no function: its cost is that of the function above it. */
			selfRow[top] = idents.note[id] === NOTE && up >= 0 && !within ? selfRow[up] : r;
			first[top] = r >= 0 && !onPath[r];
			if (first[top])
				onPath[r] = 1;
			low[top] = lanes;
			high[top] = -1;
			at[top] = at[top] || new Float64Array(lanes);
		}

		/* To a row, or to an open node. */
		function add(to, r, v, squares, n) {
			to.value[r] += v;
			to.square[r] += squares;
			to.samples[r] += n;
		}
		const open = { value, square, samples };

		function leave() {
			const k = top--, up = top, slices = first[k] && slicesOf(total, row[k]), own = at[k];
			if (first[k]) {
				onPath[row[k]] = 0;
				add(total, row[k], value[k], square[k], samples[k]);
				for (let j = low[k]; slices && j <= high[k]; j++)
					slices[j] += own[j];
			}
			/* Where an interrupt begins, its time is not the caller's. */
			const passes = up >= 0 && (!inside[k] || inside[up]);
			if (lanes && passes && !samples[up]) { /* the first below it: what it has is the whole so far */
				at[k] = at[up];
				at[up] = own;
				low[up] = low[k];
				high[up] = high[k];
				high[k] = -1;
			}
			for (let j = low[k]; j <= high[k]; j++) {
				if (passes)
					at[up][j] += own[j];
				own[j] = 0;
			}
			if (!passes)
				return;
			low[up] = Math.min(low[up], low[k]);
			high[up] = Math.max(high[up], high[k]);
			add(open, up, value[k], square[k], samples[k]);
		}

		/* Opens the nodes from the open ones down to i. */
		function reach(i) {
			while (top >= 0 && node[top] + t.size[node[top]] <= i)
				leave();
			for (let p = i; top < 0 || p !== node[top]; p = t.parent[p]) {
				chain.push(p);
				if (!p)
					break;
			}
			while (chain.length)
				enter(chain.pop());
		}

		/* A moment is in the middle of its slot; a span is spread over the slices that it touches. */
		function cut(from, till, span, v, slices) {
			const a = (span > 1 ? from : from + .5) / x.length, b = span > 1 ? till / x.length : a;
			const begin = Math.min(x.n - 1, Math.floor(a)), end = Math.min(x.n - 1, Math.floor(b));
			low[top] = Math.min(low[top], begin);
			high[top] = Math.max(high[top], end);
			for (let k = begin; k <= end; k++) {
				const part = begin === end ? v : v * ((k === end ? b : k + 1) - (k === begin ? a : k)) / (b - a);
				at[top][k] += part;
				everything.at[k] += part;
				if (slices)
					slices[k] += part;
			}
		}

		for (let k = 0; k < e.n; k++) {
			const i = e.node[k];
			if (!(side.thread[e.thread[k]] && f.event[e.event[k]] & f.cause[e.cause[k]]) || drop && drop[i])
				continue;
			const { period } = events[e.event[k]], end = e.first[k + 1];
			let sum = 0, squares = 0, n = 0, slices = null;
			for (let j = e.first[k]; j < end; j++) {
				const span = Math.max(1, s.span ? s.span[j] : 1), begin = Math.min(last, s.slot[j]);
				const from = before[begin], till = before[Math.min(last, begin + span)];
				if (till === from)
					continue;
				const count = s.count ? s.count[j] : 1, v = (x.count ? count : s.value ? s.value[j] : period) * (till - from) / span;
				if (!n && lanes) {
					reach(i);
					slices = slicesOf(self, selfRow[top]);
				}
				sum += v;
				squares += v * v / count;
				n += count;
				if (lanes)
					cut(from, till, span, v, slices);
			}
			if (!n)
				continue;
			if (!lanes)
				reach(i);
			add(open, top, sum, squares, n);
			everything.value += sum;
			everything.square += squares;
			everything.samples += n;
			if (selfRow[top] >= 0)
				add(self, selfRow[top], sum, squares, n);
		}
		while (top >= 0)
			leave();
		return { self, total, everything };
	}

	/* The sum of a row; null where the side has nothing of it. */
	const sumOf = (part, r) => part.samples[r] ? { value: part.value[r], square: part.square[r], samples: part.samples[r], at: part.at[r] } : null;

	return function (state, side) {
		const before = G.places(side), slots = before[before.length - 1], interrupts = G.data.idents.n;
		const durationNs = Math.max(1, slots * G.data.meta.slotNs);
		const n = Math.min(SLICES, Math.max(FEWEST, Math.floor(durationNs / SHORTEST_NS)));
		const x = { side, n, length: Math.max(1, slots) / n, before, count: state.count, interrupts, f: G.model.filters(state),
			drop: G.model.weights(state).drop };
		return { n, durationNs, interrupts, sumOf, ...walk(x, 0, null), slices: wanted => walk(x, n, wanted) };
	};
})();
