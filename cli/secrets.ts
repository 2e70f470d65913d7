/** Reads private keys, API keys and tokens from files or standard input. Secrets are never arguments, which other users can list. */
import { createDecipheriv, pbkdf2Sync, scryptSync } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { keccak } from '../client/keccak.ts'
import { toHex } from '../domain/hex.ts'
import { CommandError } from './failure.ts'

/** The name of standard input. */
export const STDIN = '-'

/** Standard input ends with its first read. */
let piped: string | undefined

function readPiped(what: string): string {
  piped ??= readFileSync(0, 'utf8').trim()
  if (piped === '') throw new CommandError(`standard input is empty: expected the ${what}`)
  return piped
}

/** `warn` receives a warning if other users can read the file. */
export function readSecret(file: string, what: string, warn: (text: string) => void): string {
  if (file === STDIN) return readPiped(what)
  let content: string
  try {
    content = readFileSync(file, 'utf8').trim()
    const mode = statSync(file).mode & 0o777
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      warn(
        `warning: ${file} can be read by other users (mode ${mode.toString(8).padStart(4, '0')}): run chmod 600 ${file}`,
      )
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new CommandError(
      `the ${what} in ${file} cannot be read (${code}): name a file that this user can read`,
    )
  }
  if (content === '') throw new CommandError(`${file} is empty: expected the ${what}`)
  return content
}

interface Keystore {
  readonly crypto: {
    readonly cipher: string
    readonly ciphertext: string
    readonly cipherparams: { readonly iv: string }
    readonly kdf: string
    readonly kdfparams: {
      readonly dklen: number
      readonly salt: string
      readonly n?: number
      readonly r?: number
      readonly p?: number
      readonly c?: number
    }
    readonly mac: string
  }
}

const bytes = (hex: string): Buffer => Buffer.from(hex.replace(/^0x/, ''), 'hex')

function derivedKey({ kdf, kdfparams }: Keystore['crypto'], password: string): Buffer {
  const { dklen, salt, n = 0, r = 0, p = 0, c = 0 } = kdfparams
  if (kdf === 'pbkdf2') return pbkdf2Sync(password, bytes(salt), c, dklen, 'sha256')
  if (kdf !== 'scrypt')
    throw new CommandError(`the keystore derives its key by ${kdf}: expected scrypt or pbkdf2`)
  return scryptSync(password, bytes(salt), dklen, { N: n, r, p, maxmem: 256 * n * r })
}

/** The private key of a keystore (version 3), as wallets export it. */
export function decryptKeystore(text: string, password: string): string {
  const parsed = JSON.parse(text) as Keystore & { readonly Crypto?: Keystore['crypto'] }
  const crypto = parsed.crypto ?? parsed.Crypto
  if (crypto?.cipher !== 'aes-128-ctr')
    throw new CommandError('the keystore is not of version 3 with the cipher aes-128-ctr: export it again')
  const key = derivedKey(crypto, password)
  const ciphertext = bytes(crypto.ciphertext)
  const mac = toHex(keccak(Buffer.concat([key.subarray(16, 32), ciphertext])))
  if (mac !== `0x${crypto.mac.replace(/^0x/, '').toLowerCase()}`)
    throw new CommandError('the password does not decrypt the keystore')
  const decipher = createDecipheriv('aes-128-ctr', key.subarray(0, 16), bytes(crypto.cipherparams.iv))
  return toHex(Buffer.concat([decipher.update(ciphertext), decipher.final()]))
}

/** A private key in hex, or a keystore. The password is asked for only if the file is encrypted. */
export async function readPrivateKey(
  file: string,
  password: () => Promise<string>,
  warn: (text: string) => void,
): Promise<string> {
  const content = readSecret(file, 'private key', warn)
  if (/^(0x)?[0-9a-fA-F]{64}$/.test(content)) return content.startsWith('0x') ? content : `0x${content}`
  if (!content.startsWith('{'))
    throw new CommandError(
      `${file} has neither a private key (64 hexadecimal digits) nor an encrypted keystore`,
    )
  return decryptKeystore(content, await password())
}
