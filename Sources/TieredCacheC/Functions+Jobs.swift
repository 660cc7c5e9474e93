import CLinuxCalls
public import CTieredCache
import TieredCache

@c @implementation
public func tiered_job_start(
    _ cache: OpaquePointer!,
    _ request: UnsafePointer<tiered_request>!,
    _ job: UnsafeMutablePointer<OpaquePointer?>!
) -> CInt {
    status { () throws(Status) in
        let hosted = try hostedCache(cache)
        try give(to: job, of: jobs) { () throws(Status) in
            let request = try HostedRequest(request, priority: .normal, by: hosted.proxy).request
            let download = try waiting { () async throws(CacheError) in
                try await hosted.cache.downloads.start(request)
            }
            return try HostedJob(download, of: hosted)
        }
    }
}

@c @implementation
public func tiered_job_find(
    _ cache: OpaquePointer!,
    _ identifier: UnsafePointer<CChar>!,
    _ job: UnsafeMutablePointer<OpaquePointer?>!
) -> CInt {
    status { () throws(Status) in
        let hosted = try hostedCache(cache)
        try give(to: job, of: jobs) { () throws(Status) in
            guard let id = DownloadID(try text(identifier)) else { throw .invalid }
            let download = try waiting { () async throws(CacheError) in
                try await hosted.cache.downloads.find(id)
            }
            guard let download else { throw .notFound }
            return try HostedJob(download, of: hosted)
        }
    }
}

@c @implementation
public func tiered_job_list(
    _ cache: OpaquePointer!,
    _ list: UnsafeMutablePointer<OpaquePointer?>!,
    _ count: Int
) -> Int64 {
    number { () throws(Status) in
        let hosted = try hostedCache(cache)
        guard count >= 0, list != nil || count == 0 else { throw .invalid }
        let all = try waiting { () async throws(CacheError) in
            try await hosted.cache.downloads.all()
        }
        for (index, download) in all.prefix(count).enumerated() {
            list?[index] = jobs?.insert(try HostedJob(download, of: hosted))
        }
        return Int64(all.count)
    }
}

@c @implementation
public func tiered_job_resume_all(_ cache: OpaquePointer!) -> Int64 {
    number { () throws(Status) in
        let hosted = try hostedCache(cache)
        let rules = hosted.proxy.rules
        return try waiting { () async throws(CacheError) in
            Int64(try await hosted.cache.downloads.resumeAll(by: rules).downloads.count)
        }
    }
}

@c @implementation
public func tiered_job_retain(_ job: OpaquePointer!) -> OpaquePointer! { jobs?.retain(job) }

@c @implementation
public func tiered_job_release(_ job: OpaquePointer!) { jobs?.release(job)?.close() }

// MARK: What is known

@c @implementation
public func tiered_job_identifier(
    _ job: OpaquePointer!,
    _ buffer: UnsafeMutablePointer<CChar>!,
    _ count: Int
) -> Int64 {
    number { () throws(Status) in
        try write(object(jobs, job).download.id.description, to: buffer, count: count)
    }
}

@c @implementation
public func tiered_job_url(
    _ job: OpaquePointer!,
    _ buffer: UnsafeMutablePointer<CChar>!,
    _ count: Int
) -> Int64 {
    number { () throws(Status) in
        try write(object(jobs, job).download.status.url, to: buffer, count: count)
    }
}

@c @implementation
public func tiered_job_status(
    _ job: OpaquePointer!,
    _ info: UnsafeMutablePointer<tiered_job_info>!
) -> CInt {
    status { () throws(Status) in
        try fill(info, with: tiered_job_info(try object(jobs, job).download.status))
    }
}

extension tiered_job_info {
    fileprivate init(_ status: DownloadStatus) {
        self.init()
        let (number, problem) = status.state.numbered
        state = Int32(number.rawValue)
        if let problem {
            let failure = Status(problem.error)
            self.status = failure.number
            http_status = Int32(clamping: problem.status ?? 0)
        }
        attempts = Int32(clamping: status.attempts)
        bytes = status.bytes
        total = status.total ?? Int64(TIERED_E_UNKNOWN.rawValue)
        bytes_from_origin = status.bytesFromOrigin
        bytes_per_second =
            status.bytesPerSecond.flatMap { Int64(exactly: $0.rounded()) }
            ?? Int64(TIERED_E_UNKNOWN.rawValue)
        lacks_credentials = status.lacksCredentials ? 1 : 0
    }
}

extension DownloadState {
    /// As the header has it, and why it failed.
    var numbered: (tiered_job_state, DownloadProblem?) {
        switch self {
        case .queued: (TIERED_JOB_QUEUED, nil)
        case .running: (TIERED_JOB_RUNNING, nil)
        case .waitingForNetwork: (TIERED_JOB_WAITING_FOR_NETWORK, nil)
        case .paused: (TIERED_JOB_PAUSED, nil)
        case .cancelled: (TIERED_JOB_CANCELLED, nil)
        case .failed(let problem): (TIERED_JOB_FAILED, problem)
        case .finished: (TIERED_JOB_FINISHED, nil)
        }
    }
}

@c @implementation
public func tiered_job_error(
    _ job: OpaquePointer!,
    _ buffer: UnsafeMutablePointer<CChar>!,
    _ count: Int
) -> CInt {
    status { () throws(Status) in
        let problem = try object(jobs, job).download.status.state.numbered.1
        try write(problem?.message ?? "", to: buffer, count: count)
        if let problem { throw Status(problem.error) }
    }
}

// MARK: Commands

@c @implementation
public func tiered_job_pause(_ job: OpaquePointer!) -> CInt {
    command(job) { await $0.pause() }
}

@c @implementation
public func tiered_job_resume(_ job: OpaquePointer!) -> CInt {
    status { () throws(Status) in
        let known = try object(jobs, job)
        let (download, proxy) = (known.download, known.hosted.proxy)
        try proxy.checkUse(of: download.request.target)
        download.apply(proxy.rules)
        try waiting { () async throws(CacheError) in await download.resume() }
    }
}

@c @implementation
public func tiered_job_cancel(_ job: OpaquePointer!) -> CInt {
    command(job) { await $0.cancel() }
}

@c @implementation
public func tiered_job_remove(_ job: OpaquePointer!) -> CInt {
    command(job) { await $0.remove() }
}

private func command(
    _ job: OpaquePointer?,
    _ body: @escaping @Sendable (DownloadHandle) async -> Void
) -> CInt {
    status { () throws(Status) in
        let download = try object(jobs, job).download
        try waiting { () async throws(CacheError) in await body(download) }
    }
}
