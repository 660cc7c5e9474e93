/// The versions of a file's pages and length since they were synced, without the present ones.
///
/// The first version of each is the synced one.
struct UnsyncedPages: Sendable {
    /// `nil` is a hole.
    private(set) var pages: [Int64: [[UInt8]?]] = [:]
    private(set) var lengths: [Int64] = []

    /// Records the state that a change has replaced.
    mutating func didChange(_ old: Pages, to new: Pages) {
        for page in Set(old.pages.keys).union(new.pages.keys)
        where old.pages[page] != new.pages[page] {
            pages[page, default: []].append(old.pages[page])
        }
        if old.length != new.length { lengths.append(old.length) }
    }

    /// The content that a power cut leaves.
    ///
    /// - Parameters:
    ///   - content: the present content.
    ///   - choose: gets a number of versions and returns the index of the one that is left; the
    ///     last one is the present.
    /// - Returns: the content that is left.
    func settled(_ content: Pages, choosing choose: (Int) -> Int) -> Pages {
        var result = content
        for (page, versions) in pages.sorted(by: { $0.key < $1.key }) {
            let choice = choose(versions.count + 1)
            if choice < versions.count { result.replace(page, with: versions[choice]) }
        }
        guard !lengths.isEmpty else { return result }
        let choice = choose(lengths.count + 1)
        result.truncate(to: choice < lengths.count ? lengths[choice] : content.length)
        return result
    }
}

/// The versions of a directory's names since it was synced, without the present ones.
struct UnsyncedNames: Sendable {
    private var names: [String: [InMemoryFileSystem.Node?]] = [:]

    /// Records the state that a change has replaced.
    mutating func didChange(_ name: String, from old: InMemoryFileSystem.Node?) {
        names[name, default: []].append(old)
    }

    /// Records that one name is synced.
    mutating func didSync(_ name: String) {
        names[name] = nil
    }

    /// The names that a power cut leaves; `choose` as for ``UnsyncedPages``.
    func settled(
        _ current: [String: InMemoryFileSystem.Node],
        choosing choose: (Int) -> Int
    ) -> [String: InMemoryFileSystem.Node] {
        var result = current
        for (name, versions) in names.sorted(by: { $0.key < $1.key }) {
            let choice = choose(versions.count + 1)
            if choice < versions.count { result[name] = versions[choice] }
        }
        return result
    }
}
