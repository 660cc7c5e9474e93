import CXXHash
import TieredCache

/// One entry of the journal as bytes; see docs/agent-protocol.md, "The journal".
struct JournalFrame: Hashable {
    /// What a frame tells of.
    enum Kind: UInt8 {
        case record = 1
        case forgotten = 2
        case options = 3
        case sessions = 4
    }

    static let magic: [UInt8] = Array("TCfr".utf8)
    /// Magic, length, checksum.
    static let headerSize = 16
    /// Kind, flags, number, rank.
    static let prefixSize = 18
    /// The longest payload; a record is far shorter.
    static let maximumPayload = 1 << 20

    let kind: Kind
    /// Whether it is a record of a download that has stopped.
    let isStopped: Bool
    /// What its session is told of that until it acknowledges it; nil for none.
    let result: JournalResult?
    /// The GID; 0 for none.
    let number: UInt64
    let rank: Int64
    /// JSON; empty where the kind says all.
    let text: [UInt8]

    /// All of it.
    var bytes: [UInt8] {
        var payload: [UInt8] = [kind.rawValue, (isStopped ? 1 : 0) | (result == nil ? 0 : 2)]
        payload.append(number)
        payload.append(UInt64(bitPattern: rank))
        if let result { payload += result.bytes }
        payload += text
        var bytes = Self.magic
        bytes.append(UInt32(payload.count))
        bytes.append(Self.checksum(payload[...]))
        return bytes + payload
    }

    /// How long the frame is that begins with these bytes; nil where none does.
    static func length(at bytes: ArraySlice<UInt8>) -> Int? {
        guard bytes.count >= headerSize, bytes.starts(with: magic) else { return nil }
        let count = Int(bytes.number(at: 4, as: UInt32.self))
        guard (prefixSize...maximumPayload).contains(count) else { return nil }
        return headerSize + count
    }

    /// Reads a frame of just these bytes; nil where they are damaged.
    init?(_ bytes: ArraySlice<UInt8>) {
        let payload = bytes.dropFirst(Self.headerSize)
        guard Self.length(at: bytes) == bytes.count,
            Self.checksum(payload) == bytes.number(at: 8, as: UInt64.self),
            let kind = payload.first.flatMap(Kind.init)
        else { return nil }
        self.kind = kind
        let flags = payload.number(at: 1, as: UInt8.self)
        isStopped = flags & 1 != 0
        number = payload.number(at: 2, as: UInt64.self)
        rank = Int64(bitPattern: payload.number(at: 10, as: UInt64.self))
        guard DownloadRecord.ranks.contains(rank) else { return nil }
        var rest = payload.dropFirst(Self.prefixSize)
        if flags & 2 != 0 {
            guard isStopped, let result = JournalResult(taking: &rest) else { return nil }
            self.result = result
        } else {
            result = nil
        }
        text = Array(rest)
    }

    init(
        kind: Kind,
        isStopped: Bool = false,
        result: JournalResult? = nil,
        number: UInt64,
        rank: Int64 = 0,
        text: [UInt8] = []
    ) {
        self.kind = kind
        self.isStopped = isStopped
        self.result = result
        self.number = number
        self.rank = rank
        self.text = text
    }

    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.withUnsafeBytes { XXH3_64bits($0.baseAddress, $0.count) }
    }
}

/// What a session is told of a download that has stopped, so that a start need not read its JSON.
package struct JournalResult: Hashable, Sendable {
    private static let events: [DownloadEvent] = [.complete, .error, .stop]
    /// Date, event, length of the name.
    private static let headerSize = 10

    package let session: String
    package let result: Session.Result

    /// The result of a record; nil where no session waits for it.
    init?(_ record: DownloadRecord) {
        guard let session = record.session, let result = record.result else { return nil }
        self.session = session
        self.result = result
    }

    fileprivate var bytes: [UInt8] {
        let name = Array(session.utf8.prefix(255))
        var bytes: [UInt8] = []
        bytes.append(UInt64(bitPattern: result.date))
        bytes.append(UInt8(Self.events.firstIndex(of: result.event) ?? 0))
        return bytes + [UInt8(name.count)] + name
    }

    /// Takes one from the front of a payload; nil where it is none.
    fileprivate init?(taking payload: inout ArraySlice<UInt8>) {
        guard payload.count >= Self.headerSize else { return nil }
        let event = Int(payload.number(at: 8, as: UInt8.self))
        let count = Int(payload.number(at: 9, as: UInt8.self))
        let name = payload.dropFirst(Self.headerSize).prefix(count)
        guard Self.events.indices.contains(event), name.count == count else { return nil }
        session = String(decoding: name, as: UTF8.self)
        guard SessionForm.isName(session) else { return nil }
        let date = Int64(bitPattern: payload.number(at: 0, as: UInt64.self))
        result = Session.Result(event: Self.events[event], date: max(0, date))
        payload = payload.dropFirst(Self.headerSize + count)
    }
}

extension [UInt8] {
    /// Appends a number, its lowest byte first.
    fileprivate mutating func append<Number: FixedWidthInteger>(_ number: Number) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }
}

extension ArraySlice<UInt8> {
    /// The number at an offset from the start of the slice, its lowest byte first.
    fileprivate func number<Number: FixedWidthInteger>(at offset: Int, as: Number.Type) -> Number {
        let start = startIndex + offset
        let bytes = self[start..<start + MemoryLayout<Number>.size]
        return bytes.reversed().reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
    }
}
