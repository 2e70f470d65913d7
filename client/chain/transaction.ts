/** Transactions of type 2 (EIP-1559): encoded, hashed for the signature, and signed. */
import { toHex } from '../../domain/hex.ts'
import { bytesOf } from '../bytes.ts'
import { keccak } from '../keccak.ts'

/** Values in wei. */
export interface UnsignedTransaction {
  readonly chainId: number
  readonly nonce: number
  readonly maxPriorityFeePerGas: bigint
  readonly maxFeePerGas: bigint
  readonly gas: bigint
  readonly to: string
  readonly data: string
}

type Item = Uint8Array | readonly Item[]

const EMPTY = new Uint8Array()
const TYPE = 2

function bigEndian(value: bigint): Uint8Array {
  if (value === 0n) return EMPTY
  const digits = value.toString(16)
  return bytesOf(`0x${digits.length % 2 === 0 ? digits : `0${digits}`}`)
}

function join(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}

function header(length: number, base: number): Uint8Array {
  if (length < 56) return Uint8Array.of(base + length)
  const size = bigEndian(BigInt(length))
  return join([Uint8Array.of(base + 55 + size.length), size])
}

/** Recursive length prefix: the encoding of transactions. */
export function rlp(item: Item): Uint8Array {
  if (item instanceof Uint8Array) {
    const isSingle = item.length === 1 && (item[0] as number) < 0x80
    return isSingle ? item : join([header(item.length, 0x80), item])
  }
  const content = join(item.map(rlp))
  return join([header(content.length, 0xc0), content])
}

const fieldsOf = (transaction: UnsignedTransaction): Item[] => [
  bigEndian(BigInt(transaction.chainId)),
  bigEndian(BigInt(transaction.nonce)),
  bigEndian(transaction.maxPriorityFeePerGas),
  bigEndian(transaction.maxFeePerGas),
  bigEndian(transaction.gas),
  bytesOf(transaction.to),
  EMPTY, // no value
  bytesOf(transaction.data),
  [], // no access list
]

const envelope = (fields: readonly Item[]): Uint8Array => join([Uint8Array.of(TYPE), rlp(fields)])

/** The hash that the sender signs. */
export const signingHash = (transaction: UnsignedTransaction): Uint8Array =>
  keccak(envelope(fieldsOf(transaction)))

/** `signature`: r, s and v (27 or 28), as hex. */
export function signedTransaction(transaction: UnsignedTransaction, signature: string): `0x${string}` {
  const bytes = bytesOf(signature)
  const number = (from: number, to: number) => BigInt(toHex(bytes.subarray(from, to)))
  const parity = BigInt((bytes[64] as number) - 27)
  const fields = [
    ...fieldsOf(transaction),
    bigEndian(parity),
    bigEndian(number(0, 32)),
    bigEndian(number(32, 64)),
  ]
  return toHex(envelope(fields))
}

export const transactionHash = (raw: string): `0x${string}` => toHex(keccak(bytesOf(raw)))
