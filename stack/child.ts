/** Starts a program that ends with this process, even if this process is killed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, readFileSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { LOG_FILE_BYTES, rotateLog } from '../service/log-rotation.ts'
import { openOutput } from './data-dir.ts'
import { StackError } from './options.ts'

export interface ChildOptions {
  readonly command: string
  readonly args: readonly string[]
  /** The program's output; truncated at each start, and rotated (`service/log-rotation.ts`). */
  readonly logFile: string
  /** Size beyond which it is rotated. */
  readonly logFileBytes?: number
  /** Sent every second once the program is to end; the default is SIGINT. */
  readonly stopSignal?: 'INT' | 'TERM'
  /** Polled until it returns true. A rejection counts as false, but a StackError ends the start. */
  readonly ready: () => Promise<boolean>
  /** A folder to delete once the program has ended, even if this process was killed. */
  readonly removeAfter?: string
}

export interface Child {
  /** The process group, for signals. */
  readonly group: number
  /** Resolves when the program has ended for any reason. */
  readonly exited: Promise<void>
  stop(): Promise<void>
}

const START_LIMIT_MS = 30_000
const STOP_LIMIT_S = 30
const LOG_CHECK_MS = 1_000

/**
 * Stops the program and removes its folder when the pipe from this process closes. It sends the stop signal every
 * second, because the handler may not be installed yet; SIGKILL after 30 s.
 */
const GUARD = `
exec 3<&0 </dev/null
"$@" 3<&- &
child=$!
{
  read -r _ <&3
  left=${STOP_LIMIT_S}
  while [ "$left" -gt 0 ]; do kill -"$STOP_SIGNAL" "$child"; sleep 1; left=$((left - 1)); done
  kill -KILL "$child"
} >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait "$child"
code=$?
kill "$watcher" 2>/dev/null
[ -z "$REMOVE_AFTER" ] || rm -rf "$REMOVE_AFTER"
exit "$code"
`

/** Starts the program and waits until it is ready. The program does not keep this process running. */
export async function startChild(options: ChildOptions): Promise<Child> {
  const guard = spawnGuard(options)
  boundLog(guard, options)
  const exited = once(guard, 'exit').then(() => {})
  const stop = async (): Promise<void> => {
    guard.ref()
    guard.stdin?.end()
    await exited
  }

  const isReady = (): Promise<boolean> =>
    options.ready().catch(async (error: unknown) => {
      if (!(error instanceof StackError)) return false
      await stop()
      throw error
    })
  const deadline = Date.now() + START_LIMIT_MS
  while (!(await isReady())) {
    if (guard.exitCode !== null || Date.now() > deadline) {
      await stop()
      throw new Error(
        `${options.command} did not become ready; its last output:\n${readFileSync(options.logFile, 'utf8').slice(-2000)}`,
      )
    }
    await sleep(20)
  }
  return { group: guard.pid ?? 0, exited, stop }
}

/** The file may be deleted with its folder before the program has ended. */
function boundLog(guard: ChildProcess, { logFile, logFileBytes = LOG_FILE_BYTES }: ChildOptions): void {
  let isRotating = false
  const timer = setInterval(() => {
    const size = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0
    if (size <= logFileBytes || isRotating) return
    isRotating = true
    rotateLog(logFile)
      .catch(() => {})
      .finally(() => {
        isRotating = false
      })
  }, LOG_CHECK_MS).unref()
  guard.once('exit', () => clearInterval(timer))
}

function spawnGuard({
  command,
  args,
  logFile,
  stopSignal = 'INT',
  removeAfter = '',
}: ChildOptions): ChildProcess {
  closeSync(openOutput(logFile, 'w'))
  const output = openOutput(logFile, 'a')
  // A session of its own: Ctrl-C reaches only this process, which stops the programs in order.
  const guard = spawn('/bin/sh', ['-c', GUARD, 'guard', command, ...args], {
    detached: true,
    stdio: ['pipe', output, output],
    env: { ...process.env, STOP_SIGNAL: stopSignal, REMOVE_AFTER: removeAfter },
  })
  closeSync(output)
  guard.stdin?.on('error', () => {})
  guard.unref()
  return guard
}
