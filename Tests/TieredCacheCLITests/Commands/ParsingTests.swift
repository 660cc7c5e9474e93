import ArgumentParser
import Logging
import Testing

@testable import TieredCacheCLI

@Suite("Parsing of commands", .timeLimit(.minutes(10)))
struct ParsingTests {
    private func get(_ arguments: String...) throws -> GetCommand {
        let parsed = try RootCommand.parseAsRoot(["get"] + arguments)
        return try #require(parsed as? GetCommand)
    }

    @Test("Defaults of get")
    func defaults() throws {
        let command = try get("http://example.com/")
        #expect(command.output == "-")
        #expect(command.writesToStandardOutput)
        #expect(command.policy == .default)
        #expect(command.effectiveMethod == "GET")
        #expect(command.range == nil)
        #expect(command.origin.retries == 5)
        #expect(command.origin.timeout == 30)
        #expect(command.cache.logLevel.level == .error)
        #expect(!command.pin && !command.json && !command.quiet)
    }

    @Test("Values that look like options")
    func dashes() throws {
        #expect(try get("http://x/", "--range=-5").range == .last(5))
        #expect(try get("http://x/", "--range", "-5").range == .last(5))
        #expect(try get("http://x/", "--data", "--x").data == "--x")
        #expect(try get("http://x/", "--key", "-k").key == "-k")
        #expect(try get("http://x/", "--output", "-").output == "-")
    }

    @Test("--data implies POST, --method decides")
    func methods() throws {
        #expect(try get("http://x/", "--data", "a").effectiveMethod == "POST")
        #expect(try get("http://x/", "--data", "a", "--method", "PUT").effectiveMethod == "PUT")
        #expect(throws: (any Error).self) { try get("http://x/", "--method", "G T") }
        #expect(throws: (any Error).self) { try get("http://x/", "--method", "") }
    }

    @Test("Every command of the contract parses")
    func commands() throws {
        for arguments in [
            ["get", "u"], ["prefetch", "u", "v", "--bytes", "1MiB", "--json"], ["list", "--json"],
            ["stats", "--json"], ["show", "u", "--json"], ["path", "u"],
            ["verify", "--repair", "--json"], ["remove", "u", "v"], ["clear"],
            ["trim", "--to", "2GiB"], ["demo"],
        ] {
            let common = [
                "--directory", "/d", "--memory-limit", "64MiB", "--disk-limit", "2GiB",
                "--log-level", "debug", "--min-free", "0",
            ]
            #expect(throws: Never.self) { try RootCommand.parseAsRoot(arguments + common) }
        }
    }

    @Test(
        "What is refused, and with which code",
        arguments: [
            ["get"], ["get", "u", "v"], ["bogus"], ["get", "u", "--policy", "maybe"],
            ["get", "u", "--range", "5"], ["get", "u", "--header", "A: \u{1}"],
            ["get", "u", "--retries", "0"], ["get", "u", "--timeout", "0"],
            ["get", "u", "--timeout", "nan"], ["get", "u", "--output", ""],
            ["get", "u", "--key", ""], ["get", "u", "--method", "CONNECT"],
            ["list", "--memory-limit", "0"], ["list", "--disk-limit", "0"],
            ["list", "--disk-limit=-1"], ["list", "--log-level", "loud"], ["trim"],
            ["trim", "--to", "x"], ["remove"], ["prefetch"],
        ]
    )
    func refused(arguments: [String]) throws {
        let error = try #require(throws: (any Error).self) {
            try RootCommand.parseAsRoot(arguments)
        }
        let ending = Ending(error)
        #expect(ending.status == .usage)
        let line = try #require(ending.output)
        #expect(!line.contains { $0.isNewline })
        let known = arguments.first == "bogus" ? "tieredcache" : "tieredcache \(arguments[0])"
        #expect(line.hasSuffix("; see '\(known) --help'"))
    }

    @Test(
        "A field that the cache sets itself is refused with what to do instead",
        arguments: [
            ("Range: bytes=0-9", "use --range"), ("host: a", "leave it out"),
            ("Content-Length: 3", "leave it out"), ("If-None-Match: \"a\"", "leave it out"),
            ("Accept-Encoding: gzip", "leave it out"), ("Transfer-Encoding: chunked", "out"),
        ]
    )
    func ownFields(field: String, remedy: String) throws {
        let error = try #require(throws: (any Error).self) {
            try RootCommand.parseAsRoot(["get", "u", "--header", field])
        }
        let ending = Ending(error)
        #expect(ending.status == .usage)
        let name = try #require(field.split(separator: ":").first)
        #expect(ending.output?.contains("cannot set '\(name)'") == true)
        #expect(ending.output?.contains(remedy) == true)
    }

    @Test("What is sent in any case may be said", arguments: ["Accept-Encoding: identity", "A: b"])
    func harmlessFields(field: String) {
        #expect(throws: Never.self) {
            try RootCommand.parseAsRoot(["get", "u", "--header", field])
        }
    }

    @Test("Help ends well", arguments: [["--help"], ["get", "--help"], ["help", "trim"]])
    func help(arguments: [String]) throws {
        let ending: Ending
        do {
            var command = try RootCommand.parseAsRoot(arguments)
            try command.run()
            Issue.record("help ran a command")
            return
        } catch {
            ending = Ending(error)
        }
        #expect(ending.status == .done)
        #expect(try #require(ending.output).contains("USAGE: tieredcache"))
    }
}
