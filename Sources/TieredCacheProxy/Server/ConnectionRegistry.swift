import NIOCore
import TieredCache

/// The open connections of a server.
final class ConnectionRegistry: Sendable {
    private struct State {
        var channels: [ObjectIdentifier: any Channel] = [:]
        /// All that there ever were.
        var total = 0
        var isStopping = false
        /// When connections were last asked to end.
        var madeRoomAt: NIODeadline?
    }

    private let state = Guarded(State())

    /// The number of open connections.
    var count: Int { state.withLock { $0.channels.count } }

    /// The number of connections that were opened, the closed ones included.
    var total: Int { state.withLock { $0.total } }

    /// The bytes that each connection has to send and its socket has not taken.
    func unsent() async -> [Int] {
        var counts: [Int] = []
        for channel in state.withLock({ Array($0.channels.values) }) {
            do {
                counts.append(try await channel.getOption(.bufferedWritableBytes).get())
            } catch {
                // The connection has been closed meanwhile.
            }
        }
        return counts
    }

    /// Registers a connection until it is closed.
    func enter(_ channel: any Channel) {
        let id = ObjectIdentifier(channel)
        let isStopping = state.withLock { state in
            state.channels[id] = channel
            state.total += 1
            return state.isStopping
        }
        channel.closeFuture.whenComplete { [self] _ in
            state.withLock { _ = $0.channels.removeValue(forKey: id) }
        }
        // Accepted while `stop` was making its list.
        if isStopping { channel.close(promise: nil) }
    }

    /// Asks connections to end, because waiting clients cannot be accepted.
    ///
    /// Idle ones end now, the others after their next response. Does nothing within a second of the
    /// last call.
    func makeRoom(now: NIODeadline = .now()) {
        let channels = state.withLock { state -> [any Channel] in
            if let last = state.madeRoomAt, now < last + .seconds(1) { return [] }
            state.madeRoomAt = now
            return Array(state.channels.values)
        }
        for channel in channels {
            channel.pipeline.fireUserInboundEventTriggered(MakeRoomEvent())
        }
    }

    /// Closes idle connections at once, the others after their response, or after `time`.
    func stop(within time: Duration) async {
        let channels = state.withLock { state in
            state.isStopping = true
            return Array(state.channels.values)
        }
        for channel in channels {
            channel.pipeline.fireUserInboundEventTriggered(ServerStopEvent())
            channel.eventLoop.scheduleTask(in: TimeAmount(time)) { channel.close(promise: nil) }
        }
        for channel in channels {
            do {
                try await channel.closeFuture.get()
            } catch {
                // It is closed, whatever the error.
            }
        }
    }
}
