import HTTPCaching

/// Rewrites the URLs of an HLS playlist to URLs of the proxy; every other byte stays.
package enum HLSRewriter {
    /// The attributes that are URLs, by tag.
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
    /// The tag of a variable, which may contain the beginning of URLs that the player composes.
    private static let definition = "#EXT-X-DEFINE:"

    /// Rewrites a master or media playlist.
    ///
    /// - Parameters:
    ///   - bytes: the playlist.
    ///   - rewriter: rewrites the URLs.
    ///   - imported: the variables of the master playlist.
    ///   - budget: the budget; reduced by the cost.
    /// - Returns: the playlist for the player; nil if it exceeds its budget.
    static func rewrite(
        _ bytes: [UInt8],
        with rewriter: AddressRewriter,
        importing imported: HLSVariables = HLSVariables(),
        budget: inout PlaylistBudget
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
                defined.flatMap {
                    parameterEdits(in: bytes[line], value: $0, with: rewriter, budget: &budget)
                }
                ?? edits(of: bytes[line], with: rewriter, variables: variables, budget: &budget)
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

    /// The rewritten URL, its variables substituted; nil if it can stay as it is.
    private static func rewritten(
        _ address: ArraySlice<UInt8>,
        with rewriter: AddressRewriter,
        variables: HLSVariables,
        budget: inout PlaylistBudget
    ) -> [UInt8]? {
        let text = Array(TargetURI.reference(address).utf8)
        let escaped = text.count == address.count ? nil : text
        guard let whole = variables.substituted(text, budget: &budget) ?? escaped else {
            return rewriter.rewritten(address, budget: &budget)
        }
        if let result = rewriter.rewritten(whole, budget: &budget) { return result }
        budget.spend(output: whole.count)
        return whole
    }

    private static func edits(
        of line: ArraySlice<UInt8>,
        with rewriter: AddressRewriter,
        variables: HLSVariables,
        budget: inout PlaylistBudget
    ) -> [Edit] {
        guard line.first == UInt8(ascii: "#") else {
            return addressEdits(in: line, with: rewriter, variables: variables, budget: &budget)
        }
        guard line.starts(with: "#EXT-X-".utf8) else { return [] }
        if line.starts(with: definition.utf8) {
            return definitionEdits(in: line, with: rewriter, budget: &budget)
        }
        guard let known = addresses.first(where: { line.starts(with: $0.tag.utf8) }) else {
            return []
        }
        return HLSAttributes(line.dropFirst(known.tag.utf8.count)).compactMap { attribute in
            guard attribute.isQuoted,
                known.attributes.contains(where: { attribute.name.elementsEqual($0.utf8) }),
                let replacement = rewritten(
                    attribute.value,
                    with: rewriter,
                    variables: variables,
                    budget: &budget
                )
            else { return nil }
            return Edit(range: attribute.value.indices, replacement: replacement)
        }
    }

    private static func addressEdits(
        in line: ArraySlice<UInt8>,
        with rewriter: AddressRewriter,
        variables: HLSVariables,
        budget: inout PlaylistBudget
    ) -> [Edit] {
        let start = line.drop { $0 == 0x20 || $0 == 0x09 }
        let text = start.dropLast(start.reversed().prefix { $0 == 0x20 || $0 == 0x09 }.count)
        guard !text.isEmpty,
            let replacement = rewritten(text, with: rewriter, variables: variables, budget: &budget)
        else { return [] }
        return [Edit(range: text.indices, replacement: replacement)]
    }

    /// Replaces a `QUERYPARAM` definition by its value, if the playlist was redirected.
    ///
    /// The player does not know the final URL, which has the parameter. Returns nil for other
    /// definitions.
    private static func parameterEdits(
        in line: ArraySlice<UInt8>,
        value: [UInt8],
        with rewriter: AddressRewriter,
        budget: inout PlaylistBudget
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

    /// The edits of a definition.
    ///
    /// A value that is an absolute URL is rewritten, for playlists that import it before this proxy
    /// knows their master playlist.
    private static func definitionEdits(
        in line: ArraySlice<UInt8>,
        with rewriter: AddressRewriter,
        budget: inout PlaylistBudget
    ) -> [Edit] {
        HLSAttributes(line.dropFirst(definition.utf8.count)).compactMap { attribute in
            let value = String(decoding: attribute.value.prefix(8), as: UTF8.self).lowercased()
            guard attribute.isQuoted, attribute.name.elementsEqual("VALUE".utf8),
                value.hasPrefix("http://") || value.hasPrefix("https://"),
                let replacement = rewriter.rewritten(attribute.value, budget: &budget)
            else { return nil }
            return Edit(range: attribute.value.indices, replacement: replacement)
        }
    }
}
