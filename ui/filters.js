/*
 * filters.js - which threads, processes and causes are wanted: the panel, and how the state holds the answer.
 *
 * Threads are chosen by tid, by name, or by a pattern that several names share (rpc-worker-*). A list whose entries begin
 * with "!" wants all but these: the shorter of both is what the address of the page holds.
 */
G.filters = (function () {
	const { el } = G, set = patch => G.state.set(patch), LIMIT = 200, FEW = 60;

	/* Threads by pattern, then by name: Map of Map of indexes. */
	function tree() {
		const out = new Map();
		G.data.threads.forEach(({ name }, i) => {
			const pattern = G.model.pattern(name), names = out.get(pattern) || new Map();
			names.has(name) ? names.get(name).push(i) : names.set(name, [i]);
			out.set(pattern, names);
		});
		return out;
	}

	/* The fewest words for the threads for which want(index) holds. */
	function words(want) {
		const out = [];
		for (const [pattern, names] of tree()) {
			const all = [...names.values()].flat();
			if (names.size > 1 && all.every(want))
				out.push(pattern);
			else
				for (const [name, list] of names)
					if (list.every(want))
						out.push(name);
					else
						out.push(...list.filter(want).map(i => G.data.threads[i].tid));
		}
		return out;
	}

	/* A set of what is wanted, of all, as the state has it. */
	function encode(wanted, all, wordsOf) {
		if (all.every(i => wanted.has(i)))
			return null;
		const yes = wordsOf(i => wanted.has(i)), no = wordsOf(i => !wanted.has(i));
		return !yes.length || yes.length <= no.length ? yes : no.map(x => "!" + x);
	}

	/* What each thread and each cause weighs, whatever of them is shown. */
	function sums(s) {
		const d = G.data, e = d.entries, { minus } = G.model.what(s);
		const f = G.model.filters({ ...s, threads: null, causes: null, processes: null });
		const threads = new Float64Array(d.threads.length), causes = new Float64Array(d.causes.length);
		for (let i = 0; i < e.n; i++)
			if (f.event[e.event[i]] && e.event[i] !== minus) {
				threads[e.thread[i]] += f.cause[e.cause[i]] ? e.value[i] : 0;
				causes[e.cause[i]] += e.value[i];
			}
		return { threads, causes };
	}

	/* Rows of the panel, heaviest first: { name, v, of: what it stands for, deep }. */
	function threadRows(weight) {
		const d = G.data, total = list => list.reduce((sum, i) => sum + weight[i], 0), heavy = (a, b) => b.v - a.v;
		const one = (i, name, deep) => ({ name, v: weight[i], of: [i], deep });
		const byName = ([name, list], deep) => list.length < 2 ? [one(list[0], name, deep)]
			: [{ name: name + " (" + list.length + ")", v: total(list), of: list, deep },
				...list.map(i => one(i, name + " " + d.threads[i].tid, deep + 1)).sort(heavy)];
		const byPattern = ([pattern, names]) => {
			const rows = [...names].map(n => byName(n, names.size > 1 ? 1 : 0)).sort((a, b) => heavy(a[0], b[0])).flat();
			const of = [...names.values()].flat();
			return names.size < 2 ? rows : [{ name: pattern + " (" + of.length + ")", v: total(of), of, deep: 0 }, ...rows];
		};
		return [...tree()].map(byPattern).sort((a, b) => heavy(a[0], b[0])).flat();
	}

	/* One list of the panel: boxes that one ticks and unticks. wanted() is a Set, change(set) is told of a new one. */
	function section(title, rows, wanted, change) {
		const unit = G.model.what(G.state.now).unit, list = el("div", { class: "checks" });
		const find = el("input", { type: "text", placeholder: "find", "aria-label": "find among " + title, oninput: draw });
		const all = rows.flatMap(r => r.of);
		const put = next => {
			change(next);
			draw();
		};
		const button = (text, about, next) => el("button", { title: about, onclick: () => put(next) }, text);
		function line(r, now) {
			const have = r.of.filter(i => now.has(i)).length, box = el("input", { type: "checkbox" });
			box.checked = have === r.of.length;
			box.indeterminate = have > 0 && !box.checked;
			box.onchange = () => {
				const next = new Set(now);
				r.of.forEach(i => box.checked ? next.add(i) : next.delete(i));
				put(next);
			};
			return el("div", { class: "check", style: r.deep ? "padding-left:" + 18 * r.deep + "px" : null },
				el("label", null, box, el("span", { title: r.name }, r.name), r.v ? el("em", null, G.model.format(r.v, unit)) : null),
				button("only", "only " + r.name, new Set(r.of)));
		}
		function draw() {
			const text = find.value.toLowerCase(), now = wanted(), had = list.contains(document.activeElement) ?
				[...list.querySelectorAll("input")].indexOf(document.activeElement) : -1;
			const fit = rows.filter(r => text ? r.name.toLowerCase().includes(text) : !r.deep || rows.length <= FEW);
			list.replaceChildren(...fit.slice(0, LIMIT).map(r => line(r, now)),
				...fit.length > LIMIT || !text && fit.length < rows.length ?
					[el("p", { class: "dim" }, G.model.format(rows.length - Math.min(fit.length, LIMIT), "count") +
						" more: find them by name or tid")] : []);
			if (had >= 0 && list.querySelectorAll("input")[had])
				list.querySelectorAll("input")[had].focus();
		}
		draw();
		return el("div", null, el("h2", null, title, button("all", "all " + title, new Set(all)),
			button("none", "none of them", new Set())), rows.length > 8 ? find : null, list);
	}

	function threads(s, weight) {
		const all = [...G.data.threads.keys()];
		return section("threads", threadRows(weight),
			() => {
				const { thread } = G.model.filters({ ...G.state.now, processes: null });
				return new Set(all.filter(i => thread[i]));
			},
			next => set({ threads: encode(next, all, words), zoom: [] }));
	}

	function processes() {
		const d = G.data, all = d.processes.map(p => p.pid);
		return section("processes", d.processes.map(p => ({ name: p.pid + " " + p.name, v: 0, of: [p.pid], deep: 0 })),
			() => new Set(all.filter(i => G.model.wants(G.state.now.processes, i))),
			next => set({ processes: encode(next, all, want => all.filter(want)), zoom: [] }));
	}

	/* A cause that was not chosen may be left out all the same: idle, and sleep where waits are weighed. */
	function causes(weight) {
		const d = G.data, rows = d.causes.map((c, i) => ({ name: c.name, v: weight[i], of: [i], deep: 0 })).filter(r => r.v);
		const shown = s => {
			const { cause } = G.model.filters(s);
			return rows.map(r => r.of[0]).filter(i => cause[i]);
		};
		const same = (a, b) => a.length === b.size && a.every(i => b.has(i));
		return rows.length > 1 && section("causes", rows, () => new Set(shown(G.state.now)), next => {
			const usual = shown({ ...G.state.now, causes: null });
			set({ causes: same(usual, next) ? null : [...next].map(i => d.causes[i].key), zoom: [] });
		});
	}

	function open(switches) {
		const s = G.state.now, at = document.getElementById("filters").getBoundingClientRect(), sum = sums(s);
		const toggle = ([key, text, , on, off]) => {
			const box = el("input", { type: "checkbox", onchange: () => set({ [key]: box.checked ? on : off, zoom: [] }) });
			box.checked = s[key] === on;
			return el("div", { class: "check" }, el("label", null, box, el("span", null, text)));
		};
		G.popup(el("div", { class: "panel", role: "dialog", "aria-label": "filters" }, threads(s, sum.threads),
			G.data.processes.length > 1 && processes(), causes(sum.causes),
			el("div", null, el("h2", null, "shown"), switches.map(toggle))), at.left, at.bottom + 4);
	}

	/* A list of the state in words; name(entry) is what one of it is called. */
	function say(list, name) {
		const but = G.model.isBut(list), said = list.slice(0, 3).map(x => name(but ? unquote(x) : x));
		return (but ? "without " : "") + (list.length ? said.join(", ") : "none") +
			(list.length > 3 ? " and " + (list.length - 3) + " more" : "");
	}
	const unquote = x => /^!\d+$/.test(x) && !G.data.threads.some(t => t.name === x.slice(1)) ? +x.slice(1) : x.slice(1);

	return { open, say };
})();
