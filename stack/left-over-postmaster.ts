/** A server of an earlier stack that still runs on the cluster, or only the file that names it. The caller has locked the data directory. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readText } from './data-dir.ts'
import { commandOf, isRunning } from './lock.ts'
import { StackError } from './options.ts'

/** Time in which the server ends after each signal: a fast shutdown, then one without a checkpoint. */
const END_MS = 10_000
const SIGNALS = ['SIGINT', 'SIGQUIT'] as const

/** Ends the server of the cluster in `data`. A file that names another process, whose id is a reused one, is removed: the server would refuse it. */
export async function endLeftOver(data: string): Promise<void> {
  const file = join(data, 'postmaster.pid')
  const content = readText(
    file,
    'remove it; it names the process of a Postgres server, which is no longer known',
  )
  if (content === null) return
  const pid = Number.parseInt(content, 10)
  if (!(pid > 0) || !isServerOf(pid, data)) return rmSync(file, { force: true })
  for (const signal of SIGNALS) {
    process.kill(pid, signal)
    for (const deadline = Date.now() + END_MS; Date.now() < deadline; await sleep(50))
      if (!isServerOf(pid, data)) return rmSync(file, { force: true })
  }
  throw new StackError(
    `the Postgres server of an earlier start (process ${pid}) does not end: end it, then start again`,
  )
}

/** Where command lines are not readable, any running process may be the server. */
const isServerOf = (pid: number, data: string): boolean =>
  isRunning(pid, 'postgres') && (commandOf(pid)?.includes(data) ?? true)
