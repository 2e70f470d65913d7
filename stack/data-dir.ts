/** The folder of the stack's state. A file is written whole or not at all; an error names the file that cannot be read. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
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
  /** The database URL and the engine of the running stack, for this machine's own tools. */
  readonly admin: string
  /** The price configuration of the keeper; `npm run cb -- feed` changes it for a time. */
  readonly prices: string
  readonly logs: string
  /** The keys of the identity provider. */
  readonly issuer: string
  /** Socket and keys of the engine. */
  readonly engine: string
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
  engine: join(path, 'engine'),
  lock: join(path, 'stack.lock'),
})

/** Creates a folder. A failure throws a StackError with the path and the reason. */
export function makeFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true })
  } catch (error) {
    throw unusable(path, error, 'expected a folder, or a path where one can be created')
  }
}

/** Deletes all state. The caller must have locked the folder. */
export function emptyDataDir(dir: DataDir): void {
  const { postgres, chainState, keys, deployment, accounts, stackFile, prices, logs, issuer, engine } = dir
  for (const path of [
    postgres,
    chainState,
    keys,
    deployment,
    accounts,
    stackFile,
    prices,
    logs,
    issuer,
    engine,
  ]) {
    rmSync(path, { recursive: true, force: true })
  }
}

/** Writes a JSON file that only its owner can read. After a crash the file is either old or new, never partial. */
export function writePrivate(path: string, content: object): void {
  writeWhole(path, `${JSON.stringify(content, null, 2)}\n`)
}

export function writeWhole(path: string, text: string): void {
  const written = `${path}.new`
  try {
    const file = openSync(written, 'w', 0o600)
    try {
      writeFileSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(written, path)
  } catch (error) {
    rmSync(written, { recursive: true, force: true })
    throw unusable(path, error, 'expected a file that this user can write')
  }
}

/** Null if the file does not exist. Throws a StackError for content that is truncated, or not what `isContent` accepts. */
export function readJson<Content>(
  path: string,
  isContent: (content: Content) => boolean = () => true,
): Content | null {
  const text = readText(path, RESTART)
  if (text === null) return null
  let content: Content
  try {
    content = JSON.parse(text) as Content
  } catch (error) {
    throw unusable(path, error, RESTART)
  }
  if (typeof content === 'object' && content !== null && isContent(content)) return content
  throw new StackError(`${path} lacks a part of its content: ${RESTART}`)
}

const RESTART = '--fresh starts again without the state of this folder'

/**
 * Null if the file does not exist. A link whose file is missing, for example on a disk that is not mounted, is refused: a new file in
 * its place would lose the state behind it.
 */
export function readText(path: string, remedy: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    if (!isMissing) throw unusable(path, error, remedy)
    if (!isLink(path)) return null
    throw new StackError(`${path} is a link to a missing file: restore the file; ${remedy}`)
  }
}

/** Throws if the path is a link whose file or folder is missing. `existsSync` follows links, so it reports such a path as absent. */
export function exists(path: string, remedy: string): boolean {
  if (existsSync(path)) return true
  if (!isLink(path)) return false
  throw new StackError(`${path} is a link to a missing file: restore the file; ${remedy}`)
}

const isLink = (path: string): boolean =>
  lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true

/** Opens the file of a process's output. */
export function openOutput(path: string, flags: 'a' | 'w'): number {
  try {
    return openSync(path, flags)
  } catch (error) {
    throw unusable(
      path,
      error,
      'remove it; it is the output of a process, which is a file that this user can write',
    )
  }
}

/** One line: the system's error for the path, and the remedy. */
export function unusable(path: string, error: unknown, remedy: string): StackError {
  const { code, message } = error as NodeJS.ErrnoException
  return new StackError(`${path} cannot be used (${(code ?? message).split('\n')[0]}): ${remedy}`)
}
