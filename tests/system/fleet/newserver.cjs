/*
 * newserver.cjs MODULES FOLDER - the engine of chdb behind as much of ClickHouse's HTTP as gasflame uses, on a port of loopback that it prints. For a test that the
 * current engine takes what Debian's takes: one request at a time, and users are not looked at.
 */
"use strict";
const fs = require("fs"), http = require("http"), path = require("path"), zlib = require("zlib");
const { Session } = require(path.join(process.argv[2], "chdb"));
const folder = process.argv[3], session = new Session(path.join(folder, "data"));
let number = 0;

/* What is sent as bytes becomes a file, as the library takes texts only. */
function insert(sql, database, body) {
	const [, table, columns] = /^INSERT INTO (\S+) \(([^)]*)\) FORMAT RowBinary$/.exec(sql);
	const file = path.join(folder, `rows${number++}`);
	const types = new Map(session.query(`SELECT name, type FROM system.columns WHERE database = '${database}' AND table = '${table}'`, "TabSeparatedRaw")
		.trim().split("\n").map(line => line.split("\t")));
	const structure = columns.split(", ").map(c => `${c} ${types.get(c)}`).join(", ");
	fs.writeFileSync(file, body);
	session.query(`INSERT INTO ${table} (${columns}) SELECT * FROM file('${file}', 'RowBinary', '${structure}')`);
	fs.unlinkSync(file);
	return "";
}

function answer(url, body) {
	const database = url.searchParams.get("database"), sql = url.searchParams.get("query");
	if (database)
		session.query(`USE \`${database}\``);
	if (sql)
		return insert(sql, database, body);
	const text = body.toString();
	if (!/^SELECT/.test(text)) {
		session.query(text);
		return "";
	}
	return session.query(text, "JSONCompact");
}

session.query("SET output_format_json_quote_64bit_integers = 1");
http.createServer((request, reply) => {
	const parts = [];
	request.on("data", part => parts.push(part));
	request.on("end", () => {
		let body = Buffer.concat(parts);
		try {
			if (request.headers["content-encoding"] === "gzip")
				body = zlib.gunzipSync(body);
			reply.end(answer(new URL(request.url, "http://x"), body));
		} catch (e) {
			const code = (/Code: (\d+)/.exec(e.message) || [0, "1"])[1];
			reply.writeHead(500, { "X-ClickHouse-Exception-Code": code });
			reply.end(e.message);
		}
	});
}).listen(0, "127.0.0.1", function () { console.log("port", this.address().port); });
