/*
 * names.js - numbers and names as people read them: a unit always, three digits, the part of a name that
 * tells most.
 */
Object.assign(G.model, (function () {
	const kept = new Map(); /* the forms of names */
	const three = x => x >= 99.95 ? x.toFixed(0) : x >= 9.995 ? x.toFixed(1) : x.toFixed(2);
	const thousands = x => String(x).replace(/\B(?=(\d{3})+$)/g, ",");

	/* "3.21 s", "4.56 MB", "118,204" */
	function format(value, unit) {
		const sign = value < 0 ? "−" : "", v = Math.abs(value);
		if (unit === "ns") {
			if (v >= 999.5e9)
				return sign + thousands(Math.round(v / 1e9)) + " s";
			return sign + (v >= 0.9995e9 ? three(v / 1e9) + " s"
				: v >= 999500 ? three(v / 1e6) + " ms" : v >= 999.5 ? three(v / 1e3) + " µs"
				: (v % 1 ? three(v) : v) + " ns");
		}
		if (unit === "bytes") {
			let x = v, k = 0;
			for (; x >= 999.5 && k < 5; k++)
				x /= 1024;
			return sign + (k ? three(x) : Math.round(x)) + " " +
				["B", "KB", "MB", "GB", "TB", "PB"][k];
		}
		if (v && v < 100 && v % 1)
			return sign + three(v);
		return sign + (v < 1e8 ? thousands(Math.round(v)) : three(v / 1e6) + " M");
	}

	/* Of a count, with its noun: "1 sample", "2 samples". */
	function plural(n, one) {
		return format(n, "count") + " " + one + (n === 1 ? "" : "s");
	}

	/* Of a fraction: "12.4 %". */
	function percent(x) {
		if (!Number.isFinite(x))
			return "– %";
		const p = Math.abs(x) * 100;
		return (x < 0 ? "−" : "") + (p >= 99.95 ? p.toFixed(0) : p >= 0.995 ? p.toFixed(1)
			: p >= 0.01 ? p.toFixed(2) : p > 0 ? "<0.01" : "0") + " %";
	}

	const called = { "minor-faults": "minor faults", "major-faults": "major faults", "minor-time": "minor fault time",
		"major-time": "major fault time", "reclaim-time": "reclaim time", "io-error": "failed I/O", sync: "sync time",
		goroutine: "goroutine waits", "goroutine-queue": "goroutine queue", "goroutine-idle": "idle goroutines",
		alloc: "allocated", peak: "heap at its peak", "heap.live": "live heap", "heap.allocated": "allocated",
		"heap.resident": "resident heap", "mem.rss": "resident memory",
		taskqueue: "task queue", "task.queue": "tasks in queues", "task.polls": "polls a second", "task.longest_poll": "longest poll",
		"task.busy": "threads in polls" };

	/* What an event or a series is called where people read it. */
	function label(name) {
		const [, of, which] = /^pressure\.(\w+)\.(some|full)$/.exec(name) || [];
		return of ? (of === "cpu" ? "CPU" : of === "io" ? "I/O" : of) + " pressure" + (which === "full" ? ", all" : "")
			: Object.hasOwn(called, name) ? called[name] : name;
	}

	/* A sentence of the recorder as the page says it: without options of the command line, units as format() has them. */
	const spoken = text => text.replace(/ \(--[^)]*\)/g, "").replace("--idle shows it", "the key 0 shows it")
		.replace(/; record --keep-all.*/, "");

	/* Columns of a text: wide characters are two. */
	function columnsOf(text) {
		if (/^[\x20-\x7e…]*$/.test(text))
			return text.length;
		let n = 0;
		for (const c of text)
			n += c.codePointAt(0) >= 0x1100 && c !== "\ufffd" && c !== "…" ? 2 : 1;
		return n;
	}

	/* Where the brackets of a name are. Of each character: in how many of them it is (level). Of one that opens: where it
	 * closes, whether it holds arguments and not the type that a path begins with ("<A as B>::f"), and how many brackets
	 * with arguments it is in (depth). null: they do not match. */
	function scan(s) {
		const n = s.length, level = new Uint32Array(n), close = new Uint32Array(n), depth = new Uint32Array(n);
		const open = [];
		for (let i = 0; i < n; i++) {
			/* operator<, operator<< and operator() have brackets in their names. */
			const c = s[i], before = s[i - 1] || "", tail = s.slice(Math.max(0, i - 10), i), top = open.length;
			if (c === "<" && !/operator<?$/.test(tail) || c === "(" && !/operator$/.test(tail)) {
				const type = s.startsWith("<impl ", i) || s.startsWith("(anonymous ", i) ||
					!/[\w:>)}$]/.test(before) && !/operator<<?$/.test(tail);
				depth[i] = (top ? depth[open[top - 1]] : 0) + (type ? 0 : 1);
				close[i] = type ? 0 : 1;
				open.push(i);
			}
			level[i] = open.length;
			if (open.length && (c === ">" && before !== "-" && before !== "=" || c === ")"))
				close[open.pop()] |= i << 1;
		}
		return open.length ? null : { level, depth, args: i => close[i] & 1, close: i => close[i] >>> 1 };
	}

	/* Arguments for which test(scan, at) holds become …, if that is shorter. */
	function fold(s, test) {
		const m = scan(s);
		let out = "", from = 0;
		for (let i = 0; m && i < s.length; i++)
			if (m.args(i) && test(m, i) && columnsOf(s.slice(i + 1, m.close(i))) > 1) {
				out += s.slice(from, i + 1) + "…";
				i = from = m.close(i);
			}
		return out + s.slice(from);
	}

	/* Types within brackets without their paths: Vec<String>, not Vec<alloc::string::String>. */
	function inner(s) {
		const m = scan(s);
		return m ? s.replace(/(?:[\w$]+::)+(?=[\w$<(&*[])/g, (path, at) => m.level[at] ? "" : path) : s;
	}

	/* "<A as B>::f" and "<impl B for A>::f" are known as "A::f". */
	function dropTrait(s) {
		const m = scan(s), at = s[0] === "<" ? 0 : s.indexOf("<impl "), end = m && at >= 0 ? m.close(at) : 0;
		const impl = s.startsWith("<impl ", at), word = impl ? " for " : " as ";
		let from = at + (impl ? 6 : 1), to = end, i = at;
		if (!end || m.level[at] !== 1 || !s.startsWith("::", end + 1))
			return s;
		while (i < end && !(m.level[i] === 1 && s.startsWith(word, i)))
			i++;
		if (i < end)
			impl ? from = i + 5 : to = i;
		return s.slice(0, at) + s.slice(from, to).replace(/^&?(?:mut )?(?:dyn )?/, "") + s.slice(end + 1);
	}

	/* Where the segments of a path begin, but for the first. What begins with a brace ({{closure}}) belongs to what is
	 * before it. Go's paths have slashes. */
	function segments(s) {
		const m = scan(s), out = [], outside = i => !m || !m.level[i];
		for (let i = s.indexOf("::"); i >= 0; i = s.indexOf("::", i + 2))
			if (outside(i) && i + 2 < s.length && s[i + 2] !== "{" &&
				(s[i + 2] !== "<" || s.startsWith("<impl ", i + 2)))
				out.push(i + 2);
		const go = !out.length;
		for (let i = 0; go && i < s.length && s[i] !== " "; i++)
			if (s[i] === "/" && outside(i) && /\w/.test(s[i + 1] || ""))
				out.push(i + 1);
		return out;
	}

	const separator = (s, at) => s[at - 1] === "/" ? "/" : "::";

	/* A name, shorter and shorter: without arguments of functions, paths within brackets, the trait, arguments of types
	 * from the innermost on. */
	function forms(name) {
		let list = kept.get(name);
		if (list)
			return list;
		const calls = fold(name, (m, i) => name[i] === "(" && m.level[i] === 1), types = inner(calls), own = dropTrait(types);
		const texts = [calls, types, own, ...[3, 2, 1].map(k => fold(own, (m, i) => m.depth[i] >= k))];
		list = [...new Set(texts)].map(text => ({ text, at: segments(text) }));
		if (kept.size > 20000)
			kept.clear();
		kept.set(name, list);
		return list;
	}

	function cut(text, n) {
		let out = "", used = 1;
		for (const c of text) {
			used += columnsOf(c);
			if (used > n)
				return out + "…";
			out += c;
		}
		return out;
	}

	/* A name for so many columns; src/export/report/shortname.c has the same rule. Whole if it fits. Else the left of its path
	 * goes, as far as its last two segments, then the next form is tried; at last all but the last segment, and its end. */
	function shortName(name, n) {
		if (n < 2)
			return "";
		if (columnsOf(name) <= n)
			return name;
		const list = forms(name);
		for (const { text, at } of list)
			for (const from of [0, ...at.slice(0, -1)]) {
				if (text.length - from > n)
					continue; /* a character has one column at least */
				const s = from ? "…" + separator(text, from) + text.slice(from) : text;
				if (columnsOf(s) <= n)
					return s;
			}
		const { text, at } = list[list.length - 1], from = at.length ? at[at.length - 1] : 0, last = text.slice(from);
		const s = from ? "…" + separator(text, from) + last : last;
		return columnsOf(s) <= n ? s : columnsOf(last) <= n ? last : n < 3 ? "" : cut(last, n);
	}

	/* The part of a name in which it differs from others, and its last segment. */
	function apart(name, others, n) {
		const { text, at } = forms(name).at(-1), last = text.slice(at.length ? at.at(-1) : 0), room = n - columnsOf(last) - 4;
		let from = 0;
		for (const o of others) {
			let i = 0;
			while (i < name.length && name[i] === o[i])
				i++;
			from = o === name ? from : Math.max(from, i);
		}
		while (from && /\w/.test(name[from - 1]))
			from--;
		return room < 6 ? "" : cut("…" + name.slice(from), room + 1) + (at.length ? "::" : " ") + last;
	}

	/* Names for so many columns each, [[name, n]]. Different ones that would look the same show where they differ. */
	function labels(list) {
		const out = list.map(([name, n]) => shortName(name, n)), same = new Map();
		out.forEach((text, i) => text.length > 3 && (same.has(text) ? same.get(text).push(i) : same.set(text, [i])));
		for (const at of same.values()) {
			const names = new Set(at.map(i => list[i][0]));
			for (const i of names.size > 1 ? at : [])
				out[i] = apart(list[i][0], names, list[i][1]) || out[i];
		}
		return out;
	}

	/* The same for a column of a page with one or two of them, of which so many pixels are taken. */
	const fitName = (name, n, used) => shortName(name, Math.max(16, Math.min(n, Math.floor((innerWidth / (innerWidth > 900 ? 2 : 1) - used) / 7.3))));

	return { format, percent, plural, label, spoken, shortName, fitName, labels, columnsOf, fold: name => shortName(name, 60) };
})());
