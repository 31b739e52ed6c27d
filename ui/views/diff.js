/*
 * diff.js - two recordings, or two parts of one, function by function: both values, the change and how sure it is.
 *
 * The figures of two recordings and their intervals are the recorder's (src/analyze/diff/diff.h), either of shares or of
 * values a second; those of two parts are computed here (ui/compare). The other one is derived from it by the wholes; what
 * is significant stays what was computed.
 */
(function () {
	Object.assign(G.state.defaults, { diffsort: "Δ self", diffdown: true, sure: false });
	let root, grid, filter, head, said, empty, sure, modes, choice, rows = [], absolute = false, largest = {};

	const diff = () => G.diffOf(G.state.now), two = () => !!G.data.diff;
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
		/* To the noise of the one comes that of the whole. */
		const share = normalized ? (v.a + v.b) / 200 : (v.a + v.b) / 2 / mean;
		const noise = () => Math.hypot(part((v.high - v.low) / 2, mean), share * (all.high - all.low) / (normalized ? 2 : mean / 50));
		return { q: v.q, significant: v.significant, a, b, delta, get low() { return delta - noise(); }, get high() { return delta + noise(); } };
	}

	const rate = v => G.model.format(v, G.model.unit(two() ? G.state.first : G.state.now)) + (diff().timeless ? "" : "/s");
	const amount = v => absolute ? rate(v) : G.model.percent(v / 100);
	/* Of what it was before. */
	function relative(v, x) {
		const part = Math.abs(x / v.a) < 5e-5 ? 0 : x / v.a; /* what is less has no sign */
		return v.a ? (part > 0 ? "+" : "") + G.model.percent(part) : "–";
	}
	const range = v => v.a && v.high > v.low ? relative(v, Math.max(v.low, -v.a)) + " … " +
		relative(v, v.high) : "";
	const changed = (r, v) => r.onlyA ? two() ? "gone" : "not here" : r.onlyB ? two() ? "new" : "only here"
		: !v.a && v.b ? "from 0" : relative(v, v.delta);

	/* A change of the whole: points of a share, or a value a second. */
	const points = d => (d > 0 ? "+" : d < 0 ? "−" : "") + (absolute ? rate(Math.abs(d))
		: Math.abs(d).toFixed(Math.abs(d) < 10 ? 2 : 1) + " pts");
	const ofWhole = part => part + (absolute ? ", a second" : ", share of the whole");

	/* Before, after and change of self or total: of the whole, from the centre line on, and of what it was. */
	function three(part) {
		const v = i => rows[i][part], size = i => Math.abs(v(i).delta), sure = i => v(i).significant ? "sure" : "unsure";
		const [first, second] = two() ? ["before", "after"] : ["elsewhere", "here"];
		return [
			{ key: part + " before", title: part + " " + first, width: two() ? 94 : 122, extra: true, value: i => v(i).a, tip: () => ofWhole(part) + ", " + first,
				text: i => rows[i].onlyB ? "–" : amount(v(i).a) },
			{ key: part + " after", title: second, about: part + " " + second, width: 76, extra: true, tip: () => ofWhole(part) + ", " + second,
				value: i => v(i).b, text: i => rows[i].onlyA ? "–" : amount(v(i).b) },
			{ key: "Δ " + part, title: "Δ of all", width: 118, signed: true,
				about: "by how much of the whole, at equal work: less to the left, more to the right; bold: significant",
				value: i => size(i) + (v(i).significant ? 2 * largest[part] : 0),
				text: i => points(v(i).delta),
				bar: i => v(i).delta / (largest[part] || 1), className: sure },
			{ key: "relative " + part, title: two() ? "of before" : "of that", width: 76, extra: true, about: "the change, as a share of what it is " + first,
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
		const work = "changes are at equal work (" + G.sideWords(G.state.now)[1] + " × " + k.toFixed(3) + ")";
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

	/* With what that which was chosen is compared. */
	function choices(state) {
		const far = G.otherRange(state.against), list = [["rest", "the rest"]];
		if (G.slowBlocks().length)
			list.push(["typical", "typical blocks"]);
		if (state.range)
			list.push([state.range.join("-"), "another range: keep " + G.rangeName(state.range)]);
		if (far && state.against !== list[list.length - 1][0])
			list.push([state.against, G.rangeName(far)]);
		return list;
	}
	function choose() {
		const keeps = G.state.now.range && choice.value === G.state.now.range.join("-");
		G.state.set({ against: choice.value, ...keeps ? { range: null } : {} });
		if (keeps)
			G.status("Now choose the range that is compared with " + G.rangeName(G.otherRange(choice.value)) + ".");
	}

	/* Nothing is chosen: what one can compare. */
	function nothing(state) {
		const ways = G.slowBlocks().length ? [["slow blocks against typical ones", { against: "typical" }]] : [];
		const { minus, name: what } = G.model.what(state);
		return minus !== undefined ? G.empty("“" + what + "” is a difference already.", [["compare what was allocated", { what: "alloc" }]])
			: G.empty(G.data.samples ? "Choose a range of time, a block or a thread above: it is compared with the rest."
				: "These stacks have no times: there are no parts to compare.", ways);
	}

	function init(element) {
		const mode = (on, text, title) => G.el("button",
			{ title, onclick: () => G.state.set({ normalized: on }) }, text);
		root = element;
		root.classList.add("grid-view");
		/* What was computed is shown first. */
		G.state.first.normalized = two() ? G.data.diff.normalized : true;
		if (two() && !/\bnormalized=/.test(location.hash))
			G.state.set({ normalized: G.data.diff.normalized }, { replace: true });
		head = G.el("span", { class: "note" });
		said = G.el("p", { class: "said", role: "status" });
		empty = G.el("div");
		choice = G.el("select", { "aria-label": "compare with", title: "what the chosen part is compared with", onchange: choose });
		modes = [mode(true, "share", "shares of what is weighed (y)"),
			two() && G.data.diff.timeless ? mode(false, "counts", "the counts as they are (y)")
				: mode(false, "per second", "values for each second of the " + (two() ? "recordings" : "parts") + " (y)")];
		sure = G.el("button", { title: "leave out what is within the noise (q)",
			onclick: () => G.state.set({ sure: !G.state.now.sure }) }, "significant only");
		filter = G.filterBox(() => grid);
		const values = (k, v) => [k, amount(v.a) + " → " + amount(v.b), v.significant ? "significant" : "within the noise"];
		grid = G.grid({ label: "changes", columns: columns(), hover: say, actions: i => G.functionActions(name(rows[i])),
			tip: i => G.tipOf(name(rows[i]), module(rows[i]), ["self", "total"].map(k => values(k, rows[i][k]))),
			open: i => G.state.set({ view: "sandwich", fn: name(rows[i]) }),
			sort: (diffsort, diffdown) => G.state.set({ diffsort, diffdown }) });
		root.append(G.el("div", { class: "grid-bar" }, !two() && ["against ", choice], ...modes, sure, filter, head), said,
			grid.root, empty);
	}
	function draw(state) {
		const list = choices(state), d = diff();
		choice.replaceChildren(...list.map(([value, text]) => G.el("option", { value }, text)));
		choice.value = list.some(c => c[0] === state.against) ? state.against : "rest";
		empty.replaceChildren(...d ? [] : [nothing(state)]);
		grid.root.hidden = !d;
		said.replaceChildren(...d && d.verdict ? [G.el("b", null, d.names[1] + " against " + d.names[0] + ": "), ...G.sentence(d.verdict),
			"."] : []);
		if (!d) {
			head.textContent = "";
			return;
		}
		modes.forEach((b, i) => b.setAttribute("aria-pressed", state.normalized === !i));
		sure.setAttribute("aria-pressed", state.sure);
		filter.sync(state);
		show(state);
		const n = d.rows.filter(significant).length, own = d.rows.filter(r => r.self.significant).length;
		head.textContent = (n ? G.model.plural(own, "function") + (two() ? " changed" : " differ") +
			(n > own ? ", " + (n - own) + " more with what they call · " : " · ") : "") +
			sentence(absolute === !d.normalized);
		head.title = head.textContent;
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
	const about = () => two() ? "a row for each function: what it took before and after, how much that changed, and how sure that is"
		: "what was chosen against the rest: of each function what it takes here and elsewhere, and how sure the difference is (d)";
	G.views.diff = { init, draw, key, about };
	const plain = G.test.plain = v => ({ q: 1, significant: false, ...v, low: v.low, high: v.high });
	G.test.diff = () => grid.ids.map(i => ({ name: name(rows[i]), ...rows[i], self: plain(rows[i].self), total: plain(rows[i].total) }));
	G.keys.push(["diff"], ["q", "only what is significant"], ["y", "shares, or values a second"]);
})();
