"""confluent-kafka (librdkafka below) against one broker: client.py BOOTSTRAP PREFIX, the prefix of all topics and groups."""

import sys
import threading
import time

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic, OffsetSpec,
)
from steps import (
    PARTITIONS, TIMES, WAIT, Ledger, Reading, check, cross, nulls, of_two, same, step, value, wait, well,
)

bootstrap, prefix = sys.argv[1:3]
base = {"bootstrap.servers": bootstrap, "log_level": 0}
admin = AdminClient(base)


def failure(futures):
    """The name of the error a call for one thing ends with."""
    try:
        for f in futures.values():
            f.result(WAIT)
        return "no error"
    except KafkaException as e:
        return e.args[0].name()


def done(futures):
    return {k: f.result(WAIT) for k, f in futures.items()}


def create(topic, partitions):
    done(admin.create_topics([NewTopic(topic, partitions, 1)]))


class Sender:
    """A producer that collects what was delivered."""

    def __init__(self, **settings):
        self.p = Producer({**base, **{k.replace("_", "."): v for k, v in settings.items()}})
        self.delivered = []

    def send(self, topic, val, **more):
        self.p.produce(topic, val, on_delivery=self.report, **more)

    def report(self, err, msg):
        check(err is None, f"delivery: {err}")
        self.delivered.append(msg)

    def end(self):
        same("left in the queue", self.p.flush(WAIT), 0)
        return self.delivered


def create_topic(topic):
    create(topic, PARTITIONS)
    d = done(admin.describe_topics(TopicCollection([topic])))[topic]
    same("partitions", len(d.partitions), PARTITIONS)
    return {"again": failure(admin.create_topics([NewTopic(topic, 1, 1)]))}


def produce(topic, codec, acks):
    s = Sender(compression_type=codec, acks=acks, linger_ms=20)
    for i in range(40):
        s.send(topic, value(codec, acks, i), key=f"k{i}", partition=i % PARTITIONS)
    got = s.end()
    return {"records": len(got), "with offset": sum(1 for m in got if m.offset() is not None)}


def read_all(topic):
    """Every partition from its start to its end."""
    c = Consumer({**base, "group.id": "none", "enable.auto.commit": False, "enable.partition.eof": True,
                  "auto.offset.reset": "earliest", "fetch.message.max.bytes": 20000})
    parts = admin.list_topics(topic).topics[topic].partitions
    c.assign([TopicPartition(topic, p, 0) for p in parts])
    got, ends, until = [], 0, time.monotonic() + WAIT
    while ends < len(parts):
        check(time.monotonic() < until, f"read {len(got)} records and {ends} ends")
        m = c.poll(1)
        if m is None:
            continue
        if m.error() is None:
            got.append(m)
            continue
        same("error", m.error().name(), "_PARTITION_EOF")
        ends += 1
    c.close()
    return got


def consume(topic, want):
    r = Reading()
    for m in read_all(topic):
        r.record(m.partition(), m.offset(), m.key(), m.value())
    same("records", len(r.seen), want)
    return {"records": want}


def idempotence(topic):
    create(topic, 1)
    s = Sender(enable_idempotence=True, batch_num_messages=5, linger_ms=0)
    for i in range(1000):
        s.send(topic, f"record {i}")
    same("offsets", [m.offset() for m in s.end()], list(range(1000)))
    same("values", [m.value().decode() for m in read_all(topic)], [f"record {i}" for i in range(1000)])
    return {"records": 1000}


def headers(topic):
    create(topic, 1)
    want = nulls()
    for codec in ("none", "zstd"):
        s = Sender(compression_type=codec)
        for k, v, h in want:
            s.send(topic, v, key=k, headers=h, partition=0)
        s.end()
    got = [(m.key(), m.value(), m.headers() or []) for m in read_all(topic)]
    for i, g in enumerate(got):
        same(f"record {i}", g, want[i % len(want)])
    same("records", len(got), 2 * len(want))
    return {"records": len(got)}


def offsets(topic):
    create(topic, 2)
    start = int(time.time() * 1000) - 60000
    for t in TIMES:
        s = Sender()
        s.send(topic, f"at {t}", partition=0, timestamp=start + t * 1000)
        s.end()
    out = {}
    specs = {"earliest": OffsetSpec.earliest(), "latest": OffsetSpec.latest(), "max timestamp": OffsetSpec.max_timestamp()}
    specs.update({str(t): OffsetSpec.for_timestamp(start + int(t * 1000)) for t in (0, 1.5, 4, 5)})
    for name, spec in specs.items():
        r = done(admin.list_offsets({TopicPartition(topic, p): spec for p in (0, 1)}))
        out[name] = [f"{i.offset} at {i.timestamp - start if i.timestamp >= 0 else 'none'}"
                     for _, i in sorted(r.items(), key=lambda e: e[0].partition)]
    c = Consumer({**base, "group.id": "none"})
    out["watermarks"] = c.get_watermark_offsets(TopicPartition(topic, 0), timeout=WAIT)
    out["for times"] = [c.offsets_for_times([TopicPartition(topic, 0, start + int(t * 1000))], timeout=WAIT)[0].offset for t in (0, 1.5, 5)]
    c.close()
    return out


def configs(topic):
    create(topic, 1)
    done(admin.create_partitions([NewPartitions(topic, 3)]))
    wait("three partitions", lambda: len(admin.list_topics(topic).topics[topic].partitions) == 3)
    entry = ConfigEntry("max.message.bytes", "2000", incremental_operation=AlterConfigOpType.SET)
    done(admin.incremental_alter_configs([ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])]))
    c = list(done(admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)])).values())[0]["max.message.bytes"]
    errors, p, until = [None], Producer(base), time.monotonic() + WAIT
    while errors[-1] is None and time.monotonic() < until:  # the setting may need a moment to act
        p.produce(topic, b"x" * 5000, partition=2, on_delivery=lambda err, _: errors.append(err and err.name()))
        p.flush(WAIT)
    s = Sender()
    for i in range(10):
        s.send(topic, f"record {i}", partition=0)
    s.end()
    done(admin.delete_records([TopicPartition(topic, 0, 7)]))
    return {"value": f"{c.value} source {c.source}", "too large": errors[-1],
            "after delete records": [m.offset() for m in read_all(topic) if m.partition() == 0]}


class Member(threading.Thread):
    """A member on a thread of its own: reads, commits what it read before it gives a partition up."""

    def __init__(self, name, ledger, topic, settings):
        super().__init__(daemon=True)
        self.name, self.ledger, self.topic = name, ledger, topic
        self.owned, self.positions, self.leaving, self.error = set(), {}, False, None
        # Not in a cooperative group, where a commit in the middle of a rebalance fails.
        self.commits_idle = settings["partition.assignment.strategy"] == "range"
        self.c = Consumer({**base, "auto.offset.reset": "earliest", "enable.auto.commit": False, "client.id": name,
                           "session.timeout.ms": 10000, "heartbeat.interval.ms": 300, **settings})
        self.start()

    def run(self):
        try:
            self.c.subscribe([self.topic], on_assign=self.assigned, on_revoke=self.revoked, on_lost=self.lost)
            while not self.leaving:
                m = self.c.poll(0.05)
                if m is None:
                    if self.commits_idle:
                        self.commit(set(self.positions))
                    continue
                check(m.error() is None, m.error())
                self.ledger.read(self, m.partition(), m.value())
                self.positions[m.partition()] = m.offset() + 1
        except BaseException as e:
            self.error = e
        finally:
            self.c.close()

    def commit(self, partitions):
        at = [TopicPartition(self.topic, p, self.positions[p]) for p in partitions if p in self.positions]
        if at:
            for p in self.c.commit(offsets=at, asynchronous=False):
                check(p.error is None, p.error)
        for p in partitions:
            self.positions.pop(p, None)

    def assigned(self, _, partitions):
        self.ledger.assigned(self, [p.partition for p in partitions])
        self.owned |= {p.partition for p in partitions}

    def revoked(self, _, partitions):
        gone = {p.partition for p in partitions}
        self.commit(gone)
        self.owned -= gone
        self.ledger.revoked(self, gone)

    def lost(self, _, partitions):
        if self.error is None:
            self.error = RuntimeError(f"lost {partitions}")
        self.ledger.revoked(self, [p.partition for p in partitions])

    def end(self):
        self.leaving = True
        self.join()
        if self.error:
            raise self.error


def describe(group):
    return done(admin.describe_consumer_groups([group]))[group]


def committed(group):
    r = done(admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))[group]
    return {p.partition: (p.offset, p.metadata) for p in r.topic_partitions}


def group_of_two(group, strategy):
    create(group, PARTITIONS)
    out, p = {}, Producer({**base, "linger.ms": 0})

    def send(partition, v):
        p.produce(group, v, partition=partition)
        same("left in the queue", p.flush(WAIT), 0)

    def between():
        wait("the group is stable", lambda: describe(group).state.name == "STABLE")
        d = describe(group)
        out["described"] = [d.partition_assignor, sorted((m.client_id, m.host, len(m.assignment.topic_partitions)) for m in d.members)]
        out["delete while in use"] = failure(admin.delete_consumer_groups([group]))

    settings = {"group.id": group, "partition.assignment.strategy": strategy}
    ledger, sent = of_two(lambda name, ledger: Member(name, ledger, group, settings), send, between)
    out["read twice"] = ledger.twice()
    same("sum of committed offsets", sum(o for o, _ in committed(group).values()), len(sent))
    out["state at the end"] = describe(group).state.name
    return out


def first(c, partitions):
    """Polls until each partition gave a record; the first of each."""
    firsts, until = {}, time.monotonic() + WAIT
    while not partitions <= set(firsts):
        check(time.monotonic() < until, f"first records: {firsts}")
        m = c.poll(0.1)
        if m is not None:
            check(m.error() is None, m.error())
            firsts.setdefault(m.partition(), [m.offset(), m.value().decode()])
    return firsts


def resume(group):
    create(group, 2)
    s = Sender()
    for i in range(40):
        s.send(group, f"record {i // 2}", partition=i % 2)
    s.end()
    settings = {**base, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    c = Consumer(settings)
    c.subscribe([group])
    first(c, {0})
    c.commit(offsets=[TopicPartition(group, 0, 7, metadata="seven")], asynchronous=False)
    c.close()
    c = Consumer(settings)
    c.subscribe([group])
    firsts = first(c, {0, 1})
    at = [(p.offset, p.metadata) for p in c.committed([TopicPartition(group, 0), TopicPartition(group, 1)], timeout=WAIT)]
    c.close()
    return {"committed": at, "first": [firsts[0], firsts[1]]}


def alter(group):
    parts = [TopicPartition(group, 0, 3), TopicPartition(group, 1, 5, metadata="five")]
    done(admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, parts)]))
    return {"altered": sorted(committed(group).items())}


def static_member(group):
    create(group, PARTITIONS)
    ledger = Ledger()

    def member(name, instance, ledger=ledger):
        return Member(name, ledger, group, {"group.id": group, "group.instance.id": instance, "partition.assignment.strategy": "range"})

    other, one = member("other", "other"), member("first", "one")
    wait("two partitions each", lambda: well(other, one) and len(other.owned) == 2 and len(one.owned) == 2)
    was = set(one.owned)
    one.end()
    again = member("again", "one")
    wait("it is back", lambda: well(again) and len(again.owned) == 2)
    same("partitions after the return", (again.owned, len(other.owned)), (was, 2))
    twin = member("twin", "one", Ledger())
    again.join(WAIT)
    check(again.error is not None, "the member was not put out by its twin")
    wait("the twin owns", lambda: well(twin) and len(twin.owned) == 2)
    twin.end()
    other.end()
    ledger.fine()
    return {"put out by": again.error.args[0].name() if isinstance(again.error, KafkaException) else str(again.error)}


def list_groups(start):
    r = admin.list_consumer_groups().result(WAIT)
    same("errors", r.errors, [])
    return sorted((g.group_id[len(start):], g.state.name, g.type.name) for g in r.valid if g.group_id.startswith(start))


def delete_group(group):
    done(admin.delete_consumer_groups([group]))
    check(all(g.group_id != group for g in admin.list_consumer_groups().result(WAIT).valid), "the deleted group is listed")
    return {"again": failure(admin.delete_consumer_groups([group]))}


def delete_topic(topic):
    done(admin.delete_topics([topic]))
    wait("the topic is gone", lambda: topic not in admin.list_topics(timeout=WAIT).topics)
    return {"again": failure(admin.delete_topics([topic]))}


def main():
    topic, group = prefix + "-main", prefix + "-group-"
    step("create topic", create_topic, topic)
    kinds = cross(("none", "gzip", "snappy", "lz4", "zstd"), ("0", "1", "all"))
    for codec, acks in kinds:
        step(f"produce {codec} acks={acks}", produce, topic, codec, acks)
    step("consume", consume, topic, 40 * len(kinds))
    step("idempotence", idempotence, prefix + "-idempotence")
    step("headers, null and empty", headers, prefix + "-headers")
    step("list offsets", offsets, prefix + "-offsets")
    step("configs and partitions", configs, prefix + "-configs")
    step("group of two, range", group_of_two, group + "range", "range")
    step("group of two, cooperative", group_of_two, group + "cooperative", "cooperative-sticky")
    step("commit and resume", resume, group + "resume")
    step("alter offsets", alter, group + "resume")
    step("static member", static_member, group + "static")
    step("list groups", list_groups, group)
    step("delete group", delete_group, group + "resume")
    step("delete topic", delete_topic, topic)


main()
