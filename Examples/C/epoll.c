/* Reads URL with many streams at once in one thread that never waits for any: epoll and tiered_try_read.
 * Writes the bytes of the first to standard output; the others have to bring the same.
 *
 *   cc epoll.c $(pkg-config --cflags --libs tieredcache) -o epoll-film
 *   ./epoll-film http://127.0.0.1:8000/film.mp4 100 >film.mp4
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <tieredcache.h>

typedef struct {
    tiered_stream *stream;
    uint64_t count, hash; /* FNV-1a, of what has come */
    int is_first;
} Reader;

/* One read for each event, so that all have their turn. Gives whether the reader is at its end. */
static int read_some(Reader *reader) {
    unsigned char bytes[65536];
    int64_t n = tiered_try_read(reader->stream, bytes, sizeof bytes);
    if (n == TIERED_E_AGAIN) return 0; /* the descriptor is not readable now: epoll says when */
    if (n < 0) {
        char text[256];
        tiered_stream_error(reader->stream, text, sizeof text);
        fprintf(stderr, "epoll: %s\n", text);
        exit(1);
    }
    for (int64_t i = 0; i < n; i++) reader->hash = (reader->hash ^ bytes[i]) * 0x100000001b3;
    if (reader->is_first && fwrite(bytes, 1, n, stdout) != (size_t)n) exit(1);
    reader->count += n;
    return n == 0;
}

int main(int argc, char **argv) {
    int count = argc == 3 ? atoi(argv[2]) : 0;
    if (count < 1) return fprintf(stderr, "usage: %s URL STREAMS\n", argv[0]), 64;
    tiered_cache *cache;
    if (tiered_abi() != TIERED_ABI || tiered_cache_open(NULL, &cache) != TIERED_OK) return 1;

    int loop = epoll_create1(EPOLL_CLOEXEC);
    sigset_t quit;
    sigemptyset(&quit);
    sigaddset(&quit, SIGINT);
    sigaddset(&quit, SIGTERM);
    sigprocmask(SIG_BLOCK, &quit, NULL);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(loop, EPOLL_CTL_ADD, signalfd(-1, &quit, SFD_CLOEXEC), &event);

    Reader *readers = calloc(count, sizeof *readers);
    tiered_request request = {.size = sizeof request, .url = argv[1]};
    for (int i = 0; i < count; i++) {
        readers[i] = (Reader){.hash = 0xcbf29ce484222325, .is_first = i == 0};
        if (tiered_stream_new(cache, &request, &readers[i].stream) != TIERED_OK) return 1;
        event.data.ptr = &readers[i];
        epoll_ctl(loop, EPOLL_CTL_ADD, tiered_stream_fd(readers[i].stream), &event);
    }

    int left = count, status = 0;
    while (left > 0 && status == 0) {
        struct epoll_event ready[64];
        int events = epoll_wait(loop, ready, 64, -1);
        for (int i = 0; i < events && status == 0; i++) {
            Reader *reader = ready[i].data.ptr;
            if (!reader) {
                status = 1; /* a signal */
            } else if (read_some(reader)) {
                epoll_ctl(loop, EPOLL_CTL_DEL, tiered_stream_fd(reader->stream), NULL);
                left--;
            }
        }
    }
    for (int i = 0; i < count; i++) {
        if (status == 0 && readers[i].hash != readers[0].hash) status = 1;
        tiered_stream_release(readers[i].stream);
    }
    fprintf(stderr, "epoll: %d streams, %llu bytes each\n", count - left,
            (unsigned long long)readers[0].count);
    tiered_cache_release(cache);
    free(readers);
    return status;
}
