/**
 * Keys in a remote signer with web3signer's eth1 interface. A signature must recover to the key's address, so a faulty
 * signer can delay a transaction or report but not change it.
 */
import { type IncomingMessage, Agent as PlainAgent, request as plainRequest } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import { toHex, writeHex } from '../../domain/hex.ts'
import { isHighS } from '../../domain/orders/order-hash.ts'
import type { Address } from '../../domain/units.ts'
import { boundedText } from '../bounded-text.ts'
import { keccak, recover } from '../crypto.ts'
import { type KeySource, KeySourceError } from './key-source.ts'

/** PEM texts. Without `ca` the system's authorities are trusted; without `cert` and `key` no client certificate is sent. */
export interface SignerTls {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
}

export interface RemoteSignerOptions {
  /** May contain a user and a password, which no message repeats. */
  readonly url: string
  /** Bound of one attempt, from the connection to the last byte. */
  readonly timeoutMs: number
  readonly tls: SignerTls
}

export interface RemoteSigner {
  key(address: Address): KeySource
}

interface Answer {
  readonly status: number
  readonly text: string
}

const MOST_BYTES = 1_000_000
const MOST_CONNECTIONS = 16
const SIGNATURE_BYTES = 65
/** An attempt without an answer, or with a status of 500 and above, is repeated once. Every other answer is final. */
const ATTEMPTS = 2

/** No answer: the connection failed, or the time was over. */
class NoAnswer extends Error {}

export function createRemoteSigner({ url, timeoutMs, tls }: RemoteSignerOptions): RemoteSigner {
  const base = new URL(url)
  const shown = `${base.origin}${base.pathname.replace(/\/$/, '')}`
  const isTls = base.protocol === 'https:'
  const connections = { keepAlive: true, maxSockets: MOST_CONNECTIONS }
  const agent = isTls ? new TlsAgent({ ...connections, ...tls }) : new PlainAgent(connections)
  const authorization =
    base.username === ''
      ? {}
      : { authorization: `Basic ${Buffer.from(credentialsOf(base)).toString('base64')}` }
  const fail = (problem: string): never => {
    throw new KeySourceError(`remote signer ${shown} ${problem}`)
  }

  async function attempt(method: 'GET' | 'POST', path: string, body: string | null): Promise<Answer> {
    const signal = AbortSignal.timeout(timeoutMs)
    try {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        const headers =
          body === null ? authorization : { ...authorization, 'content-type': 'application/json' }
        const send = isTls ? tlsRequest : plainRequest
        const request = send(`${shown}${path}`, { method, headers, agent, signal }, resolve)
        request.on('error', reject).end(body ?? undefined)
      })
      const text = await boundedText(response, MOST_BYTES)
      if (text === null) return fail(`answered ${path} with more than ${MOST_BYTES} bytes`)
      return { status: response.statusCode as number, text }
    } catch (error) {
      if (error instanceof KeySourceError) throw error
      throw new NoAnswer(
        signal.aborted
          ? `did not answer ${path} within ${timeoutMs} ms`
          : `cannot be reached: ${(error as NodeJS.ErrnoException).code ?? 'the connection failed'}`,
      )
    }
  }

  async function exchange(method: 'GET' | 'POST', path: string, body: object | null): Promise<Answer> {
    const text = body === null ? null : JSON.stringify(body)
    for (let left = ATTEMPTS - 1; ; left--)
      try {
        const answer = await attempt(method, path, text)
        if (answer.status < 500 || left === 0) return answer
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error
        if (left === 0) return fail(error.message)
      }
  }

  /** The identifier under which the signer has the key: its public key. */
  async function identifierOf(address: Address): Promise<string> {
    const { status, text } = await exchange('GET', '/api/v1/eth1/publicKeys', null)
    if (status !== 200) return fail(`answered the list of its keys with status ${status}`)
    const found = publicKeysIn(text)?.find((each) => addressOfPublicKey(each) === address)
    return found ?? fail(`does not have the key ${address}`)
  }

  function signatureIn(address: Address, preimage: Uint8Array, text: string): Uint8Array {
    const signature = new Uint8Array(SIGNATURE_BYTES)
    if (!/^0x[0-9a-fA-F]{130}$/.test(text) || !writeHex(text, signature, 0))
      return fail(`returned no signature of ${address}: expected 0x and 130 hexadecimal digits`)
    const rs = signature.subarray(0, 64)
    const recoveryId = recoveryIdOf(signature[64] as number)
    if (recoveryId === null)
      return fail(`returned a signature of ${address} with v ${signature[64]}: expected 27 or 28`)
    if (isHighS(rs)) return fail(`returned a malleable signature of ${address}: expected a low s`)
    const signer = recover(keccak(preimage), rs, recoveryId)
    if (signer === null || toHex(signer) !== address)
      return fail(
        `returned a signature that is not of ${address} over the bytes it was sent; it recovers to ${signer && toHex(signer)}`,
      )
    signature[64] = 27 + recoveryId
    return signature
  }

  return {
    key(address) {
      let identifier: Promise<string> | null = null
      const known = (): Promise<string> => {
        identifier ??= identifierOf(address).catch((error: unknown) => {
          identifier = null
          throw error
        })
        return identifier
      }
      return {
        address,
        place: `remote signer ${shown}`,
        isRemote: true,
        async ready() {
          const { status } = await exchange('GET', '/upcheck', null)
          if (status !== 200) fail(`is not up: /upcheck answered with status ${status}`)
          await known()
        },
        async sign(preimage) {
          const data = toHex(preimage)
          const { status, text } = await exchange('POST', `/api/v1/eth1/sign/${await known()}`, { data })
          if (status === 404) identifier = null
          if (status !== 200) return fail(`answered a request to sign for ${address} with status ${status}`)
          return signatureIn(address, preimage, text.trim())
        },
      }
    },
  }
}

const credentialsOf = ({ username, password }: URL): string =>
  `${decodeURIComponent(username)}:${decodeURIComponent(password)}`

const recoveryIdOf = (v: number): 0 | 1 | null => {
  if (v === 0 || v === 27) return 0
  return v === 1 || v === 28 ? 1 : null
}

/** Null if the answer is no list of texts. */
function publicKeysIn(text: string): readonly string[] | null {
  try {
    const keys: unknown = JSON.parse(text)
    return Array.isArray(keys) ? keys.filter((each) => typeof each === 'string') : null
  } catch {
    return null
  }
}

/** Address of an uncompressed public key, with or without its first byte 04; null of anything else. */
function addressOfPublicKey(text: string): string | null {
  const point = /^0x(?:04)?([0-9a-fA-F]{128})$/.exec(text)?.[1]
  return point === undefined ? null : toHex(keccak(Buffer.from(point, 'hex')).subarray(12))
}
