import HTTPCaching
import Synchronization
import SystemPackage

extension DiskCore {
    /// Builds the index from the directory, once; whoever comes meanwhile waits.
    ///
    /// - Throws: ``CacheError/Code/localStorage`` if the directory cannot be listed; tried again at
    ///   the next call.
    func loadIndex(isCancelled: () -> Bool = { false }) throws(CacheError) {
        if state.withLock({ $0.isIndexLoaded }) { return }
        // One turn for all: the name only has to be the same each time.
        let everyone = EntryName(digest: MD5Digest(high: 0, low: 0))
        try loading.take(everyone) { () throws(CacheError) in
            if state.withLock({ $0.isIndexLoaded }) { return }
            let scan = try scan(isCancelled: isCancelled)
            sweep(scan)
            state.withLock { state in
                for slot in scan.slots.sorted(by: { $0.lastUse < $1.lastUse }) {
                    state.index.insert(slot)
                    state.ledger.book(slot.bytes)
                }
                state.isIndexLoaded = true
            }
        }
    }

    /// What a look at every directory found.
    struct Scan {
        var slots: [DiskIndex.Slot] = []
        /// Record files that are no records.
        var damaged: [EntryName] = []
        /// Bodies that no record speaks of.
        var orphans: [EntryBody] = []
    }

    /// Reads every directory; changes nothing.
    func scan(isCancelled: () -> Bool = { false }) throws(CacheError) -> Scan {
        var result = Scan()
        guard let entries else { return result }
        for shard in try shards(in: entries) {
            if isCancelled() { throw CacheError(.cancelled, "the cache is being closed") }
            let name = EntryName.shard(shard)
            do throws(FileSystemError) {
                let directory = try open(name, in: entries, .directory)
                defer { fileSystem.close(directory) }
                let files = ShardFiles(try fileSystem.list(directory), shard: shard)
                try add(files, to: &result)
            } catch {
                switch error.errno {
                case .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels:
                    continue  // Not there, or not ours.
                default:
                    throw self.error(error, "entries/\(name)")
                }
            }
        }
        return result
    }

    /// The directories that there are; looking for each of 256 would cost a small cache most.
    private func shards(in entries: OpenFile) throws(CacheError) -> [Int] {
        do throws(FileSystemError) {
            let items = try fileSystem.list(entries).filter { $0.kind == .directory }
            let names = Set(items.map(\.name))
            return (0..<256).filter { names.contains(EntryName.shard($0)) }
        } catch {
            throw self.error(error, "entries")
        }
    }

    private func add(_ files: ShardFiles, to result: inout Scan) throws(FileSystemError) {
        var claimed: Set<EntryBody> = []
        for name in files.records {
            guard let found = self.record(of: name) else {
                result.damaged.append(name)
                continue
            }
            let body = EntryBody(name: name, generation: found.record.generation)
            let hasBody = files.bodies.contains(body) && !found.record.flags.contains(.inline)
            if hasBody { claimed.insert(body) }
            let bodyBytes = hasBody ? try allocated(name.body(body.generation)) : 0
            result.slots.append(
                DiskIndex.Slot(
                    name: name,
                    generation: body.generation,
                    recordBytes: try allocated(name.record),
                    bodyBytes: bodyBytes,
                    hasBody: hasBody,
                    lastUse: lastUse(of: found.record),
                    queue: queue(of: found.record)
                )
            )
        }
        result.orphans.append(contentsOf: files.bodies.subtracting(claimed))
    }

    /// Removes what a crash left: safe before the first write, when nothing is under way.
    private func sweep(_ scan: Scan) {
        guard access.canWrite, let entries, lock.beginWrite() else { return }
        defer { endWriting() }
        let paths = scan.damaged.map(\.record) + scan.orphans.map(\.path)
        for path in paths {
            do throws(FileSystemError) {
                try unlinkIfPresent(path, in: entries)
            } catch {
                // Costs space until the next start; the other files are swept all the same.
                count(\.housekeepingErrors)
            }
        }
        state.withLock { $0.counters.damagedRecords += scan.damaged.count }
    }

    /// An entry never used counts as used when it was made; a date in the future as used now.
    private func lastUse(of record: Record) -> UInt32 {
        let seconds = UInt32(clamping: max(Int64(clamping: record.lastUse), record.created.seconds))
        return min(seconds, self.seconds())
    }

    private func queue(of record: Record) -> DiskIndex.Queue {
        let queue = record.flags.queue
        return queue == .prefetched && record.lastUse > 0 ? .used : queue
    }

    private func allocated(_ path: String) throws(FileSystemError) -> Int64 {
        guard let entries else { return 0 }
        do throws(FileSystemError) {
            return try fileSystem.status(of: path, in: entries).allocatedBytes
        } catch  where error.errno == .noSuchFileOrDirectory {
            return 0
        }
    }

    // MARK: Recency

    /// Brings the hits since the last time into the order of eviction.
    func foldUses() {
        let now = seconds()
        state.withLock { state in
            for entry in state.residents.all
            where entry.isUsed.exchange(false, ordering: .relaxed) {
                state.index.touch(entry.name, at: now)
                entry.pendingUse.store(UInt64(now), ordering: .relaxed)
            }
        }
    }

    /// Once a minute, on a call that may block: writes recency down.
    func foldUsesIfDue() {
        guard access.canWrite else { return }
        let now = timeSource.monotonicTime().nanoseconds
        let isDue = state.withLock { state in
            guard now - state.lastFold >= 60_000_000_000 else { return false }
            state.lastFold = now
            return true
        }
        if isDue { persistUses() }
    }

    /// Writes down when the open entries were last used.
    func persistUses() {
        guard access.canWrite, lock.beginWrite() else { return }
        defer { endWriting() }
        foldUses()
        for entry in state.withLock({ $0.residents.all }) {
            let use = entry.pendingUse.exchange(0, ordering: .relaxed)
            if use > 0 { persistUse(of: entry, UInt32(clamping: use)) }
        }
    }

    /// Writes the last use into the record, at most once a minute per entry.
    func persistUse(of entry: DiskEntry, _ seconds: UInt32) {
        let last = entry.persistedUse.load(ordering: .relaxed)
        guard UInt64(seconds) >= last + 60 || last > UInt64(seconds), lock.beginWrite()
        else { return }
        defer { endWriting() }
        turns.take(entry.name) {
            let (isPublished, isDetached) = entry.state.withLock { ($0.isPublished, $0.isDetached) }
            guard isPublished, !isDetached, isCurrent(entry) else { return }
            do throws(FileSystemError) {
                try writeLastUse(UInt64(seconds), entry)
                entry.persistedUse.store(UInt64(seconds), ordering: .relaxed)
            } catch {
                // A use that is forgotten costs at worst an early eviction.
                count(\.housekeepingErrors)
            }
        }
    }

    /// Whether the record on disk is this entry's: before the index is loaded, nobody has written.
    private func isCurrent(_ entry: DiskEntry) -> Bool {
        state.withLock { state in
            guard state.isIndexLoaded else { return true }
            return state.index[entry.name]?.generation == entry.generation
        }
    }

    private func writeLastUse(_ use: UInt64, _ entry: DiskEntry) throws(FileSystemError) {
        guard let entries else { return }
        let file = try open(entry.name.record, in: entries, .readWrite)
        defer { fileSystem.close(file) }
        let bytes = withUnsafeBytes(of: use.littleEndian) { Array($0) }
        try fileSystem.write(bytes, to: file, at: Record.lastUseOffset)
        guard entry.state.withLock({ $0.isInline }) else { return }
        // The body's own file was changed by us: what was verified stays so.
        let verification = try fileSystem.status(of: file).verification
        entry.state.withLock { $0.verification = verification }
        state.withLock { state in
            _ = state.index.update(entry.name, generation: entry.generation) { slot in
                if slot.verification != 0 { slot.verification = verification }
            }
        }
    }
}

/// A body file.
struct EntryBody: Hashable {
    var name: EntryName
    var generation: UInt64

    var path: String { name.body(generation) }
}

/// The files of one directory that are ours.
private struct ShardFiles {
    private(set) var records: [EntryName] = []
    private(set) var bodies: Set<EntryBody> = []

    init(_ items: [DirectoryItem], shard: Int) {
        for item in items where item.kind == .file {
            switch EntryFileName(item.name) {
            case .record(let name) where name.shardNumber == shard:
                records.append(name)
            case .body(let name, let generation) where name.shardNumber == shard:
                bodies.insert(EntryBody(name: name, generation: generation))
            default:
                continue
            }
        }
    }
}
