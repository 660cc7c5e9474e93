import HTTPCaching
import HTTPTypes

/// What the flights and readers of one key and one set of selecting fields share.
///
/// Flights write to the disk entry and report here; readers read the entry and wait here. A fill
/// lives as long as a flight or a reader holds it.
final class Fill: Sendable {
    /// The head and the entry of one representation (invariant 3).
    struct Generation: Sendable {
        let head: StoredResponse
        let entry: DiskEntry
    }

    /// What a flight's response head turned out to mean.
    enum Answer: Sendable {
        /// Bytes go into this entry, which is another one than before if the origin changed.
        case storing(Generation)
        /// Bytes are not stored and go to the one reader that claims the channel.
        case passing(StoredResponse, PassThroughChannel, DownloadOperation.NotStored)
        /// 304: what is held is still the representation, and this its head; nil if the answer is
        /// about something that is not held.
        case notModified(StoredResponse?)
        /// A final status without a body that was wanted.
        case unsuccessful(StoredResponse)
    }

    private struct State {
        var generation: Generation?
        var answers: [FlightID: Answer] = [:]
        /// Which group the flights that write into an entry belong to, by generation.
        var writers: [UInt64: FlightGroup] = [:]
    }

    /// Bumped whenever bytes arrive, a head arrives, or a flight ends.
    let signal = ProgressSignal()
    let group: FlightGroup
    private let state = Guarded(State())

    private let onRelease: @Sendable () -> Void

    init(group: FlightGroup, onRelease: @escaping @Sendable () -> Void) {
        self.group = group
        self.onRelease = onRelease
    }

    deinit {
        onRelease()
    }

    /// The newest generation that a flight of this fill has met.
    var generation: Generation? {
        state.withLock { $0.generation }
    }

    /// What the flight's head meant; nil before it has arrived.
    func answer(of flight: FlightID) -> Answer? {
        state.withLock { $0.answers[flight] }
    }

    /// The group to join for bytes of `entry`: that of the flight writing it, if there is one.
    func joinableGroup(for entry: DiskEntry) -> FlightGroup {
        state.withLock { $0.writers[entry.generation] } ?? group
    }

    func didReceiveHead(_ answer: Answer, flight: FlightID, group: FlightGroup) {
        state.withLock { state in
            state.answers[flight] = answer
            guard case .storing(let generation) = answer else { return }
            state.generation = generation
            state.writers[generation.entry.generation] = group
        }
        signal.bump()
    }
}
