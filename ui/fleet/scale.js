/*
 * scale.js - from figures to colours, and to what people read: units, ticks of values and of time.
 */
G.fleet.scale = (function () {
	/* More is darker on white, and brighter on black; lightness alone tells, so that the colour-blind see the same. */
	const ramps = {
		light: ["#fdf6dd", "#f9da86", "#eda62c", "#d4631a", "#9c2f2b", "#4b1132"],
		dark: ["#1e2733", "#47264f", "#8e2f50", "#d0512c", "#f0a02e", "#fdf0a8"],
	};
	const STEPS = 256, MINUTE = 60e3, HOUR = 3600e3, DAY = 86400e3;
	const units = { ns: v => G.model.format(v, "ns"), bytes: v => G.model.format(v, "bytes"), share: v => G.model.percent(v),
		cpus: v => !v ? "0 CPUs" : (v >= 99.95 ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1) : v.toFixed(2)) + " CPU" + (v === 1 ? "" : "s") };

	const format = (value, unit) => value === null || value === undefined ? "nothing recorded" : (units[unit] || String)(value);

	/* The colours of a theme, as bytes, from least to most. */
	const made = {};
	function ramp(theme) {
		if (made[theme])
			return made[theme];
		const points = ramps[theme].map(c => [1, 3, 5].map(i => parseInt(c.slice(i, i + 2), 16))), out = [];
		for (let i = 0; i < STEPS; i++) {
			const x = i / (STEPS - 1) * (points.length - 1), k = Math.min(points.length - 2, Math.floor(x));
			out.push("rgb(" + points[k].map((a, c) => Math.round(a + (points[k + 1][c] - a) * (x - k))).join() + ")");
		}
		return made[theme] = out;
	}

	/* "1, 2, 5, 10 ..." between two values, not more than so many. */
	function steps(low, high, most) {
		const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
		const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= rough * .999), out = [];
		for (let v = Math.ceil(low / step - 1e-9) * step; v <= high * (1 + 1e-9); v += step)
			out.push(v);
		return out;
	}

	/*
	 * The scale of some values: from 0 to nearly the most. The few cells above the 99.5th percentile have the last colour, and the legend
	 * says how far they go: one outlier does not make all others alike. log: for figures of which some are many times others.
	 */
	function make(values, unit, log) {
		const sorted = Float64Array.from(values).sort(), n = sorted.length, most = n ? sorted[n - 1] : 0;
		const nearly = n ? sorted[Math.min(n - 1, Math.floor(n * .995))] : 0, high = (most > nearly * 1.5 ? nearly : most) || 1;
		const first = sorted.find(v => v > 0) || high, low = log ? Math.max(Math.min(first, high / 10), high / 1e4) : 0;
		const at = log ? v => v <= low ? 0 : Math.log(v / low) / Math.log(high / low) : v => v / high;
		const whole = unit === "bytes" ? 2 ** (10 * Math.floor(Math.log2(Math.max(high, 1)) / 10)) : 1;
		const ticks = [];
		if (log)
			for (let p = Math.ceil(Math.log10(low) - 1e-9); 10 ** p <= high * 1.0001; p++)
				ticks.push(10 ** p);
		else
			ticks.push(...steps(0, high / whole, 4).map(v => v * whole));
		return { low, high, most, clipped: most > high, unit, log: !!log, ticks, at: v => Math.max(0, Math.min(1, at(v))),
			colour: (v, colours) => colours[Math.round(Math.max(0, Math.min(1, at(v))) * (STEPS - 1))] };
	}

	/* --- time --- */

	const two = n => String(n).padStart(2, "0");
	const day = t => { const d = new Date(t); return d.getFullYear() + "-" + two(d.getMonth() + 1) + "-" + two(d.getDate()); };
	const clock = t => { const d = new Date(t); return two(d.getHours()) + ":" + two(d.getMinutes()) + (t % MINUTE ? ":" + two(d.getSeconds()) : ""); };
	const when = t => day(t) + " " + clock(t);
	/* "2026-11-17 02:10 – 02:20" */
	const span = (a, b) => when(a) + " – " + (day(a) === day(b) ? clock(b) : when(b));
	const length = ms => ms % DAY === 0 ? ms / DAY + " d" : ms % HOUR === 0 ? ms / HOUR + " h" : ms % MINUTE === 0 ? ms / MINUTE + " min" : ms / 1e3 + " s";

	/* Of any length: "23.9 h". */
	const lasted = ms => ms >= 2 * DAY ? (ms / DAY).toFixed(1) + " d" : ms >= 2 * HOUR ? (ms / HOUR).toFixed(1) + " h" : ms >= 2 * MINUTE ? (ms / MINUTE).toFixed(1) + " min" : (ms / 1e3).toFixed(1) + " s";

	/* Ticks of an axis, not nearer than a part of it: [{ t, text, day }]. Of local time: days begin where people live. */
	function times(from, to, least) {
		const choices = [MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY];
		const step = choices.find(s => s >= least) || 90 * DAY, out = [], start = new Date(from);
		start.setHours(0, 0, 0, 0);
		/* By the calendar, because a day may have 23 hours. */
		for (let k = 0, t = start.getTime(); t <= to && k < 2000; k++, t = step >= DAY ? new Date(start).setDate(start.getDate() + k * step / DAY) : t + step)
			if (t >= from) {
				const midnight = clock(t) === "00:00";
				out.push({ t, text: midnight ? day(t).slice(5) : clock(t), day: midnight });
			}
		return out;
	}

	return { make, ramp, format, when, span, length, lasted, day, clock, times, STEPS };
})();
