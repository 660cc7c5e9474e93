/* What the programs of processes share, limits.c and forks.c: each case is a process of its own, forked before any cache
 * is open, so that the next one finds nothing of it but the directory. */
#ifndef CASES_H
#define CASES_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tieredcache.h>
#include <unistd.h>

static const char *program; /* its name, for messages */
static const char *url, *file;
static char work[] = "/tmp/tieredcache-cases-XXXXXX";
static int failures;

static inline void fail(const char *what, long long value) {
    fprintf(stderr, "%s: FAILED: %s: %lld\n", program, what, value);
    failures++;
}
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) fail(#condition, __LINE__);                                                                  \
    } while (0)

/* A process that ends with what body gives; one that was ended by a signal, or hangs, is a failure. */
static inline int run(const char *name, int (*body)(long), long value) {
    fflush(NULL);
    pid_t process = fork();
    if (process == 0) {
        failures = 0;
        alarm(60); /* no handler: a call that hangs ends it */
        int result = body(value);
        fflush(NULL);
        _exit(failures ? 99 : result);
    }
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {}
    if (WIFSIGNALED(status)) fprintf(stderr, "%s: %s %ld: signal %d\n", program, name, value, WTERMSIG(status));
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 99) return fail(name, value), -1;
    return WEXITSTATUS(status);
}

static inline int open_at(const char *directory, tiered_cache **cache) {
    tiered_options options = {.size = sizeof options, .directory = directory, .minimum_free_disk = -1};
    *cache = NULL;
    return tiered_cache_open(&options, cache);
}

static inline tiered_stream *new_stream(tiered_cache *cache, int deadline) {
    tiered_request request = {.size = sizeof request, .url = url, .deadline_ms = deadline};
    tiered_stream *stream = NULL;
    CHECK(tiered_stream_new(cache, &request, &stream) == TIERED_OK);
    return stream;
}

/* Whether the film comes as it is in FILE. */
static inline int plays(tiered_cache *cache) {
    static char got[65536], wanted[65536];
    tiered_stream *stream = new_stream(cache, 10000);
    FILE *plain = fopen(file, "rb");
    int64_t n, place = 0;
    int is_same = plain != NULL;
    while (is_same && (n = tiered_read_full_at(stream, place, got, sizeof got)) > 0) {
        is_same = fread(wanted, 1, (size_t)n, plain) == (size_t)n && memcmp(got, wanted, (size_t)n) == 0;
        place += n;
    }
    if (is_same && (n != 0 || fgetc(plain) != EOF)) is_same = 0;
    if (plain) fclose(plain);
    if (!is_same) fprintf(stderr, "%s: the film stops at %lld with %d\n", program, (long long)place,
                          tiered_stream_error(stream, NULL, 0));
    tiered_stream_release(stream);
    return is_same;
}

/* All that opens something: 0 where the film plays, 1 where a status says why not. */
static inline int use(const char *directory) {
    char byte, text[256];
    tiered_cache *cache, *other;
    tiered_job *job = NULL;
    int status = open_at(directory, &cache);
    if (status != TIERED_OK) {
        CHECK(status == TIERED_E_STORAGE);
        return 1;
    }
    status = tiered_storage_status(cache, text, sizeof text);
    CHECK(status == TIERED_OK || status == TIERED_E_STORAGE);
    tiered_stream *stream = new_stream(cache, 300);
    int64_t n = tiered_read(stream, &byte, 1);
    CHECK(n == 1 || n == TIERED_E_STORAGE || n == TIERED_E_NETWORK || n == TIERED_E_TIMEOUT);
    int descriptor = tiered_stream_fd(stream);
    CHECK(descriptor >= 0 || descriptor == TIERED_E_STORAGE);
    tiered_try_read(stream, &byte, 1);
    tiered_request request = {.size = sizeof request, .url = url, .deadline_ms = 300};
    if (tiered_job_start(cache, &request, &job) == TIERED_OK) tiered_job_remove(job);
    tiered_proxy_start(cache);
    if (open_at("", &other) == TIERED_OK) tiered_cache_release(other);
    tiered_job_release(job);
    tiered_stream_release(stream);
    tiered_cache_release(cache);
    return n == 1 ? 0 : 1;
}

/* Takes the arguments URL and FILE, and makes the directory of the caches, which any user may write to. */
static inline void begin(const char *name, char **argv) {
    (program = name, url = argv[1], file = argv[2]);
    umask(0);
    if (!mkdtemp(work) || chmod(work, 0777)) {
        fail("mkdtemp", errno);
        exit(1);
    }
}

/* Removes it; gives the status of the program. */
static inline int end(void) {
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", work);
    if (system(command) != 0) fail("rm", 0);
    if (failures) fprintf(stderr, "%s: %d failures\n", program, failures);
    return failures ? 1 : 0;
}

#endif
