import NIOCore
import TieredCache

/// The connections that are open.
final class ConnectionRegistry: Sendable {
    private struct State {
        var channels: [ObjectIdentifier: any Channel] = [:]
        var isStopping = false
        /// When those that are there were asked to leave, the last time.
        var madeRoomAt: NIODeadline?
    }

    private let state = Guarded(State())

    /// How many there are.
    var count: Int { state.withLock { $0.channels.count } }

    /// Bytes that each was given to send and that its socket has not taken: in memory, and at most
    /// how many in a file.
    func unsent() async -> [(inMemory: Int, inFile: Int)] {
        var counts: [(Int, Int)] = []
        for channel in state.withLock({ Array($0.channels.values) }) {
            do {
                let pending = try await channel.getOption(.bufferedWritableBytes).get()
                let leased = try await channel.eventLoop.submit {
                    let operations = channel.pipeline.syncOperations
                    return try operations.handler(type: ConnectionHandler.self).leased?.count ?? 0
                }.get()
                counts.append((max(0, pending - Int(leased)), min(pending, Int(leased))))
            } catch {
                // It has closed meanwhile.
            }
        }
        return counts
    }

    /// Takes in a connection until it closes.
    func enter(_ channel: any Channel) {
        let id = ObjectIdentifier(channel)
        let isStopping = state.withLock { state in
            state.channels[id] = channel
            return state.isStopping
        }
        channel.closeFuture.whenComplete { [self] _ in
            state.withLock { _ = $0.channels.removeValue(forKey: id) }
        }
        if isStopping { channel.close(promise: nil) }
    }

    /// Asks connections to end, because clients wait that cannot be accepted.
    ///
    /// Idle ones end now, the others with their next answer. That happens once a second at most.
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

    /// Closes those without a request at once, the others after their answer, or after `time`.
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
                // However it ended, it has.
            }
        }
    }
}
