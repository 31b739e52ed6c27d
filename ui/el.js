/*
 * el.js - elements of the page.
 */
var G = G || {};

/* A DOM node. Attributes that are functions become listeners; text only ever becomes text. */
G.el = function (tag, attributes, ...children) {
	const e = document.createElement(tag);
	for (const [k, v] of Object.entries(attributes || {}))
		if (typeof v === "function")
			e[k] = v;
		else if (v !== null && v !== undefined && v !== false)
			e.setAttribute(k, v === true ? "" : v);
	e.append(...children.flat(9).filter(c => c !== null && c !== undefined && c !== false));
	return e;
};
