import CLinuxCalls

// On the main thread: those of tasks block signals.
tc_remember_inherited()
await Program.main()
