/// The versions that a file's pages and its length had since they were synced, the present ones
/// apart.
///
/// The first version of each is the synced one.
struct UnsyncedPages: Sendable {
    /// `nil` is a hole.
    private(set) var pages: [Int64: [[UInt8]?]] = [:]
    private(set) var lengths: [Int64] = []

    /// Takes down what a change has replaced.
    mutating func didChange(_ old: Pages, to new: Pages) {
        for page in Set(old.pages.keys).union(new.pages.keys)
        where old.pages[page] != new.pages[page] {
            pages[page, default: []].append(old.pages[page])
        }
        if old.length != new.length { lengths.append(old.length) }
    }

    /// What a power cut leaves.
    ///
    /// - Parameters:
    ///   - content: what the file has now.
    ///   - choose: gets a number of versions, and says which one is left; the last is the present
    ///     one.
    /// - Returns: the content that is left.
    func settled(_ content: Pages, _ choose: (Int) -> Int) -> Pages {
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

/// What the names of a directory stood for since it was synced, the present state apart.
struct UnsyncedNames: Sendable {
    private var names: [String: [InMemoryFileSystem.Node?]] = [:]

    /// Takes down what a change has replaced.
    mutating func didChange(_ name: String, from old: InMemoryFileSystem.Node?) {
        names[name, default: []].append(old)
    }

    /// One name is on the medium as it is now.
    mutating func didSync(_ name: String) {
        names[name] = nil
    }

    /// What a power cut leaves; `choose` as for ``UnsyncedPages``.
    func settled(
        _ current: [String: InMemoryFileSystem.Node],
        _ choose: (Int) -> Int
    ) -> [String: InMemoryFileSystem.Node] {
        var result = current
        for (name, versions) in names.sorted(by: { $0.key < $1.key }) {
            let choice = choose(versions.count + 1)
            if choice < versions.count { result[name] = versions[choice] }
        }
        return result
    }
}
