import HTTPCaching

/// Rewrites the URLs of a DASH manifest to URLs of the proxy; every other byte stays.
package enum DASHRewriter {
    /// The attributes that are URLs, by element.
    private static let addresses: [(element: String, attributes: [String])] = [
        ("SegmentTemplate", ["media", "initialization", "index", "bitstreamSwitching"]),
        ("SegmentURL", ["media", "index"]),
        ("Initialization", ["sourceURL"]),
        ("RepresentationIndex", ["sourceURL"]),
        ("BitstreamSwitching", ["sourceURL"]),
        ("Period", ["href"]),
        ("AdaptationSet", ["href"]),
        ("EventStream", ["href"]),
    ]
    /// The elements with a URL as their text.
    private static let texts = ["BaseURL", "Location", "PatchLocation"]

    private struct Walk {
        var depth = 0
        /// Whether the next text is a URL.
        var awaitsAddress = false
        var isBase = false
        var isAtRoot = false
        var hasRootBase = false
        /// The position for an element with the base of all URLs.
        var insertion: Int?
        var edits: [(range: Range<Int>, replacement: [UInt8])] = []
        /// The rewriters for the current base URLs, each for elements from its depth on.
        var bases: [(depth: Int, rewriter: AddressRewriter)] = []
        var budget: PlaylistBudget

        init(_ budget: PlaylistBudget) { self.budget = budget }

        /// The rewriter at a depth; nil for that of the manifest itself.
        func base(at depth: Int) -> AddressRewriter? {
            bases.last { $0.depth <= depth }?.rewriter
        }
    }

    /// Rewrites a manifest.
    ///
    /// - Parameters:
    ///   - bytes: the manifest.
    ///   - rewriter: rewrites the URLs.
    ///   - budget: the budget; reduced by the cost.
    /// - Returns: the manifest for the player; nil if it exceeds its budget.
    static func rewrite(
        _ bytes: [UInt8],
        with rewriter: AddressRewriter,
        budget: inout PlaylistBudget
    ) -> [UInt8]? {
        var walk = Walk(budget)
        defer { budget = walk.budget }
        for piece in XMLScanner(bytes) {
            take(piece, of: bytes, rewriter: rewriter, walk: &walk)
            guard !walk.budget.isExceeded else { return nil }
        }
        if let folder = rewriter.redirectedFolder, !walk.hasRootBase, let place = walk.insertion {
            // Relative references are relative to the final URL, which the player does not know.
            let base = Array("<BaseURL>".utf8) + escaped(folder) + Array("</BaseURL>".utf8)
            walk.budget.spend(output: base.count)
            walk.edits.append((place..<place, base))
            walk.edits.sort { $0.range.lowerBound < $1.range.lowerBound }
        }
        var result: [UInt8] = []
        var copied = 0
        for edit in walk.edits {
            result += bytes[copied..<edit.range.lowerBound]
            result += edit.replacement
            copied = edit.range.upperBound
        }
        return result + bytes[copied...]
    }

    private static func take(
        _ piece: XMLScanner.Piece,
        of bytes: [UInt8],
        rewriter: AddressRewriter,
        walk: inout Walk
    ) {
        switch piece {
        case .start(let name, let attributes, let isEmpty, let place):
            let local = String(decoding: name.local, as: UTF8.self)
            walk.isAtRoot = walk.depth == 1
            if walk.isAtRoot, local != "ProgramInformation", walk.insertion == nil {
                walk.insertion = place
            }
            walk.awaitsAddress = texts.contains(local) && !isEmpty
            if walk.awaitsAddress, walk.isAtRoot, local == "BaseURL" { walk.hasRootBase = true }
            walk.isBase = local == "BaseURL"
            let below = walk.base(at: walk.depth) ?? rewriter
            rewriteAttributes(of: local, in: bytes, range: attributes, rewriter: below, walk: &walk)
            if !isEmpty { walk.depth += 1 }
        case .end:
            walk.depth -= 1
            walk.awaitsAddress = false
            while let last = walk.bases.last, last.depth > walk.depth { walk.bases.removeLast() }
        case .text(let range):
            guard walk.awaitsAddress else { return }
            let text = bytes[range].trimmed
            guard !text.isEmpty else { return }
            walk.awaitsAddress = false
            // A base is relative to the bases outside its parent element.
            let place = walk.base(at: walk.depth - 2) ?? rewriter
            replace(text, with: place, includesRelative: walk.isAtRoot, walk: &walk)
            if walk.isBase { takeBase(text, at: place, walk: &walk) }
        }
    }

    /// Records a base URL for the references in its parent element; of several the first counts.
    private static func takeBase(
        _ text: ArraySlice<UInt8>,
        at outer: AddressRewriter,
        walk: inout Walk
    ) {
        let depth = walk.depth - 1
        guard walk.bases.last.map({ $0.depth < depth }) ?? true, depth < maximumDepth,
            text.count <= maximumBase
        else { return }
        do throws(TargetURIError) {
            walk.budget.spend(work: outer.location.path.utf8.count)
            let base = try outer.location.resolving(reference: XMLValues.decoded(text))
            // Each level may lengthen the path of the previous one.
            guard base.path.utf8.count <= maximumBase else { return }
            walk.bases.append((depth, outer.at(base, budget: &walk.budget)))
        } catch {
            // It is no http URL: no reference below it leads through the proxy.
        }
    }

    /// The greatest depth of an element with a base URL.
    private static let maximumDepth = 64
    /// The longest base URL, in bytes.
    private static let maximumBase = 8192

    private static func rewriteAttributes(
        of element: String,
        in bytes: [UInt8],
        range: Range<Int>,
        rewriter: AddressRewriter,
        walk: inout Walk
    ) {
        guard let known = addresses.first(where: { $0.element == element }) else { return }
        for attribute in XMLAttributes(bytes[range])
        where known.attributes.contains(where: { attribute.name.local.elementsEqual($0.utf8) }) {
            replace(bytes[attribute.value], with: rewriter, includesRelative: false, walk: &walk)
        }
    }

    /// Rewrites a URL.
    ///
    /// Relative references below the root need no edit: they follow the base that was rewritten
    /// there.
    private static func replace(
        _ text: ArraySlice<UInt8>,
        with rewriter: AddressRewriter,
        includesRelative: Bool,
        walk: inout Walk
    ) {
        let isRelative = text.first != UInt8(ascii: "/") && !text.hasScheme
        guard includesRelative || !isRelative,
            let replacement = rewriter.rewritten(text, budget: &walk.budget)
        else { return }
        let whole = isRelative ? escaped(replacement) : replacement
        walk.budget.spend(output: whole.count - replacement.count)
        walk.edits.append((text.indices, whole))
    }

    private static func escaped(_ text: [UInt8]) -> [UInt8] {
        text.flatMap { byte -> [UInt8] in
            switch byte {
            case UInt8(ascii: "&"): Array("&amp;".utf8)
            case UInt8(ascii: "<"): Array("&lt;".utf8)
            default: [byte]
            }
        }
    }
}

extension ArraySlice<UInt8> {
    fileprivate var trimmed: ArraySlice<UInt8> {
        let start = drop { $0.isXMLSpace }
        return start.dropLast(start.reversed().prefix { $0.isXMLSpace }.count)
    }

    fileprivate var hasScheme: Bool {
        let name = prefix { $0.isASCIILetter || $0.isASCIIDigit || "+-.".utf8.contains($0) }
        return !name.isEmpty && name.endIndex < endIndex && self[name.endIndex] == UInt8(ascii: ":")
    }
}
