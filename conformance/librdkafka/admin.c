// The admin calls, each for one thing and waited for.
#include "step.h"

#include <string.h>

static rd_kafka_queue_t *answers(void) {
    static rd_kafka_queue_t *q;
    return q ? q : (q = rd_kafka_queue_new(plain));
}

// The answer to the call just made.
static rd_kafka_event_t *answer(void) {
    rd_kafka_event_t *e = rd_kafka_queue_poll(answers(), WAIT_MS);
    CHECK(e, "no answer to an admin call");
    CHECK(!rd_kafka_event_error(e), "admin call: %s", rd_kafka_event_error_string(e));
    return e;
}

static rd_kafka_resp_err_t topic_error(const rd_kafka_topic_result_t **topics) {
    return rd_kafka_topic_result_error(topics[0]);
}

rd_kafka_resp_err_t create_topic(const char *topic, int partitions) {
    rd_kafka_NewTopic_t *t = rd_kafka_NewTopic_new(topic, partitions, 1, NULL, 0);
    rd_kafka_CreateTopics(plain, &t, 1, NULL, answers());
    rd_kafka_NewTopic_destroy(t);
    rd_kafka_event_t *e = answer();
    size_t n;
    rd_kafka_resp_err_t err = topic_error(rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(e), &n));
    rd_kafka_event_destroy(e);
    return err;
}

rd_kafka_resp_err_t delete_topic(const char *topic) {
    rd_kafka_DeleteTopic_t *t = rd_kafka_DeleteTopic_new(topic);
    rd_kafka_DeleteTopics(plain, &t, 1, NULL, answers());
    rd_kafka_DeleteTopic_destroy(t);
    rd_kafka_event_t *e = answer();
    size_t n;
    rd_kafka_resp_err_t err = topic_error(rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(e), &n));
    rd_kafka_event_destroy(e);
    return err;
}

rd_kafka_resp_err_t create_partitions(const char *topic, int total) {
    char why[512];
    rd_kafka_NewPartitions_t *p = rd_kafka_NewPartitions_new(topic, total, why, sizeof why);
    CHECK(p, "partitions: %s", why);
    rd_kafka_CreatePartitions(plain, &p, 1, NULL, answers());
    rd_kafka_NewPartitions_destroy(p);
    rd_kafka_event_t *e = answer();
    size_t n;
    rd_kafka_resp_err_t err = topic_error(rd_kafka_CreatePartitions_result_topics(rd_kafka_event_CreatePartitions_result(e), &n));
    rd_kafka_event_destroy(e);
    return err;
}

rd_kafka_resp_err_t alter_config(const char *topic, const char *key, const char *value) {
    rd_kafka_ConfigResource_t *r = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    rd_kafka_ConfigResource_set_config(r, key, value);
    rd_kafka_AlterConfigs(plain, &r, 1, NULL, answers());
    rd_kafka_ConfigResource_destroy(r);
    rd_kafka_event_t *e = answer();
    size_t n;
    rd_kafka_resp_err_t err = rd_kafka_ConfigResource_error(rd_kafka_AlterConfigs_result_resources(rd_kafka_event_AlterConfigs_result(e), &n)[0]);
    rd_kafka_event_destroy(e);
    return err;
}

void describe_config(const char *topic, const char *key) {
    rd_kafka_ConfigResource_t *r = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    rd_kafka_DescribeConfigs(plain, &r, 1, NULL, answers());
    rd_kafka_ConfigResource_destroy(r);
    rd_kafka_event_t *e = answer();
    size_t n;
    const rd_kafka_ConfigResource_t *got = rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(e), &n)[0];
    const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(got, &n);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(rd_kafka_ConfigEntry_name(entries[i]), key))
            detail("%s %s source %s", key, rd_kafka_ConfigEntry_value(entries[i]), rd_kafka_ConfigSource_name(rd_kafka_ConfigEntry_source(entries[i])));
    rd_kafka_event_destroy(e);
}

rd_kafka_resp_err_t delete_records(const char *topic, int partition, int64_t before) {
    rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(l, topic, partition)->offset = before;
    rd_kafka_DeleteRecords_t *d = rd_kafka_DeleteRecords_new(l);
    rd_kafka_topic_partition_list_destroy(l);
    rd_kafka_DeleteRecords(plain, &d, 1, NULL, answers());
    rd_kafka_DeleteRecords_destroy(d);
    rd_kafka_event_t *e = answer();
    rd_kafka_resp_err_t err = rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(e))->elems[0].err;
    rd_kafka_event_destroy(e);
    return err;
}

static rd_kafka_resp_err_t group_error(const rd_kafka_group_result_t *g) {
    if (rd_kafka_group_result_error(g))
        return rd_kafka_error_code(rd_kafka_group_result_error(g));
    const rd_kafka_topic_partition_list_t *l = rd_kafka_group_result_partitions(g);
    for (int i = 0; l && i < l->cnt; i++)
        if (l->elems[i].err)
            return l->elems[i].err;
    return 0;
}

rd_kafka_resp_err_t delete_group(const char *group) {
    rd_kafka_DeleteGroup_t *g = rd_kafka_DeleteGroup_new(group);
    rd_kafka_DeleteGroups(plain, &g, 1, NULL, answers());
    rd_kafka_DeleteGroup_destroy(g);
    rd_kafka_event_t *e = answer();
    size_t n;
    rd_kafka_resp_err_t err = group_error(rd_kafka_DeleteGroups_result_groups(rd_kafka_event_DeleteGroups_result(e), &n)[0]);
    rd_kafka_event_destroy(e);
    return err;
}

rd_kafka_resp_err_t alter_offsets(const char *group, rd_kafka_topic_partition_list_t *offsets) {
    rd_kafka_AlterConsumerGroupOffsets_t *a = rd_kafka_AlterConsumerGroupOffsets_new(group, offsets);
    rd_kafka_AlterConsumerGroupOffsets(plain, &a, 1, NULL, answers());
    rd_kafka_AlterConsumerGroupOffsets_destroy(a);
    rd_kafka_event_t *e = answer();
    size_t n;
    rd_kafka_resp_err_t err =
        group_error(rd_kafka_AlterConsumerGroupOffsets_result_groups(rd_kafka_event_AlterConsumerGroupOffsets_result(e), &n)[0]);
    rd_kafka_event_destroy(e);
    return err;
}

rd_kafka_resp_err_t delete_offsets(const char *group, rd_kafka_topic_partition_list_t *partitions) {
    rd_kafka_DeleteConsumerGroupOffsets_t *d = rd_kafka_DeleteConsumerGroupOffsets_new(group, partitions);
    rd_kafka_DeleteConsumerGroupOffsets(plain, &d, 1, NULL, answers());
    rd_kafka_DeleteConsumerGroupOffsets_destroy(d);
    rd_kafka_event_t *e = answer();
    size_t n;
    rd_kafka_resp_err_t err =
        group_error(rd_kafka_DeleteConsumerGroupOffsets_result_groups(rd_kafka_event_DeleteConsumerGroupOffsets_result(e), &n)[0]);
    rd_kafka_event_destroy(e);
    return err;
}

rd_kafka_topic_partition_list_t *committed(const char *group) {
    rd_kafka_ListConsumerGroupOffsets_t *l = rd_kafka_ListConsumerGroupOffsets_new(group, NULL);
    rd_kafka_ListConsumerGroupOffsets(plain, &l, 1, NULL, answers());
    rd_kafka_ListConsumerGroupOffsets_destroy(l);
    rd_kafka_event_t *e = answer();
    size_t n;
    const rd_kafka_group_result_t *g = rd_kafka_ListConsumerGroupOffsets_result_groups(rd_kafka_event_ListConsumerGroupOffsets_result(e), &n)[0];
    CHECK(!group_error(g), "offsets of %s: %s", group, rd_kafka_err2name(group_error(g)));
    rd_kafka_topic_partition_list_t *out = rd_kafka_topic_partition_list_copy(rd_kafka_group_result_partitions(g));
    rd_kafka_topic_partition_list_sort(out, NULL, NULL);
    rd_kafka_event_destroy(e);
    return out;
}

rd_kafka_consumer_group_state_t describe_group(const char *group, bool tell) {
    rd_kafka_DescribeConsumerGroups(plain, &group, 1, NULL, answers());
    rd_kafka_event_t *e = answer();
    size_t n;
    const rd_kafka_ConsumerGroupDescription_t *g =
        rd_kafka_DescribeConsumerGroups_result_groups(rd_kafka_event_DescribeConsumerGroups_result(e), &n)[0];
    CHECK(!rd_kafka_ConsumerGroupDescription_error(g), "describe %s: %s", group,
          rd_kafka_error_string(rd_kafka_ConsumerGroupDescription_error(g)));
    rd_kafka_consumer_group_state_t state = rd_kafka_ConsumerGroupDescription_state(g);
    size_t members = rd_kafka_ConsumerGroupDescription_member_count(g);
    if (tell)
        detail("%s, assignor '%s'", rd_kafka_consumer_group_state_name(state), rd_kafka_ConsumerGroupDescription_partition_assignor(g));
    for (char id = 'A'; tell && id <= 'B'; id++) // in order of client ids, not of member ids
        for (size_t i = 0; i < members; i++) {
            const rd_kafka_MemberDescription_t *m = rd_kafka_ConsumerGroupDescription_member(g, i);
            if (rd_kafka_MemberDescription_client_id(m)[0] == id)
                detail("%s %s owns %d", rd_kafka_MemberDescription_client_id(m), rd_kafka_MemberDescription_host(m),
                       rd_kafka_MemberAssignment_partitions(rd_kafka_MemberDescription_assignment(m))->cnt);
        }
    rd_kafka_event_destroy(e);
    return state;
}

int list_groups(const char *beginning) {
    rd_kafka_ListConsumerGroups(plain, NULL, answers());
    rd_kafka_event_t *e = answer();
    const rd_kafka_ListConsumerGroups_result_t *r = rd_kafka_event_ListConsumerGroups_result(e);
    size_t n, errors, found = 0;
    rd_kafka_ListConsumerGroups_result_errors(r, &errors);
    CHECK(errors == 0, "%zu errors in the list of groups", errors);
    const rd_kafka_ConsumerGroupListing_t **groups = rd_kafka_ListConsumerGroups_result_valid(r, &n);
    const char *last = "";
    for (;;) { // in order of names
        const rd_kafka_ConsumerGroupListing_t *next = NULL;
        for (size_t i = 0; i < n; i++) {
            const char *id = rd_kafka_ConsumerGroupListing_group_id(groups[i]);
            if (!strncmp(id, beginning, strlen(beginning)) && strcmp(id, last) > 0 &&
                (!next || strcmp(id, rd_kafka_ConsumerGroupListing_group_id(next)) < 0))
                next = groups[i];
        }
        if (!next)
            break;
        last = rd_kafka_ConsumerGroupListing_group_id(next);
        found++;
        detail("%s %s", last + strlen(beginning), rd_kafka_consumer_group_state_name(rd_kafka_ConsumerGroupListing_state(next)));
    }
    rd_kafka_event_destroy(e);
    return (int)found;
}
