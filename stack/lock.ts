/** The lock that admits one stack at a time to a data directory. It names its process by id and start, because ids are reused. */
import { execFileSync } from 'node:child_process'
import { linkSync, lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { type DataDir, makeFolder, unusable } from './data-dir.ts'
import { StackError } from './options.ts'

/** Creates the folder and locks it for this process. Returns the function that releases the lock. `flag`: of the command, which names the folder. */
export function lockDataDir(dir: DataDir, flag = '--data-dir'): () => void {
  makeFolder(dir.path)
  const own = identityOf(process.pid)
  for (;;) {
    if (create(dir.lock, own ?? String(process.pid))) return () => rmSync(dir.lock, { force: true })
    const owner = read(dir.lock)
    if (owner !== null && isHeld(owner)) {
      throw new StackError(
        `a stack is running on ${dir.path} already (process ${owner.split(' ')[0]}): stop that process, or choose another ${flag}`,
      )
    }
    if (owner !== null) removeStale(dir.lock, owner)
  }
}

/** The file exists with its content or not at all. False if another process has it. */
function create(path: string, content: string): boolean {
  const written = `${path}.${process.pid}`
  try {
    writeFileSync(written, content)
    linkSync(written, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw unusable(path, error, 'expected a folder that this user can write')
  } finally {
    rmSync(written, { force: true })
  }
}

/** Null if its owner has just removed it. */
function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    // A link to nothing can neither be read nor created, for as long as it exists.
    const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' && !isLink) return null
    throw unusable(path, error, 'remove it; it is the lock of a stack, which is a file')
  }
}

/** Moves the lock away before it is deleted, so that a lock which another process has created meanwhile is put back. */
function removeStale(path: string, owner: string): void {
  const moved = `${path}.stale.${process.pid}`
  try {
    renameSync(path, moved)
    if (readFileSync(moved, 'utf8').trim() !== owner) linkSync(moved, path)
  } catch (error) {
    if (!['ENOENT', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  } finally {
    rmSync(moved, { force: true })
  }
}

/** Whether the process that wrote the lock runs. A lock without the start of its process is one of an earlier version, or truncated. */
function isHeld(owner: string): boolean {
  const [pid = ''] = owner.split(' ')
  if (!/^[1-9]\d*$/.test(pid)) return false
  const present = identityOf(Number(pid))
  if (present === null) return owner === pid && isRunning(Number(pid))
  return owner === pid ? isRunning(Number(pid)) && isStack(Number(pid)) : present === owner
}

const isStack = (pid: number): boolean => /stack|mocha|chaos/.test(commandOf(pid) ?? 'stack')

/** Process id and start of a process; null if it does not run, or the system does not say when it started. */
export function identityOf(pid: number): string | null {
  const started = startOf(pid)
  return started === null ? null : `${pid} ${started}`
}

/** In ticks since the boot with that id, by Linux; elsewhere the date, by `ps`. */
function startOf(pid: number): string | null {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name of the program stands in parentheses and can contain spaces; the start is the 22nd field.
    return `${boot} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`
  } catch {
    return process.platform === 'linux' ? null : startByPs(pid)
  }
}

function startByPs(pid: number): string | null {
  try {
    const started = execFileSync('ps', ['-o', 'lstart=', '-p', `${pid}`], { encoding: 'utf8' }).trim()
    return started === '' ? null : started.replaceAll(/\s+/g, '-')
  } catch {
    return null
  }
}

/** Whether the process exists and may be `program`. The operating system reuses ids, so its command line is checked where readable. */
export function isRunning(pid: number, program = 'node'): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' && commandOf(pid)?.includes(program) === true
  }
  return commandOf(pid)?.includes(program) ?? true
}

/** Null if the system does not expose command lines. */
export function commandOf(pid: number): string | null {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return null
  }
}
