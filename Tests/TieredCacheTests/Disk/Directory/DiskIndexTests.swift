import Testing

@_spi(Benchmarks) @testable import TieredCache

/// The order of eviction and what is known of files.
@Suite("Disk: index", .timeLimit(.minutes(10)))
struct DiskIndexTests {
    private func name(_ number: Int) -> EntryName {
        EntryName(digest: MD5Digest(high: UInt64(number), low: 0))
    }

    private func slot(_ number: Int, _ queue: DiskIndex.Queue = .used) -> DiskIndex.Slot {
        DiskIndex.Slot(
            name: name(number),
            generation: UInt64(number),
            recordBytes: 4096,
            bodyBytes: Int64(number),
            hasBody: number > 0,
            lastUse: 0,
            queue: queue
        )
    }

    private func order(_ index: DiskIndex, _ maximum: Int = .max) -> [UInt64] {
        index.oldest(maximum) { _ in true }.map(\.generation)
    }

    @Test("prefetched ones go first, then the oldest; pinned ones never")
    func queues() {
        var index = DiskIndex()
        for (number, queue) in [(1, .used), (2, .pinned), (3, .prefetched), (4, .used)]
            as [(Int, DiskIndex.Queue)]
        {
            index.insert(slot(number, queue))
        }
        #expect(order(index) == [3, 1, 4])
        index.touch(name(1), at: 5)
        index.touch(name(3), at: 6)
        #expect(order(index) == [4, 1, 3])
        #expect(index[name(3)]?.queue == .used)
        #expect(index[name(3)]?.lastUse == 6)
        index.move(name(4), to: .pinned)
        index.move(name(2), to: .used)
        #expect(order(index) == [1, 3, 2])
        #expect(order(index, 2) == [1, 3])
        #expect(index.oldest(5) { $0.generation == 3 }.count == 1)
    }

    @Test("an update is for one generation, and says what it changed")
    func update() {
        var index = DiskIndex()
        index.insert(slot(1))
        #expect(index.update(name(1), generation: 2) { $0.bodyBytes = 9 } == nil)
        #expect(index.update(name(1), generation: 1) { $0.bodyBytes = 100 } == 99)
        #expect(index[name(1)]?.bytes == 4196)
        #expect(index.update(name(2), generation: 1) { _ in } == nil)
    }

    @Test("building puts entries in the order of their use")
    func built() throws {
        var index = DiskIndex()
        for (number, use) in [(1, 30), (2, 10), (3, 20), (4, 5)] {
            var new = slot(number, number == 3 ? .prefetched : .used)
            new.lastUse = UInt64(use)
            index.append(new)
            index.append(new)
        }
        var entries = try #require(index.unplaced(in: 0..<Int32.max))
        DiskIndex.sort(&entries)
        index.placeAsOlder(entries)
        #expect(order(index) == [3, 4, 2, 1])
        #expect(index.count == 4)
        #expect(index.numbersByShard.map(\.count).reduce(0, +) == 4)
    }

    @Test("a slot is 64 bytes, and sizes are kept in units of the kernel's")
    func size() {
        #expect(MemoryLayout<DiskIndex.Slot>.stride == 64)
        var slot = slot(1)
        slot.recordBytes = 33 << 20
        #expect(slot.recordBytes == 33 << 20)
    }

    @Test("names are found among many, also after others went and came")
    func many() {
        var index = DiskIndex()
        for number in 0..<20_000 {
            index.insert(slot(number))
        }
        for number in 0..<20_000 where number % 3 > 0 {
            #expect(index.remove(name(number))?.generation == UInt64(number))
        }
        for number in 20_000..<40_000 {
            index.insert(slot(number))
        }
        #expect(index.count == 6667 + 20_000)
        for number in 0..<40_000 {
            let isThere = number >= 20_000 || number % 3 == 0
            #expect((index[name(number)]?.generation == UInt64(number)) == isThere)
        }
    }

    @Test("it agrees with a list whatever is done", arguments: 0..<10 as Range<UInt64>)
    func model(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var index = DiskIndex()
        var model: [(number: Int, isPrefetched: Bool)] = []
        for step in 0..<300 {
            let number = Int.random(in: 0..<20, using: &generator)
            let old = model.firstIndex { $0.number == number }
            switch Int.random(in: 0..<4, using: &generator) {
            case 0, 1:
                let isPrefetched = number % 3 == 0
                let known = index.insert(slot(number, isPrefetched ? .prefetched : .used))
                #expect((known != nil) == (old != nil))
                if let old { model.remove(at: old) }
                model.append((number, isPrefetched))
            case 2:
                index.touch(name(number), at: 1)
                if let old { model.append((model.remove(at: old).number, false)) }
            default:
                #expect((index.remove(name(number)) != nil) == (old != nil))
                if let old { model.remove(at: old) }
            }
            let expected = model.filter(\.isPrefetched) + model.filter { !$0.isPrefetched }
            #expect(
                order(index) == expected.map { UInt64($0.number) },
                "seed \(seed), step \(step)"
            )
            #expect(index.count == model.count && index.all.count == model.count)
        }
    }
}
