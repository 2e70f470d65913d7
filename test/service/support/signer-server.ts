/**
 * A remote signer written from web3signer's published interface (OpenAPI of its eth1 mode): `GET /upcheck`, `GET /api/v1/eth1/publicKeys` and
 * `POST /api/v1/eth1/sign/{identifier}`, which signs the Keccak hash of the data and answers with r, s and v as text. Tests make it fail.
 */
import { createServer as createPlainServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'
import { getBytes, keccak256, SigningKey } from 'ethers'

export type SignerFault =
  | 'other-key'
  | 'hang'
  | 'status-500'
  | 'malleable'
  | 'other-chain'
  | 'garbage'
  | 'wrong-v'
  | 'huge'

export interface SignerServer {
  readonly url: string
  /** Paths of the requests so far. */
  readonly requests: string[]
  /** Authorization headers of the requests so far. */
  readonly authorizations: (string | undefined)[]
  /** The next requests to sign are answered so; null: honestly. */
  fault: SignerFault | null
  /** While true, every request gets status 503, as of a proxy without a server behind it. */
  isDown: boolean
  /** How many requests to sign have the fault; then it answers honestly. */
  faults: number
  close(): Promise<void>
}

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const OTHER = new SigningKey(`0x${'77'.repeat(32)}`)

const hex = (value: bigint): string => value.toString(16).padStart(64, '0')

/** The chain id of two bytes follows the type and the list's header of an unsigned transaction. */
function changeChain(transaction: Uint8Array): void {
  const header = transaction[1] as number
  const lowByte = 1 + (header <= 0xf7 ? 1 : header - 0xf6) + 2
  transaction[lowByte] = (transaction[lowByte] as number) ^ 1
}

function signatureOf(key: SigningKey, data: string, fault: SignerFault | null): string {
  const bytes = getBytes(data)
  if (fault === 'other-chain') changeChain(bytes)
  const { r, s, v } = (fault === 'other-key' ? OTHER : key).sign(keccak256(bytes))
  if (fault === 'malleable') return `${r}${hex(ORDER - BigInt(s))}${(55 - v).toString(16)}`
  if (fault === 'wrong-v') return `${r}${s.slice(2)}25`
  if (fault === 'garbage') return 'signed'
  return fault === 'huge' ? '0'.repeat(1_000_001) : `${r}${s.slice(2)}${v.toString(16)}`
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += chunk
  return text
}

export async function startSignerServer(
  keys: readonly string[],
  tls: ServerOptions | null = null,
): Promise<SignerServer> {
  const held = new Map(
    keys.map((key) => {
      const found = new SigningKey(key)
      return [`0x${found.publicKey.slice(4)}`, found]
    }),
  )

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url as string
    state.requests.push(path)
    state.authorizations.push(request.headers.authorization)
    const end = (status: number, text: string, type = 'text/plain; charset=utf-8'): void => {
      response.writeHead(status, { 'content-type': type }).end(text)
    }
    if (state.isDown) return end(503, '')
    if (request.method === 'GET' && path === '/upcheck') return end(200, 'OK')
    if (request.method === 'GET' && path === '/api/v1/eth1/publicKeys')
      return end(200, JSON.stringify([...held.keys()]), 'application/json')
    const [, identifier = ''] = /^\/api\/v1\/eth1\/sign\/(0x[0-9a-f]+)$/.exec(path) ?? []
    const body = await textOf(request)
    const key = held.get(identifier)
    if (key === undefined) return end(404, '')
    const { data } = JSON.parse(body) as { data?: unknown }
    if (typeof data !== 'string') return end(400, 'Bad request format')
    const fault = state.faults > 0 ? state.fault : null
    state.faults--
    if (fault === 'hang') return
    if (fault === 'status-500') return end(500, 'Internal Web3Signer server error')
    end(200, signatureOf(key, data, fault))
  }

  const listener = (request: IncomingMessage, response: ServerResponse): void =>
    void answer(request, response)
  const server = tls === null ? createPlainServer(listener) : createTlsServer(tls, listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const state: SignerServer = {
    url: `${tls === null ? 'http' : 'https'}://127.0.0.1:${port}`,
    requests: [],
    authorizations: [],
    fault: null,
    isDown: false,
    faults: Number.POSITIVE_INFINITY,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return state
}
