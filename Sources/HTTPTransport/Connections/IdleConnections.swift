/// The connections of one event loop that wait for a request, by peer.
///
/// A value: closes nothing.
struct IdleConnections {
    /// The most connections kept; the one that has waited longest for the same peer makes room.
    private let capacity: Int
    private var connections: [ConnectionPeer: [ConnectionHandler]] = [:]
    private var count = 0

    init(capacity: Int) {
        self.capacity = capacity
    }

    /// The connection to a peer that was used last.
    mutating func take(_ peer: ConnectionPeer) -> ConnectionHandler? {
        guard let index = connections.index(forKey: peer) else { return nil }
        let taken = connections.values[index].removeLast()
        didRemove(from: index)
        return taken
    }

    /// Keeps a connection.
    ///
    /// - Returns: another one that has to be closed for it.
    mutating func keep(_ connection: ConnectionHandler) -> ConnectionHandler? {
        var leaving: ConnectionHandler?
        if count >= capacity {
            let index = connections.index(forKey: connection.peer) ?? connections.startIndex
            leaving = connections.values[index].removeFirst()
            didRemove(from: index)
        }
        connections[connection.peer, default: []].append(connection)
        count += 1
        return leaving
    }

    /// Removes a connection, if it is here.
    mutating func remove(_ connection: ConnectionHandler) {
        guard let index = connections.index(forKey: connection.peer),
            let place = connections.values[index].firstIndex(where: { $0 === connection })
        else { return }
        connections.values[index].remove(at: place)
        didRemove(from: index)
    }

    private mutating func didRemove(
        from index: Dictionary<ConnectionPeer, [ConnectionHandler]>.Index
    ) {
        count -= 1
        if connections.values[index].isEmpty { connections.remove(at: index) }
    }
}
