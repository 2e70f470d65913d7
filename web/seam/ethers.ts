/**
 * The few functions of ethers that `client/` uses to sign, in a hundredth of its size. The build of the page resolves `ethers` to this
 * file; it is deleted once the client signs without ethers.
 */
import { keccak_256 } from '@noble/hashes/sha3.js'
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { getPublicKey, signAsync, utils } from '@noble/secp256k1'

type Bytes = Uint8Array | string

export const getBytes = (value: Bytes): Uint8Array =>
  typeof value === 'string' ? hexToBytes(value.slice(2)) : value
export const hexlify = (value: Bytes): string =>
  typeof value === 'string' ? value : `0x${bytesToHex(value)}`
export const keccak256 = (value: Bytes): string => hexlify(keccak_256(getBytes(value)))

const addressOf = (privateKey: Uint8Array): string =>
  hexlify(keccak_256(getPublicKey(privateKey, false).slice(1)).slice(12))

const personal = (message: Uint8Array): Uint8Array =>
  keccak_256(concatBytes(utf8ToBytes(`\x19Ethereum Signed Message:\n${message.length}`), message))

export class Wallet {
  readonly address: string
  readonly #key: Uint8Array

  constructor(privateKey: string) {
    this.#key = getBytes(privateKey)
    this.address = addressOf(this.#key)
  }

  static createRandomKey(): string {
    return hexlify(utils.randomSecretKey())
  }

  async signMessage(message: Bytes): Promise<string> {
    const bytes = typeof message === 'string' ? utf8ToBytes(message) : message
    const signature = await signAsync(personal(bytes), this.#key, { prehash: false, format: 'recovered' })
    const [recovery, ...rs] = signature
    return hexlify(Uint8Array.from([...rs, 27 + (recovery as number)]))
  }
}

// ---------------------------------------------------------------------- calls

const word = (value: bigint): string => BigInt.asUintN(256, value).toString(16).padStart(64, '0')

/** Encodes calls whose parameters are addresses and integers. */
export class Interface {
  readonly #selectors = new Map<string, string>()

  constructor(signatures: readonly string[]) {
    for (const signature of signatures) {
      const [, name = '', parameters = ''] = /^function (\w+)\(([^)]*)\)/.exec(signature) ?? []
      const types = parameters.split(',').map((each) => each.trim().split(' ')[0] ?? '')
      this.#selectors.set(name, keccak256(utf8ToBytes(`${name}(${types.join(',')})`)).slice(0, 10))
    }
  }

  encodeFunctionData(name: string, values: readonly (string | number | bigint)[]): string {
    const selector = this.#selectors.get(name)
    if (selector === undefined) throw new TypeError(`no function ${name}`)
    return selector + values.map((value) => word(BigInt(value))).join('')
  }
}

// ---------------------------------------------------------------------- typed data

type Fields = readonly { readonly type: string; readonly name: string }[]
type Values = Readonly<Record<string, unknown>>

const structHash = (name: string, fields: Fields, values: Values): Uint8Array => {
  const typeHash = keccak_256(
    utf8ToBytes(`${name}(${fields.map((each) => `${each.type} ${each.name}`).join(',')})`),
  )
  const encoded = fields.map(({ type, name: field }) => {
    const value = values[field]
    if (type === 'string') return keccak_256(utf8ToBytes(String(value)))
    return hexToBytes(word(BigInt(value as string | number | bigint)))
  })
  return keccak_256(concatBytes(typeHash, ...encoded))
}

const DOMAIN: Fields = [
  { type: 'string', name: 'name' },
  { type: 'string', name: 'version' },
  { type: 'uint256', name: 'chainId' },
  { type: 'address', name: 'verifyingContract' },
]

export const TypedDataEncoder = {
  hash(domain: Values, types: Readonly<Record<string, Fields>>, message: Values): string {
    const [[name, fields]] = Object.entries(types) as [[string, Fields]]
    const parts = [structHash('EIP712Domain', DOMAIN, domain), structHash(name, fields, message)]
    return keccak256(concatBytes(Uint8Array.of(0x19, 0x01), ...parts))
  },
}
