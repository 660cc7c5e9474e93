#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A directory of its own for the files that are served and those that are fetched.
struct Place {
    private let root: String

    init(fileSizes: [String: Int]) throws {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/tieredcache-cold-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Failure("no temporary directory") }
        root = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard mkdir(path("files"), 0o755) == 0 else { throw Failure("no directory for files") }
        for (name, size) in fileSizes { try fill("files/\(name)", size: size) }
    }

    func path(_ name: String) -> String { "\(root)/\(name)" }

    func write(_ name: String, _ text: String) throws {
        try write(name) { file in
            text.utf8CString.withUnsafeBufferPointer {
                fwrite($0.baseAddress, 1, $0.count - 1, file) == $0.count - 1
            }
        }
    }

    func removeFile(_ name: String) { unlink(path(name)) }

    func removeDirectory(_ name: String) {
        do {
            _ = try Run.of(["rm", "-rf", path(name)])
        } catch {
            print("left behind: \(path(name))")
        }
    }

    func remove() { removeDirectory("") }

    /// Bytes that no file system and no network compresses.
    private func fill(_ name: String, size: Int) throws {
        var state: UInt64 = 1
        try write(name) { file in
            var words = [UInt64](repeating: 0, count: 8192)
            for _ in 0..<size / (64 << 10) {
                for index in words.indices {
                    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                    words[index] = state ^ (state >> 29)
                }
                guard fwrite(words, 8, words.count, file) == words.count else { return false }
            }
            return true
        }
    }

    #if canImport(Glibc)
    private typealias File = UnsafeMutablePointer<_IO_FILE>
    #else
    private typealias File = UnsafeMutablePointer<FILE>
    #endif

    private func write(_ name: String, _ body: (File) -> Bool) throws {
        guard let file = fopen(path(name), "w") else { throw Failure("cannot write \(name)") }
        let isDone = body(file)
        guard fclose(file) == 0, isDone else { throw Failure("cannot write \(name)") }
    }
}
