/** The folder of the stack's state, and the lock that admits one stack at a time. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { StackError } from './options.ts'

export interface DataDir {
  readonly path: string
  readonly postgres: string
  readonly chainState: string
  readonly keys: string
  readonly deployment: string
  /** The seeded accounts with their API keys. The database has only hashes of the keys. */
  readonly accounts: string
  readonly stackFile: string
  /** The database URL of the running stack, for this machine's own tools. */
  readonly admin: string
  /** The price configuration of the keeper; `npm run feed` changes it for a time. */
  readonly prices: string
  readonly logs: string
  /** The keys of the identity provider. */
  readonly issuer: string
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
  prices: join(path, 'prices.json'),
  logs: join(path, 'logs'),
  issuer: join(path, 'issuer.json'),
  lock: join(path, 'stack.lock'),
})

/** Creates the folder and locks it for this process. Returns the function that releases the lock. */
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
          `a stack is running on ${dir.path} already (process ${owner}): stop that process, or choose another --data-dir`,
        )
      }
      rmSync(dir.lock, { force: true })
    }
  }
}

/** Deletes all state. The caller must have locked the folder. */
export function emptyDataDir(dir: DataDir): void {
  const { postgres, chainState, keys, deployment, accounts, stackFile, prices, logs, issuer } = dir
  for (const path of [postgres, chainState, keys, deployment, accounts, stackFile, prices, logs, issuer]) {
    rmSync(path, { recursive: true, force: true })
  }
}

/** Writes a JSON file that only its owner can read. */
export const writePrivate = (path: string, content: object): void =>
  writeFileSync(path, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 })

/** Null if the file does not exist. */
export const readJson = <Content>(path: string): Content | null =>
  existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Content) : null

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
function commandOf(pid: number): string | null {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return null
  }
}
