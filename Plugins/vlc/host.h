/* The cache of a process of VLC, for all its inputs. */
#ifndef PLUGIN_HOST_H
#define PLUGIN_HOST_H

#include <vlc_common.h>

#include "settings.h"

typedef struct host {
    settings given;
    tiered_cache *cache;
} host;

/* Opens the cache at the first call, by what is set then. NULL where it is switched off or cannot be opened.
 * It stays open until the process ends: its proxy serves playlists that were opened before. */
const host *host_of(vlc_object_t *object);

#endif
