/** Keccak-256 in plain JavaScript, for Node.js and browsers. */
import { keccak_256 } from '@noble/hashes/sha3.js'
import type { Keccak } from '../domain/orders/order-hash.ts'

export const keccak: Keccak = (message) => keccak_256(message)
