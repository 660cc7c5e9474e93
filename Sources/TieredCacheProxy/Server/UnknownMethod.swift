import NIOCore

/// Replaces methods that the parser does not know; RFC 9110 §9.1 has no fixed list of methods.
///
/// The framing of a request does not depend on its method, so the parser may see a substitute.
enum UnknownMethod {
    private static let known: Set<String> = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT",
    ]

    /// Replaces an unusual method by one that every parser knows.
    ///
    /// - Parameter head: a checked head, from its first byte on.
    /// - Returns: the replaced method; nil if it is a usual one, which stays.
    static func replace(in head: inout ByteBuffer) -> String? {
        // The most frequent method is checked without creating a string.
        guard !head.readableBytesView.starts(with: "GET ".utf8),
            let end = head.readableBytesView.firstIndex(of: UInt8(ascii: " ")),
            let method = head.getString(
                at: head.readerIndex,
                length: end - head.readableBytesView.startIndex
            ),
            !known.contains(method)
        else { return nil }
        // To every parser a method that may have content and opens no tunnel.
        var replaced = ByteBuffer(string: "PATCH")
        head.moveReaderIndex(forwardBy: method.utf8.count)
        replaced.writeBuffer(&head)
        head = replaced
        return method
    }
}
