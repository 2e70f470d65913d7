/** Runs the programs of `docs/first-order.md` as they are written there. */
import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Context } from 'mocha'
import type { StackFile } from '../../../stack/stack-file.ts'

const GUIDE = 'docs/first-order.md'

/** A folder of the repository, so that a program finds its packages. */
const FOLDER = '.clearbatch'

const PROGRAMS = {
  sh: { file: 'first-order.sh', command: 'sh' },
  python: { file: 'first_order.py', command: 'python3' },
} as const
type Language = keyof typeof PROGRAMS

/** The only block of the guide in this language. */
function programIn(language: Language): string {
  const blocks = readFileSync(GUIDE, 'utf8').match(/^```\w+\n[\s\S]*?^```$/gm) ?? []
  const own = blocks.filter((block) => block.startsWith(`\`\`\`${language}\n`))
  if (own.length !== 1) throw new Error(`${GUIDE} has ${own.length} blocks of ${language}; expected 1`)
  return (own[0] as string).replace(/^.*\n/, '').replace(/```$/, '')
}

/** The lines that the program prints. `stack`: the `stack.json` of the running stack. */
export async function runGuide(language: Language, stack: StackFile): Promise<string[]> {
  const { file, command } = PROGRAMS[language]
  mkdirSync(FOLDER, { recursive: true })
  const folder = mkdtempSync(join(FOLDER, 'guide-'))
  try {
    const path = join(folder, file)
    const stackFile = join(folder, 'stack.json')
    writeFileSync(path, programIn(language))
    writeFileSync(stackFile, JSON.stringify(stack))
    const { stdout } = await promisify(execFile)(command, [path], {
      env: { ...process.env, STACK: stackFile },
    })
    return stdout.trim().split('\n')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Whether Python and the two packages that the guide names are installed. */
export function hasPythonPackages(): boolean {
  try {
    execFileSync('python3', ['-c', 'import coincurve, Crypto.Hash.keccak'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Skips the running test; its title gets the reason. */
export function skipBecause(context: Context, reason: string): void {
  if (context.test) context.test.title += ` (skipped: ${reason})`
  context.skip()
}
