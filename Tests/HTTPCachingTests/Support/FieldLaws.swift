import HTTPTypes

@testable import HTTPCaching

/// What holds for any text that a parser of fields is given.
struct FieldLaws: Sendable {
    let name: String
    let holds: @Sendable (String) -> Bool

    static let all: [FieldLaws] = [
        FieldLaws(name: "a tag is read as it is written") { text in
            EntityTag(text).map { EntityTag($0.description) == $0 } ?? true
        },
        FieldLaws(name: "a tag is in the list that it is") { text in
            EntityTag(text).map { EntityTagList(text).weaklyMatches($0) } ?? true
        },
        FieldLaws(name: "a range is read as it is written") { text in
            RangeRequest(text).map { RangeRequest($0.fieldValue) == $0 } ?? true
        },
        FieldLaws(name: "a range lies within the body") { text in
            guard let asked = RangeRequest(text) else { return true }
            return [0, 1, 1000, Int64.max].allSatisfy { length in
                guard case .partial(let range) = asked.resolution(completeLength: length) else {
                    return true
                }
                return range.lowerBound >= 0 && !range.isEmpty && range.upperBound <= length
            }
        },
        FieldLaws(name: "a part is read as it is written, and lies within its whole") { text in
            guard let part = try? ContentRange(text) else { return true }
            return (try? ContentRange(part.fieldValue)) == part
                && part.range?.upperBound ?? 0 <= part.completeLength ?? .max
        },
        FieldLaws(name: "a date is read as it is written") { text in
            guard let date = HTTPDate.parse(text, now: received) else { return true }
            // Years beyond what nanoseconds can count are the last second that they can.
            return HTTPDate.parse(HTTPDate.format(date), now: received)?.seconds == date.seconds
        },
        FieldLaws(name: "ages and delays are not negative") { text in
            let ages = [CurrentAge.parse(text), DeltaSeconds.parse(text).map { .seconds($0) }]
            return ages.allSatisfy { $0 ?? .zero >= .zero }
        },
        FieldLaws(name: "an unknown response directive changes nothing") { text in
            let control = ResponseCacheControl(text)
            let numbers = [control.maxAge, control.sharedMaxAge, control.staleIfError]
            return ResponseCacheControl("x-other=\"no-store\", \(text)") == control
                && numbers.allSatisfy { $0 ?? 0 >= 0 }
        },
        FieldLaws(name: "an unknown request directive changes nothing") { text in
            RequestCacheControl("x-other=no-cache , \(text)") == RequestCacheControl(text)
        },
        FieldLaws(name: "an unknown targeted directive changes nothing") { text in
            guard let control = ResponseCacheControl(targeted: text) else { return true }
            return ResponseCacheControl(targeted: "x-other=no-store, \(text)") == control
        },
        FieldLaws(name: "a dictionary begins with what was put before it") { text in
            StructuredDictionary(text) == nil || text.allSatisfy { $0 == " " || $0 == "\t" }
                || StructuredDictionary("x=1, \(text)") != nil
        },
        FieldLaws(name: "a list of names is its own list") { text in
            let names = FieldNameList.parse(text)
            return FieldNameList.parse(names.joined(separator: ", ")) == names
        },
        FieldLaws(name: "a request is selected by its own fields") { text in
            let request: HTTPFields = [.acceptLanguage: text, .accept: "x"]
            let selecting = VaryMatch.selectingFields(
                response: [.vary: "Accept-Language, Accept"],
                request: request
            )
            return VaryMatch.matches(selecting, request: request)
        },
        FieldLaws(name: "what varies is matched or never is") { text in
            let request: HTTPFields = [.accept: text]
            let selecting = VaryMatch.selectingFields(response: [.vary: text], request: request)
            return VaryMatch.matches(selecting, request: request)
                != selecting.contains { $0.name == "*" }
        },
        FieldLaws(name: "white space around a value means nothing") { text in
            ["accept-encoding", "x"].allSatisfy { name in
                SelectingFieldNormalisation.normalised(" \t\(text)\t ", of: name)
                    == SelectingFieldNormalisation.normalised(text, of: name)
            }
        },
        FieldLaws(name: "a reference resolves to a target that is one") { text in
            guard let base = try? TargetURI("http://host/a/b?c"),
                let target = try? base.resolving(reference: text)
            else { return true }
            return (try? TargetURI(target.string))?.string == target.string
        },
        FieldLaws(name: "facts of hostile fields are sane") { text in
            let fields: HTTPFields = [
                .cacheControl: text, .expires: text, .age: text, .date: text,
                .lastModified: text, .eTag: text, .vary: text,
            ]
            let facts = ResponseFacts.make(200, fields)
            let rules = CacheRules(isShared: true)
            return FreshnessLifetime(of: facts, rules: rules).duration >= .zero
                && CurrentAge.of(facts, at: received) >= .zero
                && FreshnessLifetime(of: facts, rules: CacheRules()).duration >= .zero
        },
        FieldLaws(name: "what is fresh does not come back from being stale") { text in
            let facts = ResponseFacts.make(200, [.cacheControl: text, .expires: text, .age: text])
            let request = RequestFacts(fields: [.cacheControl: text])
            var wasUsed = true
            for seconds: Int64 in [0, 10, 4000, 1_000_000] {
                let decision = ReuseDecision(
                    stored: facts,
                    request: request,
                    rules: CacheRules(),
                    now: received.advanced(by: .seconds(seconds))
                )
                let isUsed = decision.action == .use && !decision.isStale
                if isUsed, !wasUsed { return false }
                wasUsed = isUsed
            }
            return true
        },
        FieldLaws(name: "conditions end in an answer") { text in
            let request: HTTPFields = [
                .ifNoneMatch: text, .ifMatch: text, .ifModifiedSince: text, .ifRange: text,
                .range: text,
            ]
            let fields: HTTPFields = [.eTag: text, .lastModified: text]
            let stored = StoredResponse(
                status: 200,
                fields: fields,
                requestTime: received,
                responseTime: received,
                origin: StoredResponse.Origin(url: "http://host/")
            )
            let answer = ConditionalResponse.decide(
                method: .get,
                request: request,
                stored: stored,
                completeLength: 10
            )
            guard case .partial(let range) = answer else { return true }
            return range.lowerBound >= 0 && range.upperBound <= 10
        },
    ]
}
