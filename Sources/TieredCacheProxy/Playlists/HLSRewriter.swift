import HTTPCaching

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
    /// A variable may hold the beginning of addresses that are the player's to put together.
    private static let definition = "#EXT-X-DEFINE:"

    /// Rewrites a master or media playlist.
    ///
    /// - Parameters:
    ///   - bytes: the playlist.
    ///   - rewriter: decides about each address.
    ///   - imported: the variables of the master playlist.
    /// - Returns: the playlist for the player.
    package static func rewrite(
        _ bytes: [UInt8],
        _ rewriter: AddressRewriter,
        importing imported: HLSVariables = HLSVariables()
    ) -> [UInt8] {
        var variables = HLSVariables()
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count + bytes.count / 2)
        var copied = 0
        for line in PlaylistLines(bytes) {
            variables.define(bytes[line], at: rewriter.location, importing: imported)
            for edit in edits(of: bytes[line], rewriter, variables) {
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

    /// The address that the player is to see, its variables put in; nil where it can stay.
    private static func rewritten(
        _ address: ArraySlice<UInt8>,
        _ rewriter: AddressRewriter,
        _ variables: HLSVariables
    ) -> [UInt8]? {
        guard let whole = variables.substituted(address) else {
            return rewriter.rewritten(address)
        }
        return rewriter.rewritten(whole) ?? whole
    }

    private static func edits(
        of line: ArraySlice<UInt8>,
        _ rewriter: AddressRewriter,
        _ variables: HLSVariables
    ) -> [Edit] {
        guard line.first == UInt8(ascii: "#") else { return address(line, rewriter, variables) }
        guard line.starts(with: "#EXT-X-".utf8) else { return [] }
        if line.starts(with: definition.utf8) { return definition(line, rewriter) }
        guard let known = addresses.first(where: { line.starts(with: $0.tag.utf8) }) else {
            return []
        }
        return HLSAttributes(line.dropFirst(known.tag.utf8.count)).compactMap { attribute in
            guard attribute.isQuoted,
                known.attributes.contains(where: { attribute.name.elementsEqual($0.utf8) }),
                let replacement = rewritten(attribute.value, rewriter, variables)
            else { return nil }
            return Edit(range: attribute.value.indices, replacement: replacement)
        }
    }

    private static func address(
        _ line: ArraySlice<UInt8>,
        _ rewriter: AddressRewriter,
        _ variables: HLSVariables
    ) -> [Edit] {
        let start = line.drop { $0 == 0x20 || $0 == 0x09 }
        let text = start.dropLast(start.reversed().prefix { $0 == 0x20 || $0 == 0x09 }.count)
        guard !text.isEmpty, !text.starts(with: [0xEF, 0xBB, 0xBF]),
            let replacement = rewritten(text, rewriter, variables)
        else { return [] }
        return [Edit(range: text.indices, replacement: replacement)]
    }

    /// What has to change in a definition.
    ///
    /// A value that is an absolute address by itself leads through the proxy, for a playlist that
    /// imports it before this proxy knows where it came from. A parameter that only the URL behind a
    /// redirect has is told to the player, which does not know that URL.
    private static func definition(
        _ line: ArraySlice<UInt8>,
        _ rewriter: AddressRewriter
    ) -> [Edit] {
        let list = line.dropFirst(definition.utf8.count)
        if let name = HLSAttributes(list).value("QUERYPARAM"), rewriter.isElsewhere,
            let value = HLSVariables()
                .defining(line, at: rewriter.location).substituted("{$\(name)}".utf8)
        {
            let text = "NAME=\"\(name)\",VALUE=\"" + String(decoding: value, as: UTF8.self) + "\""
            return [Edit(range: list.indices, replacement: Array(text.utf8))]
        }
        return HLSAttributes(list).compactMap { attribute in
            let value = String(decoding: attribute.value.prefix(8), as: UTF8.self).lowercased()
            guard attribute.isQuoted, attribute.name.elementsEqual("VALUE".utf8),
                value.hasPrefix("http://") || value.hasPrefix("https://"),
                let replacement = rewriter.rewritten(attribute.value)
            else { return nil }
            return Edit(range: attribute.value.indices, replacement: replacement)
        }
    }
}

extension HLSVariables {
    fileprivate func defining(_ line: ArraySlice<UInt8>, at location: TargetURI) -> HLSVariables {
        var copy = self
        copy.define(line, at: location, importing: HLSVariables())
        return copy
    }
}
