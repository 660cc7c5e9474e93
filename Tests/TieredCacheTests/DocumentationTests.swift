import FoundationEssentials
import HTTPCaching
import SystemPackage
import Testing
import TieredCache

/// The code of README and documentation, compiled; and the proof that it is the same code.
@Suite("Code in the documentation", .timeLimit(.minutes(10)))
struct DocumentationTests {
    private static let root = FilePath(#filePath)
        .removingLastComponent().removingLastComponent().removingLastComponent()

    private static let articles = "Sources/TieredCache/TieredCache.docc"

    private static func lines(_ path: String) throws -> [String] {
        let descriptor = try FileDescriptor.open(root.appending(path), .readOnly)
        return try descriptor.closeAfter {
            var bytes = [UInt8](repeating: 0, count: 1 << 20)
            let count = try bytes.withUnsafeMutableBytes { try descriptor.read(into: $0) }
            let text = String(decoding: bytes[..<count], as: UTF8.self)
            return text.split(separator: "\n").map { line in
                String(line.drop { $0 == " " })
            }.filter { !$0.isEmpty }
        }
    }

    /// The code blocks marked as Swift, without their imports.
    private static func blocks(_ path: String) throws -> [[String]] {
        var blocks: [[String]] = []
        var block: [String]?
        for line in try lines(path) {
            switch (line, block) {
            case ("```swift", _): block = []
            case ("```", let finished?):
                blocks.append(finished)
                block = nil
            case (_, let open?) where !line.hasPrefix("import "): block = open + [line]
            default: break
            }
        }
        return blocks
    }

    /// Where code of the documentation is compiled, and most of it run.
    private static func compiled() throws -> [String] {
        let tests = "Tests/TieredCacheTests"
        return try [
            "\(tests)/DocumentationTests.swift", "\(tests)/ArticleTests.swift",
            "\(tests)/ArticleTests+Background.swift",
            "Tests/TieredCacheProxyTests/Service/ProxyArticleTests.swift",
        ].flatMap(lines)
    }

    /// The pages of the documentation, all but those without code.
    private static func pages() throws -> [String] {
        let names = try FileManager.default.contentsOfDirectory(
            atPath: root.appending(articles).string
        )
        let withoutCode = ["TieredCache.md", "Glossary.md"]
        return names.filter { $0.hasSuffix(".md") && !withoutCode.contains($0) }.sorted()
    }

    @Test("Every block of code in README and articles is compiled, and no article is without")
    func blocks() throws {
        let source = try Self.compiled()
        let pages = try Self.pages()
        #expect(pages.count > 15)
        for path in ["README.md"] + pages.map({ "\(Self.articles)/\($0)" }) {
            let blocks = try Self.blocks(path)
            #expect(!blocks.isEmpty, "\(path) has no code")
            for block in blocks {
                let starts = source.indices.filter { source[$0...].starts(with: block) }
                #expect(!starts.isEmpty, "\(path), not compiled: \(block)")
            }
        }
    }

    @Test(
        "Every public type is on the landing page of its module",
        arguments: [
            "HTTPCaching", "TieredCache", "TieredCacheObservability", "TieredCacheProxy",
            "TieredCacheTesting",
        ]
    )
    func curation(module: String) throws {
        let page = try Self.lines("Sources/\(module)/\(module).docc/\(module).md")
        let files = try FileManager.default.subpathsOfDirectory(
            atPath: Self.root.appending("Sources/\(module)").string
        )
        let declaration =
            #/public (?:final |indirect )?(?:struct|class|enum|protocol|actor) (\w+).*/#
        var names: [String] = []
        for file in files where file.hasSuffix(".swift") {
            // Nested types are indented, and listed by DocC on the page of the outer one.
            let text = try String(
                decoding: Data(
                    contentsOf: URL(
                        filePath: Self.root.appending("Sources/\(module)/\(file)").string
                    )
                ),
                as: UTF8.self
            )
            // No symbol of another platform is in the documentation that is built here.
            guard !text.hasPrefix("#if canImport(Network)") else { continue }
            let lines = text.split(separator: "\n")
            for (line, before) in zip(lines, [""] + lines) where !before.hasPrefix("@_spi") {
                guard let match = try? declaration.wholeMatch(in: line) else { continue }
                names.append(String(match.1))
            }
        }
        #expect(!names.isEmpty)
        for name in names { #expect(page.contains("- ``\(name)``"), "\(name)") }
    }

    @Test("Every call of ours in the tables about migrating is compiled")
    func migrating() throws {
        let source = try Self.compiled()
        let rows = try Self.lines("\(Self.articles)/Migrating.md").filter { $0.hasPrefix("| ") }
        #expect(rows.count > 40)
        for row in rows {
            let cell = row.split(separator: "|").last(where: { $0 != " " }) ?? ""
            for (number, call) in cell.split(separator: "`").enumerated() where number % 2 == 1 {
                #expect(source.contains { $0.contains(call) }, "not compiled: \(call)")
            }
        }
    }

    @Test("Every cell of the comparison is compiled here")
    func comparison() throws {
        let source = try Self.lines("Tests/TieredCacheTests/DocumentationTests.swift")
        let rows = try Self.lines("docs/comparison.md").filter { $0.hasPrefix("| ") }.dropFirst(2)
        #expect(rows.count == 10)
        for row in rows {
            let cell = try #require(row.split(separator: "|").dropFirst().first)
            let call = String(cell.drop { " `".contains($0) }.prefix { $0 != "`" })
            #expect(source.contains { $0.hasSuffix(call) }, "not compiled: \(call)")
        }
    }

    private func consume(_ bytes: UnsafeRawBufferPointer) {}
    private func show(_ data: Data) {}
    private func showPlaceholder() {}

    // The functions below are compiled, not run: they would ask the network.

    private func readme(posterURL: URL, filmURL: URL) async throws {
        let cache = try MediaCache()
        let poster = try await cache.data(from: posterURL)
        let response = try await cache.response(from: filmURL)
        print(response.status, response.source)  // 200 origin; the next time: 200 disk
        for try await chunk in response.body {
            chunk.withUnsafeBytes { bytes in consume(bytes) }
        }
        await cache.shutdown()
        show(poster)
    }

    private func comparison(url: URL, data: Data) async throws {
        let cache = try MediaCache()
        var request = CacheRequest(url)
        let bytes =
            try await cache.data(from: url)
        let body =
            try await cache.response(from: url).body
        let part =
            try await cache.bytes(for: request, range: 0..<1024)
        request.policy = .cacheOnly
        let isCached =
            await cache.contains(request)
        let prefetched =
            try await cache.prefetch(request)
        let download =
            try await cache.downloads.start(request)
        try await cache.remove(request)
        try await cache.store(data, for: request)
        try await cache.setPinned(true, for: request)
        print(bytes, body, part, isCached, prefetched, download)
    }

    private func gettingStarted(posterURL: URL, filmURL: URL, subtitles: Data) async throws {
        var configuration = MediaCache.Configuration()
        configuration.memoryLimit = 32 << 20
        configuration.diskLimit = 1 << 30
        let cache = try MediaCache(configuration)

        let poster = try await cache.data(from: posterURL)
        show(poster)

        let response = try await cache.response(from: filmURL)
        print(response.status, response.source, response.completeLength ?? -1)
        for try await chunk in response.body {
            chunk.withUnsafeBytes { bytes in consume(bytes) }
        }

        var request = try CacheRequest("https://example.com/list.m3u8")
        request.policy = .cacheOnly
        do {
            let playlist = try await cache.data(for: request)
            show(playlist)
        } catch {
            guard error.code == .notCached else { throw error }
            showPlaceholder()
        }

        let captions = try CacheRequest("https://example.com/s?token=1", key: "subtitles/42")
        try await cache.store(subtitles, for: captions, contentType: "text/vtt")
        let wasStored = try await cache.remove(captions)
        print(wasStored)
        await cache.shutdown()
    }
}
