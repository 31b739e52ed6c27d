/*
 * folded.js - stacks as text: "thread;outer;...;leaf 123", as gasflame report --format folded writes them.
 */
(function () {
	const KERNEL = 4; /* of enum ident_kind */

	/* One field: no separator, no line break. */
	function field(ident) {
		const name = G.data.idents.name[ident] || "[no name]";
		const kernel = G.data.idents.note[ident] === KERNEL;
		return name.replace(/;/g, ":").replace(/[\r\n]/g, " ") + (kernel ? "_[k]" : "");
	}

	/* What a stack weighs in such a file: samples where all weigh the same, microseconds of waits, else
	 * values. */
	function weigher(state) {
		const what = G.model.what(state), w = G.model.weights(state),
			events = what.events.map(i => G.data.events[i]);
		if (state.count)
			return x => Math.round(x);
		if (events.some(e => e.role === "wait" || e.role === "queue"))
			return x => Math.round(x / 1000);
		const counts = G.model.weights({ ...state, count: true }),
			period = events.length && events[0].period;
		if (period && Math.abs(w.all + w.allB - (counts.all + counts.allB) * period) < 0.5)
			return x => Math.round(x / period);
		return x => +x.toFixed(3);
	}

	/* The stacks below a display node, from the root on, as a list of texts; in a diff those of the side
	 * that is shown. */
	G.folded = function (node, state) {
		const t = G.data.tree, { w, skip, collapse, units } = node.v, weigh = weigher(state),
			sums = new Map();
		const self = w.selfB && state.side !== "a" ? w.selfB : w.self,
			wall = G.model.what(state).key === "wall";
		const limit = state.focus ? G.model.named([state.focus]) : null, e = G.data.entries;
		const path = [];
		const add = (i, weight, tail) => {
			path.length = 0;
			let last = -1, above = 0;
			for (let n = i, unit = 0; n; n = unit ? 0 : t.parent[n]) {
				if ((!skip || !skip(n)) && !(collapse &&
					t.ident[t.parent[n]] === t.ident[n])) {
					path.push(field(t.ident[n]));
					if (limit && limit[t.ident[n]])
						above = path.length;
				}
				unit = units && units[n];
				if (unit)
					path.push(field(unit - 1));
			}
			if (above)
				path.length = above; /* what is above the focus is not in the picture */
			if (!state.invert)
				path.reverse();
			const key = path.join(";") + (tail ? ";" + tail : "");
			sums.set(key, (sums.get(key) || 0) + weight);
		};
		node.bases((from, to) => {
			for (let i = from; i < to; i++)
				if (self[i] > 0 && !(w.drop && w.drop[i]))
					wall ? node.v.causesOf(i, (c, v) =>
						add(i, v, "[" + G.data.causes[c].name + "]"))
						: add(i, self[i], "");
		});
		const out = [];
		for (const [key, v] of sums) {
			const n = weigh(v);
			if (n)
				out.push((key || "all") + " " + n + "\n");
		}
		return out;
	};

	/* Saves text as a file of the user's. */
	G.save = function (name, parts) {
		const a = G.el("a", { href: URL.createObjectURL(new Blob(parts, { type: "text/plain" })),
			download: name });
		document.body.append(a);
		a.click();
		a.remove();
		setTimeout(() => URL.revokeObjectURL(a.href), 10000);
		G.test.saved = { name, text: parts.length < 1e5 ? parts.join("") : "" };
	};

	/* To the clipboard; by the old way where the new one is not allowed. */
	G.copy = async function (text, what) {
		G.test.copied = text;
		try {
			await navigator.clipboard.writeText(text);
		} catch (x) {
			const area = G.el("textarea", { class: "unseen" }), back = document.activeElement;
			area.value = text;
			document.body.append(area);
			area.select();
			document.execCommand("copy");
			area.remove();
			if (back)
				back.focus();
		}
		G.status(G.el("span", null, "copied: " + what));
	};
})();
