/*
 * table.js - self and total of each function, module, crate or thread.
 *
 * A function that calls itself counts once in its total: of nested nodes only the outermost one. The tree
 * is in preorder, so one pass that remembers where the open one of each ends is enough.
 */
(function () {
	const KINDS = ["function", "own", "module", "crate", "thread"], GROUP = 1; /* of enum ident_kind: a thread */
	Object.assign(G.state.defaults, { by: "auto", filter: "", sort: "self", down: true });
	let root, grid, filter, kinds, note, empty, flags = null, tally, last = null, lastKey = "";

	const LABELS = { own: "own function" }, ofFunctions = by => by === "function" || by === "own";
	const kindOf = state => KINDS.includes(state.by) ? state.by : G.own.wanted(state) ? "own" : "function";

	/* Which row a node belongs to, by what the rows are. */
	function keyOf(by) {
		const { idents } = G.data;
		return by === "module" ? idents.module : by === "crate" ? idents.crate : null;
	}
	function names(by) {
		const d = G.data;
		return by === "module" ? d.modules : by === "crate" ? d.crates : d.idents.name;
	}

	/* Of two recordings: the one that is shown, the later one unless asked otherwise. */
	const sideOf = state => G.hasTwo(state) && state.side !== "a" ? 1 : 0;

	function ofTree(state, by) {
		const { tree, idents } = G.data, w = G.model.weights(state), key = keyOf(by);
		const [selfs, totals] = sideOf(state) ? [w.selfB, w.totalB] : [w.self, w.total];
		const label = names(by), n = label.length, near = by === "own" ? G.own.nearest(state) : null;
		const self = new Float64Array(n), total = new Float64Array(n), end = new Uint32Array(n);
		for (let i = 1; i < tree.n;) {
			if (!totals[i]) {
				i += tree.size[i];
				continue;
			}
			const ident = tree.ident[i], k = key ? key[ident] : ident;
			if (idents.note[ident] !== GROUP && !(w.drop && w.drop[i])) {
				self[near && near[i] >= 0 ? near[i] : k] += selfs[i];
				if (i >= end[k] && (!near || near[i] === k || near[i] < 0)) {
					end[k] = i + tree.size[i];
					total[k] += totals[i];
				}
			}
			i++;
		}
		return { n, self, total, label, all: totals[0],
			module: ofFunctions(by) ? i => G.data.modules[idents.module[i]] : null };
	}

	function ofThreads(state) {
		const d = G.data, e = d.entries, n = d.threads.length, w = G.model.weights(state);
		const total = new Float64Array(n);
		for (let i = 0; i < e.n; i++)
			if (w.value[i] && !(w.drop && w.drop[e.node[i]]))
				total[e.thread[i]] += w.value[i];
		return { n, self: total, total, label: d.threads.map(t => t.name + " " + t.tid),
			all: total.reduce((a, b) => a + b, 0), module: null };
	}

	/* Cached: sorting and filtering don't count again. */
	G.tally = function (state, by) {
		const key = JSON.stringify([by, state.side, ...G.model.parts.map(k => state[k])]);
		if (key !== lastKey) {
			lastKey = key;
			last = by === "thread" ? ofThreads(state) : ofTree(state, by);
			last.by = by;
		}
		return last;
	};
	G.tally.forget = () => lastKey = "";

	const amount = v => G.model.format(v, G.model.unit(G.state.now));
	const share = v => tally.all ? v / tally.all : 0;
	const name = i => tally.label[i], base = i => tally.module ? tally.module(i).replace(/.*\//, "") : "";

	/* Two columns: a value, and its share of all. */
	function number(key, list, about) {
		const value = i => list()[i];
		const tip = i => about + ": " + amount(value(i)) + ", " + G.model.percent(share(value(i))) + " of " + amount(tally.all) +
			" of " + G.model.whole(G.state.now);
		return [{ key, title: key, width: 110, about, value, tip, text: i => amount(value(i)), extra: true },
			{ key: key + " %", title: key + " %", width: 90, about: about + ", share of all", value, tip,
				text: i => G.model.percent(share(value(i))), bar: i => share(value(i)) }];
	}
	function make() {
		return G.grid({ label: "functions", open, hover: say, tip, actions, tie: i => tally.total[i],
			sort: (sort, down) => G.state.set({ sort, down }),
			columns: [...number("self", () => tally.self, "in itself, without what it calls"),
				...number("total", () => tally.total, "with what it calls; recursion once"),
				{ key: "name", title: "name", left: true, value: name, text: name,
					className: i => flags && flags[i] ? "name match" : "name", fit: true },
				{ key: "module", title: "module", left: true, width: 190, value: base, extra: true,
					text: base, fit: (i, n) => base(i).slice(0, n) }] });
	}

	function tip(i) {
		const row = (key, v) => [key, amount(v), G.model.percent(share(v)) + " of all"];
		return G.tipOf(name(i), tally.module && tally.module(i), [row("self", tally.self[i]), row("total", tally.total[i])]);
	}
	const actions = i => tally.by === "function" ? G.functionActions(name(i))
		: [["Enter", tally.by === "thread" ? "only this thread" : "its functions", () => open(i)],
			["c", "copy its name", () => G.copy(name(i), name(i))]];
	/* Of a library's or the kernel's function also the own one above it. */
	function under(i) {
		const own = tally.by === "function" && G.own.above(G.state.now, i);
		return own ? " · " + G.model.percent(own.share) + " of self under " + own.name : "";
	}
	function say(i) {
		if (i !== undefined)
			G.status(name(i) + " — " + amount(tally.total[i]) + ", " +
				G.model.percent(share(tally.total[i])) +
				" (self " + amount(tally.self[i]) + ")" + under(i) +
				(ofFunctions(tally.by) ? " · Enter: callers and callees" : ""));
	}
	function open(i) {
		if (ofFunctions(tally.by))
			G.state.set({ view: "sandwich", fn: name(i) });
		else if (tally.by === "thread")
			G.state.set({ view: "flame", threads: [G.data.threads[i].tid] });
		else
			G.state.set({ by: "function", filter: name(i).replace(/.*\//, "") });
	}

	/* Rows whose name or module has all of the words, or whose crate is called so. */
	function chosen(state) {
		const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean), ids = [];
		const crate = i => tally.module ? G.data.crates[G.data.idents.crate[i]].toLowerCase() : "";
		const has = i => {
			const text = (name(i) + "\n" + (tally.module ? tally.module(i) : "")).toLowerCase();
			return words.every(w => text.includes(w) || crate(i) === w);
		};
		for (let i = 0; i < tally.n; i++)
			if (tally.total[i] && (!words.length || has(i)))
				ids.push(i);
		return ids;
	}
	function draw(state) {
		const by = kindOf(state), nothing = G.nothing(state);
		tally = G.tally(state, by); /* our own: others ask for functions while rows of threads are shown */
		kinds.forEach((b, i) => b.setAttribute("aria-pressed", KINDS[i] === by));
		filter.sync(state);
		flags = state.search && ofFunctions(by) ? G.model.search(state).flags : null;
		const ids = chosen(state), side = G.hasTwo(state) ? ", " + G.sideWords(state)[sideOf(state)] : "";
		grid.root.hidden = !!nothing;
		empty.replaceChildren(...nothing ? [nothing] : []);
		note.textContent = G.model.plural(ids.length, LABELS[by] || by) + " · " + amount(tally.all) + " of " +
			G.model.whole(state) + side;
		grid.show(ids, state.sort, state.down, "No row has “" + state.filter +
			"”. Esc in the filter shows all.");
	}
	/* To the next row that the search finds. */
	function found(way) {
		if (flags)
			grid.next(i => flags[i], way);
		else if (G.state.now.search)
			G.status("The search finds functions: ← → choose the table by function.");
	}
	function key(e, state) {
		const at = KINDS.indexOf(kindOf(state)), n = KINDS.length;
		if (e.key === "ArrowRight" || e.key === "ArrowLeft")
			G.state.set({ by: KINDS[(at + (e.key === "ArrowRight" ? 1 : n - 1)) % n],
				filter: "" });
		else if (e.key === "\\")
			filter.focus();
		else if (flags && (e.key === "n" || e.key === "N"))
			found(e.key === "n" ? 1 : -1);
		else
			return grid.key(e);
		return true;
	}

	G.views.table = {
		init(element) {
			root = element;
			root.classList.add("grid-view");
			kinds = KINDS.map(k => G.el("button",
				{ title: k === "own" ? "what libraries and the kernel did is the nearest own function's above them" : "by " + k,
					onclick: () => G.state.set({ by: k, filter: "" }) }, LABELS[k] || k));
			filter = G.filterBox(() => grid);
			note = G.el("span", { class: "note" });
			grid = make();
			empty = G.el("div");
			root.append(G.el("div", { class: "grid-bar" }, ...kinds, filter, note),
				grid.root, empty);
		},
		draw, key, found: () => found(1),
		about: s => kindOf(s) === "own" ? "a row for each own function: self is with the libraries and the kernel that it calls, total with all"
			: "a row for each " + kindOf(s) + ": self is it alone, total is with all that it calls",
	};
	G.test.table = () => grid.ids.map(i => ({ name: name(i), self: tally.self[i],
		total: tally.total[i] }));
	G.keys.push(["table"], ["↑ ↓ Enter", "choose a row, open its sandwich"],
		["← →", "by function, module, crate, thread"], ["\\", "filter rows"],
		["n N", "next and previous that the search finds"],
		["< > r", "sort by another column; the other way round"]);
})();
