import FoundationEssentials
import SystemPackage
import TestParts
import Testing
import TieredCacheTesting

@testable import TieredCacheCLI

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Cache directories that cannot be used, and where the directory is by default.
@Suite("The cache directory", .tags(.realTime), .timeLimit(.minutes(10)))
struct DirectoryTests {
    private static let managing: [[String]] = [
        ["list"], ["stats", "--json"], ["clear"], ["trim", "--to", "0"], ["verify"],
        ["verify", "--repair"],
    ]

    @Test(
        "A directory that others may write to is closed to them, or not used where it is not ours"
    )
    func openDirectory() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 200_000)
            let path = place.cache.string
            try #require(mkdir(path, 0o777) == 0 && chmod(path, 0o777) == 0)
            try await place.get("/a", into: "a").expectDone()
            var status = stat()
            try #require(stat(path, &status) == 0)
            #expect(status.st_mode & 0o7777 == 0o755)
            #expect(try place.cacheFiles().count > 1)
            // As /tmp is: some of what lies there may be another's.
            try #require(chmod(path, 0o1777) == 0)
            try await place.run("stats").expectFailure(74, path)
            guard geteuid() == 0 else { return }
            try #require(chmod(path, 0o777) == 0 && chown(path, 65_534, 65_534) == 0)
            try await place.run("stats").expectFailure(74, path)
            let get = try await place.get("/a", into: "b")
            #expect(get.exitCode == 0 && get.errorLines.count == 1)
            // Not root either, though others may not write there.
            try #require(chmod(path, 0o755) == 0)
            try await place.run("stats").expectFailure(74, path)
        }
    }

    @Test(
        "A FORMAT that is newer or cannot be read is refused by what manages, passed through by get",
        arguments: [
            "tieredcache format 3\n", "tieredcache format 99999999999999999999\n", "garbage", "",
            "tieredcache format -1\n", "tieredcache format 0\n", "\u{0}\u{1}\u{2}",
        ]
    )
    func format(text: String) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 200_000)
            try await place.get("/a", into: "a").expectDone()
            try place.files.write(text, to: "cache/FORMAT")
            let before = try place.cacheFiles()
            let url = place.origin.url("/a")
            for command in Self.managing + [["show", url], ["path", url], ["remove", url]] {
                let outcome = try await place.run(command)
                outcome.expectFailure(74, place.cache.string)
                #expect(outcome.output.isEmpty)
            }
            try await place.run("prefetch", url).expectFailure(74, place.cache.string)
            let get = try await place.get("/a", into: "b")
            #expect(get.exitCode == 0)
            get.expectReport(url, source: "origin", fromOrigin: 200_000)
            #expect(get.errorLines.count == 1)
            #expect(get.error.contains("warning"))
            #expect(try place.file("b", equals: "/a"))
            #expect(try place.cacheFiles() == before)
        }
    }

    @Test(
        "A directory that cannot be used passes the bytes through, with a warning and 0",
        arguments: ["file", "file/below", "/proc/tieredcache", "/dev/null/tieredcache"]
    )
    func unusable(name: String) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 200_000)
            try place.files.write("mine", to: "file")
            let directory = name.hasPrefix("/") ? FilePath(name) : place.files.appending(name)
            let url = place.origin.url("/a")
            let get = try await place.run("get", url, directory: directory)
            #expect(get.exitCode == 0)
            #expect(get.errorLines.count == 1)
            #expect(get.error.contains("warning") && get.error.contains(directory.string))
            #expect(place.origin.resource("/a")?.generatedBody?.matches(get.output) == true)
            #expect(get.output.count == 200_000)
            for command in Self.managing + [["prefetch", url]] {
                try await place.run(command, directory: directory)
                    .expectFailure(74, directory.string)
            }
            let only = try await place.run(
                "get",
                url,
                "--policy",
                "cache-only",
                directory: directory
            )
            #expect(only.exitCode == 66)
            #expect(try place.files.read("file") == "mine")
        }
    }

    @Test("A pin that cannot be kept delivers the bytes and is 74")
    func pin() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 200_000)
            place.origin.serve("/b", .generated(length: 1000, cacheControl: "no-store"))
            try place.files.write("mine", to: "file")
            let directory = place.files.appending("file")
            let url = place.origin.url
            let unusable = try await place.run("get", url("/a"), "--pin", directory: directory)
            #expect(unusable.exitCode == 74)
            #expect(unusable.output.count == 200_000)
            #expect(unusable.error.contains("pin"))
            let forbidden = try await place.run("get", url("/b"), "--pin")
            #expect(forbidden.exitCode == 74)
            #expect(forbidden.output.count == 1000)
            let tooLarge = try await place.run("get", url("/a"), "--pin", "--disk-limit", "100kB")
            #expect(tooLarge.exitCode == 74)
            #expect(tooLarge.output.count == 200_000)
        }
    }

    @Test("What is stored already is pinned as well", arguments: [1000, 200_000])
    func pinStored(length: Int64) async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: length)
            try await place.get("/a", into: "a").expectDone()
            let before = try await place.run("list").text
            #expect(!before.contains("pinned"))
            try await place.get("/a", into: "a", "--pin").expectDone()
            #expect(try await place.run("list").text.contains("pinned"))
            #expect(place.origin.log.exchanges.count == 1)
        }
    }

    @Test("Below --min-free nothing is stored and everything is delivered")
    func minimumFree() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 200_000)
            let url = place.origin.url("/a")
            for _ in 0..<2 {
                let outcome = try await place.run(
                    "get",
                    url,
                    "--min-free",
                    "1000TiB",
                    "-o",
                    place.files.appending("a").string,
                    "--json"
                )
                #expect(outcome.exitCode == 0)
                outcome.expectReport(url, source: "origin", fromOrigin: 200_000)
                #expect(try place.file("a", equals: "/a"))
            }
            try await place.run("prefetch", url, "--min-free", "1000TiB").expectFailure(74)
            #expect(try await place.run("list").lines.isEmpty)
            try await place.run("get", url, "--min-free", "0", "-o", "/dev/null").expectDone()
            #expect(try await place.run("list").lines.count == 1)
        }
    }

    @Test("A body larger than the limit is delivered and not stored")
    func tooLarge() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 5_000_000)
            let file = place.files.appending("a").string
            let outcome = try await place.run(
                "get",
                place.origin.url("/a"),
                "-o",
                file,
                "--disk-limit",
                "1MiB"
            )
            #expect(outcome.exitCode == 0)
            #expect(try place.file("a", equals: "/a"))
            #expect(try place.allocatedBytes() <= 1 << 20)
        }
    }

    @Test("By default the directory is under XDG_CACHE_HOME; it is 0700 and its files 0600")
    func byDefault() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 200_000)
            let url = place.origin.url("/a")
            try await place.runPlain(["get", url, "-o", "/dev/null"]).expectDone()
            let directory = place.files.appending("xdg/tieredcache")
            let list = try await place.run("list", directory: directory)
            #expect(list.lines.count == 1)
            let manager = FileManager.default
            let root = try manager.attributesOfItem(atPath: directory.string)
            #expect(root[.posixPermissions] as? Int == 0o700)
            for name in try manager.subpathsOfDirectory(atPath: directory.string) {
                let path = directory.appending(name).string
                let found = try manager.attributesOfItem(atPath: path)
                let expected = found[.type] as? FileAttributeType == .typeDirectory ? 0o700 : 0o600
                #expect(found[.posixPermissions] as? Int == expected, "\(name)")
            }
        }
    }

    @Test("A reverse proxy has a directory of its own by default")
    func reverse() async throws {
        try await Workplace.with { place in
            let lock = place.files.appending("xdg/tieredcache-reverse/LOCK").string
            let arguments = ["serve", "--json", "--origin", place.origin.url("")]
            // Whether it hears the signal yet is not asked here.
            _ = try await place.runPlain(arguments) { running in
                while access(lock, F_OK) != 0, !Task.isCancelled { await Task.yield() }
                kill(running.processIdentifier, SIGTERM)
            }
            #expect(access(place.files.appending("xdg/tieredcache").string, F_OK) != 0)
        }
    }

    @Test("Deleting any file at any time costs at most a miss")
    func deletion() async throws {
        try await Workplace.with { place in
            place.origin.serveFresh("/a", length: 200_000)
            try await place.get("/a", into: "a")
            for name in try place.cacheFiles().keys.sorted() {
                try FileManager.default.removeItem(atPath: place.cache.appending(name).string)
                try await place.get("/a", into: "b").expectDone()
                #expect(try place.file("b", equals: "/a"), "\(name)")
            }
            try FileManager.default.removeItem(atPath: place.cache.string)
            try await place.get("/a", into: "b").expectDone()
            try await place.get("/a", into: "b")
                .expectReport(place.origin.url("/a"), source: "disk", fromCache: 200_000)
        }
    }
}
