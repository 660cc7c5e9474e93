import CLevelDBCache

/// LevelDB's `NewLRUCache`, the peer of the memory tier.
///
/// Its values are pointers that it does not
/// count; ours are counted references.
final class LevelDBCache {
    private let cache: OpaquePointer?
    private let values: [Payload]

    init(capacity: Int, filledWith urls: [String]) {
        cache = leveldb_bench_create(capacity)
        values = urls.indices.map(Payload.init)
        let keys = CKeys(urls)
        for (key, value) in zip(keys.pointers, values) {
            insert(key, keys.length, value)
        }
    }

    deinit {
        leveldb_bench_destroy(cache)
    }

    func lookups(of urls: [String]) -> Contender {
        let keys = CKeys(urls)
        var start = 0
        return Contender("LevelDB LRUCache") { [self] count in
            var (next, found) = (start, 0)
            for _ in 0..<count {
                if leveldb_bench_lookup(cache, keys.pointers[next], keys.length) != nil {
                    found &+= 1
                }
                next = next + 1 == keys.pointers.count ? 0 : next + 1
            }
            start = next
            precondition(found == count)
        }
    }

    func insertions(of urls: [String]) -> Contender {
        let keys = CKeys(urls)
        let payloads = urls.indices.map(Payload.init)
        var next = 0
        return Contender("LevelDB LRUCache") { [self] count in
            for _ in 0..<count {
                insert(keys.pointers[next], keys.length, payloads[next])
                next = next + 1 == payloads.count ? 0 : next + 1
            }
        }
    }

    /// Insertions of values that the cache owns, as ours and every cache that is of use does.
    func owningInsertions(of urls: [String]) -> Contender {
        let keys = CKeys(urls)
        let payloads = urls.indices.map(Payload.init)
        var next = 0
        return Contender("LevelDB, owning values") { [self] count in
            for _ in 0..<count {
                leveldb_bench_insert_owned(
                    cache,
                    keys.pointers[next],
                    keys.length,
                    Unmanaged.passRetained(payloads[next]).toOpaque(),
                    1,
                    { value in value.map { Unmanaged<Payload>.fromOpaque($0).release() } }
                )
                next = next + 1 == payloads.count ? 0 : next + 1
            }
        }
    }

    private func insert(_ key: UnsafePointer<CChar>, _ length: Int, _ value: Payload) {
        let pointer = Unmanaged.passUnretained(value).toOpaque()
        leveldb_bench_insert(cache, key, length, pointer, 1)
    }
}
