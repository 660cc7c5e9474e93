import SystemPackage

// A body that was found to be what was promised is not compared again by the next process: its
// record says so, in a word behind all else. See docs/disk-format.md.
extension DiskStore {
    /// The word in the record of an entry; nil if there is none, or the record is another one's.
    func comparisonWord(of entry: DiskEntry) throws(FileSystemError) -> UInt64? {
        guard let entries = entriesIfPresent else { return nil }
        beginOpening(entry.name)
        defer { endOpening(entry.name) }
        let path = entry.name.record
        guard
            case .ready(let file?) = try fileSystem.openIfPresent(path, in: entries, blocking: true)
        else { return nil }
        _ = try fileSystem.requireFile(file)
        defer { fileSystem.close(file) }
        guard let head = try read(Record.fixedLength, of: file, at: 0),
            let offset = head.withUnsafeBytes({ entry.record.comparisonOffset(in: $0) }),
            let word = try read(8, of: file, at: offset)
        else { return nil }
        return word.withUnsafeBytes { $0.get(UInt64.self, at: 0) }
    }

    private func read(
        _ count: Int,
        of file: OpenFile,
        at offset: Int64
    ) throws(FileSystemError) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        let read = try bytes.withUnsafeMutableBytesThrowing { (buffer) throws(FileSystemError) in
            try fileSystem.read(file, into: buffer, at: offset)
        }
        return read == count ? bytes : nil
    }

    /// Writes the word behind the record of an entry whose body is what was promised.
    ///
    /// In place, since a torn word is a wrong one. A record that is pinned is replaced instead: a
    /// torn sector would cost the entry.
    func recordComparison(of entry: DiskEntry) {
        if let word = entry.comparisonWord {
            compared.withLock { $0.insert(word, of: entry.name) }
        }
        guard access.canWrite, let (isPinned, isInline) = entry.recordedForm else { return }
        do throws(CacheError) {
            if isPinned {
                if !isInline { try replaceRecord(of: entry) { _ in } }
                return
            }
            try beginWriting()
            defer { endWriting() }
            let cost = Self.cost(8192)
            try reserve(cost, for: entry.name)
            defer { endReservation(cost) }
            try withLock(of: entry.name) { (lock) throws(CacheError) in
                try naming(entry.name) { () throws(FileSystemError) in
                    try writeComparison(lock, of: entry)
                }
            }
        } catch {
            // The next process compares once more.
            count(\.housekeepingErrors)
        }
    }

    private func writeComparison(
        _ lock: borrowing NameLock,
        of entry: DiskEntry
    ) throws(FileSystemError) {
        guard entry.recordedForm?.isPinned == false, let word = entry.comparisonWord else { return }
        let file = try openFile(entry.name.record, in: entries, mode: .readWrite)
        defer { fileSystem.close(file) }
        guard let head = try read(Record.fixedLength, of: file, at: 0),
            let offset = head.withUnsafeBytes({ entry.record.comparisonOffset(in: $0) }),
            try isAsVerified(lock, file: file, of: entry)
        else { return }
        var bytes = [UInt8](repeating: 0, count: 8)
        bytes.withUnsafeMutableBytes { $0.put(word, at: 0) }
        try fileSystem.write(bytes, to: file, at: offset)
        entry.state.withLock { $0.changes += 1 }
        try didChangeRecord(lock, file: file, of: entry)
        try charge(lock, for: entry, record: file)
    }
}

/// The words of bodies that were compared, by the names of their entries.
///
/// A guest opens an entry anew at each lookup and writes nothing; records with an inline body that
/// are pinned have no word either.
struct ComparedBodies {
    /// How many are known; any of them is forgotten for one more.
    static let capacity = 1024

    private var words: [EntryName: UInt64] = [:]

    mutating func insert(_ word: UInt64, of name: EntryName) {
        if words.count >= Self.capacity, words[name] == nil, let other = words.keys.first {
            words[other] = nil
        }
        words[name] = word
    }

    func contains(_ word: UInt64, of name: EntryName) -> Bool { words[name] == word }
}

extension DiskEntry {
    /// How the record of the entry is stored; nil if it has none.
    fileprivate var recordedForm: (isPinned: Bool, isInline: Bool)? {
        state.withLock { state in
            guard state.isPublished, !state.isDetached else { return nil }
            return (state.flags.contains(.pinned), state.isInline)
        }
    }

    /// The word for the record as it would be written now; nil for none.
    var comparisonWord: UInt64? {
        let (table, proven) = state.withLock { ($0.table, $0.decision.proven) }
        return table.comparisonWord(proven)
    }
}

extension Record {
    /// The offset of the word that says that the body was compared.
    ///
    /// - Parameter bytes: the beginning of the file.
    /// - Returns: nil for a body of unknown length, and if the file has not the lengths of this
    ///   record: the word would lie anywhere.
    func comparisonOffset(in bytes: UnsafeRawBufferPointer) -> Int64? {
        guard let completeLength, Self.version(of: bytes) != nil,
            bytes.get(UInt64.self, at: 32) == generation,
            bytes.get(Int64.self, at: 40) == completeLength,
            Int(bytes.get(UInt32.self, at: 56)) == key.string.utf8.count,
            Int(bytes.get(UInt32.self, at: 60)) == metadata.count
        else { return nil }
        let isInline = flags.contains(.inline)
        guard Flags(rawValue: bytes.get(UInt32.self, at: 24)).contains(.inline) == isInline else {
            return nil
        }
        return tableOffset + 8 * BlockTable.blockCount(completeLength)
            + (isInline ? completeLength : 0)
    }
}
