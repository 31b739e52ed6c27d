/*
 * sandwich.js - one function between those that call it, which grow upwards, and those that it calls.
 *
 * Of nested calls of the function only the outermost count, so that nothing is there twice.
 */
(function () {
	const SELF = "(self)";
	let root, title, up, down, grids, active = 0, lists = [[], []], whole = 1, after = false;

	/* Of two recordings the later one, unless that has none of it or the other is asked for. */
	const weight = n => after ? n.totalB : n.total;
	const amount = v => G.model.format(v, G.model.unit(G.state.now));
	const share = v => G.model.percent(v / whole);

	/* The heaviest function of all, where none was chosen. */
	function heaviest(state) {
		const t = G.tally(state, "function");
		let best = -1;
		for (let i = 0; i < t.n; i++)
			if (t.self[i] > 0 && (best < 0 || t.self[i] > t.self[best]))
				best = i;
		return best < 0 ? null : t.label[best];
	}

	/* The function itself as the root, unless several modules have one of that name. */
	function hoist(node) {
		const kids = node.kids();
		if (kids.length !== 1)
			return node;
		kids[0].depth = 0;
		return kids[0];
	}
	/* Direct callers or callees, whichever tree it is. */
	function direct(node) {
		const out = new Map();
		for (const fn of node.parent ? [node] : node.kids())
			for (const { ident, name, total, totalB } of fn.kids()) {
				const had = out.get(ident), v = weight({ total, totalB }) + (had ? had.v : 0);
				out.set(ident, { ident, name, v });
			}
		return [...out.values()].filter(k => k.v > 0);
	}

	const isFunction = name => name !== SELF && !G.data.threads.some(t => t.name === name || G.model.pattern(t.name) === name);
	const go = name => isFunction(name) && G.state.set({ fn: name });
	function mark() {
		grids.forEach((g, i) => g.root.classList.toggle("active", i === active));
	}

	function grid(side, label) {
		const row = i => lists[side][i], v = i => row(i).v, name = i => row(i).name;
		let key = "v", falling = true;
		const hover = i => {
			active = side;
			mark();
			if (i !== undefined)
				G.status(name(i) + " — " + amount(v(i)) + ", " + share(v(i)) +
					" of the function");
		};
		const sort = (column, way) => {
			key = column;
			falling = way;
			g.refresh();
		};
		const tip = i => G.tipOf(name(i), row(i).ident < 0 ? "" : G.data.modules[G.data.idents.module[row(i).ident]],
			[["total", amount(v(i)), share(v(i)) + " of the function"]]);
		const actions = i => isFunction(name(i)) ? G.functionActions(name(i)) : [];
		const g = G.grid({ label, hover, sort, tip, actions, open: i => go(name(i)), columns: [
			{ key: "v", title: "total", width: 84, value: v, text: i => amount(v(i)),
				tip: i => share(v(i)) + " of " + amount(whole) + " of the function" },
			{ key: "share", title: "%", about: "share of the function's total", width: 76,
				value: v, text: i => share(v(i)), bar: i => v(i) / whole },
			{ key: "name", title: label, left: true, className: () => "name", value: name,
				text: name, fit: true }] });
		g.refresh = () => g.show([...lists[side].keys()], key, falling,
			side ? "It calls nothing that was seen." : "Nothing calls it: stacks begin here.");
		return g;
	}

	function graph(host) {
		const over = (box, x, y) => {
			G.tip(null);
			if (!box)
				return G.status(G.words(G.state.now));
			const many = box.run && box.run.n > 1, v = weight(many ? box.run : box.node);
			const name = many ? box.run.n + " functions" : box.node.name;
			G.status(name + " — " + amount(v) + ", " + share(v) + " of the function · click: its own callers and callees");
			G.tip(G.tipOf(name, many ? "" : G.data.modules[G.data.idents.module[box.node.ident]],
				[["total", amount(v), share(v) + " of the function"]]), x, y);
		};
		const menu = (node, x, y) => isFunction(node.name) && G.menu(G.functionActions(node.name), x, y);
		return G.graph(host, { over, menu, click: node => go(node.name) });
	}

	/* Why there is nothing, and the way out; null if there is something. */
	function missing(fn, of, state) {
		const none = { range: null, threads: null, processes: null, causes: null, focus: null,
			hidden: [] };
		return G.nothing(state) || (of && (of.total > 0 || of.totalB > 0) ? null :
			G.empty("“" + fn + "” is not in what is shown now.",
				[["take all filters away", none], ["the heaviest function", { fn: null }]]));
	}

	function draw(state) {
		const fn = state.fn || heaviest(state), w = G.model.weights(state);
		const what = G.model.whole(state);
		const of = fn === null ? null : G.model.view(state, { fn, callees: true });
		const empty = missing(fn, of, state);
		root.firstChild.hidden = !!empty;
		root.lastChild.replaceChildren(...empty ? [empty] : []);
		if (empty)
			return;
		const callees = hoist(of), callers = hoist(G.model.view(state, { fn, callers: true }));
		after = G.hasTwo(state) && of.totalB > 0 && (state.side !== "a" || !(of.total > 0));
		whole = weight(callees);
		lists = [direct(callers), direct(callees)];
		const self = Math.max(0, whole - lists[1].reduce((sum, k) => sum + k.v, 0));
		if (self > whole * 1e-9)
			lists[1].push({ ident: -1, name: SELF, v: self });
		const side = G.hasTwo(state) ? ", " + G.sideWords(state)[+after] : "";
		title.replaceChildren(G.el("b", { class: "mono", title: fn }, G.model.shortName(fn, 90)),
			" — " + amount(whole) + ", " + G.model.percent(whole / (after ? w.allB : w.all)) +
			" of " + what + side + " (self " + amount(self) + ")" + (state.fn ? "" :
				" · the heaviest one: choose another in the table or the flame graph"));
		const scheme = G.colour.scheme(state, w);
		const flags = state.search ? G.model.search(state).flags : null;
		up.show(callers, { state, up: true, scheme, flags });
		down.show(callees, { state, up: false, scheme, flags });
		G.legend(scheme.legend);
		grids.forEach(g => g.refresh());
		mark();
		G.test.sandwich = () => ({ fn, total: whole, self, callers: lists[0], callees: lists[1] });
	}

	function init(element) {
		const slice = child => G.el("div", { class: "slice" }, child);
		const labels = ["callers", "callees"];
		const hosts = labels.map((k, i) => G.el("div", { class: i ? "" : "up", role: "img",
			"aria-label": k + " as a flame graph" }));
		root = element;
		title = G.el("div", { class: "grid-bar" });
		grids = labels.map((k, i) => grid(i, k));
		root.append(G.el("div", { class: "sandwich" }, title, slice(hosts[0]), slice(grids[0].root),
			slice(hosts[1]), slice(grids[1].root)), G.el("div"));
		[up, down] = hosts.map(graph);
	}

	function key(e) {
		if (e.key === "Backspace")
			return G.state.undo();
		if (e.key !== "ArrowLeft" && e.key !== "ArrowRight")
			return grids[active].key(e);
		active = e.key === "ArrowLeft" ? 0 : 1;
		mark();
		return true;
	}

	const about = s => "one function in the middle: who calls it above, what it calls below; widths are shares of its " + G.model.what(s).name;
	G.views.sandwich = { init, draw, key, about };
	G.keys.push(["sandwich"], ["← →", "callers, callees"],
		["↑ ↓ Enter", "choose one, put it in the middle"],
		["Backspace", "the one before"]);
})();
