import SystemPackage
import TieredCache
import TieredCacheAgent
import TieredCacheProxy

/// The proxy of a directory that outlives the command that starts it.
enum BackgroundProxy {
    /// How long it waits for a client.
    static let idle = TimeSpan(.seconds(600))

    /// The proxy that runs for a directory, `serve` included; starts one if there is none.
    ///
    /// - Throws: ``CommandFailure``, and what the proxy throws.
    static func find(orStart options: CacheOptions, idle: TimeSpan) async throws -> RunningProxy {
        let program = DetachedProgram(
            name: "the proxy",
            remedy: "tieredcache serve",
            file: DetachedProgram.ownFile,
            warn: { StandardError.write("tieredcache: \($0)".asOneLine) },
            arguments: { BackgroundCommand.arguments(for: options, $0, idle: idle) }
        )
        return try await program.found(in: options.configuration().path) {
            RunningProxy.find(in: $0)
        }
    }
}

extension DetachedProgram {
    /// Finds the process, or starts it.
    ///
    /// - Parameters:
    ///   - path: the cache directory.
    ///   - find: gives the process where it answers.
    /// - Returns: what `find` gives.
    /// - Throws: ``CommandFailure`` with the exit code that the process has.
    func found<Found>(
        in path: FilePath?,
        _ find: (FilePath) throws -> Found?
    ) async throws -> Found {
        do {
            return try await self.find(orStartIn: path, find)
        } catch let failure as Failure {
            let status = ExitStatus(rawValue: failure.status) ?? .localFailed
            throw CommandFailure(status, message: failure.message)
        }
    }
}
