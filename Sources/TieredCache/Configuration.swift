public import FoundationEssentials
public import HTTPTypes
public import Logging
package import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

extension MediaCache {
    /// How a cache is set up: limits, directory, policies.
    ///
    /// A value: the cache takes a copy when it is opened, later changes have no effect on it. All
    /// limits are on by default.
    public struct Configuration: Sendable {
        /// Where the disk tier lives, a `file` URL; nil for a cache in memory only.
        ///
        /// By default ``defaultDirectory``.
        public var directory: URL? {
            get { path.map { URL(file: $0, directoryHint: .isDirectory) } }
            set { path = newValue.map { FilePath(fileURL: $0) ?? "" } }
        }
        /// ``directory`` as a path; empty for a URL that names no file of this machine.
        package var path: FilePath?
        /// The most that the memory tier may hold, in bytes; 64 MiB by default.
        public var memoryLimit: Int64 = 64 << 20
        /// The most that the disk tier may occupy, in bytes allocated for files; 2 GiB by default.
        ///
        /// Without a value set here at most a tenth of the volume is used.
        public var diskLimit: Int64 {
            get { chosenDiskLimit ?? 2 << 30 }
            set { chosenDiskLimit = newValue }
        }
        /// What the disk tier leaves free on the volume, in bytes.
        ///
        /// By default nil: the smaller of 256 MiB and a twentieth of the volume. Below it nothing
        /// is stored and everything is delivered.
        public var minimumFreeDisk: Int64?
        /// How many downloads run at once; 6 by default.
        ///
        /// What counts is a download whose bytes may come: neither a reader that has stopped, nor a
        /// request with content (``maximumUploads``), nor, where something plays and waits, a
        /// request that the origin has not begun to answer.
        public var maximumDownloads = 6
        /// How many downloads run at once for one host, those included that have not been answered;
        /// 6 by default.
        ///
        /// Below ``maximumDownloads`` one host can never have all of them.
        public var maximumDownloadsPerHost = 6
        /// How many requests with content a reverse proxy forwards at once; 6 by default.
        public var maximumUploads = 6
        /// Whether the rules of a shared cache apply instead of a private one's (RFC 9111 §1).
        public var isShared = false
        /// How many attempts in a row may bring nothing before a download fails; 5 by default.
        public var retries = 5
        /// How long to wait for a byte before an attempt counts as failed; 30 s by default.
        ///
        /// Time without a waiting reader does not count.
        public var timeout: Duration = .seconds(30)
        /// How long to wait for a connection; 10 s by default.
        public var connectTimeout: Duration = .seconds(10)
        /// How fast downloads may be; without limits by default.
        public var bandwidth = BandwidthLimits()
        /// The most bytes that one request asks for; nil, the default, for all that is missing.
        ///
        /// For origins that throttle long responses: one that is caught at it, because its rate
        /// collapses, is asked in pieces by itself for an hour. A body without a strong validator
        /// is fetched whole.
        public var maximumRequestLength: Int64?
        /// How many requests bring one large body at the same time, for download jobs; 1 by
        /// default.
        ///
        /// Parts are at least 16 MiB long. Origins without ranges or strong validators get one
        /// request.
        public var maximumSegments = 1
        /// What watches the network; nil for nothing.
        ///
        /// By default ``RouteMonitor`` on Linux, `NWPathMonitor` on Apple's systems. It is asked
        /// from the first download on that leaves this machine.
        public var networkMonitor: (any NetworkMonitor)? = MediaCache.Configuration
            .defaultNetworkMonitor
        /// Observes what is asked of origins; nil, the default, for nothing.
        package var observer: (any OriginObserver)?
        /// Asked for a fresh URL where the origin answers 401, 403 or 410: signatures expire.
        ///
        /// Gets the request and the status, gives an absolute URL, or nil where there is none. The
        /// bytes that are stored are kept if the fresh URL leads to the same representation.
        public var urlResolver: (@Sendable (CacheRequest, Int) async -> String?)?
        /// Whether redirects from elsewhere to this machine (loopback) or the local link are
        /// followed; false by default.
        ///
        /// Services there often trust every client, and an origin could read their responses. From
        /// an origin on this machine they are followed in any case.
        public var followsRedirectsInside = false
        /// The request fields that speak for a user, as keys and tokens do.
        ///
        /// They are never written down, so that a download job that needs them waits for them after
        /// a restart, and a redirect does not carry them to another origin. By default
        /// ``commonSecretFields``.
        public var secretFields = MediaCache.Configuration.commonSecretFields
        /// The freshness lifetime of a response without explicit expiration; nil for the heuristic
        /// of RFC 9111 §4.2.2.
        public var applicationLifetime: Duration?
        /// Whether the memory tier shrinks while the machine is short of memory; true by default.
        public var respondsToMemoryPressure = true
        /// Where log messages go; nowhere by default.
        ///
        /// They hold no userinfo, query, authorization or cookie.
        public var logger = Logger(label: "tieredcache") { _ in SwiftLogNoOpLogHandler() }
        /// Whether sums and events are kept with the directory, for
        /// ``MediaCache/lifetimeStatistics()`` and ``MediaCache/recordedEvents(for:since:)``; true
        /// by default.
        ///
        /// They take at most 2 MiB, and a 256th of ``diskLimit``. They name URLs without userinfo
        /// and query.
        public var keepsHistory = true
        /// What sends requests; nil for the built-in HTTP client (package trait `HTTPClient`).
        public var transport: (any Transport)?
        /// Where time comes from.
        public var timeSource: any TimeSource = SystemTimeSource()

        /// How many files of entries stay open that nothing reads; nil for the store's default.
        package var maximumIdleFiles: Int?
        /// What requests say in `Via` that players have made (RFC 9110 §7.6.3); nil where they are
        /// the application's own.
        package var via: String?
        /// Whether the directory is read through, and swept, as soon as the cache is opened;
        /// otherwise the first call that needs it does.
        package var readsDirectoryOnOpening = true
        /// Whether the directory is opened for reading only: calls that need an owner throw
        /// ``CacheError/Code/notOwner``.
        package var opensForReading = false
        /// The limit that was set, or nil where the default is to follow the size of the volume.
        package private(set) var chosenDiskLimit: Int64?

        /// `Authorization`, `Cookie`, `Proxy-Authorization`, and the fields in which services are
        /// known to take keys and tokens.
        public static let commonSecretFields: Set<HTTPField.Name> = Set(
            [.authorization, .cookie, .proxyAuthorization]
                + [
                    "Api-Key", "X-Api-Key", "X-Auth-Token", "X-Access-Token", "X-Authorization",
                    "X-Amz-Security-Token", "X-Goog-Api-Key", "X-Csrf-Token", "Private-Token",
                ].compactMap { HTTPField.Name($0) }
        )

        /// Creates a configuration with the defaults, in the default directory.
        public init() {
            path = Self.defaultPath
        }

        /// Creates a configuration with the defaults.
        ///
        /// - Parameter directory: where the disk tier lives; nil for a cache in memory only.
        public init(directory: URL?) {
            self.directory = directory
        }

        package init(path: FilePath) {
            self.path = path
        }

        /// `$XDG_CACHE_HOME/tieredcache`, or `~/.cache/tieredcache`.
        ///
        /// Nil where the process has neither variable; relative paths in them count as missing, as
        /// the XDG base directory specification asks.
        public static var defaultDirectory: URL? {
            defaultPath.map { URL(file: $0, directoryHint: .isDirectory) }
        }

        package static var defaultPath: FilePath? {
            defaultPath { name in getenv(name).map { String(cString: $0) } }
        }

        static func defaultPath(environment: (String) -> String?) -> FilePath? {
            func absolutePath(_ name: String) -> FilePath? {
                guard let path = environment(name).map({ FilePath($0) }), path.isAbsolute else {
                    return nil
                }
                return path
            }
            let caches = absolutePath("XDG_CACHE_HOME") ?? absolutePath("HOME")?.appending(".cache")
            return caches?.appending("tieredcache")
        }
    }
}

extension MediaCache.Configuration {
    /// Checks that the values make sense.
    ///
    /// - Throws: ``CacheError/Code/invalidArgument``, naming the field and its value.
    public func validate() throws(CacheError) {
        try Self.requirePositive(memoryLimit, "memoryLimit")
        try Self.requirePositive(diskLimit, "diskLimit")
        try Self.requirePositive(maximumDownloads, "maximumDownloads")
        try Self.requirePositive(maximumDownloadsPerHost, "maximumDownloadsPerHost")
        try Self.requirePositive(maximumUploads, "maximumUploads")
        try Self.requirePositive(retries, "retries")
        try Self.requirePositive(timeout, "timeout")
        try Self.requirePositive(connectTimeout, "connectTimeout")
        try Self.requirePositive(maximumSegments, "maximumSegments")
        if let maximumRequestLength {
            try Self.requirePositive(maximumRequestLength, "maximumRequestLength")
        }
        for rate in bandwidth.byPriority.values + (bandwidth.total.map { [$0] } ?? []) {
            try Self.requirePositive(rate, "bandwidth")
        }
        if let applicationLifetime {
            try Self.requirePositive(applicationLifetime, "applicationLifetime")
        }
        if let minimumFreeDisk, minimumFreeDisk < 0 {
            throw Self.invalid("minimumFreeDisk", minimumFreeDisk, "must not be negative")
        }
        if let path, path.isEmpty {
            throw Self.invalid("directory", "''", "must be the URL of a directory")
        }
    }

    private static func requirePositive(
        _ value: some BinaryInteger,
        _ name: String
    ) throws(CacheError) {
        guard value <= 0 else { return }
        throw invalid(name, value, "must be at least 1")
    }

    private static func requirePositive(
        _ value: Duration,
        _ name: String
    ) throws(CacheError) {
        guard value <= .zero else { return }
        throw invalid(name, value, "must be longer than zero")
    }

    private static func invalid(_ name: String, _ value: Any, _ rule: String) -> CacheError {
        CacheError(.invalidArgument, "the configuration's \(name) is \(value): it \(rule)")
    }
}
