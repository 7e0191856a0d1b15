#define _GNU_SOURCE
#include "step.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char running[128];
static char text[8192];
static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;

long long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

void step(void (*body)(void), const char *name, ...) {
    va_list args;
    va_start(args, name);
    vsnprintf(running, sizeof running, name, args);
    va_end(args);
    text[0] = 0;
    long long began = now_ms();
    body();
    printf("{\"step\":\"%s\",\"ok\":true,\"detail\":\"%s\"}\n", running, text);
    fflush(stdout);
    fprintf(stderr, "%s: %lld ms\n", running, now_ms() - began);
}

void detail(const char *format, ...) {
    size_t n = strlen(text);
    if (n > 0 && n + 2 < sizeof text)
        strcpy(text + n, ", "), n += 2;
    va_list args;
    va_start(args, format);
    vsnprintf(text + n, sizeof text - n, format, args);
    va_end(args);
}

void fail(const char *format, ...) {
    char what[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    pthread_mutex_lock(&printing); // and never given back: one line is enough
    for (char *c = what; *c; c++)
        if (*c == '"' || *c == '\\' || *c == '\n')
            *c = '\'';
    printf("{\"step\":\"%s\",\"ok\":false,\"detail\":\"%s\"}\n", running, what);
    fflush(stdout);
    _exit(1);
}

void await(const char *what, bool (*fact)(void *), void *arg) {
    long long until = now_ms() + WAIT_MS;
    while (!fact(arg)) {
        CHECK(now_ms() < until, "waited %d ms for: %s", WAIT_MS, what);
        usleep(5000);
    }
}

char *named(const char *suffix) {
    static char names[8][NAME];
    static int next;
    char *name = names[next++ % 8];
    snprintf(name, NAME, "%s-%s", prefix, suffix);
    return name;
}

rd_kafka_conf_t *conf_with(rd_kafka_conf_t *conf, const char *key, const char *value) {
    char why[512];
    CHECK(rd_kafka_conf_set(conf, key, value, why, sizeof why) == RD_KAFKA_CONF_OK, "%s=%s: %s", key, value, why);
    return conf;
}

rd_kafka_t *client_of(rd_kafka_type_t kind, rd_kafka_conf_t *conf) {
    char why[512];
    rd_kafka_t *rk = rd_kafka_new(kind, conf_with(conf, "bootstrap.servers", bootstrap), why, sizeof why);
    CHECK(rk, "client: %s", why);
    if (kind == RD_KAFKA_CONSUMER)
        rd_kafka_poll_set_consumer(rk);
    return rk;
}

rd_kafka_t *client(rd_kafka_type_t kind, ...) {
    rd_kafka_conf_t *conf = conf_with(rd_kafka_conf_new(), "log_level", "0");
    va_list args;
    va_start(args, kind);
    for (const char *key; (key = va_arg(args, const char *));)
        conf_with(conf, key, va_arg(args, const char *));
    va_end(args);
    return client_of(kind, conf);
}
