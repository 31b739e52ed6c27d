/*
 * tasks.js - the tasks of an async runtime by type: how often and how long they were polled, lay in the queue and awaited. The
 * page of one type: its long polls, which keep a worker from all other tasks, and who ends its awaits. A click on another type
 * goes on along the chain.
 *
 * The figures are the recorder's (src/analyze/task) and of the whole recording; the stacks follow the range.
 */
(function () {
	Object.assign(G.state.defaults, { task: "", tasksort: "longestNs", tasksdown: true, taskfilter: "" });
	let root, grid, filter, note, page, frame, shown = null, rows = [];

	const { el } = G, set = patch => G.state.set(patch), { percent, plural, shortName } = G.model, time = ns => G.model.format(ns, "ns"), code = (fn, n) => el("code", { title: fn }, shortName(fn, n));
	const link = (text, title, patch) => el("button", { class: "link", title, onclick: () => set(patch) }, text);
	const sum = key => rows.reduce((n, t) => n + t[key], 0) || 1, of = i => rows[i];
	const toTask = (i, n) => link("task " + shortName(of(i).name, n), of(i).name + ": who wakes that one", { task: of(i).name });
	/* Who ended most of the time that it awaited. */
	const waker = (i, n = 1e3) => of(i).wakers.map(w => w.type < 0 ? w.kind || w.thread : "task " + shortName(of(w.type).name, n - 5))[0] || "–";

	/* The stacks of a type; threads would say where the runtime happened to run. */
	const stacksOf = (t, what) => ({ view: "flame", what, focus: "task " + t.name, through: null, group: "none", threads: null, zoom: [] });

	function columns() {
		const number = (key, title, about, width, more) => ({ key, title, about, width, value: i => of(i)[key],
			text: i => G.model.format(of(i)[key], /Ns$/.test(key) ? "ns" : "count"), ...more });
		/* A time as a share of that of all types; each: of what there is so much. */
		const share = (key, title, about, each) => number(key, title, about, 92, { bar: i => of(i)[key] / sum(key),
			tip: i => percent(of(i)[key] / sum(key)) + " of " + time(sum(key)) + " of all tasks; " + time(of(i)[key] / (of(i)[each] || 1)) +
				" a " + (each === "polls" ? "poll" : "task") + " on average" });
		return [number("seen", "tasks", "how many were seen", 60, { extra: true }),
			number("alive", "alive", "how many there were at the end", 54, { extra: true }),
			number("polls", "polls", "how often the runtime polled them", 72, { extra: true, tip: i => percent(of(i).polls / sum("polls")) + " of " + plural(sum("polls"), "poll") }),
			number("meanNs", "mean poll", "how long a poll took, on average", 92, { extra: true }),
			number("longestNs", "longest", "the longest poll: so long its worker was blocked", 84, { className: i => of(i).longPolls ? "slow" : "" }),
			share("pollNs", "polling", "time in polls", "polls"), share("queueNs", "queue", "time ready, until the poll", "polls"),
			{ ...share("awaitNs", "awaiting", "time until the wake-up", "seen"), extra: true },
			{ key: "name", title: "task", about: "the type of the future that was spawned", left: true, fit: true, className: () => "name",
				value: i => of(i).name, text: i => of(i).name },
			{ key: "waker", title: "woken by", about: "who ended most of the time that they awaited", left: true, extra: true, width: 180, value: i => waker(i),
				text: i => waker(i), fit: waker }];
	}

	/* Polls that blocked a worker, the longest first. A click shows what its thread did in that time. */
	function long(t) {
		const list = G.data.tasks.longPolls.filter(p => of(p.type) === t), cause = key => G.data.causes.find(c => c.key === key).name;
		const did = p => Object.entries(p.ns).sort((x, y) => y[1] - x[1]).slice(0, 3).filter(c => c[1] > (p.endNs - p.startNs) / 100).map(([key, ns]) => ["\u2002",
			el("i", { class: "swatch", style: "background:" + G.colour.cssOfCause(key) }), cause(key) + " " + percent(ns / (p.endNs - p.startNs))]);
		const line = p => [el("span", { class: "num" }, time(p.endNs - p.startNs)),
			el("button", { class: "link num", title: "what its thread did in this time", onclick: () => G.chooseMark({ kind: "long poll", ...p }) },
				"at " + (p.startNs / 1e9).toFixed(3) + " s"),
			el("div", {}, p.function && code(p.function, 60), did(p), p.queued > 0 && el("span", { class: "dim", title: "tasks in the queue of its worker meanwhile" }, " · " + p.queued + " queued"))];
		return list.length > 0 && el("div", {}, el("h2", {}, "Long polls", el("em", {}, plural(t.longPolls, "time") + ", a worker was blocked by it")),
			el("div", { class: "facts" }, list.slice(0, 20).map(line)));
	}

	/* Who ended its awaits: another task, to which a click goes on, a timer, a thread. */
	function wakers(t) {
		const all = t.awaitedNs, share = ns => G.share(ns, all, time(all) + " of awaits");
		const line = (w, i) => [share(w.ns), el("details", { open: !i && w.stack.length > 0 },
			el("summary", {}, w.kind && el("b", {}, w.kind + " "), w.type < 0 ? w.thread : toTask(w.type, 60), w.function && [" in ", code(w.function, 50)],
				el("span", { class: "dim" }, " " + plural(w.count, "await") + " · " + time(w.ns / (w.count || 1)) + " on average")), G.stackList(w.stack))];
		return all > 0 && el("div", {}, el("h2", {}, "Who ends its awaits", el("em", {}, "and from where")), el("div", { class: "facts two" }, t.wakers.map(line),
			t.notEndedNs > 0 && [share(t.notEndedNs), "not ended yet"]));
	}

	function describe(state, t) {
		const wall = t.pollNs + t.queueNs + t.awaitNs || 1, head = el("h2", {}, "Their stacks");
		const ways = [["await", "its awaits"], ["taskqueue", "what ran while it was queued"], ["spawn", "who spawned it"]].filter(w => G.model.whats().some(x => x.key === w[0]));
		page.replaceChildren(el("h1", {}, "task ", code(t.name, 90)), el("p", {}, time(wall) + ": " + ["polling", "queued", "awaiting"].map((word, i) =>
			percent([t.pollNs, t.queueNs, t.awaitNs][i] / wall) + " " + word).join(", "), t.blocking && " · in the pool for blocking calls", ways.map(([what, words]) => [" · ",
			link(words, "the flame graph", what === "spawn" ? { ...stacksOf(t, what), focus: null, through: "task " + t.name } : stacksOf(t, what))])),
			t.behind.length ? el("p", {}, "queued ", t.behind.map((b, i) => [i ? ", " : "", b.type < 0 ? "at an idle worker" : ["behind ", toTask(b.type, 40)], " " + time(b.ns)])) : "",
			el("div", { class: "task-parts" }, long(t), wakers(t)), head, frame);
		if (shown !== t)
			page.scrollTop = 0;
		shown = t;
		frame.show(state);
		head.hidden = frame.hidden;
	}

	function draw(state) {
		const words = state.taskfilter.toLowerCase().split(/\s+/), has = i => words.every(w => (of(i).name + " " + waker(i)).toLowerCase().includes(w));
		filter.sync(state);
		grid.show([...rows.keys()].filter(has), state.tasksort, state.tasksdown, !rows.length ? "No tasks were recorded." : "No task has “" + state.taskfilter + "”. Esc in the filter shows all.");
		const { lost } = G.data.tasks || {}, found = rows.findIndex(t => t.name === state.task), at = found < 0 ? grid.ids.find(i => of(i).longPolls) ?? grid.ids[0] : found;
		note.textContent = plural(rows.length, "type") + " · " + plural(sum("polls"), "poll") + (lost ? " · " + plural(lost, "event") + " lost" : "") +
			(state.range ? " · of the whole time, not of the range" : "");
		page.hidden = at === undefined;
		if (page.hidden)
			return;
		grid.reach(at);
		describe(state, of(at));
	}

	function init(element) {
		root = element;
		root.classList.add("grid-view");
		rows = (G.data.tasks || { types: [] }).types;
		for (const t of rows)
			t.meanNs = t.pollNs / (t.polls || 1);
		filter = G.filterBox(() => grid, "taskfilter");
		note = el("span", { class: "note" });
		grid = G.grid({ label: "tasks", columns: columns(), pick: i => set({ task: of(i).name }), tie: i => of(i).pollNs,
			open: i => set(stacksOf(of(i), "await")), sort: (tasksort, tasksdown) => set({ tasksort, tasksdown }) });
		page = el("section", { class: "wait-page", "aria-label": "one type" });
		frame = G.inlay("awaits", () => stacksOf(shown, "await"));
		root.append(el("div", { class: "grid-bar" }, filter, note), el("div", { class: "tasks" }, grid.root, page));
	}

	function key(e) {
		if (e.key === "\\")
			filter.focus();
		else if (!grid.key(e))
			return false;
		else if (G.state.now.view === "tasks" && of(grid.chosen))
			G.state.set({ task: of(grid.chosen).name }, { replace: true });
		return true;
	}

	const about = () => "async tasks by type: time polled, queued and awaiting; what blocked a worker; who wakes them (a)";
	G.views.tasks = { init, draw, key, about };
	G.test.tasks = () => ({ rows: grid.ids.map(i => of(i).name), shown: shown && shown.name });
	G.keys.push(["tasks"], ["↑ ↓ Enter", "choose a type; open its awaits by who ended them"]);
})();
