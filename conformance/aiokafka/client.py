"""aiokafka against one broker: client.py BOOTSTRAP PREFIX, the prefix of all topics and groups."""

import asyncio
import os
import sys
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError, for_code
from aiokafka.structs import OffsetAndMetadata
from steps import (
    PARTITIONS, TIMES, WAIT, Ledger, Reading, Unsupported, astep, check, cross, nulls, same, value, well,
)

bootstrap, prefix = sys.argv[1:3]


async def wait(what, fact):
    until = time.monotonic() + WAIT
    while not fact():
        check(time.monotonic() < until, f"waited {WAIT} s for: {what}")
        await asyncio.sleep(0.005)


async def failure(call):
    """The name of the error the call ends with."""
    try:
        return f"no error: {await call}"
    except KafkaError as e:
        return type(e).__name__


def code(answer):
    """The name of the first error code of the answer of the admin client, which raises nothing."""
    return for_code(list(answer.to_object().values())[-1][0]["error_code"]).__name__


async def create(topic, partitions):
    same("creation of " + topic, code(await admin.create_topics([NewTopic(topic, partitions, 1)])), "NoError")


async def send(topic, records, **settings):
    """Sends (partition, key, value, headers, time) and waits for the answers."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, **settings) as p:
        sent = [await p.send(topic, partition=n, key=k, value=v, headers=h, timestamp_ms=t) for n, k, v, h, t in records]
        return await asyncio.gather(*sent)


def plain(values, partition=0):
    return [(partition, None, v, [], None) for v in values]


async def create_topic(topic):
    await create(topic, PARTITIONS)
    same("partitions", len((await admin.describe_topics([topic]))[0]["partitions"]), PARTITIONS)
    return {"again": code(await admin.create_topics([NewTopic(topic, 1, 1)]))}


async def produce(topic, codec, acks):
    records = [(i % PARTITIONS, f"k{i}".encode(), value(codec, acks, i), [], None) for i in range(40)]
    got = await send(topic, records, compression_type=None if codec == "none" else codec, acks=acks, linger_ms=20)
    return {"records": len(got), "with offset": sum(1 for m in got if m is not None and m.offset >= 0)}


async def read_all(topic, **settings):
    """Every partition from its start to its end."""
    c = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", **settings)
    await c.start()
    count = len((await admin.describe_topics([topic]))[0]["partitions"])
    parts = [TopicPartition(topic, n) for n in range(count)]
    c.assign(parts)
    await c.seek_to_beginning(*parts)
    ends, got, until = await c.end_offsets(parts), [], time.monotonic() + WAIT
    while any([await c.position(p) < ends[p] for p in parts]):
        check(time.monotonic() < until, f"read {len(got)} records of {ends}")
        for records in (await c.getmany(timeout_ms=100)).values():
            got += records
    await c.stop()
    return got


async def consume(topic, want):
    r = Reading()
    for m in await read_all(topic, max_partition_fetch_bytes=10000, fetch_max_bytes=20000):
        r.record(m.partition, m.offset, m.key, m.value)
    same("records", len(r.seen), want)
    return {"records": want}


async def idempotence(topic):
    await create(topic, 1)
    want = [f"record {i} of many small batches".encode() for i in range(1000)]
    got = await send(topic, plain(want), enable_idempotence=True, max_batch_size=200)
    same("offsets", [m.offset for m in got], list(range(1000)))
    same("values", [m.value for m in await read_all(topic)], want)
    return {"records": 1000}


async def headers(topic):
    await create(topic, 1)
    # What the client does not send is a step of its own.
    want = [(k, v, h) for k, v, h in nulls() if k is not None or v is not None]
    for codec in (None, "zstd"):
        await send(topic, [(0, k, v, h, None) for k, v, h in want], compression_type=codec)
    got = [(m.key, m.value, list(m.headers)) for m in await read_all(topic)]
    for i, g in enumerate(got):
        same(f"record {i}", g, want[i % len(want)])
    same("records", len(got), 2 * len(want))
    return {"records": len(got)}


async def refused(records):
    try:
        await send(prefix + "-headers", records)
    except (ValueError, TypeError, AssertionError) as e:
        raise Unsupported(f"{type(e).__name__}: {e}") from None
    return "sent"


async def offsets(topic):
    await create(topic, 2)
    start = int(time.time() * 1000) - 60000
    for t in TIMES:
        await send(topic, [(0, None, f"at {t}".encode(), [], start + t * 1000)])
    c = AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await c.start()
    parts = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    out = {"earliest": list((await c.beginning_offsets(parts)).values()), "latest": list((await c.end_offsets(parts)).values())}
    for t in (0, 1.5, 4, 5):
        found = await c.offsets_for_times({p: start + int(t * 1000) for p in parts})
        out[str(t)] = [found[p] and [found[p].offset, found[p].timestamp - start] for p in parts]
    await c.stop()
    return out


async def configs(topic):
    await create(topic, 1)
    same("partitions", code(await admin.create_partitions({topic: NewPartitions(3)})), "NoError")
    await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"max.message.bytes": "2000"})])
    described = (await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)]))[0].to_object()
    values = [c["config_value"] for r in described["resources"] for c in r["config_entries"] if c["config_names"] == "max.message.bytes"]
    large, until = "no error", time.monotonic() + WAIT
    while large.startswith("no error") and time.monotonic() < until:  # the setting may need a moment to act
        large = await failure(send(topic, plain([b"x" * 5000], 2)))
    await send(topic, plain([f"record {i}".encode() for i in range(10)]))
    low = await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(7)})
    return {"value": values, "too large": large, "low watermark": low[TopicPartition(topic, 0)],
            "after delete records": [m.offset for m in await read_all(topic) if m.partition == 0]}


class Member(ConsumerRebalanceListener):
    """A member on a task of its own: reads, commits after each turn and before it gives a partition up."""

    def __init__(self, name, ledger, topic, group, **settings):
        self.name, self.ledger, self.topic = name, ledger, topic
        self.owned, self.positions, self.leaving, self.error = set(), {}, False, None
        self.c = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group, client_id=name, auto_offset_reset="earliest",
                                  enable_auto_commit=False, session_timeout_ms=10000, heartbeat_interval_ms=300, **settings)
        self.task = asyncio.create_task(self.run())

    async def run(self):
        try:
            await self.c.start()
            self.c.subscribe([self.topic], listener=self)
            while not self.leaving:
                for p, records in (await self.c.getmany(timeout_ms=50)).items():
                    for m in records:
                        self.ledger.read(self, p.partition, m.value)
                        self.positions[p] = m.offset + 1
                if self.positions:
                    await self.c.commit(dict(self.positions))
        except BaseException as e:
            self.error = e
        finally:
            await self.c.stop()
            self.ledger.revoked(self, self.owned)

    async def on_partitions_assigned(self, assigned):
        self.owned = {p.partition for p in assigned}
        self.ledger.assigned(self, self.owned)

    async def on_partitions_revoked(self, revoked):
        at = {p: self.positions.pop(p) for p in revoked if p in self.positions}
        if at:
            await self.c.commit(at)
        gone = {p.partition for p in revoked}
        self.owned -= gone
        self.ledger.revoked(self, gone)

    async def end(self):
        self.leaving = True
        await self.task
        if self.error:
            raise self.error


async def describe(group):
    g = (await admin.describe_consumer_groups([group]))[0].to_object()["groups"][0]
    return g["state"], g["protocol"], sorted((m["client_id"], m["client_host"]) for m in g["members"])


async def group_of_two(group, assignor):
    """As of_two in steps.py: the second joins while records keep coming, then the first leaves."""
    await create(group, PARTITIONS)
    out, ledger, sent, enough = {}, Ledger(), [], asyncio.Event()

    async def load():
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as p:
            while not enough.is_set():
                v = f"record {len(sent)}".encode()
                await p.send_and_wait(group, partition=len(sent) % PARTITIONS, value=v)
                sent.append(v)
                await asyncio.sleep(0.001)

    def member(name):
        return Member(name, ledger, group, group, partition_assignment_strategy=[assignor])

    loading = asyncio.create_task(load())
    a = member("A")
    await wait("A owns all", lambda: well(a) and len(a.owned) == PARTITIONS and len(ledger.reads) > 100)
    b = member("B")
    await wait("A and B own two each", lambda: well(a, b) and len(a.owned) == 2 and len(b.owned) == 2 and ledger.fine())
    out["described"] = await describe(group)
    mark = len(ledger.reads)
    await wait("both read", lambda: len(ledger.reads) > mark + 200)
    await a.end()
    await wait("B owns all", lambda: well(b) and len(b.owned) == PARTITIONS and ledger.fine())
    mark = len(ledger.reads)
    await wait("B reads", lambda: len(ledger.reads) > mark + 100)
    enough.set()
    await loading
    await wait("all is read", lambda: ledger.complete(sent))
    await b.end()
    ledger.fine()
    out["read twice"] = ledger.twice()
    at = await admin.list_consumer_group_offsets(group)
    same("sum of committed offsets", sum(o.offset for o in at.values()), len(sent))
    out["at the end"] = await describe(group)
    return out


async def first(c, partitions):
    """Reads until each partition gave a record; the first of each."""
    firsts, until = {}, time.monotonic() + WAIT
    while not partitions <= set(firsts):
        check(time.monotonic() < until, f"first records: {firsts}")
        for p, records in (await c.getmany(timeout_ms=100)).items():
            firsts.setdefault(p.partition, [records[0].offset, records[0].value.decode()])
    return firsts


async def resume(group):
    await create(group, 2)
    for n in (0, 1):
        await send(group, plain([f"record {i}".encode() for i in range(20)], n))
    settings = {"bootstrap_servers": bootstrap, "group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    async with AIOKafkaConsumer(group, **settings) as c:
        await first(c, {0})
        await c.commit({TopicPartition(group, 0): OffsetAndMetadata(7, "seven")})
    async with AIOKafkaConsumer(group, **settings) as c:
        firsts = await first(c, {0, 1})
        at = [await c.committed(TopicPartition(group, n)) for n in (0, 1)]
    listed = (await admin.list_consumer_group_offsets(group))[TopicPartition(group, 0)]
    return {"committed": at, "listed": [listed.offset, listed.metadata], "first": [firsts[0], firsts[1]]}


async def static_member(group):
    """A static member that comes back gets what it had, and nobody else is disturbed."""
    await create(group, PARTITIONS)
    ledger = Ledger()

    def member(name, instance):
        return Member(name, ledger, group, group, group_instance_id=instance, partition_assignment_strategy=[RangePartitionAssignor])

    other, one = member("other", "other"), member("first", "one")
    await wait("two partitions each", lambda: well(other, one) and len(other.owned) == 2 and len(one.owned) == 2)
    was = set(one.owned)
    await one.end()
    again = member("again", "one")
    await wait("it is back", lambda: well(again) and len(again.owned) == 2)
    same("partitions after the return", (again.owned, len(other.owned)), (was, 2))
    await again.end()
    await other.end()
    ledger.fine()
    return "came back to its partitions"


async def list_groups(start):
    return sorted((g[0][len(start):], *g[1:]) for g in await admin.list_consumer_groups() if g[0].startswith(start))


async def absent(name):
    check(not hasattr(admin, name), f"the client has {name}")
    raise Unsupported(f"the client has no {name}")


async def delete_topic(topic):
    await admin.delete_topics([topic])
    until = time.monotonic() + WAIT
    while topic in await admin.list_topics():
        check(time.monotonic() < until, "the topic is still there")
    again = (await admin.delete_topics([topic])).to_object()
    return {"again": for_code(again["topic_error_codes"][0]["error_code"]).__name__}


async def main():
    global admin
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    topic, group = prefix + "-main", prefix + "-group-"
    await astep("create topic", create_topic, topic)
    kinds = cross(("none", "gzip", "snappy", "lz4", "zstd"), (0, 1, "all"))
    for codec, acks in kinds:
        await astep(f"produce {codec} acks={acks}", produce, topic, codec, acks)
    await astep("consume", consume, topic, 40 * len(kinds))
    await astep("idempotence", idempotence, prefix + "-idempotence")
    await astep("headers, null and empty", headers, prefix + "-headers")
    await astep("null key and value", refused, plain([None]))
    await astep("list offsets", offsets, prefix + "-offsets")
    await astep("configs and partitions", configs, prefix + "-configs")
    await astep("group of two, range", group_of_two, group + "range", RangePartitionAssignor)
    await astep("group of two, sticky", group_of_two, group + "sticky", StickyPartitionAssignor)
    await astep("commit and resume", resume, group + "resume")
    await astep("static member", static_member, group + "static")
    await astep("list groups", list_groups, group)
    await astep("delete group", absent, "delete_consumer_groups")
    await astep("delete topic", delete_topic, topic)
    await admin.close()


asyncio.run(main())
os._exit(0)
