import FoundationEssentials
import TieredCache
import TieredCacheAgent

/// A download that goes on when this program has ended, by a process of its own.
enum BackgroundDownload: Example {
    static let usage = "background DIRECTORY URL"

    static func run(_ arguments: [String]) async throws {
        guard arguments.count == 2 else { throw UsageError() }
        // Started by the first that needs it; needs the program `tieredcache` in PATH.
        let agent = try await DownloadAgent(session: "org.example.background")
        let id = try await agent.add(CacheRequest(arguments[1]), options: ["dir": arguments[0]])
        // Begins with what has ended while nobody was there.
        for try await download in agent.downloads {
            print("\(download.state.name): \(download.status.bytes) bytes")
            guard download.state.isEnd else { continue }
            if let file = download.file, download.state == .finished {
                print("stored as \(file.path(percentEncoded: false))")
            }
            try await agent.acknowledge(download.id)
            if download.id == id { break }
        }
        await agent.close()
    }
}
