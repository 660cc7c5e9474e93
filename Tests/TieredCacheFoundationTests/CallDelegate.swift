import Foundation
import TieredCache

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A delegate that notes the order of what it is told.
final class CallDelegate: NSObject, URLSessionDataDelegate {
    private let newRequests = Guarded<[URLRequest]>([])
    private let sent = Guarded<Int64>(0)
    private let credential: URLCredential?
    private let calls: AsyncStream<String>
    private let calling: AsyncStream<String>.Continuation

    /// Creates a delegate that follows no redirect.
    ///
    /// - Parameter credential: what answers a challenge; nil for what Foundation does by itself.
    init(credential: URLCredential? = nil) {
        self.credential = credential
        (calls, calling) = AsyncStream.makeStream()
    }

    var bytesSent: Int64 { sent.withLock { $0 } }

    /// The requests that redirects would have led to.
    var redirects: [URLRequest] { newRequests.withLock { $0 } }

    func note(_ call: String) { calling.yield(call) }

    /// The calls since the last time, up to the first one of this name.
    func calls(until last: String) async -> [String] {
        var names: [String] = []
        for await call in calls {
            names.append(call)
            if call == last { break }
        }
        return names
    }

    func urlSession(
        _ session: URLSession,
        dataTask: URLSessionDataTask,
        didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        note("response")
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note("data")
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        sent.withLock { $0 = totalBytesSent }
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest,
        completionHandler: @escaping (URLRequest?) -> Void
    ) {
        newRequests.withLock { $0.append(request) }
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        note("challenge")
        completionHandler(credential == nil ? .performDefaultHandling : .useCredential, credential)
    }

    func urlSession(
        _ session: URLSession,
        task: URLSessionTask,
        didCompleteWithError error: (any Error)?
    ) {
        note("end")
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        note("invalid")
    }
}
