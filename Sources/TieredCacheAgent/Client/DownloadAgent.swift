public import FoundationEssentials
import HTTPCaching
package import HTTPTypes
import SystemPackage
public import TieredCache

/// Downloads that a process of its own carries out, `tieredcache agent`, and that an application
/// finds again by the name of its session, whatever has ended meanwhile.
///
/// The application is attached to its session as long as this object lives. Where the agent ends it
/// is started again, and what it was doing goes on. Calls fail where that does not work, with
/// `.localStorage` or `.notOwner`; where the agent refuses, with `.invalidArgument`; where it takes
/// more than 30 seconds for an answer, with `.timedOut`.
public final class DownloadAgent: Sendable {
    package let session: AgentSession

    /// Attaches to a session of the agent, which is started if none runs.
    ///
    /// - Parameters:
    ///   - session: a name of the application's choice: 1 to 128 letters, digits, and `-._`.
    ///   - directory: the cache directory of the agent; the usual one by default.
    ///   - socket: the path of its socket; that of the directory by default.
    ///   - program: the file of the program `tieredcache`, to start it; the one in `PATH` by default.
    /// - Throws: `CacheError`: `.invalidArgument` for a name that is none; `.localStorage` where
    ///   no agent runs and none can be started; `.notOwner` where another process owns the
    ///   directory.
    public init(
        session: String,
        directory: URL? = MediaCache.Configuration.defaultDirectory,
        socket: URL? = nil,
        program: URL? = nil
    ) async throws(CacheError) {
        guard SessionForm.isName(session) else {
            throw CacheError(
                .invalidArgument,
                "a session is called by 1 to 128 letters, digits, and -._, not '\(session)'"
            )
        }
        guard let directory = directory.flatMap({ FilePath(fileURL: $0) }) else {
            throw CacheError(.invalidArgument, "there is no cache directory; give one")
        }
        self.session = AgentSession(
            name: session,
            directory: directory,
            socket: socket.flatMap { FilePath(fileURL: $0) }.map(AgentPath.absolute)
                ?? AgentPath.socket(of: directory),
            program: program.flatMap { FilePath(fileURL: $0) }.map(AgentPath.absolute)
        )
        _ = try await self.session.link()
    }

    deinit {
        let session = session
        Task { await session.close() }
    }

    /// Begins a download.
    ///
    /// It is on disk when this returns. The finished file appears in a directory of the user, or
    /// where the options say.
    ///
    /// - Parameters:
    ///   - request: the URL and the fields of the request, and the digest that the body must have.
    ///     Its method must be GET; its range, policy and priority do not count.
    ///   - mirrors: other URLs of the same file, used where the first one fails.
    ///   - options: further options by the names of aria2, such as `dir`, `out`, `require`;
    ///     `docs/agent-protocol.md` has all.
    /// - Returns: the identifier.
    /// - Throws: `CacheError`.
    @discardableResult
    public func add(
        _ request: CacheRequest,
        mirrors: [String] = [],
        options: [String: String] = [:]
    ) async throws(CacheError) -> DownloadID {
        guard request.method == .get, request.body == nil else {
            throw CacheError(.invalidArgument, "only a GET without a body can be a download")
        }
        var all = options.mapValues { JSONValue.string($0) }
        for (name, value) in Self.options(of: request) where all[name] == nil { all[name] = value }
        let uris = [request.target.string] + mirrors
        return try await session.add(uris.map { .string($0) }, all)
    }

    private static func options(of request: CacheRequest) -> [String: JSONValue] {
        var options: [String: JSONValue] = [:]
        if !request.fields.isEmpty { options["header"] = lines(request.fields) }
        if let digest = request.expectedDigests.max(by: { $0.bytes.count < $1.bytes.count }) {
            options["checksum"] = .string("\(digest)")
        }
        return options
    }

    private static func lines(_ fields: HTTPFields) -> JSONValue {
        .array(fields.map { .string("\($0.name): \($0.value)") })
    }

    /// The downloads of the session that are not acknowledged: each as it is now, then each again
    /// whenever it has changed, twice a second while bytes arrive.
    ///
    /// What has ended before, in whatever process, comes first. A consumer that is slow gets the
    /// newest of each. Ends when the agent is closed; throws where it has ended and cannot be
    /// started again, and another loop tries anew.
    public var downloads: Downloads { Downloads(agent: self) }

    /// Forgets a download that has ended; the file stays.
    ///
    /// Has no effect before the end. One that is not acknowledged is told again to the next process
    /// that attaches, for 90 days.
    ///
    /// - Throws: `CacheError`.
    public func acknowledge(_ id: DownloadID) async throws(CacheError) {
        try await session.acknowledge(id)
    }

    /// Ends a download; it stays listed as cancelled until it is acknowledged.
    ///
    /// - Throws: `CacheError`, also where it has ended before.
    public func cancel(_ id: DownloadID) async throws(CacheError) {
        try await session.perform("aria2.remove", [.string("\(id)")])
    }

    /// Lets a paused download go on.
    ///
    /// - Parameters:
    ///   - id: the download.
    ///   - request: supplies the fields that are not on disk, such as `Authorization`, where
    ///     `DownloadStatus.lacksCredentials` says so; nil keeps those that are known.
    /// - Throws: `CacheError`, also where it is not paused.
    public func resume(
        _ id: DownloadID,
        with request: CacheRequest? = nil
    ) async throws(CacheError) {
        try await resume(id, fields: request?.fields ?? [:])
    }

    /// The same with fields alone; none keeps those that are known.
    package func resume(_ id: DownloadID, fields: HTTPFields) async throws(CacheError) {
        let gid = JSONValue.string("\(id)")
        if !fields.isEmpty {
            try await session.perform("aria2.changeOption", [gid, ["header": Self.lines(fields)]])
        }
        try await session.perform("aria2.unpause", [gid])
    }

    /// Detaches from the session; downloads go on.
    public func close() async { await session.close() }
}

extension DownloadAgent {
    /// What ``DownloadAgent/downloads`` gives.
    public struct Downloads: AsyncSequence, Sendable {
        /// A download, as it is then.
        public typealias Element = Download
        /// Why no more can be told.
        public typealias Failure = CacheError

        let agent: DownloadAgent

        /// Begins with all that is not acknowledged.
        public func makeAsyncIterator() -> Iterator { Iterator(agent: agent) }

        /// The position of one consumer.
        public struct Iterator: AsyncIteratorProtocol {
            let agent: DownloadAgent
            private var feed: (number: Int, signals: AsyncStream<Void>.Iterator)?
            private var batch: ArraySlice<Download> = []

            init(agent: DownloadAgent) {
                self.agent = agent
            }

            /// Waits for the next one.
            ///
            /// - Returns: nil where the agent was closed, or the task was cancelled.
            /// - Throws: `CacheError`.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(CacheError) -> Download? {
                while batch.isEmpty {
                    if feed == nil {
                        let (number, signals) = try await agent.session.subscribe()
                        feed = (number, signals.makeAsyncIterator())
                    }
                    guard let number = feed?.number else { return nil }
                    let isLast = await feed?.signals.next(isolation: actor) == nil
                    batch = try await agent.session.take(number)[...]
                    if isLast, batch.isEmpty { return nil }
                }
                return batch.popFirst()
            }
        }
    }
}
