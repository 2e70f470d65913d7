#!/usr/bin/env node
/** `clearbatch`: everything that a person types. */
import { spawnSync } from 'node:child_process'
import module from 'node:module'

/** Node.js applies proxies of the environment only if it is started so. */
function withProxy(): number | null {
  const { HTTPS_PROXY, https_proxy, NODE_USE_ENV_PROXY } = process.env
  if (NODE_USE_ENV_PROXY !== undefined || !(HTTPS_PROXY || https_proxy)) return null
  if (!process.allowedNodeEnvironmentFlags.has('--use-env-proxy')) {
    process.stderr.write(
      `HTTPS_PROXY needs Node.js 22.21 or 24.5 or newer; found ${process.version}: connecting without it\n`,
    )
    return null
  }
  const [script = '', ...args] = process.argv.slice(1)
  const env = { ...process.env, NODE_USE_ENV_PROXY: '1' }
  const { status } = spawnSync(process.execPath, [...process.execArgv, script, ...args], {
    env,
    stdio: 'inherit',
  })
  return status ?? 1
}

const status = withProxy()
if (status !== null) process.exit(status)

/** On Ctrl-C the terminal signals this process, and npm forwards the signal again: signals within this time count as one. */
const ONE_SIGNAL_MS = 2_000

/** The first signal ends the command in order, a later one this process at once. */
const stopping = new AbortController()
let firstSignal: number | null = null
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    firstSignal ??= Date.now()
    if (Date.now() - firstSignal > ONE_SIGNAL_MS) process.exit(130)
    stopping.abort()
  })
// A reader that closes the pipe, such as `head`, ends the command.
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  if (code === 'EPIPE') process.exit(0)
  const reason = code === 'ENOSPC' ? 'the disk is full; free space and run the command again' : message
  process.stderr.write(`the output cannot be written: ${reason}\n`)
  process.exit(1)
})

// Errors outside of the command's own promise, for example in a timer: the command may have acted.
process.on('uncaughtException', ({ message, stack }) => {
  const text = process.argv.includes('--debug') ? stack : `${message} (--debug shows where)`
  process.stderr.write(`unexpected failure, whose outcome is unknown: ${text}\n`)
  process.exit(3)
})

// From Node.js 22 on, compiled code is kept for the next run.
module.enableCompileCache?.()
const { run } = await import('./run.ts')
process.exitCode = await run(process.argv.slice(2), {
  env: process.env,
  streams: { stdin: process.stdin, stdout: process.stdout, stderr: process.stderr },
  stopping: stopping.signal,
})
