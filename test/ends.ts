/**
 * Loaded before every test file (`.mocharc.json`): a test process that something keeps running after its last test (an open connection, a
 * timer, a child process; often left by a hook that failed) ends with an error that names what it is, instead of never.
 */
const GRACE_MS = 20_000

/** The timer itself keeps nothing running: it is reached only if something else does. */
export const mochaGlobalTeardown = (): void => {
  setTimeout(() => {
    const open = process.getActiveResourcesInfo().filter((name) => name !== 'Immediate')
    console.error(`open ${GRACE_MS / 1000} s after the last test: ${open.join(', ')}`)
    // After mocha's own handler, which sets the exit code to the number of failed tests.
    process.on('exit', () => {
      process.exitCode = 1
    })
    process.exit()
  }, GRACE_MS).unref()
}
