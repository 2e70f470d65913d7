/** Converts between hex text, bytes and addresses. */
import { toHex, writeHex } from '../domain/hex.ts'
import { ascii } from '../domain/orders/order-hash.ts'
import { keccak } from './keccak.ts'

export const bytesOf = (hex: string): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(Math.max(0, hex.length - 2) >> 1)
  if (hex.length % 2 !== 0 || !hex.startsWith('0x') || !writeHex(hex, bytes, 0))
    throw new RangeError(
      `expected 0x and an even number of hexadecimal digits; received ${hex.length} characters`,
    )
  return bytes
}

export const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)

export const isAddress = (text: string): boolean => /^0x[0-9a-fA-F]{40}$/.test(text)

/** Address with the EIP-55 checksum, as wallets display it. */
export function checksumAddress(address: string): string {
  const digits = address.slice(2).toLowerCase()
  const hash = toHex(keccak(ascii(digits)))
  const letters = [...digits].map((digit, at) =>
    Number.parseInt(hash[2 + at] as string, 16) >= 8 ? digit.toUpperCase() : digit,
  )
  return `0x${letters.join('')}`
}
