import SystemPackage

extension DiskStore {
    /// What lies in our directories and is not ours; it is left alone.
    func reportUnaccounted(_ report: (DiskFinding) -> Void) throws(CacheError) {
        try reportUnaccounted(in: root, "", report) { DiskDirectory.isOurs($0) }
        if let staging {
            try reportUnaccounted(in: staging, "staging", report) { DiskDirectory.isOurs($0.name) }
        }
        guard let entries = entriesIfPresent else { return }
        let shards = Set((0..<256).map { EntryName.shard($0) })
        try reportUnaccounted(in: entries, "entries", report) { item in
            item.kind == .directory && shards.contains(item.name)
        }
        for shard in try self.shards() {
            let name = EntryName.shard(shard)
            do throws(FileSystemError) {
                for item in try list(name, in: entries) where !item.isEntryFile(in: shard) {
                    report(unaccounted("entries/\(name)/\(item.name)"))
                }
            } catch {
                guard error.isAbsence else { throw self.error(error, "entries/\(name)") }
            }
        }
    }

    private func reportUnaccounted(
        in directory: OpenFile,
        _ name: String,
        _ report: (DiskFinding) -> Void,
        unless isOurs: (DirectoryItem) -> Bool
    ) throws(CacheError) {
        do throws(FileSystemError) {
            for item in try fileSystem.list(directory) where !isOurs(item) {
                report(unaccounted(name.isEmpty ? item.name : "\(name)/\(item.name)"))
            }
        } catch {
            throw self.error(error, name)
        }
    }

    private func unaccounted(_ path: String) -> DiskFinding {
        DiskFinding(kind: .unaccounted, path: options.root.appending(path))
    }
}

extension DirectoryItem {
    fileprivate func isEntryFile(in shard: Int) -> Bool {
        guard kind == .file else { return false }
        switch EntryFileName(name) {
        case .record(let name), .body(let name, _): return name.shardNumber == shard
        case .staged, nil: return false
        }
    }
}
