/** Asks contract wallets on the chain whether they accept a signature (EIP-1271). Bounded in time and number, because callers cause it. */
import { toHex } from '../../domain/hex.ts'
import type { Clock } from '../../service/clock.ts'
import { ApiError } from '../errors.ts'
import { createLocalCounter } from '../http/local-counter.ts'
import type { AcceptsSignature } from '../ports.ts'

const TIMEOUT_MS = 2_000
/** Questions at once, and per second, of this process. */
const MOST_AT_ONCE = 4
const MOST_PER_SECOND = 20
const GAS = '0x7a120'
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

export function createContractWallets(rpcUrl: string, clock: Clock): AcceptsSignature {
  const perSecond = createLocalCounter(clock)
  let running = 0
  const unavailable = (): ApiError => new ApiError('WALLET_CHECK_UNAVAILABLE', {}, '2')

  async function call(to: string, data: string): Promise<RpcAnswer> {
    const params = [{ to, data, gas: GAS }, 'latest']
    const response = await fetch(rpcUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_call', params }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    return (await response.json()) as RpcAnswer
  }

  return async (owner, digest, signature) => {
    const { current } = await perSecond.count('asked', 1_000)
    if (running >= MOST_AT_ONCE || current > MOST_PER_SECOND) throw unavailable()
    running++
    try {
      const { result, error } = await call(owner, encode(digest, signature))
      // An account without code returns no data.
      if (typeof result === 'string') return result.slice(0, 66) === `0x${SELECTOR.padEnd(64, '0')}`
      if (error?.code === REVERTED || /revert/i.test(error?.message ?? '')) return false
      throw unavailable()
    } catch (error) {
      throw error instanceof ApiError ? error : unavailable()
    } finally {
      running--
    }
  }
}
