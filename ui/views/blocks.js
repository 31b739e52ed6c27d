/*
 * blocks.js - the blocks of the recording: a table with what each was made of, wall time against gas, and why a block is slow.
 *
 * The figures and reasons are those of `gasflame blocks` (src/analyze/blocks). A block that is chosen sets the range, and all
 * other views follow.
 */
(function () {
	Object.assign(G.state.defaults, { blocksort: "wall", blocksdown: true, blockfilter: "" });
	/* On the CPU in shades of its colour, waits as everywhere. */
	const CPU = { own: "#e69f00", dependency: "#f0bd55", std: "#f7d99b", kernel: "#a8792a", unnamed: "#cdb98c" };
	const WAITS = { disk: "disk-read", wait: "park" };
	let root, grid, filter, note, canvas, detail, legend, rows = [], hovered = null;

	const { el } = G, all = () => G.data.blocks, time = ns => G.model.format(ns, "ns");
	const end = r => r.startNs + r.wallNs, gas = r => (r.gas / 1e6).toFixed(2) + " M";
	const colourOf = key => CPU[key] || G.colour.cssOfCause(WAITS[key] || key);
	const speed = r => r.gas !== undefined && r.wallNs ? r.gas / r.wallNs : -1;
	const known = (v, text) => v === undefined ? "–" : text(v);
	const wall = () => G.model.whats().some(w => w.key === "wall") ? { what: "wall" } : {};

	/* A block becomes the range; its table row and its place on the axis come into sight. */
	G.chooseBlock = function (r, more) {
		if (!r.wallNs)
			return G.status(G.blockName(r) + " is a moment: nothing says when it began.");
		G.chooseRange([r.startNs, end(r)], more);
		G.status(G.rangeName([r.startNs, end(r)]) + (r.reason ? " · slow: " + r.reason.replace(/`/g, "") : ""));
	};

	/* To the next slow block by time, or the one before. */
	function toSlow(way) {
		const list = G.slowBlocks().sort((x, y) => way * (x.startNs - y.startNs)), { range } = G.state.now;
		const next = list.find(r => !range || way * (r.startNs - range[0]) > 0);
		if (next)
			G.chooseBlock(next);
		else
			G.status(list.length ? "There is no further slow block." : "No block is slow.");
		return true;
	}

	/* The parts of a block as a background, in their order. */
	function gradient(r) {
		const stops = [];
		let at = 0;
		(r.ns || []).forEach((ns, i) => {
			const to = at + 100 * ns / r.wallNs;
			if (ns)
				stops.push(colourOf(all().parts[i].key).replace(/^repeat.*/, "#9a9fa8") + " " + at.toFixed(2) + "% " + to.toFixed(2) + "%");
			at = to;
		});
		return stops.length ? "linear-gradient(90deg," + stops.join(",") + ")" : "none";
	}
	/* "lock 61.0 %, own code 20.1 %" */
	function shares(r, n) {
		return (r.ns || []).map((ns, i) => [ns, all().parts[i].name]).filter(p => p[0]).sort((x, y) => y[0] - x[0]).slice(0, n)
			.map(([ns, name]) => name + " " + G.model.percent(ns / r.wallNs)).join(", ");
	}

	/* Names in a sentence are shortened where it is too long. */
	const brief = (text, n) => text.length <= n ? text.replace(/`/g, "") : text.split("`").map((part, i) => i % 2 ?
		G.model.shortName(part, 30) : part).join("").replace(/(most in |most under )(\S{31,})/, (m, words, name) => words + G.model.shortName(name, 30));

	function columns() {
		const of = i => rows[i], why = i => of(i).reason || "";
		return [
			{ key: "block", title: "block", width: 88, value: i => of(i).number ?? -1, text: i => known(of(i).number, String),
				className: i => of(i).reason ? of(i).byGas ? "more-gas" : "slow" : "" },
			{ key: "gas", title: "gas", width: 78, value: i => of(i).gas ?? -1, text: i => known(of(i).gas, () => gas(of(i))) },
			{ key: "txs", title: "txs", about: "transactions", width: 54, extra: true, value: i => of(i).transactions ?? -1,
				text: i => known(of(i).transactions, v => G.model.format(v, "count")) },
			{ key: "wall", title: "wall", about: "time from its beginning to its end", width: 76, value: i => of(i).wallNs,
				text: i => of(i).wallNs ? time(of(i).wallNs) : "–" },
			{ key: "Ggas/s", title: "Ggas/s", width: 66, extra: true, value: i => speed(of(i)), text: i => speed(of(i)) < 0 ? "–"
				: speed(of(i)).toFixed(3) },
			{ key: "parts", title: "made of", about: "what its wall time was made of, along the path that decided it; sorted by the time off the CPU",
				width: 110, value: i => (of(i).ns || []).reduce((s, v, k) => s + (CPU[all().parts[k].key] ? 0 : v), 0),
				text: () => "", fill: i => gradient(of(i)), tip: i => shares(of(i), 20) },
			{ key: "reason", title: "why it is slow", left: true, value: i => why(i) || "\uffff", text: why, tip: why, fit: (i, n) => brief(why(i), n) }];
	}

	/* --- wall time against gas --- */

	const M = { left: 58, right: 12, top: 10, bottom: 30 };
	let points = [], scale = null;

	function nice(v) {
		const p = 10 ** Math.floor(Math.log10(v || 1));
		return [1, 2, 5, 10].map(k => k * p).find(x => x >= v * .999);
	}

	function plot() {
		const w = canvas.clientWidth, h = canvas.clientHeight, k = devicePixelRatio || 1, ctx = canvas.getContext("2d"), c = G.colours();
		const list = rows.map((r, i) => i).filter(i => rows[i].gas !== undefined && rows[i].wallNs);
		canvas.width = w * k;
		canvas.height = h * k;
		ctx.scale(k, k);
		ctx.font = "11px system-ui, sans-serif";
		ctx.textBaseline = "middle";
		points = [];
		if (!list.length || w < 120 || h < 80)
			return;
		const most = list.reduce((m, i) => [Math.max(m[0], rows[i].gas), Math.max(m[1], rows[i].wallNs)], [1, 1]);
		scale = { x: g => M.left + g / (most[0] * 1.03) * (w - M.left - M.right), y: t => h - M.bottom - t / (most[1] * 1.05) * (h - M.top - M.bottom) };
		axes(ctx, c, w, h, most);
		line(ctx, c, most);
		/* Those that say something lie over the others. */
		for (const kind of [0, 1, 2])
			for (const i of list)
				if (kindOf(rows[i]) === kind)
					dot(ctx, c, i, kind);
	}

	/* 0: not slow; 1: slow, for it has more gas; 2: slow for its gas. */
	const kindOf = r => !r.reason ? 0 : r.byGas ? 1 : 2;
	const SLOW = "#d55e00", MORE = "#56b4e9";

	function axes(ctx, c, w, h, most) {
		const sx = nice(most[0] / 6), sy = nice(most[1] / 6);
		ctx.strokeStyle = c.line;
		ctx.fillStyle = c.dim;
		ctx.textAlign = "center";
		for (let g = 0; g <= most[0] * 1.03; g += sx) {
			ctx.fillRect(scale.x(g), h - M.bottom, 1, 4);
			ctx.fillText(+(g / 1e6).toFixed(2), scale.x(g), h - M.bottom + 11);
		}
		ctx.fillText("million gas", (M.left + w) / 2, h - 6);
		ctx.textAlign = "right";
		for (let t = 0; t <= most[1] * 1.05; t += sy) {
			ctx.fillText(t ? time(t) : "0", M.left - 6, scale.y(t));
			ctx.beginPath();
			ctx.moveTo(M.left, scale.y(t));
			ctx.lineTo(w - M.right, scale.y(t));
			ctx.stroke();
		}
		ctx.textAlign = "left";
	}

	/* What a typical block takes for its gas. */
	function line(ctx, c, most) {
		const { typicalNs: ns, typicalGas: g } = all(), to = ns && g ? Math.min(most[0] * 1.03, most[1] * 1.05 * g / ns) : 0;
		if (!to)
			return;
		ctx.strokeStyle = c.dim;
		ctx.setLineDash([4, 4]);
		ctx.beginPath();
		ctx.moveTo(scale.x(0), scale.y(0));
		ctx.lineTo(scale.x(to), scale.y(to * ns / g));
		ctx.stroke();
		ctx.setLineDash([]);
	}

	function dot(ctx, c, i, kind) {
		const r = rows[i], x = scale.x(r.gas), y = scale.y(r.wallNs), chosen = G.blockOf(G.state.now.range) === r;
		points.push([x, y, i]);
		ctx.beginPath();
		if (kind === 2) { /* by its shape too */
			ctx.moveTo(x, y - 5);
			ctx.lineTo(x + 5, y + 4);
			ctx.lineTo(x - 5, y + 4);
			ctx.closePath();
		} else {
			ctx.arc(x, y, kind ? 4 : 2.5, 0, 7);
		}
		ctx.fillStyle = kind === 2 ? SLOW : kind ? MORE : c.dim;
		ctx.globalAlpha = kind ? 1 : .6;
		ctx.fill();
		ctx.globalAlpha = 1;
		if (!chosen && r !== hovered)
			return;
		ctx.strokeStyle = chosen ? c.accent : c.text;
		ctx.lineWidth = 2;
		ctx.beginPath();
		ctx.arc(x, y, 8, 0, 7);
		ctx.stroke();
		ctx.lineWidth = 1;
	}

	function nearest(e) {
		let best = null, far = 14 * 14;
		for (const [x, y, i] of points) {
			const d = (x - e.offsetX) ** 2 + (y - e.offsetY) ** 2;
			if (d < far)
				[best, far] = [rows[i], d];
		}
		return best;
	}

	/* --- one block --- */

	function say(i) {
		const r = rows[i];
		if (r && r !== hovered) {
			hovered = r;
			plot();
			describe(r);
			G.status(G.blockName(r) + " · " + (r.wallNs ? time(r.wallNs) : "a moment") + (r.reason ? " · slow: " + r.reason.replace(/`/g, "") : "") +
				" · Enter: its flame graph");
		}
	}

	function describe(r) {
		if (!r)
			return detail.replaceChildren(el("p", { class: "dim" }, "Choose a block: all views show its time alone."));
		const { parts } = all(), most = [...(r.ns || []).keys()].filter(i => r.ns[i]).sort((x, y) => r.ns[y] - r.ns[x]);
		const of = "of " + time(r.wallNs) + " of " + G.blockName(r), row = ns => [el("td", { title: of }, time(ns)), el("td", { title: of }, G.model.percent(ns / r.wallNs))];
		const part = i => el("tr", null, el("td", null, el("i", { class: "swatch", style: "background:" + colourOf(parts[i].key) }),
			parts[i].name), row(r.ns[i]));
		const fn = f => el("tr", null, el("td", null, el("button", { class: "link mono", title: f.name, onclick: () => {
			G.chooseBlock(r, { view: "sandwich", fn: f.name, ...wall() });
		} }, G.model.shortName(f.name, 40)), el("span", { class: "dim" }, " " + parts[f.part].name + (f.file ? ", " + f.file : ""))),
			row(f.ns));
		const go = (text, patch, title) => el("button", { title, onclick: () => G.chooseBlock(r, patch) }, text);
		const typical = G.blocks().some(x => x.typical);
		detail.replaceChildren(...[el("h2", null, G.blockName(r) + (r.wallNs ? " · " + time(r.wallNs) : ""), r.gas !== undefined &&
			el("em", null, gas(r) + " gas")), r.reason && el("p", null, el("b", null, r.byGas ? "Slow by its gas: " : "Slow: "), ...G.sentence(r.reason), "."),
			r.wallNs > 0 && el("p", { class: "ways" }, go("flame graph", { view: "flame", ...wall() }, "what ran and waited in its time (Enter)"),
				go("against the rest", { view: "diff", against: "rest", ...wall() }, "its functions against the rest of the time"),
				typical && go("against typical blocks", { view: "diff", against: "typical", ...wall() }, "its functions against those of typical blocks")),
			el("table", null, most.map(part)),
			r.parallelNs > 0 && el("p", { class: "dim" }, time(r.parallelNs) + " on the CPU beside its path"),
			el("table", null, (r.functions || []).map(fn))].filter(Boolean));
	}

	/* --- the view --- */

	function init(element) {
		root = element;
		root.classList.add("grid-view");
		rows = G.blocks();
		if (!rows.length)
			return;
		const step = (text, way, key) => el("button", { title: (way > 0 ? "next" : "previous") + " slow block by time (" + key + ")",
			onclick: () => toSlow(way) }, text);
		filter = G.filterBox(() => grid, "blockfilter");
		filter.placeholder = "\\ number or words";
		note = el("span", { class: "note" });
		grid = G.grid({ label: "blocks", ordered: true, columns: columns(), hover: say, tie: i => rows[i].wallNs,
			pick: i => G.chooseBlock(rows[i]), open: i => G.chooseBlock(rows[i], { view: "flame", ...wall() }),
			sort: (blocksort, blocksdown) => G.state.set({ blocksort, blocksdown }) });
		canvas = el("canvas", { class: "scatter", role: "img", "aria-label": "wall time of each block against its gas",
			onmousemove: e => say(rows.indexOf(nearest(e))), onclick: e => nearest(e) && G.chooseBlock(nearest(e)) });
		legend = el("p", { class: "dim" });
		detail = el("div", { class: "block" });
		root.append(el("div", { class: "grid-bar" }, step("◂ slow", -1, "("), step("slow ▸", 1, ")"),
			G.slowBlocks().length > 0 && rows.some(r => r.typical) && el("button", { title: "what slow blocks have more of than typical ones",
				onclick: () => G.state.set({ view: "diff", against: "typical", range: null, ...wall() }) }, "slow against typical"), filter, note),
			el("p", { class: "said" }, ...G.sentence(all().difference)),
			el("div", { class: "blocks" }, grid.root, el("aside", null, rows.some(r => r.gas !== undefined) && [canvas, legend], detail)));
		new ResizeObserver(() => !root.hidden && plot()).observe(canvas);
	}

	function draw(state) {
		if (!rows.length)
			return root.replaceChildren(el("p", { class: "empty" }, "No block was marked while this was recorded."));
		const words = state.blockfilter.toLowerCase().split(/\s+/).filter(Boolean), chosen = G.blockOf(state.range);
		const has = r => words.every(w => (r.name + " " + (r.number ?? "") + " " + (r.reason || "")).toLowerCase().includes(w));
		const ids = [...rows.keys()].filter(i => has(rows[i]));
		filter.sync(state);
		grid.show(ids, state.blocksort, state.blocksdown, "No block has “" + state.blockfilter + "”. Esc in the filter shows all.");
		if (chosen)
			grid.reach(rows.indexOf(chosen));
		hovered = chosen || hovered;
		const slow = G.slowBlocks().length;
		note.textContent = G.model.plural(ids.length, "block") + " · median " + time(all().medianNs) + (slow ? " · " + slow + " slow" : "");
		legend.replaceChildren(el("i", { style: "color:" + SLOW }, "▲"), " slow for its gas  ", el("i", { style: "color:" + MORE }, "●"), " slow by more gas  ",
			all().typicalGas ? "┄ typical for its gas" : "");
		describe(chosen || hovered);
		plot();
	}

	function key(e) {
		if (!rows.length)
			return false;
		if (e.key === "\\")
			filter.focus();
		else
			return grid.key(e);
		return true;
	}

	/* Also where another view is shown. */
	const before = G.views.time.key;
	G.views.time.key = (e, state) => before(e, state) ||
		(e.key === "(" || e.key === ")") && G.blocks().length > 0 && toSlow(e.key === ")" ? 1 : -1);
	/* What slow blocks have that typical ones have not stands with the verdict. */
	G.blockVerdict = () => G.blocks().length && all().difference ? [{ text: all().difference, state: { view: "blocks" } }] : [];
	const about = () => "a row for each block: its gas and time, what it was made of, why it is slow; a click chooses its time (B)";
	G.views.blocks = { init, draw, key, about };
	G.test.blocks = () => ({ rows: grid.ids.map(i => rows[i]), points: points.map(([x, y, i]) => ({ x, y, number: rows[i].number, kind: kindOf(rows[i]) })) });
	G.keys.push(["blocks"], ["↑ ↓ Enter", "choose a block, open its flame graph; a click chooses its time"],
		["( )", "previous and next slow block, in any view"], ["\\", "search by number or words of the reason"]);
})();
