import NIOSSL

/// What a connection does: one exchange after the other.
///
/// Performs no I/O.
struct ConnectionState {
    private enum Phase {
        /// Waits for a request → `exchanging`, `closed`.
        case idle
        /// A request is under way, or its response is → `settling`, `closed`.
        case exchanging(Course)
        /// The response has ended, and with it all that may come → `idle`, `closed`.
        ///
        /// Only the end of the read shows that nothing follows it.
        case settling(mayFollow: Bool)
        case closed
    }

    private struct Course {
        var isRequestSent = false
        /// Whether another request may follow on the connection.
        var mayFollow: Bool
        /// Whether the connection has carried a response before.
        let isKept: Bool
        var hasBytes = false
        var hasHead = false
    }

    enum EndAction: Equatable { case keep, close }

    /// What becomes of an exchange whose connection has closed.
    enum Close: Equatable {
        /// There is none, or it has ended.
        case none
        /// The peer has just closed a connection that was idle: the request is sent once more.
        case startAgain
        case fail(ExchangeError)
    }

    private var phase = Phase.idle
    private var isKept = false
    /// What went wrong below; nothing that comes after it can be believed.
    private(set) var failure: (any Error)?

    var isIdle: Bool {
        if case .idle = phase { true } else { false }
    }

    /// Begins an exchange.
    ///
    /// - Parameter isAlone: whether the connection is closed after it.
    /// - Returns: whether it has begun: nothing may be sent otherwise.
    mutating func begin(isAlone: Bool) -> Bool {
        guard isIdle, failure == nil else { return false }
        phase = .exchanging(Course(mayFollow: !isAlone, isKept: isKept))
        return true
    }

    /// The request has been handed to the socket as a whole.
    mutating func didSendRequest() {
        guard case .exchanging(var course) = phase else { return }
        course.isRequestSent = true
        phase = .exchanging(course)
    }

    /// Some bytes have come.
    mutating func didReceiveBytes() {
        guard case .exchanging(var course) = phase, !course.hasBytes else { return }
        course.hasBytes = true
        phase = .exchanging(course)
    }

    /// The final head has come.
    mutating func didReceive(_ head: ResponseHead) {
        guard case .exchanging(var course) = phase else { return }
        course.hasHead = true
        course.mayFollow = course.mayFollow && head.mayPersist
        phase = .exchanging(course)
    }

    /// The response has reached its end.
    ///
    /// It is complete, even if the peer did not wait for the whole request. Behind a failure it may
    /// be cut: without its close_notify, TLS ends a body that only the close delimits at any byte.
    mutating func didReceiveEnd() {
        guard failure == nil, case .exchanging(let course) = phase else { return }
        phase = .settling(mayFollow: course.mayFollow && course.isRequestSent)
    }

    /// One read has been handed over as a whole.
    ///
    /// - Returns: what becomes of the connection, if its exchange has ended.
    mutating func didCompleteRead() -> EndAction? {
        guard case .settling(let mayFollow) = phase else { return nil }
        guard mayFollow, failure == nil else {
            phase = .closed
            return .close
        }
        phase = .idle
        isKept = true
        return .keep
    }

    /// - Returns: whether the connection has to be closed now; otherwise what the kernel has
    ///   received is still read.
    mutating func didFail(_ error: any Error) -> Bool {
        failure = failure ?? error
        if case NIOSSLError.uncleanShutdown = error { return false }
        return true
    }

    /// The connection is closed.
    mutating func didClose() -> Close {
        defer { phase = .closed }
        guard case .exchanging(let course) = phase else { return .none }
        guard course.hasBytes || !course.isKept else { return .startAgain }
        return .fail(ExchangeError(failure ?? ConnectionClosed(), afterHead: course.hasHead))
    }
}

/// The peer closed the connection before the response was complete.
struct ConnectionClosed: Error, CustomStringConvertible {
    var description: String { "the connection was closed before the response was complete" }
}
