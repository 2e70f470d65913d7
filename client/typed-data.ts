/** EIP-712 digests of flat structs: every field is a number, a boolean, an address, a text, or bytes. */
import { toHex } from '../domain/hex.ts'
import { ascii, DOMAIN_TYPE } from '../domain/orders/order-hash.ts'
import { bytesOf, utf8 } from './bytes.ts'
import { keccak } from './keccak.ts'

export interface TypedField {
  readonly name: string
  readonly type: string
}

export interface TypedDomain {
  readonly name: string
  readonly version: string
  readonly chainId: number
  readonly verifyingContract: string
}

/** Typed data in the form that wallets expect; `types` contains one struct. */
export interface TypedData {
  readonly domain: TypedDomain
  readonly primaryType: string
  readonly types: Readonly<Record<string, readonly TypedField[]>>
  readonly message: Readonly<Record<string, string | number | bigint | boolean>>
}

const WORD = 32
const DOMAIN_FIELDS = fieldsOf(DOMAIN_TYPE)

function fieldsOf(type: string): readonly TypedField[] {
  const list = type.slice(type.indexOf('(') + 1, -1)
  return list.split(',').map((field) => {
    const [type = '', name = ''] = field.split(' ')
    return { name, type }
  })
}

/** A number as a 32-byte word; negative numbers as two's complement. */
export const wordOf = (value: bigint): Uint8Array =>
  bytesOf(
    `0x${BigInt.asUintN(256, value)
      .toString(16)
      .padStart(2 * WORD, '0')}`,
  )

function encode({ name, type }: TypedField, value: unknown): Uint8Array {
  if (type === 'string') return keccak(utf8(String(value)))
  if (type === 'bytes') return keccak(bytesOf(String(value)))
  if (type.startsWith('bytes')) {
    const word = new Uint8Array(WORD)
    word.set(bytesOf(String(value)))
    return word
  }
  if (type === 'address' && !/^0x[0-9a-fA-F]{40}$/.test(String(value)))
    throw new RangeError(`${name} must be an address, 0x and 40 hexadecimal digits; received ${value}`)
  return wordOf(BigInt(value as string | number | bigint | boolean))
}

function hashStruct(name: string, fields: readonly TypedField[], values: Readonly<Record<string, unknown>>) {
  const type = `${name}(${fields.map((field) => `${field.type} ${field.name}`).join(',')})`
  const words = new Uint8Array((1 + fields.length) * WORD)
  words.set(keccak(ascii(type)))
  for (const [at, field] of fields.entries()) words.set(encode(field, values[field.name]), (1 + at) * WORD)
  return keccak(words)
}

export const hashDomain = (domain: TypedDomain): Uint8Array =>
  hashStruct('EIP712Domain', DOMAIN_FIELDS, { ...domain })

/** The digest that a wallet signs. */
export function hashTypedData({ domain, primaryType, types, message }: TypedData): Uint8Array {
  const typed = new Uint8Array(2 + 2 * WORD)
  typed.set([0x19, 0x01])
  typed.set(hashDomain(domain), 2)
  typed.set(hashStruct(primaryType, types[primaryType] ?? [], message), 2 + WORD)
  return keccak(typed)
}

export const typedDataHex = (typed: TypedData): `0x${string}` => toHex(hashTypedData(typed))
