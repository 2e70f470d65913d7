/** Hashes orders and recovers their signers. */
import type { Order } from '../../domain/orders/order.ts'
import { type OrderVerifier, orderVerifier, type SigningTerms } from '../../domain/orders/order-hash.ts'
import { keccak, recover } from '../../service/crypto.ts'
import type { Recovered } from '../ports.ts'

/** One verifier per market, because it precomputes the parts of the digest that are equal for all orders. */
const verifiers = new WeakMap<SigningTerms, OrderVerifier>()

export function recoverSigner(terms: SigningTerms, order: Order, signature: string): Recovered {
  const known = verifiers.get(terms)
  if (known !== undefined) return known(order, signature)
  const verifier = orderVerifier(terms, keccak, recover)
  verifiers.set(terms, verifier)
  return verifier(order, signature)
}
