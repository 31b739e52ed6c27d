/*
 * bar.js - the lines above and below the views: title, verdict, tool bar, filters, legend, conditions,
 * status.
 */
G.bar = (function () {
	const byId = id => document.getElementById(id), { el } = G, set = patch => G.state.set(patch);
	const two = () => G.data.meta.sides > 1;

	/* Opens a view, if the page has it. What was chosen is compared with the rest, unless something else was asked for. */
	G.show = view => G.hasView(view) && set({ view, ...view === "diff" && !two() && !G.state.now.against ? { against: "rest" } : {} });

	G.status = (...parts) => byId("status").replaceChildren(...parts);

	/* items: [colour, text, title, what a click sets, whether that is so now] */
	G.legend = function (items) {
		byId("swatches").replaceChildren(...items.map(([colour, text, title, patch, on]) => {
			const item = el("span", { title }, colour && el("i", { style: "background:" + colour }), text);
			return patch ? el("button", { onclick: () => set(patch), "aria-pressed": String(!!on) }, item) : item;
		}));
		byId("legend").hidden = !items.length && !byId("chips").childElementCount;
	};

	/* What narrows the view, as [words, what takes it away, whether it is so at first]. */
	function conditions(s) {
		const out = [], short = name => G.model.shortName(name, 32),
			second = ns => +(ns / 1e9).toFixed(3);
		const add = (text, patch, usual) => out.push([text, patch, usual]);
		const thread = t => typeof t === "string" ? t : (G.data.threads.find(x => x.tid === t) ||
			{ name: "thread" }).name + " " + t;
		const cause = k => (G.data.causes.find(c => c.key === k) || { name: k }).name;
		if (s.range)
			add(G.blockOf(s.range) ? G.rangeName(s.range) : second(s.range[0]) + "–" + second(s.range[1]) + " s",
				{ range: null, span: null });
		if (G.sides(s))
			add("against " + G.sides(s)[0].name, { against: "" });
		if (s.threads)
			add(G.filters.say(s.threads, thread), { threads: null });
		if (s.processes)
			add("process " + G.filters.say(s.processes, p => p), { processes: null });
		if (s.causes)
			add(G.filters.say(s.causes, cause), { causes: null });
		else if (G.model.hidesSleep(s))
			add("without sleep", { asleep: true }, true);
		if (s.focus)
			add("under " + short(s.focus), { focus: null, zoom: [] });
		if (s.through)
			add("through " + short(s.through), { through: null, zoom: [] });
		for (const [key, word] of [["hidden", "without "], ["merged", "merged "]])
			for (const name of s[key])
				add(word + short(name), { [key]: s[key].filter(x => x !== name) });
		for (const [key, , words, on, off] of switches())
			if (s[key] === on && words)
				add(words, { [key]: off, zoom: [] });
		return out;
	}

	/* Of the filter panel: key of the state, its label, as a condition, on, off. */
	const switches = () => [["idle", "idle waits (0)", "with idle", true, false],
		...G.data.causes.some(c => c.key === "sleep") ? [["asleep", "sleep, where waits are weighed", "with sleep", true, false]] : [],
		["count", "counts, not values (9)", "counts", true, false],
		["group", "threads merged (m)", "threads merged", "none", "name"],
		...G.model.groupsThreads() ? [["group", "threads one by one (m)", "threads one by one", "each", "name"]] : [],
		...G.model.groupings().includes("task") ? [["group", "by task (m)", "by task", "task", "name"]] : [],
		["collapse", "recursion collapsed (r)", "recursion collapsed", true, false],
		["chains", "what leads to all else in one row", "", true, false],
		["order", "heaviest first (o)", "", "size", "name"]];

	/* The state in words. */
	G.words = s => [s.view === "waits" ? "wait" : G.model.what(s).name, ...conditions(s).map(c => c[0]),
		...s.invert ? ["inverted"] : []].join(" · ");

	function chips(s) {
		const list = conditions(s);
		if (s.zoom.length && s.view === "flame")
			list.push(["zoomed", { zoom: [] }]);
		const chip = (text, title, patch) => el("button", { title, onclick: () => set(patch) }, text);
		const few = G.model.few(s) ? [el("span", { class: "warn" }, G.model.whole(s))] : [];
		byId("chips").replaceChildren(...few, ...list.map(([text, patch]) => chip(text, "take away: " + text, patch)),
			...list.filter(c => !c[2]).length > 1 ? [chip("reset all", "take all of these away",
				Object.assign({}, ...list.filter(c => !c[2]).map(c => c[1]), G.whole))] : []);
	}

	const filters = () => G.filters.open(switches());

	const pressed = (on, text, title, onclick, attributes) =>
		el("button", { "aria-pressed": String(on), title, onclick, ...attributes }, text);

	/* options: [value, text] */
	function select(key, label, title, options) {
		const e = el("select", { "aria-label": label, title,
			onchange: () => e.value && set({ [key]: e.value }) },
			options.map(([value, text]) => el("option", { value }, text)));
		e.value = options.some(o => o[0] === G.state.now[key]) ? G.state.now[key] : "";
		return e;
	}

	const gap = () => el("div", { class: "gap" });

	function tools(s) {
		const whats = G.model.whats(), few = innerWidth < 600 ? 0 : innerWidth < 1400 && whats.length > 6 ? G.hasTwo(s) ? 3 : 4 : 6; /* one line, if that is enough */
		const rest = whats.slice(few).map(w => [w.key, w.name]), st = G.state;
		return [
			...whats.slice(0, few).map((w, i) => pressed(G.model.what(s).key === w.key, w.name,
				(w.about || w.name) + " (" + (i + 1) + ")", () => set({ what: w.key }),
				{ "data-what": w.key })),
			rest.length && select("what", "what is weighed", "what else was recorded",
			[...few ? [["", "more"]] : [], ...rest]), gap(),
			...["overview", "flame", "waits", "tasks", "table", "sandwich", "blocks", "diff"].filter(G.hasView)
				.map(v => pressed(s.view === v, v === "diff" && !two() ? "compare" : v, G.about({ ...s, view: v }), () => G.show(v),
					{ "data-view": v })), gap(),
			pressed(s.invert, "invert", "leaf first: callers grow from what was running (i)",
				() => set({ invert: !s.invert, zoom: [] })),
			pressed(s.icicle, "icicle", "root at the top (g)", () => set({ icicle: !s.icicle })),
			gap(),
			el("label", null, "colour "), select("colour", "colour", "what colours mean (k)",
				G.colour.modes().map(m => [m, m])),
			...G.hasTwo(s) ? [el("label", null, " width "),
			select("side", "width", "what the width of a box is (w)", [["both", "both"],
				["b", G.sideWords(s)[1]], ["a", G.sideWords(s)[0]]])] : [], gap(),
			G.data.samples && el("button", { title: "type a range or a block: 12.3s-14s, block 976 (R)",
				onclick: G.askRange }, "range"),
			pressed(!!(s.threads || s.processes || s.causes), "filters",
			"threads, processes, causes (x)", filters,
				{ id: "filters" }),
			el("div", { class: "grow" }),
			el("button", { title: "undo (Ctrl-Z)", "aria-label": "undo", onclick: st.undo,
			disabled: !st.canUndo }, "↶"),
			el("button", { title: "redo (Ctrl-Shift-Z)", "aria-label": "redo", onclick: st.redo,
			disabled: !st.canRedo }, "↷"),
		].filter(Boolean);
	}

	function draw(s) {
		/* The keyboard's focus stays where it is. */
		const bar = byId("bar"), all = () => [...bar.querySelectorAll("button,select")];
		const had = all().indexOf(document.activeElement);
		bar.replaceChildren(...tools(s));
		if (had >= 0 && all()[had])
			all()[had].focus();
		chips(s);
		G.legend([]);
		G.status(el("span", null, G.words(s)), el("span", { class: "hint" }, G.about(s)));
	}

	/* A view is there if it has something to show. */
	G.hasView = v => !!G.views[v] && (v !== "diff" || two() || !!G.data.samples) && (v !== "waits" || (G.data.waits || []).length > 0) &&
		(v !== "blocks" || !two() && G.blocks().length > 0) && (v !== "tasks" || !two() && !!G.data.tasks);

	/* What a view shows, in one line. */
	G.about = s => {
		const { about } = G.views[s.view] || {};
		return about ? about(s) : s.view;
	};

	/* A link of the verdict: shows what it says, whatever was filtered before, in the time in which it was. */
	G.follow = function (state) {
		const next = { ...G.state.now, ...G.whole, view: "flame", ...state };
		const [cause, fn] = (state.site || "").split(/ (.*)/);
		const proof = state.site ? { ...next, what: "wait", causes: [cause], through: fn } : next;
		set({ ...next, range: state.range || (state.what && !state.fn ? G.model.extent(proof) : null) });
	};

	/* Names in backquotes are code. */
	G.sentence = function (text) {
		const code = name => el("code", { title: name }, G.model.shortName(name, 70));
		return text.split("`").map((part, i) => i % 2 ? code(part) : part);
	};

	function header() {
		const m = G.data.meta, name = m.target || "profile", verdict = G.data.verdict || [],
			left = m.leftOut;
		const when = r => [r.recordedNs && G.model.format(r.recordedNs, "ns"), r.start &&
			"from " + r.start.replace("T", " ").replace(/Z$/, "")].filter(Boolean).join(" ");
		const called = r => [el("b", null, r.target || "profile"), when(r) && " · " + when(r)];
		byId("title").replaceChildren("gasflame · ", ...(m.before ? [...called(m.before), " → ",
			...called(m)] : [...called(m), m.quality && " · " + m.quality]).filter(Boolean));
		byId("title").title = byId("title").textContent;
		document.title = (m.before ? "diff of " : "") + name + " · gasflame";
		const all = verdict.map(v => v.text).join("\n"), more = verdict.length - 1;
		const link = (text, title, go, kind) => el("button", { class: "link " + (kind || ""), title,
			onclick: go }, ...G.sentence(text), " ›");
		const [first] = verdict, said = first && [first.text, first.advice].filter(Boolean).join("\n\n");
		const warnings = [...m.warnings || []];
		if (left)
			warnings.unshift(G.model.percent(left.weightShare) + " was left out for size, in " +
				G.model.format(left.nodes, "count") + " boxes");
		byId("verdict").replaceChildren(...!first ? [] : [first.state ? link(first.text, said, () => G.follow(first.state), "first")
			: el("span", { title: said, class: "first" }, ...G.sentence(first.text))],
			...more > 0 && G.views.overview ? [link(more + " more", all, () => set({ view: "overview" }), "all")] : [],
			...warnings.map(w => el("span", { class: "warn", title: w }, w)));
	}

	return { draw, header, filters };
})();
