/**
 * Runs solc's model checker (bounded, without loops) on one property, with z3 and then cvc5 as solver. The functions under proof are the
 * contracts' own source with three changes:
 *
 * - Functions that use state are left out.
 * - `revert Error(...)` is `require(false)`: the checker ends a path only at a `require`.
 * - `unchecked` blocks are checked. The checker then has to prove that nothing in them overflows; if it does, both mean the same.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Property } from './properties.ts'

interface Message {
  readonly severity: string
  readonly message: string
  readonly formattedMessage: string
}

interface Callbacks {
  readonly import: (path: string) => { contents: string } | { error: string }
  readonly smtSolver: (query: string) => { contents: string }
}

interface Solc {
  compile(input: string, callbacks: Callbacks): string
}

const solc = createRequire(import.meta.url)('solc') as Solc

export interface Verdict {
  /** `refuted`: the solver has a counterexample. */
  readonly status: 'proved' | 'undecided' | 'refuted'
  /** Conditions that the checker derived: assertions, and one per operation that could overflow or divide by zero. */
  readonly conditions: number
  readonly decided: number
  readonly seconds: number
  readonly solvers: readonly string[]
  readonly problems: readonly string[]
}

export interface Limits {
  /** Seconds of one solver for one condition. */
  readonly query: number
  /** Seconds after which no further condition of the property is given to a solver. */
  readonly property: number
}

// ---------------------------------------------------------------------- solvers

const SOLVERS: readonly { readonly name: string; readonly flags: (seconds: number) => string[] }[] = [
  { name: 'z3', flags: (seconds) => ['-in', '-smt2', `-T:${seconds}`] },
  { name: 'cvc5', flags: (seconds) => ['--lang=smt2', `--tlimit=${seconds * 1000}`] },
]

/** From the line with the answer on; cvc5 first reports options that it does not have. */
const answerIn = (output: string): string | null => /^(?:sat|unsat)\b[\s\S]*/m.exec(output)?.[0] ?? null

interface Run {
  readonly used: Set<string>
  readonly until: number
  queries: number
}

function solve(query: string, run: Run, limit: number): string {
  run.queries++
  for (const { name, flags } of SOLVERS) {
    if (Date.now() >= run.until) break
    const { stdout, error } = spawnSync(name, flags(limit), { input: query, encoding: 'utf8' })
    if (error !== undefined) throw new Error(`solver ${name} does not start: ${error.message}`)
    const answer = answerIn(stdout)
    if (answer === null) continue
    run.used.add(name)
    return answer
  }
  return 'unknown\n'
}

// ---------------------------------------------------------------------- sources

const FUNCTION = /(?: {4}\/\/\/[^\n]*\n| {4}\/\*\*[\s\S]*?\*\/\n)* {4}function ([^{;]*)\{[\s\S]*?\n {4}\}\n/g

/** Without the functions that use state: no property calls them, and the checker would spend most of its time on them. */
const withPureFunctions = (source: string): string =>
  source.replaceAll(FUNCTION, (text, head: string) => (/\bpure\b/.test(head) ? text : ''))

function sourceOf(path: string): string {
  if (path.startsWith('@')) return readFileSync(join('node_modules', path), 'utf8')
  const source = readFileSync(path, 'utf8')
  if (!path.startsWith('contracts/')) return source
  return withPureFunctions(source)
    .replaceAll('unchecked {', '{')
    .replaceAll(/revert [\w.]+\([^;]*\);/g, 'require(false);')
}

// ---------------------------------------------------------------------- verdict

const SAFE = /check is safe!/
const REFUTED = /happens here|always (?:true|false)/
const UNDECIDED = /might happen|Error during interaction/

function verdictOf(messages: readonly Message[], run: Run, started: number): Verdict {
  const errors = messages.filter(({ severity }) => severity === 'error')
  if (errors.length > 0) throw new Error(errors[0]?.formattedMessage)
  const count = (pattern: RegExp): Message[] => messages.filter(({ message }) => pattern.test(message))
  const [safe, refuted, undecided] = [count(SAFE), count(REFUTED), count(UNDECIDED)]
  const open = refuted.length + undecided.length
  const proved = open === 0 && safe.length > 0 ? 'proved' : 'undecided'
  return {
    status: refuted.length > 0 ? 'refuted' : proved,
    conditions: safe.length + open,
    decided: safe.length + refuted.length,
    seconds: Math.round((Date.now() - started) / 1000),
    solvers: [...run.used].sort(),
    problems: [...refuted, ...undecided].map(({ formattedMessage }) => formattedMessage),
  }
}

/** Proves one property, or gives up at the limits. */
export function prove({ path, contract, source }: Property, limits: Limits): Verdict {
  const started = Date.now()
  const run: Run = { used: new Set(), until: started + limits.property * 1000, queries: 0 }
  const settings = {
    evmVersion: 'prague',
    modelChecker: {
      ...{ engine: 'bmc', solvers: ['smtlib2'], contracts: { [path]: [contract] } },
      ...{ targets: ['assert', 'overflow', 'underflow', 'divByZero'] },
      ...{ showProvedSafe: true, showUnproved: true },
    },
    outputSelection: {},
  }
  const input = { language: 'Solidity', sources: { [path]: { content: source } }, settings }
  const output = JSON.parse(
    solc.compile(JSON.stringify(input), {
      import: (name) => ({ contents: sourceOf(name) }),
      smtSolver: (query) => ({ contents: solve(query, run, limits.query) }),
    }),
  ) as { errors?: readonly Message[] }
  return verdictOf(output.errors ?? [], run, started)
}

/** Version of each solver, as it prints it. */
export const solverVersions = (): string[] =>
  SOLVERS.map(({ name }) => {
    const { stdout, error } = spawnSync(name, ['--version'], { encoding: 'utf8' })
    if (error !== undefined) throw new Error(`solver ${name} is not installed: apt-get install z3 cvc5`)
    return stdout.split('\n')[0]?.replace(/^This is /, '') ?? name
  })
