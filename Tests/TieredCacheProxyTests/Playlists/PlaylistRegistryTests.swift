import HTTPCaching
import Testing

@testable import TieredCacheProxy

/// What playlists say about others is remembered in so many bytes.
@Suite(.timeLimit(.minutes(10)))
struct PlaylistRegistryTests {
    /// A master playlist with variables of so many bytes, and its children.
    private func remember(
        _ memory: PlaylistRegistry,
        _ name: String,
        variables count: Int,
        children: Int
    ) throws {
        let value = String(repeating: "v", count: 4000)
        var text = "#EXTM3U\n"
        for index in 0..<count / 4000 {
            text += "#EXT-X-DEFINE:NAME=\"\(name)-\(index)\",VALUE=\"\(value)\"\n"
        }
        for index in 0..<children {
            text += "#EXT-X-STREAM-INF:BANDWIDTH=1\n\(name)-\(index).m3u8\n"
        }
        let bytes = Array(text.utf8)
        let location = try TargetURI("http://h/\(name).m3u8")
        let variables = HLSVariables(bytes, at: location, importing: HLSVariables())
        memory.remember(HLSPlaylist(bytes, at: location), variables: variables, at: location)
    }

    private func child(_ name: String, _ index: Int = 0) throws -> TargetURI {
        try TargetURI("http://h/\(name)-\(index).m3u8")
    }

    @Test("The children of one master share its variables, and however often they are told")
    func sharing() throws {
        let memory = PlaylistRegistry()
        for _ in 0..<3 { try remember(memory, "a", variables: 40_000, children: 1000) }
        #expect(memory.size < 40_000 + 2000 + 1000 * 200)
        #expect(memory.size > 40_000)
        #expect(try !memory.variables(for: child("a", 999)).isEmpty)
    }

    @Test("Many masters with many variables take no more than a few megabytes, the newest stay")
    func bounds() throws {
        let memory = PlaylistRegistry()
        for index in 0..<200 {
            try remember(memory, "m\(index)", variables: 60_000, children: 2)
            #expect(memory.size <= PlaylistRegistry.maximumSize)
        }
        #expect(memory.size > PlaylistRegistry.maximumSize / 2)
        #expect(try !memory.variables(for: child("m199", 1)).isEmpty)
        #expect(try memory.variables(for: child("m0")).isEmpty)
        // More URLs than there is room for.
        try remember(memory, "n", variables: 8000, children: 6000)
        #expect(memory.size <= PlaylistRegistry.maximumSize)
        #expect(try memory.variables(for: child("m199", 1)).isEmpty)
    }

    @Test("What has changed takes the place of what was known, and all of it can be forgotten")
    func changes() throws {
        let memory = PlaylistRegistry()
        try remember(memory, "a", variables: 8000, children: 2)
        let first = memory.size
        try remember(memory, "a", variables: 12_000, children: 2)
        #expect(memory.size > first && memory.size < first + 5000)
        try remember(memory, "b", variables: 4000, children: 4096)
        #expect(try memory.variables(for: child("a")).isEmpty)
        #expect(memory.size < 4096 * 200 + 5000)
    }

    @Test("Of all definitions 256 count, and 64 KiB of them")
    func variables() throws {
        func put(_ lines: [String], _ name: String) throws -> String? {
            let bytes = Array(("#EXTM3U\n" + lines.joined()).utf8)
            let found = HLSVariables(bytes, at: try TargetURI("http://h/"), importing: .init())
            var budget = PlaylistBudget(forLength: 0)
            return found.substituted("{$\(name)}".utf8, budget: &budget)
                .map { String(decoding: $0.prefix(3), as: UTF8.self) }
        }
        let short = (0..<300).map { "#EXT-X-DEFINE:NAME=\"n\($0)\",VALUE=\"yes\"\n" }
        #expect(try put(short, "n255") == "yes")
        #expect(try put(short, "n256") == nil)
        let value = String(repeating: "yes", count: 1300)
        let long = (0..<30).map { "#EXT-X-DEFINE:NAME=\"n\($0)\",VALUE=\"\(value)\"\n" }
        #expect(try put(long, "n15") == "yes")
        #expect(try put(long, "n16") == nil)
    }
}
