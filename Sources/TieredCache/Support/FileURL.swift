package import FoundationEssentials
package import SystemPackage

extension FilePath {
    /// The path that a `file` URL names, byte for byte.
    ///
    /// Nil for a URL of another scheme or host, without a path, or with an escaped NUL or slash,
    /// which no file name contains.
    package init?(fileURL url: URL) {
        // RFC 8089 §2: an empty host and `localhost` are this machine.
        guard url.isFileURL, ["", "localhost"].contains(url.host(percentEncoded: false) ?? "")
        else { return nil }
        var bytes: [CInterop.PlatformChar] = []
        var rest = Array(url.path(percentEncoded: true).utf8)[...]
        while var byte = rest.popFirst() {
            if byte == UInt8(ascii: "%") {
                guard rest.count >= 2,
                    let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16),
                    value != 0, value != UInt8(ascii: "/")
                else { return nil }
                byte = value
                rest = rest.dropFirst(2)
            }
            bytes.append(CInterop.PlatformChar(bitPattern: byte))
        }
        guard !bytes.isEmpty else { return nil }
        self.init(platformString: bytes + [0])
    }
}

extension URL {
    /// The `file` URL of a path, whose bytes need not be UTF-8.
    package init(file path: FilePath, directoryHint: DirectoryHint = .inferFromPath) {
        let text = path.string
        // The text of a path that is not UTF-8 is repaired, and names another file.
        guard FilePath(text) != path, let url = Self.escaping(path, directoryHint) else {
            self.init(filePath: text, directoryHint: directoryHint)
            return
        }
        self = url
    }

    private static func escaping(_ path: FilePath, _ hint: DirectoryHint) -> URL? {
        let escaped = path.withPlatformString { start in
            UnsafeRawBufferPointer(start: start, count: path.length).map { byte in
                byte == UInt8(ascii: "/")
                    ? "/" : "%\(String(byte >> 4, radix: 16))\(String(byte & 15, radix: 16))"
            }.joined()
        }
        let end = hint == .isDirectory ? "/" : ""
        return URL(string: "file:\(path.isAbsolute ? "//" : "")\(escaped)\(end)")
    }
}
