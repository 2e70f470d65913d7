/**
 * Forward requests: OpenZeppelin's `ForwardRequest` typed data in the forwarder's domain, and the relayed calls.
 * A request is signed as typed data: r, s and v, 65 bytes.
 */
import { toHex, writeHex } from '../hex.ts'
import { invariant } from '../invariant.ts'
import {
  ascii,
  type Keccak,
  parseSignature,
  type Recover,
  type SignatureRefusal,
  separatorOf,
  writeUint,
} from '../orders/order-hash.ts'
import type { Address, Seconds } from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'
import { ALL_PERMISSIONS, type RelayEffect } from './operation.ts'

export const FORWARD_REQUEST_TYPE =
  'ForwardRequest(address from,address to,uint256 value,uint256 gas,uint256 nonce,uint48 deadline,bytes data)'
export const FORWARDER_NAME = 'Forwarder'
export const FORWARDER_VERSION = '1'

/** A forward request. Its value is always 0, because no relayed call accepts ether. */
export interface ForwardRequest {
  readonly from: Address
  readonly to: Address
  readonly gas: number
  readonly nonce: number
  readonly deadline: Seconds
  readonly data: `0x${string}`
}

export interface ForwarderDomain {
  readonly chainId: bigint
  readonly forwarder: Address
}

const WORD = 32

function bytesOf(text: string): Uint8Array {
  const bytes = new Uint8Array((text.length - 2) / 2)
  invariant(writeHex(text, bytes, 0), 'calldata is hex')
  return bytes
}

/** Digest that the owner signs. It identifies the request among all owners' requests. */
export function hashForwardRequest(
  { from, to, gas, nonce, deadline, data }: ForwardRequest,
  { chainId, forwarder }: ForwarderDomain,
  keccak: Keccak,
): `0x${string}` {
  const words = new Uint8Array(8 * WORD)
  const view = new DataView(words.buffer)
  words.set(keccak(ascii(FORWARD_REQUEST_TYPE)), 0)
  invariant(writeHex(from, words, WORD + 12) && writeHex(to, words, 2 * WORD + 12), 'addresses are hex')
  for (const [at, value] of [gas, nonce, deadline].entries()) writeUint(view, (4 + at) * WORD, BigInt(value))
  words.set(keccak(bytesOf(data)), 7 * WORD)
  const struct = keccak(words).slice()
  const domain = { name: FORWARDER_NAME, version: FORWARDER_VERSION, chainId, contract: forwarder }
  const typed = new Uint8Array(2 + 2 * WORD)
  typed.set([0x19, 0x01], 0)
  typed.set(separatorOf(domain, keccak), 2)
  typed.set(struct, 2 + WORD)
  return toHex(keccak(typed))
}

const SIGNATURE_LENGTH = 2 + 2 * 65

/** Signer of a digest. The forwarder accepts only typed data with a low s. */
export function recoverForwardSigner(
  digest: `0x${string}`,
  signature: string,
  recover: Recover,
): Verdict<Address, SignatureRefusal> {
  const parsed = parseSignature(signature.length === SIGNATURE_LENGTH ? `${signature}01` : '')
  if (!parsed.ok) {
    const { refusal } = parsed
    if (refusal.code !== 'SIGNATURE_FORMAT') return parsed
    const received = `${signature.length} characters`
    return refuse({
      ...refusal,
      expected: '0x and 130 hex digits: r, s and v, signed as typed data',
      received,
    })
  }
  const signer = recover(bytesOf(digest), parsed.value.rs, parsed.value.recoveryId)
  if (signer === null || signer.every((byte) => byte === 0))
    return refuse({ code: 'SIGNATURE_UNRECOVERABLE' })
  return accept(toHex(signer) as Address)
}

// ---------------------------------------------------------------------- calls

/** The functions that the exchange relays; a test compares the selectors with the contracts. */
export const RELAYED_FUNCTIONS = {
  register_session_key: { signature: 'registerSessionKey(address,uint8)', selector: '0x3a031609' },
  revoke_session_key: { signature: 'revokeSessionKey(address)', selector: '0x84f4fc6a' },
  invalidate_margin_nonces: { signature: 'invalidateMarginNonces(uint256)', selector: '0x36139868' },
} as const

const wordOf = (value: bigint): string => value.toString(16).padStart(2 * WORD, '0')

/** Calldata of a request with this effect. */
export function calldataOf(effect: RelayEffect): `0x${string}` {
  const { selector } = RELAYED_FUNCTIONS[effect.kind]
  switch (effect.kind) {
    case 'register_session_key':
      return `${selector}${wordOf(BigInt(effect.sessionKey))}${wordOf(BigInt(ALL_PERMISSIONS))}`
    case 'revoke_session_key':
      return `${selector}${wordOf(BigInt(effect.sessionKey))}`
    case 'invalidate_margin_nonces':
      return `${selector}${wordOf(effect.minimum)}`
  }
}

// ---------------------------------------------------------------------- bounds

/** Gas for the inner call, stated in the request. */
export const REQUEST_GAS = {
  /** Above the measured cost of each call; a test measures the costs. */
  needed: 80_000,
  prepared: 150_000,
  most: 200_000,
} as const

/** Seconds until a request's deadline. */
export const REQUEST_LIFE = {
  /** Minimum; a shorter time could pass before the request is mined. */
  least: 10,
  prepared: 600,
  most: 3_600,
} as const

/**
 * Deadline of a request prepared now: at least `prepared` seconds ahead, rounded up to a grid.
 * The grid makes repeated preparations equal for a while, so that a repetition is recognised.
 */
export const preparedDeadline = (now: Seconds): Seconds =>
  (Math.ceil((now + REQUEST_LIFE.prepared) / GRID) * GRID) as Seconds

const GRID = 300
