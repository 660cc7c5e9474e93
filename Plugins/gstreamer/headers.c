/* Fields of the request from structures, and fields of the answer as souphttpsrc tells them. */
#include <stdlib.h>
#include <string.h>

#include "source.h"

static void append_value(GPtrArray *fields, const gchar *name, const GValue *value) {
    GValue text = G_VALUE_INIT;
    g_value_init(&text, G_TYPE_STRING);
    if (g_value_transform(value, &text) && g_value_get_string(&text))
        g_ptr_array_add(fields, g_strconcat(name, ": ", g_value_get_string(&text), NULL));
    g_value_unset(&text);
}

static gboolean append_field(GQuark id, const GValue *value, gpointer fields) {
    const gchar *name = g_quark_to_string(id);
    if (GST_VALUE_HOLDS_STRUCTURE(value)) {
        if (g_str_equal(name, "request-headers") || g_str_equal(name, "extra-headers"))
            headers_append(fields, gst_value_get_structure(value));
    } else if (GST_VALUE_HOLDS_ARRAY(value)) {
        for (guint i = 0; i < gst_value_array_get_size(value); i++)
            append_value(fields, name, gst_value_array_get_value(value, i));
    } else if (GST_VALUE_HOLDS_LIST(value)) {
        for (guint i = 0; i < gst_value_list_get_size(value); i++)
            append_value(fields, name, gst_value_list_get_value(value, i));
    } else {
        append_value(fields, name, value);
    }
    return TRUE;
}

void headers_append(GPtrArray *fields, const GstStructure *headers) {
    gst_structure_foreach(headers, append_field, fields);
}

static void set_text(GstStructure *structure, const gchar *name, const gchar *text) {
    if (g_utf8_validate(text, -1, NULL)) gst_structure_set(structure, name, G_TYPE_STRING, text, NULL);
}

GstStructure *headers_structure(Film *film, gchar **request_fields) {
    static const gchar *const names[] = {"Content-Type", "Content-Length", "Content-Range", "Content-Location",
                                         "ETag", "Last-Modified", "Date", "Expires", "Cache-Control", "Server",
                                         "Accept-Ranges", "Age", "Content-Disposition", "Cache-Status"};
    GstStructure *request = gst_structure_new_empty("request-headers");
    GstStructure *response = gst_structure_new_empty("response-headers");
    for (gchar **field = request_fields; *field; field++) {
        gchar **parts = g_strsplit(*field, ": ", 2);
        if (parts[0] && parts[1]) set_text(request, parts[0], parts[1]);
        g_strfreev(parts);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        char text[1024];
        int64_t length = tiered_stream_field(film->stream, names[i], text, sizeof text);
        if (length >= 0 && length < (int64_t)sizeof text) set_text(response, names[i], text);
    }
    GstStructure *headers =
        gst_structure_new("http-headers", "uri", G_TYPE_STRING, film->url, "http-status-code", G_TYPE_UINT,
                          (guint)MAX(film->http_status, 0), "request-headers", GST_TYPE_STRUCTURE, request,
                          "response-headers", GST_TYPE_STRUCTURE, response, NULL);
    gst_structure_free(request);
    gst_structure_free(response);
    return headers;
}

/* A parameter of Content-Type, or what holds without it. */
static gint parameter(const gchar *type, const gchar *name, gint otherwise) {
    gchar **parts = g_strsplit(type, ";", -1);
    gint number = otherwise;
    gsize length = strlen(name);
    for (gchar **part = parts + 1; parts[0] && *part; part++) {
        const gchar *text = g_strstrip(*part);
        if (!g_ascii_strncasecmp(text, name, length) && text[length] == '=')
            number = (gint)CLAMP(strtol(text + length + 1, NULL, 10), 0, G_MAXINT);
    }
    g_strfreev(parts);
    return number;
}

GstCaps *headers_caps(Film *film) {
    char type[256];
    if (tiered_stream_field(film->stream, "Content-Type", type, sizeof type) < 0) return NULL;
    if (g_ascii_strncasecmp(type, "audio/L16", 9) || (type[9] && !strchr("; \t", type[9]))) return NULL;
    gint channels = parameter(type, "channels", 2), rate = parameter(type, "rate", 44100);
    if (channels < 1 || channels > 63 || rate < 1) return NULL;
    return gst_caps_new_simple("audio/x-unaligned-raw", "format", G_TYPE_STRING, "S16BE", "layout",
                               G_TYPE_STRING, "interleaved", "channels", G_TYPE_INT, channels, "rate",
                               G_TYPE_INT, rate, NULL);
}
