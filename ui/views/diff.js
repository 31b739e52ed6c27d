/*
 * diff.js - two recordings, function by function: before, after, the change and how sure it is.
 *
 * The figures and their intervals are the recorder's (src/analyze/diff/diff.h), either of shares or of values a
 * second. The other one is derived from it by the wholes; what is significant stays what was computed.
 */
(function () {
	Object.assign(G.state.defaults, { diffsort: "Δ self", diffdown: true, sure: false });
	let root, grid, filter, head, sure, modes, rows = [], absolute = false, largest = {};

	const diff = () => G.data.diff;
	const name = r => G.data.idents.name[r.ident];
	const module = r => G.data.modules[G.data.idents.module[r.ident]].replace(/.*\//, "");
	const significant = r => r.self.significant || r.total.significant;

	/* v as shares (percent) or per second, whichever is asked for and was not computed. */
	function convert(v) {
		const { normalized, all } = diff(), mean = (all.a + all.b) / 2 || 1;
		if (absolute === !normalized)
			return v;
		const part = (x, whole) => normalized ? x / 100 * whole : whole ? x / whole * 100 : 0;
		const a = part(v.a, all.a), b = part(v.b, all.b), delta = b - a;
		const half = part((v.high - v.low) / 2, mean);
		/* To the noise of the one comes that of the whole. */
		const share = normalized ? (v.a + v.b) / 200 : (v.a + v.b) / 2 / mean;
		const noise = Math.hypot(half, share * (all.high - all.low) / (normalized ? 2 : mean / 50));
		return { ...v, a, b, delta, low: delta - noise, high: delta + noise };
	}

	const rate = v => G.model.format(v, G.model.unit(G.state.first)) + (diff().timeless ? "" : "/s");
	const amount = v => absolute ? rate(v) : G.model.percent(v / 100);
	/* Of what it was before. */
	function relative(v, x) {
		const part = Math.abs(x / v.a) < 5e-5 ? 0 : x / v.a; /* what is less has no sign */
		return v.a ? (part > 0 ? "+" : "") + G.model.percent(part) : "–";
	}
	const range = v => v.a && v.high > v.low ? relative(v, Math.max(v.low, -v.a)) + " … " +
		relative(v, v.high) : "";
	const changed = (r, v) => r.onlyA ? "gone" : r.onlyB ? "new" : !v.a && v.b ? "from 0"
		: relative(v, v.delta);

	/* A change of the whole: points of a share, or a value a second. */
	const points = d => (d > 0 ? "+" : d < 0 ? "−" : "") + (absolute ? rate(Math.abs(d))
		: Math.abs(d).toFixed(Math.abs(d) < 10 ? 2 : 1) + " pts");
	const ofWhole = part => part + (absolute ? ", a second" : ", share of the whole");

	/* Before, after and change of self or total: of the whole, from the centre line on, and of what it was. */
	function three(part) {
		const v = i => rows[i][part], size = i => Math.abs(v(i).delta), sure = i => v(i).significant ? "sure" : "unsure";
		return [
			{ key: part + " before", title: part + " before", width: 94, extra: true, value: i => v(i).a, tip: () => ofWhole(part) + ", before",
				text: i => rows[i].onlyB ? "–" : amount(v(i).a) },
			{ key: part + " after", title: "after", about: part + " after", width: 76, extra: true, tip: () => ofWhole(part) + ", after",
				value: i => v(i).b, text: i => rows[i].onlyA ? "–" : amount(v(i).b) },
			{ key: "Δ " + part, title: "Δ of all", width: 118, signed: true,
				about: "by how much of the whole, at equal work: less to the left, more to the right; bold: significant",
				value: i => size(i) + (v(i).significant ? 2 * largest[part] : 0),
				text: i => points(v(i).delta),
				bar: i => v(i).delta / (largest[part] || 1), className: sure },
			{ key: "relative " + part, title: "of before", width: 76, extra: true, about: "the change, as a share of what it was before",
				value: i => v(i).a ? v(i).delta / v(i).a : Infinity, text: i => changed(rows[i], v(i)), className: sure }];
	}
	function columns() {
		const self = i => rows[i].self, called = i => name(rows[i]);
		return [...three("self"),
			{ key: "interval", title: "95 %", width: 138, extra: true, text: i => range(self(i)),
				about: "with 95 % certainty the change of self is between these",
				value: i => (self(i).high - self(i).low) / (self(i).a || Infinity),
				className: i => self(i).significant ? "" : "unsure" },
			...three("total"),
			{ key: "name", title: "function", left: true, className: () => "name", value: called,
				text: called, fit: true }];
	}

	function say(i) {
		const r = rows[i];
		const sureness = v => v.significant ? "significant (q = " + v.q.toPrecision(2) + ")"
			: "within the noise";
		const part = k => k + " " + amount(r[k].a) + " → " + amount(r[k].b) + ", " + sureness(r[k]) +
			(range(r[k]) ? ", 95 %: " + range(r[k]) : "");
		if (r)
			G.status([name(r), part("self"), part("total"), module(r)].join(" · "));
	}

	/* computed: of the changes as they were computed, not of those derived from them. */
	function sentence(computed) {
		const { all, scale: k } = diff();
		const whole = "the whole: " + rate(all.a) + " → " + rate(all.b) +
			(all.significant ? " (" + relative(all, all.delta) + ")" : ", within the noise");
		const work = "changes are at equal work (after × " + k.toFixed(3) + ")";
		const scaled = Math.abs(k - 1) > .0005 ? work : "";
		return [whole, computed ? scaled : "intervals are derived"].filter(Boolean).join(" · ");
	}

	/* The significant ones as sentences, for the overview. */
	G.changes = function (n) {
		const list = diff().rows.filter(r => r.self.significant);
		list.sort((a, b) => Math.abs(b.self.delta) - Math.abs(a.self.delta));
		return { sentence: sentence(true),
			list: list.slice(0, n).map(r => ({ name: name(r), text: changed(r, r.self) })) };
	};

	function show(state) {
		const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
		const has = r => words.every(w => (name(r) + "\n" + module(r)).toLowerCase().includes(w));
		absolute = !state.normalized;
		rows = diff().rows.map(r => ({ ...r, self: convert(r.self), total: convert(r.total) }));
		for (const part of ["self", "total"])
			largest[part] = rows.reduce((m, r) => Math.max(m, Math.abs(r[part].delta)), 0);
		const ids = [...rows.keys()].filter(i => (!state.sure || significant(rows[i])) &&
			has(rows[i]));
		grid.show(ids, state.diffsort, state.diffdown, state.sure && !words.length ?
			"No change is larger than the noise. Press q to see all rows."
			: "No row fits the filter.");
	}

	function init(element) {
		const mode = (on, text, title) => G.el("button",
			{ title, onclick: () => G.state.set({ normalized: on }) }, text);
		root = element;
		root.classList.add("grid-view");
		if (!diff()) {
			root.append(G.el("p", { class: "empty" }, "This page has one recording. ",
				G.el("code", {}, "gasflame diff BEFORE AFTER"),
				" makes one that compares two."));
			return;
		}
		/* What was computed is shown first. */
		G.state.first.normalized = diff().normalized;
		if (!/\bnormalized=/.test(location.hash))
			G.state.set({ normalized: diff().normalized }, { replace: true });
		head = G.el("span", { class: "note" });
		modes = [mode(true, "share", "shares of what is weighed (y)"),
			diff().timeless ? mode(false, "counts", "the counts as they are (y)")
				: mode(false, "per second", "values for each second of the recordings (y)")];
		sure = G.el("button", { title: "leave out what is within the noise (q)",
			onclick: () => G.state.set({ sure: !G.state.now.sure }) }, "significant only");
		filter = G.filterBox(() => grid);
		const values = (k, v) => [k, amount(v.a) + " → " + amount(v.b), v.significant ? "significant" : "within the noise"];
		grid = G.grid({ label: "changes", columns: columns(), hover: say, actions: i => G.functionActions(name(rows[i])),
			tip: i => G.tipOf(name(rows[i]), module(rows[i]), ["self", "total"].map(k => values(k, rows[i][k]))),
			open: i => G.state.set({ view: "sandwich", fn: name(rows[i]) }),
			sort: (diffsort, diffdown) => G.state.set({ diffsort, diffdown }) });
		root.append(G.el("div", { class: "grid-bar" }, ...modes, sure, filter, head), grid.root);
	}
	function draw(state) {
		if (!diff())
			return;
		modes.forEach((b, i) => b.setAttribute("aria-pressed", state.normalized === !i));
		sure.setAttribute("aria-pressed", state.sure);
		filter.sync(state);
		show(state);
		const n = diff().rows.filter(significant).length, own = diff().rows.filter(r => r.self.significant).length;
		head.textContent = (n ? G.model.plural(own, "function") + " changed" +
			(n > own ? ", " + (n - own) + " more with what they call · " : " · ") : "") +
			sentence(absolute === !diff().normalized);
	}
	function key(e, state) {
		if (!diff())
			return false;
		if (e.key === "q")
			G.state.set({ sure: !state.sure });
		else if (e.key === "y")
			G.state.set({ normalized: !state.normalized });
		else if (e.key === "\\")
			filter.focus();
		else
			return grid.key(e);
		return true;
	}
	const about = () => "a row for each function: what it took before and after, how much that changed, and how sure that is";
	G.views.diff = { init, draw, key, about };
	G.test.diff = () => grid.ids.map(i => ({ name: name(rows[i]), ...rows[i] }));
	G.keys.push(["diff"], ["q", "only what is significant"], ["y", "shares, or values a second"]);
})();
