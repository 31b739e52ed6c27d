/*
 * time.js - the time area: marks, the heat map of what is weighed, a strip for each thread, series, brush.
 *
 * Two canvases lie over each other: what the data say (rows.js), drawn when the window of time or a filter
 * changes, and what the hand does: the range, the pointer. All rows are on one axis, so that a brush means
 * the same in each. Those under the axis scroll.
 */
(function () {
	const STRIP = 15, CHART = 30, MARK = 17, AXIS = 17, HEAT = 66, HEAT2 = 46, LEGEND = 17, SHARE = .26, LOW = 500;
	let root, base, over, fold, splitter, heads = [], body = [], order = null, kinds = null, curves = null, drawn = "";
	/* Heights: of the rows that stay, of the others, what is seen of these, of all. */
	let fixed = 0, tall = 0, seen = 0, height = 0;
	let scroll = 0;
	let cursor = -1, grab = null, timer = 0, keyRow = -1;

	/* The axis, as rows.js takes it. */
	const a = {
		left: 150, width: 0, right: 0, from: 0, to: 1, slice: 1, first: 0, columns: 0, parts: 1,
		causes: [], legend: [],
		x: t => a.left + (t - a.from) / (a.to - a.from) * a.width,
		tick: () => nice((a.to - a.from) / a.width * 80),
		nice, clock,
	};
	const clamp = (v, low, high) => Math.max(low, Math.min(high, v));
	const timeAt = px => clamp(a.from + (px - a.left) / a.width * (a.to - a.from), a.from, a.to);
	const slot = () => G.data.meta.slotNs || 1e6, duration = () => G.data.meta.durationNs || 1;
	/* Where the hand is, in whole slots: what a range takes in is then exact. */
	const handAt = px => Math.round(timeAt(px) / slot()) * slot();

	/* The smallest of 1, 2, 5 · 10^k that is not below t. */
	function nice(t) {
		const power = Math.pow(10, Math.floor(Math.log10(t)));
		return [1, 2, 5, 10].map(k => k * power).find(v => v >= t * 0.999999);
	}
	/* Seconds, with as many places as a step of that size needs. */
	function clock(t, step) {
		const size = (step || (a.to - a.from) / a.width) / 1e9;
		return (t / 1e9).toFixed(clamp(Math.ceil(-Math.log10(size) - 1e-9), 0, 6));
	}
	function between(from, to) {
		const step = Math.max(1, to - from) / 100;
		return clock(from, step) + "–" + clock(to, step) + " s";
	}

	/* Folded, unless somebody asks for it, where the window is low. */
	const isFolded = state => typeof state.folded === "boolean" ? state.folded : innerHeight < LOW;
	/* The most that it is high: as the splitter says, else so that the view below has more. */
	const most = state => Math.floor(innerHeight * (state.split > 0 ? clamp(state.split, .05, .85) : SHARE));

	/* The strips: of each thread what it did; where tasks are looked at, of each type how long it was polled. */
	function strips(state) {
		const { threads, tasks, causes, events } = G.data, n = Math.floor(a.width), k = causes.length;
		if (state.view !== "tasks" || !tasks)
			return !events.some(e => e.role !== "other") ? [] : order.filter(i => threads[i].startNs < a.to && threads[i].endNs >= a.from).map(thread => ({ type: "strip", thread, h: STRIP }));
		a.most = 0;
		const list = [...tasks.types].sort((x, y) => y.pollNs - x.pollNs), labels = G.model.labels(list.map(t => [t.name, Math.floor(a.left / 7)]));
		return list.map(({ name: task }, at) => {
			const ns = G.bins.strip("task " + task, a.from, a.to, n);
			const v = new Float32Array(n).map((_, i) => ns.subarray(i * k, i * k + k).reduce((sum, x) => sum + x));
			a.most = v.reduce((m, x) => Math.max(m, x), a.most);
			return { type: "task", task, label: labels[at], v, h: STRIP };
		});
	}

	function layout(state) {
		const d = G.data, { span } = state, folded = isFolded(state), times = d.samples && !folded;
		a.left = root.clientWidth < 700 ? 96 : 150;
		[a.from, a.to] = Array.isArray(span) && span[1] > span[0] ? span : [0, duration()];
		a.width = Math.max(50, root.clientWidth - a.left - 8);
		a.right = a.left + a.width;
		order = order || G.threadOrder();
		kinds = kinds || G.markKinds().slice(0, 3);
		heads = kinds.map(kind => ({ type: "marks", kind, h: MARK }));
		for (let side = 0; times && side < d.meta.sides; side++)
			heads.push({ type: "heat", side, h: d.meta.sides > 1 || innerHeight < 800 ? HEAT2 : HEAT });
		heads.push({ type: "axis", h: AXIS });
		body = times ? strips(state) : [];
		if (!folded)
			body.push(...curves.map(curve => ({ type: "chart", curve, h: CHART })));
		[fixed, tall] = [heads, body].map(list => list.reduce((y, row) => (row.y = y) + row.h, 0));
		a.causes = body.some(row => row.type === "strip") ? G.stacking().filter(k => order.causes[k]) : [];
		const legend = a.causes.length ? LEGEND : 0;
		height = Math.max(fixed + (folded ? 0 : 4), Math.min(fixed + tall + (legend || 4), most(state)));
		splitter.hidden = folded;
		splitter.setAttribute("aria-valuenow", Math.round(height / innerHeight * 100));
		fold.style.left = a.left - 24 + "px";
		seen = height - fixed - legend;
		scroll = clamp(scroll, 0, Math.max(0, tall - seen));
		/* Slices are at least 8 pixels wide, and their parts at least one slot. */
		a.slice = nice(Math.max((a.to - a.from) / a.width * 8, slot()));
		a.parts = [20, 10, 5, 2].find(n => Number.isInteger(a.slice / n / slot())) || 1;
		a.first = Math.floor(a.from / a.slice) * a.slice;
		a.columns = Math.ceil((a.to - a.first) / a.slice);
	}

	function prepare(canvas) {
		const k = G.ratio(), w = root.clientWidth, ctx = canvas.getContext("2d");
		if (canvas.width !== Math.round(w * k) || canvas.height !== Math.round(height * k)) {
			canvas.width = Math.round(w * k);
			canvas.height = Math.round(height * k);
			canvas.style.height = height + "px";
		}
		ctx.setTransform(k, 0, 0, k, 0, 0);
		ctx.clearRect(0, 0, w, height);
		ctx.font = "11px system-ui, sans-serif";
		ctx.textBaseline = "middle";
		return ctx;
	}
	function paint(state) {
		const ctx = prepare(base), w = root.clientWidth;
		for (const row of heads)
			G.rows[row.type](ctx, row, row.y, a, state);
		ctx.save();
		ctx.beginPath();
		ctx.rect(0, fixed, w, seen);
		ctx.clip();
		for (const row of body)
			if (row.y + row.h > scroll && row.y < scroll + seen)
				G.rows[row.type](ctx, row, fixed + row.y - scroll, a, state);
		ctx.fillStyle = G.colours().line;
		if (tall > seen)
			ctx.fillRect(w - 5, fixed + scroll / tall * seen, 3,
				Math.max(12, seen * seen / tall));
		ctx.restore();
		G.rows.legend(ctx, { h: LEGEND }, height - LEGEND, a);
	}

	/* What is not in the range steps back. In the heat map it begins and ends inside of a column. */
	function veil(ctx, range) {
		const [from, to] = range.map(t => clamp(a.x(t), a.left, a.right)), part = a.slice / a.parts;
		const box = (x, y, w, h) => w > 0 && h > 0 && ctx.fillRect(x, y, w, h);
		ctx.fillStyle = G.colours().shade;
		for (const row of [...heads, { y: fixed, h: seen }]) {
			if (row.type !== "heat") {
				box(a.left, row.y, from - a.left, row.h);
				box(to, row.y, a.right - to, row.h);
				continue;
			}
			for (let i = 0, h = row.h - 6, y = row.y + 3; i < a.columns; i++) {
				const t = a.first + i * a.slice, x = Math.max(a.left, a.x(t));
				const w = Math.min(a.right, a.x(t + a.slice)) - x;
				const [low, high] = range.map(v => Math.round((v - t) / part))
					.map(k => h * clamp(k, 0, a.parts) / a.parts);
				box(x, y + h - low, w, low);
				box(x, y, w, h - high);
			}
		}
		ctx.fillStyle = G.colours().accent;
		for (const t of range)
			if (t >= a.from && t <= a.to)
				ctx.fillRect(Math.round(a.x(t)) - .5, 0, 1, fixed + seen);
	}
	function overlay() {
		const ctx = prepare(over), c = G.colours(), range = grab && grab.range || G.state.now.range;
		const row = body[keyRow];
		if (range)
			veil(ctx, range);
		const far = G.sides(G.state.now) && G.otherRange(G.state.now.against);
		ctx.fillStyle = c.accent;
		if (far) /* what the range is compared with */
			ctx.fillRect(clamp(a.x(far[0]), a.left, a.right), 0, clamp(a.x(far[1]), a.left, a.right) -
				clamp(a.x(far[0]), a.left, a.right), 3);
		ctx.fillStyle = c.dim;
		ctx.globalAlpha = .5;
		if (cursor >= a.left)
			ctx.fillRect(Math.round(cursor), 0, 1, fixed + seen);
		ctx.globalAlpha = 1;
		ctx.strokeStyle = c.accent;
		const shown = row && clamp(scroll, row.y + row.h - seen, row.y) === scroll;
		if (shown && document.activeElement === over)
			ctx.strokeRect(1.5, fixed + row.y - scroll + .5, a.left - 4, row.h - 1);
	}

	const rowAt = y => y < fixed ? heads.find(r => y < r.y + r.h)
		: y < fixed + seen ? body.find(r => y - fixed + scroll < r.y + r.h) : undefined;
	const markAt = (row, t) => G.data.marks.find(m => m.kind === row.kind && m.startNs <= t &&
		m.endNs > t);

	/* The cell of the heat map under a point: from, to, its weight. */
	function cellAt(row, px, py) {
		const part = a.slice / a.parts;
		const column = Math.min(a.columns - 1, Math.floor((timeAt(px) - a.first) / a.slice));
		const up = clamp(Math.floor((1 - (py - row.y - 3) / (row.h - 6)) * a.parts), 0, a.parts - 1);
		const t = a.first + column * a.slice + up * part;
		return [t, t + part, row.cells[column * a.parts + up]];
	}
	const handIn = (row, e) => row.type !== "heat" ? [handAt(e.offsetX), handAt(e.offsetX)]
		: cellAt(row, Math.max(a.left, e.offsetX), clamp(e.offsetY, row.y, row.y + row.h - 1));

	/* "on CPU 61 %, lock 39 %" */
	function shares(ns, whole) {
		const parts = G.data.causes.map((c, i) => [c.name, ns[i] / whole]).filter(p => p[1] > .005);
		parts.sort((p, q) => q[1] - p[1]);
		return parts.map(p => p[0] + " " + G.model.percent(Math.min(1, p[1]))).join(", ");
	}
	/* What is at a place, in words. */
	function say(row, px, py) {
		const state = G.state.now, d = G.data, t = timeAt(px), thread = d.threads[row.thread];
		const name = px < a.left, account = thread && thread.account;
		if (name && thread)
			return thread.name + " (" + thread.tid + ") · " +
				(account ? shares(account.ns, account.wallNs) + " · " : "") +
				"click: only this thread; with shift: this one too";
		if (name && !row.task)
			return "";
		if (row.type === "heat") {
			const [from, to, v] = cellAt(row, px, py);
			return between(from, to) + " · " + G.model.format(v, G.model.unit(state)) + " of " +
				G.model.what(state).name;
		}
		if (row.type === "marks") {
			const m = markAt(row, t);
			return m ? m.name + " · " + between(m.startNs, m.endNs) + " · " +
				G.model.format(m.endNs - m.startNs, "ns") : "";
		}
		const n = Math.floor(a.width), unit = (a.to - a.from) / n, i = Math.min(n - 1, Math.floor((t - a.from) / unit));
		if (thread) {
			const k = d.causes.length;
			const ns = G.bins.strip(row.thread, a.from, a.to, n).subarray(i * k, i * k + k);
			return thread.name + " at " + clock(t) + " s · " +
				(shares(ns, unit) || "nothing seen");
		}
		if (row.task)
			return "task " + row.task + (name ? " · click: its page" : " at " + clock(t) + " s · polled " + G.model.percent(row.v[i] / unit) + " of the time");
		const c = row.curve;
		return (c ? G.model.label(c.name) + " at " : "") + clock(t) + " s" +
			(c ? " · " + G.quantity(c.v[Math.max(0, c.t.findIndex(v => v >= t))], c.unit) : "") +
			(c && c.say ? " of the target's CPU time: " + c.say(t) : "");
	}

	/* The views follow the hand as fast as they can draw, and as often as browsers let a page change its address:
	   200 times in 10 s. The whole drag is one step to undo. */
	function follow() {
		if (timer || !grab)
			return;
		const started = performance.now(), before = G.state.now;
		G.state.set({ range: grab.range[1] > grab.range[0] ? grab.range : null },
			{ replace: grab.pushed });
		grab.pushed = grab.pushed || G.state.now !== before;
		timer = setTimeout(() => {
			timer = 0;
			if (grab && grab.late)
				follow();
		}, Math.max(60, performance.now() - started));
		grab.late = false;
	}
	/* The cause of the legend under a point. */
	function causeAt(e) {
		const item = e.offsetY >= fixed + seen && a.legend.find(i => e.offsetX >= i.x && e.offsetX < i.x + i.w);
		return item ? item.key : "";
	}
	function press(e) {
		const row = rowAt(e.offsetY), range = G.state.now.range, heat = row && row.type === "heat";
		const cause = !e.button && causeAt(e);
		if (cause)
			return G.state.set({ ...G.model.what(G.state.now).events.some(i => G.data.events[i].role === "wait") ? {}
				: { what: (G.model.whats().find(w => w.key === "wall") || G.model.what(G.state.now)).key },
				...G.colour.only(G.state.now, cause) });
		if (e.button || !row)
			return;
		if (e.offsetX < a.left) {
			if (row.type === "strip")
				pick(row.thread, e.shiftKey || e.ctrlKey);
			else if (row.task)
				G.state.set({ task: row.task });
			return;
		}
		/* An end of the range can be taken and moved. */
		const near = range && !heat ? range.findIndex(t => Math.abs(a.x(t) - e.offsetX) < 5) : -1;
		const from = near < 0 ? handIn(row, e) : [range[1 - near], range[1 - near]];
		grab = { row, x: e.offsetX, from, moved: near >= 0, range: null, pushed: false, late: false };
		over.setPointerCapture(e.pointerId);
	}
	function move(e) {
		const row = grab ? grab.row : rowAt(e.offsetY);
		cursor = e.offsetX;
		if (grab && (grab.moved || Math.abs(cursor - grab.x) >= 3 || row.type === "heat")) {
			const [from, to] = handIn(row, e);
			grab.moved = grab.late = true;
			grab.range = [Math.min(grab.from[0], from), Math.max(grab.from[1], to)];
			follow();
			G.status(between(...grab.range) + " · " +
				G.model.format(grab.range[1] - grab.range[0], "ns"));
		} else if (!grab) {
			const onName = row && (row.type === "strip" || row.task) || causeAt(e) ? "pointer" : "";
			over.style.cursor = row && cursor >= a.left ? "crosshair" : onName;
			G.status(row ? say(row, cursor, e.offsetY) : causeAt(e) ? "click: only this cause; once more: all of them" : "");
		}
		overlay();
	}
	function release(e) {
		if (!grab)
			return;
		const g = grab, mark = g.row.type === "marks" && markAt(g.row, timeAt(e.offsetX));
		const cell = g.row.type === "heat" ? g.from.slice(0, 2) : null;
		const clicked = mark ? [mark.startNs, mark.endNs] : cell;
		const range = g.range || clicked;
		grab = null;
		if (mark && !g.range && mark.endNs > mark.startNs)
			G.chooseMark(mark);
		else if (range)
			G.state.set({ range: range[1] > range[0] ? range : null }, { replace: g.pushed });
		overlay();
	}
	/* Only this thread; once more: all of them again. */
	function pick(thread, more) {
		const list = G.state.now.threads, now = G.model.isBut(list) ? null : list;
		const name = G.handle(thread), has = now && now.includes(name);
		let threads = has && now.length === 1 ? [] : [name];
		if (more && now)
			threads = has ? now.filter(t => t !== name) : [...now, name];
		G.state.set({ threads: threads.length ? threads : null });
	}
	function wheel(e) {
		const { from, to } = a, w = to - from, t = timeAt(e.offsetX), zoom = e.ctrlKey || e.metaKey;
		const top = scroll;
		if (zoom || e.deltaX && G.state.now.span) {
			const size = zoom ? clamp(w * (e.deltaY > 0 ? 1.25 : .8), 2e6, duration()) : w;
			const begin = clamp(zoom ? t - (t - from) / w * size : from + e.deltaX / a.width * w,
				0, duration() - size);
			G.state.set({ span: size >= duration() ? null : [begin, begin + size] },
				{ replace: true });
			e.preventDefault();
		} else {
			scrollTo(scroll + e.deltaY);
			if (scroll !== top)
				e.preventDefault();
		}
	}
	function scrollTo(y) {
		scroll = clamp(y, 0, Math.max(0, tall - seen));
		paint(G.state.now);
		overlay();
	}

	/* Keys while the time area has the focus: threads, and the range. */
	function keys(e) {
		const strips = body.filter(r => r.type === "strip").length;
		const way = /Down|Right/.test(e.key) ? 1 : -1;
		if (/Arrow(Up|Down)/.test(e.key) && strips) {
			keyRow = clamp(keyRow + way, 0, strips - 1);
			const row = body[keyRow];
			scrollTo(clamp(scroll, row.y + row.h - seen, row.y));
			G.status(say(row, 0, 0));
		} else if (/Arrow(Left|Right)/.test(e.key)) {
			shift(way, e.shiftKey);
		} else if ((e.key === "Enter" || e.key === " ") && strips && body[keyRow]) {
			pick(body[keyRow].thread, e.shiftKey || e.key === " ");
		} else {
			return;
		}
		e.preventDefault();
		e.stopPropagation();
	}
	/* Sets the range and brings it into sight: what would be a line gets an eighth of the axis. */
	function choose(range, more) {
		const wide = range[1] - range[0], [from, to] = G.state.now.span || [0, duration()], room = Math.min(duration(), wide * 8);
		const begin = clamp((range[0] + range[1] - room) / 2, 0, duration() - room);
		const near = wide * 50 > to - from && range[0] >= from && range[1] <= to;
		G.state.set({ range, ...near ? {} : { span: room < duration() ? [begin, begin + room] : null }, ...more });
	}
	/* Sets the range. An axis that was zoomed in moves along, so that the range stays in sight. */
	function show(range, options) {
		const { span } = G.state.now, size = span && Math.max(span[1] - span[0], range[1] - range[0]);
		if (!span || range[0] >= span[0] && range[1] <= span[1])
			return G.state.set({ range }, options);
		const from = clamp((range[0] + range[1] - size) / 2, 0, Math.max(0, duration() - size));
		G.state.set({ range, span: size >= duration() ? null : [from, from + size] }, options);
	}
	/* Moves the range by a tick of the axis, or its end; without one it begins as the first tick in sight. */
	function shift(way, end) {
		const unit = slot(), tick = Math.max(unit, Math.round(a.tick() / unit) * unit), begin = Math.ceil(a.from / tick) * tick;
		const { range } = G.state.now, [from, to] = range || [begin, Math.min(begin + tick, duration())];
		const step = way * tick;
		const by = clamp(step, -from, duration() - to);
		const next = !range ? [from, to] : end ? [from, clamp(to + step, from + unit, duration())]
			: [from + by, to + by];
		show(next, { replace: !!range });
		G.status(between(...next));
	}
	function toMark(way) {
		const spans = G.data.marks.filter(m => m.endNs > m.startNs), blocks = spans.filter(m => m.kind === "block");
		const marks = blocks.length ? blocks : spans;
		marks.sort((m, n) => way * (m.startNs - n.startNs));
		const { range } = G.state.now, next = marks.find(m => !range ||
			way * (m.startNs - range[0]) > 0);
		if (next) {
			show([next.startNs, next.endNs]);
			G.status(next.name);
		}
		return marks.length > 0;
	}

	Object.assign(G.state.defaults, { span: null, folded: null });
	G.keys.push(["time"], ["drag", "choose a range: all else follows; a click takes one cell or mark"],
		["Esc", "all of the time again, as a double click"],
		["z", "zoom the axis to the range, and back"],
		["[ ] { }", "move the range by a tick of the axis; its end"], [", .", "previous and next mark"],
		["T", "fold the time area away"], ["drag its edge", "more or less of the time area; a double click: as at first"],
		["Tab, ↑ ↓ Enter", "in the time area: choose a thread; Space adds one"]);

	function init(element) {
		root = element;
		base = G.el("canvas", { class: "time-base" });
		over = G.el("canvas", { class: "time-over", tabindex: "0", role: "application",
			onpointerdown: press, onpointermove: move, onpointerup: release, onkeydown: keys,
			onfocus: overlay, onblur: overlay,
			onmousedown: e => e.preventDefault(), /* arrows stay with the view below */
			"aria-label": "Time: drag for a range; arrows choose threads and move the range" });
		over.onpointerleave = () => {
			cursor = -1;
			G.status(G.words(G.state.now));
			overlay();
		};
		over.ondblclick = e => e.offsetX >= a.left && G.state.set({ range: null });
		over.addEventListener("wheel", wheel, { passive: false });
		fold = G.el("button", { class: "fold", title: "fold the time area (T)",
			"aria-label": "fold the time area",
			onclick: toggle });
		splitter = G.el("div", { class: "splitter", role: "separator", tabindex: "0", "aria-orientation": "horizontal",
			"aria-label": "height of the time area", "aria-valuemin": "5", "aria-valuemax": "85", title: "drag: more or less of the time area",
			ondblclick: () => G.state.set({ split: 0 }, { replace: true }), onkeydown: e => {
				const step = { ArrowUp: -.03, ArrowDown: .03 }[e.key];
				if (!step)
					return;
				split(height / innerHeight + step);
				e.preventDefault();
				e.stopPropagation();
			} });
		splitter.onpointerdown = e => splitter.setPointerCapture(e.pointerId);
		splitter.onpointermove = e => splitter.hasPointerCapture(e.pointerId) &&
			split((e.clientY - root.getBoundingClientRect().top) / innerHeight);
		root.append(base, over, fold, splitter);
	}
	const split = share => G.state.set({ split: +clamp(share, .05, .85).toFixed(3) }, { replace: true });
	const toggle = () => G.state.set({ folded: !isFolded(G.state.now) });

	function draw(state) {
		curves = curves || G.curves();
		root.hidden = !(G.data.samples && G.data.entries.n) && !G.data.marks.length && !curves.length;
		if (root.hidden)
			return;
		/* Only what it shows makes it draw again: a range that moves does not. */
		const now = JSON.stringify([G.model.parts.map(k => k === "range" || state[k]), state.span, state.view === "tasks" && state.task,
			isFolded(state), state.split, G.theme(), root.clientWidth, innerHeight, G.ratio()]);
		if (now !== drawn) {
			drawn = now;
			fold.textContent = isFolded(state) ? "▸" : "▾";
			layout(state);
			paint(state);
		}
		overlay();
	}
	function key(e, state) {
		const at = "[]{}".indexOf(e.key);
		if (e.ctrlKey || e.metaKey || e.altKey || root.hidden)
			return false;
		if (e.key === "z")
			G.state.set({ span: state.span ? null : state.range });
		else if (at >= 0)
			shift(at % 2 ? 1 : -1, at > 1);
		else if (e.key === "T")
			toggle();
		else if (e.key === "," || e.key === ".")
			return toMark(e.key === "." ? 1 : -1);
		else
			return false;
		return true;
	}
	G.views.time = { init, draw, key };
	G.range = between;
	G.chooseRange = choose;
	/* The time of a mark; of a long poll also what its thread did in it. */
	G.chooseMark = m => {
		const { key } = G.model.whats().find(w => /^(wall|cpu)$/.test(w.key)) || G.model.what(G.state.now);
		const { range, span, ...whole } = G.whole;
		choose([m.startNs, m.endNs], m.kind === "long poll" && G.data.threads[m.thread] ? { ...whole, view: "flame", what: key,
			threads: [G.handle(m.thread)] } : {});
	};
	G.test.time = () => {
		const { top } = root.getBoundingClientRect();
		const name = r => r.kind || r.task || (r.curve || G.data.threads[r.thread] || {}).name;
		const place = (r, y) => ({ type: r.type, name: name(r), y: top + y, h: r.h,
			cells: r.cells && Array.from(r.cells) });
		return { ...a, height, rows: [...heads.map(r => place(r, r.y)),
			...body.map(r => place(r, fixed + r.y - scroll))] };
	};
})();
