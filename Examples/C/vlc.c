/* Plays URL with libVLC: the callbacks of a media read through the cache.
 *
 *   cc vlc.c $(pkg-config --cflags --libs tieredcache libvlc) -o vlc-film
 *   ./vlc-film http://127.0.0.1:8000/film.mp4 [VLC-OPTION...]        (--vout=dummy, for example)
 */
#include <signal.h>
#include <stdio.h>
#include <tieredcache.h>
#include <unistd.h>
#include <vlc/vlc.h>

/* On the input thread of VLC, which may wait. One stream for each media: what stops it is known outside. */
static int open_film(void *stream, void **cookie, uint64_t *size) {
    if (tiered_stream_prepare(stream) != TIERED_OK) return -1;
    tiered_seek(stream, 0, SEEK_SET); /* VLC may open a media again */
    int64_t known = tiered_size(stream);
    *size = known < 0 ? UINT64_MAX : (uint64_t)known;
    *cookie = tiered_stream_retain(stream);
    return *cookie ? 0 : -1;
}

/* VLC takes -1 for the end: main asks tiered_stream_error afterwards. */
static ssize_t read_film(void *stream, unsigned char *buffer, size_t count) {
    int64_t n = tiered_read(stream, buffer, count);
    return n < 0 ? -1 : (ssize_t)n;
}

static int seek_film(void *stream, uint64_t offset) {
    return tiered_seek(stream, (int64_t)offset, SEEK_SET) < 0 ? -1 : 0;
}

static void close_film(void *stream) { tiered_stream_release(stream); }

/* On a thread of VLC: wakes main up. */
static void on_end(const libvlc_event_t *event, void *unused) {
    (void)event;
    (void)unused;
    kill(getpid(), SIGUSR1);
}

int main(int argc, char **argv) {
    if (argc < 2) return fprintf(stderr, "usage: %s URL [VLC-OPTION...]\n", argv[0]), 64;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGPIPE); /* as libVLC asks of its hosts */
    sigprocmask(SIG_BLOCK, &signals, NULL);
    sigdelset(&signals, SIGPIPE);

    tiered_cache *cache;
    tiered_stream *stream;
    tiered_request request = {.size = sizeof request, .url = argv[1]};
    if (tiered_abi() != TIERED_ABI || tiered_cache_open(NULL, &cache) != TIERED_OK) return 1;
    if (tiered_stream_new(cache, &request, &stream) != TIERED_OK) return 1;

    libvlc_instance_t *vlc = libvlc_new(argc - 2, (const char *const *)argv + 2);
    if (!vlc) return 1;
    libvlc_media_t *media =
        libvlc_media_new_callbacks(vlc, open_film, read_film, seek_film, close_film, stream);
    libvlc_media_player_t *player = libvlc_media_player_new_from_media(media);
    libvlc_event_manager_t *events = libvlc_media_player_event_manager(player);
    libvlc_event_attach(events, libvlc_MediaPlayerEndReached, on_end, NULL);
    libvlc_event_attach(events, libvlc_MediaPlayerEncounteredError, on_end, NULL);
    libvlc_media_player_play(player);

    int number;
    sigwait(&signals, &number);
    char text[256];
    int status = tiered_stream_error(stream, text, sizeof text);
    if (status != TIERED_OK) fprintf(stderr, "vlc: %s\n", text);
    int has_ended = libvlc_media_player_get_state(player) == libvlc_Ended;
    printf("ended: %s\n", has_ended && status == TIERED_OK ? "at the end" : "before it");

    tiered_cancel(stream); /* before stop, which waits for a read that is under way, for ever */
    libvlc_media_player_stop(player);
    libvlc_media_player_release(player);
    libvlc_media_release(media);
    libvlc_release(vlc);
    tiered_stream_release(stream);
    tiered_cache_release(cache);
    return number == SIGUSR1 && (!has_ended || status != TIERED_OK) ? 1 : 0;
}
