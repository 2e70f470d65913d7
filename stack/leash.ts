/** Loaded into every child: when the stack is gone, even by kill -9, the child ends itself in order. */

// The channel to the stack must not keep a process alive that is done.
process.channel?.unref()
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
