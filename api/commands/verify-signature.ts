/** Verifies the signature of an order: the signer must be the maker or one of the maker's session keys. */

import type { Db } from '../../db/client.ts'
import { anyOf } from '../../db/values.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Order, SignedOrder } from '../../domain/orders/order.ts'
import type { Clock } from '../../service/clock.ts'
import type { ApiError } from '../errors.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import type { Recovered, RecoverSigners, Signed } from '../ports.ts'
import { diagnoseSignature } from './diagnose-signature.ts'

export interface Verifier {
  /** Throws an ApiError if the signer is neither the maker nor a registered session key of the maker. */
  verify(spec: MarketSpec, order: Order, signature: string): Promise<SignedOrder>
  /** Results in the order of the candidates. */
  verifyAll(candidates: readonly Signed[]): Promise<(SignedOrder | ApiError)[]>
}

export interface VerifierPorts {
  readonly db: Db
  readonly clock: Clock
  /** All markets, because an order may have been signed for a different market by mistake. */
  readonly markets: Pick<MarketDirectory, 'all'>
  readonly recoverSigners: RecoverSigners
}

/** Maximum explanations per request: an explanation takes as long as verifying about a hundred signatures. */
const MAX_EXPLANATIONS = 3

/** Returns a function that returns true at most `perSecond` times in each second. */
function createBudget(clock: Clock, perSecond: number): () => boolean {
  let second = 0
  let spent = 0
  return () => {
    const now = Math.floor(clock.now() / 1000)
    if (now !== second) {
      second = now
      spent = 0
    }
    return ++spent <= perSecond
  }
}

/** Pairs of owner and key in the cache. */
const SIZE = 50_000

/**
 * A cache of all session keys that were ever registered. It only decides whether an invalid signature is explained;
 * the engine decides whether a key is active and may trade.
 */
function createKeyDirectory(db: Db) {
  const known = new Set<string>()
  const pairOf = (owner: string, key: string): string => `${owner}:${key}`
  return {
    async load(pairs: readonly { readonly owner: string; readonly key: string }[]): Promise<void> {
      const unknown = pairs.filter(({ owner, key }) => !known.has(pairOf(owner, key)))
      if (unknown.length === 0) return
      const rows = await db
        .selectFrom('session_keys')
        .select(['owner', 'key'])
        .where('owner', '=', anyOf('text', new Set(unknown.map(({ owner }) => owner))))
        .where('key', '=', anyOf('text', new Set(unknown.map(({ key }) => key))))
        .execute()
      if (known.size > SIZE) known.clear()
      for (const { owner, key } of rows) known.add(pairOf(owner, key))
    },
    has: (owner: string, key: string): boolean => known.has(pairOf(owner, key)),
  }
}

/** `explanations`: invalid signatures per second that are diagnosed. Errors of further signatures contain only the digest and the signers. */
export function createVerifier(
  { db, clock, markets, recoverSigners }: VerifierPorts,
  { explanations }: { readonly explanations: number },
): Verifier {
  const keys = createKeyDirectory(db)
  const mayExplain = createBudget(clock, explanations)

  const verifyAll: Verifier['verifyAll'] = async (candidates) => {
    const recovered = await recoverSigners(candidates)
    const otherSigners = candidates.flatMap(({ order }, at) => {
      const verdict = recovered[at] as Recovered
      return verdict.ok && verdict.value.signer !== order.maker
        ? [{ owner: order.maker, key: verdict.value.signer }]
        : []
    })
    await keys.load(otherSigners)
    const isRejected = ({ order }: Signed, verdict: Recovered): boolean =>
      !verdict.ok || (verdict.value.signer !== order.maker && !keys.has(order.maker, verdict.value.signer))
    const anyRejected = candidates.some((candidate, at) => isRejected(candidate, recovered[at] as Recovered))
    const others = anyRejected ? await markets.all() : []
    let rejected = 0
    return candidates.map((candidate, at) => {
      const verdict = recovered[at] as Recovered
      const { order, signature } = candidate
      if (!verdict.ok || isRejected(candidate, verdict)) {
        const searchMistake = ++rejected <= MAX_EXPLANATIONS && mayExplain()
        return diagnoseSignature({
          ...candidate,
          others,
          recovered: verdict.ok ? verdict.value : null,
          refusal: verdict.ok ? null : verdict.refusal,
          searchMistake,
        })
      }
      return { ...order, ...verdict.value, signature: signature.toLowerCase() as `0x${string}` }
    })
  }

  return {
    verifyAll,
    async verify(spec, order, signature) {
      const [verified] = await verifyAll([{ spec, order, signature }])
      if (verified instanceof Error) throw verified
      return verified as SignedOrder
    },
  }
}
