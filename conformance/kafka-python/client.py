"""kafka-python against one broker: client.py BOOTSTRAP PREFIX, the prefix of all topics and groups."""

import sys
import threading
import time

from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import MemberToRemove, OffsetSpec
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import FencedInstanceIdError, KafkaError
from kafka.structs import OffsetAndMetadata
from steps import (
    PARTITIONS, TIMES, WAIT, Ledger, Reading, Unsupported, check, cross, nulls, of_two, same, step, value, wait, well,
)

bootstrap, prefix = sys.argv[1:3]
admin = KafkaAdminClient(bootstrap_servers=bootstrap)


def failure(call):
    """The name of the error the call ends with."""
    try:
        return f"no error: {call()}"
    except KafkaError as e:
        return type(e).__name__


def create(topic, partitions):
    admin.create_topics({topic: {"num_partitions": partitions, "replication_factor": 1}}, wait_for_metadata=True)


def send(topic, records, **settings):
    """Sends (partition, key, value, headers, time) and waits for the answers."""
    p = KafkaProducer(bootstrap_servers=bootstrap, **settings)
    sent = [p.send(topic, partition=n, key=k, value=v, headers=h, timestamp_ms=t) for n, k, v, h, t in records]
    p.flush()
    got = [f.get(WAIT) for f in sent]
    p.close()
    return got


def plain(values, partition=0):
    return [(partition, None, v, [], None) for v in values]


def create_topic(topic):
    create(topic, PARTITIONS)
    same("partitions", len(admin.describe_topics([topic])[0]["partitions"]), PARTITIONS)
    return {"again": failure(lambda: create(topic, 1))}


def produce(topic, codec, acks):
    records = [(i % PARTITIONS, f"k{i}".encode(), value(codec, acks, i), [], None) for i in range(40)]
    got = send(topic, records, compression_type=None if codec == "none" else codec, acks=acks, linger_ms=20, enable_idempotence=False)
    return {"records": len(got), "with offset": sum(1 for m in got if acks != 0 and m.offset >= 0)}


def read_all(topic, **settings):
    """Every partition from its start to its end."""
    c = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", **settings)
    parts = [TopicPartition(topic, p) for p in sorted(c.partitions_for_topic(topic))]
    c.assign(parts)
    ends, got, until = c.end_offsets(parts), [], time.monotonic() + WAIT
    while any(c.position(p) < ends[p] for p in parts):
        check(time.monotonic() < until, f"read {len(got)} records of {ends}")
        for records in c.poll(100).values():
            got += records
    c.close()
    return got


def consume(topic, want):
    r = Reading()
    for m in read_all(topic, max_partition_fetch_bytes=10000, fetch_max_bytes=20000):
        r.record(m.partition, m.offset, m.key, m.value)
    same("records", len(r.seen), want)
    return {"records": want}


def idempotence(topic):
    create(topic, 1)
    want = [f"record {i} of many small batches".encode() for i in range(1000)]
    got = send(topic, plain(want), enable_idempotence=True, batch_size=200, linger_ms=0)
    same("offsets", [m.offset for m in got], list(range(1000)))
    same("values", [m.value for m in read_all(topic)], want)
    return {"records": 1000}


def headers(topic):
    create(topic, 1)
    # What the client does not send is a step of its own.
    want = [(k, v, [(n, b) for n, b in h if b is not None]) for k, v, h in nulls() if k is not None or v is not None]
    for codec in (None, "zstd"):
        send(topic, [(0, k, v, h, None) for k, v, h in want], compression_type=codec)
    got = [(m.key, m.value, list(m.headers)) for m in read_all(topic)]
    for i, g in enumerate(got):
        same(f"record {i}", g, want[i % len(want)])
    same("records", len(got), 2 * len(want))
    return {"records": len(got)}


def refused(records):
    try:
        send(prefix + "-headers", records)
    except (ValueError, TypeError) as e:
        raise Unsupported(f"{type(e).__name__}: {e}") from None
    return "sent"


def offsets(topic):
    create(topic, 2)
    start = int(time.time() * 1000) - 60000
    for t in TIMES:
        send(topic, [(0, None, f"at {t}".encode(), [], start + t * 1000)])
    full, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    out = {}
    specs = {"earliest": OffsetSpec.EARLIEST, "latest": OffsetSpec.LATEST, "max timestamp": OffsetSpec.MAX_TIMESTAMP}
    specs.update({str(t): start + int(t * 1000) for t in (0, 1.5, 4, 5)})
    for name, spec in specs.items():
        r = admin.list_partition_offsets({full: spec, empty: spec})
        out[name] = [(r[p].offset, r[p].timestamp - start if r[p].timestamp >= 0 else None, r[p].leader_epoch) for p in (full, empty)]
    c = KafkaConsumer(bootstrap_servers=bootstrap)
    out["begins, ends"] = [c.beginning_offsets([full])[full], c.end_offsets([full])[full]]
    found = [c.offsets_for_times({full: start + int(t * 1000)})[full] for t in (0, 1.5, 5)]
    out["for times"] = [f and f.offset for f in found]
    c.close()
    return out


def configs(topic):
    from kafka.admin import ConfigResource, ConfigResourceType
    create(topic, 1)
    admin.create_partitions({topic: 3})
    admin.wait_for_topics([topic])
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"max.message.bytes": "2000"})])
    described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    large, until = "no error", time.monotonic() + WAIT
    while large.startswith("no error") and time.monotonic() < until:  # the setting may need a moment to act
        large = failure(lambda: send(topic, plain([b"x" * 5000], 2)))
    send(topic, plain([f"record {i}".encode() for i in range(10)]))
    admin.delete_records({TopicPartition(topic, 0): 7})
    return {"value": find(described, "max.message.bytes"), "too large": large,
            "after delete records": [m.offset for m in read_all(topic) if m.partition == 0]}


def find(tree, name):
    """The value of the config in what the admin client described."""
    if isinstance(tree, dict):
        if name in tree:
            return tree[name].get("value") if isinstance(tree[name], dict) else str(tree[name])
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        for e in tree:
            v = find(e, name)
            if v is not None:
                return v
    return None


class Member(threading.Thread, ConsumerRebalanceListener):
    """A member on a thread of its own. The client commits what was read before it gives a partition up."""

    def __init__(self, name, ledger, topic, group, **settings):
        super().__init__(daemon=True)
        self.name, self.ledger, self.topic = name, ledger, topic
        self.owned, self.leaving, self.error, self.generation = set(), False, None, -1
        self.c = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, client_id=name, auto_offset_reset="earliest",
                               enable_auto_commit=True, auto_commit_interval_ms=200, session_timeout_ms=10000,
                               heartbeat_interval_ms=300, **settings)
        self.start()

    def run(self):
        try:
            self.c.subscribe([self.topic], listener=self)
            while not self.leaving:
                # Long, since this version drops a rebalance that outlasts a poll.
                for p, records in self.c.poll(1000).items():
                    for m in records:
                        self.ledger.read(self, p.partition, m.value)
                self.generation = self.c.group_metadata().generation_id
        except BaseException as e:
            self.error = e
        finally:
            self.c.close()

    def on_partitions_assigned(self, assigned):
        got = {p.partition for p in assigned}
        self.ledger.assigned(self, got)
        self.owned |= got

    def on_partitions_revoked(self, revoked):
        gone = {p.partition for p in revoked}
        self.owned -= gone
        self.ledger.revoked(self, gone)

    def on_partitions_lost(self, lost):
        if not self.error:
            self.ledger.wrong = f"{self.name} lost {lost}"
        self.on_partitions_revoked(lost)

    def end(self):
        self.leaving = True
        self.join()
        if self.error:
            raise self.error


def describe(group):
    return admin.describe_groups([group])[group]


def committed(group):
    return {p.partition: (o.offset, o.metadata) for p, o in admin.list_group_offsets(group)[group].items()}


def group_of_two(group, assignor):
    create(group, PARTITIONS)
    out, p = {}, KafkaProducer(bootstrap_servers=bootstrap)

    def between():
        wait("the group is stable", lambda: describe(group)["group_state"] == "Stable")
        d = describe(group)
        out["described"] = [d["protocol_data"], sorted((m["client_id"], m["client_host"], len(m["member_assignment"]["assigned_partitions"][0]["partitions"]))
                                                       for m in d["members"])]
        out["delete while in use"] = admin.delete_groups([group])[group]

    ledger, sent = of_two(lambda name, ledger: Member(name, ledger, group, group, partition_assignment_strategy=[assignor]),
                          lambda n, v: p.send(group, partition=n, value=v).get(WAIT), between)
    p.close()
    out["read twice"] = ledger.twice()
    same("sum of committed offsets", sum(o for o, _ in committed(group).values()), len(sent))
    out["state at the end"] = describe(group)["group_state"]
    return out


def first(c, partitions):
    """Polls until each partition gave a record; the first of each."""
    firsts, until = {}, time.monotonic() + WAIT
    while not partitions <= set(firsts):
        check(time.monotonic() < until, f"first records: {firsts}")
        for p, records in c.poll(1000).items():
            firsts.setdefault(p.partition, [records[0].offset, records[0].value.decode()])
    return firsts


def resume(group):
    create(group, 2)
    for n in (0, 1):
        send(group, plain([f"record {i}".encode() for i in range(20)], n))
    settings = {"bootstrap_servers": bootstrap, "group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    c = KafkaConsumer(group, **settings)
    first(c, {0})
    c.commit({TopicPartition(group, 0): OffsetAndMetadata(7, "seven", -1)})
    c.close()
    c = KafkaConsumer(group, **settings)
    firsts = first(c, {0, 1})
    at = [c.committed(TopicPartition(group, n), metadata=True) for n in (0, 1)]
    c.close()
    return {"committed": [o and [o.offset, o.metadata] for o in at], "first": [firsts[0], firsts[1]]}


def alter(group):
    p0, p1 = TopicPartition(group, 0), TopicPartition(group, 1)
    r = admin.alter_group_offsets(group, {p0: OffsetAndMetadata(3, "", -1), p1: OffsetAndMetadata(5, "five", -1)})
    out = {"answers": [r[p0].__name__, r[p1].__name__], "altered": sorted(committed(group).items())}
    out["deletion"] = admin.delete_group_offsets(group, [p0])[p0].__name__
    out["deleted"] = sorted(committed(group).items())
    return out


def static_member(group):
    create(group, PARTITIONS)
    ledger = Ledger()

    def member(name, instance, ledger=ledger):
        return Member(name, ledger, group, group, group_instance_id=instance, partition_assignment_strategy=[RangePartitionAssignor])

    # One after the other: a leader of this client may assign nothing when it has no metadata yet.
    other = member("other", "other")
    wait("all partitions", lambda: well(other) and len(other.owned) == PARTITIONS)
    one = member("first", "one")
    wait("two partitions each", lambda: well(other, one) and len(other.owned) == 2 and len(one.owned) == 2 and other.generation == one.generation > 0)
    before = other.generation
    one.end()
    again = member("again", "one")
    wait("it is back", lambda: well(again) and len(again.owned) == 2 and again.generation > 0)
    same("generations after the return", (again.generation, other.generation), (before, before))
    twin = member("twin", "one", Ledger())
    again.join(WAIT)
    check(isinstance(again.error, FencedInstanceIdError), f"the one put out saw {again.error!r}")
    wait("the twin owns", lambda: well(twin) and len(twin.owned) == 2)
    twin.end()
    other.end()
    r = admin.remove_group_members(group, [MemberToRemove(group_instance_id="one"), MemberToRemove(group_instance_id="other")])
    return {"put out by": type(again.error).__name__, "removed": sorted(e.__name__ if isinstance(e, type) else str(e) for e in r.values()),
            "members after removal": len(describe(group)["members"])}


def list_groups(start):
    return sorted((g["group_id"][len(start):], g["group_state"], g["protocol_type"], g.get("group_type"))
                  for g in admin.list_groups() if g["group_id"].startswith(start))


def delete_group(group):
    same("deletion", admin.delete_groups([group])[group], "OK")
    check(all(g["group_id"] != group for g in admin.list_groups()), "the deleted group is listed")
    return {"again": admin.delete_groups([group])[group]}


def delete_topic(topic):
    admin.delete_topics([topic])
    wait("the topic is gone", lambda: topic not in admin.list_topics())
    return {"again": failure(lambda: admin.delete_topics([topic]))}


def main():
    topic, group = prefix + "-main", prefix + "-group-"
    step("create topic", create_topic, topic)
    kinds = cross(("none", "gzip", "snappy", "lz4", "zstd"), (0, 1, "all"))
    for codec, acks in kinds:
        step(f"produce {codec} acks={acks}", produce, topic, codec, acks)
    step("consume", consume, topic, 40 * len(kinds))
    step("idempotence", idempotence, prefix + "-idempotence")
    step("headers, null and empty", headers, prefix + "-headers")
    step("null key and value", refused, plain([None]))
    step("null header", refused, [(0, None, b"", [("null", None)], None)])
    step("list offsets", offsets, prefix + "-offsets")
    step("configs and partitions", configs, prefix + "-configs")
    step("group of two, range", group_of_two, group + "range", RangePartitionAssignor)
    step("group of two, cooperative", group_of_two, group + "cooperative", CooperativeStickyAssignor)
    step("commit and resume", resume, group + "resume")
    step("alter and delete offsets", alter, group + "resume")
    step("static member", static_member, group + "static")
    step("list groups", list_groups, group)
    step("delete group", delete_group, group + "resume")
    step("delete topic", delete_topic, topic)


main()
