/*
 * bins.js - samples added up over time: what each thread did, and how much of what is weighed there was when.
 */
G.bins = (function () {
	let lists = null; /* entries that are parts of a thread's time, by its number; of polls, by the type of the task */
	const strips = new Map();
	let heatKey = "", heat = null;

	/* The entries of cpu, wait and queue by thread, those of polls by the name of the leaf: the type of the task. */
	function byOwner() {
		const d = G.data, e = d.entries, out = new Map();
		for (let i = 0; i < e.n; i++) {
			const { role, name } = d.events[e.event[i]];
			const key = role !== "other" ? e.thread[i] : name === "poll" ? d.idents.name[d.tree.ident[e.node[i]]] : null;
			if (key !== null)
				out.has(key) ? out.get(key).push(i) : out.set(key, [i]);
		}
		return out;
	}

	/* Adds value over [begin, end) to the bins of out, which are width long from `from` on. */
	function spread(out, n, stride, offset, from, width, begin, end, value) {
		let i = Math.floor((begin - from) / width), last = Math.floor((end - from) / width);
		if (last < 0 || i >= n)
			return;
		if (i === last) {
			out[i * stride + offset] += value;
			return;
		}
		const rate = value / (end - begin);
		for (i = Math.max(0, i), last = Math.min(n - 1, last); i <= last; i++) {
			const a = from + i * width;
			out[i * stride + offset] += rate * (Math.min(end, a + width) - Math.max(begin, a));
		}
	}

	/*
	 * What a thread did in each of n columns, or how long tasks of a type ("task NAME") were polled: ns by cause, n x causes. A
	 * sample of the clock stands for the period around it; waits and polls that were added up lie at their moment, one after
	 * the other.
	 */
	function strip(owner, from, to, n) {
		const key = owner + ":" + from + ":" + to + ":" + n;
		if (strips.has(key))
			return strips.get(key);
		const d = G.data, e = d.entries, s = d.samples, slot = d.meta.slotNs, width = (to - from) / n;
		const causes = d.causes.length, out = new Float32Array(n * causes);
		const periods = d.events.map(v => v.period);
		const around = d.events.map(v => v.role === "cpu" ? .5 : 0);
		lists = lists || byOwner();
		for (const k of lists.get(owner) || []) {
			const event = e.event[k], cause = e.cause[k], period = periods[event];
			const back = around[event];
			for (let i = e.first[k], last = e.first[k + 1]; i < last; i++) {
				const value = s.value ? s.value[i] : period, span = s.span ? s.span[i] : 0;
				const begin = s.slot[i] * slot - back * value;
				const end = begin + (span ? span * slot : Math.max(value, 1));
				spread(out, n, causes, cause, from, width, begin, end, value);
			}
		}
		if (strips.size > 400)
			strips.clear();
		strips.set(key, out);
		return out;
	}

	/* What is weighed, by slice (columns) and part of it (rows): as the brush would cut it. */
	function weigh(state, side, from, slice, columns, rows) {
		const d = G.data, key = JSON.stringify([state.what, state.threads, state.processes,
			state.causes, state.idle, state.asleep, state.count, state.focus, state.hidden, from, slice,
			columns, rows]);
		if (key !== heatKey) {
			heatKey = key;
			heat = [];
		}
		if (heat[side])
			return heat[side];
		const e = d.entries, s = d.samples, slot = d.meta.slotNs, n = columns * rows;
		const width = slice / rows;
		const cells = new Float64Array(n), f = G.model.filters(state);
		const { drop } = G.model.weights(state), { minus } = G.model.what(state);
		for (let k = 0; s && k < e.n; k++) {
			if (!(f.event[e.event[k]] & f.cause[e.cause[k]] & f.thread[e.thread[k]]))
				continue;
			if (e.event[k] === minus || e.side[k] !== side || drop && drop[e.node[k]])
				continue;
			const period = d.events[e.event[k]].period;
			for (let i = e.first[k]; i < e.first[k + 1]; i++) {
				const span = s.span ? s.span[i] : 0, begin = s.slot[i] * slot;
				const value = state.count ? s.count ? s.count[i] : 1
					: s.value ? s.value[i] : period;
				if (span)
					spread(cells, n, 1, 0, from, width, begin,
						begin + span * slot, value);
				else if (begin >= from && begin < from + n * width)
					cells[Math.floor((begin - from) / width)] += value;
			}
		}
		return heat[side] = cells;
	}

	/* The data have grown. */
	function forget() {
		lists = heat = null;
		heatKey = "";
		strips.clear();
	}

	return { strip, weigh, forget };
})();
