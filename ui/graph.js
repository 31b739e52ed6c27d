/*
 * graph.js - draws a display tree as a flame graph on one canvas, and says what is where.
 *
 *	const g = G.graph(host, { click(node), menu(node, x, y), over(box, x, y) });
 *	g.show(root, { state, zoom, up, scheme, flags, chains });
 *
 * Rows are laid out from the root on, as far as somebody scrolls; siblings too narrow to be seen are one bar.
 * A box is { node, x, w, row, run, left, head }: run is null or { n, total } of what was put together, node the first of
 * those. With chains, functions that call nothing but one other share a row: what is above the zoom, and what each thread
 * begins with. head is then the first of the chain, left is where the callees of the last one begin, null for the others.
 */
G.graph = function (host, on) {
	const ROW = 19, MIN = 0.7, MANY = 60000, LINKS = 30,
		FONT = '12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
	const { el } = G, canvas = el("canvas", { "aria-hidden": "true" }),
		inner = el("div", { style: "position:relative" }, canvas);
	const selectMark = el("div", { class: "mark", hidden: true }),
		overMark = el("div", { class: "mark over", hidden: true });
	const ctx = canvas.getContext("2d", { alpha: false });
	let o = null, rows = [], where = new Map(), boxes = 0, done = true, W = 0, H = 0, cw = 0, scheduled = false,
		selected = null, over = null;

	inner.append(overMark, selectMark);
	host.classList.add("graph");
	host.append(inner);

	/* Puts a box into a row. */
	function add(row, box) {
		box.row = rows.length;
		if (!box.run)
			where.set(box.node, box);
		row.push(box);
		return box;
	}

	/* Is it a type of async tasks? Such a box has its row for itself; a chain may begin below it. */
	const isTask = n => n.name.startsWith("task ");

	/* A node and what it leads to, as long as that is all that it calls. */
	function chainOf(node) {
		const out = [node];
		for (let n = node, kids; out.length < LINKS && (kids = n.kids()).length === 1 &&
			kids[0].width > n.width * 0.995 && !isTask(kids[0]); out.push(n))
			n = kids[0];
		return out;
	}

	/* Nodes side by side: as wide as their names if there is room, else most for the last one. */
	function links(row, list, x, w) {
		const want = list.map(k => (G.model.columnsOf(k.name) + 2) * cw + 8), n = list.length;
		const sum = want.reduce((a, b) => a + b), last = sum > w ? Math.min(want[n - 1], w / 2) : want[n - 1] + w - sum;
		const part = sum > w ? (w - last) / (sum - want[n - 1]) : 1;
		let at = x;
		list.forEach((node, i) => {
			const wide = i < n - 1 ? want[i] * part : x + w - at;
			add(row, { node, x: at, w: wide, run: null, left: i < n - 1 ? null : x, head: list[0] });
			at += wide;
		});
	}

	/* A node as one box, or with the chain that it begins. */
	function put(row, node, x, w) {
		const first = o.chains && o.zoom.depth === 0 && !isTask(node) && (node.depth < 2 || isTask(node.parent)) && (!node.depth || where.get(node.parent).head === null);
		const chain = first ? chainOf(node).slice(0, Math.floor(w / 24)) : [];
		if (chain.length > 2)
			links(row, chain, x, w);
		else
			add(row, { node, x, w, run: null, left: x, head: null });
	}

	/* The rows above the zoom, and its own. */
	function firstRows() {
		const above = [];
		for (let n = o.zoom; n.depth > 0;)
			above.unshift(n = n.parent);
		for (const list of o.chains && above.length > 2 ? [above] : above.map(n => [n])) {
			const row = [];
			links(row, list, 0, W);
			rows.push(row);
		}
		const row = [];
		put(row, o.zoom, 0, W);
		rows.push(row);
	}

	/* The row below (or above) the last one. */
	function nextRow() {
		const row = [], scale = W / o.zoom.width;
		if (!rows.length)
			return firstRows();
		for (const box of rows[rows.length - 1]) {
			if (box.run || box.left === null)
				continue;
			let x = box.left, run = null;
			for (const k of box.node.kids()) {
				const w = k.width * scale;
				if (w < MIN) {
					if (!run)
						run = add(row, { node: k, x, w: 0, run: { n: 0, total: 0, totalB: 0 } });
					run.w += w;
					run.run.n++;
					run.run.total += k.total;
					run.run.totalB += k.totalB;
				} else {
					run = null;
					put(row, k, x, w);
				}
				x += w;
			}
		}
		boxes += row.length;
		if (row.length)
			rows.push(row);
		else
			done = true;
	}

	function layout() {
		rows = [];
		where = new Map();
		boxes = 0;
		done = false;
		if (!(o.zoom.width > 0))
			done = true;
		while (!done && (boxes < MANY || rows.length < H / ROW + 2))
			nextRow();
		size();
	}

	const height = () => Math.max(rows.length * ROW + 1, H);

	function size() {
		inner.style.height = height() + "px";
	}

	/* Of a row, within what scrolls. */
	const top = d => o.up ? height() - (d + 1) * ROW : d * ROW;

	function rowAt(y) {
		return Math.floor(o.up ? (height() - 1 - y) / ROW : y / ROW);
	}

	function measure() {
		const ratio = G.ratio(), w = host.clientWidth, h = host.clientHeight;
		if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
			canvas.width = Math.round(w * ratio);
			canvas.height = Math.round(h * ratio);
			canvas.style.width = w + "px";
			canvas.style.height = h + "px";
		}
		W = w;
		H = h;
		ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
		ctx.font = FONT;
		ctx.textBaseline = "middle";
		cw = cw || ctx.measureText("MMMMMMMMMM").width / 10;
	}

	/* A box in the colours of its causes, side by side in proportion. Gives the parts that want white
	 * text. */
	function split(node, x, y, w, h) {
		const sums = node.byCause(), keys = G.data.causes, dark = [],
			all = sums.reduce((a, b) => a + b, 0);
		let at = x;
		for (const c of node.v.w.causes) {
			const part = sums[c] / all * w;
			if (!(part > 0))
				continue;
			const fill = G.colour.ofCause(keys[c].key);
			ctx.fillStyle = fill;
			ctx.fillRect(at, y, part, h);
			if (G.colour.isDarkFill(fill))
				dark.push([at, part]);
			at += part;
		}
		return dark;
	}

	/* White letters where a box is dark: only its parts are written over. */
	function lighten(text, x, y, parts) {
		ctx.save();
		ctx.beginPath();
		for (const [at, w] of parts)
			ctx.rect(at, y - ROW / 2, w, ROW);
		ctx.clip();
		ctx.fillStyle = "#fff";
		ctx.fillText(text, x, y);
		ctx.restore();
	}

	/* Fills a box; its label goes into texts, which are written together at the end. */
	function drawBox(box, y, look, faded, texts) {
		const { node, run, x } = box, w = Math.max(box.w - (box.w > 3 ? 1 : 0), 0.5), h = ROW - 1;
		const hit = look.flags && !run && look.flags[node.ident];
		let dark = null;
		if (run) {
			ctx.fillStyle = look.other;
			ctx.fillRect(x, y, Math.max(box.w, 0.4), h);
			return;
		}
		if (faded)
			ctx.globalAlpha = 0.45;
		if (o.scheme.splits && !hit && node.parent) {
			dark = split(node, x, y, w, h);
		} else {
			const fill = hit ? look.match : node.parent ? o.scheme.fill(node) : look.other;
			ctx.fillStyle = fill;
			ctx.fillRect(x, y, w, h);
			if (G.colour.isDarkFill(fill))
				dark = [[x, w]];
		}
		if (faded)
			ctx.globalAlpha = 1;
		if (w > 3 * cw) {
			const link = box.head && box.head !== node ? "› " : "";
			texts.push({ link, name: node.name, n: Math.floor((w - 7) / cw) - link.length, x: x + 4, y: y + ROW / 2,
				colour: faded ? look.text : "#101216", dark: faded ? null : dark });
		}
	}

	function paint() {
		scheduled = false;
		if (!o || !W)
			return;
		const css = getComputedStyle(document.documentElement),
			get = n => css.getPropertyValue(n).trim();
		const look = { other: get("--other"), match: get("--match"), text: get("--text"),
			flags: o.flags }, texts = [];
		ctx.fillStyle = get("--ground");
		ctx.fillRect(0, 0, W, H);
		const scroll = host.scrollTop, a = rowAt(scroll), b = rowAt(scroll + H), { dim } = o.scheme;
		const last = Math.max(a, b);
		while (!done && rows.length <= last + 2)
			nextRow();
		size();
		for (let d = Math.max(0, Math.min(a, b)); d <= last && d < rows.length; d++) {
			const y = top(d) - scroll;
			for (const box of rows[d])
				drawBox(box, y, look, box.node.depth < o.zoom.depth || !box.run && box.node.parent && dim && dim(box.node), texts);
		}
		const names = G.model.labels(texts.map(t => [t.name, t.n]));
		texts.forEach(({ link, x, y, colour, dark }, i) => {
			const text = names[i] && link + names[i];
			ctx.fillStyle = colour;
			ctx.fillText(text, x, y);
			if (dark && dark.length)
				lighten(text, x, y, dark);
		});
		place(selectMark, selected);
		place(overMark, over);
	}

	function redraw() {
		if (!scheduled) {
			scheduled = true;
			requestAnimationFrame(paint);
		}
	}

	const boxOf = node => node && where.get(node) || null;

	function place(mark, box) {
		if (box && box instanceof Object && !("x" in box))
			box = boxOf(box);
		mark.hidden = !box;
		if (!box)
			return;
		mark.style.left = box.x - 1 + "px";
		mark.style.top = top(box.row) - 1 + "px";
		mark.style.width = Math.max(4, box.w + 1) + "px";
		mark.style.height = ROW + 1 + "px";
	}

	/* The box at a place of the window, or null. */
	function hit(clientX, clientY) {
		const r = host.getBoundingClientRect(), x = clientX - r.left,
			d = rowAt(clientY - r.top + host.scrollTop);
		const row = o && x < W ? rows[d] : null;
		if (!row)
			return null;
		let lo = 0, hi = row.length - 1;
		while (lo < hi) {
			const mid = lo + hi + 1 >> 1;
			if (row[mid].x <= x)
				lo = mid;
			else
				hi = mid - 1;
		}
		const box = row[lo];
		return box && x >= box.x && x <= box.x + Math.max(box.w, 1.5) ? box : null;
	}

	/* Brings a row into sight. */
	function reveal(d) {
		const y = top(d);
		if (y < host.scrollTop)
			host.scrollTop = Math.max(0, y - 2 * ROW);
		else if (y + ROW > host.scrollTop + H)
			host.scrollTop = y + 3 * ROW - H;
	}

	function show(root, options) {
		const before = o;
		o = { root, ...options };
		o.zoom = o.zoom || root;
		const w = W, h = H;
		measure();
		over = null;
		if (!before || before.root !== root || before.zoom !== o.zoom || before.chains !== o.chains || w !== W || h < H)
			layout();
		size();
		if (!before || before.zoom !== o.zoom || before.up !== o.up) {
			const keep = 6 * ROW, box = boxOf(o.zoom), y = top(box ? box.row : 0);
			host.scrollTop = o.up ? y + ROW + keep - H : Math.max(0, y - keep);
		} else if (o.up) {
			host.scrollTop += h - H; /* what is below stays in sight */
		}
		paint();
	}

	new ResizeObserver(() => {
		if (o && host.clientHeight && (host.clientWidth !== W || host.clientHeight !== H))
			show(o.root, o);
	}).observe(host);
	host.addEventListener("scroll", redraw);
	host.addEventListener("mousemove", e => {
		const box = hit(e.clientX, e.clientY);
		if (box !== over) {
			over = box;
			place(overMark, over);
		}
		on.over && on.over(box, e.clientX, e.clientY);
	});
	host.addEventListener("mouseleave", () => {
		over = null;
		place(overMark, null);
		on.over && on.over(null);
	});
	host.addEventListener("click", e => {
		const box = hit(e.clientX, e.clientY);
		if (box && on.click)
			on.click(box.run && box.run.n > 1 ? box.node.parent : box.node, e);
	});
	host.addEventListener("contextmenu", e => {
		const box = hit(e.clientX, e.clientY);
		if (box && on.menu) {
			e.preventDefault();
			on.menu(box.node, e.clientX, e.clientY);
		}
	});

	return {
		show, redraw, hit, boxOf, reveal, ROW,
		get rows() { return rows; },
		get selected() { return selected; },
		/* Where a node's box is in the window: { x, y }. */
		at(node) {
			const b = boxOf(node), r = host.getBoundingClientRect();
			return b && { x: r.left + b.x, y: r.top + top(b.row) - host.scrollTop + ROW };
		},
		select(node) {
			selected = node;
			if (boxOf(node))
				reveal(boxOf(node).row);
			place(selectMark, selected);
		},
		boxes() {
			const r = host.getBoundingClientRect(), out = [];
			rows.forEach((row, d) => row.forEach(b =>
				out.push({ name: b.node.name, x: r.left + b.x,
				y: r.top + top(d) - host.scrollTop, w: b.w, h: ROW, depth: b.node.depth,
				total: b.run ? b.run.total : b.node.total,
				totalB: b.run ? b.run.totalB : b.node.totalB, n: b.run ? b.run.n : 1 })));
			return out;
		},
	};
};
