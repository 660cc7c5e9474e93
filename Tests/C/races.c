/* Races of the library for C: several threads use one stream at once, in three orders; calls that wait are
 * stopped; many streams leave nothing behind.
 *
 *   races URL HANGING-URL RACES STREAMS [KIB]
 *
 * URL is of a film of at least 1 MiB, the origin never answers HANGING-URL. RACES is for each order; STREAMS may
 * leave KIB of memory behind (4096). RACES_LIMIT_MS: how long a call may take to return when it is stopped (200).
 *
 * Built with -fsanitize=address,undefined, and run once more under valgrind: scripts/check-races.sh. Prints a
 * line for each part, and ends with 1 where something was not as it has to be. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tieredcache.h>
#include <time.h>
#include <unistd.h>

static const char *url, *hanging;
static tiered_cache *cache;
static int failures;

static void fail(const char *what, long long value) {
    fprintf(stderr, "races: FAILED: %s: %lld\n", what, value);
    __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
}

static int64_t milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void pause_us(long microseconds) {
    struct timespec time = {0, microseconds * 1000};
    nanosleep(&time, NULL);
}

static tiered_stream *new_stream(const char *of) {
    tiered_request request = {.size = sizeof request, .url = of};
    tiered_stream *stream = NULL;
    int status = tiered_stream_new(cache, &request, &stream);
    if (status != TIERED_OK) {
        fail("tiered_stream_new", status);
        exit(1);
    }
    return stream;
}

/* ---- Races ---- */

enum { READER, SEEKER, CANCELLER, RELEASER, THREADS };
typedef struct {
    tiered_stream *stream;
    pthread_barrier_t barrier;
    int order[THREADS]; /* how long each waits after the start: its place */
    unsigned seed;
} Race;
typedef struct {
    Race *race;
    int role;
} Runner;

/* Bytes, or the end of the race: cancelled, or the handle is gone. */
static void expect_outcome(const char *call, int64_t result) {
    if (result < 0 && result != TIERED_E_CANCELLED && result != TIERED_E_INVALID &&
        result != TIERED_E_INTERRUPTED && result != TIERED_E_AGAIN && result != TIERED_E_UNKNOWN)
        fail(call, result);
}

static void act(Race *race, int role) {
    tiered_stream *stream = race->stream;
    char bytes[4096], text[64];
    int64_t bounds[8];
    switch (role) {
    case READER:
        for (int i = 0; i < 4; i++) {
            expect_outcome("read", tiered_read(stream, bytes, sizeof bytes));
            expect_outcome("read_at", tiered_read_at(stream, 500000 + i, bytes, sizeof bytes));
            expect_outcome("try_read", tiered_try_read(stream, bytes, sizeof bytes));
        }
        break;
    case SEEKER:
        for (int i = 0; i < 4; i++) {
            expect_outcome("seek", tiered_seek(stream, 1000 * i, SEEK_SET));
            expect_outcome("size", tiered_size(stream));
            expect_outcome("stored", tiered_stream_stored(stream, bounds, 4));
            tiered_stream_error(stream, text, sizeof text);
            tiered_stream_http_status(stream);
            tiered_is_seekable(stream);
            if (i == 1) tiered_interrupt(stream);
            if (i == 2) tiered_resume(stream);
        }
        break;
    case CANCELLER:
        tiered_cancel(stream);
        break;
    case RELEASER:
        tiered_stream_release(stream);
        break;
    }
}

static void *run(void *argument) {
    Runner *runner = argument;
    Race *race = runner->race;
    pthread_barrier_wait(&race->barrier);
    unsigned wait = race->seed % 50 * race->order[runner->role];
    if (wait) pause_us(wait);
    act(race, runner->role);
    return NULL;
}

static void races(const char *name, const int order[THREADS], int count) {
    int64_t begin = milliseconds();
    for (int i = 0; i < count; i++) {
        Race race = {.stream = new_stream(i % 4 == 3 ? hanging : url), .seed = i * 2654435761u};
        memcpy(race.order, order, sizeof race.order);
        pthread_barrier_init(&race.barrier, NULL, THREADS);
        pthread_t threads[THREADS];
        Runner runners[THREADS];
        for (int t = 0; t < THREADS; t++) {
            runners[t] = (Runner){&race, t};
            pthread_create(&threads[t], NULL, run, &runners[t]);
        }
        for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
        pthread_barrier_destroy(&race.barrier);
    }
    printf("races: %d races, %s: %lld ms\n", count, name, (long long)(milliseconds() - begin));
}

/* ---- A call that waits ---- */

typedef struct {
    tiered_stream *stream;
    int64_t result;
    int is_waiting;
} Waiting;

static void *wait_for_bytes(void *argument) {
    Waiting *waiting = argument;
    char bytes[100];
    __atomic_store_n(&waiting->is_waiting, 1, __ATOMIC_RELEASE);
    waiting->result = tiered_read(waiting->stream, bytes, sizeof bytes);
    return NULL;
}

static void stop(const char *name, void (*with)(tiered_stream *), int expected, int limit) {
    Waiting waiting = {.stream = new_stream(hanging)};
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_bytes, &waiting);
    while (!__atomic_load_n(&waiting.is_waiting, __ATOMIC_ACQUIRE)) pause_us(100);
    pause_us(50000); /* it is in the call by now; else the call finds out at its beginning */
    int64_t begin = milliseconds();
    with(waiting.stream);
    pthread_join(thread, NULL);
    int64_t took = milliseconds() - begin;
    if (waiting.result != expected) fail(name, waiting.result);
    if (took > limit) fail("milliseconds until a call returned", took);
    tiered_stream_release(waiting.stream); /* the second time, where that was what stopped it */
    printf("races: %s ends a read after %lld ms\n", name, (long long)took);
}

static void cancel_before_open(void) {
    char byte;
    tiered_stream *stream = new_stream(hanging);
    tiered_cancel(stream);
    if (tiered_stream_prepare(stream) != TIERED_E_CANCELLED) fail("prepare after cancel", 0);
    if (tiered_read(stream, &byte, 1) != TIERED_E_CANCELLED) fail("read after cancel", 0);
    tiered_resume(stream);
    if (tiered_read(stream, &byte, 1) != TIERED_E_CANCELLED) fail("resume ends a cancel", 0);
    tiered_stream_release(stream);
    printf("races: cancel before the opening is for good\n");
}

static void release_the_cache_first(void) {
    char byte;
    tiered_cache *own = NULL;
    tiered_options options = {.size = sizeof options, .directory = ""};
    tiered_request request = {.size = sizeof request, .url = url};
    tiered_stream *stream = NULL;
    tiered_cache_open(&options, &own);
    tiered_stream_new(own, &request, &stream);
    tiered_cache_release(own);
    if (tiered_read(stream, &byte, 1) != 1) fail("a read after the release of the cache", 0);
    tiered_stream_release(stream);
    if (tiered_read(stream, &byte, 1) != TIERED_E_INVALID) fail("a read of a released stream", 0);
    if (tiered_stream_new(own, &request, &stream) != TIERED_E_INVALID) fail("a released cache", 0);
    printf("races: the cache may be released before its streams\n");
}

/* ---- Many streams ---- */

typedef struct {
    long kibibytes;
    int threads, descriptors;
} Usage;

static int entries(const char *path) {
    int count = 0;
    DIR *directory = opendir(path);
    while (directory && readdir(directory)) count++;
    if (directory) closedir(directory);
    return count - 2;
}

static Usage usage(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1) fail("/proc/self/statm", 0);
    if (file) fclose(file);
    return (Usage){pages * (sysconf(_SC_PAGESIZE) / 1024), entries("/proc/self/task"),
                   entries("/proc/self/fd")};
}

static void open_and_release(int count) {
    char byte;
    for (int i = 0; i < count; i++) {
        tiered_stream *stream = new_stream(url);
        if (i % 2 && tiered_read_at(stream, i % 1000000, &byte, 1) != 1) fail("read_at", i);
        if (i % 4 == 3) tiered_stream_fd(stream);
        tiered_stream_release(stream);
    }
}

/* Under the address sanitizer memory that was freed stays for a while, so that only a large growth counts. */
static void many_streams(int count, long kibibytes) {
    open_and_release(count / 2); /* pools and caches fill */
    Usage before = usage();
    open_and_release(count);
    Usage after = usage();
    for (int i = 0; i < 50 && after.descriptors > before.descriptors; i++) {
        pause_us(100000); /* what a task holds at its end */
        after = usage();
    }
    printf("races: %d streams opened and released: %+ld KiB, %+d threads, %+d descriptors\n", count,
           after.kibibytes - before.kibibytes, after.threads - before.threads,
           after.descriptors - before.descriptors);
    if (after.kibibytes - before.kibibytes > kibibytes) fail("KiB more", after.kibibytes - before.kibibytes);
    if (after.threads > before.threads + 4) fail("threads more", after.threads - before.threads);
    if (after.descriptors > before.descriptors) fail("descriptors more", after.descriptors - before.descriptors);
}

/* ---- Signals ---- */

static void keep(int number) { (void)number; }

static void signals_are_untouched(const sigset_t *mask) {
    struct sigaction action;
    sigset_t now;
    sigaction(SIGPIPE, NULL, &action);
    if (action.sa_handler != SIG_DFL) fail("the disposition of SIGPIPE", 0);
    sigaction(SIGSEGV, NULL, &action);
    if (action.sa_handler != keep) fail("the handler of SIGSEGV", 0);
    sigaction(SIGUSR1, NULL, &action);
    if (action.sa_handler != keep) fail("the handler of SIGUSR1", 0);
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    for (int i = 1; i < 32; i++)
        if (sigismember(mask, i) != sigismember(&now, i)) fail("the mask of the thread", i);
    printf("races: signals are as before\n");
}

int main(int argc, char **argv) {
    if (argc < 5) return fprintf(stderr, "usage: %s URL HANGING-URL RACES STREAMS [KIB]\n", argv[0]), 64;
    url = argv[1];
    hanging = argv[2];
    int count = atoi(argv[3]), streams = atoi(argv[4]);
    long kibibytes = argc > 5 ? atol(argv[5]) : 4096;
    int limit = getenv("RACES_LIMIT_MS") ? atoi(getenv("RACES_LIMIT_MS")) : 200;
    signal(SIGSEGV, keep);
    signal(SIGUSR1, keep);
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);

    int status = tiered_cache_open(NULL, &cache);
    if (status != TIERED_OK) return fail("tiered_cache_open", status), 1;
    if (tiered_storage_status(cache, NULL, 0) != TIERED_OK) fail("tiered_storage_status", 0);
    races("cancel before release", (int[]){0, 0, 1, 2}, count);
    races("release before cancel", (int[]){0, 1, 2, 1}, count);
    races("all at once", (int[]){0, 0, 0, 0}, count);
    stop("cancel", tiered_cancel, TIERED_E_CANCELLED, limit);
    stop("interrupt", tiered_interrupt, TIERED_E_INTERRUPTED, limit);
    stop("release", tiered_stream_release, TIERED_E_CANCELLED, limit);
    cancel_before_open();
    release_the_cache_first();
    many_streams(streams, kibibytes);
    signals_are_untouched(&mask);
    tiered_cache_release(cache);
    if (failures) fprintf(stderr, "races: %d failures\n", failures);
    return failures ? 1 : 0;
}
