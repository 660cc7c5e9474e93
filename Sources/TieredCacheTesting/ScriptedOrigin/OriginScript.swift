/// The behaviours of a ``ScriptedOrigin`` for the requests to one path, in order of arrival.
///
/// `OriginScript.first(2, .status(503)).then(.faithful)` fails twice and recovers.
public struct OriginScript: Sendable {
    private struct Step {
        let count: Int
        let behaviour: OriginBehaviour
    }

    private var steps: [Step] = []
    private var last: OriginBehaviour

    /// The same behaviour for every request.
    public init(_ behaviour: OriginBehaviour = .faithful) {
        last = behaviour
    }

    /// The first `count` requests meet `behaviour`, later ones a faithful origin.
    public static func first(_ count: Int, _ behaviour: OriginBehaviour) -> OriginScript {
        OriginScript().then(count, behaviour)
    }

    /// The next `count` requests meet `behaviour`.
    public func then(_ count: Int, _ behaviour: OriginBehaviour) -> OriginScript {
        precondition(count >= 0)
        var copy = self
        copy.steps.append(Step(count: count, behaviour: behaviour))
        return copy
    }

    /// All further requests meet `behaviour`.
    public func then(_ behaviour: OriginBehaviour) -> OriginScript {
        var copy = self
        copy.last = behaviour
        return copy
    }

    /// The behaviour for the request with this index, from 0.
    public func behaviour(forRequest index: Int) -> OriginBehaviour {
        var remaining = index
        for step in steps {
            guard remaining >= step.count else { return step.behaviour }
            remaining -= step.count
        }
        return last
    }
}
