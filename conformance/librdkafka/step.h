// The line of a step, waiting, and what the steps share. A line says nothing that differs from run to run; times go to standard error.
#ifndef STEP_H
#define STEP_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>

#define PARTITIONS 4
#define WAIT_MS 60000
// One name of a topic or group.
#define NAME 256

extern const char *bootstrap;
extern const char *prefix;
// A producer nobody configures further, whose handle the admin calls use too.
extern rd_kafka_t *plain;

// Runs a step and prints its line.
void step(void (*body)(void), const char *name, ...) __attribute__((format(printf, 2, 3)));
// Adds to the detail of the running step; the text is a JSON string's inside.
void detail(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Prints the line of the running step and ends the program; any thread may.
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
#define CHECK(fact, ...) do { if (!(fact)) fail(__VA_ARGS__); } while (0)

long long now_ms(void);
// Waits until fact(arg), by looking again and again.
void await(const char *what, bool (*fact)(void *), void *arg);
// The prefix and a suffix as one name, in one of a few buffers in turn.
char *named(const char *suffix);

// A client of the kind with settings "key", "value", ..., NULL.
rd_kafka_t *client(rd_kafka_type_t kind, ...) __attribute__((sentinel));
rd_kafka_t *client_of(rd_kafka_type_t kind, rd_kafka_conf_t *conf);
rd_kafka_conf_t *conf_with(rd_kafka_conf_t *conf, const char *key, const char *value);

// admin.c: each call for one thing; the error of the thing, not of the call, comes back.
rd_kafka_resp_err_t create_topic(const char *topic, int partitions);
rd_kafka_resp_err_t delete_topic(const char *topic);
rd_kafka_resp_err_t create_partitions(const char *topic, int total);
rd_kafka_resp_err_t alter_config(const char *topic, const char *key, const char *value);
rd_kafka_resp_err_t delete_records(const char *topic, int partition, int64_t before);
rd_kafka_resp_err_t delete_group(const char *group);
rd_kafka_resp_err_t alter_offsets(const char *group, rd_kafka_topic_partition_list_t *offsets);
rd_kafka_resp_err_t delete_offsets(const char *group, rd_kafka_topic_partition_list_t *partitions);
// Adds the value and source of a topic's config to the detail.
void describe_config(const char *topic, const char *key);
// The group's state; with tell, its members go into the detail.
rd_kafka_consumer_group_state_t describe_group(const char *group, bool tell);
// Adds the groups whose names begin so to the detail, without the beginning; the number of them.
int list_groups(const char *beginning);
// The committed offsets of a group, to be destroyed by the caller.
rd_kafka_topic_partition_list_t *committed(const char *group);

// groups.c
void group_steps(void);
// client.c: sends one record with partition and value and waits for its answer.
void send_one(const char *topic, int partition, const char *value);

#endif
