/** Compares the code of deployed contracts with the code that this version of the repository deploys. */
import { getBytes, hexlify, id, keccak256, type Provider } from 'ethers'
import type { Address } from '../domain/units.ts'
import { AccountManager__factory } from '../typechain-types/factories/AccountManager__factory.ts'
import { Backstop__factory } from '../typechain-types/factories/Backstop__factory.ts'
import { ExchangeAccess__factory } from '../typechain-types/factories/ExchangeAccess__factory.ts'
import { Forwarder__factory } from '../typechain-types/factories/Forwarder__factory.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../typechain-types/factories/MarginBank__factory.ts'
import { MarketExtension__factory } from '../typechain-types/factories/MarketExtension__factory.ts'
import { SignedPriceOracle__factory } from '../typechain-types/factories/SignedPriceOracle__factory.ts'
import { TestUSDM__factory } from '../typechain-types/factories/TestUSDM__factory.ts'
import { LIBRARIES, type SharedContracts } from './deploy.ts'

interface Compiled {
  /** Creation code: constructor, then runtime code, with placeholders for library addresses. */
  readonly bytecode: string
}

const SHARED: Readonly<Record<keyof SharedContracts, readonly [name: string, compiled: Compiled]>> = {
  access: ['ExchangeAccess', ExchangeAccess__factory],
  usdm: ['TestUSDM', TestUSDM__factory],
  marginBank: ['MarginBank', MarginBank__factory],
  accountManager: ['AccountManager', AccountManager__factory],
  forwarder: ['Forwarder', Forwarder__factory],
  oracle: ['SignedPriceOracle', SignedPriceOracle__factory],
  backstop: ['Backstop', Backstop__factory],
  extension: ['MarketExtension', MarketExtension__factory],
}

interface Deployed {
  readonly contracts: Readonly<Partial<SharedContracts>>
  readonly traders: Readonly<Record<string, Address>>
}

/** One line per contract whose deployed code is not this version's; empty if all match. Includes linked libraries. */
export async function contractsOfOtherCode(
  provider: Provider,
  { contracts, traders }: Deployed,
): Promise<string[]> {
  const expected = [
    ...Object.entries(SHARED).map(
      ([key, [name, compiled]]) => [name, compiled, contracts[key as keyof SharedContracts]] as const,
    ),
    ...Object.values(traders).map((trader) => ['IsolatedTrader', IsolatedTrader__factory, trader] as const),
  ]
  const lines = expected.map(([name, compiled, address]) =>
    address === undefined
      ? [`${name} is not in deployment.json`]
      : differencesAt(provider, name, compiled, address),
  )
  return (await Promise.all(lines)).flat()
}

async function differencesAt(
  provider: Provider,
  name: string,
  compiled: Compiled,
  address: string,
): Promise<string[]> {
  const code = await provider.getCode(address)
  const libraries = linkedLibraries(code, compiled.bytecode)
  if (libraries === null) return [`${name} at ${address} has code with hash ${keccak256(code)}`]
  const lines = Object.entries(LIBRARIES).map(([path, library]) => {
    const linked = libraries.get(placeholderOf(path))
    return linked === undefined
      ? []
      : differencesAt(provider, path.slice(path.indexOf(':') + 1), library, linked)
  })
  return (await Promise.all(lines)).flat()
}

/**
 * Placeholder in unlinked code, as the compiler writes it: `__$…$__` around 34 digits of the hash of the library's
 * name.
 */
const placeholderOf = (path: string): string => `__$${id(path).slice(2, 36)}$__`

const PLACEHOLDER = /__\$[0-9a-f]{34}\$__/g
/**
 * Variable parts of runtime code: immutables (`PUSH32 0` until set), a library's own address (`PUSH20 0`), and the
 * final hash of the sources, which any comment changes.
 */
const VARIABLE = [/7f(?=0{64})/g, /73(?=0{40})/g, /a2646970667358221220(?=[0-9a-f]{64}64736f6c6343)/g]
const LENGTHS = [32, 20, 32]

/**
 * Addresses of the libraries linked into `deployed`, by placeholder; null if `deployed` is not the runtime code of
 * `creation`.
 */
export function linkedLibraries(deployed: string, creation: string): ReadonlyMap<string, string> | null {
  const unlinked = creation.replaceAll(PLACEHOLDER, '0'.repeat(40))
  const [code, whole] = [getBytes(deployed), getBytes(unlinked)]
  if (code.length === 0) return null
  const isVariable = variableBytes(unlinked)
  const links = [...creation.matchAll(PLACEHOLDER)].map(({ 0: name, index }) => ({ name, at: index / 2 - 1 }))
  for (const { at } of links) isVariable.fill(1, at, at + 20)
  for (let start = 0; start + code.length <= whole.length; start++) {
    if (!code.every((byte, at) => byte === whole[start + at] || isVariable[start + at] === 1)) continue
    return new Map(links.map(({ name, at }) => [name, hexlify(code.slice(at - start, at - start + 20))]))
  }
  return null
}

/** One entry per byte of the code: 1 where deployed code may differ. */
function variableBytes(hex: string): Uint8Array {
  const marks = new Uint8Array(hex.length / 2 - 1)
  for (const [kind, pattern] of VARIABLE.entries()) {
    for (const { 0: opcode, index } of hex.matchAll(pattern)) {
      if (index % 2 === 1) continue
      const from = (index + opcode.length) / 2 - 1
      marks.fill(1, from, from + (LENGTHS[kind] ?? 0))
    }
  }
  return marks
}
