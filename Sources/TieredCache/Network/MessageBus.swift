#if os(Linux)
import CLinuxCalls

/// What services say at one bus of D-Bus; belongs to one thread at a time.
///
/// A connection that was lost is made again after a second, and what was said last holds until
/// then; one that cannot be made is tried again after ``retryInterval``, and nothing is known
/// meanwhile.
package final class MessageBus {
    /// Which bus.
    package enum Place {
        case system
        case session
        case address(String)
    }

    static let retryInterval = Duration.seconds(60)

    private let place: Place
    private let questions: [CInt]
    private var connection: OpaquePointer?
    private var retries = ContinuousClock.now
    /// What was said at the connection before.
    private var last: [CInt: Int64] = [:]

    /// - Parameters:
    ///   - place: the bus; nothing is connected yet.
    ///   - questions: `TC_BUS_NETWORK_MANAGER` and so on.
    package init(_ place: Place, asking questions: [CInt]) {
        self.place = place
        self.questions = questions
    }

    deinit { disconnect() }

    /// Does what there is to do; waits for more for at most `duration`, less than a second.
    package func process(waiting duration: Duration = .zero) {
        connect()
        guard let connection else { return }
        let milliseconds = CInt(duration / .milliseconds(1))
        if tc_bus_process(connection, milliseconds) < 0 { disconnect() }
    }

    /// Waits until all questions have an answer, or nothing can be asked, for at most `limit`.
    package func settle(within limit: Duration) {
        let end = ContinuousClock.now + limit
        repeat {
            process(waiting: .milliseconds(100))
        } while !isSettled && ContinuousClock.now < end
    }

    /// The last answer to a question; nil where nothing is known.
    package func answer(_ question: CInt) -> Int64? {
        let answer = connection.map { tc_bus_answer($0, question) } ?? -2
        return answer == -2 ? last[question] : answer < 0 ? nil : answer
    }

    /// Whether nothing more is to be heard at once: each question has an answer, or nothing can be
    /// asked.
    package var isSettled: Bool { connection.map { tc_bus_is_settled($0) } ?? true }

    private func connect() {
        guard connection == nil, retries <= .now else { return }
        retries = .now + Self.retryInterval
        connection =
            switch place {
            case .system: tc_bus_open(true, nil)
            case .session: tc_bus_open(false, nil)
            case .address(let address): tc_bus_open(true, address)
            }
        guard let connection else {
            last = [:]
            return
        }
        for question in questions where tc_bus_ask(connection, question) < 0 {
            return disconnect()
        }
    }

    private func disconnect() {
        guard let connection else { return }
        for question in questions { last[question] = answer(question) }
        tc_bus_close(connection)
        self.connection = nil
        retries = .now + .seconds(1)
    }
}
#endif
