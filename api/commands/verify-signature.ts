/** The signature of an order: it must be the maker's, or that of a session key of his. */

import type { Db } from '../../db/client.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import type { Order, SignedOrder } from '../../domain/orders/order.ts'
import type { ApiError } from '../errors.ts'
import type { MarketDirectory } from '../markets/market-directory.ts'
import type { Clock, Recovered, RecoverSigners, Signed } from '../ports.ts'
import { diagnose } from './diagnose-signature.ts'

export interface Verifier {
  /** Throws the ApiError of whoever is neither the maker nor known as a key of his. */
  verify(spec: MarketSpec, order: Order, signature: string): Promise<SignedOrder>
  /** In the order of the candidates. */
  verifyAll(candidates: readonly Signed[]): Promise<(SignedOrder | ApiError)[]>
}

export interface VerifierPorts {
  readonly db: Db
  readonly clock: Clock
  /** Markets that an order may have been signed for by mistake. */
  readonly markets: Pick<MarketDirectory, 'all'>
  readonly recoverSigners: RecoverSigners
}

/** So many wrong signatures of one request are explained in full: each takes as long as checking a hundred others. */
const EXPLAINED = 3

/** Grants so many per second, to whoever asks first. */
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

/** Pairs of owner and key that are remembered. */
const SIZE = 50_000

/**
 * Which signers have ever been registered as keys of which owners. A first look only, so that a wrong signature is explained at once:
 * what the key may do now is read in the transaction that places the order.
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
        .where(
          'owner',
          'in',
          unknown.map(({ owner }) => owner),
        )
        .where(
          'key',
          'in',
          unknown.map(({ key }) => key),
        )
        .execute()
      if (known.size > SIZE) known.clear()
      for (const { owner, key } of rows) known.add(pairOf(owner, key))
    },
    has: (owner: string, key: string): boolean => known.has(pairOf(owner, key)),
  }
}

/** `explanations`: wrong signatures per second whose mistake is looked for; the others are told what they were compared with. */
export function createVerifier(
  { db, clock, markets, recoverSigners }: VerifierPorts,
  { explanations }: { readonly explanations: number },
): Verifier {
  const keys = createKeyDirectory(db)
  const mayExplain = createBudget(clock, explanations)

  const verifyAll: Verifier['verifyAll'] = async (candidates) => {
    const recovered = await recoverSigners(candidates)
    const strangers = candidates.flatMap(({ order }, at) => {
      const verdict = recovered[at] as Recovered
      return verdict.ok && verdict.value.signer !== order.maker
        ? [{ owner: order.maker, key: verdict.value.signer }]
        : []
    })
    await keys.load(strangers)
    const isRefused = ({ order }: Signed, verdict: Recovered): boolean =>
      !verdict.ok || (verdict.value.signer !== order.maker && !keys.has(order.maker, verdict.value.signer))
    const anyRefused = candidates.some((candidate, at) => isRefused(candidate, recovered[at] as Recovered))
    const others = anyRefused ? await markets.all() : []
    let refused = 0
    return candidates.map((candidate, at) => {
      const verdict = recovered[at] as Recovered
      const { order, signature } = candidate
      if (!verdict.ok || isRefused(candidate, verdict)) {
        const isSearched = ++refused <= EXPLAINED && mayExplain()
        return diagnose({ ...candidate, others, refusal: verdict.ok ? null : verdict.refusal, isSearched })
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
