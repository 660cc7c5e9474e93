import HeapModule

/// Waiting transfers in order; those of a closed host do not delay the others.
///
/// Two kinds of heap: `candidates` holds transfers of open hosts, `parked` holds, per host, those
/// found while the host was closed. A host that opens moves its best parked transfer to the
/// candidates, and one more for each of its transfers that leaves. So the best transfer of an open
/// host is always a candidate, and a thousand parked transfers cost nothing when their host opens
/// for one slot.
///
/// Heaps cannot delete from the middle: the old place of a removed or moved transfer stays behind.
/// It is skipped when it reaches the top, and swept when such places outnumber the transfers.
///
/// - Complexity: O(log n) amortised for each call.
struct HostQueue {
    /// A position in the queue; lower rank first, then lower sequence.
    struct Position: Comparable {
        var rank: Int
        var sequence: UInt64

        static func < (left: Position, right: Position) -> Bool {
            (left.rank, left.sequence) < (right.rank, right.sequence)
        }
    }

    struct Place: Comparable {
        let transfer: TransferID
        let host: String
        let position: Position

        static func == (left: Place, right: Place) -> Bool {
            left.transfer == right.transfer && left.position == right.position
        }

        static func < (left: Place, right: Place) -> Bool {
            left.position < right.position
        }
    }

    private var places: [TransferID: Place] = [:]
    private var candidates = Heap<Place>()
    private var parked: [String: Heap<Place>] = [:]
    private var closedHosts: Set<String> = []
    /// The number of places in all heaps, including abandoned ones.
    private(set) var heapCount = 0

    var count: Int { places.count }

    /// Adds a transfer that is not in the queue.
    mutating func insert(_ transfer: TransferID, host: String, at position: Position) {
        let place = Place(transfer: transfer, host: host, position: position)
        places[transfer] = place
        store(place)
        sweepIfWorthwhile()
    }

    /// Removes a transfer; ignored if it is not in the queue.
    mutating func remove(_ transfer: TransferID) {
        guard let place = places.removeValue(forKey: transfer) else { return }
        promote(place.host)
    }

    /// Opens or closes a host.
    mutating func setHost(_ host: String, isOpen: Bool) {
        if !isOpen {
            closedHosts.insert(host)
        } else if closedHosts.remove(host) != nil {
            promote(host)
        }
    }

    /// The first transfer of an open host; it stays in the queue.
    mutating func first() -> Place? {
        while let place = candidates.min {
            let isCurrent = places[place.transfer] == place
            if isCurrent && !closedHosts.contains(place.host) { return place }
            candidates.removeMin()
            heapCount -= 1
            if isCurrent { store(place) }
        }
        return nil
    }

    private mutating func store(_ place: Place) {
        heapCount += 1
        if closedHosts.contains(place.host) {
            parked[place.host, default: Heap()].insert(place)
        } else {
            candidates.insert(place)
        }
    }

    /// Moves the best parked transfer of an open host to the candidates.
    private mutating func promote(_ host: String) {
        guard !closedHosts.contains(host), var heap = parked.removeValue(forKey: host) else {
            return
        }
        while let place = heap.popMin() {
            heapCount -= 1
            guard places[place.transfer] == place else { continue }
            store(place)
            break
        }
        if !heap.isEmpty { parked[host] = heap }
    }

    private mutating func sweepIfWorthwhile() {
        // The 64 keep a short queue from being swept at each change.
        guard heapCount > 2 * places.count + 64 else { return }
        candidates = Heap()
        parked = [:]
        heapCount = 0
        for place in places.values { store(place) }
    }
}
