import SystemPackage
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A directory for one test, removed with everything in it when released.
final class TemporaryDirectory: Sendable {
    let path: FilePath

    init() throws {
        var template = Array("/tmp/tieredcache-integration-XXXXXX".utf8CString)
        let made = template.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) }
        }
        path = FilePath(try #require(made))
    }

    deinit {
        Self.removeTree(path)
    }

    func appending(_ name: String) -> FilePath { path.appending(name) }

    func makeDirectory(_ name: String) throws {
        try #require(mkdir(appending(name).string, 0o755) == 0)
    }

    func write(_ text: String, to name: String) throws {
        let descriptor = try open(name)
        try descriptor.closeAfter { _ = try descriptor.writeAll(text.utf8) }
    }

    func read(_ name: String) throws -> String {
        let descriptor = try FileDescriptor.open(appending(name), .readOnly)
        return try descriptor.closeAfter {
            var text: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65536)
            while true {
                let count = try buffer.withUnsafeMutableBytes { try descriptor.read(into: $0) }
                guard count > 0 else { return String(decoding: text, as: UTF8.self) }
                text += buffer[..<count]
            }
        }
    }

    func open(_ name: String) throws -> FileDescriptor {
        try .open(
            appending(name),
            .writeOnly,
            options: [.create, .truncate],
            permissions: [.ownerReadWrite, .groupRead, .otherRead]
        )
    }

    private static func removeTree(_ path: FilePath) {
        if let stream = opendir(path.string) {
            while let entry = readdir(stream) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if name != ".", name != ".." { removeTree(path.appending(name)) }
            }
            closedir(stream)
        }
        remove(path.string)
    }
}
