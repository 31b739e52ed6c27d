"""results.py - the files of a run in bench/results/, rewritten after each phase, so that Ctrl-C keeps what was measured."""
import json
import os


class Results:
	"""A table and its figures. A run that has not come to its end stands beside the last whole one, not in its place."""

	def __init__(self, path):
		self.path = path # without an ending
		self.unfinished = path + "-unfinished"

	def write(self, text, figures, whole):
		"""All that there is so far; the name without an ending."""
		name = self.path if whole else self.unfinished
		os.makedirs(os.path.dirname(name), exist_ok=True)
		for ending, content in ((".md", text), (".json", json.dumps(figures, indent=1) + "\n")):
			with open(name + ending + ".new", "w", encoding="utf-8") as f:
				f.write(content)
			os.replace(name + ending + ".new", name + ending)
			if whole and os.path.exists(self.unfinished + ending):
				os.remove(self.unfinished + ending)
		return name
