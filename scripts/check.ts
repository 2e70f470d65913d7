/**
 * `npm run check`: types, style, import rules and generated code; a failed step stops no other. `-- --fast` checks
 * types, and the style of changed files, without building contracts.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { argumentsOf, type CommandLine, type Flags, toggle } from '../service/command-line.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** A program of node_modules/.bin or an npm script, with its arguments. */
type Step = readonly [program: string, ...args: string[]]

const FULL: readonly Step[] = [
  ['tsc'],
  ['tsc', '-p', 'web'],
  ['biome', 'ci', '--colors=off', '--error-on-warnings'],
  ['npm', 'run', '-s', 'check:solidity'],
  ['npm', 'run', '-s', 'check:arrows'],
  ['npm', 'run', '-s', 'check:generated'],
]

const COMMAND_LINE = {
  command: 'npm run check --',
  flags: { fast: toggle('only types, and the style of files that differ from the last commit') },
} satisfies CommandLine<Flags>

const git = (...args: string[]): string[] =>
  execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).split('\n').filter(Boolean)

/** The compiler keeps what it knows of unchanged files in `cache/`. */
function fastSteps(): Step[] {
  const changed = [
    ...git('diff', '--name-only', '--diff-filter=d', 'HEAD'),
    ...git('ls-files', '--others', '--exclude-standard'),
  ]
  const isOfPage = changed.some((file) => /^(web|client|domain)\//.test(file))
  return [
    ['tsc', '--incremental', '--tsBuildInfoFile', 'cache/types.json'],
    ...(isOfPage
      ? [['tsc', '-p', 'web', '--incremental', '--tsBuildInfoFile', 'cache/page-types.json'] as const]
      : []),
    ...(changed.length > 0
      ? [
          [
            'biome',
            'check',
            '--colors=off',
            '--error-on-warnings',
            '--no-errors-on-unmatched',
            ...changed,
          ] as const,
        ]
      : []),
  ]
}

function passes([program, ...args]: Step): boolean {
  const started = Date.now()
  const path = program === 'npm' ? program : join(ROOT, 'node_modules/.bin', program)
  const { status } = spawnSync(path, args, { cwd: ROOT, stdio: 'inherit' })
  const words = [program, ...args.slice(0, 3)].join(' ')
  console.log(`${status === 0 ? 'ok' : 'FAILED'}  ${words}  ${((Date.now() - started) / 1000).toFixed(1)} s`)
  return status === 0
}

const { fast } = argumentsOf(COMMAND_LINE)
const failed = (fast ? fastSteps() : FULL).filter((step) => !passes(step))
process.exitCode = failed.length === 0 ? 0 : 1
