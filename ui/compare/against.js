/*
 * against.js - what is compared with what on one page: state.against is "" (nothing), "rest" (what was chosen with everything
 * else), "typical" (the chosen block, or all slow ones, with typical blocks) or "FROM-TO" in ns (with another range).
 *
 * What was chosen is the second side, as the later recording of a diff is.
 */
Object.assign(G, (function () {
	Object.assign(G.state.defaults, { against: "" });
	let kept = { key: null }, compared = { key: null }, last = {};

	const span = r => [r.startNs, r.startNs + r.wallNs];
	const slow = () => G.blocks().filter(r => r.reason), typical = () => G.blocks().filter(r => r.typical);
	const seconds = ([from, to]) => G.range(from, to);

	/* A block by the range that it is; null: the range is something else. */
	function blockOf(range) {
		return range && G.blocks().find(r => r.startNs === range[0] && r.startNs + r.wallNs === range[1]) || null;
	}

	/* "block 976 · 31.6 ms", or "12.3–14.0 s". */
	function rangeName(range) {
		const b = blockOf(range);
		return b ? G.blockName(b) + " · " + G.model.format(b.wallNs, "ns") : seconds(range);
	}

	function other(text) {
		const m = /^(\d{1,15})-(\d{1,15})$/.exec(text), range = m && [+m[1], +m[2]];
		return range && range[0] < range[1] ? range : null;
	}

	function ofTime(s, thread) {
		const { durationNs } = G.data.meta, { range } = s, far = other(s.against);
		const side = (spans, name) => ({ spans, thread, name });
		if (s.against === "typical" && typical().length && (range || slow().length)) {
			const here = range ? [range] : slow().map(span);
			const free = typical().filter(r => !range || r.startNs >= range[1] || r.startNs + r.wallNs <= range[0]);
			return [side(free.map(span), G.model.plural(free.length, "typical block")),
				side(here, range ? rangeName(range) : G.model.plural(here.length, "slow block"))];
		}
		if (far)
			return [side([far], rangeName(far)), side(range ? [range] : [[0, far[0]], [far[1], durationNs]],
				range ? rangeName(range) : "the rest of the time")];
		return range ? [side([[0, range[0]], [range[1], durationNs]], "the rest of the time"),
			side([range], rangeName(range))] : null;
	}

	function find(s) {
		const f = G.model.filters(s).thread, all = G.model.filters({ ...s, threads: null, processes: null }).thread;
		const times = ofTime(s, f), whole = [[0, G.data.meta.durationNs]];
		if (times || !(s.threads || s.processes))
			return times;
		return [{ spans: whole, thread: all.map((x, i) => x & !f[i]), name: "all other threads" },
			{ spans: whole, thread: f, name: "the chosen threads" }];
	}

	/* [elsewhere, here] as sides of slices.js with a name; null: nothing is compared. */
	function sides(s) {
		if (!s.against || G.data.meta.sides > 1 || !G.data.samples || G.model.what(s).minus !== undefined)
			return null;
		const key = JSON.stringify([s.against, s.range, s.threads, s.processes, G.data.tree.n]);
		if (kept.key !== key)
			kept = { key, sides: find(s) };
		return kept.sides;
	}

	/* What of each entry lies in a side. */
	function inSide(s, side) {
		const { entries: e, samples, events } = G.data, f = G.model.filters({ ...s, threads: null, processes: null });
		const before = G.places(side), last = before.length - 1, out = new Float64Array(e.n);
		for (let k = 0; k < e.n; k++) {
			if (!(side.thread[e.thread[k]] && f.event[e.event[k]] & f.cause[e.cause[k]]))
				continue;
			const { period } = events[e.event[k]];
			for (let i = e.first[k]; i < e.first[k + 1]; i++) {
				const length = Math.max(1, samples.span ? samples.span[i] : 1), at = Math.min(last, samples.slot[i]);
				const part = (before[Math.min(last, at + length)] - before[at]) / length;
				if (part)
					out[k] += s.count ? samples.count ? samples.count[i] : 1
						: part * (samples.value ? samples.value[i] : period);
			}
		}
		return out;
	}

	/* The sides of a state compared; of two recordings that is done. */
	function compareSides(s) {
		const of = sides(s);
		if (!of)
			return G.data.diff;
		const key = JSON.stringify([kept.key, ...G.model.parts.map(k => s[k])]);
		if (compared.key !== key)
			compared = { key, diff: { names: of.map(x => x.name), ...G.compare.make(s, ...of) } };
		return compared.diff;
	}

	/* The comparison that a state shows: of two recordings, or of two parts of one; null: none. */
	function diffOf(s) {
		/* The colour of each box asks. */
		if (last.s !== s || last.data !== G.data)
			last = { s, data: G.data, diff: compareSides(s) };
		return last.diff;
	}

	/* Nothing is chosen any more: the next range is to be looked at, not compared. */
	G.state.on(s => s.against && s.view !== "diff" && !sides(s) && G.state.set({ against: "" }, { replace: true }));

	/* The names of both sides, for columns and for sentences. */
	const sideWords = s => sides(s) ? ["elsewhere", "here"] : ["before", "after"];

	return { sides, inSide, diffOf, sideWords, blockOf, rangeName, otherRange: other, slowBlocks: slow,
		hasTwo: s => G.data.meta.sides > 1 || !!sides(s),
		blocks: () => (G.data.blocks || { rows: [] }).rows,
		blockName: b => b.number === undefined ? b.name : "block " + b.number };
})());
