/** Programs that the stack starts and that never outlive it, however it ends. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

export interface ChildOptions {
  readonly command: string
  readonly args: readonly string[]
  /** What the program prints; written anew at each start. */
  readonly logFile: string
  /** Asked again and again until it answers yes; a rejection means not yet. */
  readonly ready: () => Promise<boolean>
  /** A folder to delete once the program has ended, also when this process was killed. */
  readonly removeAfter?: string
}

export interface Child {
  /** Its process group, for signals to all of it. */
  readonly group: number
  /** Resolves when the program is gone, wanted or not. */
  readonly exited: Promise<void>
  stop(): Promise<void>
}

const START_LIMIT_MS = 30_000
const STOP_LIMIT_S = 30

/**
 * Runs the program under a shell that holds the other end of our pipe. The pipe closes when we stop the program,
 * and also when we crash or are killed: then the shell interrupts the program (again and again, for it may not
 * listen yet), kills it if it will not end, and tidies up.
 */
const GUARD = `
exec 3<&0 </dev/null
"$@" 3<&- &
child=$!
{
  read -r _ <&3
  left=${STOP_LIMIT_S}
  while [ "$left" -gt 0 ]; do kill -INT "$child"; sleep 1; left=$((left - 1)); done
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

/** Starts the program and waits until it is ready. It does not keep this process alive. */
export async function startChild(options: ChildOptions): Promise<Child> {
  const guard = spawnGuard(options)
  const exited = once(guard, 'exit').then(() => {})
  const stop = async (): Promise<void> => {
    guard.ref()
    guard.stdin?.end()
    await exited
  }

  const deadline = Date.now() + START_LIMIT_MS
  while (!(await options.ready().catch(() => false))) {
    if (guard.exitCode !== null || Date.now() > deadline) {
      await stop()
      throw new Error(
        `${options.command} did not start:\n${readFileSync(options.logFile, 'utf8').slice(-2000)}`,
      )
    }
    await sleep(20)
  }
  return { group: guard.pid ?? 0, exited, stop }
}

function spawnGuard({ command, args, logFile, removeAfter = '' }: ChildOptions): ChildProcess {
  const log = openSync(logFile, 'w')
  // A session of its own: Ctrl-C reaches us only, and we stop the programs in order.
  const guard = spawn('/bin/sh', ['-c', GUARD, 'guard', command, ...args], {
    detached: true,
    stdio: ['pipe', log, log],
    env: { ...process.env, REMOVE_AFTER: removeAfter },
  })
  closeSync(log)
  guard.stdin?.on('error', () => {})
  guard.unref()
  return guard
}
