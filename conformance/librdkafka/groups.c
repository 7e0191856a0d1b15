// The steps with groups: members on threads of their own, and a ledger of who owns and who read what.
#define _GNU_SOURCE
#include "step.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORDS 200000

struct member;
typedef struct {
    pthread_mutex_t lock;
    struct member *owners[PARTITIONS];
    unsigned char reads[RECORDS]; // times each record was read
    int read, twice;
} ledger_t;

typedef struct member {
    pthread_t thread;
    rd_kafka_t *rk;
    ledger_t *ledger;
    const char *topic, *name;
    int64_t positions[PARTITIONS]; // -1: nothing to commit
    atomic_int owned;
    bool commits_idle;
    atomic_bool leaving, ended;
    rd_kafka_resp_err_t put_out; // why the member was put out, where it may be
} member_t;

static ledger_t ledger, apart;

static void clear(ledger_t *l) {
    memset(l, 0, sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
}

static rd_kafka_resp_err_t commit(member_t *m, const rd_kafka_topic_partition_list_t *only) {
    rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_new(PARTITIONS);
    for (int p = 0; p < PARTITIONS; p++)
        if (m->positions[p] >= 0 && (!only || rd_kafka_topic_partition_list_find((void *)only, m->topic, p)))
            rd_kafka_topic_partition_list_add(l, m->topic, p)->offset = m->positions[p];
    rd_kafka_resp_err_t err = l->cnt ? rd_kafka_commit(m->rk, l, 0) : 0;
    for (int i = 0; !err && i < l->cnt; i++)
        m->positions[l->elems[i].partition] = -1;
    rd_kafka_topic_partition_list_destroy(l);
    return err;
}

static void rebalanced(rd_kafka_t *rk, rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t *l, void *opaque) {
    member_t *m = opaque;
    bool cooperative = !strcmp(rd_kafka_rebalance_protocol(rk), "COOPERATIVE");
    if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        pthread_mutex_lock(&m->ledger->lock);
        for (int i = 0; i < l->cnt; i++) {
            member_t **owner = &m->ledger->owners[l->elems[i].partition];
            CHECK(!*owner, "partition %d went to %s while %s owned it", l->elems[i].partition, m->name, (*owner)->name);
            *owner = m;
        }
        m->owned += l->cnt;
        pthread_mutex_unlock(&m->ledger->lock);
        cooperative ? (void)rd_kafka_incremental_assign(rk, l) : (void)rd_kafka_assign(rk, l);
        return;
    }
    if (rd_kafka_assignment_lost(rk)) {
        CHECK(m->put_out, "%s lost its partitions", m->name);
    } else {
        rd_kafka_resp_err_t err = commit(m, l);
        CHECK(!err, "%s commits what it gives up: %s", m->name, rd_kafka_err2name(err));
    }
    pthread_mutex_lock(&m->ledger->lock);
    for (int i = 0; i < l->cnt; i++)
        m->ledger->owners[l->elems[i].partition] = NULL;
    m->owned -= l->cnt;
    pthread_mutex_unlock(&m->ledger->lock);
    cooperative ? (void)rd_kafka_incremental_unassign(rk, l) : (void)rd_kafka_assign(rk, NULL);
}

static void note(member_t *m, const rd_kafka_message_t *msg) {
    ledger_t *l = m->ledger;
    int n = atoi((char *)msg->payload + strlen("record "));
    CHECK(n < RECORDS, "record %d", n);
    pthread_mutex_lock(&l->lock);
    CHECK(l->owners[msg->partition] == m, "%s read partition %d, which it does not own", m->name, msg->partition);
    l->twice += l->reads[n] == 1;
    l->read += l->reads[n] == 0;
    l->reads[n]++;
    pthread_mutex_unlock(&l->lock);
    m->positions[msg->partition] = msg->offset + 1;
}

static void *run(void *arg) {
    member_t *m = arg;
    while (!m->leaving && !m->put_out) {
        rd_kafka_message_t *msg = rd_kafka_consumer_poll(m->rk, 50);
        if (!msg) {
            // Not in a cooperative group: there a commit in the middle of a rebalance costs this version all it owns.
            rd_kafka_resp_err_t err = m->commits_idle ? commit(m, NULL) : 0;
            CHECK(!err || err == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, "%s commits: %s", m->name, rd_kafka_err2name(err));
            continue;
        }
        if (msg->err == RD_KAFKA_RESP_ERR__FATAL) {
            char why[512];
            m->put_out = rd_kafka_fatal_error(m->rk, why, sizeof why);
        } else {
            CHECK(!msg->err, "%s: %s", m->name, rd_kafka_message_errstr(msg));
            note(m, msg);
        }
        rd_kafka_message_destroy(msg);
    }
    rd_kafka_consumer_close(m->rk);
    rd_kafka_destroy(m->rk);
    m->ended = true;
    return NULL;
}

static member_t *join(const char *name, ledger_t *l, const char *group, const char *strategy, const char *instance) {
    member_t *m = calloc(1, sizeof *m);
    m->ledger = l, m->topic = group, m->name = name;
    m->commits_idle = !strcmp(strategy, "range");
    for (int p = 0; p < PARTITIONS; p++)
        m->positions[p] = -1;
    const char *settings[][2] = {{"log_level", "0"}, {"group.id", group}, {"client.id", name}, {"partition.assignment.strategy", strategy},
                                 {"group.instance.id", instance}, {"auto.offset.reset", "earliest"}, {"enable.auto.commit", "false"},
                                 {"session.timeout.ms", "10000"}, {"heartbeat.interval.ms", "300"}};
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (settings[i][1])
            conf_with(conf, settings[i][0], settings[i][1]);
    rd_kafka_conf_set_opaque(conf, m);
    rd_kafka_conf_set_rebalance_cb(conf, rebalanced);
    m->rk = client_of(RD_KAFKA_CONSUMER, conf);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, group, RD_KAFKA_PARTITION_UA);
    rd_kafka_subscribe(m->rk, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    pthread_create(&m->thread, NULL, run, m);
    return m;
}

static void leave(member_t *m) {
    m->leaving = true;
    pthread_join(m->thread, NULL);
}

static atomic_int sent;
static atomic_bool enough;

static void *load(void *topic) {
    char v[32];
    while (!enough) {
        snprintf(v, sizeof v, "record %d", sent);
        send_one(topic, sent % PARTITIONS, v);
        sent++;
        usleep(1000);
    }
    return NULL;
}

static member_t *a, *b;
static int mark;
static const char *strategy;

static bool a_owns_all(void *arg) { return (void)arg, a->owned == PARTITIONS && ledger.read > 100; }
static bool two_each(void *arg) { return (void)arg, a->owned == 2 && b->owned == 2; }
static bool stable(void *group) { return describe_group(group, false) == RD_KAFKA_CONSUMER_GROUP_STATE_STABLE; }
static bool read_on(void *arg) { return (void)arg, ledger.read > mark + 200; }
static bool b_owns_all(void *arg) { return (void)arg, b->owned == PARTITIONS; }
static bool all_read(void *arg) { return (void)arg, ledger.read == sent; }

// Two members while records keep coming: the second joins, then the first leaves.
static void of_two(void) {
    char suffix[64];
    snprintf(suffix, sizeof suffix, "group-%s", strategy);
    char *group = strdup(named(suffix));
    CHECK(!create_topic(group, PARTITIONS), "create");
    clear(&ledger);
    sent = 0;
    enough = false;
    pthread_t loading;
    pthread_create(&loading, NULL, load, group);
    a = join("A", &ledger, group, strategy, NULL);
    await("A owns all", a_owns_all, NULL);
    b = join("B", &ledger, group, strategy, NULL);
    await("A and B own two each", two_each, NULL);
    await("the group is stable", stable, group);
    describe_group(group, true);
    detail("delete while in use: %s", rd_kafka_err2name(delete_group(group)));
    mark = ledger.read;
    await("both read", read_on, NULL);
    leave(a);
    await("B owns all", b_owns_all, NULL);
    mark = ledger.read;
    await("B reads", read_on, NULL);
    enough = true;
    pthread_join(loading, NULL);
    await("all is read", all_read, NULL);
    leave(b);
    detail("read twice: %d", ledger.twice);
    rd_kafka_topic_partition_list_t *l = committed(group);
    int64_t sum = 0;
    for (int i = 0; i < l->cnt; i++)
        sum += l->elems[i].offset;
    CHECK(sum == sent, "committed offsets sum to %lld, %d were sent", (long long)sum, sent);
    rd_kafka_topic_partition_list_destroy(l);
    describe_group(group, true);
    free(group);
}

// Polls until partitions 0 to n-1 gave a record; the first offset of each.
static void first(rd_kafka_t *c, int n, int64_t *offsets) {
    long long until = now_ms() + WAIT_MS;
    for (int p = 0; p < n; p++)
        offsets[p] = -1;
    for (int missing = n; missing > 0;) {
        CHECK(now_ms() < until, "no first record of %d partitions", missing);
        rd_kafka_message_t *m = rd_kafka_consumer_poll(c, 100);
        if (!m)
            continue;
        CHECK(!m->err, "consume: %s", rd_kafka_message_errstr(m));
        if (m->partition < n && offsets[m->partition] < 0)
            offsets[m->partition] = m->offset, missing--;
        rd_kafka_message_destroy(m);
    }
}

static rd_kafka_t *subscriber(const char *group) {
    rd_kafka_t *c = client(RD_KAFKA_CONSUMER, "group.id", group, "auto.offset.reset", "earliest", "enable.auto.commit", "false", NULL);
    rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(l, group, RD_KAFKA_PARTITION_UA);
    rd_kafka_subscribe(c, l);
    rd_kafka_topic_partition_list_destroy(l);
    return c;
}

// Adds the list's offsets and metadata to the detail.
static void tell(const char *what, const rd_kafka_topic_partition_list_t *l) {
    for (int i = 0; i < l->cnt; i++)
        detail("%s %d: %lld '%.*s'", what, l->elems[i].partition, (long long)l->elems[i].offset, (int)l->elems[i].metadata_size,
               l->elems[i].metadata ? (char *)l->elems[i].metadata : "");
}

static rd_kafka_topic_partition_list_t *two_offsets(const char *topic, int64_t o0, int64_t o1, const char *metadata1) {
    rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_new(2);
    rd_kafka_topic_partition_list_add(l, topic, 0)->offset = o0;
    rd_kafka_topic_partition_t *p = rd_kafka_topic_partition_list_add(l, topic, 1);
    p->offset = o1;
    if (metadata1)
        p->metadata = strdup(metadata1), p->metadata_size = strlen(metadata1);
    return l;
}

static void resume(void) {
    char v[32];
    int64_t at[2];
    char *group = strdup(named("group-resume"));
    CHECK(!create_topic(group, 2), "create");
    for (int i = 0; i < 40; i++) {
        snprintf(v, sizeof v, "record %d", i / 2);
        send_one(group, i % 2, v);
    }
    rd_kafka_t *c = subscriber(group);
    first(c, 1, at);
    rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_t *p = rd_kafka_topic_partition_list_add(l, group, 0);
    p->offset = 7, p->metadata = strdup("seven"), p->metadata_size = 5;
    rd_kafka_resp_err_t err = rd_kafka_commit(c, l, 0);
    CHECK(!err, "commit: %s", rd_kafka_err2name(err));
    rd_kafka_topic_partition_list_destroy(l);
    rd_kafka_consumer_close(c);
    rd_kafka_destroy(c);
    c = subscriber(group);
    first(c, 2, at);
    l = two_offsets(group, 0, 0, NULL);
    err = rd_kafka_committed(c, l, WAIT_MS);
    CHECK(!err, "committed: %s", rd_kafka_err2name(err));
    tell("committed", l);
    rd_kafka_topic_partition_list_destroy(l);
    detail("first %lld %lld", (long long)at[0], (long long)at[1]);
    CHECK(at[0] == 7, "resumed at %lld", (long long)at[0]);
    rd_kafka_consumer_close(c);
    rd_kafka_destroy(c);
    free(group);
}

static void alter(void) {
    const char *group = named("group-resume");
    rd_kafka_topic_partition_list_t *l = two_offsets(group, 3, 5, "five");
    rd_kafka_resp_err_t err = alter_offsets(group, l);
    CHECK(!err, "alter offsets: %s", rd_kafka_err2name(err));
    rd_kafka_topic_partition_list_destroy(l);
    l = committed(group);
    tell("altered", l);
    rd_kafka_topic_partition_list_destroy(l);
    l = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(l, group, 0);
    err = delete_offsets(group, l);
    CHECK(!err, "delete offsets: %s", rd_kafka_err2name(err));
    rd_kafka_topic_partition_list_destroy(l);
    l = committed(group);
    tell("left", l);
    rd_kafka_topic_partition_list_destroy(l);
}

static member_t *twin;
static bool owns_all(void *m) { return ((member_t *)m)->owned == PARTITIONS; }
static bool owns_two(void *m) { return ((member_t *)m)->owned == 2; }
static bool ended(void *m) { return ((member_t *)m)->ended; }

// A static member that comes back gets what it had, and nobody else is disturbed; its double puts it out.
static void static_member(void) {
    char *group = strdup(named("group-static"));
    CHECK(!create_topic(group, PARTITIONS), "create");
    clear(&ledger);
    clear(&apart);
    a = join("A", &ledger, group, "range", "one");
    await("A owns all", owns_all, a);
    b = join("B", &ledger, group, "range", "two");
    await("A and B own two each", two_each, NULL);
    leave(b);
    b = join("B", &ledger, group, "range", "two");
    await("B is back", two_each, NULL);
    twin = join("twin", &apart, group, "range", "two");
    await("B is put out", ended, b);
    detail("put out by %s", rd_kafka_err2name(b->put_out));
    await("the twin owns two", owns_two, twin);
    CHECK(a->owned == 2, "the other member was disturbed");
    leave(twin);
    leave(a);
    free(group);
}

static void list(void) { list_groups(named("group-")); }

static void remove_group(void) {
    const char *group = named("group-resume");
    rd_kafka_resp_err_t err = delete_group(group);
    CHECK(!err, "delete: %s", rd_kafka_err2name(err));
    CHECK(!list_groups(group), "the deleted group is listed");
    detail("again: %s", rd_kafka_err2name(delete_group(group)));
}

void group_steps(void) {
    strategy = "range";
    step(of_two, "group of two, range");
    strategy = "cooperative-sticky";
    step(of_two, "group of two, cooperative");
    step(resume, "commit and resume");
    step(alter, "alter and delete offsets");
    step(static_member, "static member");
    step(list, "list groups");
    step(remove_group, "delete group");
}
