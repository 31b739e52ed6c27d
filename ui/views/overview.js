/*
 * overview.js - the whole recording at a glance: how good it is, what stands out, where the time of each
 * thread went, where threads wait and what that means. What can be looked at closer is a link.
 */
(function () {
	const FEW = 14, MANY = 20, TOP = innerHeight > 1300 ? 16 : 8, SIDES = ["before", "after"];
	let root, all = false;

	const el = (tag, attributes, ...children) => G.el(tag, attributes, ...children.flat(9));
	const percent = x => G.model.percent(x), time = ns => G.model.format(ns, "ns");
	const go = patch => () => G.state.set(patch);
	const link = (text, patch, title) => el("button", { class: "link", title, onclick: go(patch) }, text);
	const num = (text, of) => el("span", { class: "num", title: of }, text); /* of: what it is a part of */
	const colour = key => "background:" + G.colour.cssOfCause(key);
	const swatch = key => el("i", { class: "swatch", style: colour(key) });
	const head = (text, ...notes) => el("h2", {}, text, notes.filter(Boolean).map(n => el("em", {}, n)));
	const { sentence } = G;
	const toFunction = (fn, n) => link(G.model.fitName(fn, n, 120), { view: "sandwich", fn }, fn);

	const toHolder = (fn, patch) => link(G.model.fitName(fn, 56, 250), patch, fn + ": who calls it");

	function facts() {
		const m = G.data.meta, start = r => r.start.replace("T", " ").replace(/Z$/, " UTC");
		const about = r => [["target", r.target], ["runs in", r.owners],
			["recorded", time(r.recordedNs) + (r.start && " from " + start(r))],
			["on", [r.host, r.kernel].filter(Boolean).join(", Linux ")], ["quality", r.quality]];
		const both = m.before ? [m.before, m] : [m];
		const list = [...both.flatMap((r, i) => [...m.before ? [[SIDES[i], " "]] : [], ...about(r)]),
			...m.warnings.map(w => ["note", w])];
		if (m.leftOut)
			list.push(["left out", percent(m.leftOut.weightShare) + " of the weight, in " +
				G.model.plural(m.leftOut.nodes, "place") + " too light to be in this page"]);
		const line = ([name, text]) => text && [el("dt", {}, name), el("dd", {}, text)];
		return el("dl", {}, list.map(line));
	}

	function verdict() {
		if (G.data.diff)
			return null; /* it is about what changed, and stands there */
		const show = state => ({ class: "link", title: "shows why", onclick: () => G.follow(state) });
		const line = v => v.state ? el("button", show(v.state), sentence(v.text), " ›")
			: sentence(v.text);
		const lines = G.data.verdict.map(v => el("li", {}, line(v), v.advice && el("div", { class: "advice" }, sentence(v.advice))));
		return lines.length ? [head("What stands out"), el("ul", { class: "verdict" }, lines)] : null;
	}

	/* What the comparison of two recordings found. */
	function changes() {
		if (!G.data.diff)
			return null;
		const found = G.changes(TOP);
		const list = found.list.map(c => [num(c.text, "of its self time before"), toFunction(c.name, 60)]);
		return [head("What changed", link("all", { view: "diff" })), el("p", {}, sentence(G.data.verdict[0].text)),
			el("p", {}, found.sentence),
			el("div", { class: "hottest" }, list)];
	}

	/* A thread's time: as it was counted, or of a range from its samples. null: nothing is known. */
	function accountOf(i, range) {
		const d = G.data, t = d.threads[i], [from, to] = range || [0, d.meta.durationNs];
		const counted = t.account && !range;
		if (!counted && !d.samples)
			return null;
		const ns = Array.from(counted ? t.account.ns : G.bins.strip(i, from, to, 1));
		const wall = counted ? t.account.wallNs : Math.min(to, t.endNs) - Math.max(from, t.startNs);
		const sum = ns.reduce((x, y) => x + y, 0);
		return wall <= 0 || !t.account && !sum ? null : { name: t.name, thread: i, side: t.side, ns,
			wall: counted ? wall : Math.max(wall, sum), missing: Math.max(0, wall - sum) };
	}

	/* Of all threads of a side. */
	function together(rows, side) {
		const out = { name: "all" + (G.data.meta.sides > 1 ? ", " + SIDES[side] : " threads"),
			thread: -1, side, wall: 0, missing: 0, ns: G.data.causes.map(() => 0) };
		for (const r of rows.filter(k => k.side === side)) {
			out.wall += r.wall;
			out.missing += r.missing;
			r.ns.forEach((v, k) => out.ns[k] += v);
		}
		return out;
	}

	/* Rows of many threads: those whose names differ in numbers alone are one, whose thread is what they have in common. */
	function grouped(rows) {
		const by = new Map();
		for (const r of rows) {
			const key = r.side + G.model.pattern(r.name);
			by.has(key) ? by.get(key).push(r) : by.set(key, [r]);
		}
		return rows.length <= MANY ? rows : [...by].map(([key, list]) => list.length < 2 ? list[0]
			: { ...together(list, list[0].side), name: key.slice(1) + " (" + list.length + ")", thread: key.slice(1) });
	}

	/* What shows a cause, or a thread, closer. */
	function closer(key, thread) {
		const wall = G.model.whats().some(w => w.key === "wall") ? { what: "wall" } : {};
		return { view: "flame", ...wall, ...key ? { causes: [key], idle: key === "idle" } : {},
			...typeof thread === "string" ? { threads: [thread] } : thread >= 0 ? { threads: [G.handle(thread)] } : {} };
	}

	function bar(r) {
		const wide = v => "flex:" + v / r.wall + " 0 0;";
		const said = v => " " + time(v) + ", " + percent(v / r.wall);
		const part = k => {
			const { key, name } = G.data.causes[k];
			return el("button", { class: "part", tabindex: "-1",
				style: wide(r.ns[k]) + colour(key),
				title: r.name + ": " + name + said(r.ns[k]),
				onclick: go(closer(key, r.thread)) });
		};
		const missing = r.missing > r.wall / 500 &&
			el("span", { class: "part missing", style: wide(r.missing),
				title: r.name + ": not seen" + said(r.missing) });
		return el("div", { class: "account-bar" }, G.stacking().filter(k => r.ns[k] > 0).map(part),
			missing);
	}

	/* Causes of the whole; of two recordings only the shares, before and after. */
	function legend(totals) {
		const { causes, events } = G.data;
		const line = (mark, name, of) => {
			const share = t => percent(of(t) / (t.wall || 1)), [first] = totals;
			const both = () => el("span", {}, totals.map(share).join(" → "));
			return el("div", {}, mark, name, totals.length > 1 ? both()
				: [num(time(of(first)), "of " + time(first.wall) + " of the threads"),
					num(share(first), "of " + time(first.wall) + " of the threads")]);
		};
		const list = G.stacking().filter(k => totals.some(t => t.ns[k] > 0)).map(k =>
			line(swatch(causes[k].key), link(causes[k].name, closer(causes[k].key)),
				t => t.ns[k]));
		const unseen = events.some(e => e.role === "wait") ? "not seen" : "not on CPU";
		if (totals.some(t => t.missing > t.wall / 500))
			list.push(line(el("i", { class: "swatch missing" }),
				el("span", { class: "link" }, unseen), t => t.missing));
		return el("div", { class: "causes" }, list);
	}

	function account(state) {
		const f = G.model.filters(state), range = G.data.samples && state.range;
		const { sides } = G.data.meta;
		const rows = G.threadOrder().map(i => f.thread[i] && accountOf(i, range)).filter(Boolean);
		const totals = SIDES.slice(0, sides).map((s, side) => together(rows, side));
		const sum = totals[sides - 1];
		const cpu = G.data.causes.findIndex(c => c.key === "cpu");
		if (!rows.length)
			return null;
		const which = r => typeof r.thread === "string" ? "these threads" : "thread " + G.data.threads[r.thread].tid;
		const name = r => r.thread < 0 ? r.name : [link(r.name, closer("", r.thread), which(r)), sides > 1 && el("em", {}, SIDES[r.side])];
		const line = r => [el("div", { class: "account-name" }, name(r)), bar(r),
			num(r.wall ? percent(r.ns[cpu] / r.wall) : "", "on CPU, of " + time(r.wall) + " of " + r.name)];
		const more = () => {
			all = !all;
			G.views.overview.draw(G.state.now);
		};
		const n = G.model.plural(rows.filter(r => r.side === sum.side).length, "thread");
		return [head("Where the time went", state.range && G.range(...state.range),
			time(sum.wall) + " of " + n), legend(totals),
			el("div", { class: "account" }, el("div"), el("div"), num("on CPU"), totals.map(line),
				(all ? rows : grouped(rows).slice(0, FEW)).map(line)),
			rows.length > FEW && el("button", { class: "rest", onclick: more },
				all ? "only the busiest" : "all " + rows.length + " threads")];
	}

	/* Of what is weighed. Waits are of the own function above them, not of the kernel's. */
	function hottest(state) {
		const waits = G.model.what(state).events.some(i => /wait|queue/.test(G.data.events[i].role));
		const own = waits || G.own.wanted(state), t = G.tally(state, own ? "own" : "function"), top = [];
		for (let i = 0; i < t.n; i++)
			if (t.self[i] > 0 && (top.length < TOP || t.self[i] > t.self[top[TOP - 1]])) {
				top.push(i);
				top.sort((a, b) => t.self[b] - t.self[a]).splice(TOP);
			}
		const whole = G.model.format(t.all, G.model.unit(state)) + " of " + G.model.whole(state);
		const list = top.map(i => [num(percent(t.self[i] / t.all), G.model.format(t.self[i], G.model.unit(state)) + " of " + whole),
			toFunction(t.label[i], 66)]);
		return list.length ? [head(G.model.unit(state) === "bytes" ? "Largest functions" : "Hottest functions", (own ? "with the libraries and the kernel below, of " : "self, of ") + whole),
			el("div", { class: "hottest" }, list)] : null;
	}

	/* The subsystems of a node, and its opcodes; of the whole recording. */
	function subsystems() {
		const s = G.data.subsystemShares, FEWEST = 0.002;
		if (!s)
			return null;
		const value = v => G.model.format(v, s.unit), share = v => num(percent(v / s.all), value(v) + " of " + value(s.all) + " of " + s.of);
		const number = name => Math.max(0, G.data.subsystems.indexOf(name));
		const waits = r => Object.entries(r.total_by_cause || {}).filter(([key, v]) => key !== "cpu" && v / s.all > FEWEST)
			.sort((a, b) => b[1] - a[1]).slice(0, 3).map(([key, v]) =>
				[swatch(key), (G.data.causes.find(c => c.key === key) || { name: key }).name + " " + percent(v / s.all),
					key === "fault" && r.fault_file ? " (" + r.fault_file.replace(/.*\//, "") + ") " : " "]);
		const show = { view: "flame", colour: "subsystem", ...s.of === "wall" ? { what: "wall" } : {} };
		const timed = s.unit === "ns";
		const line = r => [share(r.self), share(r.total), timed ? share((r.self_by_cause || {}).cpu || 0) : el("i"),
			el("div", {}, el("i", { class: "swatch", style: "background:" + G.colour.ofSubsystem(number(r.name)) }),
				link(r.name, show, "show the colours of subsystems")), el("div", { class: "dim", title: "of " + value(s.all) + " of " + s.of }, waits(r))];
		const op = o => [num(percent(o.total / s.all), "of " + value(s.all) + " of " + s.of), el("div", { title: value(o.total) }, o.name,
			o.kind === "precompile" && el("span", { class: "dim" }, " precompile"))];
		const list = s.rows.filter(r => r.total / s.all > FEWEST), ops = s.operations.slice(0, TOP);
		return [head("By subsystem", "of " + value(s.all) + " of " + s.of),
			el("div", { class: "subsystems" }, ["self", "total", timed ? "on CPU" : ""].map(num), el("div"), el("div", { class: "dim" },
				timed && "waits, with what it calls"), list.map(line)),
			ops.length > 0 && [head("Opcodes and precompiles", "with what they call"),
				el("div", { class: "hottest" }, ops.map(op))]];
	}

	function waits() {
		const list = (G.data.waits || []).slice(0, TOP).map(w => G.waitRow(w));
		return list.length ? [head("Where threads wait", link("all", { view: "waits" }, "who waits, who ends it, the chain")), list] : null;
	}

	/* The parts of RSS, and of the mapped files the largest. */
	function memory() {
		const rows = G.data.memory || [], bytes = v => G.model.format(v, "bytes");
		const rss = rows.reduce((sum, r) => sum + (r.part ? r.bytes : 0), 0);
		const line = r => [num(bytes(r.bytes), "of " + bytes(rss) + " resident"), el("div", { class: r.part ? null : "dim", title: r.note || r.label },
			r.part ? [r.label, r.estimate && " (estimate)", " ", el("span", { class: "dim", title: "of " + bytes(rss) + " resident" },
				percent(r.bytes / rss))] : "\u2003" + r.label)];
		return rss ? [head("Resident memory", bytes(rss) + " at the end"),
			el("div", { class: "hottest" }, rows.map(line))] : null;
	}

	function marks() {
		const long = m => m.endNs - m.startNs;
		return G.markKinds().slice(0, 12).map(kind => {
			const of = G.data.marks.filter(m => m.kind === kind);
			const mean = of.reduce((a, m) => a + long(m), 0) / of.length;
			const show = m => [el("button", { class: "link", title: "choose its time", onclick: () => G.chooseMark(m) }, m.name),
				" " + time(long(m)) + "  "];
			const slow = of.sort((a, b) => long(b) - long(a)).slice(0, 6).filter(long).map(show);
			return [head(kind + "s", G.model.format(of.length, "count"),
				mean && time(mean) + " on average", kind === "block" && G.blocks().length && link("all of them", { view: "blocks" }),
				kind === "long poll" && G.hasView("tasks") && link("by task", { view: "tasks" })),
				slow.length && el("p", {}, "longest: ", slow)];
		});
	}

	G.views.overview = {
		about: () => "the whole recording at a glance: what stands out, where the time went, where threads wait, memory",
		init(element) {
			root = element;
			root.classList.add("overview");
		},
		draw(state) {
			const top = root.scrollTop, column = (...parts) => el("div", {}, parts);
			root.replaceChildren(column(changes(), verdict(), account(state), hottest(state), subsystems()),
				column(waits(), marks(), G.memory.section(head, toHolder), memory(),
					head(G.data.diff ? "The recordings" : "The recording"), facts()));
			root.querySelectorAll("canvas").forEach(c => c.draw()); /* in the document, and so with a size */
			root.scrollTop = top;
		},
		key(e) {
			const page = root.clientHeight;
			const step = { ArrowDown: 60, ArrowUp: -60, PageDown: page, PageUp: -page }[e.key];
			if (step)
				root.scrollTop += step;
			return !!step;
		},
	};
})();
