import FoundationEssentials
package import OrderedCollections
package import SystemPackage
package import TieredCache

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The file that holds the downloads of an agent: `agent/journal` in the cache directory.
///
/// Each change is a frame at its end, the last one of a download counts. A crash tears the last
/// frame at most, which is ignored. When more than half is of no use the rest is copied into a new
/// file, which takes its place. Only the owner of the directory opens it. Calls block on the disk.
package struct AgentJournal: ~Copyable {
    /// What an earlier process has left.
    package struct Contents: Sendable {
        package var records: [DownloadRecord] = []
        package var stopped: OrderedSet<GID> = []
        package var lastRank: Int64 = 0
        package var options = DownloadOptions()
        /// Those of ``stopped`` that their sessions have not acknowledged.
        package var results: [GID: JournalResult] = [:]
        package var sessions: [Session.Record] = []
        /// Records that could not be read; their bytes stay until the journal is copied.
        package var unreadable = 0

        fileprivate mutating func take(_ frame: JournalFrame) {
            switch frame.kind {
            case .record, .forgotten: results[GID(number: frame.number)] = frame.result
            case .options, .sessions: break
            }
        }
    }

    /// The bytes that a journal begins with: its name, and its version.
    private static let header: [UInt8] = [0x89, 0x54, 0x43, 0x61, 0x67, 0x74, 0x01, 0x0A]
    private static let minimumWaste: Int64 = 1 << 20

    private let directory: FilePath
    private var file: FileDescriptor
    private var end: Int64
    /// The frames that count.
    private var places: [UInt64: Range<Int64>] = [:]
    private var optionsPlace: Range<Int64>?
    private var sessionsPlace: Range<Int64>?
    private var used: Int64 = 0

    private init(_ file: FileDescriptor, in directory: FilePath) {
        self.file = file
        self.directory = directory
        end = Int64(Self.header.count)
    }

    /// Opens the journal of a cache directory, or makes it.
    ///
    /// - Throws: ``CacheError``: `.localStorage`; `.formatTooNew` for a journal of a later version,
    ///   which is left as it is.
    package static func open(
        in root: FilePath,
        reading contents: inout Contents
    ) throws(CacheError) -> AgentJournal {
        let directory = root.appending("agent")
        let file: FileDescriptor
        do {
            try directory.makeDirectory()
            file = try open(directory.appending("journal"))
        } catch {
            throw failure(root, error)
        }
        // From here on the file is closed with the journal.
        var journal = AgentJournal(file, in: directory)
        if try journal.begin(root) { try journal.load(&contents, root) }
        return journal
    }

    /// Writes the header of a new file.
    ///
    /// - Returns: whether it has one already.
    private func begin(_ root: FilePath) throws(CacheError) -> Bool {
        do {
            guard try file.seek(offset: 0, from: .end) < end else { return true }
            try file.resize(to: 0)
            try file.writeAll(toAbsoluteOffset: 0, Self.header)
            return false
        } catch {
            throw Self.failure(root, error)
        }
    }

    deinit {
        close(file.rawValue)
    }

    private static func open(
        _ path: FilePath,
        _ options: FileDescriptor.OpenOptions = []
    )
        throws -> FileDescriptor
    {
        try FileDescriptor.open(
            path,
            .readWrite,
            options: options.union([.create, .closeOnExec, .noFollow, .nonBlocking]),
            permissions: .ownerReadWrite
        )
    }

    private static func failure(_ path: FilePath, _ error: any Error) -> CacheError {
        CacheError(.localStorage, "cannot use the journal of the agent in \(path): \(error)")
    }

    // MARK: Loading

    private mutating func load(_ contents: inout Contents, _ root: FilePath) throws(CacheError) {
        var scan: JournalScan
        do {
            let size = try file.seek(offset: 0, from: .end)
            var head = [UInt8](repeating: 0, count: Self.header.count)
            _ = try head.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: 0, into: $0) }
            guard head == Self.header else {
                throw CacheError(
                    .formatTooNew,
                    "the journal of the agent in \(root) is of another version; nothing was changed"
                )
            }
            scan = JournalScan(file, from: end, size: size)
            var stopped: [(rank: Int64, gid: GID)] = []
            var open: [UInt64: DownloadRecord?] = [:]
            var isStopped: [UInt64: Int64] = [:]
            while let (frame, place) = try scan.next() {
                note(frame, at: place)
                contents.lastRank = max(contents.lastRank, frame.rank)
                contents.take(frame)
                switch frame.kind {
                case .options: contents.options = Self.options(frame.text) ?? contents.options
                case .sessions: contents.sessions = Self.sessions(frame.text) ?? contents.sessions
                case .forgotten:
                    open[frame.number] = nil
                    isStopped[frame.number] = nil
                case .record where frame.isStopped:
                    open[frame.number] = nil
                    isStopped[frame.number] = frame.rank
                case .record:
                    open[frame.number] = .some(Self.record(frame.text))
                    isStopped[frame.number] = nil
                }
            }
            for (number, rank) in isStopped { stopped.append((rank, GID(number: number))) }
            stopped.sort { $0.rank < $1.rank }
            contents.stopped = OrderedSet(stopped.map(\.gid))
            contents.records = open.values.compactMap { $0 }
            contents.unreadable = open.values.count { $0 == nil }
        } catch let error as CacheError {
            throw error
        } catch {
            throw Self.failure(root, error)
        }
        end = scan.end
        if scan.isDamaged { contents.unreadable += 1 }
    }

    private mutating func note(_ frame: JournalFrame, at place: Range<Int64>) {
        let old: Range<Int64>?
        switch frame.kind {
        case .record: old = places.updateValue(place, forKey: frame.number)
        case .forgotten: old = places.removeValue(forKey: frame.number)
        case .options: (old, optionsPlace) = (optionsPlace, place)
        case .sessions: (old, sessionsPlace) = (sessionsPlace, place)
        }
        if let old { used -= Int64(old.count) }
        if frame.kind != .forgotten { used += Int64(place.count) }
    }

    private static func record(_ text: [UInt8]) -> DownloadRecord? {
        do {
            return try JSONDecoder().decode(DownloadRecord.self, from: Data(text))
        } catch {
            return nil  // The checksum is right, so another program has written it.
        }
    }

    private static func options(_ text: [UInt8]) -> DownloadOptions? {
        do {
            return DownloadOptions(
                try JSONDecoder().decode([String: String].self, from: Data(text))
            )
        } catch {
            return nil
        }
    }

    private static func sessions(_ text: [UInt8]) -> [Session.Record]? {
        do {
            return try JSONDecoder().decode([Session.Record].self, from: Data(text))
        } catch {
            return nil
        }
    }

    // MARK: Changing

    /// Writes frames behind one another.
    ///
    /// - Throws: ``CacheError``, `.localStorage`; none of them counts then.
    package mutating func append(_ changes: [Change]) throws(CacheError) {
        guard !changes.isEmpty else { return }
        do {
            let frames = try changes.map { try $0.frame }
            let bytes = frames.map(\.bytes)
            try file.writeAll(toAbsoluteOffset: end, bytes.joined())
            for (frame, bytes) in zip(frames, bytes) {
                note(frame, at: end..<end + Int64(bytes.count))
                end += Int64(bytes.count)
            }
            try compactIfWasteful()
        } catch {
            discardTail()
            throw Self.failure(directory, error)
        }
    }

    /// Takes away what a write has left that failed half way.
    private func discardTail() {
        do {
            try file.resize(to: end)
        } catch {
            // The next write goes over it.
        }
    }

    /// One change.
    package enum Change: Hashable, Sendable {
        case save(DownloadRecord)
        case forget(GID)
        case options(DownloadOptions)
        case sessions([Session.Record])

        fileprivate var frame: JournalFrame {
            get throws {
                switch self {
                case .save(let record):
                    JournalFrame(
                        kind: .record,
                        isStopped: record.state.isStopped,
                        result: JournalResult(record),
                        number: record.gid.number,
                        rank: record.rank,
                        text: try JSONEncoder().encode(record).bytes
                    )
                case .forget(let gid): JournalFrame(kind: .forgotten, number: gid.number)
                case .options(let options):
                    JournalFrame(
                        kind: .options,
                        number: 0,
                        text: try JSONEncoder().encode(options.values).bytes
                    )
                case .sessions(let sessions):
                    JournalFrame(
                        kind: .sessions,
                        number: 0,
                        text: try JSONEncoder().encode(sessions).bytes
                    )
                }
            }
        }
    }

    /// The record of a download as it was written last; nil where there is none to be read.
    package func record(_ gid: GID) throws(CacheError) -> DownloadRecord? {
        guard let place = places[gid.number] else { return nil }
        do {
            let bytes = try read(place)
            return JournalFrame(bytes[...]).flatMap { Self.record($0.text) }
        } catch {
            throw Self.failure(directory, error)
        }
    }

    private func read(_ place: Range<Int64>) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: place.count)
        _ = try bytes.withUnsafeMutableBytes {
            try file.read(fromAbsoluteOffset: place.lowerBound, into: $0)
        }
        return bytes
    }

    /// Copies a frame, and advances the position behind it.
    private func move(
        _ place: Range<Int64>,
        to copy: FileDescriptor,
        at position: inout Int64
    ) throws -> Range<Int64> {
        let start = position
        try copy.writeAll(toAbsoluteOffset: start, try read(place))
        position += Int64(place.count)
        return start..<position
    }

    private mutating func compactIfWasteful() throws {
        guard end - used > max(used, Self.minimumWaste) else { return }
        let path = directory.appending("journal.new")
        let copy = try Self.open(path, .truncate)
        do {
            var new: [UInt64: Range<Int64>] = [:]
            try copy.writeAll(toAbsoluteOffset: 0, Self.header)
            var position = Int64(Self.header.count)
            var (options, sessions) = (optionsPlace, sessionsPlace)
            if let place = options { options = try move(place, to: copy, at: &position) }
            if let place = sessions { sessions = try move(place, to: copy, at: &position) }
            let old = places.sorted { $0.value.lowerBound < $1.value.lowerBound }
            for (number, place) in old { new[number] = try move(place, to: copy, at: &position) }
            try path.rename(to: directory.appending("journal"))
            close(file.rawValue)
            (file, end, places) = (copy, position, new)
            (optionsPlace, sessionsPlace) = (options, sessions)
        } catch {
            try copy.close()
            throw error
        }
    }
}

extension Data {
    fileprivate var bytes: [UInt8] { [UInt8](self) }
}

extension FilePath {
    /// mkdir(2), 0700, where there is none yet.
    fileprivate func makeDirectory() throws {
        guard mkdir(string, 0o700) != 0, errno != EEXIST else { return }
        throw Errno(rawValue: errno)
    }

    fileprivate func rename(to other: FilePath) throws {
        guard Glibc.rename(string, other.string) != 0 else { return }
        throw Errno(rawValue: errno)
    }
}
