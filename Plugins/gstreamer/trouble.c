/* Statuses of the library as errors of GStreamer, with the details that souphttpsrc gives. */
#include "source.h"

static GstResourceError code_of(int status, int http_status, gboolean is_open) {
    if (status == TIERED_E_HTTP && (http_status == 404 || http_status == 410)) return GST_RESOURCE_ERROR_NOT_FOUND;
    if (status == TIERED_E_HTTP &&
        (http_status == 401 || http_status == 402 || http_status == 403 || http_status == 407))
        return GST_RESOURCE_ERROR_NOT_AUTHORIZED;
    return is_open ? GST_RESOURCE_ERROR_READ : GST_RESOURCE_ERROR_OPEN_READ;
}

GstFlowReturn trouble(GstBaseSrc *base, Film *film, int status, gboolean is_open) {
    if (status == TIERED_E_INTERRUPTED || status == TIERED_E_CANCELLED) return GST_FLOW_FLUSHING;
    char text[512] = "";
    if (is_open) tiered_stream_error(film->stream, text, sizeof text);
    const gchar *message = *text ? text : film->text ? film->text : tiered_status_text(status);
    int known = is_open ? tiered_stream_http_status(film->stream) : film->http_status;
    guint http_status = status == TIERED_E_HTTP && known > 0 ? (guint)known : 0;
    GstResourceError code = code_of(status, (int)http_status, is_open);
    gchar *debug = g_strdup_printf("%s (%d), HTTP status %u, URL: %s", tiered_status_text(status), status,
                                   http_status, film->url);
    gst_element_message_full_with_details(
        GST_ELEMENT(base), GST_MESSAGE_ERROR, GST_RESOURCE_ERROR, code, g_utf8_make_valid(message, -1), debug,
        __FILE__, GST_FUNCTION, __LINE__,
        gst_structure_new("details", "http-status-code", G_TYPE_UINT, http_status, NULL));
    return GST_FLOW_ERROR;
}
