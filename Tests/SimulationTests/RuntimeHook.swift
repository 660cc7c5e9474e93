#if os(Linux)
import Glibc

/// Takes over the jobs that the runtime's pool would get, where a simulation's thread enqueues
/// them.
///
/// Other threads' jobs go where they always went, so that a simulation and the test that runs it
/// live in one process.
enum RuntimeHook {
    private typealias Original = @convention(c) (UnsafeRawPointer) -> Void
    // The runtime calls hooks with Swift's convention; for one or two pointers it is C's.
    private typealias Hook = @convention(c) (UnsafeRawPointer, UnsafeRawPointer) -> Void
    private typealias TimerHook =
        @convention(c) (UInt64, UnsafeRawPointer, UnsafeRawPointer) -> Void
    private typealias TimerOriginal = @convention(c) (UInt64, UnsafeRawPointer) -> Void

    private static let enqueue: Hook = { job, original in
        guard let thread = SimulationThread.current else {
            unsafeBitCast(original, to: Original.self)(job)
            return
        }
        thread.scheduler.enqueue(
            .job(unsafeBitCast(job, to: UnownedJob.self)),
            in: .cooperative
        )
    }

    private static let enqueueLater: TimerHook = { delay, job, original in
        SimulationThread.current?.scheduler.fail("a task sleeps by the machine's clock")
        unsafeBitCast(original, to: TimerOriginal.self)(delay, job)
    }

    private static let isInstalled: Bool = {
        install(
            unsafeBitCast(enqueue, to: UnsafeRawPointer.self),
            as: "swift_task_enqueueGlobal_hook"
        )
            && install(
                unsafeBitCast(enqueueLater, to: UnsafeRawPointer.self),
                as: "swift_task_enqueueGlobalWithDelay_hook"
            )
    }()

    /// - Returns: whether this runtime has the hooks.
    static func install() -> Bool { isInstalled }

    private static func install(_ hook: UnsafeRawPointer, as name: String) -> Bool {
        guard let program = dlopen(nil, RTLD_NOW), let place = dlsym(program, name) else {
            return false
        }
        place.assumingMemoryBound(to: UnsafeRawPointer?.self).pointee = hook
        return true
    }

    /// Runs a job of the runtime's pool on this thread.
    static func run(_ job: UnownedJob) {
        // The executor without identity is the pool; the library gives it no name.
        job.runSynchronously(
            on: unsafeBitCast((UInt(0), UInt(0)), to: UnownedSerialExecutor.self)
        )
    }
}
#endif
