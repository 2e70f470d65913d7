/** Lock beside a state file: two processes with the same plan would each sign orders for it. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { CommandError } from './failure.ts'

/** Takes over the lock of a process that was killed. Returns the function that releases it. */
export function lockState(file: string): () => void {
  const lock = `${file}.lock`
  mkdirSync(dirname(lock), { recursive: true, mode: 0o700 })
  if (!acquired(lock)) {
    const owner = Number(readFileSync(lock, 'utf8'))
    if (isRunning(owner)) throw alreadyRuns(file, owner)
    rmSync(lock, { force: true })
    if (!acquired(lock)) throw alreadyRuns(file, Number(readFileSync(lock, 'utf8')))
  }
  return () => rmSync(lock, { force: true })
}

function acquired(lock: string): boolean {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** A lock of this process id is left from an earlier process, for example in a container. */
function isRunning(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it runs as another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

const alreadyRuns = (file: string, pid: number): CommandError =>
  new CommandError(
    `process ${pid} already runs the plan of ${file}: end it first, or name another file by --state`,
  )
