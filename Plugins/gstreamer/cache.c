/* What people have set (Plugins/common/settings.h), and the one cache of the process. */
#include "source.h"

#include <settings.h>
#include <stdlib.h>
#include <string.h>

static GMutex lock;
static settings given; /* read once, and never changed */
static tiered_cache *shared;
static gchar *proxied; /* how proxied URLs begin */

static void complain(void *context, const char *text) {
    (void)context;
    GST_WARNING("%s", text);
}

static const settings *settings_of_all(void) {
    static gsize is_read;
    if (g_once_init_enter(&is_read)) {
        settings_begin(&given, complain, NULL);
        g_once_init_leave(&is_read, 1);
    }
    return &given;
}

/* Lines of the library, for GST_DEBUG=tieredcachesrc:4 and the like. */
static void log_line(void *context, int level, const char *line) {
    (void)context;
    static const GstDebugLevel levels[] = {GST_LEVEL_NONE, GST_LEVEL_ERROR, GST_LEVEL_WARNING,
                                           GST_LEVEL_INFO, GST_LEVEL_DEBUG, GST_LEVEL_TRACE};
    GST_CAT_LEVEL_LOG(tieredcachesrc_debug, levels[CLAMP(level, 0, 5)], NULL, "%s", line);
}

/* When the process ends in order, what has arrived is kept. The plug-in stays loaded until then. */
static void release(void) {
    g_mutex_lock(&lock);
    tiered_cache *cache = shared;
    shared = NULL;
    g_mutex_unlock(&lock);
    tiered_cache_release(cache);
}

tiered_cache *cache_shared(void) {
    static gboolean is_registered;
    const settings *set = settings_of_all();
    g_mutex_lock(&lock);
    if (!shared) {
        int status = settings_open(set, log_line, NULL, &shared);
        if (status != TIERED_OK) {
            GST_WARNING("there is no cache: %s", tiered_status_text(status));
            shared = NULL;
        } else if (!is_registered) {
            is_registered = atexit(release) == 0;
        }
    }
    tiered_cache *cache = shared;
    g_mutex_unlock(&lock);
    return cache;
}

gboolean cache_takes(const gchar *url) { return settings_take(settings_of_all(), url); }

gchar *cache_key(const gchar *url) {
    char *key = settings_key(settings_of_all(), url);
    gchar *copy = g_strdup(key);
    free(key);
    return copy;
}

void cache_fields(const gchar *url, GPtrArray *fields) {
    text_list list = {NULL, 0};
    settings_fields(settings_of_all(), url, &list);
    for (size_t i = 0; i < list.count; i++) g_ptr_array_add(fields, g_strdup(list.items[i]));
    text_empty(&list);
}

gchar *cache_proxied(tiered_cache *cache, const gchar *url) {
    char *text = settings_proxied(cache, url);
    gchar *copy = g_strdup(text);
    free(text);
    return copy;
}

gboolean cache_owns(const gchar *url) {
    g_mutex_lock(&lock);
    if (shared && !proxied) {
        char text[1024];
        int64_t length = tiered_proxy_url(shared, "http://x/", text, sizeof text);
        char *path = length > 0 && length < (int64_t)sizeof text ? strchr(text + strlen("http://"), '/') : NULL;
        if (path) proxied = g_strndup(text, path + 1 - text);
    }
    gboolean owns = proxied && g_str_has_prefix(url, proxied);
    g_mutex_unlock(&lock);
    return owns;
}
