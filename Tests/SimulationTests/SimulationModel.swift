#if os(Linux)
import Glibc
import TieredCache

/// What may be answered: decides, and touches nothing.
struct SimulationModel: Sendable {
    /// What is promised of a URL since it was pinned.
    private struct Site {
        /// Grows with whatever may end a promise.
        var voids = 0
        /// What is under way that may end a promise.
        var voiding = 0
        var isPromised = false
    }

    /// How a URL was when a request for it began.
    struct Beginning: Sendable {
        let url: Int
        let epoch: Int
        let voids: Int
        let isPromised: Bool
    }

    private var sites: [Site]
    /// How often calls of the disk were made to fail since it was well.
    private var injuries = 0
    /// Grows when the process begins to end, and when another has begun.
    private(set) var epoch = 0
    var space: SpaceBound

    init(urls: Int, limit: Int64) {
        sites = [Site](repeating: Site(), count: urls)
        space = SpaceBound(limit: limit)
    }

    mutating func didTurnProcess() { epoch += 1 }

    func begin(_ url: Int) -> Beginning {
        Beginning(
            url: url,
            epoch: epoch,
            voids: sites[url].voids,
            isPromised: sites[url].isPromised
        )
    }

    // MARK: Promises

    /// Something begins that may end what is promised.
    mutating func beginVoiding(_ urls: some Sequence<Int>) {
        for url in urls {
            sites[url].voiding += 1
            sites[url].voids += 1
            sites[url].isPromised = false
        }
    }

    mutating func endVoiding(_ urls: some Sequence<Int>) {
        for url in urls {
            sites[url].voiding -= 1
            sites[url].voids += 1
        }
    }

    /// Calls of the disk are about to fail, which may end every promise, until it is healed.
    mutating func beginInjury() {
        beginVoiding(sites.indices)
        injuries += 1
    }

    mutating func didHeal() {
        for _ in 0..<injuries { endVoiding(sites.indices) }
        injuries = 0
    }

    /// A complete body was seen to be pinned.
    mutating func didSeePinned(_ beginning: Beginning) {
        let site = sites[beginning.url]
        guard beginning.epoch == epoch, site.voids == beginning.voids, site.voiding == 0 else {
            return
        }
        sites[beginning.url].isPromised = true
    }

    /// Whether what was promised when a request began is still promised.
    func isStillPromised(_ beginning: Beginning) -> Bool {
        beginning.isPromised && beginning.epoch == epoch
            && sites[beginning.url].voids == beginning.voids
    }

    func isPromised(_ url: Int) -> Bool { sites[url].isPromised }
}

/// How much may be allocated at an instant.
struct SpaceBound: Sendable {
    private(set) var limit: Int64
    /// What was there already when the limit was lowered may stay.
    private var ceiling: Int64
    /// A change of the limit is under way.
    private(set) var isChanging = false
    /// Until then what was admitted under an older limit may arrive.
    private var settlesAt = MonotonicTime(nanoseconds: .min)

    init(limit: Int64) {
        self.limit = limit
        ceiling = limit
    }

    /// - Returns: whether so much may be allocated now.
    mutating func allows(_ allocated: Int64, at now: MonotonicTime) -> Bool {
        guard allocated > limit || isChanging || now < settlesAt else {
            ceiling = limit
            return true
        }
        return allocated <= ceiling
    }

    mutating func beginChange(to limit: Int64) {
        isChanging = true
        ceiling = max(ceiling, limit)
    }

    mutating func endChange(to limit: Int64, at now: MonotonicTime) {
        isChanging = false
        settlesAt = now.advanced(by: .seconds(120))
        self.limit = limit
    }

    /// Another disk, as a crash has left it, or a change from outside.
    mutating func tolerate(_ allocated: Int64) { ceiling = max(ceiling, allocated) }
}

/// Compares what is delivered with all that it may be.
struct BodyCheck {
    private(set) var candidates: [Representation]
    private(set) var offset: Int64
    /// Everything that the URL has ever had, to say what wrong bytes are of.
    private let history: [Representation]

    init(_ history: [Representation], tag: String? = nil, from offset: Int64 = 0) {
        self.history = history
        candidates = tag.map { tag in history.filter { $0.tag == tag } } ?? history
        self.offset = offset
    }

    /// - Returns: what is wrong; nil if the bytes go on as one of the representations does.
    mutating func take(_ bytes: UnsafeRawBufferPointer) -> String? {
        let start = Int(offset)
        let left = candidates.filter { Self.isPart(bytes, of: $0, at: start) }
        guard !left.isEmpty else { return describe(bytes, at: start) }
        candidates = left
        offset += Int64(bytes.count)
        return nil
    }

    private static func isPart(
        _ bytes: UnsafeRawBufferPointer,
        of other: Representation,
        at start: Int
    ) -> Bool {
        guard start + bytes.count <= other.bytes.count else { return false }
        guard let first = bytes.baseAddress else { return true }
        return other.bytes.withUnsafeBytes { all in
            all.baseAddress.map { memcmp($0 + start, first, bytes.count) == 0 } ?? false
        }
    }

    private func describe(_ bytes: UnsafeRawBufferPointer, at start: Int) -> String {
        var text =
            "wrong bytes in \(start)..<\(start + bytes.count) of \(candidates.map(\.number)):"
        for candidate in history {
            let known = candidate.bytes.dropFirst(start)
            let same = zip(known, bytes).prefix { $0 == $1 }.count
            text += " \(candidate.number) (length \(candidate.bytes.count)) up to \(start + same)"
            let zeros = bytes.dropFirst(same).prefix { $0 == 0 }.count
            let others = history.filter { other in
                other.bytes.dropFirst(start + same).starts(with: bytes.dropFirst(same).prefix(4096))
            }
            if zeros > 0 { text += ", then \(zeros) zeros" }
            text += others.map { ", then \($0.number)" }.joined() + ";"
        }
        return text
    }
}
#endif
