import OrderedCollections
import SystemPackage
package import TieredCache

/// The connection of a ``DownloadAgent``, and what it knows.
package actor AgentSession {
    package typealias Download = DownloadAgent.Download

    private enum Connection {
        case none  // → connecting, closed
        case connecting(Task<AgentLink, any Error>)  // → open, none, closed
        case open(AgentLink)  // → none, closed
        case closed
    }

    /// A consumer of downloads.
    private struct Feed {
        /// What it has not taken: the newest of each download, in order.
        var pending: OrderedDictionary<DownloadID, Download> = [:]
        let signal: AsyncStream<Void>.Continuation
        var failure: CacheError?
    }

    /// How long an agent that ends may keep the directory, as it promises.
    private static let patience = Duration.seconds(6)
    private static let page: Int64 = 500

    private let name: String
    private let directory: FilePath
    private let socket: FilePath
    private let program: FilePath?
    private var connection = Connection.none
    private var view = SessionView()
    private var feeds: [Int: Feed] = [:]
    private var lastFeed = 0

    init(name: String, directory: FilePath, socket: FilePath, program: FilePath?) {
        self.name = name
        self.directory = directory
        self.socket = socket
        self.program = program
    }

    // MARK: The connection

    /// The connection, attached; makes it where there is none.
    func link() async throws(CacheError) -> AgentLink {
        let task: Task<AgentLink, any Error>
        switch connection {
        case .open(let link): return link
        case .connecting(let running): task = running
        case .closed: throw CacheError(.shutDown, "the download agent was closed")
        case .none:
            task = Task { try await connect() }
            connection = .connecting(task)
        }
        do {
            return try await task.value
        } catch {
            throw error as? CacheError
                ?? CacheError(.localStorage, "cannot reach the agent: \(error)", cause: error)
        }
    }

    private func connect() async throws -> AgentLink {
        do {
            let end = ContinuousClock.now + Self.patience
            while true {
                do throws(CacheError) {
                    let link = try await attached()
                    guard case .connecting = connection else {
                        link.close()
                        throw CacheError(.shutDown, "the download agent was closed")
                    }
                    connection = .open(link)
                    follow(link)
                    return link
                } catch {
                    // One that is ending has closed its socket before its directory.
                    guard [.notOwner, .interrupted].contains(error.code),
                        ContinuousClock.now < end
                    else { throw error }
                }
                try await Task.sleep(for: .milliseconds(100))
            }
        } catch {
            if case .connecting = connection { connection = .none }
            throw error
        }
    }

    private func attached() async throws(CacheError) -> AgentLink {
        let link = try await AgentLink.open(on: try await found().rawValue)
        do throws(CacheError) {
            _ = try await link.call("tieredcache.attach", [JSONValue.string(name)])
            try await list(link)
            return link
        } catch {
            link.close()
            throw error
        }
    }

    /// A connection to the agent, which is started where none answers.
    private func found() async throws(CacheError) -> FileDescriptor {
        let client = AgentClient(socket: socket)
        let agent = DetachedProgram.agent(file: program ?? AgentPath.program, socket: socket)
        do {
            // It may wait for the process.
            return try await withTaskExecutorPreference(IOExecutor(threads: 1, name: "tc-start")) {
                [directory] in
                try await agent.find(orStartIn: directory) { _ in
                    do {
                        return try client.connect()
                    } catch {
                        return nil
                    }
                }
            }
        } catch {
            throw Self.failure(of: error)
        }
    }

    private static func failure(of error: any Error) -> CacheError {
        guard let failure = error as? DetachedProgram.Failure else {
            return CacheError(.localStorage, "cannot start the agent: \(error)", cause: error)
        }
        switch failure.status {
        case 75: return CacheError(.notOwner, failure.message)
        case 64: return CacheError(.invalidArgument, failure.message)
        default: return CacheError(.localStorage, failure.message)
        }
    }

    private func follow(_ link: AgentLink) {
        Task { [weak self] in
            for await news in link.news {
                switch news {
                case .download(let id): await self?.look(at: id, link)
                case .tick: await self?.refresh(link)
                }
            }
            await self?.lost(link)
        }
    }

    private func drop(_ link: AgentLink) {
        if case .open(let current) = connection, current === link { connection = .none }
    }

    private func lost(_ link: AgentLink) async {
        drop(link)
        if case .closed = connection { return }
        do throws(CacheError) {
            _ = try await self.link()
        } catch {
            for number in feeds.keys {
                feeds[number]?.failure = error
                feeds[number]?.signal.finish()
            }
        }
    }

    func close() {
        if case .open(let link) = connection { link.close() }
        connection = .closed
        for feed in feeds.values { feed.signal.finish() }
    }

    // MARK: Calls

    /// Calls a method; once more where the connection ends before the answer.
    func perform(_ method: String, _ parameters: [JSONValue]) async throws(CacheError) {
        let link = try await link()
        do throws(CacheError) {
            _ = try await link.call(method, parameters)
        } catch {
            guard error.code == .interrupted else { throw error }
            drop(link)
            _ = try await self.link().call(method, parameters)
        }
    }

    func add(
        _ uris: [JSONValue],
        _ options: [String: JSONValue]
    ) async throws(CacheError) -> DownloadID {
        // Chosen here, so that one whose answer is lost is not added twice.
        let id = DownloadID(number: .random(in: 1 ... .max))
        let options = options.merging(["gid": .string("\(id)")]) { $1 }
        do throws(CacheError) {
            try await perform("aria2.addUri", [.array(uris), .object(options)])
        } catch {
            guard error.message.hasSuffix("GID#\(id) is taken by another download.") else {
                throw error
            }
        }
        try await link().look(at: id)
        return id
    }

    func acknowledge(_ id: DownloadID) async throws(CacheError) {
        guard !view.isOpen(id) else { return }
        try await perform("tieredcache.acknowledge", [.string(name), [.string("\(id)")]])
        view.forget(id)
    }

    // MARK: What there is

    /// Reads all downloads of the session.
    private func list(_ link: AgentLink) async throws(CacheError) {
        var values = try await link.call("aria2.tellActive", [Download.keys]).array ?? []
        for method in ["aria2.tellWaiting", "aria2.tellStopped"] {
            var offset: Int64 = 0
            var part: [JSONValue]
            repeat {
                let range: [JSONValue] = [.integer(offset), .integer(Self.page), Download.keys]
                part = try await link.call(method, range).array ?? []
                values += part
                offset += Self.page
            } while part.count == Int(Self.page)
        }
        var downloads: OrderedDictionary<DownloadID, Download> = [:]
        for value in values {
            guard let download = try await read(value, link) else { continue }
            downloads[download.id] = download
        }
        tell(view.take(all: Array(downloads.values)))
    }

    private func look(at id: DownloadID, _ link: AgentLink) async {
        guard view.isOpen(id) else { return }
        do throws(CacheError) {
            let value = try await link.call(
                "aria2.tellStatus",
                [.string("\(id)"), Download.keys]
            )
            guard let download = try await read(value, link) else { return }
            if view.take(download) { tell([download]) }
        } catch {
            // Not there any more; or the connection has ended, and all is read anew.
            if error.code == .invalidArgument { view.forget(id) }
        }
    }

    /// Asks for those that change without a notification.
    private func refresh(_ link: AgentLink) async {
        guard !view.moving.isEmpty else { return }
        var seen: Set<DownloadID> = []
        let lists: [(String, [JSONValue])] = [
            ("aria2.tellActive", []), ("aria2.tellWaiting", [0, 1000]),
        ]
        for (method, range) in lists {
            do throws(CacheError) {
                let values = try await link.call(method, range + [Download.keys]).array ?? []
                for value in values {
                    guard let download = try await read(value, link) else { continue }
                    seen.insert(download.id)
                    if view.take(download) { tell([download]) }
                }
            } catch {
                return  // The connection has ended.
            }
        }
        for id in view.moving where !seen.contains(id) { await look(at: id, link) }
    }

    private func read(
        _ value: JSONValue,
        _ link: AgentLink
    ) async throws(CacheError) -> Download? {
        guard var download = Download(value) else { return nil }
        if download.state == .paused {
            let shown = try await link.call("tieredcache.show", [.string("\(download.id)")])
            download.status.lacksCredentials = shown["lacksCredentials"] == .bool(true)
        }
        return download
    }

    // MARK: Consumers

    private func tell(_ downloads: [Download]) {
        guard !downloads.isEmpty else { return }
        for number in feeds.keys {
            for download in downloads { feeds[number]?.pending[download.id] = download }
            feeds[number]?.signal.yield()
        }
    }

    /// Adds a consumer, which gets all that is known first.
    ///
    /// - Returns: its number, and what tells that there is something to ``take(_:)``.
    package func subscribe() async throws(CacheError) -> (Int, AsyncStream<Void>) {
        _ = try await link()
        lastFeed += 1
        let number = lastFeed
        let (signals, signal) = AsyncStream.makeStream(
            of: Void.self,
            bufferingPolicy: .bufferingNewest(1)
        )
        signal.onTermination = { [weak self] reason in
            if case .cancelled = reason { Task { await self?.unsubscribe(number) } }
        }
        var feed = Feed(signal: signal)
        for download in view.all { feed.pending[download.id] = download }
        feeds[number] = feed
        signal.yield()
        return (number, signals)
    }

    private func unsubscribe(_ number: Int) { feeds[number] = nil }

    /// Takes what a consumer has not been told.
    ///
    /// - Throws: why there will be no more.
    package func take(_ number: Int) throws(CacheError) -> [Download] {
        guard let feed = feeds[number] else { return [] }
        guard feed.pending.isEmpty else {
            feeds[number]?.pending = [:]
            return Array(feed.pending.values)
        }
        guard let failure = feed.failure else { return [] }
        feeds[number] = nil
        throw failure
    }
}
