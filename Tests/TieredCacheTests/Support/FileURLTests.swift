import FoundationEssentials
import SystemPackage
import Testing

@testable import TieredCache

@Suite("File URLs", .timeLimit(.minutes(1)))
struct FileURLTests {
    static let names: [[UInt8]] = [
        Array("film".utf8), Array("a film, 100% (ü) ?#;:@&=+$".utf8), Array("%41%2F".utf8),
        [0x66, 0xFF, 0x6D], [0xC3, 0x28, 0x20, 0x25], Array(1...UInt8.max).filter { $0 != 0x2F },
    ]

    private static func path(_ text: [UInt8]) -> FilePath {
        FilePath(platformString: text.map { CInterop.PlatformChar(bitPattern: $0) } + [0])
    }

    @Test("A path and its URL name the same file, byte for byte", arguments: names)
    func roundTrip(name: [UInt8]) throws {
        for text in [[0x2F] + name, Array("/a/".utf8) + name + Array("/b".utf8), [0x2F]] {
            let path = Self.path(text)
            let url = URL(file: path)
            #expect(url.isFileURL)
            #expect(FilePath(fileURL: url) == path)
            let directory = URL(file: path, directoryHint: .isDirectory)
            #expect(directory.hasDirectoryPath)
            #expect(FilePath(fileURL: directory) == path)
            var configuration = MediaCache.Configuration(directory: url)
            #expect(configuration.path == path)
            try configuration.validate()
            configuration.directory = configuration.directory
            #expect(configuration.path == path)
        }
    }

    @Test("The machine itself may be named")
    func localhost() throws {
        let url = try #require(URL(string: "file://localhost/a%20b/"))
        #expect(FilePath(fileURL: url) == "/a b")
    }

    @Test(
        "A URL that names no file of this machine has no path, and is no directory of a cache",
        arguments: [
            "http://example.com/a", "file://example.com/a", "file:///a%00b", "file:///a%2Fb", "a/b",
            "data:,a",
        ]
    )
    func refused(text: String) throws {
        let url = try #require(URL(string: text))
        #expect(FilePath(fileURL: url) == nil)
        let configuration = MediaCache.Configuration(directory: url)
        let error = #expect(throws: CacheError.self) { try configuration.validate() }
        #expect(error?.code == .invalidArgument)
    }

    @Test("The file of a stored body is found in a directory whose name is not UTF-8")
    func storedBody() async throws {
        let directory = TemporaryDirectory()
        let text = Array(directory.path.string.utf8) + [0x2F, 0x66, 0xFF]
        var configuration = MediaCache.Configuration(path: Self.path(text))
        configuration.minimumFreeDisk = 0
        configuration.respondsToMemoryPressure = false
        let cache = try MediaCache(configuration)
        let request = try CacheRequest("https://example.com/film")
        try await cache.store(Data(repeating: 7, count: 100_000), for: request)
        let url = try #require(try await cache.fileURL(for: request))
        let path = try #require(FilePath(fileURL: url))
        #expect(path.starts(with: Self.path(text)))
        #expect(try TestFile.read(path).count == 100_000)
        await cache.shutdown()
    }
}
