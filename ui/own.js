/*
 * own.js - the nearest own function of a place: waits and allocations end in the C library and the kernel, but a person can
 * change only what is above these.
 */
G.own = (function () {
	const NAMELESS = 2, FUNCTION = 2, UNNAMED = 5, OWN = 0; /* of ownfunction.c, of enum ident_kind, of enum code_kind */
	let kept = {};

	/*
	 * By base node: the ident of the innermost function at or above it that is of no library; -1 where there is none. It is the
	 * recorder's rule (src/analyze/tree/ownfunction.h). Of what is counted in bytes the program's own crates come first.
	 */
	function nearest(state) {
		const { tree: t, idents } = G.data, bytes = G.model.what(state).unit === "bytes", key = "of" + bytes;
		if (kept.tree !== t)
			kept = { tree: t };
		if (kept[key])
			return kept[key];
		const of = new Int32Array(t.n).fill(-1), own = new Uint8Array(t.n);
		const named = of.slice(), nameless = new Uint8Array(t.n); /* the nearest with a name, and how many without are below that */
		for (let i = 1; i < t.n; i++) {
			const id = t.ident[i], p = t.parent[i], note = idents.note[id];
			const fits = (note === FUNCTION || note === UNNAMED) && !idents.library[id], first = fits && bytes && idents.kind[id] === OWN;
			named[i] = fits && note === FUNCTION ? id : named[p];
			nameless[i] = !fits ? nameless[p] : note === FUNCTION ? 0 : Math.min(255, nameless[p] + 1);
			own[i] = first || own[p] ? 1 : 0;
			of[i] = !first && !(fits && !own[p]) ? of[p] : nameless[i] && nameless[i] <= NAMELESS && named[i] >= 0 ? named[i] : id;
		}
		return kept[key] = of;
	}

	/* Of what ends in plumbing the rows are own functions: waits, and everything that is counted in bytes. */
	const wanted = state => G.model.what(state).unit === "bytes" ||
		G.model.what(state).events.every(i => /wait|queue/.test(G.data.events[i].role));

	/* The own function under which most of a function's own weight is: { name, share }, or null where it is one itself. */
	function above(state, ident) {
		const { tree: t, idents } = G.data, w = G.model.weights(state), of = nearest(state), sums = new Map();
		let all = 0, most = -1;
		for (let i = 1; i < t.n; i++)
			if (t.ident[i] === ident && of[i] >= 0) {
				const v = w.self[i] + (w.selfB ? w.selfB[i] : 0);
				all += v;
				sums.set(of[i], (sums.get(of[i]) || 0) + v);
				if (most < 0 || sums.get(of[i]) > sums.get(most))
					most = of[i];
			}
		return most < 0 || most === ident || !all ? null : { name: idents.name[most], share: sums.get(most) / all };
	}

	return { nearest, wanted, above };
})();
