import HTTPCaching
import SystemPackage

extension DiskStore {
    /// The result of scanning directories.
    struct Scan {
        var slots: [DiskIndex.Slot] = []
        /// Entries with records that cannot be read.
        var withheld: [DiskIndex.Slot] = []
        /// Record files that are no valid records.
        var damaged: [EntryName] = []
        /// Bodies without a record.
        var orphans: [EntryBody] = []
    }

    /// Reads every directory; changes nothing.
    func scan() throws(CacheError) -> Scan {
        var result = Scan()
        for shard in try shards() {
            try scan(shard, into: &result)
        }
        return result
    }

    /// Reads one directory.
    ///
    /// - Parameters:
    ///   - shard: the number of the directory.
    ///   - result: gets what is found.
    ///   - upgrading: whether records of older versions are made current ones.
    /// - Throws: ``CacheError/Code/localStorage`` if the directory cannot be read.
    func scan(
        _ shard: Int,
        into result: inout Scan,
        upgrading: Bool = false
    ) throws(CacheError) {
        let name = EntryName.shard(shard)
        do throws(FileSystemError) {
            let files = ShardFiles(try list(name, in: entries), shard: shard)
            try add(files, to: &result, upgrading: upgrading)
        } catch {
            switch error.errno {
            case .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels:
                return  // Not there, or not ours.
            default:
                throw self.error(error, naming: "entries/\(name)")
            }
        }
    }

    /// The directories that there are; looking for each of 256 would cost a small cache most.
    func shards() throws(CacheError) -> [Int] {
        guard let entries = entriesIfPresent else { return [] }
        do throws(FileSystemError) {
            let items = try fileSystem.list(entries).filter { $0.kind == .directory }
            // By name and not by number: `AA` and `aa` are two directories, and one of them is
            // foreign.
            let names = Set(items.map(\.name))
            return (0..<256).filter { names.contains(EntryName.shard($0)) }
        } catch {
            throw self.error(error, naming: "entries")
        }
    }

    private func add(
        _ files: ShardFiles,
        to result: inout Scan,
        upgrading: Bool
    ) throws(FileSystemError) {
        var claimed: Set<EntryBody> = []
        for name in files.records {
            let found: RecordReader.Found
            do throws(CacheError) {
                guard let record = try readRecord(of: name) else {
                    // Removed later, never here: a guest scans, too.
                    result.damaged.append(name)
                    continue
                }
                found = record
            } catch {
                let bodies = files.bodies.filter { $0.name == name }
                claimed.formUnion(bodies)
                result.withheld.append(try withheld(name, bodies: bodies))
                continue
            }
            if upgrading, found.record.version < DiskDirectory.formatVersion {
                upgrade(found)
            }
            let body = EntryBody(name: name, generation: found.record.generation)
            var slot = slot(of: found.record, name)
            slot.hasBody = slot.hasBody && files.bodies.contains(body)
            if slot.hasBody { claimed.insert(body) }
            let (record, stored) = written(found)
            slot.recordBytes = try allocated(name.record, atLeast: record)
            slot.bodyBytes = slot.hasBody ? try allocated(body.path, atLeast: stored) : 0
            result.slots.append(slot)
        }
        // After all records: a body belongs to the one record that names its generation.
        result.orphans.append(contentsOf: files.bodies.subtracting(claimed))
    }

    /// The slot of an entry whose record cannot be read, for any reason: a cable, a lack of memory
    /// or of descriptors.
    ///
    /// Its files stay. It may be pinned, so it counts as pinned until a lookup reads its record.
    private func withheld(
        _ name: EntryName,
        bodies: Set<EntryBody>
    ) throws(FileSystemError) -> DiskIndex.Slot {
        var bodyBytes: Int64 = 0
        for body in bodies { bodyBytes += try allocated(body.path, atLeast: 0) }
        var slot = DiskIndex.Slot(
            name: name,
            generation: bodies.map(\.generation).max() ?? 0,
            recordBytes: try allocated(name.record, atLeast: 0),
            bodyBytes: bodyBytes,
            hasBody: !bodies.isEmpty,
            lastUse: useTime(),
            queue: .pinned
        )
        slot.isGuessed = true
        slot.hasSeveralBodies = bodies.count > 1
        return slot
    }

    /// The slot that a record describes, without the bytes of its files.
    func slot(of record: Record, _ name: EntryName) -> DiskIndex.Slot {
        DiskIndex.Slot(
            name: name,
            generation: record.generation,
            recordBytes: 0,
            bodyBytes: 0,
            hasBody: !record.flags.contains(.inline),
            lastUse: lastUse(of: record),
            queue: queue(of: record)
        )
    }

    /// An entry never used counts as used when it was made; a date in the future as used now.
    private func lastUse(of record: Record) -> UInt64 {
        min(max(record.lastUse, UInt64(clamping: record.created.nanoseconds)), useTime())
    }

    private func queue(of record: Record) -> DiskIndex.Queue {
        let queue = record.flags.queue
        return queue == .prefetched && record.lastUse > 0 ? .used : queue
    }

    /// The bytes of an entry's files that are no hole.
    private func written(_ found: RecordReader.Found) -> (record: Int64, body: Int64) {
        let table = found.table
        let head = found.record.tableOffset + 8 * Int64(table.storedCount)
        return (head + (found.isInline ? table.completeLength ?? 0 : 0), table.storedBytes)
    }

    private func allocated(
        _ path: String,
        atLeast written: Int64
    ) throws(FileSystemError) -> Int64 {
        let status = try ifPresent { () throws(FileSystemError) in
            try fileSystem.status(of: path, in: entries)
        }
        return status.map { charged($0, atLeast: written) } ?? 0
    }
}

/// A body file.
struct EntryBody: Hashable {
    var name: EntryName
    var generation: UInt64

    var path: String { name.body(generation) }
}

/// The cache's files in one directory.
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
