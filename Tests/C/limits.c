/* A host with too little of something: descriptors, threads, room on the disk, a home, a working directory, time. It
 * gets a status where a call needs it, its film where that is possible, and is never ended.
 *
 *   limits URL FILE [SMALL]
 *
 * URL is of the film in FILE, of at least 1 MiB; SMALL is a directory of a volume that is smaller than the film.
 * Each case is a process of its own, forked before any cache is open. Run by scripts/check-races.sh. Prints a line
 * for each part, and ends with 1 where something was not as it has to be. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tieredcache.h>
#include <time.h>
#include <unistd.h>

static const char *url, *file, *small;
static char work[] = "/tmp/tieredcache-limits-XXXXXX";
static int failures;

static void fail(const char *what, long long value) {
    fprintf(stderr, "limits: FAILED: %s: %lld\n", what, value);
    failures++;
}
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) fail(#condition, __LINE__);                                                                  \
    } while (0)

static void limit(int resource, long value) {
    struct rlimit wanted = {(rlim_t)value, (rlim_t)value};
    if (setrlimit(resource, &wanted) != 0) fail("setrlimit", errno);
}

/* A process that ends with what body gives; one that was ended by a signal, or hangs, is a failure. */
static int run(const char *name, int (*body)(long), long value) {
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
    if (WIFSIGNALED(status)) fprintf(stderr, "limits: %s %ld: signal %d\n", name, value, WTERMSIG(status));
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 99) return fail(name, value), -1;
    return WEXITSTATUS(status);
}

static int open_at(const char *directory, tiered_cache **cache) {
    tiered_options options = {.size = sizeof options, .directory = directory, .minimum_free_disk = -1};
    *cache = NULL;
    return tiered_cache_open(&options, cache);
}

static tiered_stream *new_stream(tiered_cache *cache, int deadline) {
    tiered_request request = {.size = sizeof request, .url = url, .deadline_ms = deadline};
    tiered_stream *stream = NULL;
    CHECK(tiered_stream_new(cache, &request, &stream) == TIERED_OK);
    return stream;
}

/* Whether the film comes as it is in FILE. */
static int plays(tiered_cache *cache) {
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
    if (!is_same) fprintf(stderr, "limits: the film stops at %lld with %d\n", (long long)place,
                          tiered_stream_error(stream, NULL, 0));
    tiered_stream_release(stream);
    return is_same;
}

/* ---- Descriptors and threads ---- */

/* All that opens something: 0 where the film plays, 1 where a status says why not. */
static int use(const char *directory) {
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

static int with_descriptors(long count) {
    limit(RLIMIT_NOFILE, count);
    return use(work);
}

/* As a user of its own: the limit counts all threads of a user, and not those of root. */
static int with_threads(long count) {
    if (getuid() == 0 && (setresgid(54321, 54321, 54321) || setresuid(54321, 54321, 54321)))
        return fail("setresuid", errno), 1;
    limit(RLIMIT_NPROC, count);
    return use(work);
}

static void sweep(const char *name, int (*body)(long), long from, long to) {
    long first = -1;
    for (long count = from; count <= to; count++) {
        int result = run(name, body, count);
        if (result == 0 && first < 0) first = count;
    }
    if (run(name, body, to) != 0) fail("the film does not play with", to);
    printf("limits: %ld to %ld %s: no crash; from %ld on the film plays\n", from, to, name, first);
}

typedef struct {
    tiered_cache *cache;
    time_t end;
} Hammer;

/* Tries that nothing can come of, so that tasks wait for a thread. */
static void *hammer(void *argument) {
    Hammer *own = argument;
    char byte;
    while (time(NULL) < own->end) {
        tiered_request request = {.size = sizeof request, .url = url, .deadline_ms = 100, .flags = TIERED_RELOAD};
        tiered_stream *stream = NULL;
        CHECK(tiered_stream_new(own->cache, &request, &stream) == TIERED_OK);
        int descriptor = tiered_stream_fd(stream);
        CHECK(descriptor >= 0 || descriptor == TIERED_E_STORAGE);
        tiered_try_read(stream, &byte, 1);
        tiered_job *jobs[4];
        tiered_job_list(own->cache, jobs, 0);
        tiered_stream_release(stream);
    }
    return NULL;
}

/* All descriptors are taken while a film plays: Dispatch looks after its threads once a second. */
static int used_up(long seconds) {
    enum { HAMMERS = 16 };
    static int taken[4096];
    int count = 0;
    pthread_t threads[HAMMERS];
    tiered_cache *cache, *other;
    limit(RLIMIT_NOFILE, 256);
    CHECK(open_at(work, &cache) == TIERED_OK && plays(cache));
    Hammer own = {cache, time(NULL) + seconds};
    for (int i = 0; i < HAMMERS; i++) pthread_create(&threads[i], NULL, hammer, &own);
    while (time(NULL) < own.end) {
        /* Again and again: what the library closes is taken as well. */
        while (count < 4096 && (taken[count] = dup(0)) >= 0) count++;
        CHECK(errno == EMFILE);
        if (open_at("", &other) == TIERED_OK) tiered_cache_release(other);
    }
    for (int i = 0; i < HAMMERS; i++) pthread_join(threads[i], NULL);
    while (count > 0) close(taken[--count]);
    CHECK(plays(cache));
    tiered_cache_release(cache);
    return 0;
}

/* ---- The disk ---- */

static int full_disk(long is_volume) {
    char directory[256];
    tiered_cache *cache;
    tiered_statistics statistics = {.size = sizeof statistics};
    snprintf(directory, sizeof directory, "%s/%s", is_volume ? small : work, "full");
    if (!is_volume) limit(RLIMIT_FSIZE, 100000); /* SIGXFSZ would end us: our writers block it */
    CHECK(open_at(directory, &cache) == TIERED_OK);
    CHECK(plays(cache));
    CHECK(plays(cache));
    CHECK(tiered_cache_statistics(cache, &statistics) == TIERED_OK);
    CHECK(tiered_file_path(cache, url, NULL, NULL, 0) < 0);
    tiered_cache_release(cache);
    return 0;
}

/* ---- Directories ---- */

static int no_home(long unused) {
    (void)unused;
    char text[256] = "";
    tiered_cache *cache;
    tiered_options options = {.size = sizeof options};
    clearenv();
    CHECK(tiered_cache_open(&options, &cache) == TIERED_OK);
    CHECK(tiered_storage_status(cache, text, sizeof text) == TIERED_E_STORAGE);
    CHECK(strstr(text, "XDG_CACHE_HOME"));
    CHECK(plays(cache));
    tiered_cache_release(cache);
    CHECK(open_at("", &cache) == TIERED_OK);
    CHECK(tiered_storage_status(cache, NULL, 0) == TIERED_OK);
    tiered_cache_release(cache);
    return 0;
}

static int relative(long unused) {
    (void)unused;
    char path[512] = "", text[256], absolute[512];
    tiered_cache *cache, *same;
    tiered_statistics statistics = {.size = sizeof statistics};
    CHECK(chdir(work) == 0 && open_at("relative", &cache) == TIERED_OK && plays(cache));
    CHECK(chdir("/") == 0);
    CHECK(tiered_file_path(cache, url, NULL, path, sizeof path) > 0);
    CHECK(path[0] == '/' && access(path, R_OK) == 0);
    CHECK(tiered_proxy_start(cache) == TIERED_OK);
    CHECK(tiered_proxy_url(cache, url, text, sizeof text) > 0);
    CHECK(access("/relative", F_OK) != 0);
    snprintf(absolute, sizeof absolute, "%s/link", work);
    CHECK(symlink("relative", absolute) == 0);
    CHECK(open_at(absolute, &same) == TIERED_OK && tiered_storage_status(same, NULL, 0) == TIERED_OK);
    CHECK(tiered_cache_statistics(same, &statistics) == TIERED_OK && statistics.bytes_from_origin > 0);
    tiered_cache_release(same);
    tiered_cache_release(cache);
    snprintf(absolute, sizeof absolute, "%s/gone", work);
    CHECK(mkdir(absolute, 0755) == 0 && chdir(absolute) == 0 && rmdir(absolute) == 0);
    CHECK(open_at("films", &cache) == TIERED_E_INVALID && !cache);
    CHECK(open_at(".", &cache) == TIERED_E_INVALID && !cache);
    return 0;
}

/* ---- Forks ---- */

static char shared[256];

static int storage_status(long unused) {
    (void)unused;
    tiered_cache *cache;
    CHECK(open_at(shared, &cache) == TIERED_OK);
    int status = tiered_storage_status(cache, NULL, 0);
    tiered_cache_release(cache);
    return -status;
}

/* Owns the directory, forks one child that ends, and on a word one that stays; ends without a release. */
static void own(int told, int tell) {
    tiered_cache *cache;
    char byte = open_at(shared, &cache) == TIERED_OK && tiered_storage_status(cache, NULL, 0) == TIERED_OK;
    pid_t child = fork();
    if (child == 0) {
        tiered_cache_release(cache);
        _exit(tiered_storage_status(cache, NULL, 0) == TIERED_E_FORKED ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0) byte = 0;
    if (write(tell, &byte, 1) != 1 || read(told, &byte, 1) != 1) _exit(1);
    child = fork();
    if (child == 0) { /* until the other end of the pipe is closed */
        close(tell);
        while (read(told, &byte, 1) > 0) {}
        _exit(0);
    }
    _exit(0);
}

static void forks(void) {
    int to[2], from[2], status = 1;
    char byte = 0;
    snprintf(shared, sizeof shared, "%s/shared", work);
    CHECK(pipe(to) == 0 && pipe(from) == 0);
    fflush(NULL);
    pid_t owner = fork();
    if (owner == 0) {
        close(to[1]);
        own(to[0], from[1]);
    }
    close(to[0]);
    CHECK(read(from[0], &byte, 1) == 1 && byte == 1);
    CHECK(run("while a child has come and gone", storage_status, 0) == -TIERED_E_NOT_OWNER);
    CHECK(write(to[1], "", 1) == 1);
    waitpid(owner, &status, 0);
    CHECK(status == 0);
    CHECK(run("while a child outlives the owner", storage_status, 0) == -TIERED_E_NOT_OWNER);
    close(to[1]); /* the child ends */
    for (int i = 0; i < 100 && (status = run("after both", storage_status, 0)) != 0; i++) usleep(50000);
    CHECK(status == 0);
    printf("limits: a child that ends leaves the directory to its owner; one that outlives it keeps it\n");
}

/* ---- The end ---- */

static void *read_for_ever(void *cache) {
    static char bytes[8][65536];
    static int count;
    char *own = bytes[__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED)];
    tiered_stream *stream = new_stream(cache, 1000);
    for (int64_t place = 0;; place = (place + 65536) % 1000000) tiered_read_at(stream, place, own, 65536);
    return NULL;
}

/* exit, while other threads are in calls: destructors and functions of atexit run beside them. */
static int exit_during_calls(long round) {
    pthread_t thread;
    tiered_cache *cache;
    CHECK(open_at(work, &cache) == TIERED_OK);
    for (int i = 0; i < 8; i++) pthread_create(&thread, NULL, read_for_ever, cache);
    usleep((useconds_t)(round * 2000));
    exit(failures ? 99 : 0);
}

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: %s URL FILE [SMALL]\n", argv[0]), 64;
    (url = argv[1], file = argv[2], small = argc > 3 ? argv[3] : NULL);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    umask(0);
    if (!mkdtemp(work) || chmod(work, 0777)) return fail("mkdtemp", errno), 1;
    run("no home", no_home, 0);
    run("a relative directory", relative, 0);
    forks();
    run("files may have 100,000 bytes", full_disk, 0);
    if (small) run("a volume smaller than the film", full_disk, 1);
    printf("limits: a film plays where it cannot be stored: %s\n",
           small ? "RLIMIT_FSIZE, and a small volume" : "RLIMIT_FSIZE");
    if (run("descriptors are used up for seconds:", used_up, 5) == 0)
        printf("limits: a process whose descriptors are used up goes on\n");
    for (long round = 0; round < 20; round++) run("exit during calls", exit_during_calls, round);
    printf("limits: exit while eight threads read: no crash\n");
    sweep("descriptors", with_descriptors, 3, 3 * cores + 60);
    sweep("threads", with_threads, 1, 2 * cores + 40);
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", work);
    if (system(command) != 0) fail("rm", 0);
    if (failures) fprintf(stderr, "limits: %d failures\n", failures);
    return failures ? 1 : 0;
}
