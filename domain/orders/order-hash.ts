/**
 * Hashes orders and recovers their signers by the scheme of the contract with traders:
 * an EIP-712 digest, signed as a personal message, with the suffix 01.
 */
import { toHex, writeHex } from '../hex.ts'
import { invariant } from '../invariant.ts'
import { type Address, ONE, type OrderHash, type Price, type Quantity } from '../units.ts'
import { accept, refuse, type Verdict } from '../verdict.ts'
import { type Order, triggerCondition } from './order.ts'

/** Keccak-256. The result may be a buffer that the next call overwrites; callers copy it at once. */
export type Keccak = (message: Uint8Array) => Uint8Array

/**
 * Recovers the address (20 bytes) that signed `hash` with `signature` (r, s: 64 bytes); null if it cannot be
 * recovered.
 */
export type Recover = (hash: Uint8Array, signature: Uint8Array, recoveryId: 0 | 1) => Uint8Array | null

export const ORDER_TYPE =
  'Order(bytes8 flags,uint128 quantity,uint128 price,uint128 triggerPrice,uint8 triggerCondition,' +
  'uint128 leverage,address maker,uint128 expiration)'
/** The same fields as a list, for signing libraries that expect typed data. */
export const ORDER_FIELDS: readonly { readonly name: string; readonly type: string }[] = ORDER_TYPE.slice(
  ORDER_TYPE.indexOf('(') + 1,
  -1,
)
  .split(',')
  .map((field) => {
    const [type = '', name = ''] = field.split(' ')
    return { name, type }
  })

export const DOMAIN_TYPE =
  'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)'
export const DOMAIN_NAME = 'IsolatedTrader'
export const DOMAIN_VERSION = '2.0'

/** Bound of salts: they stay exact in a JSON number, and salt plus flag bits take 57 bits. */
export const SALT_END = 1n << 53n

const BUY = 1n
const REDUCE_ONLY = 2n

/** (salt << 4) | reduce-only bit | buy bit; bits 2 and 3 are zero. */
export const packFlags = (order: Pick<Order, 'salt' | 'side' | 'reduceOnly'>): bigint =>
  (order.salt << 4n) | (order.side === 'LONG' ? BUY : 0n) | (order.reduceOnly ? REDUCE_ONLY : 0n)

/** Bytes of an ASCII text; the type strings and prefixes contain nothing else. */
export const ascii = (text: string): Uint8Array => Uint8Array.from(text, (letter) => letter.charCodeAt(0))

const WORD = 32
const U64_MASK = (1n << 64n) - 1n

/** Writes `value`, below 2^128, right-aligned into the 32-byte word at `at`. */
export function writeUint(view: DataView, at: number, value: bigint): void {
  view.setBigUint64(at + 16, value >> 64n)
  view.setBigUint64(at + 24, value & U64_MASK)
}

/** The fields of a market that enter an order's digest: its signing domain and its grid. */
export interface SigningTerms {
  readonly chainId: bigint
  readonly trader: Address
  readonly tick: Price
  readonly step: Quantity
}

/** The EIP-712 domain of a contract that verifies signatures. */
export interface SigningDomain {
  readonly name: string
  readonly version: string
  readonly chainId: bigint
  readonly contract: Address
}

/** keccak of the encoded domain: name, version, chain, verifying contract. */
export function separatorOf({ name, version, chainId, contract }: SigningDomain, keccak: Keccak): Uint8Array {
  const words = new Uint8Array(5 * WORD)
  words.set(keccak(ascii(DOMAIN_TYPE)), 0)
  words.set(keccak(ascii(name)), WORD)
  words.set(keccak(ascii(version)), 2 * WORD)
  writeUint(new DataView(words.buffer), 3 * WORD, chainId)
  invariant(writeHex(contract, words, 4 * WORD + 12), 'the address of a contract is hex')
  return keccak(words).slice()
}

/** Domain separator of a market's contract. */
export const domainSeparator = (
  { chainId, trader }: Pick<SigningTerms, 'chainId' | 'trader'>,
  keccak: Keccak,
): Uint8Array =>
  separatorOf({ name: DOMAIN_NAME, version: DOMAIN_VERSION, chainId, contract: trader }, keccak)

/**
 * Returns a function that hashes a digest as a personal message, as wallets do before signing. Its results
 * are views that the next call overwrites.
 */
export function personalHasher(keccak: Keccak): (digest: Uint8Array) => Uint8Array {
  const prefix = ascii('\x19Ethereum Signed Message:\n32')
  const personal = new Uint8Array(prefix.length + WORD)
  personal.set(prefix, 0)
  return (digest) => {
    personal.set(digest, prefix.length)
    return keccak(personal)
  }
}

/** The bytes whose hash is signed for a digest. The result is a view that the next call overwrites. */
export const personalPreimage = (): ((digest: Uint8Array) => Uint8Array) => personalHasher((bytes) => bytes)

/**
 * Hashes the orders of one market. Results are views that the next call overwrites; copy them to keep them.
 */
export interface OrderHasher {
  /** The EIP-712 digest: the order's identity. */
  digest(order: Order): Uint8Array
  /** The hash that a wallet signs for `digest`: the digest as a personal message. */
  personalHash(digest: Uint8Array): Uint8Array
}

/** Creates the hasher of a market. Everything independent of the order is hashed and laid out once. */
export function orderHasher(spec: SigningTerms, keccak: Keccak): OrderHasher {
  const struct = new Uint8Array(9 * WORD)
  const view = new DataView(struct.buffer)
  struct.set(keccak(ascii(ORDER_TYPE)), 0)

  const typed = new Uint8Array(2 + 2 * WORD)
  typed.set([0x19, 0x01], 0)
  typed.set(domainSeparator(spec, keccak), 2)

  return {
    digest(order) {
      writeStruct(struct, view, spec, order)
      typed.set(keccak(struct), 2 + WORD)
      return keccak(typed)
    },
    personalHash: personalHasher(keccak),
  }
}

/**
 * Writes the eight fields after the type hash. `bytes8` is left-aligned in its word; the numbers and the
 * address are right-aligned.
 */
function writeStruct(struct: Uint8Array, view: DataView, spec: SigningTerms, order: Order): void {
  view.setBigUint64(WORD, packFlags(order))
  writeUint(view, 2 * WORD, BigInt(order.quantity) * spec.step)
  writeUint(view, 3 * WORD, order.price === 0 ? 0n : BigInt(order.price) * spec.tick)
  writeUint(view, 4 * WORD, order.trigger === 0 ? 0n : BigInt(order.trigger) * spec.tick)
  struct[6 * WORD - 1] = triggerCondition(order.type, order.side)
  writeUint(view, 6 * WORD, BigInt(order.leverage) * ONE)
  invariant(
    order.maker.length === 42 && writeHex(order.maker, struct, 7 * WORD + 12),
    'an address is 20 bytes of hex',
  )
  view.setBigUint64(9 * WORD - 8, BigInt(order.expiration))
}

/**
 * The order's EIP-712 digest as text. Creates the market's hasher on every call; use `orderHasher` for more
 * than one order.
 */
export const hashOrder = (order: Order, spec: SigningTerms, keccak: Keccak): OrderHash =>
  toHex(orderHasher(spec, keccak).digest(order)) as OrderHash

export type SignatureRefusal =
  /** The signature is not 66 bytes of hex. */
  | { readonly code: 'SIGNATURE_FORMAT'; readonly expected: string; readonly received: string }
  /** The last byte is not 01: the order was not signed as a personal message. */
  | { readonly code: 'SIGNATURE_SUFFIX'; readonly expected: '01'; readonly received: string }
  | { readonly code: 'SIGNATURE_V'; readonly expected: '27 or 28'; readonly received: string }
  /** s is above half the group order. The equivalent signature with a low s is valid. */
  | { readonly code: 'SIGNATURE_HIGH_S' }
  | { readonly code: 'SIGNATURE_UNRECOVERABLE' }

export interface ParsedSignature {
  /** r and s, concatenated. */
  readonly rs: Uint8Array
  readonly recoveryId: 0 | 1
}

const SIGNATURE_BYTES = 66
/** Half of the secp256k1 group order n. */
const HALF_ORDER = new Uint8Array(WORD)
writeHex('0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0', HALF_ORDER, 0)

/** `rs`: r and s, concatenated. */
export function isHighS(rs: Uint8Array): boolean {
  for (let at = 0; at < WORD; at++) {
    const difference = (rs[WORD + at] as number) - (HALF_ORDER[at] as number)
    if (difference !== 0) return difference > 0
  }
  return false
}

/**
 * Parses r (32), s (32), v (27 or 28) and the suffix 01 from hex. Writes the bytes to `scratch` (66 bytes);
 * the result is a view of it.
 */
export function parseSignature(
  text: string,
  scratch: Uint8Array = new Uint8Array(SIGNATURE_BYTES),
): Verdict<ParsedSignature, SignatureRefusal> {
  if (text.length !== 2 + 2 * SIGNATURE_BYTES || !text.startsWith('0x') || !writeHex(text, scratch, 0)) {
    const received = `${text.length} characters`
    return refuse({ code: 'SIGNATURE_FORMAT', expected: '0x and 132 hex digits: r, s, v and 01', received })
  }
  const suffix = scratch[65] as number
  if (suffix !== 1) return refuse({ code: 'SIGNATURE_SUFFIX', expected: '01', received: text.slice(-2) })
  const v = scratch[64] as number
  if (v !== 27 && v !== 28) return refuse({ code: 'SIGNATURE_V', expected: '27 or 28', received: String(v) })
  const rs = scratch.subarray(0, 64)
  if (isHighS(rs)) return refuse({ code: 'SIGNATURE_HIGH_S' })
  return accept({ rs, recoveryId: v === 27 ? 0 : 1 })
}

export interface RecoveredOrder {
  readonly hash: OrderHash
  /** Recovered signer. The caller checks that this address may trade for the maker. */
  readonly signer: Address
}

export type OrderVerifier = (order: Order, signature: string) => Verdict<RecoveredOrder, SignatureRefusal>

/**
 * Creates a market's signature check: five keccak permutations and one recovery per order. It refuses the zero address.
 * A wrong field is not detected here: the signature recovers another address.
 */
export function orderVerifier(spec: SigningTerms, keccak: Keccak, recover: Recover): OrderVerifier {
  const hasher = orderHasher(spec, keccak)
  const scratch = new Uint8Array(SIGNATURE_BYTES)
  return (order, signature) => {
    const parsed = parseSignature(signature, scratch)
    if (!parsed.ok) return parsed
    const digest = hasher.digest(order)
    const hash = toHex(digest) as OrderHash
    const signer = recover(hasher.personalHash(digest), parsed.value.rs, parsed.value.recoveryId)
    if (signer === null || signer.every((byte) => byte === 0))
      return refuse({ code: 'SIGNATURE_UNRECOVERABLE' })
    return accept({ hash, signer: toHex(signer) as Address })
  }
}
