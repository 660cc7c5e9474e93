import Testing
import TieredCache

@testable import TieredCacheCLI

@Suite("Arguments of a program that exec runs", .timeLimit(.minutes(10)))
struct ProgramArgumentsTests {
    private func rewritten(
        _ words: [String],
        only: [Int] = [],
        except: [Int] = []
    ) throws -> [String] {
        let arguments = ProgramArguments(words: words, only: only, except: except)
        try arguments.requirePlaces()
        let result = try arguments.rewritten(port: 80) { url throws(CacheError) in
            "http://127.0.0.1:80/T/" + url.replacing("://", with: "/")
        }
        #expect(arguments.hasURLs == (result != words) || result.contains { $0.contains(":80/U") })
        return result
    }

    @Test(
        "URLs are rewritten where programs open them",
        arguments: [
            (["-i", "http://a/b.mp4"], ["-i", "http://127.0.0.1:80/T/http/a/b.mp4"]),
            (["HTTPS://a/b?c=d&e"], ["http://127.0.0.1:80/T/HTTPS/a/b?c=d&e"]),
            (
                ["--sub-file=http://a/s", "uri=https://a/b", "x:y.z=http://a/"],
                [
                    "--sub-file=http://127.0.0.1:80/T/http/a/s",
                    "uri=http://127.0.0.1:80/T/https/a/b", "x:y.z=http://127.0.0.1:80/T/http/a/",
                ]
            ),
            (["http://u:p@a/b"], ["http://u:p@127.0.0.1:80/T/http/u:p@a/b"]),
        ]
    )
    func rewrites(words: [String], wanted: [String]) throws {
        #expect(try rewritten(words) == wanted)
    }

    @Test(
        "What no program opens stays",
        arguments: [
            ["-referer", "http://a/"], ["--proxy", "http://a/"], ["--referrer=http://a/"],
            ["proxy=http://a/"], ["-http_proxy", "http://a/"], ["-headers", "Referer: http://a/"],
            ["film.mp4", "-i", "file.mkv"], ["concat:http://a/|http://b/"], ["http://"], [""],
            ["=http://a/"], ["a b=http://a/"], ["--", "-", "ftp://a/b"], ["http://a b/"],
            ["http://127.0.0.1:80/U/http/a/b"], ["http://localhost/U/http/a/b"],
        ]
    )
    func stays(words: [String]) throws {
        guard !words.contains(where: { $0.contains("/U/") }) else {
            #expect(
                try ProgramArguments(words: words).rewritten(port: 80) { _ throws(CacheError) in ""
                }
                    == words
            )
            return
        }
        #expect(try rewritten(words) == words)
    }

    @Test("--only and --except name places")
    func places() throws {
        let words = ["-referer", "http://a/", "http://b/", "http://c/"]
        let proxied = words.map { $0.replacing("http://", with: "http://127.0.0.1:80/T/http/") }
        #expect(try rewritten(words) == [words[0], words[1], proxied[2], proxied[3]])
        #expect(try rewritten(words, only: [2]) == [words[0], proxied[1], words[2], words[3]])
        #expect(try rewritten(words, except: [4]) == [words[0], words[1], proxied[2], words[3]])
        #expect(try rewritten(words, only: [2, 3], except: [3])[2] == words[2])
    }

    @Test("Places that are none are refused", arguments: [0, 1, 5, -1])
    func noPlaces(place: Int) {
        let words = ["-i", "http://b/", "http://c/", "http://d/"]
        for arguments in [
            ProgramArguments(words: words, only: [place]),
            ProgramArguments(words: words, except: [place]),
        ] {
            let error = #expect(throws: CommandFailure.self) { try arguments.requirePlaces() }
            #expect(error?.status == .usage)
        }
    }
}
