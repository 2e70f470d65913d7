/** Verifies that the owner's wallet signed a text as a personal message (EIP-191): by recovery, or by asking a contract wallet (EIP-1271). */
import { toHex } from '../../domain/hex.ts'
import { parseSignature } from '../../domain/orders/order-hash.ts'
import type { Address } from '../../domain/units.ts'
import { keccak, recover } from '../../service/crypto.ts'
import { ApiError } from '../errors.ts'
import type { AcceptsSignature } from '../ports.ts'

/** Contract wallets of many owners have long signatures. */
export const MAX_SIGNATURE_BYTES = 2_048
const HEX = /^0x([0-9a-fA-F]{2})+$/
const BYTES = 65

export interface SignedText {
  readonly owner: Address
  readonly text: string
  readonly signature: string
}

export function personalHash(text: string): Uint8Array {
  const message = new TextEncoder().encode(text)
  const prefix = new TextEncoder().encode(`\x19Ethereum Signed Message:\n${message.length}`)
  return keccak(Uint8Array.from([...prefix, ...message])).slice()
}

/** Why the signature is not the owner's own; null if it is. */
function refusalOf({ owner, signature }: SignedText, digest: Uint8Array): ApiError | null {
  // An order's signature has one byte more, which stands for the same scheme.
  const parsed = parseSignature(`${signature}01`)
  if (!parsed.ok) {
    const { code, ...context } = parsed.refusal
    return new ApiError(code, { field: 'signature', ...context })
  }
  const signer = recover(digest, parsed.value.rs, parsed.value.recoveryId)
  if (signer === null) return new ApiError('SIGNATURE_UNRECOVERABLE', { field: 'signature' })
  const received = toHex(signer)
  if (received === owner) return null
  return new ApiError('WALLET_SIGNATURE_MISMATCH', { field: 'signature', expected: owner, received })
}

/** Throws unless the owner signed the text. `acceptsSignature` is null where contract wallets cannot be asked. */
export async function verifyWalletSignature(
  signed: SignedText,
  acceptsSignature: AcceptsSignature | null,
): Promise<void> {
  const { owner, text, signature } = signed
  const bytes = (signature.length - 2) / 2
  const format = new ApiError('WALLET_SIGNATURE_FORMAT', {
    field: 'signature',
    expected: `0x and ${2 * BYTES} hex digits: r, s and v`,
    received: `${signature.length} characters`,
  })
  if (!HEX.test(signature) || bytes > MAX_SIGNATURE_BYTES) throw format
  const digest = personalHash(text)
  const refusal = bytes === BYTES ? refusalOf(signed, digest) : format
  if (refusal === null) return
  // A contract decides by itself what a signature of it is.
  if (acceptsSignature !== null && (await acceptsSignature(owner, digest, signature))) return
  throw refusal
}
