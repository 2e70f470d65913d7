/**
 * `npm run lock` after every change of dependencies: adds packages of other platforms to package-lock.json, which `npm
 * install` omits beside node_modules and `npm ci` requires.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { argumentsOf } from '../service/command-line.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const LOCK = 'package-lock.json'

interface Lock {
  /** By path, such as `node_modules/a/node_modules/b`; the project itself is at the empty path. */
  readonly packages: Record<string, { readonly optionalDependencies?: Readonly<Record<string, string>> }>
}

/** The path at which the package at `from` finds `name`, as Node.js resolves it; undefined if it is not locked. */
function locate(packages: Lock['packages'], from: string, name: string): string | undefined {
  for (let base = from; ; base = base.slice(0, Math.max(0, base.lastIndexOf('/node_modules/')))) {
    const key = `${base === '' ? '' : `${base}/`}node_modules/${name}`
    if (packages[key] !== undefined) return key
    if (base === '') return undefined
  }
}

/** Locked packages with an optional dependency that is not locked: the package's path, and the missing name. */
export const missingIn = ({ packages }: Lock): [path: string, name: string][] =>
  Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => locate(packages, path, name) === undefined)
      .map((name): [string, string] => [path, name]),
  )

function complete(): void {
  const lock: Lock = JSON.parse(readFileSync(join(ROOT, LOCK), 'utf8'))
  const missing = missingIn(lock)
  if (missing.length === 0) {
    console.log(`${LOCK} names the packages of all platforms`)
    return
  }
  for (const [path] of missing) if (path !== '') delete lock.packages[path]
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-lock-'))
  try {
    for (const name of ['package.json', '.npmrc']) copyFileSync(join(ROOT, name), join(folder, name))
    writeFileSync(join(folder, LOCK), JSON.stringify(lock))
    execFileSync('npm', ['install', '--package-lock-only', '--ignore-scripts'], {
      cwd: folder,
      stdio: 'inherit',
    })
    const left = missingIn(JSON.parse(readFileSync(join(folder, LOCK), 'utf8')))
    if (left.length > 0)
      throw new Error(`still missing in ${LOCK}: ${left.map(([, name]) => name).join(', ')}`)
    copyFileSync(join(folder, LOCK), join(ROOT, LOCK))
  } finally {
    rmSync(folder, { recursive: true })
  }
  console.log(`added to ${LOCK}: ${missing.map(([, name]) => name).join(', ')}`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  argumentsOf({ command: 'npm run lock --', flags: {} })
  complete()
}
