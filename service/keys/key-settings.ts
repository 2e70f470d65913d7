/** Reads which keys a process has: a key is stated as itself, as an encrypted keystore, or as the address of a key in a remote signer. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Address } from '../../domain/units.ts'
import { ConfigError, type Env, environment, rejectVariable } from '../environment.ts'
import { type KeySource, KeySourceError, PLAIN_KEY, plainKey } from './key-source.ts'
import { keystoreAddress, keystoreKey } from './keystore.ts'
import { createRemoteSigner, type RemoteSigner } from './remote-signer.ts'

export const KEY_FORMS =
  '0x and 64 hexadecimal digits, {"keystore": "<file>"}, or {"remote": "<address of a key in the remote signer>"}'

/** Turns what a setting states into keys. A key that is stated again is the same object, with what it has decrypted. */
export interface KeyReader {
  /** Throws a ConfigError if a setting that all keys share is wrong, also if no key uses it. */
  check(): void
  /** `place` begins a sentence, such as "has for lane m1". Throws a ConfigError that never repeats a key. */
  keyOf(variable: string, place: string, value: unknown): KeySource
  /** The content of a file with one key: a plain key, a keystore, or the JSON of another form. Throws a ConfigError. */
  keyInFile(variable: string, path: string): KeySource
}

/** Lines of every error, so that an operator corrects all of them at once. */
export function readAll<Values extends readonly unknown[]>(
  ...readers: { readonly [At in keyof Values]: () => Values[At] }
): Values {
  const problems: string[] = []
  const values = readers.map((read) => {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push(...error.message.split('\n'))
      return undefined
    }
  })
  if (problems.length > 0) throw new ConfigError([...new Set(problems)].join('\n'))
  return values as unknown as Values
}

export function textOfFile(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return rejectVariable(variable, `is ${JSON.stringify(path)}, which cannot be read: ${code}`)
  }
}

/** Null if the text is no JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** A variable with one key: a plain key, or JSON. */
export const statedKey = (text: string): unknown => jsonOf(text) ?? text

/** Names of the default credential: of its own, or of a folder that a unit loads as `secret`. */
const DEFAULT_CREDENTIALS = ['key-passphrase', 'secret_key-passphrase']

/** A wrong setting is reported by `check`, and by each key that needs it, so that its error hides no error of a key. */
export function keyReader(env: Env, processName: string): KeyReader {
  const { optional } = environment(env, processName)
  const passphraseFile = () => checkedPassphraseFile(optional('KEY_PASSPHRASE_FILE'))
  const signerOf = (() => {
    let created: { readonly signer: RemoteSigner | null } | null = null
    return () => {
      created ??= { signer: remoteSignerOf(env, processName) }
      return created.signer
    }
  })()
  const credentials = env.CREDENTIALS_DIRECTORY || null
  const known = new Map<string, KeySource>()

  function once(name: string, create: () => KeySource): KeySource {
    const source = known.get(name) ?? create()
    known.set(name, source)
    return source
  }

  const defaultCredential = (): string | undefined =>
    credentials === null
      ? undefined
      : DEFAULT_CREDENTIALS.map((name) => join(credentials, name)).find((path) => existsSync(path))

  /** The path of a keystore's passphrase: of its own, or of all keystores. Checked here, and read again when it is needed. */
  function passphraseOf(variable: string, place: string, own: PassphraseSettings): () => string {
    const reject = (problem: string): never => rejectVariable(variable, `${place} a keystore ${problem}`)
    const inCredentials = (name: string): string =>
      credentials === null
        ? reject(
            `with the credential ${JSON.stringify(name)}, but CREDENTIALS_DIRECTORY is not set: expected a systemd unit with LoadCredential`,
          )
        : join(credentials, name)
    const path =
      own.file ??
      (own.credential === undefined ? passphraseFile() : inCredentials(own.credential)) ??
      defaultCredential() ??
      reject(
        `without a passphrase: expected passphrase_file or credential beside it, KEY_PASSPHRASE_FILE, or the systemd credential ${DEFAULT_CREDENTIALS[0]}`,
      )
    const read = (): string => {
      const text = readFileSync(path, 'utf8').replace(/\r?\n$/, '')
      if (text === '') throw new KeySourceError(`the passphrase file ${path} is empty`)
      return text
    }
    try {
      read()
    } catch (error) {
      const { code = 'it is empty' } = error as NodeJS.ErrnoException
      reject(`with the passphrase file ${JSON.stringify(path)}, which cannot be used: ${code}`)
    }
    return read
  }

  function keystoreIn(
    variable: string,
    place: string,
    file: { readonly path: string; readonly json: string },
    own: PassphraseSettings,
  ): KeySource {
    const address = keystoreAddress(jsonOf(file.json))
    if (address === null)
      return rejectVariable(
        variable,
        `${place} ${JSON.stringify(file.path)}, which is no keystore: expected Web3 Secret Storage of version 3 with its address`,
      )
    const passphrase = passphraseOf(variable, place, own)
    return once(JSON.stringify([file, own]), () =>
      keystoreKey({ json: file.json, address, place: `keystore ${file.path}`, passphrase }),
    )
  }

  function remoteKey(variable: string, place: string, address: string): KeySource {
    const signer = signerOf()
    if (signer === null)
      return rejectVariable(
        variable,
        `${place} the key ${address} of a remote signer, but REMOTE_SIGNER_URL is not set`,
      )
    return once(address, () => signer.key(address as Address))
  }

  function keyOf(variable: string, place: string, value: unknown): KeySource {
    if (typeof value === 'string' && PLAIN_KEY.test(value))
      try {
        return once(value.toLowerCase(), () => plainKey(value))
      } catch (error) {
        return rejectVariable(variable, `${place} a wrong key: ${(error as Error).message}`)
      }
    const form = formOf(value)
    if (form?.kind === 'remote') return remoteKey(variable, place, form.address)
    if (form?.kind === 'keystore') {
      const json = readKeystore(variable, place, form.path)
      return keystoreIn(variable, place, { path: form.path, json }, form.passphrase)
    }
    return rejectVariable(variable, `${place} an invalid key: expected ${KEY_FORMS}`)
  }

  return {
    check() {
      readAll(passphraseFile, signerOf)
    },
    keyOf,
    keyInFile(variable, path) {
      const text = textOfFile(variable, path).trim()
      const value = jsonOf(text)
      if (keystoreAddress(value) !== null) return keystoreIn(variable, 'is', { path, json: text }, {})
      return keyOf(variable, `names ${JSON.stringify(path)}, which has`, statedKey(text))
    },
  }
}

/** At most one of both; with neither, the passphrase is that of all keystores. */
interface PassphraseSettings {
  readonly file?: string
  readonly credential?: string
}

type Form =
  | { readonly kind: 'keystore'; readonly path: string; readonly passphrase: PassphraseSettings }
  | { readonly kind: 'remote'; readonly address: string }

/** Null if the value has neither of the two forms exactly. */
function formOf(value: unknown): Form | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const fields = value as Readonly<Record<string, unknown>>
  if (Object.values(fields).some((each) => typeof each !== 'string' || each === '')) return null
  const { keystore, passphrase_file, credential, remote } = fields as Readonly<Record<string, string>>
  switch (Object.keys(fields).toSorted().join()) {
    case 'remote':
      return /^0x[0-9a-fA-F]{40}$/.test(remote as string)
        ? { kind: 'remote', address: (remote as string).toLowerCase() }
        : null
    case 'keystore':
      return { kind: 'keystore', path: keystore as string, passphrase: {} }
    case 'keystore,passphrase_file':
      return { kind: 'keystore', path: keystore as string, passphrase: { file: passphrase_file as string } }
    case 'credential,keystore':
      return { kind: 'keystore', path: keystore as string, passphrase: { credential: credential as string } }
    default:
      return null
  }
}

function readKeystore(variable: string, place: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return rejectVariable(
      variable,
      `${place} the keystore ${JSON.stringify(path)}, which cannot be read: ${code}`,
    )
  }
}

function checkedPassphraseFile(path: string | null): string | null {
  if (path !== null && textOfFile('KEY_PASSPHRASE_FILE', path).trim() === '')
    return rejectVariable(
      'KEY_PASSPHRASE_FILE',
      `is ${JSON.stringify(path)}, which is empty: expected a passphrase`,
    )
  return path
}

/** Null without `REMOTE_SIGNER_URL`. */
function remoteSignerOf(env: Env, processName: string): RemoteSigner | null {
  const { optional, count, http } = environment(env, processName)
  if (optional('REMOTE_SIGNER_URL') === null) return null
  const pem = (variable: string, path: string | null): string | undefined =>
    path === null ? undefined : textOfFile(variable, path)
  const [url, timeoutMs, ca, cert, key] = readAll(
    () => http('REMOTE_SIGNER_URL'),
    () => count('REMOTE_SIGNER_TIMEOUT_MS', 1_000, 10, 60_000),
    () => pem('REMOTE_SIGNER_CA_FILE', optional('REMOTE_SIGNER_CA_FILE')),
    () => pem('REMOTE_SIGNER_CERTIFICATE_FILE', optional('REMOTE_SIGNER_CERTIFICATE_FILE')),
    () => pem('REMOTE_SIGNER_KEY_FILE', optional('REMOTE_SIGNER_KEY_FILE')),
  )
  const files = { ca, cert, key }
  if ((cert === undefined) !== (key === undefined))
    rejectVariable(
      cert === undefined ? 'REMOTE_SIGNER_CERTIFICATE_FILE' : 'REMOTE_SIGNER_KEY_FILE',
      'is not set: a client certificate needs both REMOTE_SIGNER_CERTIFICATE_FILE and REMOTE_SIGNER_KEY_FILE',
    )
  if (Object.values(files).some((each) => each !== undefined) && !url.startsWith('https:'))
    rejectVariable(
      'REMOTE_SIGNER_URL',
      'has protocol http: expected https, because a certificate file of it is set',
    )
  try {
    return createRemoteSigner({ url, timeoutMs, tls: definedOf(files) })
  } catch {
    return rejectVariable(
      'REMOTE_SIGNER_CA_FILE, REMOTE_SIGNER_CERTIFICATE_FILE or REMOTE_SIGNER_KEY_FILE',
      'is no PEM file that can be used',
    )
  }
}

const definedOf = (files: { readonly [name: string]: string | undefined }): Record<string, string> =>
  Object.fromEntries(Object.entries(files).filter((each): each is [string, string] => each[1] !== undefined))

/** Decrypts the keystores among the keys. Throws a ConfigError of every one that its passphrase does not decrypt; a remote signer may be away. */
export async function checkKeystores(keys: Iterable<KeySource>): Promise<void> {
  const local = [...new Set(keys)].filter(({ isRemote }) => !isRemote)
  const results = await Promise.allSettled(local.map((key) => key.ready()))
  const problems = results.flatMap((one) =>
    one.status === 'rejected' ? [(one.reason as Error).message] : [],
  )
  if (problems.length > 0) throw new ConfigError([...new Set(problems)].join('\n'))
}
