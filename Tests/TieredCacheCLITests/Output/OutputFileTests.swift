import SystemPackage
import Testing

@testable import TieredCacheCLI

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

@Suite("The user's file", .serialized, .timeLimit(.minutes(10)))
struct OutputFileTests {
    /// A directory of its own for each test, removed with its files.
    private final class Directory {
        let path: FilePath

        init() throws {
            var template = Array("/tmp/tieredcache-output-XXXXXX".utf8CString)
            let made = template.withUnsafeMutableBufferPointer { buffer in
                buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) }
            }
            path = FilePath(try #require(made))
        }

        deinit {
            for name in names { unlink(path.appending(name).string) }
            rmdir(path.string)
        }

        var names: [String] {
            guard let stream = opendir(path.string) else { return [] }
            defer { closedir(stream) }
            var names: [String] = []
            while let entry = readdir(stream) {
                let name = withUnsafePointer(to: entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if name != ".", name != ".." { names.append(name) }
            }
            return names.sorted()
        }

        func file(_ name: String) -> String { path.appending(name).string }

        func read(_ name: String) throws -> String {
            let descriptor = try FileDescriptor.open(path.appending(name), .readOnly)
            return try descriptor.closeAfter {
                var bytes = [UInt8](repeating: 0, count: 4096)
                let count = try bytes.withUnsafeMutableBytes { try descriptor.read(into: $0) }
                return String(decoding: bytes[..<count], as: UTF8.self)
            }
        }

        func write(_ name: String, _ text: String) throws {
            let descriptor = try FileDescriptor.open(
                path.appending(name),
                .writeOnly,
                options: [.create, .truncate],
                permissions: .ownerReadWrite
            )
            try descriptor.closeAfter { _ = try descriptor.writeAll(text.utf8) }
        }
    }

    private func write(_ text: String, to output: OutputFile) throws {
        try Array(text.utf8).withUnsafeBytes { try output.write($0) }
    }

    @Test("It appears only complete", arguments: [true, false])
    func appears(unnamed: Bool) throws {
        let directory = try Directory()
        let output = try OutputFile(directory.file("a"), allowsUnnamed: unnamed)
        try write("he", to: output)
        try write("llo", to: output)
        #expect(!directory.names.contains("a"))
        try output.complete()
        #expect(directory.names == ["a"])
        #expect(try directory.read("a") == "hello")
    }

    @Test("It replaces what was there and keeps its permissions", arguments: [true, false])
    func replaces(unnamed: Bool) throws {
        let directory = try Directory()
        try directory.write("a", "old and longer")
        #expect(chmod(directory.file("a"), 0o640) == 0)
        let output = try OutputFile(directory.file("a"), allowsUnnamed: unnamed)
        try write("new", to: output)
        #expect(try directory.read("a") == "old and longer")
        try output.complete()
        #expect(directory.names == ["a"])
        #expect(try directory.read("a") == "new")
        var status = stat()
        #expect(stat(directory.file("a"), &status) == 0)
        #expect(status.st_mode & 0o7777 == 0o640)
    }

    @Test("Given up, it leaves everything as it was", arguments: [true, false])
    func givenUp(unnamed: Bool) throws {
        let directory = try Directory()
        try directory.write("a", "old")
        do {
            let output = try OutputFile(directory.file("a"), allowsUnnamed: unnamed)
            try write("half", to: output)
        }
        #expect(directory.names == ["a"])
        #expect(try directory.read("a") == "old")
    }

    @Test("A name as long as the file system allows can be written", arguments: [true, false])
    func longName(unnamed: Bool) throws {
        let directory = try Directory()
        let name = String(repeating: "🎬", count: 63)
        for text in ["old", "new"] {
            let output = try OutputFile(directory.file(name), allowsUnnamed: unnamed)
            try write(text, to: output)
            try output.complete()
            #expect(try directory.read(name) == text)
        }
    }

    @Test("A process that ends at once removes its temporaries")
    func discarded() throws {
        let directory = try Directory()
        let output = try OutputFile(directory.file("a"), allowsUnnamed: false)
        try write("half", to: output)
        #expect(directory.names.count == 1)
        OutputFile.discardAll()
        #expect(directory.names.isEmpty)
    }

    @Test("A restart drops what was written", arguments: [true, false])
    func restarts(unnamed: Bool) throws {
        let directory = try Directory()
        let output = try OutputFile(directory.file("a"), allowsUnnamed: unnamed)
        try write("the old representation", to: output)
        try output.restart()
        try write("new", to: output)
        try output.complete()
        #expect(try directory.read("a") == "new")
    }

    @Test("A symbolic link stays one, and its target is written")
    func links() throws {
        let directory = try Directory()
        try directory.write("target", "old")
        #expect(symlink("target", directory.file("link")) == 0)
        let output = try OutputFile(directory.file("link"))
        try write("new", to: output)
        try output.complete()
        #expect(directory.names == ["link", "target"])
        #expect(try directory.read("target") == "new")
    }

    @Test(
        "A link whose target is missing leads to where the file is made",
        arguments: [true, false]
    )
    func danglingLinks(allowsUnnamed: Bool) throws {
        let directory = try Directory()
        #expect(symlink("middle", directory.file("link")) == 0)
        #expect(symlink(directory.file("target"), directory.file("middle")) == 0)
        let output = try OutputFile(directory.file("link"), allowsUnnamed: allowsUnnamed)
        try write("new", to: output)
        try output.complete()
        #expect(directory.names == ["link", "middle", "target"])
        #expect(try directory.read("target") == "new")
    }

    @Test("A link into a directory that is missing, and a link to itself, cannot be written")
    func brokenLinks() throws {
        let directory = try Directory()
        #expect(symlink("missing/target", directory.file("link")) == 0)
        #expect(symlink("self", directory.file("self")) == 0)
        for name in ["link", "self"] {
            #expect(throws: CommandFailure.self) { _ = try OutputFile(directory.file(name)) }
        }
        #expect(directory.names == ["link", "self"])
    }

    @Test("What is not a regular file is written directly")
    func devices() throws {
        let output = try OutputFile("/dev/null")
        try write("x", to: output)
        #expect(throws: CommandFailure.self) { try output.restart() }
        try output.complete()
    }

    @Test(
        "What cannot be written is refused before a byte is fetched",
        arguments: ["/", "/nonexistent/a", "/proc/version/a", "/tmp"]
    )
    func refused(path: String) throws {
        let failure = try #require(throws: CommandFailure.self) { _ = try OutputFile(path) }
        #expect(failure.status == .localFailed)
        #expect(failure.message.hasPrefix("cannot write \(path): "))
    }
}
