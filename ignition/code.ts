/** Compares the code at an address with the compiled code, linked to the deployed libraries. */
import { getBytes, type Provider } from 'ethers'

export interface Span {
  readonly start: number
  readonly length: number
}

type Links = Readonly<Record<string, Readonly<Record<string, readonly Span[]>>>>

/** A compiled contract: an artifact, with its immutables by name. */
export interface Compiled {
  readonly contractName: string
  readonly abi: readonly unknown[]
  /** Creation code, before the constructor's arguments. */
  readonly bytecode: string
  readonly linkReferences: Links
  readonly deployedBytecode: string
  readonly deployedLinkReferences: Links
  /** Where the code holds each immutable, by `Contract._NAME`; a library's own address is `library_deploy_address`. */
  readonly immutables: Readonly<Record<string, readonly Span[]>>
}

export type Libraries = Readonly<Record<string, string>>

export interface CodeAt {
  /** Null if the code is equal except for the values of immutables, else the difference. */
  readonly difference: string | null
  /** The values of each immutable at all of its places, without repeats: exactly one in code that the compiler made. */
  readonly immutables: ReadonlyMap<string, readonly string[]>
}

export async function codeAt(
  provider: Provider,
  address: string,
  compiled: Compiled,
  libraries: Libraries,
): Promise<CodeAt> {
  const code = await provider.getCode(address)
  const immutables = new Map<string, readonly string[]>()
  for (const [name, spans] of Object.entries(compiled.immutables))
    immutables.set(name, [...new Set(spans.map((span) => `0x${slice(code, span)}`))])
  return { difference: differenceOf(getBytes(code), compiled, libraries), immutables }
}

const slice = (code: string, { start, length }: Span): string =>
  code.slice(2 + start * 2, 2 + (start + length) * 2)

function differenceOf(found: Uint8Array, compiled: Compiled, libraries: Libraries): string | null {
  if (found.length === 0) return 'no code'
  const { contractName, deployedBytecode, deployedLinkReferences } = compiled
  const expected = getBytes(linked(contractName, deployedBytecode, deployedLinkReferences, libraries))
  if (found.length !== expected.length) return `${found.length} bytes instead of ${expected.length}`
  for (const { start, length } of Object.values(compiled.immutables).flat())
    found.fill(0, start, start + length)
  const at = found.findIndex((byte, index) => byte !== expected[index])
  return at === -1 ? null : `differs from byte ${at} on`
}

/** The creation code of a contract with the addresses of its libraries. */
export const creationCode = (
  { contractName, bytecode, linkReferences }: Compiled,
  libraries: Libraries,
): string => linked(contractName, bytecode, linkReferences, libraries)

function linked(contract: string, unlinked: string, links: Links, libraries: Libraries): string {
  let code = unlinked.slice(2)
  for (const byName of Object.values(links)) {
    for (const [name, spans] of Object.entries(byName)) {
      const address = libraries[name]?.slice(2).toLowerCase()
      if (address === undefined) throw new Error(`${contract} is linked to ${name}, which was not deployed`)
      for (const { start, length } of spans) {
        code = code.slice(0, start * 2) + address + code.slice((start + length) * 2)
      }
    }
  }
  return `0x${code}`
}
