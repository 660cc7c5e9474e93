/* One opened URL. What the origin says decides which way its bytes come:
 *
 *   a playlist                     relayed from the proxy, whose URL its parts are resolved against
 *   no length: live, radio         relayed from the origin; nothing stored is removed
 *   a page, or data of a program   the same
 *   what the cache cannot do       the same
 *   anything else                  from the cache
 *
 * A thread waits for the origin, since elements are started on the thread of the application. It ends at
 * latest 200 ms after film_close, which does not wait for it. */
#include <string.h>
#include <text.h>

#include "source.h"

static gboolean is_playlist_type(const gchar *type) {
    return g_str_has_suffix(type, "mpegurl") || g_str_equal(type, "application/dash+xml");
}

/* Pages, and what programs say to each other. */
static gboolean is_no_media_type(const gchar *type) {
    return g_str_equal(type, "text/html") || g_str_equal(type, "application/xhtml+xml") ||
           g_str_equal(type, "application/json") || g_str_equal(type, "text/javascript") ||
           g_str_equal(type, "application/javascript") || g_str_equal(type, "multipart/x-mixed-replace");
}

/* Content-Type without its parameters, in small letters; to be freed. */
static gchar *content_type(tiered_stream *stream) {
    char text[256];
    if (tiered_stream_field(stream, "Content-Type", text, sizeof text) < 0) return g_strdup("");
    text[strcspn(text, "; \t,")] = 0;
    return g_ascii_strdown(text, -1);
}

static void decide(Film *film, Way way, gchar *relay_url, int status) {
    char text[512] = "";
    if (film->stream && way == WAY_NONE) tiered_stream_error(film->stream, text, sizeof text);
    g_mutex_lock(&film->lock);
    film->relay_url = relay_url;
    film->status = status;
    film->text = g_strdup(*text ? text : tiered_status_text(status));
    film->http_status = film->stream ? tiered_stream_http_status(film->stream) : 0;
    film->way = way;
    if (film->is_flushing && film->stream) tiered_interrupt(film->stream);
    g_cond_broadcast(&film->changed);
    g_mutex_unlock(&film->lock);
}

static void relay(Film *film, gchar *url) { decide(film, WAY_RELAY, url ? url : g_strdup(film->url), TIERED_OK); }

static void open_stream(Film *film) {
    int status = tiered_stream_prepare(film->stream);
    if (status == TIERED_E_HTTP || status == TIERED_E_NETWORK || status == TIERED_E_TIMEOUT ||
        status == TIERED_E_CANCELLED || status == TIERED_E_NOT_CACHED)
        return decide(film, WAY_NONE, NULL, status);
    /* The cache has trouble of its own, which is none of the player's. */
    if (status != TIERED_OK) return relay(film, NULL);
    gchar *type = content_type(film->stream);
    if (is_playlist_type(type)) {
        tiered_cancel(film->stream);
        relay(film, cache_proxied(film->cache, film->url));
    } else if (tiered_size(film->stream) < 0 || is_no_media_type(type)) {
        tiered_cancel(film->stream);
        relay(film, NULL);
    } else {
        decide(film, WAY_CACHE, NULL, TIERED_OK);
    }
    g_free(type);
}

static gpointer opening(gpointer data) {
    Film *film = data;
    if (film->is_playlist)
        relay(film, cache_proxied(film->cache, film->url));
    else
        open_stream(film);
    film_unref(film);
    return NULL;
}

Film *film_open(const FilmRequest *wanted) {
    Film *film = g_new0(Film, 1);
    film->references = 1;
    film->url = g_strdup(wanted->url);
    g_mutex_init(&film->lock);
    g_cond_init(&film->changed);
    film->cache = wanted->is_direct ? NULL : cache_shared();
    if (!film->cache) {
        relay(film, NULL);
        return film;
    }
    film->is_playlist = url_is_playlist(film->url);
    tiered_request request = {.size = sizeof request,
                              .url = film->url,
                              .fields = (const char *const *)wanted->fields,
                              .deadline_ms = wanted->deadline};
    if (!film->is_playlist && tiered_stream_new(film->cache, &request, &film->stream) != TIERED_OK) {
        film->stream = NULL;
        relay(film, NULL);
        return film;
    }
    GThread *thread = g_thread_try_new("tieredcachesrc", opening, film_ref(film), NULL);
    if (thread) {
        g_thread_unref(thread);
    } else {
        film_unref(film);
        relay(film, NULL);
    }
    return film;
}

void film_close(Film *film) {
    g_mutex_lock(&film->lock);
    film->is_closed = TRUE;
    if (film->stream) tiered_cancel(film->stream);
    g_cond_broadcast(&film->changed);
    g_mutex_unlock(&film->lock);
    film_unref(film);
}

Film *film_ref(Film *film) {
    g_atomic_int_inc(&film->references);
    return film;
}

void film_unref(Film *film) {
    if (!g_atomic_int_dec_and_test(&film->references)) return;
    tiered_stream_release(film->stream);
    g_mutex_clear(&film->lock);
    g_cond_clear(&film->changed);
    g_free(film->relay_url);
    g_free(film->text);
    g_free(film->url);
    g_free(film);
}

Way film_wait(Film *film, gint64 end) {
    g_mutex_lock(&film->lock);
    while (film->way == WAY_UNKNOWN && !film->is_flushing && !film->is_closed) {
        if (end < 0)
            g_cond_wait(&film->changed, &film->lock);
        else if (!g_cond_wait_until(&film->changed, &film->lock, end))
            break;
    }
    Way way = film->way;
    g_mutex_unlock(&film->lock);
    return way;
}

void film_flush(Film *film, gboolean is_flushing) {
    g_mutex_lock(&film->lock);
    film->is_flushing = is_flushing;
    /* Not during the opening, which other threads may wait for and which goes on. */
    if (film->stream && film->way == WAY_CACHE) {
        if (is_flushing)
            tiered_interrupt(film->stream);
        else
            tiered_resume(film->stream);
    }
    g_cond_broadcast(&film->changed);
    g_mutex_unlock(&film->lock);
}

gboolean film_is_flushing(Film *film) {
    g_mutex_lock(&film->lock);
    gboolean is_flushing = film->is_flushing;
    g_mutex_unlock(&film->lock);
    return is_flushing;
}
