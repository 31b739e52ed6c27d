#!/usr/bin/env python3
"""stacks.py [--stacks N] [--seed S] - writes N unique folded stacks of a made-up Rust program to stdout.

The program has some thousand functions with the long names that Rust gives them, each calls a few others,
some of them far more often. A million stacks are about 830 MB and 5.2 million nodes. The same arguments give
the same bytes.
"""
import argparse
import random
import sys

CRATES = ("reth_trie reth_evm reth_db reth_engine_tree reth_provider revm_interpreter revm_precompile alloy_rlp alloy_trie "
          "tokio hyper tower jsonrpsee_server rayon_core crossbeam_epoch hashbrown mdbx core alloc std").split()
WORDS = ("state root hashed cursor account storage proof node prefix walker builder update seek next block "
         "header receipt payload executor transaction pool journal cache overlay changeset table environment "
         "page commit cow branch leaf nibbles encode decode bloom precompile opcode stack memory gas frame "
         "handler inspector context result database snapshot trie witness").split()
TYPES = "u8 u64 B256 Address U256 Bytes Account StorageKey TxEnvelope Header N".split()


def camel(rng, n):
    return "".join(rng.choice(WORDS).capitalize() for _ in range(n))


def snake(rng, n):
    return "_".join(rng.choice(WORDS) for _ in range(n))


def name(rng):
    crate = rng.choice(CRATES)
    path = "%s::%s::%s" % (crate, snake(rng, 1), camel(rng, rng.choice((1, 1, 2))))
    kind = rng.random()
    if kind < 0.2:
        path = "<%s<%s> as %s::%s>" % (path, rng.choice(TYPES), rng.choice(CRATES), camel(rng, 2))
    elif kind < 0.4:
        path += "<%s, %s>" % (rng.choice(TYPES), rng.choice(TYPES))
    path += "::" + snake(rng, rng.choice((1, 1, 2, 3)))
    return path + "::{{closure}}" if rng.random() < 0.15 else path


def make_program(rng, functions):
    names = set()
    while len(names) < functions:
        names.add(name(rng))
    names = sorted(names)
    # A function calls some few; popular ones are called from everywhere.
    popular = [rng.randrange(functions) for _ in range(functions // 20)]
    calls = []
    for _ in range(functions):
        n = rng.choice((4, 5, 6, 8, 12, 20))
        some = {rng.choice(popular) if rng.random() < 0.3 else rng.randrange(functions) for _ in range(n)}
        calls.append(sorted(some))
    return names, calls


def split(rng, n, parts):
    """n in so many parts, each at least 1, some far larger than others."""
    shares = [rng.random() ** 2 + 0.02 for _ in range(parts)]
    whole, left, out = sum(shares), n - parts, []
    for s in shares[:-1]:
        part = int((n - parts) * s / whole)
        out.append(part + 1)
        left -= part
    return out + [left + 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stacks", type=int, default=1000000)
    parser.add_argument("--functions", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    names, calls = make_program(rng, options.functions)
    lengths = (2, 3, 4, 5, 5, 6, 9)
    out = sys.stdout
    lines = []
    todo = [("node", rng.randrange(options.functions), options.stacks)]
    while todo:
        prefix, function, n = todo.pop()
        if n == 1:
            path = [prefix]
            for _ in range(rng.choice(lengths)):
                path.append(names[function])
                function = rng.choice(calls[function])
            lines.append("%s %d\n" % (";".join(path), 1 + int(rng.expovariate(0.7))))
            if len(lines) == 4096:
                out.write("".join(lines))
                lines.clear()
            continue
        prefix += ";" + names[function]
        some = calls[function]
        parts = min(len(some), n, rng.choice((3, 5, 8, 16)))
        chosen = rng.sample(some, parts)
        todo.extend((prefix, f, k) for f, k in zip(chosen, split(rng, n, parts)))
    out.write("".join(lines))


main()
