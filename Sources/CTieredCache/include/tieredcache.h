/* tieredcache.h: a cache for the bytes of URLs, for players: memory, then disk, then the origin.
 *
 * Threads. Every function may be called from any thread. A stream has one cursor and serves one
 * consumer thread; open as many streams as you like, they share transfers. The library calls you
 * through tiered_log_fn alone, on a thread of its own; a log function must call no function of
 * this header. Threads of the library block all signals, but those that tell of a fault of the
 * thread itself (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS) and SIGPROF, which profilers
 * count by.
 *
 * What blocks. Functions marked NETWORK wait for the origin: for a byte at most as long as the
 * deadline of the request says, and at most 200 ms after tiered_cancel, tiered_interrupt or the
 * last release of the stream. Functions marked DISK wait for the disk alone. Those marked with a
 * time wait that long at most. All others never wait. Call no marked one on a thread that must go
 * on.
 *
 * Errors. A negative result is a tiered_status. 0 from a read is the end and nothing else. Trouble
 * of the cache directory is no error: bytes are then delivered and not stored. errno is not used.
 * NULL, a released handle, a negative offset, a count beyond PTRDIFF_MAX, a read of 0 bytes, an
 * unknown flag and a bad URL give TIERED_E_INVALID. Functions that give nothing back ignore such
 * handles. Where the process has no descriptor or thread left, calls fail and it goes on.
 *
 * Ownership. What you pass is copied before the call returns. Text is UTF-8, written into your
 * memory with a 0 at its end, and cut off where it does not fit, maybe within a character. Where
 * the result is the length of the whole, a result >= count says that it was cut; functions that
 * give a status do not tell. buffer may be NULL where count is 0. Handles are
 * counted: each tiered_..._retain asks for one tiered_..._release. Streams and jobs hold their
 * cache, so that the handles may be released in any order. A released handle is never valid again
 * and may still be passed: other threads may come late.
 *
 * Fork. After a fork without exec the child answers TIERED_E_FORKED to everything and releases
 * nothing; a fork before the first tiered_cache_open is harmless. Descriptors close with exec. The
 * child has a share in the lock of the directory: one that ends leaves it to the parent, and one
 * that goes on when the parent has ended without a release keeps it from all others until it ends.
 * _Fork and clone do not tell the library: a child of theirs must call no function of this header.
 *
 * Ends. exit may be called while other threads are in calls; what has not been written by then is
 * fetched again some day. Leave no call by longjmp or an exception, and disable pthread_cancel for
 * a thread that is in one: a call that is left that way keeps its locks.
 *
 * Signals. The library installs no signal handler and changes no disposition. SIGPIPE does not
 * arise, as its threads block it. No function may be called from a signal handler.
 *
 * Unloading. The library stays loaded after dlclose, since its threads remain.
 *
 * Versions. Structs begin with their size: set it to sizeof, and the rest to 0 for the defaults. A
 * library accepts older, shorter structs, and newer, longer ones whose unknown rest is 0. Numbers
 * never change. Compare tiered_abi() with TIERED_ABI before anything else. */
#ifndef TIEREDCACHE_H
#define TIEREDCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIERED_ABI 0

typedef struct tiered_cache tiered_cache;   /* one directory */
typedef struct tiered_stream tiered_stream; /* one cursor in one representation */
typedef struct tiered_job tiered_job;       /* one download that survives the process */
typedef struct tiered_agent tiered_agent;   /* a session with the process that downloads go on in */

typedef enum tiered_status {
    TIERED_OK = 0,
    TIERED_E_INVALID = -1,      /* an argument, the URL, or a seek beyond a known end */
    TIERED_E_NOT_CACHED = -2,   /* not stored; TIERED_CACHE_ONLY, or stored bytes alone will do */
    TIERED_E_NETWORK = -3,      /* no connection or a broken answer, tried until the deadline */
    TIERED_E_HTTP = -4,         /* the final status is 400 or more: tiered_stream_http_status */
    TIERED_E_TIMEOUT = -5,      /* no byte came before the deadline */
    TIERED_E_CHANGED = -6,      /* another representation by now: open a new stream */
    TIERED_E_INTEGRITY = -7,    /* the bytes do not have the digest that the origin promised */
    TIERED_E_CANCELLED = -8,    /* tiered_cancel, or the last release during the call; for good */
    TIERED_E_INTERRUPTED = -9,  /* tiered_interrupt; until tiered_resume */
    TIERED_E_AGAIN = -10,       /* tiered_try_read has nothing yet: wait for tiered_stream_fd */
    TIERED_E_NOT_OWNER = -11,   /* another process owns the directory, storing was the purpose */
    TIERED_E_STORAGE = -12,     /* the disk refused, or the process has no descriptor left */
    TIERED_E_SHUT_DOWN = -13,   /* the cache has been closed */
    TIERED_E_FORKED = -14,      /* this process is a fork of the one that opened the cache */
    TIERED_E_NOT_FOUND = -15,   /* no such entry, field or job */
    TIERED_E_UNKNOWN = -16,     /* the size is not known yet */
    TIERED_E_EXCLUDED = -17     /* a rule leaves the host alone, or it is the proxy's own URL */
} tiered_status;

int tiered_abi(void);
const char *tiered_version(void);           /* "0.1.0"; static memory */
const char *tiered_status_text(int status); /* a short sentence in English; static memory */

/* ---- Caches ---- */

enum {
    TIERED_LOG_NONE = 0,
    TIERED_LOG_ERROR = 1,
    TIERED_LOG_WARNING = 2,
    TIERED_LOG_INFO = 3,
    TIERED_LOG_DEBUG = 4,
    TIERED_LOG_TRACE = 5
};
/* Called with one line at a time, without a line break, secrets left out. Lines are dropped while
 * 1,024 wait, and all where the process has no thread left for them at the open. The log belongs to
 * the open that named it, from its beginning: the lines of a cache go to the functions of all that
 * have opened it. The last tiered_cache_release of the handle of that open waits for those that
 * were logged so far, for 1.5 s. Not called after its return, also while streams or others hold the
 * cache, unless it hung in a call for two seconds then. */
typedef void (*tiered_log_fn)(void *context, int level, const char *line);

typedef struct tiered_options {
    size_t size;
    const char *directory;      /* NULL: $XDG_CACHE_HOME/tieredcache, else ~/.cache/tieredcache;
                                   "": memory only */
    int64_t memory_limit;       /* bytes; 64 MiB */
    int64_t disk_limit;         /* bytes; 2 GiB, at most a tenth of the volume */
    int64_t minimum_free_disk;  /* bytes; 256 MiB, at most a twentieth of the volume; -1: none */
    int32_t maximum_downloads;  /* at once; 6. Of one host at most 6 in any case */
    int32_t log_level;          /* TIERED_LOG_...; 0, TIERED_LOG_NONE: nothing, log being ignored */
    tiered_log_fn log;          /* NULL: nothing is logged */
    void *log_context;
} tiered_options;

/* Opens a cache; options may be NULL. A directory that cannot be used is no error:
 * tiered_storage_status tells. A second open of one directory in a process, by whatever spelling
 * or link, gives the same cache by a handle of its own, with the options of the first; its log is
 * added to the others. A relative directory is resolved now; TIERED_E_INVALID where there is no
 * working directory. TIERED_E_STORAGE where the process has too few descriptors or threads left.
 * A directory that was deleted meanwhile is made anew by the next call that stores something.
 * DISK, and until 4 s after a cache of the directory began to close; if it hangs for longer, the
 * new one takes its place, and stores nothing (TIERED_E_NOT_OWNER) until some seconds after that
 * one has ended. */
int tiered_cache_open(const tiered_options *options, tiered_cache **cache);
/* Gives cache back; NULL for one that was released. */
tiered_cache *tiered_cache_retain(tiered_cache *cache);
/* The last release of all handles, where no stream and no job holds the cache, closes it: what
 * arrived is kept. Up to 2 s, the log function included; what is under way by then ends on its
 * own. */
void tiered_cache_release(tiered_cache *cache);
/* TIERED_OK, TIERED_E_NOT_OWNER or TIERED_E_STORAGE, and why as text. TIERED_E_STORAGE also where
 * the directory was NULL, and the process has neither XDG_CACHE_HOME nor HOME; none is guessed. */
int tiered_storage_status(tiered_cache *cache, char *buffer, size_t count);

typedef struct tiered_statistics { /* counted since the cache was opened, and what is stored now */
    size_t size;
    int64_t memory_hits, disk_hits, misses;
    int64_t bytes_from_memory, bytes_from_disk, bytes_from_origin;
    int64_t bytes_stored, bytes_evicted, blocks_damaged, storage_failures;
    int64_t downloads_started, downloads_finished, downloads_failed, downloads_shared;
    int64_t entries, disk_bytes, disk_limit; /* 0 where there is no directory */
} tiered_statistics;
int tiered_cache_statistics(tiered_cache *cache, tiered_statistics *statistics); /* DISK */

/* ---- Streams ---- */

enum {
    TIERED_CACHE_ONLY = 1,   /* never ask the origin */
    TIERED_RELOAD = 2,       /* ask the origin for all, and store it anew */
    TIERED_PIN = 4,          /* spare the entry from eviction */
    TIERED_NOT_METERED = 8,  /* downloads wait while the network charges for bytes */
    TIERED_BACKGROUND = 16   /* less urgent than what has no such flag */
};

typedef struct tiered_request {
    size_t size;
    const char *url;           /* http or https, absolute */
    const char *key;           /* names the entry in place of the URL (rotating signatures); or NULL */
    const char *const *fields; /* "Name: value", ..., NULL: sent to the origin; or NULL */
    uint32_t flags;            /* TIERED_CACHE_ONLY, ... */
    int32_t deadline_ms;       /* the longest wait for a byte; 30,000; -1: for ever */
    int64_t read_ahead;        /* bytes at most; 8 MiB; -1: none */
} tiered_request;

/* Asks nobody: the first read, or tiered_stream_prepare, opens the stream. */
int tiered_stream_new(tiered_cache *cache, const tiered_request *request, tiered_stream **stream);
tiered_stream *tiered_stream_retain(tiered_stream *stream);
/* The last release ends what other threads still wait for with TIERED_E_CANCELLED. */
void tiered_stream_release(tiered_stream *stream);

/* Waits until type and, where the origin says it, size are known. NETWORK */
int tiered_stream_prepare(tiered_stream *stream);
/* At least 1 byte from the cursor, which moves; 0 at the end. Stored bytes come at once. NETWORK */
int64_t tiered_read(tiered_stream *stream, void *buffer, size_t count);
/* The same from an offset; the cursor stays. 0 beyond the end, too. NETWORK */
int64_t tiered_read_at(tiered_stream *stream, int64_t offset, void *buffer, size_t count);
/* All of count, fewer only at the end. A body of which the origin promised a digest is compared at its
 * end: a wrong one is an error of the read that meets the end, not of one of just the size. NETWORK */
int64_t tiered_read_full_at(tiered_stream *stream, int64_t offset, void *buffer, size_t count);
/* What is there now, from the cursor, which moves; 0 at the end; else TIERED_E_AGAIN, and the byte
 * is fetched. It may read a file that the kernel has to fetch from the disk first. */
int64_t tiered_try_read(tiered_stream *stream, void *buffer, size_t count);
/* A descriptor for poll, epoll and the like, level-triggered: it is readable unless the last
 * tiered_try_read gave TIERED_E_AGAIN and nothing has come since. It is the same at each call.
 * Never read, write or close it; take it out of your set before the last release closes it. */
int tiered_stream_fd(tiered_stream *stream);

#define TIERED_SEEK_SIZE 0x10000 /* as AVSEEK_SIZE: gives the size and moves nothing */
/* Moves the cursor: whence is SEEK_SET, SEEK_CUR, SEEK_END or TIERED_SEEK_SIZE; 0x20000, which is
 * AVSEEK_FORCE, is ignored. Gives the new offset. TIERED_E_INVALID beyond an end that is known;
 * where it is not, reads there give 0. TIERED_E_UNKNOWN where the size is needed. */
int64_t tiered_seek(tiered_stream *stream, int64_t offset, int whence);
/* TIERED_E_UNKNOWN before the opening, and while the origin does not say it; may become known. */
int64_t tiered_size(tiered_stream *stream);
/* Whether a seek costs no wait for the bytes between; false before the opening. */
bool tiered_is_seekable(tiered_stream *stream);

void tiered_cancel(tiered_stream *stream);    /* ends all calls, present and future, for good */
void tiered_interrupt(tiered_stream *stream); /* the same until tiered_resume */
void tiered_resume(tiered_stream *stream);

/* The status of the last call that opened or read and failed, or TIERED_OK, and its text. */
int tiered_stream_error(tiered_stream *stream, char *buffer, size_t count);
/* 200, 404, ...; TIERED_E_UNKNOWN before the origin or the cache has answered. */
int tiered_stream_http_status(tiered_stream *stream);
/* A field of the response, such as Content-Type; several of one name are joined by ", ". */
int64_t tiered_stream_field(tiered_stream *stream, const char *name, char *buffer, size_t count);
/* Which bytes are stored now, for a seek bar: start and end of as many ranges as fit, in order.
 * Gives the number of all ranges. pairs counts ranges, each of which takes two numbers; 0 for the
 * number alone. */
int64_t tiered_stream_stored(tiered_stream *stream, int64_t *bounds, size_t pairs);

/* ---- What plays next, and what stays ---- */

/* Fetches the beginnings of what will probably play next, at most 10,000, the most probable first;
 * bytes_each 0 is 800,000. The list replaces the one before; count 0 ends it. */
int tiered_prefetch(tiered_cache *cache, const char *const *urls, size_t count, int64_t bytes_each);
/* How much the player has ahead, about once a second: prefetching waits below 20,000 ms. -1 says
 * that nothing plays, which is so at first. */
int tiered_prefetch_reserve(tiered_cache *cache, int64_t milliseconds);

/* An entry is named by key, or by url where key is NULL. TIERED_E_NOT_FOUND where there is none. */
int tiered_pin(tiered_cache *cache, const char *url, const char *key, bool pinned); /* DISK */
int tiered_remove(tiered_cache *cache, const char *url, const char *key);           /* DISK */
/* The file of a body that is stored completely, else TIERED_E_NOT_CACHED. Pin it, and change
 * nothing. DISK */
int64_t tiered_file_path(tiered_cache *cache, const char *url, const char *key, char *buffer,
                         size_t count);

/* ---- Downloads that survive the process ---- */

typedef enum tiered_job_state {
    TIERED_JOB_QUEUED = 0,
    TIERED_JOB_RUNNING = 1,
    TIERED_JOB_WAITING_FOR_NETWORK = 2,
    TIERED_JOB_PAUSED = 3,
    TIERED_JOB_CANCELLED = 4,
    TIERED_JOB_FAILED = 5,
    TIERED_JOB_FINISHED = 6
} tiered_job_state;

typedef struct tiered_job_info {
    size_t size;
    int32_t state;             /* tiered_job_state */
    int32_t status;            /* why it failed: tiered_status; TIERED_OK for other states */
    int32_t http_status;       /* for TIERED_E_HTTP, else 0 */
    int32_t attempts;          /* that failed */
    int64_t bytes, total;      /* stored; total is TIERED_E_UNKNOWN until the origin says it */
    int64_t bytes_from_origin; /* over all runs */
    int64_t bytes_per_second;  /* TIERED_E_UNKNOWN at the beginning */
    int32_t lacks_credentials; /* 1: lost in a restart; it needs its fields, or their rules */
    int32_t reserved;          /* 0 */
} tiered_job_info;

/* Fetches all of a body, across failures and restarts. One job for each entry: a second start joins
 * the first, and continues it. The record is on disk when this returns. DISK */
int tiered_job_start(tiered_cache *cache, const tiered_request *request, tiered_job **job);
int tiered_job_find(tiered_cache *cache, const char *identifier, tiered_job **job); /* DISK */
/* Handles of as many jobs as fit, in the order of their starts; release each. Gives the number of
 * all. DISK */
int64_t tiered_job_list(tiered_cache *cache, tiered_job **jobs, size_t count);
/* Continues what ran or waited when the last process ended. Gives their number. DISK */
int64_t tiered_job_resume_all(tiered_cache *cache);
tiered_job *tiered_job_retain(tiered_job *job);
void tiered_job_release(tiered_job *job); /* the download goes on while anything holds the cache */
int64_t tiered_job_identifier(tiered_job *job, char *buffer, size_t count); /* 16 characters */
int64_t tiered_job_url(tiered_job *job, char *buffer, size_t count);
int tiered_job_status(tiered_job *job, tiered_job_info *info);
int tiered_job_error(tiered_job *job, char *buffer, size_t count); /* as tiered_stream_error */
int tiered_job_pause(tiered_job *job);  /* DISK */
int tiered_job_resume(tiered_job *job); /* DISK */
int tiered_job_cancel(tiered_job *job); /* it stays listed, and its bytes stay. DISK */
int tiered_job_remove(tiered_job *job); /* ends and forgets it; its bytes stay. DISK */

/* ---- Downloads that go on while the process is gone ---- */

/* They belong to a process of their own, `tieredcache agent`, and to a session: a name by which the
 * application finds them again, whatever has ended meanwhile. No cache need be open. A download is
 * named by its identifier, of 16 characters. What the agent refuses is TIERED_E_INVALID;
 * tiered_agent_error says why. Calls wait for the agent: AGENT, up to 30 s, and up to 30 s more
 * where it has ended and is started again. */
typedef struct tiered_agent_options {
    size_t size;
    const char *session;   /* 1 to 128 letters, digits, and -._; such as org.example.player */
    const char *directory; /* of the agent's cache; NULL as in tiered_options */
    const char *socket;    /* NULL: that of the directory */
    const char *program;   /* the file of the program tieredcache, to start it; NULL: as PATH has it */
} tiered_agent_options;

/* Attaches to a session; starts the agent where none runs, as a child of nobody, without any
 * descriptor of this process. TIERED_E_STORAGE where that fails, TIERED_E_NOT_OWNER where another
 * process owns the directory. AGENT */
int tiered_agent_open(const tiered_agent_options *options, tiered_agent **agent);
tiered_agent *tiered_agent_retain(tiered_agent *agent);
/* The last release detaches; the downloads go on. Calls that other threads are in end with
 * TIERED_E_CANCELLED or TIERED_E_SHUT_DOWN. */
void tiered_agent_release(tiered_agent *agent);
/* The status of the last call that failed, or TIERED_OK, and its text. */
int tiered_agent_error(tiered_agent *agent, char *buffer, size_t count);

typedef struct tiered_download {
    size_t size;
    const char *const *urls;    /* of one file, NULL behind the last: the second one and those that
                                   follow are used where the first fails */
    const char *const *fields;  /* "Name: value", ..., NULL: sent to the origin; or NULL */
    const char *const *options; /* "dir=/home/me/Films", "out=film.mp4", "require=unmetered", ...,
                                   NULL, by the names of docs/agent-protocol.md; or NULL */
} tiered_download;

/* Begins a download, and writes its identifier. It is on disk when this returns. AGENT */
int64_t tiered_agent_add(tiered_agent *agent, const tiered_download *download, char *buffer,
                         size_t count);

typedef struct tiered_download_info {
    size_t size;
    char identifier[24];       /* with a 0 behind it */
    int32_t state;             /* tiered_job_state */
    int32_t status;            /* why it failed: tiered_status; TIERED_OK for other states */
    int64_t bytes, total;      /* total is TIERED_E_UNKNOWN until the origin says it */
    int64_t bytes_per_second;  /* TIERED_E_UNKNOWN unless it runs */
    int32_t lacks_credentials; /* 1: paused, and needs its secret fields: tiered_agent_resume */
    int32_t reserved;          /* 0 */
} tiered_download_info;

/* The next download that is new, or has changed: first each one that is not acknowledged, as it is
 * now, whatever process has begun it; then the newest state of each, twice a second while bytes
 * arrive. The text is the path of its file, or of one that failed, why. Waits that long for one, -1
 * for ever, 0 not at all: TIERED_E_AGAIN. After another error the next call begins with all anew. */
int tiered_agent_next(tiered_agent *agent, int32_t milliseconds, tiered_download_info *info,
                      char *buffer, size_t count);
/* Forgets one that has ended; its file stays. One that runs is not changed. AGENT */
int tiered_agent_acknowledge(tiered_agent *agent, const char *identifier);
/* Ends one; it stays until it is acknowledged. AGENT */
int tiered_agent_cancel(tiered_agent *agent, const char *identifier);
/* Lets a paused one go on. fields are as in tiered_download, and replace them; or NULL. AGENT */
int tiered_agent_resume(tiered_agent *agent, const char *identifier, const char *const *fields);

/* ---- Rules for hosts ---- */

/* Rules for all that uses the cache from now on: streams, jobs, prefetches, names of entries, and
 * the proxy with all that its playlists name. Each rule is a line, as a file of settings has it:
 *
 *   exclude=HOST ...           TIERED_E_EXCLUDED for streams, jobs and tiered_proxy_url;
 *                              prefetching leaves it out, and playlists lead past the proxy
 *   header=HOST NAME: VALUE    a field that is sent, in place of those of the request
 *   key=HOST PARAMETER ...     parameters of its queries that do not tell the entry (signatures);
 *                              for requests that have no key of their own
 *
 * A host stands for itself and all hosts below it, with or without a dot in front, HOST:PORT for
 * that port alone; * is all. A body that a redirect brings from an excluded host is not stored. A
 * rule adds to those before it; one without a value removes those of its name. The rules replace those of the last call, all at
 * once; at most 10,000, and count 0 is none. Gives count; or, and changes nothing then, the index
 * of the first line that is no rule. */
int64_t tiered_host_rules(tiered_cache *cache, const char *const *rules, size_t count);

/* ---- Playlists, and players that take URLs alone ---- */

/* Serves the cache on 127.0.0.1 until it is closed; port and token stay with the directory. What a
 * player sends that an origin may look at, such as Referer, User-Agent and Cookie, is sent on. Once
 * it runs, a further start changes nothing. Up to 2 s. */
int tiered_proxy_start(tiered_cache *cache);
/* The URL that plays url through the cache; TIERED_E_UNKNOWN before tiered_proxy_start. */
int64_t tiered_proxy_url(tiered_cache *cache, const char *url, char *buffer, size_t count);

#ifdef __cplusplus
}
#endif
#endif
