import Logging
import Synchronization
import TieredCache

/// The logs of one cache: each line goes to all that have opened it and want lines of its level.
final class CacheLogs: Sendable {
    private let bridges = Guarded<[LogBridge]>([])
    /// The least severe level that any of them wants, as its place in the order.
    ///
    /// Beyond all, where none is there. Asked at each line of the engine, so that it takes no lock.
    private let level = Atomic(Logger.Level.allCases.count)

    /// A logger that logs to all of them.
    var logger: Logger { Logger(label: "tieredcache") { _ in CacheLogHandler(logs: self) } }

    func add(_ bridge: LogBridge) { change { $0.append(bridge) } }

    func remove(_ bridge: LogBridge) { change { $0.removeAll { $0 === bridge } } }

    private func change(_ body: (inout [LogBridge]) -> Void) {
        bridges.withLock { bridges in
            body(&bridges)
            let levels = bridges.map(\.level.place)
            level.store(levels.min() ?? Logger.Level.allCases.count, ordering: .relaxed)
        }
    }

    /// `.critical` where nothing is wanted, which is the least that a logger can be.
    fileprivate var wanted: Logger.Level {
        let place = level.load(ordering: .relaxed)
        let levels = Logger.Level.allCases
        return place < levels.count ? levels[place] : .critical
    }

    fileprivate func log(_ level: Logger.Level, _ text: String) {
        for bridge in bridges.withLock({ $0 }) where level >= bridge.level {
            bridge.log(level, text)
        }
    }
}

/// Makes one line of a message and its metadata.
private struct CacheLogHandler: LogHandler {
    let logs: CacheLogs
    var metadata: Logger.Metadata = [:]

    /// Opens and releases decide it; what is set is not heeded.
    var logLevel: Logger.Level {
        get { logs.wanted }
        set {}
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let metadata = metadata.merging(event.metadata ?? [:]) { $1 }
        let details = metadata.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }
        let line = "\(event.message)" + details.joined()
        logs.log(event.level, line.split(whereSeparator: \.isNewline).joined(separator: " "))
    }
}

extension Logger.Level {
    /// Its place in the order from the least severe on.
    fileprivate var place: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}
