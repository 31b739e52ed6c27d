/*
 * range.js - a range that is typed: "12.3s-14s", "500ms+20ms", "block 976".
 */
(function () {
	const UNITS = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, m: 6e10, min: 6e10 };

	/* The block of that number; of several (the chain was reorganized) the last. */
	const byNumber = n => G.blocks().filter(b => b.number === n && b.wallNs).pop();

	/* [number, unit] of "12.3s"; null: it is none. */
	function amount(text) {
		const m = /^(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|µs|ms|s|min|m)?$/.exec(text);
		return m && [+m[1], m[2]];
	}

	function ofTimes(text) {
		const m = /^(.*?)\s*(-|–|\.\.|to|\+)\s*(.*)$/.exec(text), { durationNs } = G.data.meta;
		const a = m && (m[1] ? amount(m[1]) : [0, "s"]), b = m && (m[3] ? amount(m[3]) : [durationNs, "ns"]);
		if (!a || !b)
			return null;
		/* The end's unit is also that of a beginning that has none: 12-14ms. */
		const end = UNITS[b[1] || "s"] * b[0], begin = UNITS[a[1] || (m[3] && b[1]) || "s"] * a[0];
		const slot = G.data.meta.slotNs || 1, whole = t => Math.round(t / slot) * slot;
		const range = [begin, m[2] === "+" ? begin + end : end].map(t => Math.min(whole(t), durationNs));
		return range[0] < range[1] ? range : null;
	}

	/* { range } (null: all of the time), { block }, or { error }: a sentence. */
	G.parseRange = function (text) {
		const words = text.trim().toLowerCase(), number = /^(block|#)?\s*([\d,]+)$/.exec(words);
		const block = number && byNumber(+number[2].replace(/,/g, ""));
		if (block)
			return { block };
		if (!words || words === "all")
			return { range: null };
		if (number && (number[1] || G.blocks().length))
			return { error: "block " + number[2] + " is not in this recording" };
		const range = ofTimes(words);
		return range ? { range } : { error: "not understood: type 12.3s-14s, 500ms+20ms" +
			(G.blocks().length ? ", block " + G.blocks()[0].number : "") + " or all" };
	};

	function go(text, said) {
		const found = G.parseRange(text);
		said.textContent = found.error || "";
		if (found.error)
			return;
		G.close();
		if (found.block)
			G.chooseBlock(found.block);
		else if (found.range)
			G.chooseRange(found.range);
		else
			G.state.set({ range: null, span: null });
	}

	G.askRange = function () {
		const said = G.el("span", { class: "warn", role: "alert" }), { range } = G.state.now, box = document.getElementById("bar");
		const input = G.el("input", { type: "text", "aria-label": "range", spellcheck: "false", autocomplete: "off",
			placeholder: "12.3s-14s" + (G.blocks().length ? ", block 976" : ""), onkeydown(e) {
				if (e.key !== "Enter")
					return;
				e.preventDefault();
				e.stopPropagation();
				go(input.value, said);
			} });
		input.value = range ? range.map(t => +(t / 1e9).toFixed(6) + "s").join("-") : "";
		const at = box.getBoundingClientRect();
		G.popup(G.el("div", { class: "panel", role: "dialog", "aria-label": "choose a range" }, G.el("label", null, "range ", input), said),
			at.right / 2, at.bottom + 4);
		input.select();
	};

	const before = G.views.time.key;
	G.views.time.key = (e, state) => before(e, state) || e.key === "R" && !!G.data.samples && (G.askRange(), true);
	G.keys.push(["R", "type a range or a block: 12.3s-14s, block 976"]);
})();
