// librdkafka's C API against one broker: client BOOTSTRAP PREFIX, the prefix of all topics and groups.
#define _GNU_SOURCE
#include "step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *bootstrap;
const char *prefix;
rd_kafka_t *plain;

static const char *codec, *acks;
static int produced; // records the produce steps sent

// The answers to one producer's records: how many, how many with an offset, the offsets in order or not.
typedef struct {
    int answered, with_offset;
    int64_t next;
    bool in_order;
    rd_kafka_resp_err_t err;
} delivery_t;

static void delivered(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque) {
    (void)rk;
    delivery_t *d = m->_private ? m->_private : opaque;
    d->answered++;
    if (m->err)
        d->err = m->err;
    if (m->offset >= 0)
        d->with_offset++;
    if (m->offset != d->next++)
        d->in_order = false;
}

// A producer with settings "key", "value", ..., NULL.
#define PRODUCER(...) producer((const char *[]){__VA_ARGS__, NULL})
static rd_kafka_t *producer(const char **settings) {
    rd_kafka_conf_t *conf = conf_with(rd_kafka_conf_new(), "log_level", "0");
    rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    for (; *settings; settings += 2)
        conf_with(conf, settings[0], settings[1]);
    return client_of(RD_KAFKA_PRODUCER, conf);
}

static void hand_in(rd_kafka_t *p, delivery_t *d, const char *topic, int partition, const char *key, const char *value) {
    rd_kafka_resp_err_t err;
    do {
        err = rd_kafka_producev(p, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_KEY(key, key ? strlen(key) : 0),
                                RD_KAFKA_V_VALUE((void *)value, strlen(value)), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_OPAQUE(d), RD_KAFKA_V_END);
        if (err == RD_KAFKA_RESP_ERR__QUEUE_FULL)
            rd_kafka_poll(p, 10);
    } while (err == RD_KAFKA_RESP_ERR__QUEUE_FULL);
    CHECK(!err, "produce: %s", rd_kafka_err2name(err));
}

static void flush(rd_kafka_t *p) {
    CHECK(!rd_kafka_flush(p, WAIT_MS), "%d records left", rd_kafka_outq_len(p));
}

void send_one(const char *topic, int partition, const char *value) {
    static __thread delivery_t d;
    d = (delivery_t){0};
    hand_in(plain, &d, topic, partition, NULL, value);
    flush(plain);
    CHECK(!d.err, "delivery: %s", rd_kafka_err2name(d.err));
}

static int partitions_of(const char *topic) {
    const struct rd_kafka_metadata *m;
    rd_kafka_topic_t *t = rd_kafka_topic_new(plain, topic, NULL);
    rd_kafka_resp_err_t err = rd_kafka_metadata(plain, 0, t, &m, WAIT_MS);
    CHECK(!err, "metadata: %s", rd_kafka_err2name(err));
    int n = m->topics[0].err ? -1 : m->topics[0].partition_cnt;
    rd_kafka_metadata_destroy(m);
    rd_kafka_topic_destroy(t);
    return n;
}

// Reads every partition from its start to its end; each is called with every record.
static int read_all(const char *topic, void (*each)(const rd_kafka_message_t *)) {
    rd_kafka_t *c = client(RD_KAFKA_CONSUMER, "group.id", "none", "enable.auto.commit", "false", "enable.partition.eof", "true",
                           "auto.offset.reset", "earliest", "fetch.message.max.bytes", "20000", NULL);
    int parts = partitions_of(topic), ends = 0, n = 0;
    rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_new(parts);
    for (int p = 0; p < parts; p++)
        rd_kafka_topic_partition_list_add(l, topic, p)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(c, l);
    long long until = now_ms() + WAIT_MS;
    while (ends < parts) {
        CHECK(now_ms() < until, "read %d records, %d of %d ends", n, ends, parts);
        rd_kafka_message_t *m = rd_kafka_consumer_poll(c, 100);
        if (!m)
            continue;
        if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            ends++;
        } else {
            CHECK(!m->err, "consume: %s", rd_kafka_err2name(m->err));
            n++;
            each(m);
        }
        rd_kafka_message_destroy(m);
    }
    rd_kafka_topic_partition_list_destroy(l);
    rd_kafka_consumer_close(c);
    rd_kafka_destroy(c);
    return n;
}

static void create(void) {
    rd_kafka_resp_err_t err = create_topic(named("main"), PARTITIONS);
    CHECK(!err, "create: %s", rd_kafka_err2name(err));
    CHECK(partitions_of(named("main")) == PARTITIONS, "%d partitions", partitions_of(named("main")));
    detail("again: %s", rd_kafka_err2name(create_topic(named("main"), 1)));
}

// A value that compresses, so that a batch comes out as the codec's.
static char *value_of(const char *codec, const char *acks, int i) {
    static char v[1024];
    int n = snprintf(v, sizeof v, "%s/%s/%d/", codec, acks, i);
    for (int k = 0; k < 40; k++)
        n += snprintf(v + n, sizeof v - n, "compressible ");
    return v;
}

static void produce(void) {
    delivery_t d = {0};
    char key[16];
    rd_kafka_t *p = PRODUCER("compression.codec", codec, "acks", acks, "linger.ms", "20");
    for (int i = 0; i < 40; i++) {
        snprintf(key, sizeof key, "k%d", i);
        hand_in(p, &d, named("main"), i % PARTITIONS, key, value_of(codec, acks, i));
    }
    flush(p);
    CHECK(!d.err && d.answered == 40, "%d answered, %s", d.answered, rd_kafka_err2name(d.err));
    produced += 40;
    detail("%d records, %d with offset", d.answered, d.with_offset);
    rd_kafka_destroy(p);
}

static int64_t next_offset[PARTITIONS];
static char *seen[1000];
static int seen_count;

static void check_produced(const rd_kafka_message_t *m) {
    char v[1024], c[16], a[16];
    int i;
    snprintf(v, sizeof v, "%.*s", (int)m->len, (char *)m->payload);
    CHECK(m->offset == next_offset[m->partition]++, "offset %lld in partition %d", (long long)m->offset, m->partition);
    CHECK(sscanf(v, "%15[^/]/%15[^/]/%d/", c, a, &i) == 3 && !strcmp(v, value_of(c, a, i)), "value %.60s", v);
    for (int k = 0; k < seen_count; k++)
        CHECK(strcmp(seen[k], v), "came twice: %.40s", v);
    seen[seen_count++] = strdup(v);
}

static void consume(void) {
    int n = read_all(named("main"), check_produced);
    CHECK(n == produced, "%d records, %d were produced", n, produced);
    detail("%d records", n);
}

static int expected;

static void check_number(const rd_kafka_message_t *m) {
    CHECK(atoi((char *)m->payload + strlen("record ")) == expected && m->offset == expected, "record %.*s at %lld, want %d", (int)m->len,
          (char *)m->payload, (long long)m->offset, expected);
    expected++;
}

static void idempotence(void) {
    delivery_t d = {.in_order = true};
    char v[64];
    CHECK(!create_topic(named("idempotence"), 1), "create");
    rd_kafka_t *p = PRODUCER("enable.idempotence", "true", "batch.num.messages", "5", "linger.ms", "0");
    for (int i = 0; i < 1000; i++) {
        snprintf(v, sizeof v, "record %d of many small batches", i);
        hand_in(p, &d, named("idempotence"), 0, NULL, v);
    }
    flush(p);
    CHECK(!d.err && d.answered == 1000 && d.in_order, "%d answered, in order %d, %s", d.answered, d.in_order, rd_kafka_err2name(d.err));
    detail("%d records", read_all(named("idempotence"), check_number));
    CHECK(expected == 1000, "%d read", expected);
    rd_kafka_destroy(p);
}

// Keys, values and headers that may be null or empty: data NULL is null, length 0 empty.
static char binary[256];
typedef struct {
    const char *name;
    const void *data;
    size_t len;
} bytes_t;
static const bytes_t kinds[] = {{"", NULL, 0}, {"", "", 0}, {"", binary, 256}};
static const bytes_t sent_headers[] = {{"null", NULL, 0}, {"empty", "", 0},     {"binary", binary, 256}, {"twice", "1", 1},
                                       {"twice", "2", 1}, {"", "no name", 7}, {"ключ", "значение", 16}};
#define HEADERS (sizeof sent_headers / sizeof *sent_headers)

static bool alike(bytes_t want, const void *data, size_t len) {
    return (want.data == NULL) == (data == NULL) && want.len == len && (len == 0 || !memcmp(want.data, data, len));
}

static void check_nulls(const rd_kafka_message_t *m) {
    int i = m->offset % 9;
    CHECK(alike(kinds[i / 3], m->key, m->key_len), "key of record %d", i);
    CHECK(alike(kinds[i % 3], m->payload, m->len), "value of record %d", i);
    rd_kafka_headers_t *h;
    if (i % 2) {
        CHECK(rd_kafka_message_headers(m, &h) == RD_KAFKA_RESP_ERR__NOENT, "headers in record %d", i);
        return;
    }
    CHECK(!rd_kafka_message_headers(m, &h) && rd_kafka_header_cnt(h) == HEADERS, "headers of record %d", i);
    for (size_t k = 0; k < HEADERS; k++) {
        const char *name;
        const void *data;
        size_t len;
        rd_kafka_header_get_all(h, k, &name, &data, &len);
        CHECK(!strcmp(name, sent_headers[k].name) && alike(sent_headers[k], data, len), "header %zu of record %d", k, i);
    }
}

static void headers(void) {
    for (int i = 0; i < 256; i++)
        binary[i] = (char)i;
    CHECK(!create_topic(named("headers"), 1), "create");
    for (int z = 0; z < 2; z++) {
        delivery_t d = {0};
        rd_kafka_t *p = PRODUCER("compression.codec", z ? "zstd" : "none");
        for (int i = 0; i < 9; i++) {
            rd_kafka_headers_t *h = rd_kafka_headers_new(HEADERS);
            for (size_t k = 0; i % 2 == 0 && k < HEADERS; k++)
                rd_kafka_header_add(h, sent_headers[k].name, -1, sent_headers[k].data, (ssize_t)sent_headers[k].len);
            rd_kafka_resp_err_t err = rd_kafka_producev(
                p, RD_KAFKA_V_TOPIC(named("headers")), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_KEY(kinds[i / 3].data, kinds[i / 3].len),
                RD_KAFKA_V_VALUE((void *)kinds[i % 3].data, kinds[i % 3].len), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_HEADERS(h),
                RD_KAFKA_V_OPAQUE(&d), RD_KAFKA_V_END);
            CHECK(!err, "produce: %s", rd_kafka_err2name(err));
        }
        flush(p);
        CHECK(!d.err, "delivery: %s", rd_kafka_err2name(d.err));
        rd_kafka_destroy(p);
    }
    int n = read_all(named("headers"), check_nulls);
    CHECK(n == 18, "%d records", n);
    detail("%d records, %zu headers", n, HEADERS);
}

static void offsets(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t start = t.tv_sec * 1000LL - 60000, low, high;
    int at[] = {0, 1, 4, 3, 2}; // the latest time is not the last record's
    delivery_t d = {0};
    CHECK(!create_topic(named("offsets"), 2), "create");
    for (int i = 0; i < 5; i++) {
        rd_kafka_resp_err_t err = rd_kafka_producev(plain, RD_KAFKA_V_TOPIC(named("offsets")), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_VALUE("x", 1),
                                                    RD_KAFKA_V_TIMESTAMP(start + at[i] * 1000), RD_KAFKA_V_OPAQUE(&d), RD_KAFKA_V_END);
        CHECK(!err, "produce: %s", rd_kafka_err2name(err));
        flush(plain);
    }
    for (int p = 0; p < 2; p++) {
        rd_kafka_resp_err_t err = rd_kafka_query_watermark_offsets(plain, named("offsets"), p, &low, &high, WAIT_MS);
        CHECK(!err, "watermarks: %s", rd_kafka_err2name(err));
        detail("partition %d: %lld to %lld", p, (long long)low, (long long)high);
    }
    int times[] = {0, 1500, 4000, 5000};
    for (int i = 0; i < 4; i++) {
        rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_new(2);
        rd_kafka_topic_partition_list_add(l, named("offsets"), 0)->offset = start + times[i];
        rd_kafka_topic_partition_list_add(l, named("offsets"), 1)->offset = start + times[i];
        rd_kafka_resp_err_t err = rd_kafka_offsets_for_times(plain, l, WAIT_MS);
        CHECK(!err, "offsets for times: %s", rd_kafka_err2name(err));
        detail("%d ms: %lld %lld", times[i], (long long)l->elems[0].offset, (long long)l->elems[1].offset);
        rd_kafka_topic_partition_list_destroy(l);
    }
}

static void tell_offset(const rd_kafka_message_t *m) {
    if (m->partition == 0)
        detail("%lld", (long long)m->offset);
}

static void configs(void) {
    char large[5000], v[32];
    memset(large, 'x', sizeof large - 1), large[sizeof large - 1] = 0;
    char *topic = strdup(named("configs"));
    CHECK(!create_topic(topic, 1), "create");
    rd_kafka_resp_err_t err = create_partitions(topic, 3);
    CHECK(!err, "create partitions: %s", rd_kafka_err2name(err));
    CHECK(!alter_config(topic, "max.message.bytes", "2000"), "alter config");
    describe_config(topic, "max.message.bytes");
    delivery_t d = {0};
    rd_kafka_t *p = PRODUCER("acks", "all");
    for (long long until = now_ms() + WAIT_MS; !d.err && now_ms() < until;) { // the setting may need a moment to act
        hand_in(p, &d, topic, 2, NULL, large);
        flush(p);
    }
    rd_kafka_destroy(p);
    detail("too large: %s", rd_kafka_err2name(d.err));
    for (int i = 0; i < 10; i++) {
        snprintf(v, sizeof v, "record %d", i);
        send_one(topic, 0, v);
    }
    err = delete_records(topic, 0, 7);
    CHECK(!err, "delete records: %s", rd_kafka_err2name(err));
    detail("after delete records");
    read_all(topic, tell_offset);
    free(topic);
}

static bool gone(void *topic) { return partitions_of(topic) < 0; }

static void remove_topic(void) {
    char *topic = named("main");
    rd_kafka_resp_err_t err = delete_topic(topic);
    CHECK(!err, "delete: %s", rd_kafka_err2name(err));
    await("the topic is gone", gone, topic);
    detail("again: %s", rd_kafka_err2name(delete_topic(named("main"))));
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: client BOOTSTRAP PREFIX\n");
        return 2;
    }
    bootstrap = argv[1], prefix = argv[2];
    // allow.auto.create.topics is false here, so that looking for a topic that is gone does not make it.
    plain = PRODUCER("linger.ms", "0", "allow.auto.create.topics", "false");
    step(create, "create topic");
    const char *codecs[] = {"none", "gzip", "snappy", "lz4", "zstd"}, *all_acks[] = {"0", "1", "all"};
    for (int c = 0; c < 5; c++)
        for (int a = 0; a < 3; a++) {
            codec = codecs[c], acks = all_acks[a];
            step(produce, "produce %s acks=%s", codec, acks);
        }
    step(consume, "consume");
    step(idempotence, "idempotence");
    step(headers, "headers, null and empty");
    step(offsets, "list offsets");
    step(configs, "configs and partitions");
    group_steps();
    step(remove_topic, "delete topic");
    rd_kafka_destroy(plain);
    return 0;
}
