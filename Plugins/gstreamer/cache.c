/* What people have set (Plugins/common/settings.h), and the one cache of the process. */
#include "source.h"

#include <settings.h>
#include <stdlib.h>

static GMutex lock;
static settings given; /* read once */
static tiered_cache *shared;

static void complain(void *context, const char *text) {
    (void)context;
    GST_WARNING("%s", text);
}

static settings *settings_of_all(void) {
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
    settings *set = settings_of_all();
    g_mutex_lock(&lock);
    if (!shared) {
        int status = settings_open(set, log_line, NULL, complain, NULL, &shared);
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

gboolean cache_takes(const gchar *url) {
    const settings *set = settings_of_all();
    tiered_cache *cache = set->enabled ? cache_shared() : NULL;
    /* What no cache takes is relayed. */
    return set->enabled && (!cache || settings_take(set, cache, url));
}

gchar *cache_proxied(tiered_cache *cache, const gchar *url) {
    char *text = settings_proxied(cache, url);
    gchar *copy = g_strdup(text);
    free(text);
    return copy;
}
