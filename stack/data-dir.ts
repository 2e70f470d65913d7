/** The folder that holds everything the stack keeps, and the lock that lets one stack use it at a time. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { StackError } from './options.ts'

export interface DataDir {
  readonly path: string
  readonly postgres: string
  readonly chainState: string
  readonly keys: string
  readonly deployment: string
  /** The seeded accounts with their API keys, which the database does not know in the clear. */
  readonly accounts: string
  readonly stackFile: string
  /** How this machine's own tools reach the database of the stack that runs. */
  readonly admin: string
  readonly logs: string
  readonly lock: string
}

export const dataDirAt = (path: string): DataDir => ({
  path,
  postgres: join(path, 'postgres'),
  chainState: join(path, 'chain.json'),
  keys: join(path, 'keys.json'),
  deployment: join(path, 'deployment.json'),
  accounts: join(path, 'accounts.json'),
  stackFile: join(path, 'stack.json'),
  admin: join(path, 'admin.json'),
  logs: join(path, 'logs'),
  lock: join(path, 'stack.lock'),
})

/** Claims the folder for this process, creating it. The caller gives it back by what this returns. */
export function lockDataDir(dir: DataDir): () => void {
  mkdirSync(dir.path, { recursive: true })
  for (;;) {
    try {
      writeFileSync(dir.lock, String(process.pid), { flag: 'wx' })
      return () => rmSync(dir.lock, { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      const owner = Number(readFileSync(dir.lock, 'utf8'))
      if (isRunning(owner)) {
        throw new StackError(
          `a stack is running on ${dir.path} already (process ${owner}): stop it, or use another --data-dir`,
        )
      }
      rmSync(dir.lock, { force: true })
    }
  }
}

/** Deletes all state. Only for a folder that this process has locked. */
export function emptyDataDir(dir: DataDir): void {
  const { postgres, chainState, keys, deployment, accounts, stackFile, logs } = dir
  for (const path of [postgres, chainState, keys, deployment, accounts, stackFile, logs]) {
    rmSync(path, { recursive: true, force: true })
  }
}

/** Writes a file whose content is for its owner only. */
export const writePrivate = (path: string, content: object): void =>
  writeFileSync(path, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 })

/** Null where there is no such file. */
export const readJson = <Content>(path: string): Content | null =>
  existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Content) : null

/** Whether a process with this id exists that is not known to be a stranger: ids are used again. */
export function isRunning(pid: number, program = 'node'): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' && commandOf(pid)?.includes(program) === true
  }
  return commandOf(pid)?.includes(program) ?? true
}

/** Null where the system does not tell. */
function commandOf(pid: number): string | null {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return null
  }
}
