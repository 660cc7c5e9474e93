import NIOCore
import TieredCache

/// The interface for connections.
extension ScriptedOrigin {
    /// Plans the response to `request`, and counts the request for the script.
    ///
    /// - Returns: the response, and the key under which the resource was found.
    func answer(to request: OriginRequest) -> (OriginResponse, key: String) {
        let now = timeSource.wallTime()
        let path = OriginLog.path(of: request.target)
        let found = state.withLock { state -> (Served, String)? in
            for key in [request.target, path] {
                guard let served = state.served[key] else { continue }
                state.served[key]?.requests += 1
                return (served, key)
            }
            return nil
        }
        guard let (served, key) = found else { return (.notFound(request, now: now), path) }
        let behaviour = served.script.behaviour(forRequest: served.requests)
        let answer = OriginResponse.plan(
            request,
            resource: served.resource,
            behaviour: behaviour,
            now: now
        )
        return (answer, key)
    }

    func begin(_ request: OriginRequest, connection: Int) -> Int {
        let now = timeSource.monotonicTime()
        return record { $0.begin(request, connection: connection, at: now) }
    }

    func append(_ bytes: ByteBufferView, to exchange: Int, limit: Int) {
        record { log in
            let room = limit - log.exchanges[exchange].body.count
            log.exchanges[exchange].body.append(contentsOf: bytes.prefix(max(0, room)))
        }
    }

    /// Records the status of a head that is about to be written; nil removes it.
    func willWriteHead(_ exchange: Int, status: Int?) {
        record { $0.exchanges[exchange].status = status }
    }

    /// Counts body bytes that are about to be written; a negative number removes them.
    func willWriteBody(_ exchange: Int, count: Int64) {
        record { $0.exchanges[exchange].bodyBytesWritten += count }
    }

    func end(_ exchange: Int, with outcome: OriginExchange.Outcome) {
        let now = timeSource.monotonicTime()
        record { $0.end(exchange, with: outcome, at: now) }
    }

    func didAccept() -> Int {
        record { log in
            log.acceptedConnections += 1
            log.openConnections += 1
            return log.acceptedConnections - 1
        }
    }

    func didClose() {
        record { $0.openConnections -= 1 }
    }

    /// Changes the log, and resumes the waiters that the change satisfies.
    private func record<Result: Sendable>(_ change: (inout OriginLog) -> Result) -> Result {
        let (result, ready) = state.withLock { state in
            let result = change(&state.log)
            let ready = state.waiters.filter { $0.value.condition(state.log) }
            for number in ready.keys { state.waiters[number] = nil }
            return (result, ready.values.map(\.continuation))
        }
        for continuation in ready { continuation.resume() }
        return result
    }
}
