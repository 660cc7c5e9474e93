/* A host that forks, before it opens a cache and after that, and one that ends while its threads are in calls.
 *
 *   forks URL FILE
 *
 * URL is of the film in FILE, of at least 1 MiB. Each case is a process of its own. Run by scripts/check-races.sh.
 * Prints a line for each part, and ends with 1 where something was not as it has to be. */
#include "cases.h"

#include <pthread.h>
#include <signal.h>

/* ---- A fork before the first open ---- */

enum { OPENERS = 4 };
static pthread_barrier_t together;

static void *use_together(void *unused) {
    pthread_barrier_wait(&together);
    use(work);
    return unused;
}

/* The thread that forked and others want the same locks at once: those of the runtimes, which have been used when the
 * library was loaded, by a thread that had another number. */
static int open_in_child(long unused) {
    pthread_t threads[OPENERS];
    (void)unused;
    pthread_barrier_init(&together, NULL, OPENERS);
    for (int i = 1; i < OPENERS; i++) pthread_create(&threads[i], NULL, use_together, NULL);
    use_together(NULL);
    for (int i = 1; i < OPENERS; i++) pthread_join(threads[i], NULL);
    return 0;
}

/* ---- A fork during the first use ---- */

static int is_first_open; /* or calls that need no cache */

static void *use_first(void *unused) {
    tiered_cache *cache;
    pthread_barrier_wait(&together);
    if (is_first_open) CHECK(open_at("", &cache) == TIERED_OK);
    tiered_cache_retain(NULL);
    tiered_stream_release(NULL);
    CHECK(tiered_size(NULL) == TIERED_E_INVALID);
    tiered_job_release(NULL);
    return unused;
}

/* A child has either nothing of that, and opens a cache, or a status; none finds a lock that is taken. */
static int fork_in_first_use(long round) {
    enum { FORKS = 16 };
    pthread_t thread;
    pid_t children[FORKS];
    int opened = 0;
    is_first_open = round % 4 != 0;
    pthread_barrier_init(&together, NULL, 2);
    pthread_create(&thread, NULL, use_first, NULL);
    pthread_barrier_wait(&together);
    for (int i = 0; i < FORKS; i++) {
        children[i] = fork();
        if (children[i] != 0) continue;
        tiered_cache *cache;
        alarm(50);
        int status = open_at("", &cache);
        _exit(status == TIERED_OK ? 0 : status == TIERED_E_FORKED ? 1 : 2);
    }
    for (int i = 0; i < FORKS; i++) {
        int status = -1;
        waitpid(children[i], &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 2);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) opened++;
    }
    pthread_join(thread, NULL);
    if (!is_first_open) CHECK(opened == FORKS);
    return opened;
}

/* ---- A parent with a cache ---- */

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
    printf("forks: a child that ends leaves the directory to its owner; one that outlives it keeps it\n");
}

/* A child that stays has the proxy's listener too: the port is free all the same once the parent has released. */
static int keep_port(long unused) {
    char urls[2][512] = {"", ""};
    pid_t child = 0;
    (void)unused;
    for (int i = 0; i < 2; i++) {
        tiered_cache *cache;
        CHECK(open_at(shared, &cache) == TIERED_OK && tiered_proxy_start(cache) == TIERED_OK);
        CHECK(tiered_proxy_url(cache, url, urls[i], sizeof urls[i]) > 0);
        if (i == 0 && (child = fork()) == 0) {
            pause();
            _exit(0);
        }
        tiered_cache_release(cache);
    }
    CHECK(strcmp(urls[0], urls[1]) == 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
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
    enum { CHILDREN = 100 };
    if (argc != 3) return fprintf(stderr, "usage: %s URL FILE\n", argv[0]), 64;
    begin("forks", argv);
    for (long i = 0; i < CHILDREN && !failures; i++) run("four threads of a child at once", open_in_child, i);
    printf("forks: %d children opened a cache from four threads at once\n", CHILDREN);
    /* The address sanitizer has locks of its own, which a thread of the parent may hold at a fork: with it a child in
     * some thousands hangs in malloc. So this part is for a program without it. */
#if !defined(SANITIZED)
    int opened = 0;
    for (long round = 0; round < 60 && !failures; round++) opened += run("in the first use", fork_in_first_use, round);
    printf("forks: of 960 children of a first use %d open a cache, and the others get a status\n", opened);
#else
    (void)fork_in_first_use;
#endif
    forks();
    run("the port beside a child", keep_port, 0);
    printf("forks: a child that stays does not keep the port of its parent's proxy\n");
    for (long round = 0; round < 20; round++) run("exit during calls", exit_during_calls, round);
    printf("forks: exit while eight threads read: no crash\n");
    return end();
}
