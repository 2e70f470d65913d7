/**
 * Signs with a session key. The package is a third of the size of the client's default, which no other part of the page
 * loads.
 */
import { getPublicKey, signAsync, utils } from '@noble/secp256k1'
import { bytesOf } from '../../client/bytes.ts'
import { keccak } from '../../client/keccak.ts'
import type { DigestSigner } from '../../client/signing.ts'
import { toHex } from '../../domain/hex.ts'
import { personalHasher } from '../../domain/orders/order-hash.ts'

export interface SessionSigner extends DigestSigner {
  /** Address in lower case. */
  readonly address: string
}

export const randomKey = (): string => toHex(utils.randomSecretKey())

export function sessionSigner(privateKey: string): SessionSigner {
  const key = bytesOf(privateKey)
  const hasher = personalHasher(keccak)
  return {
    address: toHex(keccak(getPublicKey(key, false).subarray(1)).subarray(12)),
    async signDigest(digest) {
      const hash = hasher(digest).slice()
      const [recoveryId = 0, ...rs] = await signAsync(hash, key, { prehash: false, format: 'recovered' })
      return toHex(Uint8Array.from([...rs, 27 + recoveryId]))
    },
  }
}
