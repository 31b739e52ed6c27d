/*
 * rows.js - draws the rows of the time area, each from y on: G.rows.TYPE(ctx, row, y, a, state).
 *
 * a is the axis: from, to, x(t); left, width, right in pixels; slice, columns, parts of the heat map; the
 * causes of the strips.
 */
G.rows = (function () {
	/* A name that fits; of blocks the end says more than the beginning. */
	function cut(ctx, text, room, end) {
		const wide = t => ctx.measureText(t).width;
		const part = n => end ? "…" + text.slice(-n) : text.slice(0, n) + "…";
		let n = Math.min(text.length, 200);
		if (n === text.length && wide(text) <= room)
			return text;
		while (n && wide(part(n)) > room)
			n--;
		return n > (end ? 2 : 0) ? part(n) : ""; /* of a number the last two digits tell nothing */
	}

	/* In the column of names; right: more of it, dim, at its right. */
	function name(ctx, a, text, y, h, strong, right) {
		const c = G.colours(), room = a.left - 12 - (right ? ctx.measureText(right).width + 6 : 0);
		ctx.fillStyle = strong ? c.text : c.dim;
		ctx.fillText(cut(ctx, text, room), 6, y + h / 2);
		if (right) {
			ctx.fillStyle = c.dim;
			ctx.fillText(right, a.left - 6 - ctx.measureText(right).width, y + h / 2);
		}
	}

	/* The full colour: what one cell in a hundred has. One large wait would leave all others pale. */
	function most(cells) {
		const some = cells.filter(v => v > 0).sort();
		return some.length ? some[Math.floor((some.length - 1) * .99)] : 0;
	}

	function marks(ctx, row, y, a) {
		const c = G.colours(), h = row.h - 4;
		let last = -1;
		name(ctx, a, row.kind + "s", y, row.h);
		for (const m of G.data.marks) {
			const from = Math.max(a.left, a.x(m.startNs)), to = Math.min(a.right, a.x(m.endNs));
			if (m.kind !== row.kind || m.endNs < a.from || m.startNs > a.to)
				continue;
			if (to - from < .5 && from - last < 1)
				continue;
			last = from;
			ctx.fillStyle = c.mark;
			ctx.fillRect(from, y + 2, Math.max(1, to - from - 1), h);
			ctx.fillStyle = c.dim;
			ctx.fillRect(from, y + 2, 1, h);
			ctx.fillStyle = c.text;
			if (to - from > 16)
				ctx.fillText(cut(ctx, m.name.replace(m.kind + " ", to - from > 40 ? "#" : ""), to - from - 6, true),
					from + 4, y + row.h / 2);
		}
	}

	function heat(ctx, row, y, a, state) {
		const c = G.colours(), { slice, parts } = a, h = row.h - 6, tall = h / parts;
		const time = t => G.model.format(t, "ns");
		const cells = G.bins.weigh(state, row.side, a.first, slice, a.columns, parts);
		const high = most(cells);
		row.cells = cells;
		const sides = G.data.meta.sides > 1, what = G.model.what(state).name;
		name(ctx, a, sides ? ["before", "after"][row.side] : what, y, 16, true);
		if (h > 50 && a.left > 100)
			name(ctx, a, "column " + time(slice), y + 16, 14);
		if (h > 50 && a.left > 100 && parts > 1)
			name(ctx, a, "cell " + time(slice / parts), y + 29, 14);
		ctx.fillStyle = c.panel;
		ctx.fillRect(a.left, y + 3, a.width, h);
		ctx.fillStyle = c.accent;
		for (let i = 0; i < cells.length; i++) {
			if (!cells[i])
				continue;
			const t = a.first + Math.floor(i / parts) * slice, from = Math.max(a.left, a.x(t));
			ctx.globalAlpha = .06 + .94 * Math.min(1, cells[i] / high);
			ctx.fillRect(from, y + 3 + tall * (parts - 1 - i % parts),
				Math.min(a.right, a.x(t + slice)) - from - .5, tall - (tall > 3 ? .5 : 0));
		}
		ctx.globalAlpha = 1;
	}

	function axis(ctx, row, y, a) {
		const c = G.colours(), step = a.tick();
		name(ctx, a, "seconds", y, row.h);
		for (let t = Math.ceil(a.from / step) * step; t <= a.to; t += step) {
			const text = a.clock(t, step), x = a.x(t);
			ctx.fillStyle = c.line;
			ctx.fillRect(Math.round(x), y + 1, 1, 5);
			ctx.fillStyle = c.dim;
			if (x + 4 + ctx.measureText(text).width < a.right)
				ctx.fillText(text, x + 4, y + row.h / 2);
		}
	}

	/* A column is as full as the thread's time in it is known, in the colours of its causes. */
	function strip(ctx, row, y, a, state) {
		const t = G.data.threads[row.thread], { causes } = G.data;
		const on = G.model.filters(state).thread[row.thread];
		const side = G.data.meta.sides > 1 ? ["before ", "after "][t.side] : "", h = row.h - 2;
		const m = causes.length;
		name(ctx, a, t.name || "?", y, row.h, on, (side + (G.twice(row.thread) ? t.tid : "")).trim());
		const n = Math.floor(a.width), ns = G.bins.strip(row.thread, a.from, a.to, n);
		const unit = (a.to - a.from) / n;
		const scale = new Float32Array(n), top = new Float32Array(n).fill(y + 1 + h);
		const begin = Math.max(a.left, a.x(t.startNs));
		for (let i = 0; i < n; i++) {
			let sum = 0;
			for (let k = 0; k < m; k++)
				sum += ns[i * m + k];
			scale[i] = h / Math.max(sum, unit);
		}
		ctx.globalAlpha = on ? 1 : .3;
		ctx.fillStyle = G.colours().panel;
		ctx.fillRect(begin, y + 1, Math.max(1, Math.min(a.right, a.x(t.endNs)) - begin), h);
		for (const k of G.stacking()) {
			ctx.fillStyle = G.colour.ofCause(causes[k].key);
			for (let i = 0; i < n; i++) {
				const v = ns[i * m + k] * scale[i];
				if (v > .02)
					ctx.fillRect(a.left + i * a.width / n, top[i] -= v,
						a.width / n + .1, v);
			}
		}
		ctx.globalAlpha = 1;
	}

	/* How long tasks of a type were polled: a full column is as much as any type has in one. */
	function task(ctx, row, y, a, state) {
		const { v } = row, n = v.length, h = row.h - 2, on = !state.task || state.task === row.task;
		name(ctx, a, row.label, y, row.h, on);
		ctx.fillStyle = G.colours().panel;
		ctx.fillRect(a.left, y + 1, a.width, h);
		ctx.fillStyle = G.colours().accent;
		ctx.globalAlpha = on ? 1 : .4;
		for (let i = 0; i < n; i++)
			if (v[i]) {
				const high = Math.max(1, h * v[i] / a.most);
				ctx.fillRect(a.left + i * a.width / n, y + 1 + h - high, a.width / n + .1, high);
			}
		ctx.globalAlpha = 1;
	}

	function chart(ctx, row, y, a) {
		const half = row.h / 2;
		name(ctx, a, G.model.label(row.curve.name), y, half + 3);
		name(ctx, a, G.extent(row.curve), y + half - 3, half + 3);
		ctx.save();
		ctx.beginPath();
		ctx.rect(a.left, y, a.width, row.h);
		ctx.clip();
		G.drawCurve(ctx, row.curve, a.x, y + 1, row.h - 3);
		ctx.restore();
	}

	/* What the colours of the strips mean. */
	function legend(ctx, row, y, a) {
		let x = a.left;
		a.legend = [];
		if (a.causes.length)
			name(ctx, a, "what threads did", y, row.h);
		for (const k of a.causes) {
			const { key, name: text } = G.data.causes[k];
			ctx.fillStyle = G.colour.ofCause(key);
			ctx.fillRect(x, y + 4, 9, 9);
			ctx.fillStyle = G.colours().dim;
			ctx.fillText(text, x + 13, y + row.h / 2);
			const w = ctx.measureText(text).width + 27;
			a.legend.push({ key, x, w });
			x += w;
		}
	}

	return { marks, heat, axis, strip, task, chart, legend };
})();
