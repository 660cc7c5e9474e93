import Foundation
import HTTPCaching
import HTTPTypes
import TieredCache

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The tasks of sessions that go past a cache and may change what it has stored (RFC 9111 §4.4).
///
/// The session sends them itself, and tells no protocol class how they end. So they are asked:
/// before a session uses the cache, and from time to time for all others that use it.
final class UnsafeTasks: Sendable {
    /// Those of all sessions with a cache.
    static let all = UnsafeTasks()

    private struct Entry: Sendable {
        let task: URLSessionTask
        let cache: MediaCache
        /// The response that was acted on.
        var response: URLResponse?
    }

    private let entries = Guarded<[Entry]>([])

    /// A task begins; does nothing for one of a safe method, or one that is known.
    func add(_ task: URLSessionTask, cache: MediaCache) {
        guard task.originalRequest?.changedTarget != nil else { return }
        let isNew = entries.withLock { entries in
            guard !entries.contains(where: { $0.task === task }) else { return false }
            entries.append(Entry(task: task, cache: cache))
            return true
        }
        if isNew { Task { try await follow(task) } }
    }

    /// Acts on the response within a second after the task has ended.
    private func follow(_ task: URLSessionTask) async throws {
        var pause = Duration.milliseconds(10)
        while task.state != .completed {
            try await Task.sleep(for: pause)
            pause = min(pause * 2, .seconds(1))
        }
        await settle()
    }

    /// Makes unusable what those tasks have changed that have a response by now.
    func settle() async {
        for entry in entries.withLock({ $0 }) {
            // Asked first: a task that has ended gets no other response.
            let isOver = entry.task.state == .completed
            let response = entry.task.response
            if let response, response !== entry.response {
                await entry.task.invalidate(in: entry.cache, after: response)
            }
            // Only now, so that whoever asks meanwhile does not go on without waiting.
            entries.withLock { entries in
                let index = entries.firstIndex { $0.task === entry.task }
                guard let index else { return }
                if isOver { entries.remove(at: index) } else { entries[index].response = response }
            }
        }
    }
}

/// The `URLCache` of a session that is answered from another cache: keeps nothing, and sees the
/// tasks, which on Linux nothing else does.
final class TaskWitness: URLCache, @unchecked Sendable {
    // Unchecked as its superclass is; a class of an application is a constant.
    private let type: TieredURLProtocol.Type

    init(_ type: TieredURLProtocol.Type) {
        self.type = type
        #if canImport(FoundationNetworking)
        // No directory can be made there, and none is wanted.
        super.init(memoryCapacity: 0, diskCapacity: 0, diskPath: "/dev/null")
        #else
        super.init()
        #endif
    }

    override func getCachedResponse(
        for dataTask: URLSessionDataTask,
        completionHandler: @Sendable @escaping (CachedURLResponse?) -> Void
    ) {
        type.witness(dataTask)
        completionHandler(nil)
    }

    override func cachedResponse(for request: URLRequest) -> CachedURLResponse? { nil }

    override func storeCachedResponse(_ response: CachedURLResponse, for request: URLRequest) {}

    override func storeCachedResponse(
        _ response: CachedURLResponse,
        for dataTask: URLSessionDataTask
    ) {}
}

extension URLSessionTask {
    /// Makes unusable what the response says that the request has changed.
    fileprivate func invalidate(in cache: MediaCache, after response: URLResponse) async {
        guard let response = response as? HTTPURLResponse, let first = originalRequest,
            let last = currentRequest
        else { return }
        if first.url != last.url {
            // A redirect is no error.
            await first.invalidate(in: cache, status: 303, fields: [:])
        }
        var fields: HTTPFields = [:]
        for name: HTTPField.Name in [.location, .contentLocation] {
            fields[name] = response.value(forHTTPHeaderField: name.rawName)
        }
        await last.invalidate(in: cache, status: response.statusCode, fields: fields)
    }
}

extension URLRequest {
    /// What a request may change; nil for one of a safe method, and where the cache stores nothing.
    fileprivate var changedTarget: TargetURI? {
        guard let method, !Invalidation.isSafe(method), let url else { return nil }
        do throws(TargetURIError) {
            return try TargetURI(url.absoluteString)
        } catch {
            return nil  // Another scheme, most likely.
        }
    }

    private var method: HTTPRequest.Method? { HTTPRequest.Method(httpMethod ?? "GET") }

    fileprivate func invalidate(in cache: MediaCache, status: Int, fields: HTTPFields) async {
        guard let method, let changedTarget else { return }
        await cache.invalidate(
            afterMethod: method,
            target: changedTarget,
            status: status,
            fields: fields
        )
    }
}
