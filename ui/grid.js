/*
 * grid.js - a table of any length: only the rows in sight are in the document.
 *
 *	const g = G.grid({ label: "functions", columns: [...], open(id) {...}, sort(key, down) {...} });
 *	root.append(g.root);
 *	g.show(ids, "self", true);
 *
 * A column is { key, title, about, value(id), text(id), bar(id), className(id), width (px; 0 = the rest),
 * left (of text, not numbers), signed (bars in two colours), extra (left out where there is no room),
 * fill(id) (a background for the cell) }. A row is an id
 * that only the owner understands. Names are cut by the column's own fit(id, characters), or all in sight together
 * if fit is true. Where the table is narrow, the column that takes the rest comes first, unless it is ordered.
 * More options: hover(id), tip(id) gives what G.tip() shows, actions(id) what G.menu() shows; their keys work too.
 */
G.grid = function (options) {
	const ROW = 20, all = options.columns, character = 7.3;
	let ids = [], chosen = 0, key = null, down = true, pool = [], scheduled = false, unsorted = [];
	let columns = [], heads = [], style = "";

	const head = G.el("div", { class: "grid-head", role: "row" });
	const rows = G.el("div", { class: "grid-rows", role: "rowgroup" });
	const body = G.el("div", { class: "grid-body" }, head, rows);
	const empty = G.el("p", { class: "grid-empty" });
	const root = G.el("div", { class: "grid", role: "grid", tabindex: "0", "aria-label": options.label },
		body, empty);

	/* Chooses the columns for the room that there is. */
	function arrange() {
		const room = root.clientWidth || innerWidth, name = all.find(c => !c.width), slim = room < 600;
		const tight = room - all.reduce((sum, c) => sum + (c.width || 220), 0) < 0;
		const first = options.ordered ? null : name;
		const next = (room < 900 || tight) && name ? [...first ? [first] : [], ...all.filter(c => c !== first && !(tight && c.extra))] : all;
		const way = "grid-template-columns:" + next.map(c => !c.width ? "minmax(0,1fr)"
			: (slim ? Math.min(c.width, 76) : c.width) + "px").join(" ");
		if (way === style)
			return;
		style = way;
		columns = next;
		pool.forEach(row => row.remove());
		pool = [];
		head.style = style;
		heads = columns.map(c => G.el("button", { class: c.left ? "left" : "", role: "columnheader",
			title: c.about || c.title, tabindex: "-1", onclick: () => options.sort(c.key, c.key === key ? !down : !c.left) }, c.title));
		head.replaceChildren(...heads);
		showSort();
	}
	function showSort() {
		heads.forEach((b, i) => b.setAttribute("aria-sort", columns[i].key !== key ? "none" : down ? "descending" : "ascending"));
	}

	function sorted() {
		const c = all.find(x => x.key === key) || all[0], n = unsorted.length;
		const sign = down ? -1 : 1;
		if (c.left) {
			const names = new Map();
			for (const id of unsorted)
				names.set(id, c.value(id));
			return Array.from(unsorted).sort((a, b) => {
				const x = names.get(a), y = names.get(b);
				return x < y ? -sign : x > y ? sign : 0;
			});
		}
		const values = new Float64Array(n), at = new Uint32Array(n);
		for (let i = 0; i < n; i++) {
			values[i] = c.value(unsorted[i]);
			at[i] = i;
		}
		const tie = options.tie || (() => 0);
		at.sort((a, b) => sign * (values[a] - values[b]) || tie(unsorted[b]) - tie(unsorted[a]) ||
			a - b);
		return Array.from(at, i => unsorted[i]);
	}

	/* How many characters a cell of a column holds. */
	const room = (c, div) => Math.floor(((c.width || div.clientWidth || 400) - 16) / character);

	function cell(div, c, id, fitted) {
		const text = c.fit === true ? fitted : c.fit ? c.fit(id, room(c, div)) : c.text(id);
		if (div.lastChild.textContent !== text)
			div.lastChild.textContent = text;
		if (c.fit)
			div.lastChild.dataset.whole = c.text(id);
		div.title = c.tip ? c.tip(id) : c.fit ? "" : c.about || "";
		if (c.bar) {
			const share = c.bar(id), whole = c.signed ? 50 : 100; /* signed ones begin at the centre */
			div.firstChild.style.width = Math.min(whole, Math.abs(share) * whole) + "%";
			div.firstChild.className = "bar" + (share < 0 ? " less" : c.signed ? " more" : "");
		}
		if (c.fill) {
			div.firstChild.className = "parts";
			div.firstChild.style.background = c.fill(id);
		}
		if (c.className)
			div.className = "cell " + (c.left ? "left " : "") + c.className(id);
	}

	function line() {
		const row = G.el("div", { class: "grid-row", role: "row", style });
		for (const c of columns)
			row.append(G.el("div", { class: c.left ? "cell left" : "cell", role: "gridcell" },
				G.el("i", { class: "bar" }), G.el("span", {})));
		row.onmousedown = e => { if (e.button === 0) choose(row.index); };
		row.onclick = () => options.pick && options.pick(ids[row.index]);
		row.ondblclick = () => options.open && options.open(ids[row.index]);
		row.onmouseenter = () => options.hover && options.hover(ids[row.index]);
		/* Of a name; a number says itself of what it is a part. */
		row.onmousemove = e => options.tip && G.tip(e.target.closest(".name") && options.tip(ids[row.index]), e.clientX, e.clientY);
		row.onmouseleave = () => G.tip(null);
		row.oncontextmenu = e => {
			choose(row.index);
			if (menu(e.clientX, e.clientY))
				e.preventDefault();
		};
		rows.append(row);
		return row;
	}

	/* What can be done with the chosen row. */
	function menu(x, y) {
		const actions = ids.length && options.actions ? options.actions(ids[chosen]) : [];
		if (actions.length)
			G.menu(actions, x, y);
		return actions.length > 0;
	}

	const seen = () => body.clientHeight - head.offsetHeight;

	function paint() {
		scheduled = false;
		arrange();
		const first = Math.max(0, Math.floor(body.scrollTop / ROW) - 2);
		const last = Math.min(ids.length, first + Math.ceil(seen() / ROW) + 5);
		while (pool.length < last - first)
			pool.push(line());
		/* Names in sight that would look the same show where they differ. */
		const fits = columns.map((c, j) => c.fit === true && last > first ?
			G.model.labels(ids.slice(first, last).map(id => [c.text(id), room(c, pool[0].children[j])])) : null);
		pool.forEach((row, k) => {
			const i = first + k;
			row.style.display = i < last ? "" : "none";
			if (i >= last)
				return;
			row.index = i;
			row.style.top = i * ROW + "px";
			row.setAttribute("aria-rowindex", i + 1);
			row.setAttribute("aria-selected", i === chosen);
			columns.forEach((c, j) => cell(row.children[j], c, ids[i], fits[j] && fits[j][k]));
		});
	}
	function later() {
		if (!scheduled) {
			scheduled = true;
			requestAnimationFrame(paint);
		}
	}
	body.onscroll = later;
	new ResizeObserver(later).observe(body);

	function choose(i) {
		if (!ids.length)
			return;
		chosen = Math.max(0, Math.min(ids.length - 1, i));
		const top = chosen * ROW;
		if (top < body.scrollTop)
			body.scrollTop = top;
		else if (top + ROW > body.scrollTop + seen())
			body.scrollTop = top + ROW - seen();
		if (options.hover)
			options.hover(ids[chosen]);
		later();
	}

	return {
		root,
		columns: all,
		get ids() { return ids; },
		get chosen() { return ids[chosen]; },
		/* A new set of rows, or the same in another order; the chosen row stays the same one. */
		show(list, sortKey, sortDown, sentence) {
			const kept = ids[chosen];
			unsorted = list;
			key = sortKey;
			down = sortDown;
			ids = sorted();
			chosen = Math.max(0, ids.indexOf(kept));
			rows.style.height = ids.length * ROW + "px";
			root.setAttribute("aria-rowcount", ids.length);
			empty.textContent = ids.length ? "" : sentence || "Nothing here.";
			showSort();
			if (!kept)
				body.scrollTop = 0;
			paint();
		},
		paint: later,
		/* Chooses a row and brings it into sight. */
		reach(id) {
			if (ids.includes(id))
				choose(ids.indexOf(id));
		},
		/* To the next row, or the one before, for which test(id) holds. */
		next(test, way) {
			for (let k = 1; k <= ids.length; k++) {
				const i = (chosen + way * k + ids.length * k) % ids.length;
				if (test(ids[i]))
					return choose(i);
			}
		},
		key(e) {
			const page = Math.max(1, Math.floor(seen() / ROW) - 1);
			const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page,
				Home: -Infinity, End: Infinity, j: 1, k: -1 }[e.key];
			if (e.ctrlKey || e.metaKey || e.altKey)
				return false;
			if (step) {
				choose(step === Infinity ? ids.length - 1 : step === -Infinity ? 0
					: chosen + step);
				return true;
			}
			if (e.key === "Enter" && ids.length && options.open) {
				options.open(ids[chosen]);
				return true;
			}
			if (e.key === "<" || e.key === ">") {
				const n = all.length, at = all.findIndex(c => c.key === key);
				const c = all[(at + (e.key === ">" ? 1 : n - 1)) % n];
				options.sort(c.key, !c.left);
				return true;
			}
			if (e.key === "r") {
				options.sort(key, !down);
				return true;
			}
			const row = pool.find(r => r.index === chosen && r.style.display !== "none"), at = row && row.getBoundingClientRect();
			if (at && (e.key === "ContextMenu" || e.key === "F10" && e.shiftKey))
				return menu(at.left + 40, at.bottom);
			const action = ids.length && options.actions && options.actions(ids[chosen]).find(a => a && a[0] === e.key);
			if (action)
				action[2]();
			return !!action;
		},
	};
};

/* The box that leaves out rows of a grid: state.filter, or another key of the state. The search of the page marks rows, and leaves all of them there. */
G.filterBox = function (grid, key = "filter") {
	const box = G.el("input", { type: "text", placeholder: "\\ only rows with …", "aria-label": "only rows with",
		title: "leaves out all other rows; the search above marks what it finds",
		spellcheck: "false", onfocus: () => box.select(),
		oninput: () => G.state.set({ [key]: box.value }, { replace: true }) });
	box.onkeydown = e => {
		if (e.key === "Escape")
			G.state.set({ [key]: "" }, { replace: true });
		if (!["Enter", "ArrowDown", "Escape"].includes(e.key))
			return;
		grid().root.focus();
		e.stopPropagation();
		e.preventDefault();
	};
	box.sync = state => {
		if (box.value !== state[key])
			box.value = state[key];
	};
	return box;
};
