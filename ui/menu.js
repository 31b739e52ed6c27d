/*
 * menu.js - what lies above the page where the mouse is: the tip that follows it, and menus; and what one can do with a
 * function wherever its name stands.
 */
(function () {
	const { el } = G, set = patch => G.state.set(patch), tip = el("div", { id: "tip", hidden: true });

	document.body.append(tip);

	/* Shows parts beside the mouse; null takes them away. */
	G.tip = function (parts, x, y) {
		tip.hidden = !parts;
		if (!parts)
			return;
		tip.replaceChildren(...parts.filter(Boolean));
		const low = y + 20 + tip.offsetHeight > innerHeight - 60;
		tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 6)) + "px";
		tip.style.top = (low ? Math.max(4, y - 14 - tip.offsetHeight) : y + 20) + "px";
	};

	/* A name, where it is from, and figures as rows of texts. */
	G.tipOf = (name, from, rows) => [el("b", null, name), from && el("div", null, from),
		el("table", null, rows.map(r => el("tr", null, r.map(t => el("td", null, t)))))];

	/* actions: [key, words, what it does]; null = a line between. */
	G.menu = function (actions, x, y) {
		const item = ([key, words, action]) => el("button", { role: "menuitem", onclick() {
			G.close();
			action();
		} }, el("span", null, words), el("kbd", null, key));
		G.tip(null);
		G.popup(el("div", { class: "menu", role: "menu" }, actions.map(a => a ? item(a) : el("hr"))), x, y);
	};

	G.functionActions = function (name) {
		const s = G.state.now;
		return [["Enter", "sandwich: its callers and callees", () => set({ fn: name, view: "sandwich" })],
			["l", "find it in the flame graph", () => set({ view: "flame", search: name, regex: false, zoom: [] })],
			["f", "focus: only under this function", () => set({ view: "flame", focus: name, zoom: [] })],
			["h", "hide it and all under it", () => set({ hidden: [...s.hidden.filter(x => x !== name), name], zoom: [] })], null,
			["c", "copy its name", () => G.copy(name, name)]];
	};
})();
