/*
 * begin.js - what the files of the page of nodes add to. Elements (el.js), numbers (names.js) and tips (menu.js) are those of the other page.
 */
G.model = {};
G.fleet = { compare: [] /* places that are kept for a comparison: A, B */ };
