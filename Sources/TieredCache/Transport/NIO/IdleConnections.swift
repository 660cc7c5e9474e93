#if HTTPClient
import NIOCore

/// The connections that wait for a request, by peer.
///
/// A value: takes no lock, closes nothing.
struct IdleConnections {
    /// The most connections kept; the one that has waited longest for the same peer makes room.
    static let capacity = 256

    private var connections: [ConnectionPeer: [Connection]] = [:]
    private var count = 0

    /// The connection to a peer that was used last, on `eventLoop` if there is one there.
    mutating func take(
        _ peer: ConnectionPeer,
        preferring eventLoop: (any EventLoop)?
    ) -> Connection? {
        guard let index = connections.index(forKey: peer) else { return nil }
        let waiting = connections.values[index]
        let preferred = eventLoop.flatMap { eventLoop in
            waiting.lastIndex { $0.eventLoop === eventLoop }
        }
        let taken = connections.values[index].remove(at: preferred ?? waiting.endIndex - 1)
        didRemove(from: index)
        return taken
    }

    /// Keeps a connection.
    ///
    /// - Returns: another one that has to be closed for it.
    mutating func keep(_ connection: Connection) -> Connection? {
        var leaving: Connection?
        if count >= Self.capacity {
            let index = connections.index(forKey: connection.peer) ?? connections.startIndex
            leaving = connections.values[index].removeFirst()
            didRemove(from: index)
        }
        connections[connection.peer, default: []].append(connection)
        count += 1
        return leaving
    }

    /// Removes a connection; false if it is not here.
    mutating func remove(_ connection: Connection) -> Bool {
        guard let index = connections.index(forKey: connection.peer),
            let place = connections.values[index].firstIndex(where: { $0 === connection })
        else { return false }
        connections.values[index].remove(at: place)
        didRemove(from: index)
        return true
    }

    private mutating func didRemove(from index: Dictionary<ConnectionPeer, [Connection]>.Index) {
        count -= 1
        if connections.values[index].isEmpty { connections.remove(at: index) }
    }
}
#endif
