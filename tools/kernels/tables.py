"""tables.py - what tools/test-kernels found, as tables of Markdown for docs/manual/kernels.md."""
import dataclasses
import datetime
import shlex
import sys

MACHINE = {"amd64": "x86-64", "arm64": "arm64"}
PROGRAMS = {"on_cpu_clock": "a CPU sample", "on_switch": "a switch", "on_waking": "a wake-up"}
OWN = {"cpu": ["on_cpu_clock"], "wait": ["on_switch", "on_waking"]} # by the case that runs them


@dataclasses.dataclass
class Cell:
	text: str      # "99.9 %", "yes", "no"
	note: str = ""
	failed: bool = False
	by_perf: bool = False


@dataclasses.dataclass
class Row:
	name: str      # of the kernel or of the setting
	arch: str
	kernel: str = ""
	cells: dict = dataclasses.field(default_factory=dict)
	costs: dict = dataclasses.field(default_factory=dict) # case to program to (runs, ns)

	def programs(self):
		"""Each BPF program: its name, ns a run, ns of a system call in the same seconds, runs."""
		for case, names in OWN.items():
			cost = self.costs.get(case, {})
			for name in names:
				if cost.get(name, (0, 0))[0] and cost.get("getppid", (0, 0))[0]:
					(runs, ns), (calls, call_ns) = cost[name], cost["getppid"]
					yield name, ns / runs, call_ns / calls, runs

	def failed(self):
		return any(cell.failed for cell in self.cells.values())

	def title(self):
		return f"{self.name}: {self.kernel}" if self.kernel else self.name

	def machine(self):
		return f"{MACHINE[self.arch]}, {'this machine' if self.name == 'native' else 'emulated'}"


def table(head, rows):
	lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
	return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


class Notes:
	"""Reasons below a table, each once."""

	def __init__(self):
		self.list = []

	def mark(self, text):
		text = text.replace("|", "\\|")
		if text not in self.list:
			self.list.append(text)
		return f" ({self.list.index(text) + 1})"

	def text(self):
		return "".join(f"{i + 1}. {note}\n" for i, note in enumerate(self.list))


def cell_text(cell, notes):
	if cell is None:
		return "-"
	text = cell.text + (" by perf" if cell.by_perf else "")
	return text + (notes.mark(cell.note) if cell.note and cell.text == "no" else "")


def grid(first, rows, name):
	"""Rows x what was recorded."""
	columns = list(dict.fromkeys(c for row in rows for c in row.cells))
	notes = Notes()
	body = [[name(row), row.machine()] + [cell_text(row.cells.get(c), notes) for c in columns] for row in rows]
	text = table([first, "machine"] + [f"`{c}`" for c in columns], body)
	return text + ("\n" + notes.text() if notes.list else "")


def costs(rows):
	body = []
	for row in rows:
		found = {name: (ns, call_ns) for name, ns, call_ns, _ in row.programs()}
		if found:
			body.append([row.kernel, row.machine()] + [
				f"{found[p][0] / found[p][1]:.1f} ({found[p][0]:,.0f} ns)" if p in found else "-" for p in PROGRAMS] + [
				" / ".join(dict.fromkeys(f"{call_ns:,.0f} ns" for _, call_ns in found.values()))])
	return table(["kernel", "machine", *(f"{p}, in system calls" for p in PROGRAMS.values()), "a system call (getppid)"], body) if body else ""


def command():
	"""How this was made, but for where things lie on this machine."""
	words, i = ["tools/test-kernels"], 1
	while i < len(sys.argv):
		if sys.argv[i] in ("--build", "--out", "--markdown"):
			i += 1
		else:
			words.append(sys.argv[i])
		i += 1
	return shlex.join(words)


def markdown(kernels, rights):
	"""All tables, each below a line with its date and command."""
	made = f"{datetime.date.today().isoformat()}, `{command()}`"
	text = ""
	if kernels:
		text += f"<!-- kernels: {made} -->\n" + grid("kernel", kernels, lambda row: row.kernel or row.name) + "\n"
	cost = costs(kernels)
	if cost:
		text += f"<!-- costs: {made} -->\n" + cost + "\n"
	if rights:
		text += f"<!-- rights: {made} -->\n" + grid("setting", rights, lambda row: f"{row.name} ({row.kernel})") + "\n"
	return text
