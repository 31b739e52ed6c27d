/*
 * stats.js - the statistics of src/stats/stats.c, for comparisons that are made on the page. The tests hold both to the same
 * figures (tests/golden/stats.json).
 */
G.stats = (function () {
	const STRETCHES = 8, MOST_DF = 1e6; /* beyond that Student's distribution is the normal one */

	/* Of x > 0, by the approximation of Lanczos. */
	function lnGamma(x) {
		const c = [676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
			12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];
		const t = x + 6.5;
		let sum = 0.99999999999980993;
		for (let i = 0; i < c.length; i++)
			sum += c[i] / (x + i);
		return Math.log(2 * Math.PI) / 2 + (x - .5) * Math.log(t) - t + Math.log(sum);
	}

	/* The continued fraction of the incomplete beta function, by the modified method of Lentz. */
	function betaFraction(a, b, x) {
		const tiny = 1e-300, least = v => Math.abs(v) < tiny ? tiny : v;
		let c = 1, d = 1 / least(1 - (a + b) * x / (a + 1)), f = d;
		for (let m = 1; m < 400; m++) {
			let change = 1;
			for (const term of [m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
				-(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))]) {
				d = 1 / least(1 + term * d);
				c = least(1 + term / c);
				change = c * d;
				f *= change;
			}
			if (Math.abs(change - 1) < 1e-14)
				break;
		}
		return f;
	}

	/* I_x(a, b); y is 1 - x, given for its own precision. */
	function betaShare(a, b, x, y) {
		if (x <= 0 || y <= 0)
			return x <= 0 ? 0 : 1;
		const front = Math.exp(lnGamma(a + b) - lnGamma(a) - lnGamma(b) + a * Math.log(x) + b * Math.log(y));
		return x < (a + 1) / (a + b + 2) ? front * betaFraction(a, b, x) / a : 1 - front * betaFraction(b, a, y) / b;
	}

	/* P(|T| >= |t|) of Student's t. */
	function tP(t, df) {
		const square = t * t, n = Math.min(df, MOST_DF);
		if (Number.isNaN(square) || !(df > 0))
			return 1;
		return square === Infinity ? 0 : betaShare(n / 2, .5, n / (n + square), square / (n + square));
	}

	let bounds = new Map(), of = null; /* by df, of one probability: intervals are always the same */

	/* The t that |T| exceeds with probability p. */
	function tBound(p, df) {
		let low = 0, high = 1;
		if (!(p < 1) || !(df > 0))
			return 0;
		if (of !== p)
			[bounds, of] = [new Map(), p];
		if (bounds.has(df))
			return bounds.get(df);
		/* Newton's method, between ends that close in. */
		while (tP(high, df) > p && high < 1e12)
			high *= 2;
		const n = Math.min(df, MOST_DF), front = 2 * Math.exp(lnGamma((n + 1) / 2) - lnGamma(n / 2)) / Math.sqrt(n * Math.PI);
		for (let i = 0, t = high / 2; i < 100 && high - low > 1e-9 * high; i++) {
			const off = tP(t, df) - p;
			if (off > 0)
				low = t;
			else
				high = t;
			const next = t + off / (front * (1 + t * t / n) ** (-(n + 1) / 2));
			if (Math.abs(next - t) < 1e-9 * t) {
				high = next;
				break;
			}
			t = next > low && next < high ? next : (low + high) / 2;
		}
		if (bounds.size > 1e4)
			bounds.clear();
		bounds.set(df, high);
		return high;
	}

	/* Benjamini and Hochberg: for each p the smallest false discovery rate at which it counts as a discovery. */
	function adjust(p) {
		const of = i => p[i] >= 0 && p[i] <= 1 ? p[i] : 1, n = p.length, q = new Float64Array(n);
		let least = 1;
		[...p.keys()].sort((a, b) => of(b) - of(a)).forEach((at, k) => q[at] = least = Math.min(least, of(at) * n / (n - k)));
		return q;
	}

	function median(list) {
		const v = Float64Array.from(list).sort(), n = v.length;
		return n ? (v[n - 1 >> 1] + v[n >> 1]) / 2 : 0;
	}

	/* The variance of the sum of residuals, from the sums over stretches of so many neighbours. */
	function spreadOf(e, length) {
		const n = e.length, count = n - length + 1;
		let sum = 0, squares = 0, fourths = 0, stretches = n / length;
		for (let i = 0; i < length - 1; i++)
			sum += e[i];
		for (let i = 0; i < count; i++) {
			sum += e[i + length - 1];
			squares += sum * sum;
			fourths += sum * sum * sum * sum;
			sum -= e[i];
		}
		if (!(squares > 0) || !(fourths > 0))
			return { variance: 0, df: 0 };
		const variance = squares / count * stretches * stretches / (stretches - 1);
		const kurtosis = fourths * count / (squares * squares);
		if (length > 1)
			stretches *= 1.5;
		return { variance, df: kurtosis > 1 ? Math.min(stretches - 1, 2 * stretches / (kurtosis - 1)) : stretches - 1 };
	}

	/* stats_sum_spread(): the largest of the variances that stretches of 1, 2, 4, ... neighbours give. */
	function sumSpread(e) {
		if (e.length < 2)
			return { variance: 0, df: 0 };
		let worst = spreadOf(e, 1), before = worst;
		const larger = (variance, df) => {
			if (variance > worst.variance)
				worst = { variance, df: Math.sqrt(worst.df * df) };
		};
		for (let length = 2; length * STRETCHES <= e.length; length *= 2) {
			const s = spreadOf(e, length);
			larger(s.variance, s.df);
			larger(2 * s.variance - before.variance, s.df / 1.5);
			before = s;
		}
		return worst;
	}

	/* df of the sum of independent parts, by Welch and Satterthwaite. */
	function sumDf(parts) {
		let v = 0, doubt = 0;
		for (const p of parts) {
			v += p.variance;
			doubt += p.variance > 0 ? p.variance * p.variance / p.df : 0;
		}
		return doubt > 0 ? v * v / doubt : Infinity;
	}

	return { tP, tBound, adjust, median, sumSpread, sumDf };
})();
