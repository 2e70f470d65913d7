/** Bounds the cost of an address that continues after its limit has rejected it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { ApiError, errorBody } from '../errors.ts'
import { beforeFramework } from './before-framework.ts'
import { networkOf } from './network.ts'
import type { App } from './types.ts'

/** The limits of addresses: cancels are counted apart. */
export type AddressLimit = 'cancels' | 'others'

export interface RefusalFloods {
  /** Counts a rejection; `endsMs`: the rest of the window. */
  note(limit: AddressLimit, ip: string, endsMs: number): void
  /** Milliseconds for which the address is rejected without the framework; null if it is not. */
  restOf(limit: AddressLimit, ip: string): number | null
}

/** Addresses that are counted at a time; beyond it all are forgotten. */
const MOST = 10_000
/**
 * Pause before each answer to a flooding address. A connection waits for its answer and an address has few connections,
 * so the pause bounds the rate of rejections.
 */
const PAUSE_MS = 200

/** `most`: rejections in a window after which the address floods. */
export function createRefusalFloods(
  most: number,
  now: () => number = () => performance.now(),
): RefusalFloods {
  const rejected = new Map<string, { count: number; readonly ends: number }>()
  const keyOf = (limit: AddressLimit, ip: string): string => `${limit}:${networkOf(ip)}`
  const current = (key: string) => {
    const found = rejected.get(key)
    return found !== undefined && found.ends > now() ? found : undefined
  }
  return {
    note(limit, ip, endsMs) {
      const key = keyOf(limit, ip)
      const known = current(key)
      if (known !== undefined) known.count++
      else {
        if (rejected.size >= MOST) rejected.clear()
        rejected.set(key, { count: 1, ends: now() + endsMs })
      }
    },
    restOf(limit, ip) {
      if (rejected.size === 0) return null
      const known = current(keyOf(limit, ip))
      return known !== undefined && known.count >= most ? known.ends - now() : null
    },
  }
}

const CANCELS = '/v0/orders/cancel/'
/** Only operations of the api have limits: probes are always answered. */
const API = '/v0/'

export interface FloodPorts {
  readonly floods: RefusalFloods
  /** Undefined once the connection has ended. */
  readonly addressOf: (request: IncomingMessage) => string | undefined
  readonly nextId: () => string
}

/** Call it after all other listeners that answer requests before the framework are added. */
export function answerFloods(app: App, { floods, addressOf, nextId }: FloodPorts): void {
  beforeFramework(app, (route) => (request, response) => {
    const { url = '' } = request
    const ip = url.startsWith(API) ? addressOf(request) : undefined
    const restMs = ip === undefined ? null : floods.restOf(url.startsWith(CANCELS) ? 'cancels' : 'others', ip)
    if (restMs === null) route(request, response)
    else setTimeout(() => reject(request, response, restMs, nextId()), PAUSE_MS)
  })
}

function reject({ method }: IncomingMessage, response: ServerResponse, restMs: number, id: string): void {
  if (response.destroyed) return
  const retryAfter = String(Math.max(1, Math.ceil(restMs / 1000)))
  const error = new ApiError('RATE_LIMITED', { scope: 'address', expected: 'a pause of the whole address' })
  const body = JSON.stringify(errorBody(error.beforeReading(), id, method !== 'POST' && method !== 'DELETE'))
  response.writeHead(error.status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'retry-after': retryAfter,
    'x-request-id': id,
  })
  response.end(method === 'HEAD' ? undefined : body)
}
