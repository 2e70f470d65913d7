/** A market runs its extension's code on its own storage, so both contracts must have the same layout. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { expect } from 'chai'

interface Variable {
  readonly label: string
  readonly slot: string
  readonly offset: number
  readonly type: string
}

interface Type {
  readonly encoding: string
  readonly numberOfBytes: string
  readonly members?: readonly Variable[]
  readonly key?: string
  readonly value?: string
  readonly base?: string
}

interface Layout {
  readonly storage: readonly Variable[]
  readonly types: Readonly<Record<string, Type>>
}

interface Solc {
  compile(input: string, callbacks: { import: (path: string) => { contents: string } }): string
}

const solc = createRequire(import.meta.url)('solc') as Solc

const read = (path: string) => ({
  contents: readFileSync(path.startsWith('contracts/') ? path : `node_modules/${path}`, 'utf8'),
})

/** Layouts by contract. Only the layout is requested from the compiler, which keeps it fast. */
function layoutsOf(...names: readonly string[]): Record<string, Layout> {
  const paths = names.map((name) => `contracts/${name}.sol`)
  const input = {
    language: 'Solidity',
    sources: Object.fromEntries(paths.map((path) => [path, { content: read(path).contents }])),
    settings: { outputSelection: { '*': { '*': ['storageLayout'] } } },
  }
  const { contracts } = JSON.parse(solc.compile(JSON.stringify(input), { import: read })) as {
    contracts: Record<string, Record<string, { storageLayout: Layout }>>
  }
  return Object.fromEntries(
    names.map((name, at) => [name, contracts[paths[at] as string]?.[name]?.storageLayout as Layout]),
  )
}

/** The type with all members, without the syntax-tree identifiers, which differ between compilations. */
function resolve(type: string, types: Layout['types']): object {
  const found = types[type] as Type
  const inner = [found.key, found.value, found.base].flatMap((of) => (of ? [resolve(of, types)] : []))
  const members = found.members?.map((member) => place(member, types)) ?? []
  return {
    type: type.replaceAll(/\)\d+/g, ')'),
    encoding: found.encoding,
    bytes: found.numberOfBytes,
    inner,
    members,
  }
}

const place = ({ label, slot, offset, type }: Variable, types: Layout['types']): object => ({
  label,
  slot,
  offset,
  type: resolve(type, types),
})

describe('storage of a market', () => {
  const layouts = layoutsOf('IsolatedTrader', 'MarketExtension')
  const variablesOf = (name: string) => {
    const { storage, types } = layouts[name] as Layout
    return storage.map((variable) => place(variable, types))
  }

  it('is laid out as in the extension, to the last member', () => {
    const extension = variablesOf('MarketExtension')
    expect(extension.map((variable) => (variable as Variable).label)).to.deep.equal([
      '_state',
      '_operators',
      '_operatorCount',
    ])
    expect(variablesOf('IsolatedTrader').slice(0, extension.length)).to.deep.equal(extension)
  })

  it('packs each struct that an action reads into one slot', () => {
    const { types } = layouts.IsolatedTrader as Layout
    const bytes = (struct: string) =>
      types[Object.keys(types).find((type) => type.startsWith(`t_struct(${struct})`)) as string]
        ?.numberOfBytes
    const structs = ['Clock', 'Reference', 'Parameters', 'FundingRate', 'RiskTerms', 'Poked', 'Floors']
    expect(structs.map(bytes)).to.deep.equal(structs.map(() => '32'))
  })
})
