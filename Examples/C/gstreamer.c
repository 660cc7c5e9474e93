/* Plays URL with GStreamer's playbin: an appsrc in random-access mode reads through the cache.
 *
 *   cc gstreamer.c $(pkg-config --cflags --libs tieredcache gstreamer-app-1.0) -o gst-film
 *   ./gst-film http://127.0.0.1:8000/film.mp4 [SINK]                 (fakesink, for example)
 */
#include <glib-unix.h>
#include <gst/app/gstappsrc.h>
#include <gst/gst.h>
#include <stdio.h>
#include <tieredcache.h>

typedef struct {
    tiered_stream *stream;
    guint64 place; /* where the next bytes are wanted; of the thread of appsrc */
    GMainLoop *loop;
    GstElement *player;
    int status;
} Film;

/* On the thread of appsrc, which may wait. In random-access mode `length` is just what is wanted. */
static void need_data(GstAppSrc *source, guint length, gpointer user_data) {
    Film *film = user_data;
    gsize count = length == (guint)-1 ? 65536 : length;
    guint8 *bytes = g_malloc(count);
    int64_t n = tiered_read_full_at(film->stream, film->place, bytes, count);
    if (n > 0) {
        GstBuffer *buffer = gst_buffer_new_wrapped_full(0, bytes, count, 0, n, bytes, g_free);
        GST_BUFFER_OFFSET(buffer) = film->place;
        film->place += n;
        GST_BUFFER_OFFSET_END(buffer) = film->place;
        gst_app_src_push_buffer(source, buffer);
        return;
    }
    g_free(bytes);
    if (n == TIERED_E_CANCELLED || n == TIERED_E_INTERRUPTED) return; /* appsrc is being flushed */
    if (n < 0) {
        char text[256];
        tiered_stream_error(film->stream, text, sizeof text);
        GST_ELEMENT_ERROR(source, RESOURCE, READ, ("%s", text), (NULL));
    }
    gst_app_src_end_of_stream(source);
}

static gboolean seek_data(GstAppSrc *source, guint64 offset, gpointer film) {
    (void)source;
    ((Film *)film)->place = offset;
    return TRUE;
}

static void source_setup(GstElement *player, GstElement *source, gpointer user_data) {
    (void)player;
    Film *film = user_data;
    GstAppSrcCallbacks callbacks = {.need_data = need_data, .seek_data = seek_data};
    bool can_seek = tiered_is_seekable(film->stream);
    g_object_set(source, "format", GST_FORMAT_BYTES, "stream-type",
                 can_seek ? GST_APP_STREAM_TYPE_RANDOM_ACCESS : GST_APP_STREAM_TYPE_STREAM, NULL);
    int64_t size = tiered_size(film->stream);
    if (size >= 0) gst_app_src_set_size(GST_APP_SRC(source), size);
    gst_app_src_set_callbacks(GST_APP_SRC(source), &callbacks, film, NULL);
}

static gboolean on_message(GstBus *bus, GstMessage *message, gpointer user_data) {
    (void)bus;
    Film *film = user_data;
    if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        GError *error;
        gst_message_parse_error(message, &error, NULL);
        fprintf(stderr, "gstreamer: %s\n", error->message);
        g_error_free(error);
        film->status = 1;
        g_main_loop_quit(film->loop);
    } else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS) {
        printf("ended: at the end\n");
        g_main_loop_quit(film->loop);
    }
    return G_SOURCE_CONTINUE;
}

static gboolean on_signal(gpointer film) {
    g_main_loop_quit(((Film *)film)->loop);
    return G_SOURCE_REMOVE;
}

static gboolean play(gpointer player) {
    gst_element_set_state(player, GST_STATE_PLAYING);
    return G_SOURCE_REMOVE;
}

/* Type and size are wanted before playing: a thread of its own waits for them, not the main loop. */
static gpointer prepare(gpointer user_data) {
    Film *film = user_data;
    if (tiered_stream_prepare(film->stream) != TIERED_E_CANCELLED) g_idle_add(play, film->player);
    return NULL;
}

int main(int argc, char **argv) {
    gst_init(&argc, &argv);
    if (argc < 2) return fprintf(stderr, "usage: %s URL [SINK]\n", argv[0]), 64;
    tiered_cache *cache;
    Film film = {.loop = g_main_loop_new(NULL, FALSE)};
    tiered_request request = {.size = sizeof request, .url = argv[1]};
    if (tiered_abi() != TIERED_ABI || tiered_cache_open(NULL, &cache) != TIERED_OK) return 1;
    if (tiered_stream_new(cache, &request, &film.stream) != TIERED_OK) return 1;

    GstElement *player = film.player = gst_element_factory_make("playbin", NULL);
    g_object_set(player, "uri", "appsrc://", NULL);
    for (int i = 0; argc > 2 && i < 2; i++)
        g_object_set(player, i ? "audio-sink" : "video-sink", gst_element_factory_make(argv[2], NULL),
                     NULL);
    g_signal_connect(player, "source-setup", G_CALLBACK(source_setup), &film);
    GstBus *bus = gst_element_get_bus(player);
    guint watch = gst_bus_add_watch(bus, on_message, &film);
    gst_object_unref(bus);
    g_unix_signal_add(SIGINT, on_signal, &film);
    g_unix_signal_add(SIGTERM, on_signal, &film);
    GThread *preparing = g_thread_new("prepare", prepare, &film);
    g_main_loop_run(film.loop);

    /* appsrc cannot stop a callback that waits, so that the stream has to end before the player. A
     * flushing seek of the player is the same with tiered_interrupt before and tiered_resume after. */
    tiered_cancel(film.stream);
    g_thread_join(preparing);
    gst_element_set_state(player, GST_STATE_NULL);
    g_source_remove(watch);
    gst_object_unref(player);
    g_main_loop_unref(film.loop);
    tiered_stream_release(film.stream);
    tiered_cache_release(cache);
    return film.status;
}
