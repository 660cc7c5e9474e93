import Dispatch
import TieredCache
import TieredCacheAgent

/// The client of an agent that handles stand for.
final class HostedAgent: Sendable {
    typealias Download = DownloadAgent.Download

    /// Where the downloads come from.
    private enum Feed {
        case none  // → beginning, ended
        case beginning  // → open, none, ended
        case open(Int)  // → none, ended
        case ended
    }

    private struct State {
        var feed = Feed.none
        /// What has come and was not given, the oldest first.
        var downloads: ArraySlice<Download> = []
        var lastError: CacheError?
    }

    private let agent: DownloadAgent
    private let state = Guarded(State())
    /// Signalled where a thread that waits has something to look at.
    private let news = DispatchSemaphore(value: 0)

    /// Attaches; waits for the agent.
    init(_ options: HostedAgentOptions) throws(Status) {
        agent = try waiting { () async throws(CacheError) in
            try await DownloadAgent(
                session: options.session,
                directory: options.directory,
                socket: options.socket,
                program: options.program
            )
        }
    }

    /// The last handle is gone: ends the calls that other threads are in.
    func close() {
        state.withLock { $0.feed = .ended }
        news.signal()
        Task(priority: .high) { [agent] in await agent.close() }
    }

    /// Why the last call failed that did.
    var lastError: CacheError? { state.withLock { $0.lastError } }

    /// Waits for a call.
    func call<Value: Sendable>(
        _ body: @escaping @Sendable (DownloadAgent) async throws(CacheError) -> Value
    ) throws(Status) -> Value {
        try waiting { [self] () async throws(CacheError) in
            do throws(CacheError) {
                return try await body(agent)
            } catch {
                throw state.withLock { state in
                    // The last release closes the session below a call that is under way.
                    let isReleased = if case .ended = state.feed { true } else { false }
                    let error = isReleased ? CacheError(.cancelled, "released") : error
                    state.lastError = error
                    return error
                }
            }
        }
    }

    // MARK: Downloads

    private enum Step {
        case give(Download, hasMore: Bool)
        case begin
        case take(Int)
        case wait
        case end
    }

    /// The next one that is new or has changed.
    ///
    /// - Returns: nil where none comes in time.
    func next(until end: DispatchTime) throws(Status) -> Download? {
        while true {
            switch step() {
            case .give(let download, let hasMore):
                if hasMore { news.signal() }
                return download
            case .end:
                news.signal()
                throw Status(CacheError(.cancelled, ""))
            case .begin:
                try begin()
                continue
            case .take(let number):
                if try take(from: number) { continue }
            case .wait: break
            }
            guard news.wait(timeout: end) == .success else { return nil }
        }
    }

    private func step() -> Step {
        state.withLock { state in
            if case .ended = state.feed { return .end }
            if let first = state.downloads.popFirst() {
                return .give(first, hasMore: !state.downloads.isEmpty)
            }
            switch state.feed {
            case .none:
                state.feed = .beginning
                return .begin
            case .beginning: return .wait
            case .open(let number): return .take(number)
            case .ended: return .end
            }
        }
    }

    private func begin() throws(Status) {
        do throws(Status) {
            let (number, signals) = try call { agent async throws(CacheError) in
                try await agent.session.subscribe()
            }
            move(to: .open(number))
            Task { [news] in
                for await _ in signals { news.signal() }
                news.signal()
            }
        } catch {
            move(to: .none)
            throw error
        }
        // Others may have waited for it.
        news.signal()
    }

    /// - Returns: whether there was something.
    private func take(from number: Int) throws(Status) -> Bool {
        let downloads: [Download]
        do throws(Status) {
            downloads = try call { agent async throws(CacheError) in
                try await agent.session.take(number)
            }
        } catch {
            move(to: .none)
            throw error
        }
        state.withLock { $0.downloads += downloads }
        return !downloads.isEmpty
    }

    private func move(to feed: Feed) {
        state.withLock { state in
            if case .ended = state.feed { return }
            state.feed = feed
        }
    }
}
