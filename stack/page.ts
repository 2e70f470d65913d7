/** Builds the page of `web/` when its sources differ from those of the last build. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { StackError } from './options.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const DIST = join(root, 'web/dist')
const STAMP = 'sources.sha256'
const SOURCES = ['web/**/*.{ts,tsx,css,html,json,svg}', '{client,domain}/**/*.ts', 'package-lock.json']

function digestOfSources(): string {
  const paths = globSync(SOURCES, { cwd: root, exclude: ['web/dist*/**'] }).sort()
  const hash = createHash('sha256')
  for (const path of paths)
    hash
      .update(path)
      .update('\0')
      .update(readFileSync(join(root, path)))
      .update('\0')
  return hash.digest('hex')
}

/** Returns the folder of the built page. Throws a StackError if the build fails. */
export async function pageDir(report: (line: string) => void): Promise<string> {
  const digest = digestOfSources()
  const stamp = join(DIST, STAMP)
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return DIST
  const began = Date.now()
  report('building the page (the first time, or its sources have changed)')
  const built = `${DIST}-${process.pid}`
  await build(built)
  writeFileSync(join(built, STAMP), digest)
  rmSync(DIST, { recursive: true, force: true })
  renameSync(built, DIST)
  report(`the page is built after ${((Date.now() - began) / 1000).toFixed(1)} s`)
  return DIST
}

async function build(outDir: string): Promise<void> {
  const vite = join(root, 'node_modules/vite/bin/vite.js')
  const args = [vite, 'build', '--config', join(root, 'web/vite.config.ts'), '--logLevel', 'warn']
  const env = { ...process.env, PAGE_OUT: outDir, NODE_ENV: 'production' }
  try {
    await promisify(execFile)(process.execPath, args, { cwd: root, env })
  } catch (error) {
    rmSync(outDir, { recursive: true, force: true })
    const { stderr, message } = error as Error & { readonly stderr?: string }
    throw new StackError(`the page cannot be built: ${stderr || message}`)
  }
}
