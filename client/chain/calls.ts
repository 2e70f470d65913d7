/** Calldata of contract functions that a trader calls: a selector and 32-byte words. */
import { toHex } from '../../domain/hex.ts'
import { ascii } from '../../domain/orders/order-hash.ts'
import { keccak } from '../keccak.ts'
import { wordOf } from '../typed-data.ts'

/** `signature`, for example `deposit(uint256)`. Addresses and bytes32 values are hex. */
export function encodeCall(
  signature: string,
  ...values: readonly (bigint | number | string)[]
): `0x${string}` {
  const selector = toHex(keccak(ascii(signature)).subarray(0, 4))
  return `${selector}${values.map((value) => toHex(wordOf(BigInt(value))).slice(2)).join('')}` as `0x${string}`
}

/** Decodes the string returned by a function with a single result. */
export function decodeText(result: string): string {
  const length = Number.parseInt(result.slice(2 + 64, 2 + 128), 16)
  const digits = result.slice(2 + 128, 2 + 128 + 2 * length)
  const bytes = Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
  return new TextDecoder().decode(bytes)
}
