import Logging

/// Hands every line, of every level, to a test.
struct ListeningLogHandler: LogHandler {
    /// Told of each line, with the metadata of its logger.
    let hear: @Sendable (LogEvent, Logger.Metadata) -> Void
    var metadata: Logger.Metadata = [:]
    var logLevel: Logger.Level = .trace

    init(_ hear: @escaping @Sendable (LogEvent, Logger.Metadata) -> Void) {
        self.hear = hear
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { hear(event, metadata) }
}
