import Testing
import TieredCacheAgent

@testable import TieredCacheCLI

@Suite("The table of watch")
struct WatchScreenTests {
    private static func downloads(_ count: Int) throws -> [AgentDownload] {
        try (0..<count).map { number in
            let url = JSONValue.string(
                "https://example.com/\(number)-" + String(repeating: "x", count: 200)
            )
            return try #require(
                AgentDownload([
                    "gid": .string("\(number)"), "status": "active",
                    "files": [["path": "", "uris": [["uri": url]]]],
                ])
            )
        }
    }

    @Test(
        "Nothing of it goes beyond the terminal",
        arguments: [(0, 0), (3, 3), (8, 8), (9, 8), (500, 8), (500, 1)]
    )
    func fits(count: Int, lines: Int) throws {
        let rows = lines == 1 ? 1 : 10
        let screen = WatchCommand.screen(of: try Self.downloads(count), (rows: rows, columns: 40))
        let shown = screen.dropFirst("\u{1B}[H".count).split(separator: "\u{1B}[K\r\n").dropLast()
        #expect(shown.count == lines)
        #expect(shown.allSatisfy { $0.count <= 40 })
        #expect(count <= lines || shown.last == "and \(count - lines + 1) more")
    }

    @Test("A time is shown in the form in which it is given")
    func time() {
        #expect(TimeSpan(.seconds(30)).defaultValueDescription == "30s")
        #expect(TimeSpan(argument: "2m")?.defaultValueDescription == "120s")
    }
}
