package import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A new directory under `/tmp`, removed with its content when the object is released.
package final class TemporaryDirectory: Sendable {
    package let path: FilePath

    /// - Throws: `Errno`.
    package init(_ name: String = "tieredcache") throws {
        var template = Array("/tmp/\(name)-XXXXXX".utf8CString)
        let made = template.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) }
        }
        guard let made else { throw Errno(rawValue: errno) }
        path = FilePath(made)
    }

    deinit {
        Self.removeTree(path)
    }

    package func appending(_ name: String) -> FilePath { path.appending(name) }

    package func makeDirectory(_ name: String) throws {
        guard mkdir(appending(name).string, 0o755) == 0 else { throw Errno(rawValue: errno) }
    }

    /// The names in the directory, sorted; not recursive.
    package var names: [String] { Self.names(in: path).sorted() }

    package func write(_ bytes: [UInt8], to name: String) throws {
        let descriptor = try create(name)
        try descriptor.closeAfter { _ = try descriptor.writeAll(bytes) }
    }

    package func write(_ text: String, to name: String) throws {
        let descriptor = try create(name)
        try descriptor.closeAfter { _ = try descriptor.writeAll(text.utf8) }
    }

    /// Writes a generated body in pieces of 1 MiB.
    package func write(_ content: GeneratedBody, to name: String) throws {
        let descriptor = try create(name)
        try descriptor.closeAfter {
            var offset: Int64 = 0
            while offset < content.length {
                let end = min(content.length, offset + (1 << 20))
                try descriptor.writeAll(content.bytes(in: offset..<end))
                offset = end
            }
        }
    }

    package func read(_ name: String) throws -> String {
        String(decoding: try bytes(name), as: UTF8.self)
    }

    package func bytes(_ name: String) throws -> [UInt8] {
        var bytes: [UInt8] = []
        try forEachPiece(of: name) { bytes += $0 }
        return bytes
    }

    /// Whether a file consists of exactly the bytes of `content`.
    package func file(_ name: String, equals content: GeneratedBody) throws -> Bool {
        var offset: Int64 = 0
        var isEqual = true
        try forEachPiece(of: name) { piece in
            isEqual = isEqual && content.matches(piece, at: offset)
            offset += Int64(piece.count)
        }
        return isEqual && offset == content.length
    }

    private func forEachPiece(of name: String, _ body: (UnsafeRawBufferPointer) -> Void) throws {
        let descriptor = try FileDescriptor.open(appending(name), .readOnly)
        try descriptor.closeAfter {
            var buffer = [UInt8](repeating: 0, count: 1 << 20)
            var count = 0
            repeat {
                count = try buffer.withUnsafeMutableBytes { try descriptor.read(into: $0) }
                buffer.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            } while count > 0
        }
    }

    private func create(_ name: String) throws -> FileDescriptor {
        try .open(
            appending(name),
            .writeOnly,
            options: [.create, .truncate, .closeOnExec],
            permissions: [.ownerReadWrite, .groupRead, .otherRead]
        )
    }

    private static func removeTree(_ path: FilePath) {
        for name in names(in: path) { removeTree(path.appending(name)) }
        remove(path.string)
    }

    /// The names in a directory; empty for anything else.
    ///
    /// Symbolic links are not followed.
    private static func names(in path: FilePath) -> [String] {
        let descriptor = open(path.string, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0, let stream = fdopendir(descriptor) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
