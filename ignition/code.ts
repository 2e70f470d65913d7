/** Compares the code at an address with the compiled code, linked to the deployed libraries. */
import { getBytes, type Provider } from 'ethers'

interface Span {
  readonly start: number
  readonly length: number
}

/** The fields of an artifact that describe the runtime code. */
export interface Compiled {
  readonly contractName: string
  readonly deployedBytecode: string
  readonly deployedLinkReferences: Readonly<Record<string, Readonly<Record<string, readonly Span[]>>>>
  readonly immutableReferences?: Readonly<Record<string, readonly Span[]>>
}

/** A library's code starts with PUSH20 of its own address (Solidity's call protection). */
const PUSH20 = 0x73

/** Null if the code is equal, else the difference. Ignores the values of immutables: the check reads their getters. */
export async function codeDifference(
  provider: Provider,
  address: string,
  compiled: Compiled,
  libraries: Readonly<Record<string, string>>,
): Promise<string | null> {
  const found = getBytes(await provider.getCode(address))
  if (found.length === 0) return 'no code'
  const expected = linked(compiled, libraries)
  if (found.length !== expected.length) return `${found.length} bytes instead of ${expected.length}`
  for (const { start, length } of Object.values(compiled.immutableReferences ?? {}).flat()) {
    found.fill(0, start, start + length)
  }
  const isLibrary = expected[0] === PUSH20 && expected.slice(1, 21).every((byte) => byte === 0)
  if (isLibrary) found.fill(0, 1, 21)
  const at = found.findIndex((byte, index) => byte !== expected[index])
  return at === -1 ? null : `differs from byte ${at} on`
}

function linked(compiled: Compiled, libraries: Readonly<Record<string, string>>): Uint8Array {
  let code = compiled.deployedBytecode.slice(2)
  for (const byName of Object.values(compiled.deployedLinkReferences)) {
    for (const [name, spans] of Object.entries(byName)) {
      const address = libraries[name]?.slice(2).toLowerCase()
      if (address === undefined)
        throw new Error(`${compiled.contractName} is linked to ${name}, which was not deployed`)
      for (const { start, length } of spans) {
        code = code.slice(0, start * 2) + address + code.slice((start + length) * 2)
      }
    }
  }
  return getBytes(`0x${code}`)
}

/** The values of a contract's immutables. */
export async function immutablesOf(
  provider: Provider,
  address: string,
  compiled: Compiled,
): Promise<Set<string>> {
  const code = await provider.getCode(address)
  const spans = Object.values(compiled.immutableReferences ?? {}).flat()
  return new Set(spans.map(({ start, length }) => `0x${code.slice(2 + start * 2, 2 + (start + length) * 2)}`))
}
