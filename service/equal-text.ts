/** Compares secrets. */
import { createHash, timingSafeEqual } from 'node:crypto'

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Compares in constant time, independent of the lengths. */
export const equalText = (a: string, b: string): boolean => timingSafeEqual(sha256(a), sha256(b))
