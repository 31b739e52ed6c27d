/*
 * served.js - how a page that gasflame serve sends gets its data, and the way back to the list. Only in pages that are served.
 *
 * Of a long recording there is a first picture, without times, while the server reads the rest. When that is there the page
 * opens itself again: what is shown is in its URL.
 */
(function () {
	const { url, first, list } = document.getElementById("data").dataset, byId = id => document.getElementById(id);

	async function get(from, how) {
		const answer = await fetch(from, how);
		if (!answer.ok)
			throw new Error((await answer.text()).trim() || "the server said " + answer.status);
		return answer;
	}

	/* Until an answer is there, the server's words about how far it is. */
	async function telling(answer, say) {
		const timer = setInterval(() => get("progress").then(a => a.text()).then(t => say(t.trim())).catch(() => 0), 400);
		try {
			return await answer;
		} finally {
			clearInterval(timer);
		}
	}

	const typing = () => /^(INPUT|SELECT)$/.test(document.activeElement.tagName) || byId("keys");

	async function rest() {
		try {
			await telling(get(url, { method: "HEAD" }), t => G.status(t));
			while (typing())
				await new Promise(done => setTimeout(done, 500));
			location.reload();
		} catch (e) {
			G.status("The rest of the recording cannot be read: " + e.message);
		}
	}

	G.served = async function () {
		if (list)
			byId("title").before(G.el("a", { href: list, id: "back", title: "all recordings" }, "‹ all"));
		const say = t => {
			if (byId("loading"))
				byId("loading").textContent = t;
		};
		const answer = await (first ? get(first) : telling(get(url), say));
		const bytes = new Uint8Array(await answer.arrayBuffer());
		if (first)
			rest();
		return bytes;
	};
})();
