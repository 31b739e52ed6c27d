/*
 * fleet.js - the page of a store's nodes: its bar, legend, status line and keys, and what a choice leads to.
 */
(function () {
	const { el } = G, F = G.fleet, { state, scale, map, table } = F, byId = id => document.getElementById(id), set = state.set;
	const HOUR = 3600, DAY = 24 * HOUR, spans = [[HOUR, "1 h"], [6 * HOUR, "6 h"], [DAY, "24 h"], [7 * DAY, "7 d"], [30 * DAY, "30 d"]];
	const main = byId("main"), message = el("p", { class: "empty", hidden: true }), wait = el("div", { id: "wait", hidden: true, role: "progressbar", "aria-label": "asking the store" });
	let made = null, rows = [], timer = 0, said = "";

	F.figureText = () => { const f = state.figure(); return f.named ? state.now.name + (f.word === "self" ? ", self" : "") : f.text; };

	/* --- what a choice leads to --- */

	F.open = (place, elsewhere) => elsewhere ? window.open(state.link(place), "_blank", "noopener") : location.assign(state.link(place));
	F.zoom = place => set({ from: String(place.from), to: String(place.to) });
	/* The first is A, the second B; a third is B instead. */
	F.keep = function (place) {
		const same = F.compare.findIndex(p => p.target === place.target && p.from === place.from && p.to === place.to);
		if (same >= 0)
			F.compare.splice(same, 1);
		else
			F.compare[Math.min(F.compare.length, 1)] = place;
		status();
		map.paint();
	};
	F.chose = () => status();

	const words = p => p.target + ", " + scale.span(p.from * 1e3, p.to * 1e3);

	function status() {
		const c = map.chosen, parts = [], button = (text, key, f) => el("button", { onclick: f, title: "key " + key }, text);
		if (F.compare.length)
			parts.push(el("span", null, "A ", el("code", null, words(F.compare[0])), F.compare[1] ? " · B " : " · Shift-click or c on another one is B", F.compare[1] && el("code", null, words(F.compare[1]))),
				F.compare[1] && el("button", { onclick: compare, title: "key d" }, "Compare A with B"), button("Forget", "Esc", forget));
		else if (c)
			parts.push(el("b", null, el("bdi", null, c.target)), el("span", null, scale.span(c.from * 1e3, c.to * 1e3) + " · " + F.figureText() + " " + scale.format(c.value, made.unit) + (c.count > 1 ? " (mean)" : "")),
				button("Open", "Enter", () => F.open(map.chosen)), button("Zoom in", "z", () => F.zoom(map.chosen)), button("Compare …", "c", () => F.keep(map.chosen)));
		else
			parts.push(el("span", { class: "hint" }, said || (rows.length ? "click or Enter: open that node and time · drag: a range · Shift-click or c: compare two · ? keys" : "")));
		parts.push(el("span", { class: "grow" }), state.data.map && el("span", null, "answered in " + G.model.format(state.data.map.took_ms * 1e6, "ns")));
		byId("status").replaceChildren(...parts.filter(Boolean));
	}
	function compare() {
		if (F.compare.length === 2)
			location.assign(state.link(F.compare[1], F.compare[0]));
	}
	function forget() {
		F.compare = [];
		status();
		map.paint();
	}

	/* --- the bar --- */

	const choice = (label, list, value, change) => el("select", { "aria-label": label, title: label, onchange: e => change(e.target.value) },
		list.map(([v, text]) => el("option", { value: v, selected: v === value }, text)));

	function nameBox(f) {
		const list = (state.data.choices[f.named] || { list: [] }).list;
		if (f.named === "cause")
			return choice("cause", [...list.some(c => c.name === state.now.name) || !state.now.name ? [] : [[state.now.name, state.now.name]],
				...list.map(c => [c.name, c.name + " · " + G.model.percent(c.share)])], state.now.name, name => set({ name }));
		const input = el("input", { class: "name", list: "names", value: state.now.name, placeholder: "name of a function, Enter", "aria-label": "function", spellcheck: "false", autocomplete: "off", maxlength: 1000,
			onchange: e => set({ name: e.target.value.trim() }) });
		return [input, el("datalist", { id: "names" }, list.map(c => el("option", { value: c.name }, G.model.percent(c.share))))];
	}

	/* "2026-11-17T02:10", local. */
	const field = t => scale.day(t * 1e3) + "T" + scale.clock(t * 1e3).slice(0, 5);
	function timeBox(label, at, key) {
		return el("input", { type: "datetime-local", "aria-label": label, title: label, value: field(at), onchange(e) {
			const t = Date.parse(e.target.value) / 1e3, now = state.times(), want = key === "from" ? [t, now[1]] : [now[0], t];
			const good = Number.isFinite(t) && want[0] < want[1];
			e.target.classList.toggle("bad", !good);
			if (good)
				set({ from: String(want[0]), to: String(want[1]) });
			else
				say("The time would end before it begins.");
		} });
	}

	/* By a part of what is shown, never into the future. */
	function shift(by) {
		const [from, to] = state.times(), n = to - from, now = Math.floor(Date.now() / 1e3), end = Math.min(now, to + by * n);
		set({ from: String(Math.round(end - n)), to: String(Math.round(end)) });
	}
	function zoomOut() {
		const [from, to] = state.times(), n = to - from, end = Math.min(Math.floor(Date.now() / 1e3), to + n / 2);
		set({ from: String(Math.round(end - 2 * n)), to: String(Math.round(end)) });
	}

	function bar() {
		const s = state.now, f = state.figure(), [from, to] = state.times(), pressed = on => on ? "true" : "false", focus = document.activeElement && document.activeElement.getAttribute("aria-label");
		const any = (label, key, list) => list.length || s[key] ? choice(label, [["", "any " + label], ...[...new Set([...list, ...s[key] ? [s[key]] : []])].map(v => [v, v])], s[key], v => set({ [key]: v }, true)) : null;
		byId("bar").replaceChildren(...[
			el("fieldset", { "aria-label": "figure" }, state.figures.map(g => el("button", { "aria-pressed": pressed(g === f), title: g.title,
				onclick: () => set({ figure: g.word, ...g.named !== f.named ? { name: "" } : {} }) }, g.text))),
			f.named && nameBox(f),
			el("fieldset", { "aria-label": "time" }, spans.map(([n, text]) => el("button", { "aria-pressed": pressed(!s.from && !s.to && Number(s.span) === n), title: "the last " + text,
				onclick: () => set({ span: String(n), from: "", to: "" }) }, text)),
			el("button", { title: "earlier ([)", "aria-label": "earlier", onclick: () => shift(-.5) }, "◂"), timeBox("from", from, "from"), timeBox("until", to, "to"),
			el("button", { title: "later (])", "aria-label": "later", onclick: () => shift(.5) }, "▸"), el("button", { title: "twice the time (-)", "aria-label": "zoom out", onclick: zoomOut }, "−")),
			el("input", { "aria-label": "nodes", placeholder: "/ nodes: reth-*", value: s.target, spellcheck: "false", autocomplete: "off", maxlength: 200, oninput: e => set({ target: e.target.value }, true) }),
			any("release", "release", state.all("releases")), any("label", "label", state.all("labels")),
			choice("order", [["name", "by name"], ["mean", "by mean"], ["most", "by most"], ["last", "by last"]], s.sort, sort => set({ sort }, true)),
			el("span", { class: "grow" }),
			el("button", { "aria-pressed": pressed(logarithmic()), title: "logarithmic scale (l)", onclick: () => set({ log: logarithmic() ? "no" : "yes" }, true) }, "log"),
			el("button", { "aria-pressed": pressed(s.view === "table"), title: "the same as a table (t)", onclick: () => set({ view: s.view === "map" ? "table" : "map" }, true) }, "table"),
		].filter(Boolean).flat());
		if (focus) {
			const again = [...byId("bar").querySelectorAll("[aria-label]")].find(e => e.getAttribute("aria-label") === focus && e.matches("input, select, button"));
			if (again) {
				again.focus();
				if (again.type === "text")
					again.setSelectionRange(again.value.length, again.value.length);
			}
		}
	}

	/* Times of blocks have a long tail. */
	const logarithmic = () => state.now.log ? state.now.log === "yes" : state.figure().word.startsWith("block") && made && made.most > 8 * (made.median || 1);

	/* --- the legend --- */

	F.legend = {
		at(value) {
			const mark = byId("legend").querySelector(".at");
			if (!mark)
				return;
			mark.hidden = value === null || value === undefined || !made;
			if (!mark.hidden)
				mark.style.left = made.at(value) * 100 + "%";
		},
		draw() {
			if (!made) {
				byId("legend").replaceChildren();
				return;
			}
			const canvas = el("canvas", { width: scale.STEPS, height: 1, role: "img", "aria-label": "from " + scale.format(made.low, made.unit) + " to " + scale.format(made.high, made.unit) }), pen = canvas.getContext("2d");
			scale.ramp(state.theme()).forEach((c, i) => { pen.fillStyle = c; pen.fillRect(i, 0, 1, 1); });
			const ticks = made.ticks.filter(t => made.at(t) < .8 && (!made.log || made.at(t) > .22)), ends = made.log ? [made.low, ...ticks] : ticks;
			byId("legend").replaceChildren(
				el("span", { class: "what", title: state.figure().title }, F.figureText()),
				el("div", { class: "ramp" }, canvas, ends.map(t => el("span", { style: "left:" + made.at(t) * 100 + "%" }, scale.format(t, made.unit))),
					el("span", { class: "last", style: "left:100%" }, (made.clipped ? "≥ " : "") + scale.format(made.high, made.unit)), el("i", { class: "at", hidden: true })),
				made.clipped ? el("span", null, "most: " + scale.format(made.most, made.unit)) : "",
				el("span", { class: "none" }, el("i"), "nothing recorded"), el("span", { class: "grow" }),
				state.data.map ? el("span", null, "a column is " + scale.length(state.data.map.slot_ms)) : "");
		},
	};

	/* --- all of it --- */

	function say(text) {
		said = text;
		status();
	}

	function empty(text, ways) {
		message.replaceChildren(text, el("br"), ...(ways || []).map(([words, f]) => el("button", { onclick: f }, words)));
		message.hidden = !text;
	}

	function emptyState() {
		const s = state.now, d = state.data, f = state.figure(), longer = spans.filter(([n]) => n > Number(s.span)).map(([n, text]) => ["the last " + text, () => set({ span: String(n), from: "", to: "" })]);
		if (d.error)
			empty(d.error, [["Try again", state.ask]]);
		else if (f.named && !s.name)
			empty(f.named === "cause" ? "Which cause? The store is asked for those that it has." : "Which function? Type its name above, as reports have it; the list has those that cost most.");
		else if (!d.map)
			empty("Asking the store …");
		else if (!d.map.nodes.length)
			empty("The store has nothing in this time.", longer);
		else if (!rows.length)
			empty("No node passes the filters.", [["take the filters away", () => set({ target: "", release: "", label: "" }, true)]]);
		else if (!rows.some(r => r.known))
			empty(f.word.startsWith("block") ? "No blocks were recorded in this time: record with --log or --rpc." : "Nothing of this figure was recorded in this time.", longer);
		else
			empty("");
	}

	function title() {
		const d = state.data.map, [from, to] = state.times();
		byId("title").replaceChildren(el("b", null, "gasflame"), " · fleet" + (d ? " · " + G.model.plural(rows.length, "node") + (rows.length < d.all_nodes ? " of " + G.model.format(d.all_nodes) : "") : "") + " · " + scale.span(from * 1e3, to * 1e3));
		document.title = "gasflame · fleet · " + F.figureText();
		const left = d && d.all_nodes > d.nodes.length ? "Only the first " + G.model.format(d.nodes.length) + " of " + G.model.format(d.all_nodes) + " nodes are shown: a shorter time has room for more. " : "";
		const away = d && d.away ? (d.away === 1 ? "A shard is" : d.away + " shards are") + " away, and what is there only is missing: " + (d.away_text || "no answer") : "";
		byId("warning").textContent = left + away;
		byId("warning").hidden = !(left || away);
	}

	function draw() {
		document.documentElement.dataset.theme = state.theme();
		rows = state.rows();
		const values = rows.flatMap(r => r.values.filter(v => v !== null)), d = state.data.map;
		made = null;
		if (d && values.length) {
			const sorted = Float64Array.from(values).sort(), median = sorted[sorted.length >> 1];
			made = { most: sorted[sorted.length - 1], median };
			made = { ...scale.make(values, d.unit, logarithmic()), median };
		}
		bar();
		emptyState();
		const show = !!made && message.hidden;
		map.root.hidden = !show || state.now.view !== "map";
		table.root.hidden = !show || state.now.view !== "table";
		if (!map.root.hidden)
			map.draw(rows, made);
		if (!table.root.hidden)
			table.draw(rows, made);
		F.legend.draw();
		title();
		status();
	}

	function waiting(on) {
		clearTimeout(timer);
		main.classList.toggle("stale", on && !!state.data.map);
		map.root.classList.toggle("stale", on);
		/* A quick answer needs no bar. */
		timer = on ? setTimeout(() => { wait.hidden = false; say("Asking the store … (Esc ends it)"); }, 150) : 0;
		if (!on) {
			wait.hidden = true;
			said = "";
		}
	}

	const help = [["arrows, Home, End, PgUp, PgDn", "choose a node and a time; with Shift a longer time"], ["Enter, click", "open that node and time; with Ctrl in another tab"], ["drag", "choose a range of time"],
		["c, Shift-click", "keep it for a comparison, as A or B"], ["d", "compare A with B"], ["z, −", "zoom into the chosen time, and out"], ["[ ]", "earlier, later"], ["f", "the next figure"],
		["/", "filter the nodes: a part of the name, or a pattern like reth-*"], ["l", "logarithmic scale"], ["t", "the same as a table"], ["r", "ask again"], ["D", "dark, light, as the system"], ["Esc", "end the question; forget what is kept or chosen; close"]];
	function keys() {
		const there = byId("keys");
		if (there)
			return there.remove();
		document.body.append(el("div", { id: "keys", role: "dialog", "aria-label": "keys", tabindex: -1 }, el("h2", null, "Keys"),
			el("div", { class: "list" }, help.map(([k, text]) => el("div", null, el("kbd", null, k), el("span", null, text))))));
		byId("keys").focus();
	}
	function nextTheme() {
		set({ theme: { auto: "dark", dark: "light", light: "auto" }[state.now.theme] }, true);
	}

	addEventListener("keydown", e => {
		const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName), at = state.figures.indexOf(state.figure());
		if (e.key === "Escape") {
			if (byId("keys"))
				byId("keys").remove();
			else if (typing)
				document.activeElement.blur();
			else if (state.data.waiting) {
				state.cancel();
				waiting(false);
				say("The question was ended; r asks again.");
			} else if (F.compare.length)
				forget();
			else
				map.key(e);
			return;
		}
		if (typing || e.ctrlKey && e.key !== "Enter")
			return;
		const actions = { d: compare, t: () => set({ view: state.now.view === "map" ? "table" : "map" }, true), l: () => set({ log: logarithmic() ? "no" : "yes" }, true), "/": () => byId("bar").querySelector("[aria-label=nodes]").focus(),
			"?": keys, D: nextTheme, r: state.ask, "[": () => shift(-.5), "]": () => shift(.5), "-": zoomOut, f: () => set({ figure: state.figures[(at + 1) % state.figures.length].word, name: "" }) };
		const own = !map.root.hidden && !/^(BUTTON|A)$/.test(document.activeElement.tagName) && map.key(e);
		if (own || Object.hasOwn(actions, e.key)) {
			e.preventDefault();
			if (!own)
				actions[e.key]();
		}
	});
	byId("theme").onclick = nextTheme;
	byId("help").onclick = keys;
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
	main.replaceChildren(wait, message, map.root, table.root);
	state.on(what => {
		if (what === "waiting")
			waiting(true);
		else if (what === "choices")
			bar();
		else {
			if (what === "data")
				waiting(false);
			draw();
		}
	});
	state.begin();
	F.ready = true;
})();
