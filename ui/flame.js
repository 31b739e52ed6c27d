/*
 * flame.js - the flame graph: what one can do with a box, by mouse, menu and keyboard, how it is read out.
 */
(function () {
	const { el } = G, set = patch => G.state.set(patch), GROUP = 1; /* of enum ident_kind: a thread */
	const trail = []; /* zooms to go back to */
	let graph, host, tree, root = null, hits = null;
	let pointed = null; /* the node under the mouse, until an arrow moves the selection */

	/* Follows names from the root, as far as they are there. */
	function find(names) {
		let n = root;
		for (const name of names) {
			const same = n.kids().filter(k => G.state.means(name, k.name));
			if (!same.length)
				break;
			n = same.reduce((a, b) => b.width > a.width ? b : a);
		}
		return n;
	}

	const zoomed = () => find(G.state.now.zoom);

	function zoom(node) {
		const now = G.state.now.zoom, path = node.path();
		if (String(now) !== String(path)) {
			trail.push(now);
			set({ zoom: path });
		}
	}

	function back() {
		const now = G.state.now.zoom;
		let to = now.slice(0, -1);
		while (trail.length && String(to = trail.pop()) === String(now))
			to = now.slice(0, -1);
		set({ zoom: to });
	}

	/* How a value is said: "3.21 s"; in a diff before and after. */
	function amount(a, b) {
		const value = x => G.model.format(x, G.model.unit(G.state.now));
		return root.v.B ? value(a) + " → " + value(b) : value(a);
	}

	const several = box => box.run && box.run.n > 1;
	const share = (n, of) => G.model.percent(n.width / of.width);
	const below = () => G.state.now.invert ? "callee" : "parent";
	const title = box => several(box) ? G.model.format(box.run.n, "count") +
		" boxes too narrow to draw, from " +
		G.model.shortName(box.node.name, 60) : box.node.name;

	function together({ run }) {
		return [amount(run.total, run.totalB),
			G.model.percent(root.v.width(run.total, run.totalB) / root.width) + " of all"];
	}

	/* The figures of a box as [what, value, note]. */
	function figures(box) {
		const n = box.node, s = G.state.now, out = [], { percent } = G.model, { count } = n;
		if (several(box))
			return [["together", ...together(box)]];
		out.push(["total", amount(n.total, n.totalB), share(n, root) + " of " +
			(s.focus ? "what is shown" : G.model.whole(s))]);
		if (!s.invert)
			out.push(["self", amount(n.self, n.selfB),
				percent(root.v.width(n.self, n.selfB) / n.width) + " of it"]);
		if (n.parent && n.parent.parent)
			out.push(["", share(n, n.parent), "of its " + below()]);
		if (root.v.B) {
			const a = n.total * n.v.scaleA, { equalB } = n.v, d = n.totalB * equalB - a;
			out.push(["change", a ? (d > 0 ? "+" : "") + percent(d / a) : "new",
				!n.totalB ? "vanished" : equalB !== 1 ? "at equal work"
					: s.normalized ? "of its share" : ""]);
		}
		if (count)
			out.push(["", G.model.format(Math.round(count), "count"), G.model.noun(s) + "s"]);
		const sums = n.byCause(), all = sums ? sums.reduce((a, b) => a + b) : 0;
		for (const c of sums ? [...sums.keys()].sort((a, b) => sums[b] - sums[a]).slice(0, 6) : [])
			if (sums[c] > 0)
				out.push([G.data.causes[c].name, G.model.format(sums[c], G.model.unit(s)),
					percent(sums[c] / all) + " of it"]);
		return out;
	}

	/* The status line: the whole name and figures of a box; without one the state in words. */
	function describe(box) {
		const s = G.state.now, end = hint => [el("span", { class: "grow" }),
			el("span", { class: "hint" }, hint)];
		if (!box)
			return G.status(el("span", null, G.words(s) + " · " +
				amount(root.total, root.totalB)),
				...end(G.about(s) + " · right click for more"));
		const n = box.node, { count } = n, f = [];
		if (several(box)) {
			f.push(together(box).join(", "));
		} else {
			f.push(amount(n.total, n.totalB) + ", " + share(n, root) + " of " +
				G.model.whole(s) +
				(s.invert ? "" : " (self " + amount(n.self, n.selfB) + ")"));
			if (n.parent && n.parent.parent)
				f.push(share(n, n.parent) + " of its " + below());
			if (count)
				f.push(G.model.plural(Math.round(count), G.model.noun(s)));
		}
		G.status(el("b", { title: title(box) }, el("bdi", null, title(box))),
			el("span", null, "— " + f.join(" · ")), ...end("c copy · f focus · h hide"));
	}

	function hover(box, x, y) {
		const chosen = graph.selected && graph.boxOf(graph.selected);
		pointed = box && !several(box) ? box.node : null;
		describe(box || chosen);
		const module = !box || several(box) ? "" : G.data.modules[G.data.idents.module[box.node.ident]];
		G.tip(box && G.tipOf(title(box), module, figures(box)), x, y);
	}

	/* The row of the selected box as a tree for screen readers: its ancestors and its siblings. */
	function mirror(node) {
		const row = node.parent ? node.parent.kids() : [node], at = row.indexOf(node),
			from = Math.max(0, at - 20);
		const item = (n, place, of) => el("li", { role: "treeitem", "aria-level": n.depth + 1,
			"aria-posinset": place, "aria-setsize": of, "aria-selected": String(n === node),
			"aria-expanded": n.kids().length ? String(n.depth < node.depth) : null,
			id: n === node ? "focused" : null }, n.name + ", " + amount(n.total, n.totalB) +
			", " +
			share(n, root) + (G.state.now.invert ? "" : ", self " + amount(n.self, n.selfB)));
		const up = [];
		for (let p = node.parent; p; p = p.parent)
			up.unshift(item(p, 1, 1));
		tree.replaceChildren(...up, ...row.slice(from,
			at + 21).map((n, i) => item(n, from + i + 1, row.length)));
		host.setAttribute("aria-activedescendant", "focused");
	}

	function select(node) {
		pointed = null;
		graph.select(node);
		mirror(node);
		describe({ node });
	}

	function save(node) {
		const file = text => text.replace(/[^\w.-]+/g, "-"), lines = G.folded(node, G.state.now);
		G.save(file(G.data.meta.target || "profile") + "." + file(G.model.what(G.state.now).key) +
			".folded", lines);
		G.status(G.model.plural(lines.length, "stack") + " saved");
	}

	/* What can be done with a box: [key, words, action]; null = a line between. */
	function actions(node) {
		const s = G.state.now, { name } = node, list = [["Enter", "zoom", () => zoom(node)]];
		const add = key => ({ [key]: [...s[key].filter(x => x !== name), name] });
		const path = s.invert ? node.path().reverse() : node.path();
		if (s.zoom.length)
			list.push(["Backspace", "back", back],
				["Esc", "reset the zoom", () => set({ zoom: [] })]);
		list.push(null);
		if (G.model.unitIdents().has(node.ident))
			list.pop();
		else if (G.data.idents.note[node.ident] === GROUP)
			list.push(["f", name.includes("*") ? "only these threads" : "only this thread", () => set({ threads: [name], zoom: [] })],
				["h", name.includes("*") ? "hide these threads" : "hide this thread", () => set({ ...add("hidden"), zoom: [] })], null);
		else if (node.parent)
			list.push(["f", "focus: only under this function",
				() => set({ focus: name, zoom: [] })],
				["h", "hide it and all under it",
					() => set({ ...add("hidden"), zoom: s.zoom.includes(name) ? []
					: s.zoom })],
				["u", "merge it into its caller", () => set({ ...add("merged"), zoom: [] })],
				["s", "sandwich: its callers and callees",
				() => set({ fn: name, view: "sandwich" })],
				["l", "search for it", () => set({ search: name, regex: false })], null);
		list.push(["c", "copy its name", () => G.copy(name, name)],
			["C", "copy its stack", () => G.copy(path.join("\n"), "the stack")],
			["e", "save its stacks, folded", () => save(node)]);
		return list;
	}

	function menu(node, x, y) {
		select(node);
		G.menu(actions(node), x, y);
	}

	/* To the next box that matches the search, in the order in which one reads them. */
	function found(step) {
		const list = [];
		if (!hits || !hits.functions)
			return G.status(G.state.now.search ? "Nothing matches." : "/ begins a search.");
		for (const row of graph.rows)
			list.push(...row.filter(b => !b.run && b.node.parent && hits.flags[b.node.ident]));
		if (!list.length)
			return G.status("What matches is too narrow to be seen: zoom out (Esc), or focus.");
		list.sort((a, b) => a.x - b.x || a.node.depth - b.node.depth);
		const at = list.findIndex(b => b.node === graph.selected);
		const next = at < 0 ? step > 0 ? 0 : list.length - 1
			: (at + step + list.length) % list.length;
		select(list[next].node);
		document.getElementById("status").append(el("span", null,
			"match " + (next + 1) + " of " + list.length));
	}

	/* Where an arrow leads from a box. */
	function neighbour(node, key) {
		if (key === "ArrowLeft" || key === "ArrowRight") {
			/* Of a chain that shares the row: what is beside all of it. */
			const { row, head } = graph.boxOf(node), list = graph.rows[row].filter(b => !b.run &&
				(b.node === node || !b.head || b.head === b.node && b.head !== head));
			const next = list[list.findIndex(b => b.node === node) + (key === "ArrowLeft" ? -1 : 1)];
			return next && next.node;
		}
		if (key === "ArrowUp" === G.state.now.icicle)
			return node.parent;
		return node.kids().filter(graph.boxOf).reduce((a, b) => !a || b.width > a.width ? b : a,
			null);
	}

	function key(e, s) {
		if (host.hidden)
			return false;
		const chosen = graph.selected && graph.boxOf(graph.selected) ? graph.selected : null;
		const arrow = e.key.startsWith("Arrow"), node = !arrow && pointed && graph.boxOf(pointed) ? pointed : chosen;
		const place = node && graph.at(node), pressed = e.key === "Enter" &&
			/^(BUTTON|A)$/.test(e.target.tagName);
		if (arrow)
			select(node ? neighbour(node, e.key) || node : zoomed());
		else if (e.key === "n" || e.key === "N" || e.key === "F3")
			found(e.key === "n" ? 1 : -1);
		else if (e.key === "Backspace")
			back();
		else if (place && (e.key === "ContextMenu" || e.key === "F10" && e.shiftKey))
			menu(node, place.x, place.y);
		else if (e.key === "e" && !node)
			save(zoomed());
		else {
			const action = node && !pressed && actions(node).find(a => a && a[0] === e.key);
			if (!action)
				return false;
			action[2]();
		}
		return true;
	}

	function init(view) {
		host = el("div", { id: "flame", tabindex: "0", role: "tree", "aria-label": "flame graph" });
		tree = el("ul", { class: "unseen", role: "group" });
		view.append(host);
		graph = G.graph(host, { over: hover, menu, click(node) {
			select(node);
			zoom(node);
		} });
		host.append(tree);
	}

	function draw(s, before) {
		const view = host.parentNode, nothing = G.nothing(s), kept = graph.selected, was = root;
		view.querySelectorAll(".empty").forEach(e => e.remove());
		host.hidden = !!nothing;
		G.tip(null);
		pointed = null;
		if (nothing)
			return view.append(nothing);
		if (s.invert !== before.invert || s.group !== before.group)
			trail.length = 0;
		root = G.model.view(s);
		hits = s.search ? G.model.search(s) : null;
		const scheme = G.colour.scheme(s, root.v.w), again = kept && was !== root ? find(kept.path())
			: kept;
		G.legend(scheme.legend);
		graph.show(root, { zoom: zoomed(), up: !s.icicle, scheme, flags: hits && hits.flags, chains: s.chains });
		graph.select(again && again.depth === kept.depth ? again : null);
		describe(graph.selected && graph.boxOf(graph.selected));
	}

	G.keys.push(["flame graph"], ["arrows", "move the selection; keys mean the box under the mouse, or the selected one"],
		["Enter, click", "zoom"],
		["Backspace", "back"], ["Esc", "reset the zoom"], ["n  N", "next and previous match"],
		["f", "focus: only under this function"], ["h", "hide it and all under it"],
		["u", "merge it into its caller"], ["s", "sandwich of it"], ["l", "search for it"],
		["c  C", "copy its name, its stack"], ["e", "save its stacks, folded"],
		["right click", "all of these (also the menu key)"], ["i", "invert: leaf first"],
		["g", "flame or icicle"],
		["r", "collapse recursion"], ["m", "threads: merged, by task"], ["o", "by name or by weight"],
		["k", "what colours mean"], ["w", "width of boxes in a diff"]);
	const about = s => /^(poll|await|taskqueue)$/.test(s.what) && G.model.what(s).about || "a box is a function, as wide as its " + (s.count ? "count of " : "") + G.model.what(s).name +
		(s.invert ? "; its callers are " : " with what it calls, which is ") + (s.icicle ? "below it" : "above it");
	G.views.flame = { init, draw, key, about, found: () => found(1) };
	G.test.boxes = () => graph.boxes();
	G.test.selected = () => graph.selected && graph.selected.name;
})();
