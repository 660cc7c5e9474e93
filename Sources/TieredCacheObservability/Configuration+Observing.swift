public import CoreMetrics
public import TieredCache
public import Tracing

extension MediaCache.Configuration {
    /// Makes a span, a measurement, or both of each request that the cache sends to an origin.
    ///
    /// Set it before the cache is opened. Nothing of it runs for a hit. A span is a child of the
    /// span in which the application asked; a request that shares the transfer of another one is a
    /// link of its span. The context of the span is injected into the fields of the request, so
    /// every origin receives it.
    ///
    /// The article "Observing and explaining" of TieredCache lists attributes and labels. URLs are
    /// without userinfo and query.
    ///
    /// - Parameters:
    ///   - tracer: makes the spans, such as `InstrumentationSystem.tracer`; nil for none.
    ///   - metrics: makes the timers, such as `MetricsSystem.factory`; nil for none.
    public mutating func observeOrigins(
        tracer: (any Tracer)? = nil,
        metrics: (any MetricsFactory)? = nil
    ) {
        observer =
            tracer == nil && metrics == nil
            ? nil
            : RequestObserver(
                tracer: tracer,
                durations: metrics.map { RequestDurations(factory: $0, time: timeSource) }
            )
    }
}
