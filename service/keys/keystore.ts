/** Keys in encrypted keystores (Web3 Secret Storage, version 3), decrypted when they are first needed. */
import { scrypt as nativeScrypt } from 'node:crypto'
import type { Address } from '../../domain/units.ts'
import { addressOfBytes, bytesOfKey, type KeySource, KeySourceError, signWith } from './key-source.ts'

/** Loaded with the first keystore, so that processes with other key sources do not load the library. */
async function loadLibrary(): Promise<Pick<typeof import('ethers'), 'decryptKeystoreJson'>> {
  const { decryptKeystoreJson, scrypt } = await import('ethers')
  // The library's JavaScript scrypt blocks the event loop for a second per keystore. Node.js runs scrypt in its thread
  // pool.
  scrypt.register(
    (password, salt, N, r, p, length) =>
      new Promise((resolve, reject) => {
        nativeScrypt(password, salt, length, { N, r, p, maxmem: 256 * N * r }, (error, derived) =>
          error === null ? resolve(derived) : reject(error),
        )
      }),
  )
  return { decryptKeystoreJson }
}

/** Address of a keystore, without its passphrase; null if the text is no keystore. Version 3 has the address without 0x. */
export function keystoreAddress(value: unknown): Address | null {
  const { address, version, crypto, Crypto } = (value ?? {}) as Readonly<Record<string, unknown>>
  if (version !== 3 || typeof (crypto ?? Crypto) !== 'object' || typeof address !== 'string') return null
  const found = /^(?:0x)?([0-9a-fA-F]{40})$/.exec(address)
  return found === null ? null : (`0x${(found[1] as string).toLowerCase()}` as Address)
}

export interface KeystoreOptions {
  /** Keystore JSON for which `keystoreAddress` is not null. */
  readonly json: string
  readonly address: Address
  readonly place: string
  /** Reads the passphrase. Throws if it cannot be read. */
  readonly passphrase: () => string
}

/** The next call repeats a failed decryption, so that a corrected passphrase needs no restart. */
export function keystoreKey({ json, address, place, passphrase }: KeystoreOptions): KeySource {
  let decrypted: Promise<Uint8Array> | null = null

  async function decrypt(): Promise<Uint8Array> {
    const secret = passphrase()
    const { decryptKeystoreJson } = await loadLibrary()
    const account = await decryptKeystoreJson(json, secret).catch((error: unknown) => {
      const isPassphrase = (error as { readonly argument?: string }).argument === 'password'
      const reason = isPassphrase
        ? 'its passphrase does not decrypt it'
        : 'it is no valid keystore of version 3'
      throw new KeySourceError(`the key ${address} of ${place} cannot be used: ${reason}`)
    })
    const key = bytesOfKey(account.privateKey)
    if (addressOfBytes(key) === address) return key
    throw new KeySourceError(
      `${place} states the address ${address} and has the key of ${addressOfBytes(key)}`,
    )
  }

  function keyOf(): Promise<Uint8Array> {
    decrypted ??= decrypt().catch((error: unknown) => {
      decrypted = null
      throw error
    })
    return decrypted
  }

  return {
    address,
    place,
    isRemote: false,
    ready: async () => {
      await keyOf()
    },
    sign: async (preimage) => signWith(preimage, await keyOf()),
  }
}
