/* A host that loads the library by name and closes it again, as one with plug-ins does.
 *
 *   plugin URL LIBRARY       LIBRARY is the path of libtieredcache.so.0
 *
 * After dlclose the threads of the library run on in code that has to be there still; loaded again it is the same. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <tieredcache.h>
#include <time.h>

static int log_lines;

static void log_line(void *context, int level, const char *line) {
    (void)context;
    (void)level;
    (void)line;
    __atomic_add_fetch(&log_lines, 1, __ATOMIC_RELAXED);
}

static void *function(void *library, const char *name) {
    void *address = dlsym(library, name);
    if (!address) fprintf(stderr, "plugin: %s\n", dlerror());
    return address;
}

/* ISO C has no conversion from an object's address to a function's. */
#define FUNCTION(result, name, ...)                                                                                    \
    result (*name)(__VA_ARGS__);                                                                                       \
    *(void **)(&name) = function(library, #name);                                                                      \
    if (!name) return 1

static int use(const char *url, const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return fprintf(stderr, "plugin: %s\n", dlerror()), 1;
    FUNCTION(int, tiered_abi, void);
    FUNCTION(int, tiered_cache_open, const tiered_options *, tiered_cache **);
    FUNCTION(void, tiered_cache_release, tiered_cache *);
    FUNCTION(int, tiered_stream_new, tiered_cache *, const tiered_request *, tiered_stream **);
    FUNCTION(void, tiered_stream_release, tiered_stream *);
    FUNCTION(int64_t, tiered_read, tiered_stream *, void *, size_t);
    tiered_options options = {.size = sizeof options, .log = log_line, .log_level = TIERED_LOG_DEBUG};
    tiered_request request = {.size = sizeof request, .url = url};
    tiered_cache *cache;
    tiered_stream *stream;
    char bytes[4096];
    if (tiered_abi() != TIERED_ABI || tiered_cache_open(&options, &cache) != TIERED_OK) return 1;
    if (tiered_stream_new(cache, &request, &stream) != TIERED_OK) return 1;
    int64_t n = tiered_read(stream, bytes, sizeof bytes);
    tiered_stream_release(stream);
    tiered_cache_release(cache);
    int lines = __atomic_load_n(&log_lines, __ATOMIC_RELAXED);
    dlclose(library);
    struct timespec moment = {0, 100000000};
    nanosleep(&moment, NULL); /* whatever the threads still do, they do it after dlclose */
    if (__atomic_load_n(&log_lines, __ATOMIC_RELAXED) != lines)
        return fprintf(stderr, "plugin: the log function was called after the last release\n"), 1;
    return n > 0 ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc != 3) return fprintf(stderr, "usage: %s URL LIBRARY\n", argv[0]), 64;
    for (int i = 0; i < 10; i++)
        if (use(argv[1], argv[2])) return fprintf(stderr, "plugin: the library failed at load %d\n", i), 1;
    printf("plugin: loaded and closed ten times\n");
    return 0;
}
