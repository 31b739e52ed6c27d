/*
 * compare.js - a part of the recording against another one, with the statistics of src/analyze/diff/diff.c: which functions
 * take more or less there, and how sure that is. docs/decisions/0007-diff.md says why it is done so.
 *
 *	const d = G.compare.make(state, a, b);	// as G.data.diff, and names, verdict; a and b are sides of slices.js
 */
G.compare = (function () {
	const ENOUGH = 20, ANCHOR = 50, ANCHORS = 6, FALSE_DISCOVERIES = .01, INTERVAL = .05, NEGLIGIBLE = .05, LEAF = .01;
	const NEGLIGIBLE_ALL = .001, NOISE_CPU = .01, NOISE_OTHER = .1, NAMED = 3;
	const { stats } = G, none = { value: 0, square: 0, samples: 0 }, square = x => x * x;

	/* A smaller change may be real, but is not worth showing. */
	const negligible = (delta, a, b, whole) => Math.abs(delta) < NEGLIGIBLE * Math.max(a, b) ||
		Math.abs(delta) < NEGLIGIBLE_ALL * whole;

	/* What has too few samples to be tested: most functions. Their intervals are computed where somebody looks. */
	class Untested {
		constructor(id, total, full) {
			this.id = id;
			this.total = total;
			this.full = full;
		}
		get low() { return this.full(this.id, this.total).low; }
		get high() { return this.full(this.id, this.total).high; }
	}
	Object.assign(Untested.prototype, { a: 0, b: 0, delta: 0, q: 1, p: 1, significant: false, tested: false });

	/* The work: both sides, what values are divided by, and which rows changed. */
	function Work(state, a, b) {
		const side = [G.slices(state, a), G.slices(state, b)], { interrupts } = side[0];
		const everything = side.map(s => s.everything.value), whole = [0, 0], wholeAt = side.map(s => new Float64Array(s.n));
		const cpu = G.model.what(state).events.every(i => G.data.events[i].role === "cpu");
		const noise = cpu ? NOISE_CPU : NOISE_OTHER, both = everything[0] > 0 && everything[1] > 0;
		const ids = [...side[0].total.samples.keys()].filter(id => side.some(s => s.total.samples[id] || s.self.samples[id]));
		const of = (i, total) => total ? side[i].total : side[i].self;
		const samples = (id, total) => of(0, total).samples[id] + of(1, total).samples[id];
		const picked = new Set(ids.filter(id => both && (samples(id, true) >= ENOUGH || id === interrupts)));
		const anchors = ids.filter(id => id !== interrupts && picked.has(id) && samples(id, false) >= ANCHOR);
		const sliced = side.map(s => s.slices(picked)), atOf = (i, id, part) => side[i].sumOf(sliced[i][part], id);
		let changed = new Set();

		/* Takes the changed functions out of what values are divided by. */
		function setWhole(now) {
			changed = now;
			side.forEach((s, i) => {
				whole[i] = everything[i];
				wholeAt[i].set(sliced[i].everything.at);
				for (const id of changed) {
					const self = atOf(i, id, "self");
					for (let k = 0; self && k < s.n; k++)
						wholeAt[i][k] -= self.at[k];
					whole[i] -= self ? self.value : 0;
				}
			});
		}

		function sliceSpread(i, id, total) {
			const s = side[i], residual = new Float64Array(s.n), sum = atOf(i, id, total ? "total" : "self") || none, share = sum.value / whole[i];
			for (let k = 0; k < s.n; k++)
				residual[k] = ((sum.at ? sum.at[k] : 0) - share * wholeAt[i][k]) / whole[i];
			return stats.sumSpread(residual);
		}

		/* What sampling alone makes, with the rate that both sides have together. */
		function samplingVariance(i, id, total) {
			const [x, y] = [of(0, total), of(1, total)], value = x.value[id] + y.value[id], squares = x.square[id] + y.square[id];
			if (!(value > 0))
				return 0;
			const share = value / (everything[0] + everything[1]), own = squares / value * share * everything[i];
			return (square(1 - share) * own + square(share) * Math.max(0, side[i].everything.square - own)) / square(whole[i]);
		}

		function rate(i, id, total) {
			if (!(whole[i] > 0))
				return { value: 0, variance: 0, df: 0 };
			const least = samplingVariance(i, id, total), value = of(i, total).value[id] / whole[i];
			const s = picked.has(id) ? sliceSpread(i, id, total) : { variance: 0, df: 0 };
			return s.variance > least ? { value, ...s } : { value, variance: least, df: Infinity };
		}

		/* unit: what rates are multiplied by for people; scale: b's for the test. untested: nobody asks for p, which takes time. */
		function compare(x, y, scale, unit, untested) {
			const parts = [x, { variance: y.variance * scale * scale, df: y.df },
				{ variance: square(noise * x.value) + square(noise * y.value * scale), df: Infinity }];
			const error = Math.sqrt(parts.reduce((v, p) => v + p.variance, 0)), df = stats.sumDf(parts);
			const a = x.value * unit, b = y.value * unit, delta = b * scale - a, half = stats.tBound(INTERVAL, df) * error * unit;
			return { a, b, delta, low: delta - half, high: delta + half, q: 1, significant: false,
				p: error > 0 && !untested ? stats.tP(delta / (unit * error), df) : 1 };
		}

		/* The functions that changed by their self time, if b is scaled so. */
		function findChanged(scale) {
			const p = anchors.map(id => {
				const v = compare(rate(0, id, false), rate(1, id, false), scale, 1);
				return negligible(v.delta, v.a, v.b * scale, 1) ? 1 : v.p;
			});
			const q = stats.adjust(p);
			return anchors.filter((id, i) => q[i] <= FALSE_DISCOVERIES);
		}

		/* From a first guess of the scale to what stays the same. Returns how many changed, Infinity: too many. */
		function settle(guess) {
			setWhole(new Set([interrupts]));
			let scale = guess * (whole[1] / everything[1]) / (whole[0] / everything[0]), found = [];
			for (let round = 0; round < 8; round++) {
				found = findChanged(scale);
				if (found.length > Math.floor(anchors.length / 2))
					return Infinity;
				const next = new Set([interrupts, ...found]);
				if (round && next.size === changed.size && found.every(id => changed.has(id)))
					break;
				setWhole(next);
				scale = 1;
			}
			return found.length;
		}

		/* Where a few functions explain all differences, the others tell how much work was done. */
		function findScale() {
			const logs = anchors.map(id => side.map(s => s.self.value[id])).filter(([x, y]) => x > 0 && y > 0)
				.map(([x, y]) => Math.log(y / everything[1]) - Math.log(x / everything[0]));
			const guess = Math.exp(-stats.median(logs)), many = logs.length >= ANCHORS;
			let plain = settle(1), common = Infinity;
			if (plain > 1 && many) {
				common = settle(guess);
				if (plain <= common)
					plain = settle(1);
			}
			const scaled = many && (plain < Infinity || common < Infinity);
			if (!scaled)
				setWhole(new Set([interrupts]));
			return { scaled, scale: whole[0] > 0 && whole[1] > 0 ?
				whole[0] / everything[0] / (whole[1] / everything[1]) : 1 };
		}

		/* Values per second. */
		function compareWhole() {
			const [x, y] = side.map((s, i) => {
				const value = s.everything.value / s.durationNs, least = s.everything.square / square(s.durationNs);
				const of = stats.sumSpread(sliced[i].everything.at.map(v => (v - s.everything.value / s.n) / s.durationNs));
				return of.variance > least ? { value, ...of } : { value, variance: least, df: Infinity };
			});
			const v = compare(x, y, 1, 1e9), tested = side[0].everything.samples + side[1].everything.samples >= ENOUGH;
			v.q = tested ? v.p : 1;
			v.significant = v.q <= FALSE_DISCOVERIES && !negligible(v.delta, v.a, v.b, 0);
			return v;
		}

		setWhole(new Set());
		const all = compareWhole(), found = both ? findScale() : { scaled: false, scale: 1 };
		const unit = both ? 100 * whole[0] / everything[0] : 100;
		const full = (id, total, tested) => compare(rate(0, id, total), rate(1, id, total), 1, unit, !tested);
		const share = (i, id, total) => whole[i] > 0 ? of(i, total).value[id] / whole[i] * unit : 0;
		const value = (id, total) => {
			const tested = picked.has(id) && (total || samples(id, false) >= ENOUGH), v = tested ? full(id, total, true) : new Untested(id, total, full);
			v.a = share(0, id, total);
			v.b = share(1, id, total) / found.scale;
			v.delta = v.b * found.scale - v.a;
			v.tested = tested;
			return v;
		};
		const rows = ids.filter(id => id !== interrupts).map(id => ({ ident: id, self: value(id, false), total: value(id, true),
			onlyA: !of(1, true).samples[id], onlyB: !of(0, true).samples[id] }));
		return { rows, all, ...found, samples: side.map(s => s.everything.samples) };
	}

	/* Does it call so little that its total is its self? Then it is one question, not two. */
	const isLeaf = ({ self, total }) => self.tested && total.a - self.a <= LEAF * total.a &&
		total.b - self.b <= LEAF * total.b;

	function judge(w) {
		const asked = [];
		for (const r of w.rows) {
			if (r.self.tested)
				asked.push(r.self);
			if (r.total.tested && !isLeaf(r))
				asked.push(r.total);
		}
		const q = stats.adjust(asked.map(v => v.p));
		asked.forEach((v, i) => v.q = q[i]);
		for (const r of w.rows)
			for (const v of [r.self, r.total]) {
				if (v.tested && v === r.total && isLeaf(r))
					v.q = r.self.q;
				if (v.tested)
					v.significant = v.q <= FALSE_DISCOVERIES && !negligible(v.delta, v.a, v.b * w.scale, 100);
			}
	}

	const number = x => x.toFixed(Math.abs(x) < 99.95 ? 1 : 0), name = r => "`" + G.data.idents.name[r.ident] + "`";

	/* "`f` takes 20.3 % more (self, 95 %: 18.1 to 22.6)" */
	function change(r, part, verb) {
		const v = r[part], percent = x => 100 * x / v.a, less = v.delta < 0;
		if (r.onlyA || r.onlyB)
			return name(r) + (verb ? " is" : "") + (r.onlyA ? " not there" : " only there");
		if (!(v.a > 0))
			return name(r) + " has time of its own there";
		return name(r) + (verb ? " takes " : " ") + number(Math.abs(percent(v.delta))) + (less ? " % less (" : " % more (") + part +
			", 95 %: " + number(percent(less ? -v.high : v.low)) + " to " +
			number(less ? Math.min(percent(-v.low), 100) : percent(v.high)) + ")";
	}

	function list(rows, part) {
		const of = rows.filter(r => r[part].significant).sort((x, y) => Math.abs(y[part].delta) - Math.abs(x[part].delta));
		return { n: of.length, text: of.slice(0, NAMED).map(r => change(r, part, of.length === 1)).join(", ") +
			(of.length > NAMED ? " and " + (of.length - NAMED) + " more" : "") };
	}

	/* Nothing differs: the change of the largest function that would have shown. */
	function blindness(rows) {
		const r = rows.filter(x => x.self.tested).reduce((x, y) => x && x.self.a >= y.self.a ? x : y, null);
		const half = r && r.self.a > 0 ? Math.max(5, 100 * (r.self.high - r.self.low) / r.self.a) : Infinity;
		return half > 1000 ? "" : "; a change of about " + half.toFixed(half < 9.95 ? 1 : 0) + " % of " + name(r) + " would have shown";
	}

	/* The sentences of src/export/diff/diffverdict.c, for a part of one recording. */
	function verdict(w) {
		const self = list(w.rows, "self"), total = list(w.rows, "total"), [a, b] = w.samples;
		if (!a || !b)
			return "Nothing to compare: there are no samples " + (a ? "in what was chosen" : "in what it is compared with");
		if (!w.rows.some(r => r.self.tested || r.total.tested))
			return "Too few samples to tell anything: " + G.model.plural(b, "sample") + " against " + G.model.format(a, "count");
		if (!self.n && !total.n)
			return "Nothing differs beyond noise" + blindness(w.rows);
		const text = self.n > 1 ? self.n + " functions differ: " + self.text : self.n ? self.text + (total.n > 1 ?
			"; of the others only totals differ" : ", nothing else differs")
			: "No function's own time differs, but with what they call: " + total.text;
		return text + (w.scaled && Math.abs(w.scale - 1) >= .005 ? ". At equal work the whole takes " +
			number(Math.abs(100 * (w.scale - 1))) + " % " + (w.scale > 1 ? "more" : "less") : "");
	}

	/* b against a, as G.data.diff is; verdict: a sentence. */
	function make(state, a, b) {
		const w = Work(state, a, b);
		judge(w);
		return { normalized: true, unit: "%", timeless: false, verdict: verdict(w), ...w };
	}

	return { make };
})();
