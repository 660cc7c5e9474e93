#if os(Linux)
import SystemPackage
import TieredCacheTesting

@_spi(Benchmarks) @testable import TieredCache

// What clients do besides reading.
extension SimulatedClient {
    /// Calls something that may fail where the disk or the process does, and says how it went.
    func attempt(
        _ what: String,
        _ body: (SimulatedProcess) async throws(CacheError) -> Void
    ) async {
        guard let process = world.process else { return }
        note(what)
        do throws(CacheError) {
            try await body(process)
            note("did: \(what)")
        } catch {
            note("\(what) fails: \(error.code)")
        }
    }

    /// Pins, and takes the promise down if it is one.
    func pin(_ url: Int) async {
        let beginning = world.model.begin(url)
        await attempt("pins u\(url)") { (process) throws(CacheError) in
            var request = try request(url)
            request.options.insert(.pinned)
            _ = try await process.cache.prefetch(request)
            guard try await process.cache.setPinned(true, for: request) else { return }
            guard let entry = try await process.cache.entry(for: request), entry.isPinned,
                entry.isComplete
            else { return }
            world.change { $0.didSeePinned(beginning) }
            note("is promised u\(url)")
        }
    }

    /// Does what may end the promises of some URLs.
    func voiding(
        _ urls: some Sequence<Int> & Sendable,
        _ what: String,
        _ body: (SimulatedProcess) async throws(CacheError) -> Void
    ) async {
        world.change { $0.beginVoiding(urls) }
        await attempt(what, body)
        world.change { $0.endVoiding(urls) }
    }

    /// What is promised is there, pinned and complete.
    func checkPromise(_ url: Int) async {
        guard let process = world.process else { return }
        let beginning = world.model.begin(url)
        guard beginning.isPromised else { return }
        note("looks at the pin of u\(url)")
        do throws(CacheError) {
            let entry = try await process.cache.entry(for: request(url))
            guard world.model.isStillPromised(beginning) else { return }
            guard let entry else { return fail("u\(url) was pinned, and is gone") }
            if !entry.isPinned { fail("u\(url) was pinned, and is not pinned any more") }
            if !entry.isComplete { fail("u\(url) was pinned and complete, and is incomplete") }
        } catch {
            note("fails: \(error.code)")
            guard world.model.isStillPromised(beginning) else { return }
            fail("u\(url) is pinned, and cannot be looked at: \(error)")
        }
    }

    func setLimit(_ limit: Int64) async {
        let isTaken = world.change { model in
            guard !model.space.isChanging else { return true }
            model.space.beginChange(to: limit)
            return false
        }
        guard !isTaken else { return }
        let before = world.model.space.limit
        var after = before
        await attempt("sets the limit to \(limit)") { (process) throws(CacheError) in
            try await process.cache.setDiskLimit(limit)
            after = limit
        }
        let reached = after
        let now = scheduler.time.monotonicTime()
        world.change { $0.space.endChange(to: reached, at: now) }
    }

    // MARK: From outside

    /// What the names of an entry's files begin with, whatever locks they fall upon.
    private func fileDigits(_ url: Int) -> Substring {
        do throws(CacheError) {
            return try request(url).key.digest.hexadecimal.prefix(16)
        } catch {
            return "-"
        }
    }

    /// Makes calls of the disk fail, makes it full, or heals it.
    func injure(_ number: Int) {
        let disk = world.disk
        switch number % 4 {
        case 0:
            note("fills the disk")
            disk.setCapacity(disk.allocatedBytes + Int64(number % 100_000))
        case 1:
            let call = FileSystemError.Call.allCases[
                number / 4 % FileSystemError.Call.allCases.count
            ]
            note("makes \(call) fail")
            world.change { $0.beginInjury() }
            disk.fail(call, with: .ioError, times: 1 + number % 3, skipping: number % 7)
        default:
            note("heals the disk")
            disk.setCapacity(1 << 40)
            disk.heal()
            world.change { $0.didHeal() }
        }
    }

    /// Does something to a file of an entry behind the cache's back.
    func damage(_ url: Int, _ die: Int) {
        let disk = world.disk
        let digits = fileDigits(url)
        let files = disk.files.keys.sorted().filter { $0.contains(digits) }
        guard !files.isEmpty else { return }
        let path = files[die % files.count]
        // Between a look at a file's length and a write to it nothing can be noticed.
        guard !scheduler.isInCall(about: path.suffix(20)) else { return }
        world.change { $0.beginVoiding([url]) }
        if die % 3 == 0 {
            scheduler.note("client \(number) deletes \(path)")
            world.change { $0.space.tolerate(disk.allocatedBytes + (disk.files[path] ?? 0)) }
            disk.delete(path)
        } else {
            scheduler.note("client \(number) truncates \(path)")
            let length = disk.content(of: path)?.count ?? 0
            disk.cut(path, to: Int64(length / (2 + die % 3)))
        }
        // The record of an open entry is not looked at again, so nothing is promised of it any
        // more.
        if !path.hasSuffix(".record") { world.change { $0.endVoiding([url]) } }
    }
}
#endif
