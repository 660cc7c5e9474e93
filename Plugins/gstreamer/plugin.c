/* Registers tieredcachesrc, above souphttpsrc, whose rank is primary. Nothing is opened here: the plug-in
 * scanner runs this, too. */
#include "source.h"

#ifndef PACKAGE
#define PACKAGE "tieredcache"
#endif

GST_DEBUG_CATEGORY(tieredcachesrc_debug);

static gboolean plugin_init(GstPlugin *plugin) {
    GST_DEBUG_CATEGORY_INIT(tieredcachesrc_debug, "tieredcachesrc", 0, "HTTP source with a cache");
    if (tiered_abi() != TIERED_ABI) return FALSE;
    return gst_element_register(plugin, "tieredcachesrc", GST_RANK_PRIMARY + 16, TIERED_TYPE_SOURCE);
}

GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, tieredcache, "HTTP source that keeps what it has fetched",
                  plugin_init, TIEREDCACHE_VERSION, "MIT/X11", "TieredCache", "https://github.com/")
