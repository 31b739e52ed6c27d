/*
 * colour.js - what colours mean, and the legend that says so. The set of Okabe and Ito, which the
 * colour-blind can read.
 */
G.colour = (function () {
	const causes = {
		cpu: "#e69f00", queue: "#f0e442", lock: "#d55e00", park: "#009e73", "disk-read": "#0072b2",
		"disk-write": "#004f86", fault: "#cc79a7", network: "#56b4e9", sleep: "#999999",
		pipe: "#b7a684",
		reclaim: "#7d4a68", throttled: "#b8a900", idle: "", unknown: "#c2c6cc",
	};
	/* Causes that would look like another one to the colour-blind have a texture too. */
	const textures = { park: "dots", fault: "lines", reclaim: "dots", throttled: "lines", unknown: "lines" };
	/* They differ in lightness too. */
	const kinds = [
		["own", 33, 88, 60], ["dependency", 45, 20, 82], ["std, libc", 207, 60, 76],
		["allocator", 276, 48, 60], ["kernel", 135, 17, 55], ["other", 220, 6, 68],
	];
	const set = ["#e69f00", "#56b4e9", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#0072b2", "#b7a684"];
	/* Of subsystems, by their number: the same one has the same colour on every page. */
	const sixteen = ["#e69f00", "#cc79a7", "#8dd3a8", "#b7a684", "#56b4e9", "#009e73", "#f0e442", "#d55e00", "#0072b2",
		"#b39ddb", "#7fcdcd", "#f2a48f", "#c0ca33", "#d8b4e2", "#90a4ae", "#a1887f"];
	const patterns = {}, darkness = new Map();
	let cache = new Map(), cacheTheme = "";

	const isDark = () => G.theme() === "dark";
	const idle = () => isDark() ? "#3b4049" : "#d3d6dc";
	const rest = () => isDark() ? "#7d828b" : "#c6c9cf";

	/* A colour with dots or lines on it, for a canvas. */
	function pattern(key) {
		if (patterns[key])
			return patterns[key];
		const c = document.createElement("canvas"), x = c.getContext("2d");
		c.width = c.height = 6;
		x.fillStyle = causes[key];
		x.fillRect(0, 0, 6, 6);
		x.fillStyle = x.strokeStyle = "#0007";
		x.beginPath();
		for (const d of textures[key] === "lines" ? [-6, 0, 6] : []) {
			x.moveTo(d, 6);
			x.lineTo(d + 6, 0);
		}
		x.stroke();
		for (const d of textures[key] === "dots" ? [1, 4] : [])
			x.fillRect(d, d, 1.5, 1.5);
		return patterns[key] = x.createPattern(c, "repeat");
	}

	/* For a canvas, and for CSS. */
	const ofCause = key => key === "idle" ? idle() : textures[key] ? pattern(key) : causes[key] || rest();
	const cssTextures = { lines: "repeating-linear-gradient(-45deg,#0000 0 3px,#0007 3px 4px),",
		dots: "radial-gradient(#0008 1px,#0000 1.2px) 0 0/4px 4px," };
	const cssOfCause = key => key === "idle" ? idle() : (cssTextures[textures[key]] || "") + (causes[key] || rest());

	/* Is white text easier to read on this colour than black? What is no text is a pattern. */
	function isDarkFill(colour) {
		if (typeof colour !== "string")
			return colour === patterns.reclaim;
		if (!darkness.has(colour)) {
			const x = document.createElement("canvas").getContext("2d");
			x.fillStyle = colour;
			const [r, g, b] = x.fillStyle.match(/[0-9a-f]{2}/g).map(h => (parseInt(h, 16) / 255) ** 2.2);
			if (darkness.size > 5000)
				darkness.clear();
			darkness.set(colour, .2126 * r + .7152 * g + .0722 * b < .18);
		}
		return darkness.get(colour);
	}

	/* 0 .. 1 of a name, always the same. */
	function vary(name) {
		let h = 7;
		for (let i = 0; i < name.length; i++)
			h = Math.imul(h, 31) + name.charCodeAt(i) | 0;
		return ((h ^ h >>> 15) & 255) / 255;
	}

	function ofKind(ident) {
		const theme = G.theme();
		if (theme !== cacheTheme) {
			cacheTheme = theme;
			cache = new Map();
		}
		let c = cache.get(ident);
		if (!c) {
			const [, h, s, l] = kinds[Math.min(G.data.idents.kind[ident], 5)],
				v = vary(G.data.idents.name[ident]);
			c = "hsl(" + (h + (h === 33 ? 16 * v - 8 : 0)).toFixed(0) + " " + s + "% " +
				(l + 8 * v - 4 - (theme === "dark" ? 8 : 0)).toFixed(0) + "%)";
			cache.set(ident, c);
		}
		return c;
	}

	/* The state's choice, or what fits what is weighed. */
	function mode(s) {
		if (s.colour !== "auto")
			return modes().includes(s.colour) ? s.colour : "kind";
		if (G.hasTwo(s))
			return "diff";
		return G.model.what(s).events.some(e => /wait|queue/.test(G.data.events[e].role)) ? "cause"
			: "kind";
	}

	/* Modules or crates by how much of the picture is theirs: the first eight have a colour each. */
	function owners(w, key, names) {
		const d = G.data, sums = new Float64Array(names.length), at = d.idents[key],
			id = d.tree.ident;
		if (w[key])
			return w[key];
		for (let i = 1; i < d.tree.n; i++)
			sums[at[id[i]]] += w.total[i] + (w.totalB ? w.totalB[i] : 0);
		const top = [...sums.keys()].filter(m => sums[m] > 0 && names[m])
			.sort((a, b) => sums[b] - sums[a]).slice(0, 8);
		const colours = new Array(sums.length).fill("");
		top.forEach((m, i) => colours[m] = set[i]);
		return w[key] = { colours, top };
	}

	/* By base node: the number of the subsystem to which its stack belongs, 0 = none that is known. As in
	 * src/analyze/subsystem/classify.c, but that a stack with an unknown function shows what is around it. */
	let subsystems = null;

	function ofNodes() {
		const { tree: t, idents } = G.data;
		if (subsystems && subsystems.tree === t)
			return subsystems.of;
		const strong = new Uint8Array(t.n), weak = new Uint8Array(t.n);
		for (let i = 1; i < t.n; i++) {
			const own = idents.subsystem[t.ident[i]], p = t.parent[i];
			strong[i] = own > 1 && !(own & 1) ? own >> 1 : strong[p];
			weak[i] = own & 1 ? own >> 1 : weak[p];
		}
		subsystems = { tree: t, of: strong.map((k, i) => k || weak[i]) };
		return subsystems.of;
	}

	const ofSubsystem = k => k ? sixteen[(k - 1) % sixteen.length] : rest();

	/* Subsystems in the picture, the one with most first. */
	function shownSubsystems(w) {
		const of = ofNodes(), sums = new Float64Array(256);
		for (let i = 1; i < of.length; i++)
			sums[of[i]] += w.self[i] + (w.selfB ? w.selfB[i] : 0);
		return [...sums.keys()].filter(k => sums[k] > 0).sort((a, b) => sums[b] - sums[a]);
	}

	/* From callers to callees a box is of its stack; leaf first it is of its function alone. */
	const subsystemOf = n => n.members ? ofNodes()[n.members[0]] : G.data.idents.subsystem[n.ident] >> 1;

	const base = path => path.slice(path.lastIndexOf("/") + 1) || path;

	/* By ident: what the comparison of functions says: 1 = no significant change. Threads were not compared: they have a colour
	 * only where some function has one. */
	let quiet = null;

	function insignificant(s) {
		const d = G.diffOf(s) || { rows: [] };
		if (d === G.data.diff && s.what !== G.state.first.what)
			return []; /* another thing was compared */
		if (!quiet || quiet.d !== d || quiet.length !== G.data.idents.n) {
			const changed = r => r.self.significant || r.total.significant;
			quiet = new Uint8Array(G.data.idents.n).fill(d.rows.some(changed) ? 0 : 1);
			quiet.d = d;
			for (const r of d.rows)
				quiet[r.ident] = changed(r) ? 0 : 1;
		}
		return quiet;
	}

	/* What one sample weighs: the noise of a box of a diff is that of its count. */
	function perSample(w, s) {
		if (!w.perSample) {
			const c = G.model.weights({ ...s, count: true });
			w.perSample = (w.all + w.allB) / Math.max(1, c.all + c.allB);
		}
		return w.perSample;
	}

	function mix(from, to, x) {
		return "rgb(" + from.map((f, i) => Math.round(f + (to[i] - f) * x)).join(" ") + ")";
	}

	/* Blue less, red more, as strong as it is sure. Brighter than what is the same where the page is dark. */
	const less = () => isDark() ? [64, 160, 240] : [0, 114, 178], more = () => isDark() ? [255, 122, 56] : [213, 70, 0];

	function ofDiff(node, w, s) {
		const a = node.total * node.v.scaleA, b = node.totalB * node.v.equalB, d = b - a, all = a + b;
		const same = isDark() ? [66, 71, 80] : [236, 238, 241];
		if (!all)
			return mix(same, same, 0);
		const z = Math.abs(d) / Math.sqrt(all * perSample(w, s) || 1),
			sure = Math.min(1, Math.max(0, (z - 1) / 5));
		const size = Math.min(0.9, 0.25 + 2 * Math.abs(d) / all);
		const x = sure * size * (insignificant(s)[node.ident] && node.depth ? 0 : 1);
		return mix(same, d < 0 ? less() : more(), x);
	}

	/* A legend of [colour, what it says, in full]: a click on one leaves its boxes bright, the next click all. */
	function lights(s, legend) {
		return legend.map(([colour, text, title]) => [colour, text, title || "only what is " + text,
			{ lit: s.lit === text ? "" : text }, s.lit === text]);
	}

	/* What a state with only one cause would be; with all of them, where it is that already. */
	const only = (s, key) => ({ causes: G.state.same(s.causes, [key]) ? null : [key], zoom: [] });

	/* How a state is coloured: fill(node); splits: boxes are divided by cause; dim(node): it steps back, null = none does;
	 * legend: [colour, text, title, what a click sets, whether that is so now]. */
	function scheme(s, w) {
		const m = mode(s), d = G.data;
		const lit = (entries, textOf) => ({ mode: m, legend: lights(s, entries),
			dim: entries.some(e => e[1] === s.lit) ? n => textOf(n) !== s.lit : null });
		if (m === "cause")
			return { mode: m, splits: w.causes.length > 1,
				fill: () => ofCause((d.causes[w.causes[0]] || { key: "unknown" }).key),
				legend: w.causes.map(c => [cssOfCause(d.causes[c].key), d.causes[c].name, "only this cause; once more: all",
					only(s, d.causes[c].key), !!s.causes]) };
		if (m === "module" || m === "crate") {
			const names = d[m + "s"], { colours, top } = owners(w, m, names), of = n => d.idents[m][n.ident];
			return { fill: n => colours[of(n)] || rest(), ...lit([...top.map(i => [colours[i], base(names[i]), names[i]]),
				[rest(), "other"]], n => colours[of(n)] ? base(names[of(n)]) : "other") };
		}
		if (m === "subsystem") {
			const text = k => k ? d.subsystems[k] : "other";
			return { fill: n => ofSubsystem(subsystemOf(n)), ...lit(shownSubsystems(w).map(k => [ofSubsystem(k), text(k)]),
				n => text(subsystemOf(n))) };
		}
		const rgb = c => "rgb(" + c.join(" ") + ")";
		if (m === "diff")
			return { mode: m, fill: n => ofDiff(n, w, s),
				legend: [[rgb(less()), "less"],
				[isDark() ? "#42474f" : "#e3e5e9", "same, or within the noise"],
				[rgb(more()), "more"],
				["", "width: " + { both: G.sideWords(s).join(" + "), a: G.sideWords(s)[0], b: G.sideWords(s)[1] }[s.side] +
					(s.normalized ? ", both as shares of their whole" : "")]] };
		return { fill: n => ofKind(n.ident), ...lit(kinds.map(([name, h, c, l]) =>
			["hsl(" + h + " " + c + "% " + (l - (isDark() ? 8 : 0)) + "%)", name]),
			n => kinds[Math.min(d.idents.kind[n.ident], 5)][0]) };
	}

	/* What one can choose from. */
	const modes = () => G.state.choices.colour.filter(m => m === "diff" ? G.hasTwo(G.state.now)
		: m !== "subsystem" || !!G.data.subsystemShares);

	return { scheme, mode, modes, ofCause, cssOfCause, ofSubsystem, isDarkFill, only };
})();
