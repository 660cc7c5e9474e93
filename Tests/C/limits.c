/* A host with too little of something: descriptors, threads, room on the disk, a home, a working directory. It
 * gets a status where a call needs it, its film where that is possible, and is never ended.
 *
 *   limits URL FILE [SMALL]
 *
 * URL is of the film in FILE, of at least 1 MiB; SMALL is a directory of a volume that is smaller than the film.
 * Each case is a process of its own, forked before any cache is open. Run by scripts/check-races.sh. Prints a line
 * for each part, and ends with 1 where something was not as it has to be. */
#include "cases.h"

#include <pthread.h>
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

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: %s URL FILE [SMALL]\n", argv[0]), 64;
    begin("limits", argv);
    small = argc > 3 ? argv[3] : NULL;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    run("no home", no_home, 0);
    run("a relative directory", relative, 0);
    run("files may have 100,000 bytes", full_disk, 0);
    if (small) run("a volume smaller than the film", full_disk, 1);
    printf("limits: a film plays where it cannot be stored: %s\n",
           small ? "RLIMIT_FSIZE, and a small volume" : "RLIMIT_FSIZE");
    if (run("descriptors are used up for seconds:", used_up, 5) == 0)
        printf("limits: a process whose descriptors are used up goes on\n");
    sweep("descriptors", with_descriptors, 3, 3 * cores + 60);
    sweep("threads", with_threads, 1, 2 * cores + 40);
    return end();
}
