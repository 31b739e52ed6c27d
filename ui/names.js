/*
 * names.js - numbers and names as people read them: a unit always, three digits, the part of a name that
 * tells most.
 */
Object.assign(G.model, (function () {
	const folded = new Map();
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
			: p >= 0.01 ? p.toFixed(2) : p > 0 ? "< 0.01" : "0") + " %";
	}

	/* Columns of a text: wide characters are two. */
	function columnsOf(text) {
		if (/^[\x20-\x7e…]*$/.test(text))
			return text.length;
		let n = 0;
		for (const c of text)
			n += c.codePointAt(0) >= 0x1100 && c !== "\ufffd" ? 2 : 1;
		return n;
	}

	/*
	 * Arguments of types and functions become <…> and (…). What a path begins with, as in
	 * "<reth_trie::Trie<H> as core::hash::Hash>::hash", stays, for it says whose function it is.
	 */
	function fold(name) {
		let out = folded.get(name);
		if (out !== undefined)
			return out;
		out = "";
		const open = []; /* true: what it holds is left out */
		let hidden = 0;
		for (let i = 0; i < name.length; i++) {
			const c = name[i], before = name[i - 1] || "";
			/* operator<, operator<< and operator() have brackets in their names. */
			const tail = name.slice(Math.max(0, i - 10), i);
			const operator = (c === "<" ? /operator<?$/ : /operator$/).test(tail);
			if ((c === "<" || c === "(") && !operator) {
				const hides = (/[\w:>)}$]/.test(before) || /operator<<?$/.test(tail)) &&
					name[i + 1] !== ">" && name[i + 1] !== ")";
				if (hides && !hidden)
					out += c + "…";
				else if (!hidden)
					out += c;
				open.push(hides);
				hidden += hides;
			} else if ((c === ">" && before !== "-" && before !== "=" || c === ")") &&
				open.length) {
				hidden -= open.pop();
				if (!hidden)
					out += c;
			} else if (!hidden) {
				out += c;
			}
		}
		if (open.length)
			out = name;
		folded.set(name, out);
		return out;
	}

	/* "<a::B as c::D>::e" is known as "a::B::e" where there is no room. */
	function plain(name) {
		const type = "([^<>]*?(?:<…>)?[^<>]*?)", trait = "(?: as [^>]*(?:<…>)?[^>]*)?";
		return name.replace(new RegExp("^<&?(?:mut )?" + type + trait + ">::"), "$1::");
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

	/* A name for so many columns: arguments go first, then the left of the path, then the end of the last
	 * part. */
	function shortName(name, n) {
		if (n < 2)
			return "";
		let s = fold(name);
		if (columnsOf(s) <= n)
			return s;
		s = plain(s);
		if (columnsOf(s) <= n)
			return s;
		const segment = /::(?=[^{])/g;
		let last = s;
		while (segment.exec(s)) {
			last = s.slice(segment.lastIndex);
			if (columnsOf(last) + 3 <= n)
				return "…::" + last;
		}
		if (columnsOf(last) <= n)
			return last;
		return n < 3 ? "" : cut(last, n);
	}

	return { format, percent, plural, shortName, fold, columnsOf };
})());
