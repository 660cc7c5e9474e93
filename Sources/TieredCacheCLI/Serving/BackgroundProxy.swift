import SystemPackage
import TieredCache
import TieredCacheProxy

/// The proxy of a directory that outlives the command that starts it.
enum BackgroundProxy {
    /// How long it waits for a client.
    static let idle = TimeSpan(.seconds(600))

    /// The proxy that runs for a directory, `serve` included; starts one if there is none.
    ///
    /// - Throws: ``CommandFailure`` with ``ExitStatus/localFailed``, and what the proxy throws.
    static func find(orStart options: CacheOptions, idle: TimeSpan) async throws -> RunningProxy {
        let program = DetachedProgram(name: "the proxy", remedy: "tieredcache serve") { directory in
            BackgroundCommand.arguments(for: options, directory, idle: idle)
        }
        return try await program.find(orStartIn: options.configuration().path) {
            RunningProxy.find(in: $0)
        }
    }
}
