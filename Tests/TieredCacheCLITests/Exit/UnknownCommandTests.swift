import Testing

@testable import TieredCacheCLI

@Suite("Unknown commands", .timeLimit(.minutes(10)))
struct UnknownCommandTests {
    @Test("Known commands, help and options pass")
    func known() throws {
        for arguments in [[], ["get", "x"], ["help"], ["--version"], ["-h"], ["trim"]] {
            try RootCommand.requireKnownCommand(in: arguments)
        }
    }

    @Test(
        "A near miss is answered with what was meant, anything else is not",
        arguments: [
            ("gett", "get"), ("prefecth", "prefetch"), ("clean", "clear"), ("http://a/", nil),
            ("", nil),
        ] as [(String, String?)]
    )
    func unknown(given: String, meant: String?) throws {
        let error = #expect(throws: CommandFailure.self) {
            try RootCommand.requireKnownCommand(in: [given, "--directory", "x"])
        }
        #expect(error?.status == .usage)
        #expect(error?.message.contains("'\(given)'") == true)
        #expect(error?.message.contains("did you mean") == (meant != nil))
        if let meant { #expect(error?.message.contains("did you mean '\(meant)'") == true) }
    }

    @Test("Distances")
    func distances() {
        #expect("".distance(to: "") == 0)
        #expect("abc".distance(to: "") == 3)
        #expect("kitten".distance(to: "sitting") == 3)
        #expect("list".distance(to: "lits") == 2)
    }
}
