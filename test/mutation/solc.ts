/** Calls the compiler of the contracts directly, for one contract at a time without a Hardhat project. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { shallow } from './shallow.ts'

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

type Sources = Readonly<Record<string, string>>

const isProject = (name: string): boolean => name.startsWith(PROJECT)

/** `rewrite` applies to the project's files. */
interface Compilation {
  readonly settings: object
  readonly rewrite: (path: string, code: string) => string
}

function run(path: string, sources: Sources, { settings, rewrite }: Compilation): Output {
  const read = (name: string): string => {
    if (!isProject(name)) return readFileSync(`node_modules/${name}`, 'utf8')
    const file = name.slice(PROJECT.length)
    return rewrite(file, sources[file] ?? readFileSync(file, 'utf8'))
  }
  const input = {
    language: 'Solidity',
    sources: { [named(path)]: { content: read(named(path)) } },
    settings: { evmVersion: 'prague', ...settings },
  }
  return JSON.parse(
    solc.compile(JSON.stringify(input), { import: (name) => ({ contents: read(name) }) }),
  ) as Output
}

const unchanged = (_: string, code: string): string => code

/** Syntax tree of the file, with types. */
export function parse(path: string): Node {
  const { sources, errors } = run(
    path,
    {},
    { settings: { outputSelection: { [named(path)]: { '': ['ast'] } } }, rewrite: unchanged },
  )
  const tree = sources?.[named(path)]?.ast
  if (tree === undefined) throw new Error(`${path} does not compile: ${errors?.[0]?.message}`)
  return tree
}

/**
 * Creation code of `contract` with unlinked libraries; `null` if it does not compile. `sources` replace files.
 * Not optimized: the behaviour is the same, and compilation is ten times faster. Without IR it is ten times faster again.
 */
export function compile(path: string, contract: string, sources: Sources): string | null {
  for (const viaIR of [false, true]) {
    const { contracts } = run(path, sources, {
      settings: { viaIR, outputSelection: { [named(path)]: { [contract]: ['evm.bytecode.object'] } } },
      rewrite: viaIR ? unchanged : shallow,
    })
    const code = contracts?.[named(path)]?.[contract]?.evm.bytecode.object
    if (code) return `0x${code}`
  }
  return null
}
