import CTieredCache
import SystemPackage
import TieredCache

/// What a program opens a cache with, as values of the engine.
struct HostedOptions {
    var configuration = MediaCache.Configuration()
    /// Whether no directory is wanted; without it one that is missing is a failure of storage.
    var isMemoryOnly = false
    var log: LogBridge?

    /// The defaults for a directory.
    init(directory: FilePath) {
        configuration.path = directory
    }

    /// Reads the struct of the header.
    ///
    /// - Throws: `TIERED_E_INVALID`.
    init(_ given: tiered_options) throws(Status) {
        if let directory = try optionalText(given.directory) {
            isMemoryOnly = directory.isEmpty
            configuration.path = directory.isEmpty ? nil : FilePath(directory)
        }
        if given.memory_limit != 0 { configuration.memoryLimit = given.memory_limit }
        if given.disk_limit != 0 { configuration.diskLimit = given.disk_limit }
        switch given.minimum_free_disk {
        case 0: break
        case -1: configuration.minimumFreeDisk = 0
        default: configuration.minimumFreeDisk = given.minimum_free_disk
        }
        if given.maximum_downloads != 0 {
            configuration.maximumDownloads = Int(given.maximum_downloads)
        }
        guard (TIERED_LOG_NONE...TIERED_LOG_TRACE).contains(Int(given.log_level)) else {
            throw .invalid
        }
        let configuration = configuration
        try translating { () throws(CacheError) in try configuration.validate() }
        log = LogBridge(given)
    }
}
