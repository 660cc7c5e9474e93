import SystemPackage

@_spi(Benchmarks) @testable import TieredCache

/// Few keys and little room, so that everything is replaced and evicted all the time.
func openStore(_ directory: String) throws(CacheError) -> DiskStore {
    var options = DiskStoreOptions(root: FilePath(directory), limit: 5 << 20)
    options.minimumFree = 0
    // So that LOCK has a claim, and the first writes come before the index.
    options.minimumSnapshotEntries = 1
    return try DiskStore(options)
}

func key(_ number: UInt64) -> CacheKey { CacheKey(explicit: "\(number)") }

/// Works on the directory until the process is killed; returns only if something failed.
func work(_ directory: String, seed: UInt64) {
    var generator = SeededGenerator(state: seed)
    do throws(CacheError) {
        let store = try openStore(directory)
        while true {
            try step(store, &generator)
        }
    } catch {
        print("the child met \(error)")
    }
}

private func step(
    _ store: DiskStore,
    _ generator: inout SeededGenerator
) throws(CacheError) {
    let key = key(generator.next() % 24)
    let content = Content(&generator)
    let metadata = content.metadata(padding: Int(generator.next() % 6000))
    switch generator.next() % 12 {
    case 0...3:
        try content.withBytes(0..<content.count) { (bytes) throws(CacheError) in
            _ = try store.store(bytes, for: key, metadata: metadata)
        }
    case 4, 5:
        try fillInParts(store, key, content, metadata)
    case 6:
        guard let entry = try store.entry(for: key), let content = Content(entry.metadata) else {
            return
        }
        try entry.updateMetadata(content.metadata(padding: Int(generator.next() % 9000)))
    case 7:
        try fetchGap(store, key)
    case 8:
        let entry = try store.entry(for: key)
        try entry?.setPinned(true)
        try entry?.setPinned(false)
    case 9:
        _ = try store.bodyPath(for: key)
    case 10:
        try store.remove(key)
    default:
        _ = try store.trim(to: Int64(generator.next() % (5 << 20)))
    }
}

/// Two ranges from two fills, as two readers of one film would cause them.
private func fillInParts(
    _ store: DiskStore,
    _ key: CacheKey,
    _ content: Content,
    _ metadata: [UInt8]
) throws(CacheError) {
    let entry = try store.makeEntry(
        for: key,
        metadata: metadata,
        completeLength: Int64(content.count)
    )
    guard content.count > 150_000 else { return }
    let back = try entry.beginWriting(at: 131_072)
    let front = try entry.beginWriting(at: 0)
    try write(content, 131_072..<content.count, back)
    try write(content, 0..<100_000, front)
}

private func fetchGap(_ store: DiskStore, _ key: CacheKey) throws(CacheError) {
    guard let entry = try store.entry(for: key), let content = Content(entry.metadata),
        let gap = entry.nextGap(in: 0..<Int64(content.count))
    else { return }
    try write(
        content,
        Int(gap.lowerBound)..<Int(gap.upperBound),
        entry.beginWriting(at: gap.lowerBound)
    )
}

/// In pieces, as they come from a network.
private func write(_ content: Content, _ range: Range<Int>, _ writer: BodyWriter) throws(CacheError)
{
    var start = range.lowerBound
    while start < range.upperBound {
        let end = min(start + 30_000, range.upperBound)
        try content.withBytes(start..<end) { (bytes) throws(CacheError) in try writer.write(bytes) }
        start = end
    }
}
