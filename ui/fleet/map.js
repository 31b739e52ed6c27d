/*
 * map.js - the heat map: a row for each node, a column for each slot of time. A canvas as large as the window; only rows in sight are drawn.
 *
 * The chosen cells are one row and a range of columns. A click opens them, a drag chooses a range, Shift-click keeps them for a comparison.
 */
G.fleet.map = (function () {
	const { el } = G, { state, scale } = G.fleet, AXIS = 26, RIGHT = 74, LEAST = 7, MOST = 26, GAP = 12;
	const canvas = el("canvas"), size = el("div"), cell = el("span", { role: "gridcell", id: "cell" });
	const root = el("div", { class: "map", tabindex: 0, role: "grid", "aria-label": "nodes and times; Enter opens, c compares, ? lists the keys",
		"aria-activedescendant": "cell" }, canvas, size, el("div", { class: "unseen", role: "row" }, cell));
	let rows = [], made = null, box = null, chosen = null, over = null, drag = null, ink = {};

	const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

	/* Where things are, for the size of the window. */
	function layout() {
		const width = root.clientWidth, height = root.clientHeight, pen = canvas.getContext("2d");
		pen.font = ink.font;
		const longest = rows.reduce((most, r) => Math.max(most, pen.measureText(r.target).width), 60);
		const left = Math.ceil(Math.min(longest * 1.04 + 2 * GAP, width * .3, 300));
		const h = Math.floor(Math.max(LEAST, Math.min(MOST, (height - AXIS - 6) / Math.max(1, rows.length))));
		size.style.height = Math.max(0, AXIS + h * rows.length + 4 - height) + "px";
		box = { width, height, left, h, plot: Math.max(10, width - left - RIGHT), slots: state.data.map.slots, cw: Math.max(10, width - left - RIGHT) / state.data.map.slots };
	}

	const x = slot => box.left + slot * box.cw, y = row => AXIS + row * box.h - root.scrollTop;

	function hatch(pen) {
		const c = document.createElement("canvas"), p = c.getContext("2d");
		c.width = c.height = 8;
		p.strokeStyle = ink.line;
		p.globalAlpha = .75;
		for (const d of [-8, 0, 8]) {
			p.moveTo(d, 8);
			p.lineTo(d + 8, 0);
		}
		p.stroke();
		return pen.createPattern(c, "repeat");
	}

	function cut(pen, text, width) {
		if (pen.measureText(text).width <= width)
			return text;
		let n = text.length;
		while (n > 1 && pen.measureText("…" + text.slice(text.length - n)).width > width)
			n--;
		return "…" + text.slice(text.length - n);
	}

	function drawRow(pen, i, colours) {
		const r = rows[i], top = y(i), gap = box.h >= 10 ? 1 : 0, side = box.cw >= 5 ? 1 : 0, here = over && over.row === i || chosen && chosen.row === i;
		for (let s = 0; s < box.slots; s++) {
			const v = r.values[s];
			if (v === null)
				continue;
			const a = Math.round(x(s)), b = Math.round(x(s + 1));
			pen.fillStyle = made.colour(v, colours);
			pen.fillRect(a, top, Math.max(1, b - a - side), box.h - gap);
		}
		if (box.h < 10 && i % Math.ceil(11 / box.h) && !here)
			return;
		pen.textBaseline = "middle";
		pen.font = here ? "600 " + ink.font : ink.font;
		pen.fillStyle = ink.text;
		pen.textAlign = "right";
		pen.fillText(cut(pen, r.target, box.left - 2 * GAP), box.left - GAP, top + box.h / 2);
		pen.textAlign = "left";
		pen.font = ink.small;
		pen.fillStyle = here ? ink.text : ink.dim;
		pen.fillText(r.mean === null ? "–" : scale.format(r.mean, made.unit), box.left + box.plot + 8, top + box.h / 2);
	}

	function drawAxis(pen) {
		const m = state.data.map, to = m.from_ms + m.slots * m.slot_ms, at = t => box.left + (t - m.from_ms) / (to - m.from_ms) * box.plot;
		pen.fillStyle = ink.ground;
		pen.fillRect(0, 0, box.width, AXIS);
		pen.textBaseline = "middle";
		pen.font = ink.small;
		pen.textAlign = "center";
		for (const tick of scale.times(m.from_ms, to, (to - m.from_ms) * 62 / box.plot)) {
			const px = Math.round(at(tick.t));
			pen.fillStyle = tick.day ? ink.text : ink.dim;
			if (px > box.left + 16 && px < box.left + box.plot - 16)
				pen.fillText(tick.text, px, AXIS / 2 - 2);
			pen.fillStyle = ink.line;
			pen.fillRect(px, AXIS - 6, 1, 4);
			if (tick.day) {
				pen.globalAlpha = .8;
				pen.fillRect(px, AXIS, 1, Math.min(box.height, y(rows.length)) - AXIS);
				pen.globalAlpha = 1;
			}
		}
		pen.fillStyle = ink.dim;
		pen.textAlign = "left";
		pen.fillText("mean", box.left + box.plot + 8, AXIS / 2 - 2);
		pen.textAlign = "right";
		pen.fillText(G.model.plural(rows.length, "node"), box.left - GAP, AXIS / 2 - 2);
	}

	function frame(pen, at, colour, width, letter) {
		const top = y(at.row), a = Math.round(x(at.a)), b = Math.round(x(at.b + 1));
		if (top + box.h < AXIS || top > box.height)
			return;
		pen.strokeStyle = ink.ground;
		pen.lineWidth = width + 2;
		pen.strokeRect(a - 1, top - 1, Math.max(3, b - a + 1), box.h + 1);
		pen.strokeStyle = colour;
		pen.lineWidth = width;
		pen.strokeRect(a - 1, top - 1, Math.max(3, b - a + 1), box.h + 1);
		if (!letter)
			return;
		pen.font = "600 11px system-ui, sans-serif";
		pen.textAlign = "center";
		pen.textBaseline = "middle";
		pen.fillStyle = colour;
		pen.fillRect(a - 17, top - 1, 14, 14);
		pen.fillStyle = ink.ground;
		pen.fillText(letter, a - 10, top + 6.5);
	}

	/* Places that are kept for a comparison, as far as they are in sight. */
	function kept(place) {
		const m = state.data.map, row = rows.findIndex(r => r.target === place.target);
		const a = Math.round((place.from * 1e3 - m.from_ms) / m.slot_ms), b = Math.round((place.to * 1e3 - m.from_ms) / m.slot_ms) - 1;
		return row >= 0 && b >= 0 && a < m.slots ? { row, a: Math.max(0, a), b: Math.min(m.slots - 1, b) } : null;
	}

	function paint() {
		if (!made || !root.isConnected || root.hidden)
			return;
		const ratio = devicePixelRatio || 1, pen = canvas.getContext("2d"), colours = scale.ramp(state.theme());
		ink = { font: "12px ui-monospace, \"DejaVu Sans Mono\", Menlo, monospace", small: "11.5px system-ui, sans-serif", text: css("--text"), dim: css("--dim"), line: css("--line"),
			ground: css("--ground"), accent: css("--accent") };
		layout();
		if (box.h < 13)
			ink.font = ink.font.replace("12px", "10px");
		if (canvas.width !== Math.round(box.width * ratio) || canvas.height !== Math.round(box.height * ratio)) {
			canvas.width = Math.round(box.width * ratio);
			canvas.height = Math.round(box.height * ratio);
			canvas.style.width = box.width + "px";
			canvas.style.height = box.height + "px";
		}
		pen.setTransform(ratio, 0, 0, ratio, 0, 0);
		pen.fillStyle = ink.ground;
		pen.fillRect(0, 0, box.width, box.height);
		pen.fillStyle = hatch(pen);
		pen.fillRect(box.left, AXIS, box.plot, Math.max(0, Math.min(box.height - AXIS, y(rows.length) - AXIS - 1)));
		const first = Math.max(0, Math.floor(root.scrollTop / box.h)), last = Math.min(rows.length, Math.ceil((root.scrollTop + box.height - AXIS) / box.h));
		for (let i = first; i < last; i++)
			drawRow(pen, i, colours);
		pen.save();
		pen.beginPath();
		pen.rect(0, AXIS - 2, box.width, box.height);
		pen.clip();
		G.fleet.compare.forEach((place, i) => { const at = kept(place); if (at) frame(pen, at, ink.accent, 2, "AB"[i]); });
		if (over && !drag)
			frame(pen, { row: over.row, a: over.slot, b: over.slot }, ink.text, 1);
		if (chosen)
			frame(pen, chosen, ink.text, 2);
		pen.restore();
		drawAxis(pen);
	}

	let asked = 0;
	function later() {
		if (!asked)
			asked = requestAnimationFrame(() => { asked = 0; paint(); });
	}

	/* --- what is chosen --- */

	const place = c => { const [from, to] = state.slots(c.a, c.b); return { target: rows[c.row].target, from, to }; };
	const valueOf = c => { const list = rows[c.row].values.slice(c.a, c.b + 1).filter(v => v !== null); return list.length ? c.a === c.b ? list[0] : list.reduce((a, b) => a + b, 0) / list.length : null; };
	const sentence = c => rows[c.row].target + ", " + scale.span(...state.slots(c.a, c.b).map(t => t * 1e3)) + ": " + scale.format(valueOf(c), made.unit);

	function choose(c) {
		chosen = c;
		cell.textContent = c ? sentence(c) : "";
		if (c) {
			const top = c.row * box.h;
			if (top < root.scrollTop)
				root.scrollTop = top;
			else if (top + box.h > root.scrollTop + box.height - AXIS)
				root.scrollTop = top + box.h - box.height + AXIS;
		}
		G.fleet.chose(c && { ...place(c), value: valueOf(c), count: c.b - c.a + 1, unit: made.unit });
		later();
	}

	/* The cell at a point of the window; null: there is none. slot is within the map even where the point is left or right of it. */
	function find(event) {
		const r = root.getBoundingClientRect(), px = event.clientX - r.left, py = event.clientY - r.top, row = Math.floor((py - AXIS + root.scrollTop) / (box ? box.h : 1));
		if (!box || py < AXIS || row < 0 || row >= rows.length)
			return null;
		const slot = Math.floor((px - box.left) / box.cw);
		return { row, slot: Math.max(0, Math.min(box.slots - 1, slot)), inside: slot >= 0 && slot < box.slots };
	}

	function tip(event, at) {
		const r = rows[at.row], m = state.data.map, known = state.data.nodes.get(r.target), v = r.values[at.slot];
		G.tip(G.tipOf(r.target, scale.span(m.from_ms + at.slot * m.slot_ms, m.from_ms + (at.slot + 1) * m.slot_ms), [
			[G.fleet.figureText(), scale.format(v, made.unit)],
			["mean of this node", r.mean === null ? "–" : scale.format(r.mean, made.unit)],
			...known && known.releases.length ? [["release", known.releases.join(", ")]] : [],
			...known && known.labels.length ? [["labels", known.labels.join(", ")]] : [] ]), event.clientX, event.clientY);
		G.fleet.legend.at(v);
	}

	root.addEventListener("pointermove", e => {
		const at = find(e);
		if (drag) {
			if (at || drag.moved) {
				const r = root.getBoundingClientRect(), slot = Math.max(0, Math.min(box.slots - 1, Math.floor((e.clientX - r.left - box.left) / box.cw)));
				drag.moved = drag.moved || slot !== drag.slot;
				if (drag.moved)
					choose({ row: drag.row, a: Math.min(slot, drag.slot), b: Math.max(slot, drag.slot) });
			}
			return;
		}
		over = at && at.inside ? at : null;
		if (over)
			tip(e, over);
		else
			leave();
		root.style.cursor = over ? "pointer" : "";
		later();
	});
	function leave() {
		over = null;
		G.tip(null);
		G.fleet.legend.at(null);
		later();
	}
	root.addEventListener("pointerleave", () => drag || leave());
	root.addEventListener("pointerdown", e => {
		const at = find(e);
		if (e.button || !at || !at.inside)
			return;
		drag = { ...at, moved: false };
		root.setPointerCapture(e.pointerId);
		G.tip(null);
	});
	root.addEventListener("pointerup", e => {
		const d = drag;
		drag = null;
		if (!d || d.moved)
			return;
		choose({ row: d.row, a: d.slot, b: d.slot });
		if (e.shiftKey)
			G.fleet.keep(place(chosen));
		else
			G.fleet.open(place(chosen), e.ctrlKey || e.metaKey);
	});
	root.addEventListener("pointercancel", () => drag = null);
	root.addEventListener("scroll", later);
	new ResizeObserver(later).observe(root);

	/* Arrows move, with Shift they make the range longer. */
	function key(e) {
		const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -1e9], End: [0, 1e9] }[e.key];
		if (!made || !rows.length || e.altKey || e.metaKey)
			return false;
		if (by) {
			const limit = (v, n) => Math.max(0, Math.min(n - 1, v)), c = chosen || { row: by[0] < 0 ? rows.length : by[0] > 0 ? -1 : 0, a: box.slots - (by[1] < 0 ? 0 : 1), b: box.slots - (by[1] < 0 ? 0 : 1) };
			if (e.shiftKey && chosen && by[1])
				choose({ ...c, b: Math.max(c.a, limit(c.b + by[1], box.slots)) });
			else
				choose({ row: limit(c.row + by[0], rows.length), a: limit(c.a + by[1], box.slots), b: limit(c.a + by[1], box.slots) });
			return true;
		}
		if (!chosen)
			return false;
		if (e.key === "Enter")
			G.fleet.open(place(chosen), e.ctrlKey);
		else if (e.key === "c")
			G.fleet.keep(place(chosen));
		else if (e.key === "z")
			G.fleet.zoom(place(chosen));
		else if (e.key === "Escape")
			choose(null);
		else
			return false;
		return true;
	}

	function draw(list, scaleMade) {
		/* What was chosen stays if it is still there. */
		const was = chosen && rows[chosen.row] && place(chosen);
		rows = list;
		made = scaleMade;
		over = null;
		root.setAttribute("aria-rowcount", rows.length);
		root.setAttribute("aria-colcount", state.data.map.slots);
		chosen = was ? kept(was) : null;
		paint();
		if (was && !chosen)
			choose(null);
	}

	/* For tests: where a cell is in the window. */
	const rectOf = (target, slot) => {
		const row = rows.findIndex(r => r.target === target), r = root.getBoundingClientRect();
		return row < 0 ? null : { x: r.left + x(slot) + box.cw / 2, y: r.top + y(row) + box.h / 2, w: box.cw, h: box.h };
	};

	return { root, draw, paint: later, key, choose, rectOf, get chosen() { return chosen && { ...place(chosen), value: valueOf(chosen) }; } };
})();
