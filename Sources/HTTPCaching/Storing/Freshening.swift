package import HTTPTypes

/// Updates a stored response by a 304 or the response to HEAD (RFC 9111 §3.2, §4.3.4, §4.3.5).
package enum Freshening {
    /// Whether a 304 is about the stored response.
    ///
    /// A tag decides alone: a strong one must match strongly, a weak one weakly. Without a tag, a
    /// `Last-Modified` must equal the stored one. A 304 without any validator is taken to be about
    /// the one response whose validators were sent.
    ///
    /// - Parameters:
    ///   - answer: the fields of the 304.
    ///   - storedFields: the fields of the stored response.
    /// - Returns: false if it is about another representation, which must be fetched whole then.
    package static func identifies(_ answer: HTTPFields, storedFields: HTTPFields) -> Bool {
        if let text = answer[.eTag] {
            guard let storedText = storedFields[.eTag] else { return false }
            guard let tag = EntityTag(text), let stored = EntityTag(storedText) else {
                return text.utf8.elementsEqual(storedText.utf8)
            }
            return tag.isWeak ? tag.weaklyMatches(stored) : tag.stronglyMatches(stored)
        }
        guard let modified = answer[.lastModified], let stored = storedFields[.lastModified] else {
            return true
        }
        return modified.utf8.elementsEqual(stored.utf8)
    }

    /// Whether the response to a HEAD request is about the stored response: any tag, date or length
    /// in it must equal the stored one.
    ///
    /// If not, the stored response is stale (§4.3.5).
    package static func identifies(head answer: HTTPFields, storedFields: HTTPFields) -> Bool {
        guard identifies(answer, storedFields: storedFields),
            !answer.contains(.lastModified) || storedFields.contains(.lastModified)
        else { return false }
        guard let length = answer[.contentLength],
            let stored = storedFields[.contentLength]
        else { return true }
        return length == stored
    }

    /// The stored fields, replaced by those of the response with the same names.
    ///
    /// Fields that describe the stored bytes stay: `Content-Length`, `Content-Encoding`,
    /// `Content-Range`, `Content-Type`, `Content-MD5` and `Content-Digest` (a 304 has no content, a
    /// 206 only a part of it, and some origins send the defaults of an empty one). `Age` and `Date`
    /// are removed if the response has none, because they give the age of the original response.
    ///
    /// - Parameters:
    ///   - storedFields: the fields of the stored response.
    ///   - answer: the fields of the response as received.
    ///   - rules: the rules of the cache.
    /// - Returns: the updated fields to store.
    package static func updated(
        _ storedFields: HTTPFields,
        with answer: HTTPFields,
        rules: CacheRules
    ) -> HTTPFields {
        var updated = storedFields
        updated[.age] = nil
        updated[.date] = nil
        var replaced: Set<String> = []
        for field in StoredFields.of(answer, rules: rules) where !describesBytes(field.name) {
            // The first line of a name takes the place of all stored ones; further lines join it.
            if replaced.insert(field.name.canonicalName).inserted {
                updated[fields: field.name] = []
            }
            updated.append(field)
        }
        return updated
    }

    private static func describesBytes(_ name: HTTPField.Name) -> Bool {
        switch name {
        case .contentLength, .contentEncoding, .contentRange, .contentType: true
        default: StoredFields.isDigestOfContent(name)
        }
    }
}
