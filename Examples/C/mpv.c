/* Plays URL in libmpv: tiered://URL is read through the cache.
 *
 *   cc mpv.c $(pkg-config --cflags --libs tieredcache mpv) -o mpv-film
 *   ./mpv-film http://127.0.0.1:8000/film.mp4 [OPTION=VALUE...]      (vo=null, for example)
 */
#include <mpv/client.h>
#include <mpv/stream_cb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tieredcache.h>
#include <time.h>

static int64_t read_film(void *stream, char *buffer, uint64_t count) {
    int64_t n = tiered_read(stream, buffer, count);
    return n < 0 ? -1 : n;
}

static int64_t seek_film(void *stream, int64_t offset) {
    int64_t place = tiered_seek(stream, offset, SEEK_SET);
    return place < 0 ? MPV_ERROR_GENERIC : place;
}

/* mpv asks again and again; the size is known once the first byte has come. */
static int64_t film_size(void *stream) {
    int64_t size = tiered_size(stream);
    return size < 0 ? MPV_ERROR_UNSUPPORTED : size;
}

static void cancel_film(void *stream) { tiered_cancel(stream); }

static void close_film(void *stream) {
    char text[256];
    int status = tiered_stream_error(stream, text, sizeof text);
    if (status != TIERED_OK && status != TIERED_E_CANCELLED) fprintf(stderr, "mpv: %s\n", text);
    tiered_stream_release(stream);
}

/* mpv cannot cancel an open or the seek to 0 that follows: neither asks the origin. */
static int open_film(void *cache, char *uri, mpv_stream_cb_info *info) {
    tiered_request request = {.size = sizeof request, .url = uri + strlen("tiered://")};
    tiered_stream *stream;
    if (tiered_stream_new(cache, &request, &stream) != TIERED_OK) return MPV_ERROR_LOADING_FAILED;
    *info = (mpv_stream_cb_info){stream, read_film, seek_film, film_size, close_film, cancel_film};
    return 0;
}

static int check(int status, const char *what) {
    if (status >= 0) return status;
    fprintf(stderr, "mpv: %s: %s\n", what, mpv_error_string(status));
    exit(1);
}

int main(int argc, char **argv) {
    if (argc < 2) return fprintf(stderr, "usage: %s URL [OPTION=VALUE...]\n", argv[0]), 64;
    sigset_t quit; /* taken in the loop below; the threads of mpv inherit the mask */
    sigemptyset(&quit);
    sigaddset(&quit, SIGINT);
    sigaddset(&quit, SIGTERM);
    sigprocmask(SIG_BLOCK, &quit, NULL);

    tiered_cache *cache;
    if (tiered_abi() != TIERED_ABI || tiered_cache_open(NULL, &cache) != TIERED_OK) return 1;
    mpv_handle *mpv = mpv_create();
    if (!mpv) return 1;
    for (int i = 2; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (value) *value++ = 0;
        check(mpv_set_option_string(mpv, argv[i], value ? value : "yes"), argv[i]);
    }
    check(mpv_initialize(mpv), "initialize");
    check(mpv_stream_cb_add_ro(mpv, "tiered", cache, open_film), "tiered://");
    size_t length = strlen("tiered://") + strlen(argv[1]) + 1;
    char *uri = malloc(length);
    snprintf(uri, length, "tiered://%s", argv[1]);
    check(mpv_command(mpv, (const char *[]){"loadfile", uri, NULL}), "loadfile");
    free(uri);

    int status = 0;
    for (;;) {
        if (sigtimedwait(&quit, NULL, &(struct timespec){0, 0}) > 0) break;
        mpv_event *event = mpv_wait_event(mpv, 0.1);
        if (event->event_id == MPV_EVENT_SHUTDOWN) break;
        if (event->event_id != MPV_EVENT_END_FILE) continue;
        mpv_event_end_file *end = event->data;
        printf("ended: %s\n", end->reason == MPV_END_FILE_REASON_EOF ? "at the end" : "before it");
        if (end->reason == MPV_END_FILE_REASON_ERROR) status = 1;
        break;
    }
    mpv_terminate_destroy(mpv); /* cancels and closes all streams */
    tiered_cache_release(cache);
    return status;
}
