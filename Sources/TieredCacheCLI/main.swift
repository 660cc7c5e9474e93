import CLinuxCalls
import TieredCacheAgent

// On the main thread: those of tasks block signals.
tc_remember_inherited()
if DetachedProgram.isOne(with: CommandLine.arguments) { tc_leave_parent() }
await Program.main()
