/**
 * Hashes margin and leverage adjustments (EIP-712, market domain) and recovers their signers. Signatures: typed data
 * (65 bytes), or a personal message over the digest (66 bytes, ending in 01).
 */

import { toHex, writeHex } from '../hex.ts'
import { invariant } from '../invariant.ts'
import type { MarketSpec } from '../market/market.ts'
import {
  ascii,
  domainSeparator,
  type Keccak,
  type ParsedSignature,
  parseSignature,
  personalHasher,
  type Recover,
  type SignatureRefusal,
} from '../orders/order-hash.ts'
import { type Address, ONE, type Seconds } from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'
import { type LeverageAdjustment, type MarginAdjustment, REMOVE_MODES } from './adjustment.ts'

export const ADJUST_MARGIN_TYPE =
  'AdjustMargin(address account,int256 amount,uint8 removeMode,uint256 minAmount,uint256 nonce,uint256 deadline)'
export const ADJUST_LEVERAGE_TYPE =
  'AdjustLeverage(address account,uint256 leverage,uint256 maxMarginIn,uint256 minMarginOut,uint256 nonce,uint256 deadline)'

/**
 * The account, and the signature's validity: once per nonce, above the account's minimum nonce, until the deadline.
 */
export interface Authorization {
  readonly account: Address
  readonly nonce: bigint
  readonly deadline: Seconds
}

export type SignedMargin = MarginAdjustment & Authorization
export type SignedLeverage = LeverageAdjustment & Authorization

export type Digest = `0x${string}`

const WORD = 32
const U64_MASK = (1n << 64n) - 1n

/**
 * keccak of the type hash and one word per value; negative values as two's complement. The first value is an address.
 */
function hashStruct(type: string, account: Address, values: readonly bigint[], keccak: Keccak): Uint8Array {
  const words = new Uint8Array((2 + values.length) * WORD)
  const view = new DataView(words.buffer)
  words.set(keccak(ascii(type)), 0)
  invariant(account.length === 42 && writeHex(account, words, WORD + 12), 'an address is 20 bytes of hex')
  for (const [at, value] of values.entries()) {
    const word = BigInt.asUintN(256, value)
    for (let part = 0; part < 4; part++) {
      view.setBigUint64((2 + at) * WORD + 8 * part, (word >> BigInt(192 - 64 * part)) & U64_MASK)
    }
  }
  return keccak(words)
}

/** Fields of a market's signing domain: chain and trader contract. */
export type SigningDomain = Pick<MarketSpec, 'chainId' | 'trader'>

function digestOf(spec: SigningDomain, struct: Uint8Array, keccak: Keccak): Digest {
  const typed = new Uint8Array(2 + 2 * WORD)
  typed.set([0x19, 0x01], 0)
  typed.set(struct, 2 + WORD)
  typed.set(domainSeparator(spec, keccak), 2)
  return toHex(keccak(typed))
}

export function hashMarginAdjustment(signed: SignedMargin, spec: SigningDomain, keccak: Keccak): Digest {
  const { account, amount, removeMode, minAmount, nonce, deadline } = signed
  const mode = BigInt(REMOVE_MODES.indexOf(removeMode))
  const values = [amount, mode, minAmount, nonce, BigInt(deadline)]
  return digestOf(spec, hashStruct(ADJUST_MARGIN_TYPE, account, values, keccak), keccak)
}

export function hashLeverageAdjustment(signed: SignedLeverage, spec: SigningDomain, keccak: Keccak): Digest {
  const { account, leverage, maxMarginIn, minMarginOut, nonce, deadline } = signed
  const values = [BigInt(leverage) * ONE, maxMarginIn, minMarginOut, nonce, BigInt(deadline)]
  return digestOf(spec, hashStruct(ADJUST_LEVERAGE_TYPE, account, values, keccak), keccak)
}

// ---------------------------------------------------------------------- signatures

const TYPED_LENGTH = 2 + 2 * 65
const FORMS = '0x and 130 hex digits (r, s, v) for typed data, 132 (r, s, v, 01) for a personal message'

/**
 * Signer of `digest`, for either signature form. The caller checks that this address may act for the account.
 */
export function recoverAdjuster(
  digest: Digest,
  signature: string,
  keccak: Keccak,
  recover: Recover,
): Verdict<Address, SignatureRefusal> {
  const isTyped = signature.length === TYPED_LENGTH
  const parsed: Verdict<ParsedSignature, SignatureRefusal> = parseSignature(
    isTyped ? `${signature}01` : signature,
  )
  if (!parsed.ok) {
    const { refusal } = parsed
    if (refusal.code !== 'SIGNATURE_FORMAT') return parsed
    return refuse({ ...refusal, expected: FORMS, received: `${signature.length} characters` })
  }
  const hash = new Uint8Array(WORD)
  writeHex(digest, hash, 0)
  const signed = isTyped ? hash : personalHasher(keccak)(hash)
  const signer = recover(signed, parsed.value.rs, parsed.value.recoveryId)
  if (signer === null || signer.every((byte) => byte === 0))
    return refuse({ code: 'SIGNATURE_UNRECOVERABLE' })
  return accept(toHex(signer) as Address)
}
