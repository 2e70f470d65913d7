/** The bloom filter of a block's header: a node that omits logs of the block does not also change its header. */
import { keccak } from '../../service/crypto.ts'

const BITS = 2048

/** Positions of the bits of each address, from the end of the filter. A follower asks for the same addresses again and again. */
const bitsOf = new Map<string, readonly number[]>()

function bitsFor(address: string): readonly number[] {
  const known = bitsOf.get(address)
  if (known !== undefined) return known
  const hash = keccak(Buffer.from(address.slice(2), 'hex'))
  const bits = [0, 2, 4].map((at) => (((hash[at] as number) << 8) | (hash[at + 1] as number)) % BITS)
  bitsOf.set(address, bits)
  return bits
}

/** False if the block certainly has no log of the address. */
export function mayHaveLogsOf(bloom: string, address: string): boolean {
  return bitsFor(address.toLowerCase()).every((bit) => {
    const digit = bloom.at(-1 - (bit >> 2))
    return digit !== undefined && ((Number.parseInt(digit, 16) >> (bit & 3)) & 1) === 1
  })
}
