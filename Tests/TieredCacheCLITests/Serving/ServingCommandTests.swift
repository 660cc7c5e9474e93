import ArgumentParser
import SystemPackage
import Testing

@testable import TieredCacheCLI

@Suite("Parsing of url and exec", .timeLimit(.minutes(10)))
struct ServingCommandTests {
    @Test("What follows -- is the program's")
    func program() throws {
        let parsed = try RootCommand.parseAsRoot([
            "exec", "--directory", "/d", "--except", "2", "--", "ffmpeg", "-i", "http://a/", "--",
            "--directory", "-",
        ])
        let command = try #require(parsed as? ExecCommand)
        #expect(command.program == ["ffmpeg", "-i", "http://a/", "--", "--directory", "-"])
        #expect(command.cache.directory == "/d" && command.except == [2] && command.only.isEmpty)
    }

    @Test(
        "Usage",
        arguments: [
            ["exec"], ["exec", "--"], ["exec", "ffmpeg"], ["exec", "--", ""], ["url"],
            ["url", "http://a/", "--idle", "0"], ["url", "http://a/", "--idle", "x"],
            ["exec", "--only", "x", "--", "a"],
        ]
    )
    func usage(arguments: [String]) throws {
        let error = try #require(throws: (any Error).self) {
            try RootCommand.parseAsRoot(arguments)
        }
        #expect(Ending(error).status == .usage)
    }

    @Test("A background proxy gets the options of url, and an absolute directory")
    func background() throws {
        let parsed = try RootCommand.parseAsRoot([
            "url", "http://a/", "--memory-limit", "1MiB", "--disk-limit", "2GiB", "--min-free", "0",
            "--idle", "2m",
        ])
        let url = try #require(parsed as? URLCommand)
        let words = BackgroundCommand.arguments(
            for: url.cache,
            "/d",
            idle: try #require(url.idle)
        )
        let command = try #require(try RootCommand.parseAsRoot(words) as? BackgroundCommand)
        #expect(command.idle == url.idle && command.cache.directory == "/d")
        #expect(command.cache.memoryLimit == url.cache.memoryLimit)
        #expect(command.cache.diskLimit == url.cache.diskLimit)
        #expect(command.cache.minFree == url.cache.minFree)
    }
}
