import HTTPTypes
import SystemPackage
import Testing
import TieredCache

@testable import TieredCacheAgent

@Suite("Options of downloads", .timeLimit(.minutes(5)))
struct DownloadOptionsTests {
    @Test("Values are checked as aria2 checks them, and none changes where one is wrong")
    func values() throws {
        var options = DownloadOptions()
        try options.take(["max-download-limit": "20K", "split": "3", "pause": true, "foo": "bar"])
        #expect(options.values == ["max-download-limit": "20480", "split": "3", "foo": "bar"])
        let wrong: [(String, JSONValue)] = [
            ("split", "abc"), ("split", "0"), ("pause", "yes"), ("max-download-limit", "-1"),
            ("max-download-limit", "9223372036854775807M"), ("checksum", "sha-1=00"),
            ("checksum", "md5=12"), ("header", "no colon"), ("all-proxy", "http://p:1"),
            ("max-concurrent-downloads", "0"), ("retry-wait", "601"), ("dir", "rel"), ("dir", ""),
            ("dir", "/d\u{0}x"),
        ]
        for (name, value) in wrong {
            #expect(throws: RPCError.option(name)) {
                try options.take([name: value, "out": "x"])
            }
        }
        #expect(options["out"] == nil && options["split"] == "3")
    }

    @Test("They are bounded")
    func size() {
        var options = DownloadOptions()
        let long = String(repeating: "x", count: DownloadOptions.maximumSize)
        #expect(throws: RPCError.self) { try options.take(["foo": .string(long)]) }
    }

    @Test("Secrets stay in memory")
    func secrets() throws {
        var options = DownloadOptions()
        try options.take([
            "header": ["Authorization: Bearer x", "X-Kind: film"], "http-passwd": "p",
            "ftp-passwd": "p",
        ])
        #expect(options.fields[.authorization] == "Bearer x")
        let (kept, isLess) = options.withoutSecrets([.authorization])
        #expect(isLess)
        #expect(kept.values == ["header": "X-Kind: film\n"])
        #expect(!kept.withoutSecrets([.authorization]).isLess)
    }
}

@Suite("Names of files", .timeLimit(.minutes(5)))
struct DownloadPathTests {
    @Test(
        "The name is the end of the URL",
        arguments: [
            ("http://a/b/film.mp4?x=/y#z", "film.mp4"), ("http://a/", "index.html"),
            ("http://a", "index.html"), ("http://a/b%20c", "b c"),
            ("http://a/x%2F..%2Fy", "x_.._y"),
            ("http://a/..", "_.."), ("http://a/%00%0a", "__"),
        ]
    )
    func names(uri: String, name: String) {
        #expect(DownloadPath.name(of: uri) == name)
    }

    @Test("A long name has room for a number, and characters stay whole")
    func longName() {
        let name = DownloadPath.name(of: "http://a/" + String(repeating: "%C3%A9", count: 300))
        #expect(name.utf8.count == 240)
        #expect(name.allSatisfy { $0 == "é" })
    }

    @Test("No name leads out of the directory")
    func outside() throws {
        for out in ["../x", "a/../../x", "x/", "a/.", "/..", ".."] {
            #expect(throws: DownloadFailure.self) {
                try DownloadPath(DownloadOptions(["dir": "/d", "out": out]), uri: "http://a/x")
            }
        }
        #expect(throws: DownloadFailure.self) {
            try DownloadPath(DownloadOptions(["dir": "d"]), uri: "http://a/x")
        }
        #expect(throws: DownloadFailure.self) {
            try DownloadPath(DownloadOptions(["dir": "/d\u{0}x"]), uri: "http://a/x")
        }
        let path = try DownloadPath(
            DownloadOptions(["dir": "/d", "out": "a/b"]),
            uri: "http://a/x"
        )
        #expect(path.path == "/d/a/b")
    }

    @Test("Further files get numbers as aria2 gives them")
    func numbers() throws {
        let film = try DownloadPath(DownloadOptions(["dir": "/d", "out": "f.x.mp4"]), uri: "")
        #expect(film.numbered(0) == "/d/f.x.mp4" && film.numbered(2) == "/d/f.x.2.mp4")
        let plain = try DownloadPath(DownloadOptions(["dir": "/d", "out": "film"]), uri: "")
        #expect(plain.numbered(1) == "/d/film.1")
    }
}
