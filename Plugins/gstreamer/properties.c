/* The properties: those of souphttpsrc, by the same names. What the library cannot do is left to an souphttpsrc
 * (relay.c), which is given all of them. */
#include <gio/gio.h>

#include "source.h"

enum {
    LOCATION = 1,
    IS_LIVE,
    USER_AGENT,
    EXTRA_HEADERS,
    COOKIES,
    TIMEOUT,
    FIRST_DIRECT, /* from here on, what is set makes the film go past the cache */
    METHOD = FIRST_DIRECT,
    PROXY,
    PROXY_ID,
    PROXY_PW,
    USER_ID,
    USER_PW,
    AUTOMATIC_REDIRECT,
    SSL_STRICT,
    SSL_CA_FILE,
    TLS_DATABASE,
    TLS_INTERACTION,
    END_DIRECT,
    COMPRESS = END_DIRECT, /* and from here on, what counts for a relay alone */
    KEEP_ALIVE,
    IRADIO_MODE,
    RETRIES,
    SSL_USE_SYSTEM_CA_FILE,
    END
};
G_STATIC_ASSERT(END <= PROPERTY_LIMIT);

static GParamSpec *specs[END];
static const GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS;

static void set_property(GObject *object, guint number, const GValue *value, GParamSpec *spec) {
    TieredSource *source = TIERED_SOURCE(object);
    if (number == 0 || number >= END) {
        G_OBJECT_WARN_INVALID_PROPERTY_ID(object, number, spec);
        return;
    }
    if (number == LOCATION && g_value_get_string(value)) {
        GError *error = NULL;
        if (!gst_uri_handler_set_uri(GST_URI_HANDLER(object), g_value_get_string(value), &error)) {
            GST_WARNING_OBJECT(object, "%s", error ? error->message : "no URL");
            g_clear_error(&error);
        }
        return;
    }
    if (number == IS_LIVE) gst_base_src_set_live(GST_BASE_SRC(object), g_value_get_boolean(value));
    GST_OBJECT_LOCK(object);
    g_value_copy(value, &source->values[number]);
    GST_OBJECT_UNLOCK(object);
}

static void get_property(GObject *object, guint number, GValue *value, GParamSpec *spec) {
    if (number == 0 || number >= END) {
        G_OBJECT_WARN_INVALID_PROPERTY_ID(object, number, spec);
        return;
    }
    GST_OBJECT_LOCK(object);
    g_value_copy(&TIERED_SOURCE(object)->values[number], value);
    GST_OBJECT_UNLOCK(object);
}

static void text(int number, const char *name, const char *nick, const char *blurb, const char *value) {
    specs[number] = g_param_spec_string(name, nick, blurb, value, flags);
}

static void flag(int number, const char *name, const char *nick, const char *blurb, gboolean value) {
    specs[number] = g_param_spec_boolean(name, nick, blurb, value, flags);
}

void properties_install(GObjectClass *class) {
    class->set_property = set_property;
    class->get_property = get_property;
    text(LOCATION, "location", "Location", "URL to read, http or https", NULL);
    flag(IS_LIVE, "is-live", "Is live", "Act like a live source; nothing is kept then", FALSE);
    text(USER_AGENT, "user-agent", "User-Agent", "User-Agent field of requests",
         "GStreamer tieredcachesrc " TIEREDCACHE_VERSION);
    specs[EXTRA_HEADERS] = g_param_spec_boxed("extra-headers", "Extra headers", "More fields of requests",
                                              GST_TYPE_STRUCTURE, flags);
    specs[COOKIES] = g_param_spec_boxed("cookies", "Cookies", "Cookies of requests", G_TYPE_STRV, flags);
    specs[TIMEOUT] = g_param_spec_uint("timeout", "Timeout",
                                       "Seconds to wait for a byte, with retries (0 = no limit)", 0, 3600, 15,
                                       flags);
    text(METHOD, "method", "Method", "Method of requests; other than GET, nothing is kept", NULL);
    text(PROXY, "proxy", "Proxy", "URL of an HTTP proxy; with one, nothing is kept", "");
    text(PROXY_ID, "proxy-id", "Proxy user", "User name at the proxy", NULL);
    text(PROXY_PW, "proxy-pw", "Proxy password", "Password at the proxy", NULL);
    text(USER_ID, "user-id", "User", "User name at the origin; with one, nothing is kept", NULL);
    text(USER_PW, "user-pw", "Password", "Password at the origin", NULL);
    flag(AUTOMATIC_REDIRECT, "automatic-redirect", "Follow redirects",
         "Follow redirects; where it is off, nothing is kept", TRUE);
    flag(SSL_STRICT, "ssl-strict", "Strict certificates",
         "Refuse bad certificates; where it is off, nothing is kept", TRUE);
    text(SSL_CA_FILE, "ssl-ca-file", "CA file", "File of certificates to trust; with one, nothing is kept", NULL);
    specs[TLS_DATABASE] = g_param_spec_object("tls-database", "TLS database",
                                              "Certificates to trust; with one, nothing is kept",
                                              G_TYPE_TLS_DATABASE, flags);
    specs[TLS_INTERACTION] = g_param_spec_object("tls-interaction", "TLS interaction",
                                                 "Asks for certificates; with one, nothing is kept",
                                                 G_TYPE_TLS_INTERACTION, flags);
    flag(COMPRESS, "compress", "Compress", "Allow content codings of what is not kept", FALSE);
    flag(KEEP_ALIVE, "keep-alive", "Keep alive", "Keep connections for what is not kept", TRUE);
    flag(IRADIO_MODE, "iradio-mode", "Radio", "Ask radio stations for their titles", TRUE);
    specs[RETRIES] = g_param_spec_int("retries", "Retries", "Retries for what is not kept (-1 = no limit)", -1,
                                      G_MAXINT, 3, flags);
    flag(SSL_USE_SYSTEM_CA_FILE, "ssl-use-system-ca-file", "System's certificates",
         "Trust the system's certificates for what is not kept", TRUE);
    g_object_class_install_properties(class, END, specs);
}

void properties_init(TieredSource *source) {
    for (int number = 1; number < END; number++) {
        g_value_init(&source->values[number], G_PARAM_SPEC_VALUE_TYPE(specs[number]));
        g_param_value_set_default(specs[number], &source->values[number]);
    }
}

void properties_clear(TieredSource *source) {
    for (int number = 1; number < END; number++) g_value_unset(&source->values[number]);
    g_clear_pointer(&source->context_headers, gst_structure_free);
}

/* With the object's lock held. */
static gboolean is_set(TieredSource *source, int number) {
    return g_param_values_cmp(specs[number], &source->values[number],
                              (GValue *)g_param_spec_get_default_value(specs[number])) != 0;
}

gchar *properties_location(TieredSource *source) {
    GST_OBJECT_LOCK(source);
    gchar *location = g_value_dup_string(&source->values[LOCATION]);
    GST_OBJECT_UNLOCK(source);
    return location;
}

gboolean properties_go_direct(TieredSource *source) {
    /* souphttpsrc takes its proxy from there. */
    const gchar *proxy = g_getenv("http_proxy");
    gboolean is_direct = proxy && *proxy;
    GST_OBJECT_LOCK(source);
    for (int number = FIRST_DIRECT; number < END_DIRECT; number++) {
        if (!is_set(source, number)) continue;
        const gchar *method = number == METHOD ? g_value_get_string(&source->values[METHOD]) : NULL;
        if (!method || g_ascii_strcasecmp(method, "GET")) is_direct = TRUE;
    }
    if (g_value_get_boolean(&source->values[IS_LIVE])) is_direct = TRUE;
    GST_OBJECT_UNLOCK(source);
    return is_direct;
}

void properties_copy(TieredSource *source, GstElement *target) {
    for (int number = USER_AGENT; number < END; number++) {
        GValue value = G_VALUE_INIT;
        g_value_init(&value, G_PARAM_SPEC_VALUE_TYPE(specs[number]));
        GST_OBJECT_LOCK(source);
        gboolean is_wanted = number == USER_AGENT || is_set(source, number);
        g_value_copy(&source->values[number], &value);
        GST_OBJECT_UNLOCK(source);
        if (is_wanted && g_object_class_find_property(G_OBJECT_GET_CLASS(target), specs[number]->name))
            g_object_set_property(G_OBJECT(target), specs[number]->name, &value);
        g_value_unset(&value);
    }
}

gchar **properties_fields(TieredSource *source) {
    GPtrArray *fields = g_ptr_array_new();
    GST_OBJECT_LOCK(source);
    const gchar *agent = g_value_get_string(&source->values[USER_AGENT]);
    const GstStructure *extra = g_value_get_boxed(&source->values[EXTRA_HEADERS]);
    gchar **cookies = g_value_get_boxed(&source->values[COOKIES]);
    if (agent && *agent) g_ptr_array_add(fields, g_strconcat("User-Agent: ", agent, NULL));
    if (source->context_headers) headers_append(fields, source->context_headers);
    if (extra) headers_append(fields, extra);
    if (cookies && *cookies) {
        gchar *joined = g_strjoinv("; ", cookies);
        g_ptr_array_add(fields, g_strconcat("Cookie: ", joined, NULL));
        g_free(joined);
    }
    GST_OBJECT_UNLOCK(source);
    g_ptr_array_add(fields, NULL);
    return (gchar **)g_ptr_array_free(fields, FALSE);
}

gint properties_deadline(TieredSource *source) {
    GST_OBJECT_LOCK(source);
    guint seconds = g_value_get_uint(&source->values[TIMEOUT]);
    GST_OBJECT_UNLOCK(source);
    return seconds ? (gint)seconds * 1000 : -1;
}

/* ---- GstURIHandler ---- */

static GstURIType uri_type(GType type) {
    (void)type;
    return GST_URI_SRC;
}

static const gchar *const *uri_protocols(GType type) {
    (void)type;
    static const gchar *protocols[] = {"http", "https", NULL};
    return protocols;
}

static gchar *uri_get(GstURIHandler *handler) { return properties_location(TIERED_SOURCE(handler)); }

/* A URL that is refused is GStreamer's next element's, which is souphttpsrc. */
static gboolean uri_set(GstURIHandler *handler, const gchar *uri, GError **error) {
    TieredSource *source = TIERED_SOURCE(handler);
    if (!cache_takes(uri)) {
        g_set_error(error, GST_URI_ERROR, GST_URI_ERROR_UNSUPPORTED_PROTOCOL, "Settings leave this to others, or it is of the cache's own proxy");
        return FALSE;
    }
    GST_OBJECT_LOCK(source);
    g_value_set_string(&source->values[LOCATION], uri);
    GST_OBJECT_UNLOCK(source);
    g_object_notify_by_pspec(G_OBJECT(source), specs[LOCATION]);
    return TRUE;
}

void properties_uri_handler(gpointer interface, gpointer data) {
    (void)data;
    GstURIHandlerInterface *handler = interface;
    handler->get_type = uri_type;
    handler->get_protocols = uri_protocols;
    handler->get_uri = uri_get;
    handler->set_uri = uri_set;
}
