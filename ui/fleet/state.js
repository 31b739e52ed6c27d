/*
 * state.js - what the page of nodes shows: the one state, in the URL's fragment, and the questions to the server that follow from it.
 *
 * A change of the figure, the time or the nodes asks again; a newer question ends the one under way, here and in the server. What was
 * answered stays in sight, dimmed, until the next answer is there.
 */
G.fleet.state = (function () {
	const DAY = 86400;
	/* span: seconds before now, where no time is given. */
	const first = { figure: "cpu", name: "", span: String(DAY), from: "", to: "", target: "", release: "", label: "", sort: "name", view: "map",
		log: "", theme: "auto" };
	const asked = ["figure", "name", "span", "from", "to"];
	const figures = [
		{ word: "cpu", text: "CPU", title: "CPU time of the target: 1 is one CPU, all the time" },
		{ word: "block-mean", text: "block mean", title: "time of a block: the mean" },
		{ word: "block-p95", text: "block p95", title: "time of a block: of 95 in 100 it is less" },
		{ word: "block-max", text: "block max", title: "time of a block: the longest" },
		{ word: "cause", text: "cause", title: "share of a cause of waiting, or of being on the CPU, in the time of threads that had something to do", named: "cause" },
		{ word: "function", text: "function", title: "share of a function and what it calls in the CPU time", named: "function" },
		{ word: "self", text: "self", title: "share of a function, without what it calls, in the CPU time", named: "function" },
		{ word: "rss", text: "memory", title: "resident memory, the largest" },
	];
	const page = String(Math.floor(Math.random() * 1e15)), listeners = [];
	let now = { ...first }, underway = null, number = 0;
	/* What the store said: map, and about its nodes by name; error: a sentence. */
	const data = { map: null, nodes: new Map(), error: "", waiting: false, choices: {} };

	const figure = () => figures.find(f => f.word === now.figure) || figures[0];
	const tell = what => listeners.forEach(f => f(what));

	function read() {
		const given = new URLSearchParams(location.hash.slice(1)), out = { ...first };
		for (const key of Object.keys(first))
			if (given.has(key))
				out[key] = given.get(key);
		if (!figures.some(f => f.word === out.figure))
			out.figure = first.figure;
		return out;
	}

	function write(replace) {
		const p = new URLSearchParams();
		for (const [key, value] of Object.entries(now))
			if (value !== first[key])
				p.set(key, value);
		const hash = "#" + p;
		if (hash === location.hash || (hash === "#" && !location.hash))
			return;
		history[replace ? "replaceState" : "pushState"](null, "", hash === "#" ? location.pathname : hash);
		/* A page that was opened from here leads back to what was shown. */
		try {
			sessionStorage.setItem("fleet", hash);
		} catch { /* a browser that keeps nothing */ }
	}

	/* [from, to] in seconds. */
	function times() {
		const to = now.to ? Number(now.to) : Math.ceil(Date.now() / 60e3) * 60;
		return [now.from ? Number(now.from) : to - Number(now.span), to];
	}

	function set(patch, replace) {
		const before = now;
		now = { ...now, ...patch };
		write(replace);
		tell("state");
		if (asked.some(key => before[key] !== now[key]))
			ask();
	}

	/* A sentence, whatever went wrong. */
	async function get(path, parameters, signal) {
		let answer;
		try {
			answer = await fetch(path + "?" + new URLSearchParams({ ...parameters, page }), { signal });
		} catch (e) {
			throw e.name === "AbortError" ? e : new Error("gasflame serve does not answer: is it still running?");
		}
		if (!answer.ok)
			throw Object.assign(new Error((await answer.text()).trim() || "the server answers " + answer.status), { status: answer.status });
		return answer.json();
	}

	/* A map that is none is said, not drawn. */
	function check(map) {
		const good = map && Array.isArray(map.nodes) && Number.isInteger(map.slots) && map.slot_ms > 0 &&
			map.nodes.every(n => typeof n.target === "string" && Array.isArray(n.values) && n.values.length === map.slots);
		if (!good)
			throw new Error("the answer makes no sense");
		return map;
	}

	function cancel() {
		if (underway)
			underway.abort();
		underway = null;
		data.waiting = false;
	}

	async function ask() {
		const [from, to] = times(), mine = ++number, f = figure();
		cancel();
		data.error = "";
		if (f.named && !now.name) {
			data.map = null;
			tell("data");
			choices(f.named);
			return;
		}
		const stop = underway = new AbortController();
		data.waiting = true;
		tell("waiting");
		try {
			const q = { from, to }, named = f.named ? { name: now.name } : {};
			const [map, nodes] = await Promise.all([get("map", { ...q, ...named, figure: f.word }, stop.signal),
				get("nodes", q, stop.signal).catch(e => { if (e.name === "AbortError") throw e; return []; })]);
			if (mine !== number)
				return;
			data.map = check(map);
			data.nodes = new Map(nodes.map(n => [n.target, n]));
		} catch (e) {
			if (mine !== number || e.name === "AbortError")
				return;
			data.error = e.message;
			data.map = null;
		}
		underway = null;
		data.waiting = false;
		tell("data");
		if (f.named)
			choices(f.named);
	}

	/* What there is to choose from, once for each time. */
	async function choices(of) {
		const [from, to] = times(), key = from - from % 600 + " " + (to - to % 600), known = data.choices[of];
		if (known && known.key === key)
			return;
		try {
			const list = await get("choices", { from, to, figure: of });
			data.choices[of] = { key, list: list.filter(c => typeof c.name === "string") };
			if (of === "cause" && figure().named === "cause" && !now.name && list.length)
				set({ name: list[0].name }, true);
			else
				tell("choices");
		} catch (e) {
			if (e.status !== 409 && !now.name) {
				data.error = e.message;
				tell("data");
			}
		}
	}

	/* Nodes that pass the filters, in their order. */
	function rows() {
		if (!data.map)
			return [];
		const pattern = now.target.trim().toLowerCase(), glob = /[*?]/.test(pattern) && new RegExp("^" + pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".") + "$", "s");
		const has = (target, key, value) => !value || (data.nodes.get(target) || { [key]: [] })[key].includes(value);
		const list = data.map.nodes.filter(n => (glob ? glob.test(n.target.toLowerCase()) : n.target.toLowerCase().includes(pattern)) &&
			has(n.target, "releases", now.release) && has(n.target, "labels", now.label)).map(n => {
			const known = n.values.filter(v => v !== null), most = known.length ? Math.max(...known) : null;
			return { ...n, mean: known.length ? known.reduce((a, b) => a + b, 0) / known.length : null, most, at: n.values.indexOf(most),
				last: known.length ? known[known.length - 1] : null, known: known.length };
		});
		const by = now.sort, text = new Intl.Collator("en", { numeric: true });
		return list.sort((a, b) => by === "name" ? text.compare(a.target, b.target) || (a.target < b.target ? -1 : 1)
			: (b[by] === null ? -1 : b[by]) - (a[by] === null ? -1 : a[by]) || text.compare(a.target, b.target));
	}

	/* All releases or labels of the nodes in sight. */
	const all = key => [...new Set([...data.nodes.values()].flatMap(n => n[key] || []))].sort();

	/* The time of slots from a to b, both included: in seconds. */
	const slots = (a, b) => [(data.map.from_ms + a * data.map.slot_ms) / 1e3, (data.map.from_ms + (b + 1) * data.map.slot_ms) / 1e3];
	/* The page of a node and a time; with a base it is compared with that one. */
	function link(place, base) {
		const p = { target: place.target, from: place.from, to: place.to };
		if (base)
			Object.assign(p, { "base-target": base.target, "base-from": base.from, "base-to": base.to });
		return "open?" + new URLSearchParams(p);
	}

	const theme = () => now.theme === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light" : now.theme;

	function begin() {
		let kept = null;
		try {
			kept = sessionStorage.getItem("fleet");
		} catch { /* none */ }
		if (!location.hash && kept)
			history.replaceState(null, "", kept);
		now = read();
		addEventListener("popstate", () => {
			const before = now;
			now = read();
			tell("state");
			if (asked.some(key => before[key] !== now[key]))
				ask();
		});
		tell("state");
		ask();
	}

	return { get now() { return now; }, data, figures, figure, set, ask, cancel, choices, times, rows, all, slots, link, theme, begin, first,
		on: f => listeners.push(f) };
})();
