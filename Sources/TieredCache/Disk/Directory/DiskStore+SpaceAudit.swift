import SystemPackage

extension DiskStore {
    /// The foreign files in the cache's directories; they are left alone.
    func reportUnaccounted(_ report: (DiskFinding) -> Void) throws(CacheError) {
        try reportUnaccounted(in: "", report) { DiskDirectory.isOurs($0) }
        if staging != nil {
            try reportUnaccounted(in: "staging", report) { DiskDirectory.isOurs($0.name) }
        }
        let shards = Set((0..<256).map { EntryName.shard($0) })
        try reportUnaccounted(in: "entries", report) { item in
            item.kind == .directory && shards.contains(item.name)
        }
        for shard in try self.shards() {
            let name = EntryName.shard(shard)
            try reportUnaccounted(in: "entries/\(name)", report) { $0.isEntryFile(in: shard) }
        }
    }

    private func reportUnaccounted(
        in name: String,
        _ report: (DiskFinding) -> Void,
        unless isOurs: (DirectoryItem) -> Bool
    ) throws(CacheError) {
        do throws(FileSystemError) {
            let items = try name.isEmpty ? fileSystem.list(root) : list(name, in: root)
            for item in items where !isOurs(item) {
                let path = name.isEmpty ? item.name : "\(name)/\(item.name)"
                report(DiskFinding(kind: .unaccounted, path: options.root.appending(path)))
            }
        } catch {
            guard error.isAbsence else { throw self.error(error, naming: name) }
        }
    }
}

extension DirectoryItem {
    fileprivate func isEntryFile(in shard: Int) -> Bool {
        kind == .file && EntryFileName(name)?.entry?.shardNumber == shard
    }
}
