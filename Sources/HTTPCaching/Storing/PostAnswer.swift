public import HTTPTypes

/// When the answer to a POST may be stored as the answer to GET (RFC 9110 §9.3.3).
public enum PostAnswer {
    /// Whether a later GET of the target may be answered with the response.
    ///
    /// It must be a 200 that has explicit freshness, and name the target in `Content-Location`.
    ///
    /// - Parameters:
    ///   - method: the request's method; anything but POST answers no GET.
    ///   - target: what was posted to.
    ///   - response: the response.
    /// - Returns: whether it may be stored under the key of a GET.
    public static func answersGet(
        method: HTTPRequest.Method,
        target: TargetURI,
        response: StoredResponse
    ) -> Bool {
        guard method == .post, response.status == 200,
            let location = response.fields[.contentLocation],
            hasExplicitFreshness(response.facts)
        else { return false }
        do throws(TargetURIError) {
            return try target.resolving(reference: location).string == target.string
        } catch {
            // A reference that leads nowhere is not the target.
            return false
        }
    }

    private static func hasExplicitFreshness(_ facts: ResponseFacts) -> Bool {
        facts.cacheControl.maxAge != nil || facts.cacheControl.sharedMaxAge != nil
            || facts.expires != .absent
    }
}
