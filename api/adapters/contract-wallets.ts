/** Asks contract wallets on the chain whether they accept a signature (EIP-1271). Bounded in time and number, because callers cause it. */
import { toHex } from '../../domain/hex.ts'
import type { Address } from '../../domain/units.ts'
import type { Clock } from '../../service/clock.ts'
import { ApiError } from '../errors.ts'
import { createLocalCounter } from '../http/local-counter.ts'
import type { AcceptsSignature } from '../ports.ts'

const TIMEOUT_MS = 2_000
/** Questions at once, and per second, of this process and one method. */
const MOST_AT_ONCE = 4
const MOST_PER_SECOND = 20
const GAS = '0x7a120'
/** How long an account counts as a wallet, or as one without code: a wallet that is deployed after a question waits this long. */
const WALLET_LIFE_MS = 3_600_000
const NO_CODE_LIFE_MS = 30_000
/** Accounts of each kind in the cache, at most. */
const CACHE_SIZE = 10_000
/** `isValidSignature(bytes32,bytes)`, which is also what it returns for a valid signature. */
const SELECTOR = '1626ba7e'
/** Error code of a call that reverts. Some nodes use a general code and say so in the message. */
const REVERTED = 3

const word = (value: number): string => value.toString(16).padStart(64, '0')

/** The arguments: the digest, the offset of the signature, its length, its bytes padded to whole words. */
function encode(digest: Uint8Array, signature: string): string {
  const hex = signature.slice(2)
  const padded = hex.padEnd(Math.ceil(hex.length / 64) * 64, '0')
  return `0x${SELECTOR}${toHex(digest).slice(2)}${word(64)}${word(hex.length / 2)}${padded}`
}

interface RpcAnswer {
  readonly result?: unknown
  readonly error?: { readonly code?: number; readonly message?: string }
}

const unavailable = (): ApiError => new ApiError('WALLET_CHECK_UNAVAILABLE', {}, '2')

type Ask = (params: readonly unknown[]) => Promise<RpcAnswer>

/** Asks the node by one method, which has bounds of its own: lookups of code take no capacity from questions about signatures. */
function createQuestions(rpcUrl: string, clock: Clock, method: 'eth_call' | 'eth_getCode'): Ask {
  const perSecond = createLocalCounter(clock)
  let running = 0
  return async (params) => {
    const { current } = perSecond.count('asked', 1_000)
    if (running >= MOST_AT_ONCE || current > MOST_PER_SECOND) throw unavailable()
    running++
    try {
      const response = await fetch(rpcUrl, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: [...params, 'latest'] }),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      return ((await response.json()) ?? {}) as RpcAnswer
    } catch {
      throw unavailable()
    } finally {
      running--
    }
  }
}

/** Addresses with an equal answer, each until a time. The oldest are dropped first. */
function createKnown(clock: Clock, lifeMs: number) {
  const until = new Map<Address, number>()
  return {
    has: (owner: Address): boolean => (until.get(owner) ?? 0) > clock.now(),
    add(owner: Address): void {
      until.delete(owner)
      if (until.size >= CACHE_SIZE) until.delete(until.keys().next().value as Address)
      until.set(owner, clock.now() + lifeMs)
    },
  }
}

/** Whether an account has code. Wallets are stored apart, so that many accounts without code drop none of them. */
function createCodeLookup(rpcUrl: string, clock: Clock): (owner: Address) => Promise<boolean> {
  const getCode = createQuestions(rpcUrl, clock, 'eth_getCode')
  const wallets = createKnown(clock, WALLET_LIFE_MS)
  const others = createKnown(clock, NO_CODE_LIFE_MS)
  return async (owner) => {
    if (wallets.has(owner)) return true
    if (others.has(owner)) return false
    const { result } = await getCode([owner])
    if (typeof result !== 'string') throw unavailable()
    const hasCode = result !== '0x'
    ;(hasCode ? wallets : others).add(owner)
    return hasCode
  }
}

/** Most wrong signatures belong to accounts without code: these cost one question to the node for as long as the answer is stored. */
export function createContractWallets(rpcUrl: string, clock: Clock): AcceptsSignature {
  const call = createQuestions(rpcUrl, clock, 'eth_call')
  const hasCode = createCodeLookup(rpcUrl, clock)
  return async (owner, digest, signature) => {
    if (!(await hasCode(owner))) return false
    const { result, error } = await call([{ to: owner, data: encode(digest, signature), gas: GAS }])
    // An account whose code has been removed since returns no data.
    if (typeof result === 'string') return result.slice(0, 66) === `0x${SELECTOR.padEnd(64, '0')}`
    if (error?.code === REVERTED || /revert/i.test(error?.message ?? '')) return false
    throw unavailable()
  }
}
