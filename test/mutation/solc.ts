/** Calls the compiler of the contracts directly, for one contract at a time without a Hardhat project. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

interface Solc {
  compile(input: string, callbacks: { import: (path: string) => { contents: string } }): string
}

/** A node of a syntax tree: `src` is `start:length:file`, in bytes. */
export interface Node {
  readonly nodeType: string
  readonly src: string
  readonly [field: string]: unknown
}

interface Output {
  readonly errors?: readonly { readonly severity: string; readonly message: string }[]
  readonly sources?: Record<string, { readonly ast: Node }>
  readonly contracts?: Record<string, Record<string, { readonly evm: { readonly bytecode: Bytecode } }>>
}

interface Bytecode {
  readonly object: string
}

const solc = createRequire(import.meta.url)('solc') as Solc

/** Hardhat's prefix for the project's files, so that libraries are linked by the same names. */
const PROJECT = 'project/'
const named = (path: string): string => `${PROJECT}${path}`

const read = (name: string): string =>
  readFileSync(name.startsWith(PROJECT) ? name.slice(PROJECT.length) : `node_modules/${name}`, 'utf8')

function run(path: string, sources: Readonly<Record<string, string>>, settings: object): Output {
  const known = Object.entries(sources).map(([file, content]) => [named(file), { content }])
  const input = {
    language: 'Solidity',
    sources: { [named(path)]: { content: read(named(path)) }, ...Object.fromEntries(known) },
    settings: { evmVersion: 'prague', ...settings },
  }
  return JSON.parse(
    solc.compile(JSON.stringify(input), { import: (name) => ({ contents: read(name) }) }),
  ) as Output
}

/** Syntax tree of the file, with types. */
export function parse(path: string): Node {
  const { sources, errors } = run(path, {}, { outputSelection: { [named(path)]: { '': ['ast'] } } })
  const tree = sources?.[named(path)]?.ast
  if (tree === undefined) throw new Error(`${path} does not compile: ${errors?.[0]?.message}`)
  return tree
}

/** Contracts with too many variables for the faster compilation without IR. */
const needIR = new Set<string>()

/**
 * Creation code of `contract` with unlinked libraries; `null` if it does not compile. `sources` replace files.
 * Not optimized: the behaviour is the same, and compilation is ten times faster.
 */
export function compile(
  path: string,
  contract: string,
  sources: Readonly<Record<string, string>>,
): string | null {
  for (const viaIR of needIR.has(contract) ? [true] : [false, true]) {
    const { contracts, errors } = run(path, sources, {
      viaIR,
      outputSelection: { [named(path)]: { [contract]: ['evm.bytecode.object'] } },
    })
    const code = contracts?.[named(path)]?.[contract]?.evm.bytecode.object
    const problem = errors?.find(({ severity }) => severity === 'error')?.message
    if (problem === undefined && code) return `0x${code}`
    if (!problem?.includes('Stack too deep')) return null
    needIR.add(contract)
  }
  return null
}
