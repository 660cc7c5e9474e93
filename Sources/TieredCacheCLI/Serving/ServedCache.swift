import FoundationEssentials
import TieredCache
import TieredCacheProxy

/// A cache and its servers in this process, for `exec` and in the background.
struct ServedCache {
    let cache: MediaCache
    let proxy: PlayerProxy
    private let guests: GuestService

    /// Opens the cache and starts the proxy, with the limits of `serve`.
    ///
    /// - Parameters:
    ///   - options: the options of the command.
    ///   - keepsAddress: whether port and token are those of the directory. If not, they are good
    ///     for this process alone.
    /// - Returns: both; stop them.
    /// - Throws: `.localStorage` if nothing can listen.
    static func start(_ options: CacheOptions, keepsAddress: Bool) async throws -> ServedCache {
        try OpenFileLimit.require()
        var configuration = options.configuration()
        var settings = ProxySettings()
        configuration.via = "1.1 \(settings.pseudonym.name)"
        let budget = DescriptorBudget(downloads: 6)
        budget?.apply()
        let downloads = budget?.maximumDownloads ?? 6
        configuration.maximumIdleFiles = budget?.maximumIdleFiles
        configuration.maximumDownloads = downloads
        // One host cannot occupy the last download.
        configuration.maximumDownloadsPerHost = max(1, downloads - 1)
        configuration.maximumUploads = max(1, downloads / 2)
        settings.maximumConnections = budget?.maximumConnections
        settings.logger = configuration.logger
        let cache = try MediaCache(configuration)
        do {
            let proxy = try await PlayerProxy.start(
                cache: cache,
                directory: keepsAddress ? configuration.directory : nil,
                settings: settings
            )
            let guests = GuestService(
                cache: cache,
                directory: configuration.directory,
                settings: settings
            )
            return ServedCache(cache: cache, proxy: proxy, guests: guests)
        } catch {
            await cache.shutdown()
            throw error
        }
    }

    /// Ends both; what arrived is kept.
    func stop() async {
        await proxy.stop()
        await guests.stop()
        await cache.shutdown()
    }
}
