/* A host with too little of something: descriptors, threads, stack, /proc, room on the disk, a home, a directory. It gets
 * a status where a call needs it, its film where that is possible, and is never ended.
 *
 *   limits URL FILE [SMALL]
 *
 * URL is of the film in FILE, of at least 1 MiB; SMALL is a directory of a volume that is smaller than the film.
 * Each case is a process of its own, forked before any cache is open. Run by scripts/check-races.sh. Prints a line
 * for each part, and ends with 1 where something was not as it has to be. */
#include "cases.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <time.h>

static const char *small;

static void limit(int resource, long value) {
    struct rlimit wanted = {(rlim_t)value, (rlim_t)value};
    if (setrlimit(resource, &wanted) != 0) fail("setrlimit", errno);
}

/* ---- Descriptors and threads ---- */

static int with_descriptors(long count) {
    limit(RLIMIT_NOFILE, count);
    return use(work);
}

/* As a user of its own: the limit counts all threads of a user, and not those of root. */
static int become_user(void) {
    if (getuid() == 0 && (setresgid(54321, 54321, 54321) || setresuid(54321, 54321, 54321)))
        return fail("setresuid", errno), 0;
    return 1;
}

static int with_threads(long count) {
    if (!become_user()) return 1;
    limit(RLIMIT_NPROC, count);
    return use(work);
}

static void hang(void *context, int level, const char *line) {
    (void)context;
    (void)level;
    (void)line;
    for (;;) pause();
}

static int reads(tiered_cache *cache) {
    static char bytes[65536];
    tiered_stream *stream = new_stream(cache, 10000);
    int64_t n = tiered_read_full_at(stream, 500000, bytes, sizeof bytes);
    tiered_stream_release(stream);
    return n == sizeof bytes;
}

/* The first cache has taken what all share; then there is no thread for logs, whose functions hang. */
static int logs_without_threads(long count) {
    tiered_cache *cache;
    tiered_options options = {.size = sizeof options, .directory = "", .log_level = TIERED_LOG_TRACE, .log = hang};
    if (!become_user()) return 1;
    CHECK(open_at("", &cache) == TIERED_OK && reads(cache));
    limit(RLIMIT_NPROC, 1);
    for (long i = 0; i < count; i++) {
        CHECK(tiered_cache_open(&options, &cache) == TIERED_OK);
        CHECK(reads(cache));
    }
    return 0;
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

enum { HAMMERS = 16 };
static pthread_t hammers[HAMMERS];

static void start_hammers(Hammer *own) {
    for (int i = 0; i < HAMMERS; i++) pthread_create(&hammers[i], NULL, hammer, own);
}

static void join_hammers(void) {
    for (int i = 0; i < HAMMERS; i++) pthread_join(hammers[i], NULL);
}

/* All descriptors are taken while a film plays: Dispatch looks after its threads once a second. */
static int used_up(long seconds) {
    static int taken[4096];
    int count = 0;
    tiered_cache *cache, *other;
    limit(RLIMIT_NOFILE, 256);
    CHECK(open_at(work, &cache) == TIERED_OK && plays(cache));
    Hammer own = {cache, time(NULL) + seconds};
    start_hammers(&own);
    while (time(NULL) < own.end) {
        /* Again and again: what the library closes is taken as well. */
        while (count < 4096 && (taken[count] = dup(0)) >= 0) count++;
        CHECK(errno == EMFILE);
        if (open_at("", &other) == TIERED_OK) tiered_cache_release(other);
    }
    join_hammers();
    while (count > 0) close(taken[--count]);
    CHECK(plays(cache));
    tiered_cache_release(cache);
    return 0;
}

/* As in a chroot: Dispatch finds no file of /proc. Gives 2 where no mount namespace can be had. */
static int no_proc(long seconds) {
    tiered_cache *cache;
    if (unshare(getuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount("none", "/proc", "tmpfs", 0, NULL) != 0)
        return 2;
    CHECK(open_at(work, &cache) == TIERED_OK && plays(cache));
    Hammer own = {cache, time(NULL) + seconds};
    start_hammers(&own);
    join_hammers();
    CHECK(plays(cache));
    tiered_cache_release(cache);
    return 0;
}

/* Opens a cache in memory, which takes what all caches share and no more; gives 0 where it opens. */
static int first_open(long descriptors) {
    tiered_cache *cache;
    limit(RLIMIT_NOFILE, descriptors);
    int status = open_at("", &cache);
    CHECK(status == TIERED_OK || status == TIERED_E_STORAGE);
    tiered_cache_release(cache);
    return status == TIERED_OK ? 0 : 1;
}

static pthread_barrier_t together;

static void *open_together(void *unused) {
    tiered_cache *cache;
    pthread_barrier_wait(&together);
    CHECK(open_at("", &cache) == TIERED_OK);
    tiered_cache_release(cache);
    return unused;
}

/* What they share is tried out by one of them: where there is enough for one there is for all. */
static int first_opens(long descriptors) {
    enum { OPENERS = 8 };
    pthread_t threads[OPENERS];
    limit(RLIMIT_NOFILE, descriptors);
    pthread_barrier_init(&together, NULL, OPENERS);
    for (int i = 0; i < OPENERS; i++) pthread_create(&threads[i], NULL, open_together, NULL);
    for (int i = 0; i < OPENERS; i++) pthread_join(threads[i], NULL);
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

static int status_of(const char *directory) {
    tiered_cache *cache;
    CHECK(open_at(directory, &cache) == TIERED_OK);
    int status = tiered_storage_status(cache, NULL, 0);
    tiered_cache_release(cache);
    return status;
}

static void *open_far_down(void *unused) {
    static char path[1 << 20];
    size_t length = strlen(work);
    memcpy(path, work, length);
    for (; length < 4080; length += 2) memcpy(path + length, "/a", 3);
    CHECK(status_of(path) == TIERED_OK);
    for (; length < sizeof path - 3; length += 2) memcpy(path + length, "/a", 3);
    CHECK(status_of(path) == TIERED_E_STORAGE);
    return unused;
}

/* A directory of 2,000 names, none of which exists, and one that is too long, on a thread with little stack. */
static int far_down(long stack) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstacksize(&attributes, (size_t)stack) == 0);
    CHECK(pthread_create(&thread, &attributes, open_far_down, NULL) == 0);
    pthread_join(thread, NULL);
    return 0;
}

/* Deleted, and made anew, while a cache of it is open: an open after that stores in the new one. */
static int made_anew(long is_made) {
    char directory[256], command[600], path[512] = "";
    tiered_cache *cache, *later;
    snprintf(directory, sizeof directory, "%s/anew", work);
    CHECK(open_at(directory, &cache) == TIERED_OK && plays(cache));
    /* Again where the cache has written a file meanwhile. */
    snprintf(command, sizeof command, "until rm -rf '%s' 2>/dev/null; do :; done%s%s%s", directory,
             is_made ? " && mkdir '" : "", is_made ? directory : "", is_made ? "'" : "");
    CHECK(system(command) == 0);
    CHECK(open_at(directory, &later) == TIERED_OK);
    CHECK(tiered_storage_status(later, NULL, 0) == TIERED_OK);
    int status = tiered_remove(later, url, NULL); /* from memory */
    CHECK(status == TIERED_OK || status == TIERED_E_NOT_FOUND);
    CHECK(plays(later));
    CHECK(tiered_storage_status(later, NULL, 0) == TIERED_OK);
    CHECK(tiered_file_path(later, url, NULL, path, sizeof path) > 0 && access(path, R_OK) == 0);
    tiered_cache_release(later);
    CHECK(plays(cache));
    tiered_cache_release(cache);
    return 0;
}

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

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: %s URL FILE [SMALL]\n", argv[0]), 64;
    begin("limits", argv);
    small = argc > 3 ? argv[3] : NULL;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    run("no home", no_home, 0);
    run("a relative directory", relative, 0);
    run("a directory that is deleted", made_anew, 0);
    run("a directory that is made anew", made_anew, 1);
    run("2,000 directories below one another, stack:", far_down, 256 * 1024);
    run("files may have 100,000 bytes", full_disk, 0);
    if (small) run("a volume smaller than the film", full_disk, 1);
    printf("limits: a film plays where it cannot be stored: %s\n",
           small ? "RLIMIT_FSIZE, and a small volume" : "RLIMIT_FSIZE");
    if (run("descriptors are used up for seconds:", used_up, 5) == 0)
        printf("limits: a process whose descriptors are used up goes on\n");
    int result = run("no /proc for seconds:", no_proc, 3);
    if (result == 0) printf("limits: a process without /proc goes on\n");
    if (result == 2) printf("limits: no mount namespace here, so that no process was without /proc\n");
    long least = 3;
    while (least < 200 && run("a first open, descriptors:", first_open, least) == 1) least++;
    for (int i = 0; i < 10; i++) run("eight first opens at once, descriptors:", first_opens, least);
    printf("limits: a first open takes %ld descriptors, and so do eight at once\n", least);
    run("logs without a thread:", logs_without_threads, 2 * cores);
    printf("limits: a log without a thread, whose function hangs, stops no reads\n");
    sweep("descriptors", with_descriptors, 3, 3 * cores + 60);
    sweep("threads", with_threads, 1, 2 * cores + 40);
    return end();
}
