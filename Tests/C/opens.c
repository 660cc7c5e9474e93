/* Opens and releases of one directory at once: eight threads open it, read a byte, now and then remove the film, and
 * release stream and cache in an order that chance decides, so that opens meet caches that close, and reads removals.
 *
 *   opens URL SECONDS
 *
 * Each open has a log of its own, which gets no line once its handle is released: its context is freed then, so that
 * the address sanitizer sees one that comes late. Prints the number of opens, and ends with 1 where something was not
 * as it has to be. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tieredcache.h>
#include <time.h>

enum { THREADS = 8 };
static const char *url;
static time_t end;
static int failures, opens, lines;

static void fail(const char *what, long long value) {
    fprintf(stderr, "opens: FAILED: %s: %lld\n", what, value);
    __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
}

static void log_line(void *count, int level, const char *line) {
    (void)level;
    (void)line;
    ++*(int *)count; /* one line at a time; freed after the release */
}

/* A lookup that finds nothing, of which the log tells. */
static void miss(tiered_cache *cache) {
    tiered_request request = {.size = sizeof request, .url = url, .key = "none", .flags = TIERED_CACHE_ONLY};
    tiered_stream *stream = NULL;
    char byte;
    int status = tiered_stream_new(cache, &request, &stream);
    if (status == TIERED_OK) status = (int)tiered_read(stream, &byte, 1);
    if (status != TIERED_E_NOT_CACHED) fail("a read of what is not stored", status);
    tiered_stream_release(stream);
}

static void *open_and_release(void *argument) {
    unsigned seed = (unsigned)(uintptr_t)argument;
    while (time(NULL) < end) {
        char byte;
        int *count = calloc(1, sizeof *count);
        tiered_options options = {.size = sizeof options, .log_level = TIERED_LOG_TRACE, .log = log_line,
                                  .log_context = count};
        tiered_request request = {.size = sizeof request, .url = url};
        tiered_cache *cache = NULL;
        tiered_stream *stream = NULL;
        int choice = rand_r(&seed) % 8, status = tiered_cache_open(&options, &cache);
        if (status != TIERED_OK) fail("tiered_cache_open", status);
        status = tiered_storage_status(cache, NULL, 0);
        if (status != TIERED_OK) fail("tiered_storage_status", status);
        status = tiered_stream_new(cache, &request, &stream);
        if (status != TIERED_OK) fail("tiered_stream_new", status);
        if (choice & 1) tiered_cache_release(tiered_cache_retain(cache));
        if (choice & 2) {
            int64_t n = tiered_read(stream, &byte, 1);
            if (n != 1) fail("tiered_read", n);
        }
        if (rand_r(&seed) % 16 == 0) miss(cache);
        if (rand_r(&seed) % 16 == 0) {
            status = tiered_remove(cache, url, NULL);
            if (status != TIERED_OK && status != TIERED_E_NOT_FOUND) fail("tiered_remove", status);
        }
        if (choice & 4) tiered_stream_release(stream);
        tiered_cache_release(cache);
        __atomic_add_fetch(&lines, *count, __ATOMIC_RELAXED);
        free(count);
        if (!(choice & 4)) tiered_stream_release(stream);
        __atomic_add_fetch(&opens, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) return fprintf(stderr, "usage: %s URL SECONDS\n", argv[0]), 64;
    url = argv[1];
    end = time(NULL) + atoi(argv[2]);
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, open_and_release, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("opens: %d opens and releases in eight threads, %d lines of logs\n", opens, lines);
    if (!lines) fail("no line", 0);
    return failures ? 1 : 0;
}
