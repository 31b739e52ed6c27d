/*
 * state.js - the one state: what is shown. Each control changes it, undo and redo walk it, the URL's fragment
 * holds what differs from the beginning. Functions are in it by name: a link fits the next recording too.
 */
G.state = (function () {
	const defaults = {
		view: "flame", what: "", range: null, threads: null, processes: null, causes: null,
			focus: null, through: null,
		hidden: [], merged: [], collapse: false, group: "name", search: "", regex: false,
		cased: false,
		invert: false, icicle: true, chains: true, asleep: false, lit: "", split: 0, colour: "auto", order: "name", fn: null, zoom: [], idle: false,
		count: false, sort: null, theme: "auto", side: "both", normalized: true,
	};
	const choices = {
		view: ["flame", "overview", "waits", "tasks", "table", "sandwich", "blocks", "diff"], group: ["name", "each", "task", "none"],
		order: ["name", "size"], colour: ["auto", "kind", "module", "crate", "subsystem", "cause", "diff"],
		theme: ["auto", "dark", "light"], side: ["both", "a", "b"],
	};
	const lists = ["range", "threads", "processes", "causes", "hidden", "merged", "zoom"];
	const listeners = [], past = [], future = [], LIMIT = 500;
	let now = Object.freeze({ ...defaults }), first = now;

	const same = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);

	/* 32 bits of a name: paths of long names would make long links. */
	function hash(text) {
		let h = 0x811c9dc5;
		for (let i = 0; i < text.length; i++)
			h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
		return "~" + (h >>> 0).toString(36);
	}

	/* Does a name of a path in the state mean this function? */
	function means(inPath, name) {
		return inPath === name || inPath.charAt(0) === "~" && inPath === hash(name);
	}

	function fragment(state) {
		const p = new URLSearchParams();
		for (const k of Object.keys(state)) {
			let v = state[k];
			if (same(v, first[k]))
				continue;
			if (k === "zoom")
				v = v.map(x => x.charAt(0) === "~" ? x : hash(x)).join("");
			p.set(k, typeof v === "string" ? v : JSON.stringify(v));
		}
		return p.toString();
	}

	const isList = v => Array.isArray(v) && v.every(x => typeof x === "string" || Number.isFinite(x));

	/* A link may be anything: what does not fit is left as it was. */
	function parse(text) {
		const out = {};
		for (const [k, raw] of new URLSearchParams(text)) {
			if (!Object.hasOwn(defaults, k) || choices[k] && !choices[k].includes(raw))
				continue;
			const d = defaults[k];
			let v = raw;
			if (k === "zoom")
				v = raw.match(/~\w+/g) || [];
			else if (typeof d !== "string" && !(d === null && ["focus", "through", "fn"].includes(k)))
				try {
					v = JSON.parse(raw);
				} catch (e) {
					continue;
				}
			const list = lists.includes(k);
			if (list ? v !== null && !isList(v) : d !== null && typeof v !== typeof d)
				continue;
			if (list && v === null && d !== null || k === "range" && v &&
				!(v.length === 2 && v[0] < v[1]))
				continue;
			out[k] = v;
		}
		return out;
	}

	function put(next, how) {
		const before = now;
		now = Object.freeze(next);
		const url = "#" + fragment(now);
		if (how !== "url" && url !== (location.hash || "#"))
			try {
				history[how === "replace" ? "replaceState" : "pushState"](null, "", url);
			} catch (e) {
				location.replace(url); /* where a page from a file may not */
			}
		tell(before);
	}

	/* All who listen, of a change; at the beginning of what differs from the first state. */
	function tell(before) {
		for (const fn of listeners)
			fn(now, before || first);
	}

	function set(patch, options) {
		const next = { ...now, ...patch }, replace = options && options.replace;
		if (Object.keys(patch).every(k => same(now[k], next[k])))
			return;
		if (!replace) {
			past.push(now);
			future.length = 0;
			if (past.length > LIMIT)
				past.shift();
		}
		put(next, options && options.url ? "url" : replace ? "replace" : "push");
	}

	function walk(from, to) {
		if (!from.length)
			return false;
		to.push(now);
		put({ ...from.pop(), theme: now.theme }, "push");
		return true;
	}

	/* Once the data are there: their first state, then what the link says. */
	function start() {
		first = { ...defaults };
		for (const [k, v] of Object.entries(G.data.meta.initial || {}))
			if (k in first && v !== undefined)
				first[k] = v;
		if (!G.model.whats().some(w => w.key === first.what))
			first.what = G.model.what(first).key;
		now = Object.freeze({ ...first, ...parse(location.hash.slice(1)) });
		addEventListener("popstate", () =>
			set({ ...first, theme: now.theme, ...parse(location.hash.slice(1)) }, { url: true }));
	}

	return {
		get now() { return now; },
		get first() { return first; },
		defaults, choices, same, set, start, tell, means, parse, fragment, hash,
		on: fn => listeners.push(fn),
		undo: () => walk(past, future),
		redo: () => walk(future, past),
		get canUndo() { return past.length > 0; },
		get canRedo() { return future.length > 0; },
	};
})();
