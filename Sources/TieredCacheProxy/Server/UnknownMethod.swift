import NIOCore

/// Takes methods past a parser that knows a fixed list of them (RFC 9110 §9.1 has no such list).
///
/// How a request is framed does not depend on its method, so the parser may see another one.
enum UnknownMethod {
    private static let known: Set<String> = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT",
    ]

    /// Puts a method that every parser knows in place of an unusual one.
    ///
    /// - Parameter head: a checked head, from its first byte on.
    /// - Returns: the method that stood there; nil if it is a usual one, which stays.
    static func replace(in head: inout ByteBuffer) -> String? {
        // The one that nearly all requests have costs no string.
        guard !head.readableBytesView.starts(with: "GET ".utf8),
            let end = head.readableBytesView.firstIndex(of: UInt8(ascii: " ")),
            let method = head.getString(
                at: head.readerIndex,
                length: end - head.readableBytesView.startIndex
            ),
            !known.contains(method)
        else { return nil }
        var replaced = ByteBuffer(string: "PATCH")
        head.moveReaderIndex(forwardBy: method.utf8.count)
        replaced.writeBuffer(&head)
        head = replaced
        return method
    }
}
