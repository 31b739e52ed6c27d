/*
 * view.js - the tree as it is displayed: G.model.view(state) is its root.
 *
 * A display node is { ident, total, totalB, depth, parent, self, name, kids(), bases() }. kids() is computed
 * when it is first
 * asked for, from the node's members; callers ask only where a box is wide enough to be seen, so nothing here
 * is proportional to the size of the tree but the roots of inverted and focused views.
 */
(function () {
	let slots = null; /* by ident: which kid it is, while kids are gathered */

	/* What is left out between a base node and its display parent. */
	function transparency(state) {
		const t = G.data.tree, merged = state.merged.length ? G.model.named(state.merged) : null;
		const flat = state.group === "none";
		if (!merged && !flat)
			return null;
		return i => flat && t.depth[i] === 1 || merged !== null && merged[t.ident[i]] === 1 && i > 0;
	}

	/* whole: no function alone, of which units would be parts. */
	function shared(state, whole) {
		const w = G.model.weights(state);
		if (!slots || slots.length !== G.data.idents.n)
			slots = new Int32Array(G.data.idents.n).fill(-1);
		const total = i => w.total[i] + (w.totalB ? w.totalB[i] : 0), units = whole && state.group === "task" ? G.data.tree.unit : null;
		return { state, w, units, A: units ? apart(w.self, units) : w.total, B: units && w.selfB ? apart(w.selfB, units) : w.totalB, skip: transparency(state), collapse: state.collapse,
			groups: state.group === "name" ? G.model.groups(total) : null,
			causesOf: (node, fn) => causesOf(w, node, fn) };
	}

	/* Totals of nodes without the units of work below them, which have boxes of their own; the root's is all. */
	function apart(self, units) {
		const total = self.slice(), { parent } = G.data.tree;
		let all = 0;
		for (let i = total.length - 1; i > 0; i--) {
			all += self[i];
			if (!units[i])
				total[parent[i]] += total[i];
		}
		total[0] = self[0] + all;
		return total;
	}

	/* The identity that a base node has in the view: threads may be there by the pattern of their names. */
	const identOf = (v, c) => {
		if (c >= G.data.tree.n)
			return c - G.data.tree.n;
		const id = G.data.tree.ident[c];
		return v.groups && G.data.tree.depth[c] === 1 ? v.groups.alias.get(id) ?? id : id;
	};

	class Node {
		constructor(v, ident, parent) {
			this.v = v;
			this.ident = ident;
			this.parent = parent;
			this.depth = parent ? parent.depth + 1 : 0;
			this.total = 0;
			this.totalB = 0;
			this.list = null;
			this.members = null;
			this.causeSums = null;
		}

		get name() { return this.v.groups && this.v.groups.names.get(this.ident) || G.data.idents.name[this.ident]; }

		kids() {
			if (!this.list)
				this.list = this.gather();
			return this.list;
		}

		/* What is not in any of its kids. In an inverted tree: what has no caller further up. */
		get self() { return this.total - this.kids().reduce((sum, k) => sum + k.total, 0); }
		get selfB() { return this.totalB - this.kids().reduce((sum, k) => sum + k.totalB, 0); }

		/* Both sides of a diff; width is what the state says. */
		get width() { return this.v.width(this.total, this.totalB); }

		/* How many samples or events it stands for; null where counting them would cost too much. */
		get count() {
			if (G.data.tree.n > 5e5 || this.v.state.count)
				return null;
			const { v } = this, c = G.model.weights({ ...v.state, count: true }), t = G.data.tree;
			const sum = x => c.total[x] + (c.totalB ? c.totalB[x] : 0),
				one = x => c.self[x] + (c.selfB ? c.selfB[x] : 0);
			let n = 0;
			if (v.units)
				this.bases((from, to) => {
					for (let x = from; x < to; x++)
						n += one(x);
				});
			else
				this.bases((from, to) => n += to - from > 1 || t.size[from] === 1 ? sum(from)
				: one(from));
			return n;
		}

		/* Names from the root's first kid down to this one. */
		path() {
			const out = [];
			for (let n = this; n.parent; n = n.parent)
				out.unshift(n.name);
			return out;
		}

		/* Its weight by cause: a Float64Array, or null where there is but one cause. */
		byCause() {
			if (!this.causeSums && this.v.w.causes.length > 1) {
				this.causeSums = new Float64Array(G.data.causes.length);
				this.addCauses(this.causeSums);
			}
			return this.causeSums;
		}
	}

	/* From callers to callees: members are base nodes, kids are found below them. */
	class Forward extends Node {
		/* The kid of a base node. */
		kid(c) {
			const { v } = this, kid = new Forward(v, identOf(v, c), this);
			kid.members = [c];
			kid.total = v.A[c];
			kid.totalB = v.B ? v.B[c] : 0;
			return kid;
		}

		gather() {
			const { v } = this, { skip, collapse, units, A, B } = v, t = G.data.tree, kids = [];
			const stack = this.members.slice().reverse();
			/* Of a unit of work, members are not above its kids, but are its kids. */
			let plain = stack.length === 1 && !this.unit, inside = [];
			/* Most nodes: nothing to put together. */
			if (plain && !skip && !collapse && !(v.groups && !stack[0])) {
				const m = stack[0], end = m + t.size[m];
				for (let c = m + 1; c < end; c += t.size[c])
					if ((A[c] > 0 || B && B[c] > 0) && !(units && units[c]))
						kids.push(this.kid(c));
				return v.sort(kids, true);
			}
			const take = c => {
				if (!(A[c] > 0) && !(B && B[c] > 0))
					return;
				const id = identOf(v, c);
				if (skip && skip(c) || collapse && id === this.ident) {
					inside.push(c);
					plain = false;
					return;
				}
				if (slots[id] < 0) {
					slots[id] = kids.push(this.kid(c)) - 1;
					return;
				}
				const kid = kids[slots[id]];
				kid.members.push(c);
				kid.total += A[c];
				if (B)
					kid.totalB += B[c];
			};
			const descend = () => {
				for (let i = inside.length; i--;)
					stack.push(inside[i]);
				inside = [];
			};
			if (this.unit) {
				stack.splice(0).reverse().forEach(take);
				descend();
			}
			while (stack.length) {
				const m = stack.pop(), end = m + t.size[m];
				for (let c = m + 1; c < end; c += t.size[c])
					if (!(units && units[c]))
						take(c);
				descend();
			}
			for (const k of kids)
				slots[k.ident] = -1;
			return v.sort(kids, plain);
		}

		/* Calls fn for the ranges of base nodes that are its weight. */
		bases(fn) {
			const { size } = G.data.tree, units = this.parent && this.v.units;
			for (const m of this.members) {
				let from = m;
				for (let i = m + 1; units && i < m + size[m]; i++)
					if (units[i]) {
						if (i > from)
							fn(from, i);
						i = (from = i + size[i]) - 1;
					}
				if (from < m + size[m])
					fn(from, m + size[m]);
			}
		}

		addCauses(out) {
			const { w } = this.v, at = entriesAt(), e = G.data.entries;
			this.bases((from, to) => {
				for (let i = at[from], end = at[to]; i < end; i++)
					if (!w.drop || !w.drop[e.node[i]])
						out[e.cause[i]] += w.value[i];
			});
		}
	}

	/*
	 * From leaves to callers. All nodes share one list of leaves, each with how far it has climbed; a
	 * node is a part of it, and its kids are parts of that part: gathering sorts in place.
	 */
	class Inverted extends Node {
		gather() {
			/* Millions of leaves at the root: what is done with each is done with arrays. */
			const { v, lo, hi } = this, t = G.data.tree, { parent, ident } = t, kids = [], n = hi - lo;
			const { skip, collapse, leaf, at, A, B, groups } = v, climb = this.parent !== null;
			const oldLeaf = leaf.slice(lo, hi), next = new Uint32Array(n), kid = new Int32Array(n), sums = [], sumsB = [], places = [];
			let ended = 0;
			/* A unit of work is what calls its first function, and nothing calls it. */
			const above = v.units ? i => i >= t.n ? 0 : v.units[i] ? t.n + v.units[i] - 1 : parent[i] : i => parent[i];
			for (let j = 0; j < n; j++) {
				let p = climb ? above(at[lo + j]) : at[lo + j];
				while (p && (skip && skip(p) || collapse && climb && ident[p] === this.ident))
					p = above(p);
				next[j] = p;
				if (!p) {
					kid[j] = -1;
					ended++;
					continue;
				}
				const id = groups || v.units ? identOf(v, p) : ident[p];
				let k = slots[id];
				if (k < 0) {
					k = slots[id] = kids.push(new Inverted(v, id, this)) - 1;
					sums.push(0);
					sumsB.push(0);
					places.push(0);
				}
				kid[j] = k;
				places[k]++;
				sums[k] += A[oldLeaf[j]];
				if (B)
					sumsB[k] += B[oldLeaf[j]];
			}
			/* Those that end here first, then each kid's. */
			let place = lo + ended;
			kids.forEach((k, i) => {
				slots[k.ident] = -1;
				k.total = sums[i];
				k.totalB = sumsB[i];
				k.lo = place;
				place = k.hi = place + places[i];
				places[i] = k.lo;
			});
			ended = lo;
			for (let j = 0; j < n; j++) {
				const to = kid[j] < 0 ? ended++ : places[kid[j]]++;
				leaf[to] = oldLeaf[j];
				at[to] = next[j];
			}
			return v.sort(kids.filter(k => k.total > 0 || k.totalB > 0), false);
		}

		bases(fn) {
			for (let j = this.lo; j < this.hi; j++)
				fn(this.v.leaf[j], this.v.leaf[j] +
					(this.v.whole ? G.data.tree.size[this.v.leaf[j]] : 1));
		}
	}
	Inverted.prototype.addCauses = Forward.prototype.addCauses;

	/* By node: its first entry. Entries are in the order of their nodes. */
	let entryIndex = null;

	function entriesAt() {
		const e = G.data.entries, n = G.data.tree.n;
		if (!entryIndex || entryIndex.data !== G.data.tree) {
			const at = new Uint32Array(n + 1);
			for (let i = 0, node = 0; node <= n; node++) {
				while (i < e.n && e.node[i] < node)
					i++;
				at[node] = i;
			}
			entryIndex = { data: G.data.tree, at };
		}
		return entryIndex.at;
	}

	/* Calls fn(cause, value) for what a base node weighs itself. */
	function causesOf(w, node, fn) {
		const e = G.data.entries, at = entriesAt();
		for (let i = at[node]; i < at[node + 1]; i++)
			if (w.value[i])
				fn(e.cause[i], w.value[i]);
	}

	/* What shares of after are multiplied by before they are compared (src/analyze/diff/diff.h). It is known of
	 * what was compared only: of anything else shares are compared as they are. */
	function atEqualWork(state) {
		const d = G.diffOf(state), same = k => G.state.same(state[k], G.state.first[k]);
		const filters = ["what", "range", "threads", "processes", "causes", "idle", "count"];
		return d && d.normalized && (d !== G.data.diff || !G.state.first.search && filters.every(same)) ? d.scale : 1;
	}

	/* How wide a box of a diff is: what it weighs after, before, or both; both scaled to the same whole
	 * if normalized. */
	function widths(state, w) {
		if (!w.totalB)
			return { width: a => a, scaleA: 1, equalB: 1 };
		const scaleA = state.normalized && w.all > 0 && w.allB > 0 ? w.allB / w.all : 1;
		return { scaleA, equalB: state.normalized ? atEqualWork(state) : 1,
			width: state.side === "a" ? a => a : state.side === "b" ? (a, b) => b
				: (a, b) => a * scaleA + b };
	}

	function sorter(state, v) {
		return (kids, sorted) => state.order === "size"
			? kids.sort((a, b) => b.width - a.width || a.ident - b.ident)
			: sorted ? kids : G.url ? kids.sort((a, b) => a.name < b.name ? -1 : 1)
			: kids.sort((a, b) => a.ident - b.ident); /* they are in the order of their names */
	}

	/* The outermost nodes of functions: flags is a byte an ident. */
	function outermost(flags) {
		const t = G.data.tree, out = [];
		for (let i = 1; i < t.n;)
			if (flags[t.ident[i]]) {
				out.push(i);
				i += t.size[i];
			} else {
				i++;
			}
		return out;
	}

	function withTotals(node, A, B, members) {
		for (const m of members) {
			node.total += A[m];
			if (B)
				node.totalB += B[m];
		}
		return node;
	}

	/* A box for each unit of work, beside those of threads with what is in none. */
	function addUnits(root, v) {
		const boxes = new Map(), { units, A, B } = v;
		for (let i = 1; i < units.length; i++)
			if (units[i] && (A[i] > 0 || B && B[i] > 0))
				boxes.has(units[i]) ? boxes.get(units[i]).push(i) : boxes.set(units[i], [i]);
		root.list = v.sort([...root.gather(), ...[...boxes].map(([u, members]) => {
			const n = new Forward(v, u - 1, root);
			n.unit = true;
			n.members = members;
			return withTotals(n, A, B, members);
		})], false);
	}

	function forwardRoot(v, state, fn) {
		const root = new Forward(v, G.data.tree.ident[0], null);
		root.members = [0];
		withTotals(root, v.A, v.B, root.members);
		if (!fn && !state.focus) {
			if (v.units)
				addUnits(root, v);
			return root;
		}
		/* The function itself is the only kid: what is above it is left out. */
		const flags = G.model.named([fn || state.focus]),
			list = outermost(flags).filter(i => v.A[i] > 0 || v.B && v.B[i] > 0);
		const groups = new Map();
		for (const i of list) {
			const id = G.data.tree.ident[i];
			groups.has(id) ? groups.get(id).push(i) : groups.set(id, [i]);
		}
		root.list = [...groups].map(([id, members]) => {
			const n = new Forward(v, id, root);
			n.members = members;
			return withTotals(n, v.A, v.B, members);
		});
		root.total = root.totalB = 0;
		for (const k of root.list) {
			root.total += k.total;
			root.totalB += k.totalB;
		}
		root.members = list;
		return root;
	}

	/* fn: only the callers of that function, by its total; else of everything, by self. */
	function invertedRoot(v, state, fn) {
		const t = G.data.tree, w = v.w;
		v.A = fn ? w.total : w.self;
		v.B = fn ? w.totalB : w.selfB;
		v.whole = !!fn;
		if (fn) {
			v.leaf = Uint32Array.from(outermost(G.model.named([fn])));
		} else {
			const { node, n } = G.data.entries, leaf = new Uint32Array(n);
			let k = 0;
			for (let i = 0, last = 0; i < n; i++)
				if (node[i] !== last && (v.A[last = node[i]] > 0 || v.B !== null && v.B[last] > 0))
					leaf[k++] = last;
			v.leaf = leaf.subarray(0, k);
		}
		v.at = v.leaf.slice();
		const root = new Inverted(v, t.ident[0], null);
		root.lo = 0;
		root.hi = v.leaf.length;
		return withTotals(root, v.A, v.B, v.leaf);
	}

	let kept = [];

	/*
	 * The root of the display tree. options.fn with options.callers (or .callees): only that function's,
	 * as its sandwich shows them.
	 */
	G.model.view = function (state, options) {
		const o = options || {}, w = G.model.weights(state);
		const key = JSON.stringify([state.group, state.merged, state.collapse, state.invert,
			state.focus, state.order,
			state.side, state.normalized, o]);
		const found = kept.find(k => k.key === key && k.w === w);
		if (found) {
			kept = [found, ...kept.filter(k => k !== found)];
			return found.root;
		}
		const v = shared(state, !o.fn && !state.focus);
		Object.assign(v, widths(state, w));
		v.sort = sorter(state, v);
		const root = o.callers || state.invert && !o.callees
			? invertedRoot(v, state, o.callers && o.fn)
			: forwardRoot(v, state, o.callees && o.fn);
		if (!o.fn)
			kept = [{ key, w, root }, ...kept.slice(0, 1)];
		return root;
	};
})();
