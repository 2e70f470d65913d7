/** Preloaded into every child process: when the stack ends, even by kill -9, the child stops in order. */

// The channel to the stack must not keep a finished process running.
process.channel?.unref()
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
