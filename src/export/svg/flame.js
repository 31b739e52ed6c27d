// The picture's behaviour: zoom, search, details, links. Names are only ever read and written as text.
"use strict";
(function () {
	const svg = document.documentElement;
	const byId = id => document.getElementById(id);
	const details = byId("details"), unzoomButton = byId("unzoom"), matched = byId("matched");
	const searchButton = byId("search"), caseButton = byId("ignorecase");
	const inverted = svg.getAttribute("data-inverted") === "1";
	const number = name => +svg.getAttribute("data-" + name);
	const pad = 10, charWidth = number("char"), slack = number("slack"), base = number("base");
	const cutEnd = svg.getAttribute("data-cut") === "end", total = number("total");
	const nameType = svg.getAttribute("data-nametype");
	const width = +svg.getAttribute("width");
	const inner = width - 2 * pad;
	const fudge = 0.001; // places are exact, or written with four decimals
	let zoomed = null, term = "", ignoreCase = false;

	// One record a frame, in the order of the file; the first is the root.
	const frames = Array.from(byId("frames").children, g => {
		const rect = g.querySelector("rect"), title = g.querySelector("title").textContent;
		const f = {
			g, rect, title, text: g.querySelector("text"),
			name: g.getAttribute("data-name") || title.replace(/ \([^()]*\)$/, ""),
			x: +rect.getAttribute("x"), y: +rect.getAttribute("y"), w: +rect.getAttribute("width"),
			link: rect.getAttribute("x"), fill: rect.getAttribute("fill"),
		};
		// The file's places may be rounded, as links want them: counts are not.
		if (total) {
			const at = g.getAttribute("data-at").split(",");
			f.x = pad + at[0] * inner / total;
			f.w = at[1] * inner / total;
		}
		return f;
	});
	const ofElement = new Map(frames.map(f => [f.g, f]));

	// Columns of a name: wide characters are two.
	function columns(s) {
		let n = 0;
		for (const c of s)
			n += c.codePointAt(0) >= 0x1100 && c !== "\uFFFD" ? 2 : 1;
		return n;
	}

	function take(s, n) {
		let out = "", used = 0;
		for (const c of s) {
			used += columns(c);
			if (used > n)
				break;
			out += c;
		}
		return out;
	}

	// Where brackets are: how deep each character is in them; of one that opens where it closes, whether it holds arguments
	// and not the type of "<A as B>::f", and how many of those it is in. null if they don't match.
	function scan(s) {
		const level = [], close = [], args = [], depth = [], open = [];
		for (let i = 0; i < s.length; i++) {
			const c = s[i], before = s[i - 1] || "", tail = s.slice(Math.max(0, i - 10), i), top = open[open.length - 1];
			if (c === "<" && !/operator<?$/.test(tail) || c === "(" && !/operator$/.test(tail)) {
				args[i] = !s.startsWith("<impl ", i) && !s.startsWith("(anonymous ", i) &&
					(/[\w:>)}$]/.test(before) || /operator<<?$/.test(tail));
				depth[i] = (open.length ? depth[top] : 0) + (args[i] ? 1 : 0);
				open.push(i);
			}
			level[i] = open.length;
			if (open.length && (c === ">" && before !== "-" && before !== "=" || c === ")"))
				close[open.pop()] = i;
		}
		return open.length ? null : { level, close, args, depth };
	}

	// Arguments for which test(scan, at) holds become "..", if that is shorter.
	function fold(s, test) {
		const m = scan(s);
		let out = "", from = 0;
		for (let i = 0; m && i < s.length; i++)
			if (m.args[i] && test(m, i) && columns(s.slice(i + 1, m.close[i])) > 2) {
				out += s.slice(from, i + 1) + "..";
				i = from = m.close[i];
			}
		return out + s.slice(from);
	}

	// Types within brackets without their paths.
	function stripPaths(s) {
		const m = scan(s);
		return m ? s.replace(/(?:[\w$]+::)+(?=[\w$<(&*[])/g, (path, at) => m.level[at] ? "" : path) : s;
	}

	// "<A as B>::f" and "<impl B for A>::f" as "A::f".
	function dropTrait(s) {
		const m = scan(s), at = s[0] === "<" ? 0 : s.indexOf("<impl "), end = m && at >= 0 ? m.close[at] : 0;
		const impl = s.startsWith("<impl ", at), word = impl ? " for " : " as ";
		let from = at + (impl ? 6 : 1), to = end, i = at;
		if (!end || m.level[at] !== 1 || !s.startsWith("::", end + 1))
			return s;
		while (i < end && !(m.level[i] === 1 && s.startsWith(word, i)))
			i++;
		if (i < end && impl)
			from = i + 5;
		else if (i < end)
			to = i;
		return s.slice(0, at) + s.slice(from, to).replace(/^&?(?:mut )?(?:dyn )?/, "") + s.slice(end + 1);
	}

	// Where segments of a path begin, but for the first.
	function segments(s) {
		const m = scan(s), out = [], outside = i => !m || !m.level[i];
		for (let i = s.indexOf("::"); i >= 0; i = s.indexOf("::", i + 2))
			if (outside(i) && s[i + 2] && s[i + 2] !== "{" && (s[i + 2] !== "<" || s.startsWith("<impl ", i + 2)))
				out.push(i + 2);
		for (let i = 0, go = !out.length; go && i < s.length && s[i] !== " "; i++)
			if (s[i] === "/" && outside(i) && /\w/.test(s[i + 1] || ""))
				out.push(i + 1);
		return out;
	}

	// The same cuts as in the file itself (shortname.c).
	function fit(name, n) {
		if (n < 3)
			return "";
		if (columns(name) <= n)
			return name;
		if (cutEnd)
			return take(name, n - 2) + "..";
		const tail = (s, from) => from ? ".." + (s[from - 1] === "/" ? "/" : "::") + s.slice(from) : s;
		const calls = fold(name, (m, i) => name[i] === "(" && m.level[i] === 1), types = stripPaths(calls), own = dropTrait(types);
		let form = name, at = [];
		for (form of [calls, types, own, ...[3, 2, 1].map(k => fold(own, (m, i) => m.depth[i] >= k))]) {
			at = segments(form);
			for (const from of [0, ...at.slice(0, -1)])
				if (form.length - from <= n && columns(tail(form, from)) <= n)
					return tail(form, from);
		}
		const from = at.length ? at[at.length - 1] : 0, last = form.slice(from);
		return columns(tail(form, from)) <= n ? tail(form, from) : columns(last) <= n ? last : take(last, n - 2) + "..";
	}

	function place(f, x, w) {
		f.rect.setAttribute("x", x);
		f.rect.setAttribute("width", w);
		const label = fit(f.name, Math.floor((w - slack) / charWidth));
		if (!f.text) {
			if (!label)
				return;
			f.text = document.createElementNS("http://www.w3.org/2000/svg", "text");
			f.text.setAttribute("y", f.y + base);
			f.rect.parentNode.appendChild(f.text);
		}
		f.text.setAttribute("x", x + 3);
		f.text.textContent = label;
	}

	function show(f, visible, faded) {
		f.g.classList.toggle("hide", !visible);
		f.g.classList.toggle("parent", faded);
	}

	function zoom(target) {
		const left = target.x - fudge, right = target.x + target.w + fudge, scale = inner / target.w;
		zoomed = target === frames[0] ? null : target;
		for (const f of frames) {
			const below = inverted ? f.y < target.y : f.y > target.y; // nearer to the root
			if (below) {
				const ancestor = f.x <= target.x + fudge && f.x + f.w >= right - 2 * fudge;
				show(f, ancestor, ancestor);
				if (ancestor)
					place(f, pad, inner);
			} else {
				const within = f.x >= left && f.x + f.w <= right;
				show(f, within, false);
				if (within)
					place(f, pad + (f.x - target.x) * scale, f.w * scale);
			}
		}
		unzoomButton.classList.toggle("hide", !zoomed);
		if (term)
			search(term);
		remember();
	}

	// Marks what matches, and says its share of what is shown: nested matches count once.
	function search(pattern) {
		let regex;
		try {
			regex = new RegExp(pattern, ignoreCase ? "i" : "");
		} catch (e) {
			details.children[0].textContent = "Search: " + e.message;
			return;
		}
		term = pattern;
		const hits = [];
		for (const f of frames) {
			const hit = f !== frames[0] && regex.test(f.name);
			f.rect.setAttribute("fill", hit ? "rgb(230,0,230)" : f.fill);
			if (hit && !f.g.classList.contains("hide") && !f.g.classList.contains("parent"))
				hits.push(f);
			else if (hit && f.g.classList.contains("parent"))
				hits.push({ x: zoomed.x, w: zoomed.w });
		}
		hits.sort((a, b) => a.x - b.x || b.w - a.w);
		let sum = 0, end = -1;
		for (const f of hits)
			if (f.x + f.w > end + fudge) {
				sum += f.w;
				end = f.x + f.w;
			}
		const share = Math.min(100, 100 * sum / (zoomed || frames[0]).w);
		matched.textContent = "Matched: " + (share > 99.95 ? "100" : share.toFixed(1)) + "%";
		matched.classList.remove("hide");
		searchButton.textContent = "Reset Search";
		remember();
	}

	function resetSearch() {
		term = "";
		for (const f of frames)
			f.rect.setAttribute("fill", f.fill);
		matched.classList.add("hide");
		searchButton.textContent = "Search";
		remember();
	}

	function askSearch() {
		if (term) {
			resetSearch();
			return;
		}
		const answer = prompt("Enter a search term (regular expressions allowed, eg: ^ext4_)" +
			(ignoreCase ? ", case is ignored" : ", case matters: Ctrl-I changes that"), "");
		if (answer)
			search(answer);
	}

	function toggleCase() {
		ignoreCase = !ignoreCase;
		caseButton.classList.toggle("on", ignoreCase);
		if (term)
			search(term);
	}

	// The address holds the view. Some places (sandboxed frames) don't allow that: then it doesn't.
	function remember() {
		const parts = [];
		if (zoomed)
			parts.push("x=" + zoomed.link, "y=" + zoomed.y);
		if (term)
			parts.push("s=" + encodeURIComponent(term));
		try {
			history.replaceState(null, "", parts.length ? "?" + parts.join("&") : location.pathname);
		} catch (e) {
			return;
		}
	}

	// Two lines below the picture hold the whole of nearly every name; the share matched stands at the end.
	function tell(title) {
		const n = Math.floor(inner / charWidth), s = title ? nameType + " " + title : "";
		const first = take(s, n), rest = s.slice(first.length), room = n - 17;
		details.children[0].textContent = first || "\u00a0";
		if (details.children[1])
			details.children[1].textContent =
				columns(rest) > room ? take(rest, room - 2) + ".." : rest;
	}

	const frameOf = target => {
		const g = target.closest && target.closest("#frames > g");
		return g && ofElement.get(g);
	};
	svg.addEventListener("click", e => {
		const f = frameOf(e.target);
		if (f && e.target.closest("a"))
			return; // it leads elsewhere
		if (f && !e.ctrlKey && !e.metaKey)
			zoom(f);
		else if (e.target === unzoomButton)
			zoom(frames[0]);
		else if (e.target === searchButton)
			askSearch();
		else if (e.target === caseButton)
			toggleCase();
	});
	svg.addEventListener("mouseover", e => tell((frameOf(e.target) || { title: "" }).title));
	svg.addEventListener("mouseleave", () => tell(""));
	window.addEventListener("keydown", e => {
		if (e.key === "F3" || (e.ctrlKey && e.key === "f")) {
			e.preventDefault();
			askSearch();
		} else if (e.ctrlKey && e.key === "i") {
			e.preventDefault();
			toggleCase();
		} else if (e.key === "Escape" && zoomed) {
			zoom(frames[0]);
		}
	});

	if (!frames.length)
		return;
	const wanted = new URLSearchParams(location.search);
	const x = wanted.get("x"), y = wanted.get("y"), s = wanted.get("s");
	if (x !== null && y !== null) {
		const f = frames.find(g => Math.abs(g.link - x) < fudge && Math.abs(g.y - y) < fudge);
		if (f)
			zoom(f);
	}
	if (s)
		search(s);
})();
