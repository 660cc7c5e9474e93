/* A host of the library: smoke PORT DIRECTORY. Prints what is wrong, and exits with 1 then. */
#define _GNU_SOURCE
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tieredcache.h>

#define LENGTH (1 << 20)

static int wrong;

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "smoke.c:%d: not so: %s\n", __LINE__, #condition); \
            wrong = 1;                                                      \
        }                                                                   \
    } while (0)

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void handle(int number) { (void)number; }

static tiered_stream *open_stream(tiered_cache *cache, const char *url, int32_t deadline) {
    tiered_request request = {.size = sizeof(request), .url = url, .deadline_ms = deadline};
    tiered_stream *stream = NULL;
    CHECK(tiered_stream_new(cache, &request, &stream) == TIERED_OK);
    return stream;
}

static int is_film(const unsigned char *bytes, int64_t offset, int64_t count) {
    for (int64_t index = 0; index < count; index++)
        if (bytes[index] != (offset + index) % 251) return 0;
    return 1;
}

static void read_film(tiered_cache *cache, const char *url) {
    static unsigned char bytes[LENGTH + 1];
    tiered_stream *stream = open_stream(cache, url, 0);
    char type[32];
    int64_t bounds[2] = {-1, -1};
    CHECK(tiered_read_full_at(stream, 0, bytes, sizeof(bytes)) == LENGTH);
    CHECK(is_film(bytes, 0, LENGTH));
    CHECK(tiered_size(stream) == LENGTH);
    CHECK(tiered_seek(stream, -9, SEEK_END) == LENGTH - 9);
    CHECK(tiered_read(stream, bytes, 100) == 9 && is_film(bytes, LENGTH - 9, 9));
    CHECK(tiered_read(stream, bytes, 100) == 0);
    CHECK(tiered_stream_field(stream, "content-type", type, sizeof(type)) == 9);
    CHECK(strcmp(type, "video/mp4") == 0);
    CHECK(tiered_stream_stored(stream, bounds, 1) == 1 && bounds[0] == 0 && bounds[1] == LENGTH);
    CHECK(tiered_stream_error(stream, NULL, 0) == TIERED_OK);
    tiered_stream_release(stream);
    CHECK(tiered_read(stream, bytes, 1) == TIERED_E_INVALID);
}

static void poll_film(tiered_cache *cache, const char *url) {
    unsigned char bytes[70000];
    int64_t got, offset = 0;
    tiered_stream *stream = open_stream(cache, url, 0);
    struct pollfd entry = {.fd = tiered_stream_fd(stream), .events = POLLIN};
    while ((got = tiered_try_read(stream, bytes, sizeof(bytes))) != 0) {
        if (got == TIERED_E_AGAIN) {
            poll(&entry, 1, -1);
            continue;
        }
        CHECK(got > 0 && is_film(bytes, offset, got));
        if (got < 0) break;
        offset += got;
    }
    CHECK(offset == LENGTH);
    tiered_stream_release(stream);
}

struct stop {
    tiered_stream *stream;
    void (*function)(tiered_stream *);
    double at;
};

static void *stop_later(void *argument) {
    struct stop *stop = argument;
    usleep(100000);
    stop->at = now();
    stop->function(stop->stream);
    return NULL;
}

/* How long a call waits for a silent origin after it was stopped. */
static void stop_reads(tiered_cache *cache, const char *url) {
    void (*functions[])(tiered_stream *) = {tiered_cancel, tiered_interrupt, tiered_stream_release};
    for (int index = 0; index < 3; index++) {
        struct stop stop = {open_stream(cache, url, -1), functions[index], 0};
        pthread_t thread;
        unsigned char byte;
        int64_t expected = index == 1 ? TIERED_E_INTERRUPTED : TIERED_E_CANCELLED;
        pthread_create(&thread, NULL, stop_later, &stop);
        CHECK(tiered_read(stop.stream, &byte, 1) == expected);
        double late = now() - stop.at;
        printf("FIGURE a stopped call returns after %.1f ms\n", late * 1e3);
        CHECK(late < 0.2);
        pthread_join(thread, NULL);
        tiered_stream_release(stop.stream);
    }
}

/* What the host does with each signal, and which ones its thread blocks. */
struct signals {
    struct sigaction actions[32];
    sigset_t blocked;
};

static struct signals signals_now(void) {
    struct signals now;
    memset(&now, 0, sizeof(now));
    for (int number = 1; number < 32; number++) (void)sigaction(number, NULL, &now.actions[number]);
    pthread_sigmask(SIG_BLOCK, NULL, &now.blocked);
    return now;
}

static void check_signals(const struct signals *before) {
    struct signals after = signals_now();
    for (int number = 1; number < 32; number++) {
        const struct sigaction *one = &before->actions[number], *other = &after.actions[number];
        int is_same = one->sa_handler == other->sa_handler && one->sa_flags == other->sa_flags;
        for (int masked = 1; masked < 32; masked++)
            if (sigismember(&one->sa_mask, masked) != sigismember(&other->sa_mask, masked)) is_same = 0;
        if (sigismember(&before->blocked, number) != sigismember(&after.blocked, number)) is_same = 0;
        if (!is_same) fprintf(stderr, "smoke.c: the host's signal %d is not as it was\n", number), wrong = 1;
    }
}

static void check_threads(void) {
    DIR *threads = opendir("/proc/self/task");
    struct dirent *entry;
    int count = 0;
    while (threads && (entry = readdir(threads))) {
        char path[300], line[256], name[64] = "";
        unsigned long long blocked = 0;
        snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
        FILE *file = atoi(entry->d_name) == 0 || atoi(entry->d_name) == getpid() ? NULL : fopen(path, "r");
        if (!file) continue;
        while (fgets(line, sizeof(line), file)) {
            sscanf(line, "Name: %63[^\n]", name);
            sscanf(line, "SigBlk: %llx", &blocked);
        }
        fclose(file);
        count++;
        for (int number = 1; number < 32; number++) {
            if (number == SIGKILL || number == SIGSTOP || number == SIGPROF || number == SIGSEGV ||
                number == SIGBUS || number == SIGFPE || number == SIGILL || number == SIGTRAP ||
                number == SIGSYS || (blocked >> (number - 1) & 1))
                continue;
            fprintf(stderr, "smoke.c: the thread %s takes signal %d\n", name, number);
            wrong = 1;
        }
    }
    if (threads) closedir(threads);
    printf("FIGURE the library has %d threads\n", count);
    CHECK(count > 0);
}

static void check_fork(tiered_cache *cache) {
    pid_t child = fork();
    if (child == 0) _exit(tiered_storage_status(cache, NULL, 0) == TIERED_E_FORKED ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
}

static int entries(const char *path) {
    DIR *directory = opendir(path);
    int count = 0;
    while (directory && readdir(directory)) count++;
    if (directory) closedir(directory);
    return count;
}

static long resident(void) {
    long pages = 0, all = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file) {
        if (fscanf(file, "%ld %ld", &all, &pages) != 2) pages = 0;
        fclose(file);
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* What ten thousand streams leave behind, and what a hundred that wait for their host cost. */
static void check_leaks(tiered_cache *cache, const char *url) {
    enum { STREAMS = 10000, IDLE = 100 };
    static tiered_stream *idle[IDLE];
    unsigned char byte;
    int files = 0, threads = 0;
    long memory = 0;
    for (int round = 0; round < 2 * STREAMS; round++) {
        if (round == STREAMS) {
            /* The first half has warmed up what is kept for good. */
            files = entries("/proc/self/fd");
            threads = entries("/proc/self/task");
            memory = resident();
        }
        tiered_stream *stream = open_stream(cache, url, 0);
        if (round % 2 == 0) CHECK(tiered_read(stream, &byte, 1) == 1);
        if (round % 4 == 0) CHECK(tiered_stream_fd(stream) >= 0);
        tiered_stream_release(stream);
    }
    CHECK(entries("/proc/self/fd") <= files + 2);
    CHECK(entries("/proc/self/task") <= threads + 2);
    printf("FIGURE 10,000 streams leave %ld KiB\n", resident() - memory);
    CHECK(resident() - memory < 4096);
    memory = resident();
    for (int index = 0; index < IDLE; index++) {
        idle[index] = open_stream(cache, url, 0);
        CHECK(tiered_read(idle[index], &byte, 1) == 1);
    }
    printf("FIGURE an idle stream costs %.1f KiB\n", (double)(resident() - memory) / IDLE);
    CHECK(resident() - memory <= 16 * IDLE);
    for (int index = 0; index < IDLE; index++) tiered_stream_release(idle[index]);
}

int main(int count, char **arguments) {
    if (count < 3) return 64;
    char film[64], silent[64], none[64];
    snprintf(film, sizeof(film), "http://127.0.0.1:%s/film", arguments[1]);
    snprintf(silent, sizeof(silent), "http://127.0.0.1:%s/hang", arguments[1]);
    snprintf(none, sizeof(none), "http://127.0.0.1:%s/none", arguments[1]);
    signal(SIGTERM, handle);
    struct signals before = signals_now();

    CHECK(tiered_abi() == TIERED_ABI);
    tiered_options options = {.size = sizeof(options), .directory = arguments[2]};
    tiered_cache *cache = NULL;
    CHECK(tiered_cache_open(&options, &cache) == TIERED_OK);
    CHECK(tiered_storage_status(cache, NULL, 0) == TIERED_OK);
    for (int round = 0; round < 2; round++) read_film(cache, film);
    poll_film(cache, film);
    unsigned char byte;
    tiered_stream *missing = open_stream(cache, none, 0);
    CHECK(tiered_read(missing, &byte, 1) == TIERED_E_HTTP);
    CHECK(tiered_stream_http_status(missing) == 404);
    tiered_stream_release(missing);
    stop_reads(cache, silent);
    CHECK(tiered_proxy_start(cache) == TIERED_OK);
    check_signals(&before);
    check_threads();
    check_fork(cache);
    check_leaks(cache, film);
    tiered_cache_release(cache);
    CHECK(tiered_storage_status(cache, NULL, 0) == TIERED_E_INVALID);
    check_signals(&before);
    printf("%s\n", tiered_version());
    return wrong;
}
