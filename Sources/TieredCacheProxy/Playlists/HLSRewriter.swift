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
    ///   - budget: what is left of it says what this has cost.
    /// - Returns: the playlist for the player; nil for one that exceeds its budget.
    static func rewrite(
        _ bytes: [UInt8],
        _ rewriter: AddressRewriter,
        importing imported: HLSVariables = HLSVariables(),
        _ budget: inout PlaylistBudget
    ) -> [UInt8]? {
        var variables = HLSVariables()
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count + bytes.count / 2)
        var copied = 0
        for line in PlaylistLines(bytes) {
            let defined = variables.define(
                bytes[line],
                at: rewriter.location,
                importing: imported
            )
            let edits =
                defined.flatMap { told(bytes[line], $0, rewriter, &budget) }
                ?? edits(of: bytes[line], rewriter, variables, &budget)
            for edit in edits {
                result += bytes[copied..<edit.range.lowerBound]
                result += edit.replacement
                copied = edit.range.upperBound
            }
            guard !budget.isExceeded else { return nil }
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
        _ variables: HLSVariables,
        _ budget: inout PlaylistBudget
    ) -> [UInt8]? {
        guard let whole = variables.substituted(address, &budget) else {
            return rewriter.rewritten(address, &budget)
        }
        if let result = rewriter.rewritten(whole, &budget) { return result }
        budget.spend(output: whole.count)
        return whole
    }

    private static func edits(
        of line: ArraySlice<UInt8>,
        _ rewriter: AddressRewriter,
        _ variables: HLSVariables,
        _ budget: inout PlaylistBudget
    ) -> [Edit] {
        guard line.first == UInt8(ascii: "#") else {
            return address(line, rewriter, variables, &budget)
        }
        guard line.starts(with: "#EXT-X-".utf8) else { return [] }
        if line.starts(with: definition.utf8) { return definition(line, rewriter, &budget) }
        guard let known = addresses.first(where: { line.starts(with: $0.tag.utf8) }) else {
            return []
        }
        return HLSAttributes(line.dropFirst(known.tag.utf8.count)).compactMap { attribute in
            guard attribute.isQuoted,
                known.attributes.contains(where: { attribute.name.elementsEqual($0.utf8) }),
                let replacement = rewritten(attribute.value, rewriter, variables, &budget)
            else { return nil }
            return Edit(range: attribute.value.indices, replacement: replacement)
        }
    }

    private static func address(
        _ line: ArraySlice<UInt8>,
        _ rewriter: AddressRewriter,
        _ variables: HLSVariables,
        _ budget: inout PlaylistBudget
    ) -> [Edit] {
        let start = line.drop { $0 == 0x20 || $0 == 0x09 }
        let text = start.dropLast(start.reversed().prefix { $0 == 0x20 || $0 == 0x09 }.count)
        guard !text.isEmpty, !text.starts(with: [0xEF, 0xBB, 0xBF]),
            let replacement = rewritten(text, rewriter, variables, &budget)
        else { return [] }
        return [Edit(range: text.indices, replacement: replacement)]
    }

    /// A parameter that only the URL behind a redirect has is told to the player, which does not
    /// know that URL; nil where the definition is of another kind.
    private static func told(
        _ line: ArraySlice<UInt8>,
        _ value: [UInt8],
        _ rewriter: AddressRewriter,
        _ budget: inout PlaylistBudget
    ) -> [Edit]? {
        let list = line.dropFirst(definition.utf8.count)
        let attributes = HLSAttributes(list)
        guard rewriter.isElsewhere, attributes.value("NAME") == nil,
            attributes.value("IMPORT") == nil, let name = attributes.value("QUERYPARAM")
        else { return nil }
        let text = "NAME=\"\(name)\",VALUE=\"" + String(decoding: value, as: UTF8.self) + "\""
        budget.spend(output: text.utf8.count)
        return [Edit(range: list.indices, replacement: Array(text.utf8))]
    }

    /// What has to change in a definition.
    ///
    /// A value that is an absolute address by itself leads through the proxy, for a playlist that
    /// imports it before this proxy knows where it came from.
    private static func definition(
        _ line: ArraySlice<UInt8>,
        _ rewriter: AddressRewriter,
        _ budget: inout PlaylistBudget
    ) -> [Edit] {
        HLSAttributes(line.dropFirst(definition.utf8.count)).compactMap { attribute in
            let value = String(decoding: attribute.value.prefix(8), as: UTF8.self).lowercased()
            guard attribute.isQuoted, attribute.name.elementsEqual("VALUE".utf8),
                value.hasPrefix("http://") || value.hasPrefix("https://"),
                let replacement = rewriter.rewritten(attribute.value, &budget)
            else { return nil }
            return Edit(range: attribute.value.indices, replacement: replacement)
        }
    }
}
