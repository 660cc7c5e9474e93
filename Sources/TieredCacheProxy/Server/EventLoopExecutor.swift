import NIOCore

/// Runs tasks on an event loop, so that a task of a connection changes no thread to read from the
/// client or to write to it.
///
/// A job that is enqueued on the loop's own thread wakes nothing. Code of such a task must not
/// block: it would delay all connections of the loop. The loop must outlive the tasks.
final class EventLoopExecutor: TaskExecutor {
    let eventLoop: any EventLoop

    /// Creates an executor for an event loop.
    init(_ eventLoop: any EventLoop) {
        self.eventLoop = eventLoop
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // The task keeps the executor until its last job has run.
        let executor = asUnownedTaskExecutor()
        eventLoop.execute { job.runSynchronously(on: executor) }
    }
}
