/* What a program may get wrong in calling the library for C: each gives a status, and never a crash.
 *
 *   badinput URL         URL is of a film of at least 1 MiB, at an origin that answers
 *
 * Built with -fsanitize=address,undefined, and run once more under valgrind: scripts/check-races.sh. Prints
 * each call that gave something else than expected, and ends with 1 then. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tieredcache.h>

static int calls, failures;

#define GIVES(expected, call) gives((expected), (call), #call, __LINE__)
#define INVALID(call) GIVES(TIERED_E_INVALID, call)
static void gives(int64_t expected, int64_t result, const char *call, int line) {
    calls++;
    if (result == expected) return;
    failures++;
    fprintf(stderr, "badinput: FAILED: line %d: %s gives %lld, not %lld\n", line, call, (long long)result,
            (long long)expected);
}

static void no_handle(tiered_cache *cache, tiered_stream *stream, tiered_job *job, const char *url) {
    char text[16];
    int64_t bounds[2];
    tiered_statistics statistics = {.size = sizeof statistics};
    tiered_request request = {.size = sizeof request, .url = url};
    tiered_job_info info = {.size = sizeof info};
    tiered_stream *made = (tiered_stream *)text;
    tiered_job *started = NULL;
    INVALID(tiered_storage_status(cache, text, sizeof text));
    INVALID(tiered_cache_statistics(cache, &statistics));
    INVALID(tiered_stream_new(cache, &request, &made));
    INVALID(tiered_prefetch(cache, &url, 1, 0));
    INVALID(tiered_prefetch_reserve(cache, 0));
    INVALID(tiered_pin(cache, url, NULL, true));
    INVALID(tiered_remove(cache, url, NULL));
    INVALID(tiered_file_path(cache, url, NULL, text, sizeof text));
    INVALID(tiered_job_start(cache, &request, &started));
    INVALID(tiered_job_find(cache, "0123456789abcdef", &started));
    INVALID(tiered_job_list(cache, &started, 1));
    INVALID(tiered_job_resume_all(cache));
    INVALID(tiered_host_rules(cache, NULL, 0));
    INVALID(tiered_proxy_start(cache));
    INVALID(tiered_proxy_url(cache, url, text, sizeof text));
    GIVES(0, (intptr_t)tiered_cache_retain(cache));
    tiered_cache_release(cache);

    INVALID(tiered_stream_prepare(stream));
    INVALID(tiered_read(stream, text, sizeof text));
    INVALID(tiered_read_at(stream, 0, text, sizeof text));
    INVALID(tiered_read_full_at(stream, 0, text, sizeof text));
    INVALID(tiered_try_read(stream, text, sizeof text));
    INVALID(tiered_stream_fd(stream));
    INVALID(tiered_seek(stream, 0, SEEK_SET));
    INVALID(tiered_size(stream));
    GIVES(0, tiered_is_seekable(stream));
    INVALID(tiered_stream_error(stream, text, sizeof text));
    INVALID(tiered_stream_http_status(stream));
    INVALID(tiered_stream_field(stream, "ETag", text, sizeof text));
    INVALID(tiered_stream_stored(stream, bounds, 1));
    GIVES(0, (intptr_t)tiered_stream_retain(stream));
    tiered_cancel(stream);
    tiered_interrupt(stream);
    tiered_resume(stream);
    tiered_stream_release(stream);

    INVALID(tiered_job_identifier(job, text, sizeof text));
    INVALID(tiered_job_url(job, text, sizeof text));
    INVALID(tiered_job_status(job, &info));
    INVALID(tiered_job_error(job, text, sizeof text));
    INVALID(tiered_job_pause(job));
    INVALID(tiered_job_resume(job));
    INVALID(tiered_job_cancel(job));
    INVALID(tiered_job_remove(job));
    GIVES(0, (intptr_t)tiered_job_retain(job));
    tiered_job_release(job);
}

static int request_gives(tiered_cache *cache, tiered_request request) {
    tiered_stream *stream = NULL;
    int status = tiered_stream_new(cache, &request, &stream);
    if (status != TIERED_OK && stream) return failures++, 1;
    tiered_stream_release(stream);
    return status;
}

static void requests(tiered_cache *cache, const char *url) {
#define REQUEST(...) request_gives(cache, (tiered_request){.size = sizeof(tiered_request), .url = url, __VA_ARGS__})
    static const char *const bad[] = {"", "film", "/film", "ftp://host/film", "http://", "http:///film",
                                      "http://a b/", "file:///etc/passwd", "http://host:99999/", "\xff\xfe",
                                      "http://host/\x01"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        url = bad[i];
        gives(TIERED_E_INVALID, REQUEST(.flags = 0), bad[i], __LINE__);
    }
    url = NULL;
    INVALID(REQUEST(.flags = 0));
    size_t length = 1 << 20; /* a megabyte of URL: either is right, a crash is not */
    char *huge = malloc(length);
    memset(huge, 'a', length);
    memcpy(huge, "http://127.0.0.1:1/", 19);
    huge[length - 1] = 0;
    url = huge;
    int status = REQUEST(.flags = 0);
    if (status != TIERED_OK) INVALID(status);
    free(huge);

    url = "http://127.0.0.1:1/";
    GIVES(TIERED_OK, REQUEST(.flags = 0));
    for (int bit = 5; bit < 32; bit++) INVALID(REQUEST(.flags = (uint32_t)1 << bit));
    INVALID(REQUEST(.flags = TIERED_CACHE_ONLY | TIERED_RELOAD));
    INVALID(REQUEST(.deadline_ms = -2));
    INVALID(REQUEST(.deadline_ms = INT32_MIN));
    INVALID(REQUEST(.read_ahead = -2));
    INVALID(REQUEST(.read_ahead = INT64_MIN));
    GIVES(TIERED_OK, REQUEST(.read_ahead = INT64_MAX));
    GIVES(TIERED_OK, REQUEST(.deadline_ms = INT32_MAX));
    INVALID(REQUEST(.fields = (const char *const[]){"no colon", NULL}));
    INVALID(REQUEST(.fields = (const char *const[]){"Name: a\r\nOther: b", NULL}));
    INVALID(REQUEST(.fields = (const char *const[]){": value", NULL}));
    GIVES(TIERED_OK, REQUEST(.fields = (const char *const[]){"Name: value", NULL}));
}

/* Structs of other versions, in memory that ends where they end. */
static void sizes(tiered_cache *cache, const char *url) {
    tiered_request request = {.url = url, .read_ahead = 1};
    for (size_t size = 0; size <= 4200; size += size < 256 ? 1 : 61) {
        char *other = calloc(1, size < sizeof size ? sizeof size : size);
        memcpy(other, &request, size < sizeof request ? size : sizeof request);
        memcpy(other, &size, sizeof size);
        tiered_stream *stream = NULL;
        int status = tiered_stream_new(cache, (const tiered_request *)(void *)other, &stream);
        int is_size = size >= sizeof size && size <= 4096 && size % sizeof size == 0;
        int has_url = is_size && size >= offsetof(tiered_request, url) + sizeof url;
        gives(has_url ? TIERED_OK : TIERED_E_INVALID, status, "tiered_stream_new of some size", (int)size);
        tiered_stream_release(stream);
        if (is_size && size > sizeof request) { /* a field that this version does not know, and not 0 */
            other[size - 1] = 1;
            INVALID(tiered_stream_new(cache, (const tiered_request *)(void *)other, &stream));
        }
        free(other);

        other = malloc(size < sizeof size ? sizeof size : size);
        memset(other, 0x55, size < sizeof size ? sizeof size : size);
        memcpy(other, &size, sizeof size);
        status = tiered_cache_statistics(cache, (tiered_statistics *)(void *)other);
        gives(is_size ? TIERED_OK : TIERED_E_INVALID, status,
              "tiered_cache_statistics of some size", (int)size);
        if (status == TIERED_OK && size > sizeof(tiered_statistics)) GIVES(0, other[size - 1]);
        free(other);
    }
    request.size = SIZE_MAX;
    tiered_stream *stream;
    INVALID(tiered_stream_new(cache, &request, &stream));
}

static void reads(tiered_cache *cache, const char *url) {
    char bytes[16], text[8];
    int64_t bounds[2];
    tiered_request request = {.size = sizeof request, .url = url};
    tiered_stream *stream;
    GIVES(TIERED_OK, tiered_stream_new(cache, &request, &stream));
    GIVES(TIERED_E_UNKNOWN, tiered_size(stream));
    GIVES(TIERED_E_UNKNOWN, tiered_seek(stream, 0, SEEK_END));
    GIVES(TIERED_E_UNKNOWN, tiered_seek(stream, 0, TIERED_SEEK_SIZE));
    GIVES(TIERED_E_UNKNOWN, tiered_stream_http_status(stream));
    GIVES(TIERED_OK, tiered_stream_prepare(stream));
    int64_t size = tiered_size(stream);
    GIVES(size, tiered_seek(stream, 0, TIERED_SEEK_SIZE));
    static const size_t counts[] = {0, (size_t)PTRDIFF_MAX + 1, SIZE_MAX};
    for (int i = 0; i < 3; i++) {
        INVALID(tiered_read(stream, bytes, counts[i]));
        INVALID(tiered_read_at(stream, 0, bytes, counts[i]));
        INVALID(tiered_read_full_at(stream, 0, bytes, counts[i]));
        INVALID(tiered_try_read(stream, bytes, counts[i]));
    }
    INVALID(tiered_read(stream, NULL, 16));
    INVALID(tiered_read_at(stream, 0, NULL, 16));
    INVALID(tiered_read_full_at(stream, 0, NULL, 16));
    INVALID(tiered_try_read(stream, NULL, 16));
    INVALID(tiered_read_at(stream, -1, bytes, 16));
    INVALID(tiered_read_at(stream, INT64_MIN, bytes, 16));
    INVALID(tiered_read_full_at(stream, -1, bytes, 16));
    GIVES(0, tiered_read_at(stream, size, bytes, 16));
    GIVES(16, tiered_read_full_at(stream, size - 16, bytes, 16));
    GIVES(1, tiered_read_full_at(stream, size - 1, bytes, 16));
    INVALID(tiered_seek(stream, -1, SEEK_SET));
    INVALID(tiered_seek(stream, INT64_MIN, SEEK_CUR));
    INVALID(tiered_seek(stream, INT64_MIN, SEEK_END));
    INVALID(tiered_seek(stream, INT64_MAX, SEEK_END));
    INVALID(tiered_seek(stream, 0, 3));
    INVALID(tiered_seek(stream, 0, -1));
    INVALID(tiered_seek(stream, 0, INT_MAX));
    INVALID(tiered_seek(stream, 0, INT_MIN));
    GIVES(5, tiered_seek(stream, 5, SEEK_SET | 0x20000));
    /* Either is right beyond the end, a crash is not. */
    int64_t beyond = tiered_seek(stream, INT64_MAX, SEEK_SET);
    if (beyond != INT64_MAX) INVALID(beyond);
    int64_t n = tiered_read(stream, bytes, 16);
    if (n > 0 && beyond == INT64_MAX) GIVES(0, n);
    n = tiered_read_at(stream, INT64_MAX, bytes, 16);
    if (n != 0) INVALID(n);
    INVALID(tiered_stream_error(stream, NULL, 1));
    INVALID(tiered_stream_field(stream, NULL, text, sizeof text));
    INVALID(tiered_stream_field(stream, "ETag", NULL, 1));
    GIVES(TIERED_E_NOT_FOUND, tiered_stream_field(stream, "No-Such-Field", text, sizeof text));
    GIVES(9, tiered_stream_field(stream, "Content-Type", text, sizeof text)); /* video/mp4, cut off */
    GIVES(0, strcmp(text, "video/m"));
    INVALID(tiered_stream_stored(stream, NULL, 1));
    INVALID(tiered_stream_stored(stream, bounds, SIZE_MAX));
    tiered_stream_release(stream);
    no_handle(NULL, stream, NULL, url); /* a handle that was released */
}

static void bad_rules(tiered_cache *cache) {
    static const char *const bad[] = {"", "exclude", "Exclude=a", "header=a", "header=a X", "header=a : 1",
                                      "header=a X Y: 1", "header=a X: a\nY: b", "header=a Range: bytes=0-",
                                      "key=a", "key=a ,", "off=a", "\xff\xfe", "exclude=\xc3"};
    const char *rules[] = {"exclude=h.invalid", "key=* sign", NULL};
    tiered_stream *stream = NULL;
    tiered_request request = {.size = sizeof request, .url = "http://www.h.invalid/film"};
    INVALID(tiered_host_rules(cache, NULL, 1));
    INVALID(tiered_host_rules(cache, rules, 3));
    INVALID(tiered_host_rules(cache, rules, SIZE_MAX));
    GIVES(TIERED_OK, tiered_stream_new(cache, &request, &stream));
    tiered_stream_release(stream);
    GIVES(2, tiered_host_rules(cache, rules, 2));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rules[1] = bad[i];
        GIVES(1, tiered_host_rules(cache, rules, 2));
    }
    GIVES(TIERED_E_EXCLUDED, tiered_stream_new(cache, &request, &stream));
    GIVES(0, (intptr_t)stream);
    GIVES(0, tiered_host_rules(cache, NULL, 0));
}

static void others(tiered_cache *cache, const char *url) {
    char text[16];
    const char *urls[] = {url, NULL};
    tiered_job *job = NULL;
    INVALID(tiered_cache_open(NULL, NULL));
    INVALID(tiered_stream_new(cache, NULL, NULL));
    INVALID(tiered_job_start(cache, NULL, &job));
    INVALID(tiered_prefetch(cache, NULL, 1, 0));
    INVALID(tiered_prefetch(cache, urls, 2, 0));
    INVALID(tiered_prefetch(cache, urls, 1, -1));
    INVALID(tiered_prefetch(cache, urls, SIZE_MAX, 0));
    GIVES(TIERED_OK, tiered_prefetch(cache, NULL, 0, 0));
    INVALID(tiered_prefetch_reserve(cache, -2));
    INVALID(tiered_pin(cache, NULL, NULL, true));
    GIVES(TIERED_E_NOT_FOUND, tiered_pin(cache, "http://127.0.0.1:1/none", NULL, true));
    GIVES(TIERED_E_NOT_FOUND, tiered_remove(cache, "http://127.0.0.1:1/none", NULL));
    GIVES(TIERED_E_NOT_CACHED, tiered_file_path(cache, "http://127.0.0.1:1/none", NULL, text, sizeof text));
    GIVES(TIERED_E_NOT_FOUND, tiered_job_find(cache, "0123456789abcdef", &job));
    int status = tiered_job_find(cache, "../../../etc/passwd", &job);
    if (status != TIERED_E_NOT_FOUND) INVALID(status);
    INVALID(tiered_job_find(cache, NULL, &job));
    INVALID(tiered_job_find(cache, "0123456789abcdef", NULL));
    GIVES(0, tiered_job_list(cache, NULL, 0));
    INVALID(tiered_job_list(cache, NULL, 1));
    GIVES(TIERED_E_UNKNOWN, tiered_proxy_url(cache, url, text, sizeof text));
    bad_rules(cache);
    GIVES(1, tiered_status_text(INT_MIN) != NULL && tiered_status_text(17) != NULL);
    tiered_options options = {.size = sizeof options, .directory = "", .memory_limit = -1};
    tiered_cache *other = NULL;
    INVALID(tiered_cache_open(&options, &other));
    options = (tiered_options){.size = sizeof options, .directory = "", .maximum_downloads = -1};
    INVALID(tiered_cache_open(&options, &other));
    options = (tiered_options){.size = sizeof options, .directory = "", .log_level = 6};
    INVALID(tiered_cache_open(&options, &other));
    options = (tiered_options){.size = 0};
    INVALID(tiered_cache_open(&options, &other));
}

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "usage: %s URL\n", argv[0]), 64;
    tiered_cache *cache = NULL;
    GIVES(TIERED_OK, tiered_cache_open(NULL, &cache));
    no_handle(NULL, NULL, NULL, argv[1]);
    /* Handles are numbers that are looked up, so that no address is followed. */
    no_handle((tiered_cache *)8, (tiered_stream *)8, (tiered_job *)8, argv[1]);
    no_handle((tiered_cache *)-1, (tiered_stream *)-1, (tiered_job *)-1, argv[1]);
    requests(cache, argv[1]);
    sizes(cache, argv[1]);
    reads(cache, argv[1]);
    others(cache, argv[1]);
    tiered_cache_release(cache);
    no_handle(cache, NULL, NULL, argv[1]);
    printf("badinput: %d calls, %d gave something else than they promise\n", calls, failures);
    return failures ? 1 : 0;
}
