"""What the programs of the Python clients share: the line of a step, waiting, and a group's ledger.

A line says nothing that differs from run to run; times go to standard error.
"""

import json
import os
import sys
import threading
import time
import traceback

WAIT = 60
PARTITIONS = 4
BINARY = bytes(range(256))
HEADERS = [
    ("null", None), ("empty", b""), ("binary", BINARY), ("twice", b"1"), ("twice", b"2"),
    ("", b"no name"), ("ключ", "значение".encode()),
]
# Times of five records, in seconds after the first: the latest is not the last record's.
TIMES = [0, 1, 4, 3, 2]


class Unsupported(Exception):
    """What the client itself cannot do; the reason is part of the line."""


def line(name, ok, detail, began):
    name_, ok_, detail_ = (json.dumps(x, sort_keys=True, ensure_ascii=False) for x in (name, ok, detail))
    print(f'{{"step": {name_}, "ok": {ok_}, "detail": {detail_}}}', flush=True)
    print(f"{name}: {(time.monotonic() - began) * 1000:.0f} ms", file=sys.stderr)


def step(name, body, *args):
    """Runs the step; the first wrong thing ends the program."""
    began = time.monotonic()
    try:
        line(name, True, body(*args), began)
    except Unsupported as e:
        line(name, "unsupported", str(e), began)
    except BaseException as e:
        failed(name, e, began)


async def astep(name, body, *args):
    """The same for a coroutine."""
    began = time.monotonic()
    try:
        line(name, True, await body(*args), began)
    except Unsupported as e:
        line(name, "unsupported", str(e), began)
    except BaseException as e:
        failed(name, e, began)


def failed(name, e, began):
    traceback.print_exception(e)
    line(name, False, f"{type(e).__name__}: {e}", began)
    os._exit(1)


def check(fact, otherwise):
    if not fact:
        raise AssertionError(otherwise)


def same(what, got, want):
    check(got == want, f"{what}: {got!r}, want {want!r}")


def wait(what, fact):
    until = time.monotonic() + WAIT
    while not fact():
        check(time.monotonic() < until, f"waited {WAIT} s for: {what}")
        time.sleep(0.005)


def value(codec, acks, i):
    """A value that compresses, so that a batch comes out as the codec's."""
    return f"{codec}/{acks}/{i}/{'compressible ' * 40}".encode()


def cross(a, b):
    return [(x, y) for x in a for y in b]


def nulls():
    """Key, value and headers of nine records with all that may be null or empty."""
    pairs = cross((None, b"", BINARY), (None, b"", BINARY))
    return [(k, v, HEADERS if i % 2 == 0 else []) for i, (k, v) in enumerate(pairs)]


class Reading:
    """Checks the records of the produce steps: offsets without a gap, each value once."""

    def __init__(self):
        self.next = {}
        self.seen = set()

    def record(self, partition, offset, key, val):
        same(f"offset in {partition}", offset, self.next.get(partition, 0))
        self.next[partition] = offset + 1
        codec, acks, i, _ = val.decode().split("/")
        same("value", val, value(codec, acks, int(i)))
        same("key", key, b"k" + i.encode())
        check(val not in self.seen, f"came twice: {val[:40]}")
        self.seen.add(val)


class Ledger:
    """What the members of one group share: who owns what, who read what."""

    def __init__(self):
        self.owners = {}
        self.reads = {}
        self.wrong = None
        self.lock = threading.Lock()

    def assigned(self, member, partitions):
        with self.lock:
            for p in partitions:
                before = self.owners.setdefault(p, member)
                if before is not member:
                    self.wrong = f"partition {p} went to {member.name} while {before.name} owned it"

    def revoked(self, member, partitions):
        with self.lock:
            for p in partitions:
                if self.owners.get(p) is member:
                    del self.owners[p]

    def read(self, member, partition, val):
        with self.lock:
            if self.owners.get(partition) is not member:
                self.wrong = f"{member.name} read partition {partition}, which it does not own"
            self.reads[val] = self.reads.get(val, 0) + 1

    def fine(self):
        check(self.wrong is None, self.wrong)
        return True

    def complete(self, sent):
        return self.fine() and all(v in self.reads for v in sent)

    def twice(self):
        return sum(1 for n in self.reads.values() if n > 1)


class Load(threading.Thread):
    """Sends numbered records one by one until told that it is enough; send(partition, value) waits for the answer."""

    def __init__(self, send):
        super().__init__(daemon=True)
        self.send, self.sent, self.stop, self.error = send, [], False, None
        self.start()

    def run(self):
        try:
            while not self.stop:
                v = f"record {len(self.sent)}".encode()
                self.send(len(self.sent) % PARTITIONS, v)
                self.sent.append(v)
                time.sleep(0.001)
        except BaseException as e:
            self.error = e

    def end(self):
        self.stop = True
        self.join()
        if self.error:
            raise self.error


def well(*members):
    """True, or the error a member ended with."""
    for m in members:
        if m.error is not None:
            raise m.error
    return True


def of_two(member, send, between=lambda: None):
    """Two members while records keep coming: the second joins, then the first leaves.

    member(name, ledger) starts one: owned, a set of partitions, and end(), which leaves the group and raises what went wrong.
    between() is called while both are members. Returns the ledger and what was sent.
    """
    ledger, load = Ledger(), Load(send)
    a = member("A", ledger)
    wait("A owns all", lambda: well(a) and len(a.owned) == PARTITIONS and len(ledger.reads) > 100)
    b = member("B", ledger)
    wait("A and B own two each", lambda: well(a, b) and len(a.owned) == 2 and len(b.owned) == 2 and ledger.fine())
    between()
    mark = len(ledger.reads)
    wait("both read", lambda: len(ledger.reads) > mark + 200)
    a.end()
    wait("B owns all", lambda: len(b.owned) == PARTITIONS and ledger.fine())
    mark = len(ledger.reads)
    wait("B reads", lambda: len(ledger.reads) > mark + 100)
    load.end()
    wait("all is read", lambda: ledger.complete(load.sent))
    b.end()
    ledger.fine()
    return ledger, load.sent
