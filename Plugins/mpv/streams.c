/* Films through mpv's stream callbacks. Neither an open nor a seek asks the origin, so that mpv, which can cancel
 * neither, ends within a moment: the first read opens the stream, and cancel_film ends that one. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

#define PROTOCOL "tiered"

/* How a film is asked for; kept as long as the process, since mpv may open it again at any time. */
typedef struct manner {
    text_list fields;
    int32_t deadline_ms;
    struct manner *next;
} manner;

typedef struct film {
    tiered_stream *stream;
    char *url;
    bool has_read;   /* a byte */
    bool has_failed; /* mpv asks again and again after an error; it has waited long enough */
    struct film *next;
} film;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static manner *manners; /* the newest first */
static int manner_count;
static film *films; /* those that are open, the newest first */
static char *complaint;

static bool is_same(const manner *a, const text_list *fields, int32_t deadline_ms) {
    if (a->deadline_ms != deadline_ms || a->fields.count != fields->count) return false;
    for (size_t i = 0; i < fields->count; i++)
        if (strcmp(a->fields.items[i], fields->items[i]) != 0) return false;
    return true;
}

static manner *new_manner(const text_list *fields, int32_t deadline_ms) {
    manner *new = calloc(1, sizeof *new);
    if (!new) return NULL;
    bool is_whole = true;
    for (size_t i = 0; i < fields->count; i++) is_whole = is_whole && text_add(&new->fields, fields->items[i]);
    new->deadline_ms = deadline_ms;
    if (is_whole) return new;
    text_empty(&new->fields);
    free(new);
    return NULL;
}

char *streams_url(const char *url, const text_list *fields, int32_t deadline_ms) {
    pthread_mutex_lock(&lock);
    int number = manner_count;
    manner *found = manners;
    while (found && !is_same(found, fields, deadline_ms)) found = found->next, number--;
    if (!found && (found = new_manner(fields, deadline_ms))) {
        found->next = manners;
        manners = found;
        number = ++manner_count;
    }
    pthread_mutex_unlock(&lock);
    return found ? text_format(PROTOCOL "://%d/%s", number, url) : NULL;
}

static int64_t read_film(void *cookie, char *buffer, uint64_t count) {
    film *self = cookie;
    if (self->has_failed) return -1;
    int64_t n = tiered_read(self->stream, buffer, count);
    self->has_read = self->has_read || n > 0;
    self->has_failed = n < 0;
    return n < 0 ? -1 : n;
}

static int64_t seek_film(void *cookie, int64_t offset) {
    film *self = cookie;
    int64_t place = tiered_seek(self->stream, offset, SEEK_SET);
    if (self->has_read) self->has_failed = false;
    return place < 0 ? MPV_ERROR_GENERIC : place;
}

/* mpv asks again and again; the size is known once the first byte has come. */
static int64_t film_size(void *cookie) {
    film *self = cookie;
    int64_t size = tiered_size(self->stream);
    return size < 0 ? MPV_ERROR_UNSUPPORTED : size;
}

static void cancel_film(void *cookie) { tiered_cancel(((film *)cookie)->stream); }

static void close_film(void *cookie) {
    film *self = cookie;
    char text[512];
    int status = tiered_stream_error(self->stream, text, sizeof text);
    pthread_mutex_lock(&lock);
    for (film **place = &films; *place; place = &(*place)->next) {
        if (*place != self) continue;
        *place = self->next;
        break;
    }
    if (status != TIERED_OK && status != TIERED_E_CANCELLED) {
        free(complaint);
        complaint = text_format("%s", text);
    }
    pthread_mutex_unlock(&lock);
    tiered_stream_release(self->stream);
    free(self->url);
    free(self);
}

static int open_film(void *user_data, char *uri, mpv_stream_cb_info *info) {
    plugin *self = user_data;
    char *url;
    long number = strtol(uri + strlen(PROTOCOL "://"), &url, 10);
    if (*url++ != '/' || !self->cache) return MPV_ERROR_LOADING_FAILED;
    film *new = calloc(1, sizeof *new);
    if (!new) return MPV_ERROR_NOMEM;
    pthread_mutex_lock(&lock);
    manner *found = manners;
    for (int left = manner_count - (int)number; found && left > 0; left--) found = found->next;
    pthread_mutex_unlock(&lock);
    /* A manner is never changed nor freed. */
    tiered_request request = {.size = sizeof request, .url = url};
    if (found) {
        request.fields = (const char *const *)found->fields.items;
        request.deadline_ms = found->deadline_ms;
    }
    new->url = strdup(url);
    if (!found || !new->url || tiered_stream_new(self->cache, &request, &new->stream) != TIERED_OK) {
        free(new->url);
        free(new);
        return MPV_ERROR_LOADING_FAILED;
    }
    pthread_mutex_lock(&lock);
    new->next = films;
    films = new;
    pthread_mutex_unlock(&lock);
    *info = (mpv_stream_cb_info){new, read_film, seek_film, film_size, close_film, cancel_film};
    return 0;
}

bool streams_register(plugin *self) {
    return mpv_stream_cb_add_ro && mpv_stream_cb_add_ro(self->mpv, PROTOCOL, self, open_film) >= 0;
}

tiered_stream *streams_open(const char *url) {
    tiered_stream *stream = NULL;
    pthread_mutex_lock(&lock);
    const film *first = NULL;
    for (const film *at = films; at; at = at->next)
        if (!url || strcmp(at->url, url) == 0) first = at;
    if (first) stream = tiered_stream_retain(first->stream);
    pthread_mutex_unlock(&lock);
    return stream;
}

void streams_complain(plugin *self) {
    pthread_mutex_lock(&lock);
    char *text = complaint;
    complaint = NULL;
    pthread_mutex_unlock(&lock);
    if (text) plugin_say(self, text);
    free(text);
}
