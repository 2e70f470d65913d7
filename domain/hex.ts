/**
 * Converts between bytes and hex text with no allocation beyond the result, because the signature path runs
 * once per placed order.
 */
import { invariant } from './invariant.ts'

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Value of a hex digit's character code; -1 for any other character. */
const NIBBLES = new Int8Array(128).fill(-1)
for (let digit = 0; digit < 16; digit++) {
  const text = digit.toString(16)
  NIBBLES[text.charCodeAt(0)] = digit
  NIBBLES[text.toUpperCase().charCodeAt(0)] = digit
}

export function toHex(bytes: Uint8Array): `0x${string}` {
  let text = '0x'
  for (let at = 0; at < bytes.length; at++) text += HEX[bytes[at] as number]
  return text as `0x${string}`
}

/**
 * Writes `0x`-prefixed hex into `target` from `offset`. Returns false if `text` is not hex; `target` is then
 * partly written.
 */
export function writeHex(text: string, target: Uint8Array, offset: number): boolean {
  invariant(offset + (text.length >> 1) - 1 <= target.length, 'hex text fits its target')
  for (let at = 2, to = offset; at < text.length; at += 2, to++) {
    const high = NIBBLES[text.charCodeAt(at)] ?? -1
    const low = NIBBLES[text.charCodeAt(at + 1)] ?? -1
    if (high < 0 || low < 0) return false
    target[to] = (high << 4) | low
  }
  return true
}

/**
 * `toHex` of `width` bytes of a record. It avoids a view of the bytes, which costs more to create than the
 * bytes cost to read.
 */
export function hexAt(view: DataView, at: number, width: number): `0x${string}` {
  let text = '0x'
  for (let place = at; place < at + width; place++) text += HEX[view.getUint8(place)]
  return text as `0x${string}`
}

/** `writeHex` into a record. */
export function writeHexAt(text: string, view: DataView, offset: number): boolean {
  for (let at = 2, to = offset; at < text.length; at += 2, to++) {
    const high = NIBBLES[text.charCodeAt(at)] ?? -1
    const low = NIBBLES[text.charCodeAt(at + 1)] ?? -1
    if (high < 0 || low < 0) return false
    view.setUint8(to, (high << 4) | low)
  }
  return true
}
