/** The signature of an order: it must be the maker's. */
import type { MarketSpec } from '../../domain/market.ts'
import type { Order, SignedOrder } from '../../domain/order.ts'
import { type OrderVerifier, orderVerifier } from '../../domain/order-hash.ts'
import { keccak, recover } from '../adapters/crypto.ts'
import { diagnose } from './diagnose.ts'

/** A market's verifier holds what does not change from order to order. */
const verifiers = new WeakMap<MarketSpec, OrderVerifier>()

function verifierOf(spec: MarketSpec): OrderVerifier {
  const known = verifiers.get(spec)
  if (known !== undefined) return known
  const verifier = orderVerifier(spec, keccak, recover)
  verifiers.set(spec, verifier)
  return verifier
}

/** Recovers the signer and refuses whoever is not the maker. `others`: markets that it may have been signed for by mistake. */
export async function verifyOrder(
  spec: MarketSpec,
  order: Order,
  signature: string,
  others: () => Promise<readonly MarketSpec[]>,
): Promise<SignedOrder> {
  const verdict = verifierOf(spec)(order, signature)
  if (!verdict.ok)
    throw diagnose({ spec, order, signature, others: await others(), refusal: verdict.refusal })
  const { hash, signer } = verdict.value
  if (signer !== order.maker)
    throw diagnose({ spec, order, signature, others: await others(), refusal: null })
  return { ...order, hash, signer, signature: signature.toLowerCase() as `0x${string}` }
}
