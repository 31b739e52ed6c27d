/*
 * model.js - what the views draw: weights of the tree's nodes under a state, and the tree as it is displayed.
 *
 * The base tree (G.data.tree) never changes. weights() adds up what a state selects, once; view() gives
 * display
 * nodes, which are expanded only where somebody looks. A display node stands for its members: base nodes that
 * have the same path once threads are merged, functions folded into their callers, recursion collapsed.
 */
var G = G || {};
G.views = G.views || {};
G.keys = G.keys || [];
G.test = G.test || {};

G.model = (function () {
	const kept = [], GROUP = 1, FEW = 30; /* weights of the last states; of enum ident_kind: a thread; samples */
	const keep = () => G.data.tree.n > 1e6 ? 2 : 8; /* 5 million nodes are 80 MB each time */
	let byName = null, lower = null, list = null;

	/* What can be weighed: [{ key, name, unit, events }], all of a thread's time first where it was
	 * recorded. */
	function whats() {
		if (list)
			return list;
		const { events, entries } = G.data, held = new Uint8Array(events.length),
			rank = ["cpu", "wait", "other", "queue"];
		for (let i = 0; i < entries.n; i++)
			held[entries.event[i]] = 1;
		const there = [...held.keys()].filter(i => held[i]),
			timed = there.filter(i => events[i].role !== "other");
		/* Both together are looked at before each of them. */
		const io = there.filter(i => ["read", "write"].includes(events[i].name) &&
			events[i].unit === "bytes");
		/* Of one alone only where the command line asks. */
		const both = io.length > 1 || io.length && (G.data.meta.initial || {}).what === "io";
		const place = i => both && io.includes(i) ? rank.length : rank.indexOf(events[i].role);
		const order = (a, b) => place(a) - place(b) || a - b;
		list = there.sort(order).map(i => ({ key: events[i].name, name: G.model.label(events[i].name),
			unit: events[i].unit, about: events[i].describe, events: [i] }));
		if (both)
			list.splice(there.findIndex(i => place(i) > 1), 0, { key: "io", name: "io",
				unit: "bytes", events: io,
				about: "bytes read and written, as the calls returned them" });
		grow(events, there);
		if (new Set(timed.map(i => events[i].role)).size > 1)
			list.unshift({ key: "wall", name: "wall", unit: "ns", events: timed,
				about: "all time of the threads: on CPU, in the run queue, waiting" });
		return list;
	}

	/* The heap at any moment: what was allocated less what was freed. The latter alone is looked at least. */
	function grow(events, there) {
		const find = name => there.find(i => events[i].name === name && events[i].unit === "bytes");
		const alloc = find("alloc"), freed = find("freed"), at = key => list.findIndex(w => w.key === key);
		if (alloc === undefined || freed === undefined || !events.some(e => e.name === "temporary"))
			return;
		list.push(...list.splice(at("freed"), 1));
		list.splice(at("alloc"), 0, { key: "growth", name: "growth", unit: "bytes", events: [alloc, freed],
			minus: freed, about: "allocated less freed in the chosen time; if that begins with the " +
				"recording, it is what was alive at its end" });
	}

	function what(state) {
		return whats().find(w => w.key === state.what) || whats()[0] ||
			{ key: "", name: "nothing", unit: "count", events: [] };
	}

	function unit(state) {
		return state.count ? "count" : what(state).unit;
	}

	/* What is counted: "sample", "wait", "event". */
	function noun(state) {
		const roles = what(state).events.map(i => G.data.events[i].role);
		return roles.every(r => r === "cpu") ? "sample"
			: roles.every(r => r === "wait" || r === "queue") ? "wait" : "event";
	}

	/* How many samples are shown, where they are so few that no share is sure; else 0. */
	function few(state) {
		const { events } = what(state), { role, period } = G.data.events[events[0]] || {}, { all, allB } = weights(state);
		const n = events.length === 1 && role === "cpu" && period ? Math.round((all + allB) / (state.count ? 1 : period)) : 0;
		return n < FEW ? n : 0;
	}
	/* What shares are of, in words. */
	const whole = state => few(state) ? "only " + G.model.plural(few(state), "sample") : what(state).name;

	/* One byte an ident: is it called one of these names? */
	function named(names) {
		const flags = new Uint8Array(G.data.idents.n), name = G.data.idents.name;
		if (names.length && !byName) {
			byName = new Map();
			const add = (k, i) => byName.has(k) ? byName.get(k).push(i) : byName.set(k, [i]);
			for (let i = 0; i < name.length; i++) {
				add(name[i], i);
				if (G.data.idents.note[i] === GROUP && pattern(name[i]) !== name[i])
					add(pattern(name[i]), i);
			}
		}
		for (const x of names)
			for (const i of byName.get(x) || [])
				flags[i] = 1;
		return flags;
	}

	/* What names of threads that differ in numbers alone have in common. */
	const patterns = new Map();
	function pattern(name) {
		if (!patterns.has(name))
			patterns.set(name, name.replace(/\d+/g, "*"));
		return patterns.get(name);
	}

	/* Does a list of the state name what it does not want ("!lock")? */
	const isBut = list => !!list && typeof list[0] === "string" && list[0][0] === "!";

	/* A test of what a list of the state wants: does it want one that goes by any of these names? */
	function wanter(list) {
		const have = new Set(list), but = isBut(list);
		return (...ids) => !list || but !== ids.some(i => have.has(but ? "!" + i : i));
	}
	const wants = (list, ...ids) => wanter(list)(...ids);

	/* Threads that sleep say little about what keeps others waiting: they are shown when somebody asks. */
	const hidesSleep = state => !state.asleep && what(state).key === "wait" && G.data.meta.sides < 2 && (!state.causes || isBut(state.causes)) &&
		G.data.causes.some(c => c.key === "sleep");

	let asked = null; /* the last state, whose filters each row of the time area wants */

	/* The filters of a state as one byte an event, cause and thread. */
	function filters(state) {
		if (!asked || asked.state !== state)
			asked = { state, answer: filtersOf(state) };
		return asked.answer;
	}

	function filtersOf(state) {
		const d = G.data, events = what(state).events, sleep = !hidesSleep(state);
		const thread = wanter(state.threads), process = wanter(state.processes), cause = wanter(state.causes);
		const usual = key => (state.idle || key !== "idle") && (sleep || key !== "sleep");
		return {
			event: Uint8Array.from(d.events, (e, i) => events.includes(i)),
			cause: Uint8Array.from(d.causes, ({ key }) => cause(key) && (state.causes && !isBut(state.causes) || usual(key))),
			thread: Uint8Array.from(d.threads, t => thread(t.tid, t.name, pattern(t.name)) &&
				process((d.processes[t.process] || {}).pid)),
		};
	}

	/* Threads are shown by the patterns of their names where there are more than this. */
	const ROOTS = 20;

	/* Of the threads' boxes: by identity that of the first one of its pattern (alias), and what that is called (names); null
	 * where they are few. total: by node what it weighs. */
	function groups(total) {
		const t = G.data.tree, by = new Map(), alias = new Map(), names = new Map();
		let n = 0;
		for (let i = 1; i < t.n; i += t.size[i])
			if (!total || total(i) > 0) {
				const k = pattern(G.data.idents.name[t.ident[i]]);
				by.has(k) ? by.get(k).push(t.ident[i]) : by.set(k, [t.ident[i]]);
				n++;
			}
		for (const [k, list] of n > ROOTS ? by : [])
			if (list.length > 1) {
				names.set(list[0], k);
				list.forEach(i => alias.set(i, list[0]));
			}
		return alias.size ? { alias, names } : null;
	}
	const groupsThreads = () => !!groups();

	/* The identities of units of work: tasks, jobs, goroutines. They have boxes only where stacks are grouped by them. */
	let units = null;
	function unitIdents() {
		if (!units || units.tree !== G.data.tree)
			units = { tree: G.data.tree, set: new Set(G.data.tree.unit.filter(u => u).map(u => u - 1)) };
		return units.set;
	}
	/* What stacks can be grouped by. */
	const groupings = () => ["name", ...groupsThreads() ? ["each"] : [], ...unitIdents().size ? ["task"] : [], "none"];

	function matches(e, state) {
		const d = G.data.entries, f = filters(state);
		return !!(f.event[d.event[e]] & f.cause[d.cause[e]] & f.thread[d.thread[e]]);
	}

	/* What of an entry lies in the range. A wait of its own is spread over its slots, as the recorder
	 * cuts it. */
	function within(e, from, to, count) {
		const s = G.data.samples, period = G.data.events[G.data.entries.event[e]].period;
		let sum = 0;
		for (let i = G.data.entries.first[e], end = G.data.entries.first[e + 1]; i < end; i++) {
			const begin = s.slot[i], span = s.span ? s.span[i] : 0;
			let part = span ? (Math.min(to, begin + span) - Math.max(from, begin)) / span
				: begin >= from && begin < to ? 1 : 0;
			if (part <= 0)
				continue;
			if (count)
				sum += s.count ? s.count[i] : 1;
			else
				sum += part * (s.value ? s.value[i] : period);
		}
		return sum;
	}

	function entryValues(state) {
		const e = G.data.entries, f = filters(state), out = new Float64Array(e.n),
			slotNs = G.data.meta.slotNs;
		const source = state.count ? e.count : e.value, range = G.data.samples ? state.range : null;
		for (let i = 0; i < e.n; i++)
			if (f.event[e.event[i]] & f.cause[e.cause[i]] & f.thread[e.thread[i]])
				out[i] = range ? within(i, range[0] / slotNs, range[1] / slotNs, state.count)
					: source[i];
		return subtract(out, what(state).minus);
	}

	/* Frees have the stack and thread of their allocation: both entries are of one node, the allocation's first. */
	function subtract(out, minus) {
		const e = G.data.entries, same = (i, k) => e.node[k] === e.node[i] && e.thread[k] === e.thread[i];
		for (let i = 0; minus !== undefined && i < e.n; i++) {
			if (e.event[i] !== minus)
				continue;
			for (let k = i - 1; k >= 0 && same(i, k) && out[i]; k--) {
				const less = Math.min(out[i], out[k]);
				out[k] -= less;
				out[i] -= less;
			}
			out[i] = 0; /* of what was allocated before the chosen time */
		}
		return out;
	}

	/* Nodes that hide, focus and through leave out: a byte each, or null. Through leaves the callers, focus does not (view.js). */
	function dropped(state) {
		const t = G.data.tree, hide = named(state.hidden), under = state.focus || state.through,
			focus = under ? named([under]) : null;
		if (!focus && !state.hidden.length)
			return null;
		const out = new Uint8Array(t.n), { ident, size } = t;
		for (let i = 0, inside = 0; i < t.n;) {
			if (focus !== null && i >= inside && focus[ident[i]])
				inside = i + size[i];
			if (hide[ident[i]] && i) {
				out.fill(1, i, i + size[i]);
				i += size[i];
				continue;
			}
			if (focus !== null && i >= inside)
				out[i] = 1;
			i++;
		}
		return out;
	}

	function addUp(self, few) {
		const { parent, size, n } = G.data.tree, e = G.data.entries, total = self.slice();
		/* Of few: from each with weight up, until a node has the next one below it, too. */
		for (let k = 0, i = 0; few && k <= e.n; k++) {
			const next = k < e.n ? e.node[k] : n;
			if (k < e.n && (next === i || !self[next]))
				continue;
			for (; i && i + size[i] <= next; i = parent[i])
				total[parent[i]] += total[i];
			i = next;
		}
		for (let i = few ? 0 : n - 1; i > 0; i--)
			total[parent[i]] += total[i];
		return total;
	}

	function compute(state) {
		const d = G.data, e = d.entries, n = d.tree.n, drop = dropped(state), parts = G.sides(state);
		const [a, b] = parts ? parts.map(side => G.inSide(state, side)) : [entryValues(state), null];
		const value = b ? a.map((v, i) => v + b[i]) : a;
		const self = new Float64Array(n), selfB = b || d.meta.sides > 1 ? new Float64Array(n) : null;
		const seen = new Uint8Array(d.causes.length);
		let weighed = 0;
		for (let i = 0; i < e.n; i++) {
			const node = e.node[i];
			if (value[i] === 0 || drop && drop[node])
				continue;
			seen[e.cause[i]] = 1;
			weighed++;
			(!b && e.side[i] ? selfB : self)[node] += a[i];
			if (b)
				selfB[node] += b[i];
		}
		const few = weighed * 20 < n; /* nodes above each */
		const w = { self, total: addUp(self, few), selfB, totalB: selfB && addUp(selfB, few), value, drop };
		w.all = w.total[0];
		w.allB = selfB ? w.totalB[0] : 0;
		/* What is unknown last. */
		w.causes = [...seen.keys()].filter(c => seen[c]).sort((a, b) => !a - !b || a - b);
		w.byCause = () => w.causes.map(cause => ({ cause, total: causeTotals(w, cause) }));
		return w;
	}

	function causeTotals(w, cause) {
		const e = G.data.entries, self = new Float64Array(G.data.tree.n);
		for (let i = 0; i < e.n; i++)
			if (e.cause[i] === cause && !(w.drop && w.drop[e.node[i]]))
				self[e.node[i]] += w.value[i];
		return addUp(self);
	}

	const parts = ["what", "range", "against", "threads", "processes", "causes", "idle", "asleep", "count", "hidden", "focus", "through"];

	function weights(state) {
		const key = JSON.stringify(parts.map(k => state[k]));
		const i = kept.findIndex(k => k.key === key), found = i < 0 ? { key, w: compute(state) }
			: kept.splice(i, 1)[0];
		kept.unshift(found); /* used last, dropped last */
		kept.length = Math.min(kept.length, keep());
		return found.w;
	}

	/* Everything that was computed is void: the data have grown. */
	function forget() {
		asked = null;
		kept.length = 0;
		byName = lower = list = null;
	}

	/* The state's search as a test of a name. null = no search; error = the regex is none. */
	function finder(state) {
		if (!state.search)
			return null;
		if (state.regex) {
			try {
				const r = new RegExp(state.search, state.cased ? "" : "i");
				return i => r.test(G.data.idents.name[i]);
			} catch (x) {
				return { error: x.message };
			}
		}
		if (state.cased)
			return i => G.data.idents.name[i].includes(state.search);
		lower = lower || G.data.idents.name.map(x => x.toLowerCase());
		const text = state.search.toLowerCase();
		return i => lower[i].includes(text);
	}

	let searched = { key: null };

	/* { flags: a byte an ident, functions, total: of stacks with a match anywhere, error } or null. */
	function search(state) {
		const w = weights(state), key = JSON.stringify([state.search, state.regex, state.cased,
			state.group]);
		if (searched.key === key && searched.w === w)
			return searched.result;
		const test = finder(state), t = G.data.tree, n = G.data.idents.n;
		let result = null;
		if (test && test.error) {
			result = { flags: new Uint8Array(n), functions: 0, total: 0, totalB: 0,
				error: test.error };
		} else if (test) {
			const flags = new Uint8Array(n);
			let functions = 0, total = 0, totalB = 0;
			for (let i = 0; i < n; i++)
				functions += flags[i] = (state.group === "task" || !unitIdents().has(i)) && test(i) ? 1 : 0;
			for (let i = 1; i < t.n;)
				if (flags[t.ident[i]] && (state.group !== "none" || t.depth[i] !== 1)) {
					total += w.total[i];
					totalB += w.totalB ? w.totalB[i] : 0;
					i += t.size[i];
				} else {
					i++;
				}
			result = { flags, functions, total, totalB, error: null };
		}
		searched = { key, w, result };
		return result;
	}

	/* When what a state selects began and ended: [from, to] ns, or null where that is nearly all of the time. */
	function extent(state) {
		const { samples: s, entries: e, meta } = G.data, w = s && weights({ ...state, range: null });
		let from = Infinity, to = 0;
		for (let i = 0; s && i < e.n; i++)
			if (w.value[i] && !(w.drop && w.drop[e.node[i]]))
				for (let k = e.first[i]; k < e.first[i + 1]; k++) {
					from = Math.min(from, s.slot[k]);
					to = Math.max(to, s.slot[k] + Math.max(1, s.span ? s.span[k] : 0));
				}
		from *= meta.slotNs;
		to = Math.min(to * meta.slotNs, meta.durationNs);
		return to > from && to - from < 0.75 * meta.durationNs ? [from, to] : null;
	}

	return { extent, whats, what, few, whole, unit, noun, named, matches, filters, weights, search, forget, parts, pattern, wants, isBut, hidesSleep,
		groups, groupsThreads, groupings, unitIdents };
})();
