/** Measures the complete check of an order's signature, and public-key recovery alone. */

import secp256k1 from 'secp256k1'
import { orderVerifier } from '../../domain/orders/order-hash.ts'
import { keccak, recover } from '../../service/crypto.ts'
import { ISOLATED_MARKETS } from './isolated-target.ts'
import { accountOf, type BenchMarket, type Signed, signerOf } from './orders.ts'

const ORDERS = 2_000
const ROUNDS = 10

/** Checks per second, the maximum of several rounds, which other programs on the machine disturb least. */
function best(work: (signed: Signed) => void, orders: readonly Signed[]): number {
  let fastest = 0
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now()
    for (const signed of orders) work(signed)
    fastest = Math.max(fastest, orders.length / ((performance.now() - start) / 1000))
  }
  return fastest
}

export function measureSignatures() {
  const account = accountOf(0)
  const market = ISOLATED_MARKETS[0] as BenchMarket
  const sign = signerOf(market)
  const orders = Array.from({ length: ORDERS }, (_, salt) => sign(account, salt))
  const verify = orderVerifier(market.spec, keccak, recover)
  const hash = keccak(Buffer.from('any')).slice()
  const rs = Buffer.from((orders[0] as Signed).signature.slice(2, 130), 'hex')
  const key = new Uint8Array(65)

  const bare = best(() => secp256k1.ecdsaRecover(rs, 0, hash, false, key), orders)
  const verified = best(({ order, signature }) => {
    const verdict = verify(order, signature)
    if (!verdict.ok || verdict.value.signer !== account.address)
      throw new Error('the signature of a benchmark order was rejected')
  }, orders)
  return { bare, verified, share: verified / bare }
}
