/*
 * waits.js - where threads wait, and the page of one wait: who waits, who ends it (of a lock: who holds it), what these ran
 * meanwhile, what they waited for themselves. A click on a link of a chain goes on to that wait.
 *
 * The figures are the recorder's (src/analyze/wait/waits.h) and of the whole recording; the stacks follow the range.
 */
(function () {
	Object.assign(G.state.defaults, { site: "" });
	let root, page, rows, frame, shown = null;

	const { el } = G, { percent, plural, shortName } = G.model, time = ns => G.model.format(ns, "ns");
	const set = patch => () => G.state.set(patch);
	const link = (text, title, patch) => el("button", { class: "link", title, onclick: set(patch) }, text);
	const nameOf = w => w.cause + " " + w.function;
	const causeName = key => (G.data.causes.find(c => c.key === key) || { name: key }).name;
	const find = name => G.data.waits.find(w => nameOf(w) === name);
	const swatch = key => el("i", { class: "swatch", style: "background:" + G.colour.cssOfCause(key) });
	const has = key => G.model.whats().some(w => w.key === key);

	/* The stacks of a wait, from the threads on: callers stay. */
	const stacksOf = w => ({ what: "wait", causes: [w.cause], through: w.function, focus: null, threads: null, zoom: [] });
	const toFunction = (fn, n, what) => link(shortName(fn, n), fn + ": its callers and callees",
		{ view: "sandwich", fn, ...has(what) ? { what } : {}, ...G.whole });

	/* The waits of the list that count for shares: sleep is intended. */
	const blocked = () => G.data.waits.reduce((sum, w) => sum + (w.cause === "sleep" ? 0 : w.ns), 0);
	const isLock = w => w.cause === "lock";

	/* Who ends most of a wait, in words; "" = it is not known. */
	function ender(w) {
		const [first] = w.wakers;
		if (!first)
			return "";
		return (isLock(w) && first.thread ? "held by " : "ended by ") + (first.thread ?
			shortName(first.function, 40) + " of " + first.thread : first.function);
	}

	/* A wait in two lines, for the overview and the list here. */
	G.waitRow = function (w, chosen) {
		const words = [causeName(w.cause), plural(w.count, "wait"), plural(w.threads, "thread"), ender(w)];
		return el("button", { class: "wait-row", "aria-current": chosen ? "true" : null,
			title: w.function + "\n" + time(w.ns) + " of " + plural(w.threads, "thread") + ": who waits, who ends it, the chain",
			onclick: () => G.state.set({ view: "waits", site: nameOf(w) }) },
			el("div", {}, swatch(w.cause), el("code", {}, G.model.fitName(w.function, 52, 130)), el("span", { class: "num" }, time(w.ns))),
			el("div", { class: "dim" }, words.filter(Boolean).join(" · ")));
	};

	/* A share as a bar behind its number. of: what it is a share of. */
	const share = (part, whole, of) => el("div", { class: "share", title: percent(part / whole) + " of " + of },
		el("i", { style: "width:" + Math.min(100, part / whole * 100) + "%" }), el("span", {}, percent(part / whole)));

	function waiters(w) {
		const line = t => [share(t.ns, w.ns, time(w.ns) + " that all waited here"),
			el("span", { class: "num", title: "waited here, all together" }, time(t.ns)),
			el("div", {}, link(t.thread, "the stacks of its waits here", { ...stacksOf(w), view: "flame", threads: [t.thread] }),
				t.threads > 1 && el("span", { class: "dim" }, " × " + t.threads))];
		const more = w.threads - w.waiters.reduce((n, t) => n + t.threads, 0);
		return [el("h2", {}, "Who waits"), el("div", { class: "facts" }, w.waiters.map(line)),
			more > 0 && el("p", { class: "dim" }, "and " + plural(more, "more thread"))];
	}

	/* The stack from which a thread ended the waits, outermost first. */
	const stack = list => el("ol", { class: "stack" }, list.map(fn => el("li", {}, toFunction(fn, 78, "cpu"))));
	Object.assign(G, { share, stackList: stack });

	function wakers(w) {
		const known = w.wokenNs || 1, held = isLock(w);
		const figures = x => [plural(x.count, "wait"), time(x.ns / x.count) + " on average", "longest " + time(x.longestNs)].join(" · ");
		const who = x => x.thread ? [el("b", {}, x.thread), " in ", el("code", { title: x.function }, shortName(x.function, 60))] : el("b", {}, x.function);
		const line = (x, i) => [share(x.ns, known, time(known) + " whose end is known"),
			el("details", { open: !i && !!x.stack }, el("summary", { title: "its stack" }, who(x), el("span", { class: "dim" }, " " + figures(x))),
				x.stack && stack(x.stack))];
		if (!w.wakers.length)
			return el("p", { class: "dim" }, "Who ended these waits was not recorded.");
		return [el("h2", {}, held ? "Who holds it" : "Who ends it", el("em", {}, held ?
			"the thread that released it when a wait ended; times are how long others waited for it"
			: "the thread, or the interrupt, that woke the one that waited")),
			el("div", { class: "facts two" }, w.wakers.map(line))];
	}

	function ran(w) {
		const whole = w.ran.reduce((sum, r) => sum + r.ns, 0);
		const line = r => [share(r.ns, whole, time(whole) + " that wakers ran while others waited"),
			el("span", { class: "num", title: "CPU time" }, time(r.ns)), el("div", {}, toFunction(r.function, 70, "cpu"))];
		return w.ran.length > 0 && [el("h2", {}, "What they ran meanwhile", el("em", {}, "“wakers ran”: on the CPU, by the nearest own function")),
			el("div", { class: "facts" }, w.ran.map(line))];
	}

	/* What the waker waited for, what its waker did, and so on. */
	function chains(w) {
		const step = l => {
			const next = { function: l.function, cause: l.cause }, there = find(nameOf(next));
			const to = there ? { site: nameOf(next) } : { ...stacksOf(next), view: "flame", threads: [l.thread] };
			return [" ← ", el("button", { class: "step", title: l.function + (there ? ": go on to that wait" : ": its stacks"), onclick: set(to) },
				swatch(l.cause), el("b", {}, l.thread), " waited: " + causeName(l.cause) + ", ", el("code", {}, shortName(l.function, 44)))];
		};
		const line = c => el("li", {}, el("span", { class: "num", title: plural(c.count, "wait") + " of this place" }, time(c.ns)),
			el("div", {}, "here", c.links.map(step), c.end && " ← " + c.end));
		return w.chains.length > 0 && [el("h2", {}, "The chain", el("em", {}, "the waker waited itself: a click goes on to that wait")),
			el("ul", { class: "chains" }, w.chains.map(line))];
	}

	function summary(w) {
		const at = w.longestAtNs, longest = w.longestNs > 0 && [" · ", link("longest " + time(w.longestNs) + " at " + G.model.format(at, "ns"),
			"its time and thread, " + w.longestThread, { ...stacksOf(w), view: "flame", threads: [w.longestThread], range: [at, at + w.longestNs] })];
		return el("p", {}, el("b", { title: "of all threads that waited here" }, time(w.ns)), " in " + plural(w.count, "wait") + " of " + plural(w.threads, "thread") +
			" · " + time(w.ns / w.count) + " on average", longest, " · ",
			link("all stacks", "the flame graph of these waits, from the threads on", { ...stacksOf(w), view: "flame" }), " · ",
			link("callers", "the callers of this function, by these waits", { ...stacksOf(w), through: null, view: "sandwich", fn: w.function }));
	}

	function draw(state) {
		const list = G.data.waits || [], w = find(state.site) || list[0], of = blocked();
		if (!list.length) {
			root.replaceChildren(G.empty("No waits were recorded.", [["flame graph", { view: "flame" }]]));
			return;
		}
		rows.replaceChildren(el("h2", {}, "Where threads wait", el("em", { title: "without idle and sleep" }, time(of) + (state.range ? " · of the whole time, not of the range" : ""))),
			...list.map(x => G.waitRow(x, x === w)));
		const parts = [el("h1", {}, swatch(w.cause), causeName(w.cause), " under ", el("code", { title: w.function }, shortName(w.function, 80))),
			summary(w), w.means && el("p", {}, G.sentence(w.means), w.fix && [" ", el("b", {}, "What helps: "), G.sentence(w.fix)]),
			wakers(w), waiters(w), ran(w), chains(w), el("h2", {}, "Their stacks", el("em", {}, "from the thread to the wait; a click opens the flame graph")), frame];
		page.replaceChildren(...parts.flat(9).filter(Boolean));
		if (shown !== w)
			page.scrollTop = 0;
		shown = w;
		frame.show(state);
		const current = rows.querySelector("[aria-current]");
		if (current)
			current.scrollIntoView({ block: "nearest" });
	}

	/* A flame graph within another view, of what patch() makes of the state; a click opens it. noun: what is weighed. Its show()
	 * draws it. */
	G.inlay = function (noun, patch) {
		const host = el("div", { role: "img", "aria-label": "stacks of these " + noun }), frame = el("div", { class: "wait-graph" }, host);
		let all = 0;
		const graph = G.graph(host, { click: () => G.state.set({ ...patch(), view: "flame" }), over(box) {
			const v = box && box.node.total + box.node.totalB;
			G.status(box ? box.node.name + " — " + time(v) + ", " + percent(v / all) + " of these " + noun : G.words(G.state.now));
		} });
		frame.show = now => {
			const state = { ...now, ...patch(), invert: false }, weights = G.model.weights(state), tree = G.model.view(state);
			all = has(state.what) ? weights.all + weights.allB : 0;
			frame.hidden = !(all > 0);
			if (all > 0)
				graph.show(tree, { state, zoom: tree, up: false, scheme: G.colour.scheme(state, weights), flags: null });
		};
		return frame;
	};

	G.views.waits = {
		about: () => "where threads wait: of each place who waits, who ends it, what that one did meanwhile",
		init(element) {
			root = element;
			root.classList.add("waits-view");
			rows = el("nav", { class: "wait-list", "aria-label": "waits" });
			page = el("section", { class: "wait-page", "aria-label": "one wait" });
			frame = G.inlay("waits", () => stacksOf(shown));
			root.append(rows, page);
		},
		draw,
		key(e) {
			const list = G.data.waits, step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[e.key];
			if (!step || !list.length)
				return false;
			const at = Math.max(0, list.indexOf(find(G.state.now.site)));
			G.state.set({ site: nameOf(list[Math.max(0, Math.min(list.length - 1, at + step))]) }, { replace: true });
			return true;
		},
	};
	G.test.wait = () => shown;
	G.keys.push(["waits"], ["↑ ↓", "the next wait, the one before"]);
})();
