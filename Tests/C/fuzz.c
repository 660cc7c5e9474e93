/* Structs and arguments that chance has made: each call gives something that the header names, and never crashes.
 *
 *   fuzz URL ROUNDS [SEED]
 *
 * URL is of a film of at least 1 MiB. Structs have any size and content, in memory that ends where they end; their
 * pointers are NULL or of texts. Prints the seed first, with which it does the same again. Run with
 * -fsanitize=address,undefined by scripts/check-races.sh. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tieredcache.h>
#include <time.h>

static uint64_t state;
static int failures;

static uint64_t word(void) {
    state += 0x9e3779b97f4a7c15u;
    uint64_t value = state;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

/* What programs get wrong: 0, -1, the ends, and small numbers. */
static int64_t number(void) {
    static const int64_t ends[] = {0, 1, -1, 2, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 4096, 1 << 20};
    uint64_t choice = word();
    switch (choice % 4) {
    case 0: return ends[word() % (sizeof ends / sizeof *ends)];
    case 1: return (int64_t)word();
    case 2: return (int64_t)(word() % 64);
    default: return (int64_t)(word() % 2000000);
    }
}

static const char *text(const char *url) {
    static const char *const texts[] = {NULL, "", "http://127.0.0.1:1/none", "http://", "\xff\xfe", "key",
                                        "https://[::1", "http://a/%zz", "0123456789abcdef", "X-Field"};
    uint64_t choice = word() % 16;
    return choice < sizeof texts / sizeof *texts ? texts[choice] : url;
}

static void expect(const char *call, int64_t result) {
    if (result >= 0 || result >= TIERED_E_EXCLUDED) return;
    fprintf(stderr, "fuzz: FAILED: %s gives %lld\n", call, (long long)result);
    failures++;
}

/* A struct in memory of its size, or of its first word. */
static void *structure(const void *content, size_t known) {
    size_t size = word() % 8 ? known : word() % 4 ? word() % 600 : (size_t)number();
    if (word() % 4 == 0) size &= ~(size_t)7;
    size_t room = size > 5000 || size < sizeof size ? sizeof size : size;
    unsigned char *memory = calloc(1, room);
    memcpy(memory, content, room < known ? room : known);
    if (room > known && word() % 2) memory[known + word() % (room - known)] = (unsigned char)word();
    memcpy(memory, &size, sizeof size);
    return memory;
}

static void *request(const char *url) {
    static const char *const fields[][3] = {{NULL}, {"Name: value", NULL}, {"no colon", NULL}, {"A: 1", "B: 2", NULL}};
    uint64_t choice = word() % 6;
    tiered_request made = {.url = text(url), .key = word() % 2 ? NULL : text(url),
                           .fields = choice < 4 ? fields[choice] : NULL,
                           .flags = word() % 2 ? (uint32_t)word() % 32 : (uint32_t)number(),
                           .deadline_ms = word() % 2 ? 50 : (int32_t)number(), .read_ahead = number()};
    return structure(&made, sizeof made);
}

static void line(void *context, int level, const char *text) { (void)context, (void)level, (void)text; }

static void open_some(const char *url) {
    tiered_options made = {.directory = "", .memory_limit = number(), .disk_limit = number(),
                           .minimum_free_disk = number(), .maximum_downloads = (int32_t)number(),
                           .log_level = word() % 2 ? (int32_t)(word() % 6) : (int32_t)number(),
                           .log = word() % 2 ? line : NULL};
    tiered_cache *cache = NULL;
    void *options = structure(&made, sizeof made);
    /* One that ends before the directory would open that of the user. */
    size_t size;
    memcpy(&size, options, sizeof size);
    if (size >= offsetof(tiered_options, memory_limit) || size < sizeof size) {
        int status = tiered_cache_open(options, &cache);
        expect("tiered_cache_open", status);
        if ((status == TIERED_OK) != (cache != NULL)) expect("a cache without success, or the other way", -99);
    }
    tiered_stream *stream = NULL;
    void *wanted = request(url);
    if (cache && tiered_stream_new(cache, wanted, &stream) == TIERED_OK) tiered_stream_release(stream);
    tiered_cache_release(cache);
    free(wanted);
    free(options);
}

static void *memory(size_t size) {
    unsigned char *bytes = malloc(size ? size : 1);
    memset(bytes, 0x55, size ? size : 1);
    return bytes;
}

static void fill_some(tiered_cache *cache, tiered_job *job) {
    tiered_statistics statistics = {0};
    tiered_job_info info = {0};
    void *first = structure(&statistics, sizeof statistics), *second = structure(&info, sizeof info);
    expect("tiered_cache_statistics", tiered_cache_statistics(cache, first));
    expect("tiered_job_status", tiered_job_status(job, second));
    free(first);
    free(second);
}

static void call_some(tiered_cache *cache, tiered_stream *stream, tiered_job *job, const char *url) {
    size_t room = word() % 5000;
    size_t count = word() % 8 ? room : (size_t)PTRDIFF_MAX + 1 + word() / 2;
    size_t text_count = word() % 8 ? room : SIZE_MAX;
    char *buffer = word() % 16 ? memory(room) : NULL;
    int64_t *bounds = memory(room / 16 * 16);
    const char *urls[] = {text(url), text(url), text(url)};
    tiered_stream *made = NULL;
    tiered_job *found = NULL;
    void *wanted = request(url);
    switch (word() % 25) {
    case 0: expect("read", tiered_read(stream, buffer, count)); break;
    case 1: expect("read_at", tiered_read_at(stream, number(), buffer, count)); break;
    case 2: expect("read_full_at", tiered_read_full_at(stream, number(), buffer, count)); break;
    case 3: expect("try_read", tiered_try_read(stream, buffer, count)); break;
    case 4: expect("seek", tiered_seek(stream, number(), (int)number())); break;
    case 5: expect("seek", tiered_seek(stream, number(), (int)(word() % 3))); break;
    case 6: expect("error", tiered_stream_error(stream, buffer, text_count)); break;
    case 7: expect("field", tiered_stream_field(stream, text("ETag"), buffer, text_count)); break;
    case 8: expect("stored", tiered_stream_stored(stream, bounds, word() % 8 ? room / 16 : SIZE_MAX)); break;
    case 9: expect("prefetch", tiered_prefetch(cache, urls, word() % 8 ? word() % 4 : SIZE_MAX, number())); break;
    case 10: expect("reserve", tiered_prefetch_reserve(cache, number())); break;
    case 11: expect("pin", tiered_pin(cache, text(url), text(url), word() % 2)); break;
    case 12: expect("path", tiered_file_path(cache, text(url), text(url), buffer, text_count)); break;
    case 13: expect("proxy_url", tiered_proxy_url(cache, text(url), buffer, text_count)); break;
    case 14: expect("job_find", tiered_job_find(cache, text(url), &found)); break;
    case 15: expect("identifier", tiered_job_identifier(job, buffer, text_count)); break;
    case 16: expect("job_url", tiered_job_url(job, buffer, text_count)); break;
    case 17: expect("job_error", tiered_job_error(job, buffer, text_count)); break;
    case 18: expect("stream_new", tiered_stream_new(cache, wanted, &made)); break;
    case 19: fill_some(cache, job); break;
    case 20: open_some(url); break;
    case 21: expect("storage_status", tiered_storage_status(cache, buffer, text_count)); break;
    case 22: {
        static const char *const lines[] = {"exclude=127.0.0.2", "exclude=", "header=* X-A: 1", "key=* sign", "key="};
        const char *rules[] = {lines[word() % 5], word() % 2 ? lines[word() % 5] : text(url), lines[word() % 5]};
        expect("host_rules", tiered_host_rules(cache, rules, word() % 8 ? word() % 4 : SIZE_MAX));
        break;
    }
    case 23: /* numbers that are no handles */
        expect("read", tiered_read((tiered_stream *)(uintptr_t)word(), buffer, count));
        tiered_cache_release((tiered_cache *)(uintptr_t)word());
        break;
    default: expect("remove", tiered_remove(cache, "http://127.0.0.1:1/none", text(url))); break;
    }
    tiered_stream_release(made);
    tiered_job_release(found);
    free(wanted);
    free(bounds);
    free(buffer);
}

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: %s URL ROUNDS [SEED]\n", argv[0]), 64;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : (uint64_t)time(NULL) * 1000003u;
    printf("fuzz: seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    state = seed;
    tiered_cache *cache = NULL;
    tiered_stream *stream = NULL;
    tiered_job *job = NULL;
    tiered_request request = {.size = sizeof request, .url = argv[1], .deadline_ms = 2000};
    expect("tiered_cache_open", tiered_cache_open(NULL, &cache));
    expect("tiered_stream_new", tiered_stream_new(cache, &request, &stream));
    expect("tiered_job_start", tiered_job_start(cache, &request, &job));
    for (long round = 0; round < atol(argv[2]); round++) call_some(cache, stream, job, argv[1]);
    char byte;
    if (tiered_read_at(stream, 0, &byte, 1) != 1) expect("a read after all that", -99);
    tiered_job_release(job);
    tiered_stream_release(stream);
    tiered_cache_release(cache);
    /* On a busy machine it may still be closing; an open waits for that. What it holds until then is no leak. */
    expect("tiered_cache_open", tiered_cache_open(NULL, &cache));
    tiered_cache_release(cache);
    printf("fuzz: %s calls, %d gave what the header does not name\n", argv[2], failures);
    return failures ? 1 : 0;
}
