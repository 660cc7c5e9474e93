import HTTPCaching
public import TieredCache

#if canImport(FoundationNetworking)
import Foundation
public import FoundationNetworking
#else
public import Foundation
#endif

/// A `URLProtocol` that answers GET and HEAD of a `URLSession` from a cache.
///
/// ```swift
/// TieredURLProtocol.use(try MediaCache())
/// let configuration = URLSessionConfiguration.default
/// configuration.answerFromCache()
/// let session = URLSession(configuration: configuration)
/// ```
///
/// A request without a body, for http or https, is taken; any other one goes on untouched, and so
/// does each while no cache is in use. What an unsafe one, such as a POST, has changed is confirmed
/// with the origin before its next use (RFC 9111 §4.4).
/// The request's `cachePolicy` decides what may answer. Redirects are followed by the cache, and the
/// response has the last URL; no delegate is asked about them. `Cache-Status` says what the cache
/// did (RFC 9211). The timeouts and retries are those of the cache's configuration.
///
/// A subclass that overrides ``cache`` gives a session a cache of its own; one that overrides
/// `canInit(with:)` leaves requests to the session.
open class TieredURLProtocol: URLProtocol {
    private static let shared = Guarded<MediaCache?>(nil)

    private var load: URLLoad?

    /// Sets the cache that answers from now on; loads that have begun go on with theirs.
    ///
    /// - Parameter cache: the cache; nil for none. Its owner shuts it down.
    public static func use(_ cache: MediaCache?) {
        // The one before may close its directory, and so not under the lock.
        withExtendedLifetime(shared.withLock { $0 }) { shared.withLock { $0 = cache } }
    }

    /// The cache that answers; that of ``use(_:)`` unless overridden.
    ///
    /// Called on any thread.
    open class var cache: MediaCache? { shared.withLock { $0 } }

    /// Whether a delegate gets a body in pieces as they arrive, each once the one before was taken;
    /// false by default: in one piece of at most 1 GiB, which is right for each kind of task.
    ///
    /// For a session whose tasks all tell a delegate. On Linux a task with a completion handler, or
    /// of an asynchronous call, would get the last piece alone.
    open class var streams: Bool { false }

    /// Whether a request is answered from the cache.
    open override class func canInit(with request: URLRequest) -> Bool {
        LoadRequest.takes(request) && cache != nil
    }

    /// Whether a task is answered from the cache.
    ///
    /// One that is not, and whose method is unsafe, is watched: what it changes is confirmed before
    /// its next use.
    open override class func canInit(with task: URLSessionTask) -> Bool {
        witness(task)
        return task.currentRequest.map { canInit(with: $0) } ?? false
    }

    /// Watches a task that begins, if its method is unsafe.
    final class func witness(_ task: URLSessionTask) {
        if let cache { UnsafeTasks.all.add(task, cache: cache) }
    }

    /// The request itself: the cache normalises URLs for its keys.
    open override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    /// Whether two requests are equal; the cache itself knows which responses are alike.
    open override class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool {
        a == b
    }

    /// Begins the load; called again by a task that is resumed, goes on with it.
    open override func startLoading() {
        if let load { return load.deliver(from: self) }
        let load = URLLoad(bell: bell(), isStreamed: type(of: self).streams)
        self.load = load
        guard !isFileTask else {
            let text = """
                a file cannot be handed over by a URLProtocol here; use \
                TieredURLProtocol.download(for:), or a session of its own
                """
            return load.fail(URLError(.unsupportedURL, text, url: request.url), from: self)
        }
        guard let asked = LoadRequest(request) else {
            let text = "the URL or a field of the request cannot be sent"
            return load.fail(URLError(.badURL, text, url: request.url), from: self)
        }
        guard let cache = type(of: self).cache else {
            let text = "the cache has gone since it took the request"
            return load.fail(URLError(.resourceUnavailable, text, url: request.url), from: self)
        }
        load.start(asked, cache: cache)
        load.deliver(from: self)
    }

    /// Suspends or ends the load, as the task says.
    open override func stopLoading() {
        #if canImport(FoundationNetworking)
        // Of a task that was resumed meanwhile, `startLoading` is called next.
        let isOver = task.map { $0.state == .canceling || $0.state == .completed } ?? true
        if isOver { load?.cancel() } else { load?.pause() }
        #else
        load?.cancel()
        #endif
    }

    deinit {
        load?.cancel()
    }

    /// Whether the task wants a file, or sends one: Foundation on Linux takes no file from a class of
    /// an application, and traps where there is none.
    private var isFileTask: Bool {
        #if canImport(FoundationNetworking)
        task is URLSessionDownloadTask || task is URLSessionUploadTask
        #else
        task is URLSessionUploadTask
        #endif
    }

    /// What makes Foundation call this object where its client may be called.
    private func bell() -> @Sendable () -> Void {
        #if canImport(FoundationNetworking)
        // The client may only be called on the queue of the task, which no interface gives away. A
        // task that is resumed while it runs calls `startLoading` there, and changes nothing else.
        return { [weak task] in
            guard let task, task.state == .running else { return }
            task.resume()
        }
        #else
        // The client may only be called on the thread that loading began on.
        nonisolated(unsafe) let (instance, loop) = (self, CFRunLoopGetCurrent())
        return {
            CFRunLoopPerformBlock(loop, CFRunLoopMode.commonModes.rawValue) {
                instance.startLoading()
            }
            CFRunLoopWakeUp(loop)
        }
        #endif
    }
}

extension URLSessionConfiguration {
    /// Answers what a protocol class takes from its cache, and keeps nothing in a `URLCache` besides.
    ///
    /// The `URLCache` that it sets keeps nothing, and watches requests that go past the cache: leave
    /// it set.
    ///
    /// To be called before the session is made. Foundation on Linux asks its own class first where
    /// one is only registered (`URLProtocol.registerClass`), so that each session has to be told.
    ///
    /// - Parameter type: the class; a subclass for a cache of its own.
    public func answerFromCache(_ type: TieredURLProtocol.Type = TieredURLProtocol.self) {
        protocolClasses = [type] + (protocolClasses ?? [])
        urlCache = TaskWitness(type)
    }
}
