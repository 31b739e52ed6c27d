/*
 * table.js - the nodes as a table, for who reads it by ear or wants the numbers: mean, most and when, the last, releases, labels.
 */
G.fleet.table = (function () {
	const { el } = G, { state, scale } = G.fleet, root = el("div", { class: "nodes", hidden: true });
	const columns = [["name", "node"], ["mean", "mean", "n"], ["most", "most", "n"], ["", "when"], ["last", "last", "n"], ["", "recorded", "n"], ["", "releases"], ["", "labels"]];

	function head([key, text, kind]) {
		const sorted = key && state.now.sort === key;
		return el("th", { class: kind, scope: "col", "aria-sort": sorted ? key === "name" ? "ascending" : "descending" : null },
			key ? el("button", { title: "sort by this", onclick: () => state.set({ sort: key }, true) }, text + (sorted ? key === "name" ? " ↑" : " ↓" : ""))
				: el("button", { disabled: true }, text));
	}

	function row(r, unit) {
		const known = state.data.nodes.get(r.target) || { releases: [], labels: [] }, whole = state.slots(0, state.data.map.slots - 1);
		const figure = v => v === null ? "–" : scale.format(v, unit), at = r.at >= 0 ? state.slots(r.at, r.at) : null;
		return el("tr", null,
			el("td", null, el("a", { href: state.link({ target: r.target, from: whole[0], to: whole[1] }), title: "all of this time" }, r.target)),
			el("td", { class: "n" }, figure(r.mean)), el("td", { class: "n" }, figure(r.most)),
			el("td", null, at && el("a", { href: state.link({ target: r.target, from: at[0], to: at[1] }) }, scale.span(at[0] * 1e3, at[1] * 1e3))),
			el("td", { class: "n" }, figure(r.last)), el("td", { class: "n" }, known.duration_ms ? scale.lasted(known.duration_ms) : "–"),
			el("td", null, known.releases.join(", ")), el("td", null, known.labels.join(", ")));
	}

	function draw(list, made) {
		root.replaceChildren(el("table", null, el("thead", null, el("tr", null, columns.map(head))), el("tbody", null, list.map(r => row(r, made.unit)))));
	}

	return { root, draw };
})();
