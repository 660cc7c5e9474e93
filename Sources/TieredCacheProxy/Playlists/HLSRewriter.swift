/// Makes the addresses of an HLS playlist lead through the proxy; every other byte stays.
package enum HLSRewriter {
    /// The attributes that are addresses, by tag.
    private static let addresses: [(tag: String, attributes: [String])] = [
        ("#EXT-X-KEY:", ["URI"]),
        ("#EXT-X-MAP:", ["URI"]),
        ("#EXT-X-PART:", ["URI"]),
        ("#EXT-X-MEDIA:", ["URI"]),
        ("#EXT-X-SESSION-KEY:", ["URI"]),
        ("#EXT-X-SESSION-DATA:", ["URI"]),
        ("#EXT-X-PRELOAD-HINT:", ["URI"]),
        ("#EXT-X-RENDITION-REPORT:", ["URI"]),
        ("#EXT-X-I-FRAME-STREAM-INF:", ["URI"]),
        ("#EXT-X-CONTENT-STEERING:", ["SERVER-URI"]),
        ("#EXT-X-DATERANGE:", ["X-ASSET-URI", "X-ASSET-LIST"]),
    ]
    /// A variable may hold the beginning of addresses.
    private static let definition = "#EXT-X-DEFINE:"

    /// Rewrites a master or media playlist.
    ///
    /// - Parameters:
    ///   - bytes: the playlist.
    ///   - rewriter: decides about each address.
    /// - Returns: the playlist for the player.
    package static func rewrite(_ bytes: [UInt8], _ rewriter: AddressRewriter) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count + bytes.count / 2)
        var copied = 0
        for line in PlaylistLines(bytes) {
            for edit in edits(of: bytes[line], rewriter) {
                result += bytes[copied..<edit.range.lowerBound]
                result += edit.replacement
                copied = edit.range.upperBound
            }
        }
        return result + bytes[copied...]
    }

    private struct Edit {
        let range: Range<Int>
        let replacement: [UInt8]
    }

    private static func edits(of line: ArraySlice<UInt8>, _ rewriter: AddressRewriter) -> [Edit] {
        guard line.first == UInt8(ascii: "#") else { return address(line, rewriter) }
        guard line.starts(with: "#EXT-X-".utf8) else { return [] }
        if line.starts(with: definition.utf8) { return variable(line, rewriter) }
        guard let known = addresses.first(where: { line.starts(with: $0.tag.utf8) }) else {
            return []
        }
        return HLSAttributes(line.dropFirst(known.tag.utf8.count)).compactMap { attribute in
            guard attribute.isQuoted,
                known.attributes.contains(where: { attribute.name.elementsEqual($0.utf8) }),
                let replacement = rewriter.rewritten(attribute.value)
            else { return nil }
            return Edit(range: attribute.value.indices, replacement: replacement)
        }
    }

    private static func address(
        _ line: ArraySlice<UInt8>,
        _ rewriter: AddressRewriter
    ) -> [Edit] {
        let start = line.drop { $0 == 0x20 || $0 == 0x09 }
        let text = start.dropLast(start.reversed().prefix { $0 == 0x20 || $0 == 0x09 }.count)
        guard !text.isEmpty, !text.starts(with: [0xEF, 0xBB, 0xBF]),
            let replacement = rewriter.rewritten(text)
        else { return [] }
        return [Edit(range: text.indices, replacement: replacement)]
    }

    /// `#EXT-X-DEFINE:NAME="cdn",VALUE="https://…"`: only what is an absolute address by itself.
    private static func variable(
        _ line: ArraySlice<UInt8>,
        _ rewriter: AddressRewriter
    ) -> [Edit] {
        HLSAttributes(line.dropFirst(definition.utf8.count)).compactMap { attribute in
            let value = String(decoding: attribute.value.prefix(8), as: UTF8.self).lowercased()
            guard attribute.isQuoted, attribute.name.elementsEqual("VALUE".utf8),
                value.hasPrefix("http://") || value.hasPrefix("https://"),
                let replacement = rewriter.rewritten(attribute.value)
            else { return nil }
            return Edit(range: attribute.value.indices, replacement: replacement)
        }
    }
}
