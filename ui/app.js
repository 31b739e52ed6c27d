/*
 * app.js - which view is drawn when; search box, keys, theme, what lies above the page, what is said when
 * there is nothing.
 */
(function () {
	const byId = id => document.getElementById(id), { el } = G,
		set = (patch, how) => G.state.set(patch, how);
	const toggle = (key, more) => set({ [key]: !G.state.now[key], ...more });
	const roots = {}, shown = () => G.views[G.state.now.view] ? G.state.now.view : "flame";
	let open = null; /* what lies above the page, and what had the focus before */

	G.close = function () {
		const o = open;
		open = null;
		if (!o)
			return false;
		o.root.remove();
		if (o.back && o.back.isConnected)
			o.back.focus();
		return true;
	};

	/* Puts a menu or panel at a place, inside the window. */
	G.popup = function (root, x, y) {
		G.close();
		open = { root, back: document.activeElement };
		document.body.append(root);
		if (x !== undefined) {
			root.style.left = Math.max(4, Math.min(x, innerWidth - root.offsetWidth - 4)) + "px";
			root.style.top = Math.max(4, Math.min(y, innerHeight - root.offsetHeight - 4)) + "px";
		}
		(root.querySelector("button, input") || root).focus();
	};

	/* Words of the page that not everybody uses in the same sense. */
	const terms = [
		["wall", "all time of the threads, whatever they did: on CPU, in the run queue, waiting"],
		["run queue", "ready to run, but no CPU was free"],
		["idle", "a wait for work, such as of a server without requests; left out unless asked for (0)"],
		["sleep", "a wait that the program asked for, by a timer; left out where waits are weighed"],
		["condition", "a wait until another thread says that something has happened"],
		["self, total", "of a function alone; of it with all that it calls"],
		["own", "code of the program itself, not of libraries (dependency), of the language and the C library (std, libc) or the kernel"],
		["column, cell", "of the heat map: a column is a slice of time, from bottom to top; a cell is a part of that. The darker, the more"],
		["task", "a future that an async runtime polls"],
		["mark", "a stretch of time with a name, such as a block"],
		["focus", "only stacks with that function, from it on"],
		["invert", "the functions that ran stand first, below them who called them"],
		["sandwich", "one function between all that call it and all that it calls"],
		["merge", "a function disappears; what it calls is its caller's"],
		["left out", "too light to be in the file; the figures count it"],
	];

	function help() {
		const list = G.keys.map(([key, text]) => text ? el("div", null, el("kbd", null, key), el("span", null, text)) : el("h2", null, key));
		G.popup(el("div", { id: "keys", role: "dialog", "aria-label": "keys and words", tabindex: "-1" }, el("h2", null, "words"),
			el("dl", null, terms.map(([t, text]) => el("div", null, el("dt", null, t), el("dd", null, text)))),
			el("div", { class: "list" }, list)));
	}

	/* A sentence for a view that has nothing to show, and buttons [text, patch] that lead out. */
	G.empty = (text, ways) => el("p", { class: "empty", role: "alert" }, text + " ",
		(ways || []).map(([t, patch]) => el("button", { onclick: () => set(patch) }, t)));

	/* Why there is nothing, and the way out; null if there is something. */
	G.nothing = function (s) {
		const any = patch => { const w = G.model.weights({ ...s, ...patch }); return w.all > 0 ||
			w.allB > 0; };
		if (any({}))
			return null;
		if (!G.data.entries.n)
			return G.empty("This recording holds no samples. Did the program run meanwhile?");
		const ways = [["under " + G.model.shortName(s.focus || "", 60), "show all functions",
			{ focus: null }], ["through " + G.model.shortName(s.through || "", 60), "show all functions", { through: null }],
			["but what is hidden", "show what is hidden", { hidden: [] }],
			["in this range", "show the whole time", { range: null }],
			["of these threads", "show all threads", { threads: null }],
			["of these processes", "show all processes", { processes: null }],
			["of these causes", "show all causes", { causes: null }],
			["but idle waits", "show those too", { idle: true }],
			["but sleep", "show that too", { asleep: true }],
			["but idle waits and sleep", "show those too", { idle: true, asleep: true }]];
		for (const [text, way, patch] of ways)
			if (any(patch))
				return G.empty("No " + G.model.what(s).name + " " + text + ".",
					[[way, patch]]);
		return G.empty("Nothing is left with these filters.",
			[["take all filters away", { ...G.whole, what: G.state.first.what, count: false }]]);
	};

	/* dark or light, as it is now; on paper light. */
	let paper = false;
	G.theme = function () {
		const t = G.state.now.theme;
		return paper ? "light" : t === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"
			: t;
	};

	function nextTheme() {
		const next = { auto: "dark", dark: "light", light: "auto" }[G.state.now.theme];
		set({ theme: next }, { replace: true });
		G.status("colours: " + (next === "auto" ? "as the system" : next));
	}

	let typing = 0; /* the timer: a search begins when the fingers rest */

	function searchBox(s) {
		const input = byId("search"), matched = byId("matched"),
			found = s.search ? G.model.search(s) : null;
		const w = G.model.weights(s), error = found && found.error;
		if (!typing || document.activeElement !== input)
			input.value = s.search;
		input.classList.toggle("bad", !!error);
		for (const key of ["regex", "cased"])
			byId(key).setAttribute("aria-pressed", s[key]);
		matched.textContent = !found ? "" : error ? "no regex" : !found.functions ? "no match"
			: G.model.percent((found.total + found.totalB) / (w.all + w.allB)) + " matched";
		matched.title = !found ? "" : error || G.model.plural(found.functions, "function") +
			" match, in that share of " + G.model.whole(s) + "; the next one: n";
	}

	function draw(s, before) {
		document.documentElement.dataset.theme = G.theme();
		G.bar.draw(s);
		searchBox(s);
		if (G.views.time)
			G.views.time.draw(s, before);
		for (const [name, root] of Object.entries(roots))
			root.hidden = name !== shown();
		G.views[shown()].draw(s, before);
	}

	const again = () => draw(G.state.now, G.state.now);

	/* Paper has another width, finer dots, and does not scroll. All of it is to be on one page: a deep graph is drawn smaller, as are
	 * tables, which have more columns then; rows that do not fit are left out. */
	const PAGE = 715; /* px of A4 */
	G.ratio = () => paper ? 2 : devicePixelRatio || 1;

	function print(on) {
		const main = byId("main"), size = (h, zoom) => {
			document.documentElement.style.cssText = on ? "zoom:" + zoom + ";width:" + 1050 / zoom + "px" : "";
			main.style.cssText = on ? "flex:none;height:" + h + "px" : "";
			again();
		};
		paper = on;
		size(60, 1);
		if (on) {
			/* With title, verdict and legend. */
			const above = 150 + byId("time").offsetHeight, graph = shown() === "flame" && main.querySelector(".graph").firstChild.offsetHeight + 4;
			const zoom = graph ? Math.max(.55, Math.min(1, PAGE / (above + graph))) : .8;
			size(Math.min(graph || Infinity, PAGE / zoom - above), zoom);
		}
		/* Browsers print what a canvas was told to draw, not what it shows, and lose some of it: it is told to show a picture. */
		for (const c of on ? document.querySelectorAll("canvas") : []) {
			const copy = el("canvas", { width: c.width, height: c.height }), x = copy.getContext("2d", { alpha: false });
			x.fillStyle = "#fff";
			x.fillRect(0, 0, c.width, c.height);
			x.drawImage(c, 0, 0);
			c.width = copy.width;
			c.getContext("2d").drawImage(copy, 0, 0);
		}
	}

	function nextMatch() {
		if (G.views[shown()].found)
			G.views[shown()].found();
	}

	function search() {
		byId("search").focus();
		byId("search").select();
	}

	/* What keys do wherever one is; views come first. */
	const next = (list, x) => list[(list.indexOf(x) + 1) % list.length];
	const keys = {
		"/": search, "?": help, D: nextTheme, x: () => G.bar.filters(),
		v: () => set({ view: "overview" }), W: () => G.hasView("waits") && set({ view: "waits" }), b: () => set({ view: "flame" }),
		t: () => set({ view: "table" }),
		s: () => set({ view: "sandwich" }), d: () => G.show("diff"), B: () => G.show("blocks"), a: () => G.show("tasks"),
		i: () => toggle("invert", { zoom: [] }), g: () => toggle("icicle"),
		r: () => toggle("collapse"),
		o: s => set({ order: next(["name", "size"], s.order) }),
		m: s => set({ group: next(G.model.groupings(), s.group), zoom: [] }),
		k: s => set({ colour: next(G.colour.modes(), s.colour) }),
		w: s => G.hasTwo(s) && set({ side: next(["both", "b", "a"], s.side) }),
		0: () => toggle("idle"), 9: () => toggle("count"),
		Escape: s => set(narrowing.find(patch => !G.state.same(s, { ...s, ...patch })) || {}),
	};
	/* Esc takes these away, one at a time; G.whole all of them. */
	const narrowing = [{ zoom: [] }, { search: "" }, { against: "" }, { range: null, span: null }, { lit: "" }, { focus: null }, { through: null }, { hidden: [] }, { merged: [] },
		{ threads: null }, { processes: null }, { causes: null }];
	G.whole = Object.assign({}, ...narrowing);

	/* With Ctrl, also while somebody types. */
	const withCtrl = { f: search, i: () => toggle("cased") };
	const undoing = { z: () => G.state.undo(), Z: () => G.state.redo(), y: () => G.state.redo() };
	const own = (list, key) => Object.hasOwn(list, key) && list[key];

	function walkPopup(step) {
		const list = [...open.root.querySelectorAll("button, input")];
		if (list.length)
			list[(list.indexOf(document.activeElement) + step +
				list.length) % list.length].focus();
		return true;
	}

	/* True if it was for us. */
	function key(e) {
		const s = G.state.now, ctrl = e.ctrlKey || e.metaKey, { target } = e;
		if (e.key === "Escape" && G.close())
			return true;
		if (open && (e.key === "ArrowDown" || e.key === "ArrowUp"))
			return walkPopup(e.key === "ArrowDown" ? 1 : -1);
		let action = ctrl ? own(withCtrl, e.key.toLowerCase())
			: e.key === "F3" && !e.shiftKey && search;
		const field = /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) && target.type !== "checkbox";
		if (!action && !field && ctrl)
			action = own(undoing, e.shiftKey ? e.key.toUpperCase() : e.key);
		if (!action && (field || ctrl || e.altKey || open && e.key !== "?"))
			return false;
		for (const v of action ? [] : [G.views[shown()], G.views.time])
			if (v && v.key && v.key(e, s))
				return true;
		const what = e.key >= "1" && e.key <= "6" && G.model.whats()[e.key - 1];
		if (!action && what)
			action = () => set({ what: what.key });
		action = action || own(keys, e.key);
		if (action)
			action(s);
		return !!action;
	}

	function listen() {
		const input = byId("search");
		addEventListener("keydown", e => key(e) && e.preventDefault());
		input.oninput = () => {
			clearTimeout(typing);
			typing = setTimeout(() => set({ search: input.value }, { replace: true }), 60);
		};
		input.onkeydown = e => {
			if (e.key !== "Enter" && e.key !== "Escape")
				return;
			clearTimeout(typing);
			typing = 0;
			set({ search: e.key === "Enter" ? input.value : "" }, { replace: true });
			input.blur();
			if (e.key === "Enter")
				nextMatch();
			e.preventDefault();
			e.stopPropagation();
		};
		byId("regex").onclick = () => toggle("regex");
		byId("cased").onclick = () => toggle("cased");
		byId("theme").onclick = nextTheme;
		byId("matched").onclick = nextMatch;
		byId("help").onclick = () => G.close() || help();
		addEventListener("mousedown", e => open && !open.root.contains(e.target) && G.close());
		addEventListener("resize", () => paper || again());
		addEventListener("beforeprint", () => print(true));
		addEventListener("afterprint", () => print(false));
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => paper || again());
	}

	G.keys.push(["everywhere"], ["1 – 6", "what is weighed"], ["/  Ctrl-F  F3", "search"],
		["Ctrl-I", "case matters or not"], ["Ctrl-Z", "undo; with Shift, or Ctrl-Y: redo"],
		["v b W t s d", "overview, flame graph, waits, table, sandwich, diff or comparison"], ["B  a", "blocks; tasks"],
		["x", "filters: threads, processes, causes"],
		["0", "idle waits"], ["9", "counts instead of values"], ["D", "dark, light, as the system"],
		["Esc", "close; then takes away, one at a time: zoom, search, range, focus, what is hidden, filters"], ["?", "this list, and what words mean"]);

	/* Once the data are there. */
	G.start = function () {
		const m = G.data.meta;
		m.warnings = (m.warnings || []).map(G.model.spoken);
		for (const v of G.data.verdict || [])
			v.text = G.model.spoken(v.text);
		G.state.start();
		if (G.data.meta.sides < 2)
			G.data.verdict.push(...G.blockVerdict());
		G.bar.header();
		for (const [name, view] of Object.entries(G.views))
			if (name === "time")
				view.init(byId("time"));
			else
				view.init(byId("main").appendChild(roots[name] = el("div",
					{ class: "view", id: "view-" + name })));
		byId("loading").remove();
		listen();
		G.state.on(draw);
		/* The data have grown. */
		G.refresh = () => {
			G.bar.header();
			again();
		};
		G.state.tell();
		G.ready = true;
	};

	/* Later: the last file's code has run by then. */
	setTimeout(async () => {
		document.documentElement.dataset.theme = G.theme();
		try {
			await G.load();
			G.start();
		} catch (e) {
			const p = byId("loading") || byId("main").appendChild(el("p", { class: "empty" }));
			p.textContent = "This page cannot show its data: " + e.message +
				". The file may be damaged: write it again with gasflame report.";
			console.error(e);
		}
	});
})();
